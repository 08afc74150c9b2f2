package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"

	"github.com/dialai/dialai/runner"
)

// Rebuild writes everything that follows from the logs anew, in one transaction.
// It refuses, with the difference in the report, if a log itself is damaged; a
// log that ends before its session's row says is taken as it is if acceptCut is
// set.
func (s *SQLite) Rebuild(ctx context.Context, programs *runner.Programs, acceptCut bool) (report Report, err error) {
	err = s.out.do(&job{ctx: ctx, write: func(ctx context.Context, _ *statements) error {
		// The transaction keeps every writer out, so the logs stand still.
		a, err := s.reader().audit(ctx, programs, !acceptCut)
		if report = a.report; err != nil || report.Difference != nil {
			return err
		}
		b := rebuild{a: a, conn: s.out.conn, ctx: ctx}
		return b.run()
	}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = newCache()
	return report, err
}

// A rebuild is the writing of all rows. It keeps the first error.
type rebuild struct {
	a    *audit
	ctx  context.Context //nolint:containedctx // of the one transaction it lives in
	conn *sql.Conn
	err  error
}

func (b *rebuild) exec(query string, args ...any) {
	if b.err == nil {
		_, b.err = b.conn.ExecContext(b.ctx, query, args...)
	}
}

func (b *rebuild) run() error {
	machines := b.machines()
	b.exec(`DELETE FROM sessions`)
	b.exec(`DELETE FROM alignment`)
	b.exec(`DELETE FROM exemplars`)
	for _, id := range slices.Sorted(maps.Keys(b.a.sessions)) {
		r := b.a.row(id)
		b.exec(`INSERT INTO sessions (id, session_id, machine, machine_digest, status, current_state, round, attempt, sequence, transitions, code, reason,
			created_at, updated_at, calls, input_tokens, output_tokens, cost_pico_usd, reviews, head) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			id, r.SessionID, machines[r.Machine], r.Digest, r.Status, r.State, r.Round, r.Attempt, r.Sequence, r.Transitions, r.Code, r.Reason,
			r.CreatedAt, r.UpdatedAt, r.Calls, r.InputTokens, r.OutputTokens, r.Pico, r.Reviews, []byte(r.Head))
	}
	for name, book := range b.a.tallies {
		for _, r := range book.Records(name) {
			b.exec(`INSERT INTO alignment (machine, specialist_id, state, matching, total, updated_at) VALUES (?,?,?,?,?,?)`,
				machines[name], r.SpecialistID, r.State, r.MatchingChoices, r.TotalComparisons, int64(r.LastUpdated))
		}
		b.exec(`UPDATE machines SET trust_version=trust_version+1 WHERE id=?`, machines[name])
	}
	for _, e := range b.a.exemplars {
		b.exec(`INSERT INTO exemplars (machine, state, exemplar) VALUES (?,?,?)`, machines[e.exemplar.MachineName], e.exemplar.State, text(e.exemplar.Append(nil)))
	}
	b.exec(`DELETE FROM lessons`)
	for _, id := range slices.Sorted(maps.Keys(b.a.lessons)) {
		b.exec(`INSERT INTO lessons (id, lesson) VALUES (?,?)`, id, b.a.lessons[id])
	}
	b.exec(`UPDATE log SET decides=NULL WHERE decides IS NOT NULL`)
	for _, id := range slices.Sorted(maps.Keys(b.a.decided)) {
		b.exec(`UPDATE log SET decides=(SELECT machine FROM sessions WHERE sessions.id=log.session) WHERE id=?`, id)
	}
	return b.err
}

// machines restores the names of machines from the definitions and returns their
// rows by name.
func (b *rebuild) machines() map[string]int64 {
	byName := map[string]int64{}
	if b.err != nil {
		return byName
	}
	rows, err := b.conn.QueryContext(b.ctx, `SELECT machine, definition FROM definitions`)
	if err != nil {
		b.err = err
		return byName
	}
	for rows.Next() {
		var id int64
		var definition string
		var head struct {
			MachineName string `json:"machineName"`
		}
		if b.err = rows.Scan(&id, &definition); b.err == nil {
			b.err = json.Unmarshal([]byte(definition), &head)
		}
		if b.err != nil {
			break
		}
		byName[head.MachineName] = id
	}
	if err := rows.Close(); b.err == nil {
		b.err = err
	}
	for name, id := range byName {
		b.exec(`INSERT INTO machines (id, machine_name) VALUES (?,?) ON CONFLICT DO NOTHING`, id, name)
	}
	return byName
}
