package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/trust"
)

// A Report says what a check of a store found.
type Report struct {
	Sessions int `json:"sessions"`
	Records  int `json:"records"`
	Events   int `json:"events"`
	// Difference is the first thing that is not as the logs say; nil if all is
	// well.
	Difference *Difference `json:"difference,omitempty"`
}

// A Difference names one thing that is not as it should be.
type Difference struct {
	Stream string `json:"stream"`        // a session id, or a machine name
	Seq    int64  `json:"seq,omitempty"` // of the event at which it shows; 0 for rows
	What   string `json:"what"`
	InLog  bool   `json:"inLog"` // a log is damaged: rebuilding cannot mend it
}

func (d *Difference) Error() string {
	if d.Seq > 0 {
		return fmt.Sprintf("%s: event %d: %s", d.Stream, d.Seq, d.What)
	}
	return fmt.Sprintf("%s: %s", d.Stream, d.What)
}

// Verify recomputes every hash and everything that follows from the logs, and
// reports the first difference. It changes nothing.
func (s *SQLite) Verify(ctx context.Context, programs *runner.Programs) (Report, error) {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return Report{}, translate(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil { // one snapshot for everything
		return Report{}, translate(err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	r := reader{conn}
	a, err := r.audit(ctx, programs, true)
	if err != nil || a.report.Difference != nil {
		return a.report, err
	}
	for _, check := range []func(context.Context, *audit) error{r.compareSessions, r.compareTrust, r.compareLessons} {
		var d *Difference
		if err := check(ctx, a); errors.As(err, &d) {
			a.report.Difference = d
			return a.report, nil
		} else if err != nil {
			return a.report, err
		}
	}
	return a.report, nil
}

// An audit is what the logs say.
type audit struct {
	report    Report
	sessions  map[int64]*runner.Session // by sessions.id
	heads     map[int64]runner.Hash
	tallies   map[string]*trust.Book // by machine name
	exemplars []placedExemplar
	decided   map[int64]bool   // log rows that execute a transition
	lessons   map[int64]string // by log row, as they are stored
}

type placedExemplar struct {
	log      int64
	exemplar specialist.Exemplar
}

// audit folds every log. A damaged one ends it, with the difference in the
// report. tails says whether a log that ends early counts as damaged.
func (r reader) audit(ctx context.Context, programs *runner.Programs, tails bool) (*audit, error) {
	a := &audit{sessions: map[int64]*runner.Session{}, heads: map[int64]runner.Hash{}, tallies: map[string]*trust.Book{}, decided: map[int64]bool{}, lessons: map[int64]string{}}
	if d, err := r.auditRosters(ctx, a); d != nil || err != nil {
		a.report.Difference = d
		return a, err
	}
	ids, err := r.ids(ctx, `SELECT DISTINCT session FROM log UNION SELECT id FROM sessions ORDER BY 1`)
	if err != nil {
		return a, err
	}
	for _, id := range ids {
		d, err := r.auditSession(ctx, a, programs, id)
		if d == nil && err == nil && tails {
			d, err = r.compareTail(ctx, a, id)
		}
		if d != nil || err != nil {
			a.report.Difference = d
			return a, err
		}
	}
	slices.SortFunc(a.exemplars, func(x, y placedExemplar) int { return cmp.Compare(x.log, y.log) })
	return a, nil
}

func (r reader) ids(ctx context.Context, query string) ([]int64, error) {
	rows, err := r.q.QueryContext(ctx, query)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, translate(err)
		}
		ids = append(ids, id)
	}
	return ids, translate(rows.Err())
}

// auditSession folds one session's log into a.
func (r reader) auditSession(ctx context.Context, a *audit, programs *runner.Programs, row int64) (*Difference, error) {
	stream := fmt.Sprintf("session row %d", row)
	bad := func(seq int64, format string, args ...any) *Difference {
		return &Difference{Stream: stream, Seq: seq, What: fmt.Sprintf(format, args...), InLog: true}
	}
	f := &runner.Folder{Programs: programs, Definition: func(digest string) ([]byte, error) { return r.definition(ctx, digest) }}
	var prev runner.Hash
	rows, err := r.q.QueryContext(ctx, `SELECT id, first, events, prev, hash FROM log WHERE session=? ORDER BY first`, row)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var log, first int64
		var events, before, hash []byte
		if err := rows.Scan(&log, &first, &events, &before, &hash); err != nil {
			return nil, translate(err)
		}
		if first == 1 {
			if id := sessionIDOf(events); id != "" {
				stream = id
			}
		}
		if string(before) != string(prev[:]) {
			return bad(first, "it does not follow from the record before: one was removed or altered"), nil
		}
		if want := runner.Chain(prev, stream, events); string(hash) != string(want[:]) {
			return bad(first, "the hash of its record is wrong: the record was altered"), nil
		}
		decoded, err := f.Add(events)
		if err != nil {
			return bad(first, "%v", err), nil
		}
		copy(prev[:], hash)
		a.add(f, log, decoded)
	}
	if err := rows.Err(); err != nil {
		return nil, translate(err)
	}
	if prev == (runner.Hash{}) {
		return bad(1, "its log is gone"), nil
	}
	a.report.Sessions++
	a.sessions[row], a.heads[row] = f.Session(), prev
	return nil, nil
}

