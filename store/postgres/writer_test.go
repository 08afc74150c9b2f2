package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/postgres"
)

const looping = `{"machineName": "looping", "initialState": "open", "goalState": "done",
	"states": {"open": {"transitions": {"again": "open", "finish": "done"}}, "done": {}},
	"specialists": [{"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"},
		{"role": "proposer", "specialistId": "human", "isHuman": true},
		{"role": "arbiter", "specialistId": "arbiter", "strategyFnName": "firstProposal"}]}`

func parse(t testing.TB) *machine.Machine {
	t.Helper()
	m, err := machine.Parse("looping.json", []byte(looping), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A writer appends to the log of a session of its own, past the runner, so that it sees what the store
// says of each commit.
type writer struct {
	store session.Store
	last  *session.Session
	fold  *session.Folder
	n     int
}

// begin starts a session, through the store that is given.
func begin(t testing.TB, m *machine.Machine, s session.Store) *writer {
	t.Helper()
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	started, err := r.Start(t.Context(), m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return read(t, m, s, started.ID)
}

// read returns a writer of a session as it is stored.
func read(t testing.TB, m *machine.Machine, s session.Store, id specialist.SessionID) *writer {
	t.Helper()
	w, err := writerOf(t.Context(), m, s, id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func writerOf(ctx context.Context, m *machine.Machine, s session.Store, id specialist.SessionID) (*writer, error) {
	w := &writer{store: s, fold: &session.Folder{Programs: session.NewPrograms(), Definition: func(string) ([]byte, error) { return m.JSON(), nil }}}
	for r, err := range s.Records(ctx, id, 0) {
		if err == nil {
			_, err = w.fold.Add(r.Events)
		}
		if err != nil {
			return nil, err
		}
		w.last = w.fold.Session()
		w.last.Head = &r.Hash
	}
	return w, nil
}

// change returns the change that comes next.
func (w *writer) change(reason string) (*session.Change, error) {
	events := []session.Event{{At: w.last.UpdatedAt + 1, Data: &session.Ended{Status: session.Stopped, Code: "test", Reason: reason}}}
	if _, err := w.fold.Add(session.AppendEvents(nil, w.last.Key(), w.last.Sequence+1, events)); err != nil {
		return nil, err
	}
	return &session.Change{Before: w.last, After: w.fold.Session(), First: w.last.Sequence + 1, Events: events}, nil
}

// commit commits a change and goes on from there.
func (w *writer) commit(ctx context.Context) error {
	w.n++
	c, err := w.change(fmt.Sprint("for the ", w.n, "th time"))
	if err == nil {
		if err = w.store.Commit(ctx, c); err == nil {
			w.last = c.After
		}
	}
	return err
}

// ask commits that somebody is asked, and nothing else.
func (w *writer) ask(ctx context.Context, index int32) error {
	events := []session.Event{{At: w.last.UpdatedAt + 1, Data: &session.Asked{Asks: []session.Ask{{SpecialistID: "human", Index: index, Role: machine.Proposer, Source: specialist.Function}}}}}
	if _, err := w.fold.Add(session.AppendEvents(nil, w.last.Key(), w.last.Sequence+1, events)); err != nil {
		return err
	}
	return w.store.Commit(ctx, &session.Change{Before: w.last, After: w.fold.Session(), First: w.last.Sequence + 1, Events: events})
}

// check fails unless the session is stored as the writer left it, record by record.
func (w *writer) check(t testing.TB, s *postgres.Store) {
	t.Helper()
	is, err := s.Load(t.Context(), session.NewPrograms(), w.last.ID)
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for _, err := range s.Records(t.Context(), w.last.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	if is.Sequence != w.last.Sequence || *is.Head != *w.last.Head || records != w.n+1 {
		t.Errorf("session %s is at event %d with %d records, acknowledged were %d and %d", w.last.ID, is.Sequence, records, w.last.Sequence, w.n+1)
	}
}

// ask returns the only value of a query.
func ask[T any](t testing.TB, address, query string, args ...any) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SET search_path=dialai"); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// connect opens a connection until the test ends.
func connect(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// exec runs a statement.
func exec(t testing.TB, address, statement string) {
	t.Helper()
	if _, err := connect(t, address).Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
