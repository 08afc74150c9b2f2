package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/trust"
)

// sessionRow is a row of sessions as it is stored, or as it should be.
type sessionRow struct {
	SessionID, Machine, Digest, Status, State                    string
	Round, Attempt, Sequence, Transitions                        int64
	Code, Reason                                                 string
	CreatedAt, UpdatedAt, Calls, InputTokens, OutputTokens, Pico int64
	Reviews                                                      int64
	Head                                                         string
}

func (a *audit) row(id int64) sessionRow {
	s := a.sessions[id]
	o, spent := s.Outcome(), s.Spent()
	head := a.heads[id]
	return sessionRow{
		s.ID.String(), s.Machine().Name(), s.Machine().Digest(), s.Status.String(), s.State.Name,
		int64(s.Round), int64(s.Attempt), s.Sequence, int64(s.Executed), o.Code, o.Reason,
		int64(s.CreatedAt), int64(s.UpdatedAt), spent.Calls, spent.TokensIn, spent.TokensOut, int64(spent.Money), int64(len(s.Reviews())), string(head[:]),
	}
}

// compareSessions holds the rows of sessions against the logs.
func (r reader) compareSessions(ctx context.Context, a *audit) error {
	rows, err := r.q.QueryContext(ctx, `SELECT s.id, s.session_id, coalesce(m.machine_name, ''), s.machine_digest, s.status, s.current_state, s.round, s.attempt,
		s.sequence, s.transitions, s.code, s.reason, s.created_at, s.updated_at, s.calls, s.input_tokens, s.output_tokens, s.cost_pico_usd, s.reviews, s.head
		FROM sessions s LEFT JOIN machines m ON m.id=s.machine ORDER BY s.id`)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var id int64
		var got sessionRow
		var head []byte
		if err := rows.Scan(&id, &got.SessionID, &got.Machine, &got.Digest, &got.Status, &got.State, &got.Round, &got.Attempt, &got.Sequence, &got.Transitions, &got.Code, &got.Reason,
			&got.CreatedAt, &got.UpdatedAt, &got.Calls, &got.InputTokens, &got.OutputTokens, &got.Pico, &got.Reviews, &head); err != nil {
			return translate(err)
		}
		got.Head = string(head)
		if want := a.row(id); got != want {
			return &Difference{Stream: want.SessionID, What: "its row in sessions is not what its log says; run dialai store rebuild"}
		}
		seen++
	}
	if err := rows.Err(); err != nil {
		return translate(err)
	}
	if seen != len(a.sessions) {
		return &Difference{Stream: "sessions", What: fmt.Sprintf("there are %d rows for %d logs; run dialai store rebuild", seen, len(a.sessions))}
	}
	return r.compareDecided(ctx, a)
}

// compareDecided holds the index of decisions against the logs.
func (r reader) compareDecided(ctx context.Context, a *audit) error {
	ids, err := r.ids(ctx, `SELECT id FROM log WHERE decides IS NOT NULL`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !a.decided[id] {
			return &Difference{Stream: "log", What: fmt.Sprintf("row %d is marked as a decision and is none; run dialai store rebuild", id)}
		}
	}
	if len(ids) != len(a.decided) {
		return &Difference{Stream: "log", What: fmt.Sprintf("%d rows are marked as decisions, %d are; run dialai store rebuild", len(ids), len(a.decided))}
	}
	return nil
}

// compareLessons holds what the ledger is made of against the logs.
func (r reader) compareLessons(ctx context.Context, a *audit) error {
	rows, err := r.q.QueryContext(ctx, `SELECT id, lesson FROM lessons ORDER BY id`)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id int64
		var stored string
		if err := rows.Scan(&id, &stored); err != nil {
			return translate(err)
		}
		if want, known := a.lessons[id]; !known || stored != want {
			return &Difference{Stream: "lessons", What: fmt.Sprintf("lesson %d is not what the logs say; run dialai store rebuild", id)}
		}
	}
	if err := rows.Err(); err != nil {
		return translate(err)
	}
	if n != len(a.lessons) {
		return &Difference{Stream: "lessons", What: fmt.Sprintf("there are %d, the logs have %d; run dialai store rebuild", n, len(a.lessons))}
	}
	return nil
}

// compareTrust holds alignment and exemplars against the logs.
func (r reader) compareTrust(ctx context.Context, a *audit) error {
	names, err := r.machineNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Values(names)) {
		stored, err := r.tallies(ctx, name)
		if err != nil {
			return err
		}
		if !slices.Equal(trust.NewBook(stored).Records(name), a.tallies[name].Records(name)) {
			return &Difference{Stream: name, What: "alignment is not what the logs say; run dialai store rebuild"}
		}
	}
	rows, err := r.q.QueryContext(ctx, `SELECT exemplar FROM exemplars ORDER BY id`)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	i := 0
	for ; rows.Next(); i++ {
		var stored string
		if err := rows.Scan(&stored); err != nil {
			return translate(err)
		}
		if i >= len(a.exemplars) || stored != string(a.exemplars[i].exemplar.Append(nil)) {
			return &Difference{Stream: "exemplars", What: "they are not what the logs say; run dialai store rebuild"}
		}
	}
	if err := rows.Err(); err != nil {
		return translate(err)
	}
	if i != len(a.exemplars) {
		return &Difference{Stream: "exemplars", What: fmt.Sprintf("there are %d, the logs have %d; run dialai store rebuild", i, len(a.exemplars))}
	}
	return nil
}
