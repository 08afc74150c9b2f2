package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
)

// Each session's log is folded from its beginning and held against its chain of hashes; its rows, and what
// stands beside its records, against what it says. What follows of it elsewhere is collected on the way, and
// compared when all logs were read (verify_rows.go).

// A sessionRow is a row of sessions.
type sessionRow struct {
	projection.Session
	id    int64
	ended *int64
	head  []byte

	tenant []byte // under whose quota it was started or carried on; nil if under none
}

// checkSessions folds the log of each session, and compares its row.
func (a *audit) checkSessions(ctx context.Context) error {
	var all, read int64
	if err := a.tx.QueryRow(ctx, `SELECT count(*) FROM log`).Scan(&all); err != nil {
		return err
	}
	for last := int64(0); ; {
		rows, err := a.page(ctx, last)
		if err != nil {
			return err
		}
		if err := a.readWork(ctx, rows); err != nil {
			return err
		}
		for i := range rows {
			records, err := a.checkSession(ctx, &rows[i])
			if err != nil {
				return err
			}
			if read += int64(records); i%64 == 0 {
				a.told(read, all)
			}
			last = rows[i].id
		}
		if len(rows) < page {
			a.told(all, all)
			return nil
		}
	}
}

// page reads the rows of sessions that come after one.
func (a *audit) page(ctx context.Context, after int64) (list []sessionRow, err error) {
	var r sessionRow
	var id [16]byte
	var status int16
	var startedBy, reason, subject []byte
	is := &r.Session
	err = a.each(ctx, `SELECT s.id, s.session_id, coalesce(m.machine_name, ''), coalesce(d.machine_digest, ''), s.created_at, s.started_by, s.status, s.code, s.reason, s.reviews, s.subject, s.due_at, s.driver, s.since, s.timer_at, s.ended_at,
		s.current_state, s.round, s.attempt, s.sequence, s.transitions, s.updated_at, s.calls, s.input_tokens, s.output_tokens, s.cost_pico_usd, s.head, q.tenant
		FROM sessions s LEFT JOIN machines m ON m.id=s.machine LEFT JOIN definitions d ON d.id=s.definition LEFT JOIN quota_sessions q ON q.session_id=s.session_id WHERE s.id>$1 ORDER BY s.id LIMIT $2`,
		[]any{&r.id, &id, &is.Machine, &is.Digest, &is.CreatedAt, &startedBy, &status, &is.Code, &reason, &is.Reviews, &subject, &is.DueAt, &is.Driver, &is.Since, &is.TimerAt, &r.ended,
			&is.State, &is.Round, &is.Attempt, &is.Sequence, &is.Executed, &is.UpdatedAt, &is.Calls, &is.TokensIn, &is.TokensOut, &is.PicoUSD, &r.head, &r.tenant}, func() {
			is.ID, is.StartedBy, is.Reason, is.Subject, is.Status = specialist.SessionID(id).String(), string(startedBy), string(reason), string(subject), ""
			if status >= int16(session.Running) && status <= int16(session.Failed) {
				is.Status = session.Status(status).String()
			}
			list = append(list, r)
			r.ended, r.head, r.tenant = nil, nil, nil
		}, after, page)
	return list, err
}

// A logRow is a record as it is stored, with what stands beside its events.
type logRow struct {
	place, first, at int64
	decides          *int
	events, hash     []byte
}

// checkSession folds the log of a session and compares its row. It returns how many records there are.
func (a *audit) checkSession(ctx context.Context, row *sessionRow) (records int, err error) {
	f := &session.Folder{Programs: a.programs, Definition: func(digest string) ([]byte, error) {
		if text := a.definitions[digest]; text != nil {
			return text, nil
		}
		return nil, &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
	}}
	var watch *stats.Watch
	if a.proof.Counts() {
		watch = stats.On(f)
	}
	a.quotas.account(row, f)
	var head session.Hash
	var sequence, place int64
	whole := true
	var behind *fold.Behind // a record that cannot be read; nil if there is none
	kept, err := a.readKept(ctx, row)
	if err != nil {
		return 0, err
	}
	erased := a.erased(ctx, row)
	for r, err := range a.log(ctx, row.id) {
		if err != nil {
			return records, err
		}
		if records++; !whole {
			behind.Add(r.unpacked())
			continue
		}
		events, problem := a.fold(f, &erased, head, &r)
		switch {
		case r.first != sequence+1:
			problem = errors.New("it does not follow from the record before: one was removed or altered")
		case problem == nil && r.place <= place:
			problem = errors.New("its place is not above that of the record before")
		}
		if problem != nil {
			kind := inLog
			if errors.As(problem, new(*session.NewerError)) {
				kind, behind = inNewer, &fold.Behind{Stream: erased.Stream, Head: r.record().Hash}
			}
			a.differs(kind, row.ID, sequence+1, "%v", problem)
			whole = false
			continue
		}
		copy(head[:], r.hash)
		sequence, place = sequence+int64(len(events)), r.place
		a.holdSnapshot(kept, row.id, sequence, f, head)
		machine := f.Session().Machine().Name()
		taught := a.follow(machine, row, &r, events)
		if watch != nil {
			a.proof.Record(machine, r.place, watch.Take(), taught)
		}
	}
	if !whole {
		if first, problem := behind.Problem(); problem != nil {
			a.differs(inLog, row.ID, first, "%v", problem)
		}
		return records, nil
	}
	a.report.Sessions++
	switch {
	case records == 0:
		a.differs(inLog, row.ID, 1, "its log is gone")
	case sequence < row.Sequence:
		a.differs(inLog, row.ID, sequence+1, "the log ends before it, but the session was at event %d: its end was cut off", row.Sequence)
	default:
		folded := f.Session()
		want := projection.SessionOf(folded)
		ended := !folded.Status.Live() && row.ended != nil && *row.ended == want.UpdatedAt || folded.Status.Live() && row.ended == nil
		if row.Session != want || string(row.head) != string(head[:]) || !ended {
			a.differs(inRows, row.ID, 0, "its row in sessions is not what its log says")
		}
		a.checkWork(row.id, folded)
	}
	return records, nil
}

