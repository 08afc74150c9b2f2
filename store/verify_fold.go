package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/fold"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/scratch"
	"github.com/dialai/dialai/store/internal/snapshots"
)

// A session whose log is read again, record by record, as verify does: what it comes to, and what it has taught.

// A folding is the folding of one session's log.
type folding struct {
	*session.Folder
	watch    *stats.Watch // nil if nobody asks what records add
	spend    *bills
	a        *audit
	row      int64
	began    int64 // place of the first record
	stream   string
	machine  string // its name
	sequence int64
	head     session.Hash
	bad      *Difference
	behind   *fold.Behind       // a record that this program cannot read; nil if there is none
	kept     *snapshots.Session // that the log has not come to yet; nil if there is none
	erased   fold.Erased
}

func (a *audit) open(row, began int64) *folding {
	definition := func(digest string) ([]byte, error) {
		d, ok := a.definitions[digest]
		if !ok {
			return nil, &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
		}
		return []byte(d.text), nil
	}
	paid := newBills()
	f := &folding{Folder: &session.Folder{Programs: a.programs, Definition: definition, Applied: paid.follow}, spend: paid, a: a, row: row, began: began, stream: fmt.Sprintf("session row %d", row)}
	f.erased.Records = func() iter.Seq2[session.StoredRecord, error] { return a.logRows(context.Background(), row, 0) }
	if a.proof.Counts() {
		f.watch = stats.On(f.Folder)
	}
	return f
}

// provenErased reports whether an event behind a record says that payloads were taken out of it, and
// that it is what was left.
func (f *folding) provenErased(r *logRow, first int64) bool {
	record := session.StoredRecord{First: first, Events: r.events}
	copy(record.Hash[:], r.hash)
	f.erased.Stream = f.stream
	return f.erased.Proves(&record)
}

// restored takes in an event erased, and returns which record has the payloads that it says are gone; 0 for none.
func (f *folding) restored(d *session.Erased) int64 {
	if seq := f.erased.PutBack(d); seq != 0 {
		return seq
	}
	for _, one := range d.Agents {
		if f.a.erasedAgents[f.row] == nil {
			f.a.erasedAgents[f.row] = map[int64]string{}
		}
		f.a.erasedAgents[f.row][one.Seq] = one.Sum
	}
	return 0
}

// close keeps what a log says of its session.
func (a *audit) close(f *folding) {
	switch {
	case f == nil:
		return
	case f.bad != nil:
		a.read.PutSession(&scratch.Session{Row: f.row, Began: f.began})
		a.find(f.bad)
		if first, problem := f.behind.Problem(); problem != nil {
			d := differs(inLog, f.stream, "%v", problem)
			d.Seq = first
			a.find(d)
		}
		return
	}
	if d := f.spend.wrong; d != nil {
		d.Stream = f.stream
		a.find(d)
	}
	a.report.Sessions++
	a.read.PutSession(&scratch.Session{Row: f.row, Began: f.began, Folded: true, Session: projection.SessionOf(f.Session()), Head: f.head, Taken: f.spend.taken})
}

// add folds one record, and returns what is wrong with it.
func (f *folding) add(r *logRow) *Difference {
	want := beside{first: f.sequence + 1}
	var unreadable error
	if r.events, unreadable = pack.Unpack(nil, r.stored); f.sequence == 0 {
		id := sessionIDOf(r.events)
		if id == "" {
			id = f.a.named(r.session)
		}
		f.stream = cmp.Or(id, f.stream)
	}
	bad := func(format string, args ...any) *Difference {
		err := fmt.Errorf(format, args...)
		kind := inLog
		if errors.As(err, new(*session.NewerError)) {
			kind = inNewer
		}
		d := differs(kind, f.stream, "%v", err)
		d.Seq = want.first
		return d
	}
	if errors.As(unreadable, new(*session.NewerError)) {
		return bad("%w", fold.UnknownForm(r.place, r.stored, func(events []byte) bool { return r.record().Hash == session.Chain(f.head, f.stream, events) }))
	}
	if unreadable != nil {
		return bad("it cannot be read: %w", unreadable)
	}
	if hash := session.Chain(f.head, f.stream, r.events); string(r.hash) != string(hash[:]) && !f.provenErased(r, want.first) {
		if r.first != want.first {
			return bad("it does not follow from the record before: one was removed or altered")
		}
		return bad("the hash of its record is wrong: the record was altered")
	}
	events, err := f.Add(r.events)
	if err != nil {
		return bad("%w", err)
	}
	if copy(f.head[:], r.hash); f.sequence == 0 {
		f.machine = f.Session().Machine().Name()
		f.readKept()
	}
	for _, e := range events {
		if d, ok := e.Data.(*session.Erased); ok {
			if seq := f.restored(d); seq != 0 {
				return bad("the record at event %d was erased, and is as it was before: it was put back", seq)
			}
		}
	}
	f.sequence += int64(len(events))
	want.at = int64(events[len(events)-1].At)
	f.holdSnapshot()
	f.learn(r.place, events, &want)
	if r.first != want.first || r.at != want.at || !same(r.decides, want.decides) {
		f.a.beside[r.place] = want
		f.a.find(differs(inRows, "log", "what stands beside the record at place %d (first, at, decides) is not what its events say", r.place))
	}
	return nil
}

// named returns the id that the row of a session has, "" if there is none: for a log that does not
// say whose it is.
func (a *audit) named(row int64) (id string) {
	_ = a.q.QueryRowContext(context.Background(), `SELECT session_id FROM sessions NOT INDEXED WHERE id=?`, row).Scan(&id) // what is wrong with the table is said elsewhere
	return id
}

func same(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// learn keeps what follows from the events of a record.
func (f *folding) learn(place int64, events []session.Event, want *beside) {
	a, name := f.a, f.machine
	a.report.Records++
	a.report.Events += len(events)
	if projection.Follow(events).Decides {
		row := a.rows[name]
		want.decides = &row
	}
	t, ok := projection.TaughtBy(place, events)
	if f.watch != nil {
		if r := f.watch.Take(); !r.Empty() {
			a.proof.Record(name, place, r, t.Lesson != nil)
		}
	}
	if ok {
		a.teach(name, f.stream, &t)
	}
}

// teach keeps what follows from a record of a session of a machine beside the session.
func (a *audit) teach(name, sessionID string, t *projection.Taught) {
	if len(t.Erased) > 0 {
		a.erasedAudit[sessionID] = append(a.erasedAudit[sessionID], t.Erased...)
	}
	if t.Lesson != nil {
		a.read.PutLesson(scratch.Lesson{Place: t.Place, Text: string(t.Lesson), At: int64(t.At)})
	}
	if t.Counts {
		a.learned[name]++
		a.tallies[name] = a.tallies[name].With(t.Comparisons...)
	}
	if t.State != "" {
		a.read.PutExemplar(t.Place, sessionID, projection.Exemplar{Machine: name, State: t.State, Text: t.Exemplar})
	}
	if t.Retracted != "" {
		a.read.Retract(sessionID, t.Retracted)
	}
}

func sessionIDOf(events []byte) string {
	raw, err := session.DecodeRaw(events)
	if err != nil || len(raw) == 0 {
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