func (a *audit) add(f *runner.Folder, log int64, events []runner.Event) {
	a.report.Records++
	a.report.Events += len(events)
	for _, e := range events {
		if l := runner.LessonOf(e.Data); l != nil {
			a.lessons[log] = lessonText(l)
		}
		switch d := e.Data.(type) {
		case *runner.Executed:
			a.decided[log] = true
		case *runner.Learned:
			name := f.Session().Machine().Name()
			a.tallies[name] = a.tallies[name].With(d.Comparisons...)
			if d.Exemplar != nil {
				a.exemplars = append(a.exemplars, placedExemplar{log, *d.Exemplar})
			}
		}
	}
}

// lessonText returns a lesson as it is stored.
func lessonText(l *trust.Lesson) string {
	text, err := l.Encode()
	if err != nil {
		return err.Error() // never: it was decoded
	}
	return string(text)
}

func sessionIDOf(events []byte) string {
	raw, err := runner.DecodeRaw(events)
	if err != nil {
		return ""
	}
	var v struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(raw[0].Data, &v) != nil {
		return ""
	}
	return v.SessionID
}

// compareTail finds a log whose end was cut off: the session's row knows how far
// it went.
func (r reader) compareTail(ctx context.Context, a *audit, row int64) (*Difference, error) {
	session := a.sessions[row]
	sequences, err := r.ids(ctx, fmt.Sprintf(`SELECT sequence FROM sessions WHERE id=%d`, row))
	if err != nil || len(sequences) == 0 {
		return nil, err
	}
	if sequences[0] > session.Sequence {
		return &Difference{Stream: session.ID.String(), Seq: session.Sequence + 1, InLog: true,
			What: fmt.Sprintf("the log ends before it, but the session was at event %d: its end was cut off", sequences[0])}, nil
	}
	return nil, nil
}

// auditRosters checks the logs of the machine names.
func (r reader) auditRosters(ctx context.Context, a *audit) (*Difference, error) {
	names, err := r.machineNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Values(names)) {
		var prev runner.Hash
		next := int64(1)
		for rec, err := range r.rosterRecords(ctx, name) {
			if err != nil {
				return nil, err
			}
			bad := &Difference{Stream: name, Seq: rec.First, InLog: true}
			events, err := runner.DecodeRosterEvents(rec.Events)
			switch {
			case rec.First != next || rec.Prev != prev:
				bad.What = "it does not follow from the record before: one was removed or altered"
				return bad, nil
			case rec.Hash != runner.Chain(prev, name, rec.Events):
				bad.What = "the hash of its record is wrong: the record was altered"
				return bad, nil
			case err != nil:
				bad.What = err.Error()
				return bad, nil
			}
			prev, next = rec.Hash, next+int64(len(events))
			a.report.Records++
			a.report.Events += len(events)
		}
	}
	return nil, nil
}

func (r reader) machineNames(ctx context.Context) (map[int64]string, error) {
	rows, err := r.q.QueryContext(ctx, `SELECT id, machine_name FROM machines`)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	names := map[int64]string{}
	for rows.Next() {
		var id int64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, translate(err)
		}
		names[id] = name
	}
	return names, translate(rows.Err())
}