// log yields the records of a session, some at a time: in between the connection is free.
func (a *audit) log(ctx context.Context, row int64) iter.Seq2[logRow, error] {
	return func(yield func(logRow, error) bool) {
		for next, n := int64(0), page; n == page; {
			rows, _ := a.tx.Query(ctx, `SELECT place, first, decides, at, events, hash FROM log WHERE session=$1 AND first>=$2 ORDER BY first LIMIT $3`, row, next, page) // the error comes with the rows
			list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r logRow, err error) {
				return r, row.Scan(&r.place, &r.first, &r.decides, &r.at, &r.events, &r.hash)
			})
			if err != nil {
				yield(logRow{}, err)
				return
			}
			for i := range list {
				if next = list[i].first + 1; !yield(list[i], nil) {
					return
				}
			}
			n = len(list)
		}
	}
}

// erased proves the records of a session out of which payloads were taken.
func (a *audit) erased(ctx context.Context, row *sessionRow) fold.Erased {
	return fold.Erased{Stream: row.ID, Records: func() iter.Seq2[session.StoredRecord, error] {
		return func(yield func(session.StoredRecord, error) bool) {
			for r, err := range a.log(ctx, row.id) {
				record := &session.StoredRecord{}
				if err == nil {
					record, err = r.unpacked()
				}
				if !yield(*record, err) {
					return
				}
			}
		}
	}}
}

// record returns a row as a record, with the events as they are stored.
func (r *logRow) record() session.StoredRecord {
	record := session.StoredRecord{First: r.first, Events: r.events}
	copy(record.Hash[:], r.hash)
	return record
}

// unpacked returns a row as a record, or why it cannot be unpacked.
func (r *logRow) unpacked() (*session.StoredRecord, error) {
	record := r.record()
	var err error
	record.Events, err = pack.Unpack(nil, r.events)
	return &record, err
}

// fold adds a record to a session, and returns what is wrong with it.
func (a *audit) fold(f *session.Folder, erased *fold.Erased, head session.Hash, r *logRow) (events []session.Event, problem error) {
	text, problem := proven(erased, head, r)
	if problem != nil {
		return nil, problem
	}
	events, err := f.Add(text)
	if err != nil {
		return nil, err
	}
	for i := range events {
		if d, ok := events[i].Data.(*session.Erased); ok {
			if seq := erased.PutBack(d); seq != 0 {
				return nil, fmt.Errorf("the record at event %d was erased, and is as it was before: it was put back", seq)
			}
		}
	}
	return events, nil
}

// proven returns the events of a record behind the one with the hash head, or what is wrong with it.
func proven(erased *fold.Erased, head session.Hash, r *logRow) (text []byte, problem error) {
	record := r.record()
	text, err := pack.Unpack(nil, r.events)
	if errors.As(err, new(*session.NewerError)) {
		return nil, fold.UnknownForm(r.place, r.events, func(events []byte) bool { return record.Hash == session.Chain(head, erased.Stream, events) })
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if record.Events = text; record.Hash != session.Chain(head, erased.Stream, text) && !erased.Proves(&record) {
		return nil, errors.New("the hash of its record is wrong: the record was altered")
	}
	return text, nil
}

// follow keeps what follows from the events of a record, and compares what stands beside them. It reports whether it has a lesson.
func (a *audit) follow(machine string, row *sessionRow, r *logRow, events []session.Event) (taught bool) {
	a.report.Records++
	a.report.Events += len(events)
	follows := projection.Follow(events)
	if decides := r.decides != nil && a.machines[*r.decides] == machine; decides != follows.Decides || r.decides != nil && !decides || r.at != int64(events[len(events)-1].At) {
		a.differs(inRows, row.ID, 0, "what stands beside the record at place %d (decides, at) is not what its events say", r.place)
	}
	if t, ok := projection.TaughtBy(r.place, events); ok {
		taught = t.Lesson != nil
		a.teach(machine, row.ID, row.id, &t)
		a.erasedAudit[row.ID] = append(a.erasedAudit[row.ID], t.Erased...)
	}
	for i := range events {
		if d, ok := events[i].Data.(*session.Erased); ok {
			for _, one := range d.Agents {
				if a.erasedAgents[row.id] == nil {
					a.erasedAgents[row.id] = map[int64]string{}
				}
				a.erasedAgents[row.id][one.Seq] = one.Sum
			}
		}
	}
	return taught
}
