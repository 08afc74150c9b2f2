package session_test

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// TestFirstRoundIsReadAgain: what is closed in the first round stands beside its opening in
// the log. Whoever reads it has the options with which the session was started, so that the
// same first record follows from them.
func TestFirstRoundIsReadAgain(t *testing.T) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"go":{"target":"b","when":"= data.n > 1"},"stay":"a"}},"b":{}}}`), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	programs := session.NewPrograms()
	p, err := programs.Of(m)
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(specialist.SessionID{1}, p, session.Options{Closed: []session.ClosedTransition{{TransitionName: "go", Error: "no such key: n"}}}, 7)
	log := session.AppendEvents(nil, specialist.RoundKey{Session: s.ID}, 1, session.OpeningEvents(s))
	f := &session.Folder{Programs: programs}
	if _, err := f.Add(log); err != nil {
		t.Fatal(err)
	}
	read := f.Session()
	if want, got := s.Options(), read.Options(); !reflect.DeepEqual(want, got) {
		t.Errorf("the options are %+v, read again they are %+v", want, got)
	}
	if again := session.AppendEvents(nil, specialist.RoundKey{Session: s.ID}, 1, session.OpeningEvents(read)); string(again) != string(log) {
		t.Errorf("the first record was\n%s\nread again it is\n%s", log, again)
	}
}

// TestUnreadIsNotDamaged: a log whose definition cannot be read now is not called damaged;
// one whose definition is not there is.
func TestUnreadIsNotDamaged(t *testing.T) {
	record := []byte(`[{"seq":1,"at":"2026-01-02T03:04:05.000Z","kind":"session_created","data":{"sessionId":"00000000-0000-4000-8000-000000000001","machineName":"m","machineDigest":"` + strings.Repeat("ab", 32) + `"}}]`)
	damaged := func(err error) bool {
		f := &session.Folder{Programs: session.NewPrograms(), Definition: func(string) ([]byte, error) { return nil, err }}
		_, failed := f.Add(record)
		_, is := errors.AsType[*session.CorruptError](session.Corrupt("the log", failed))
		return is || !errors.Is(session.Corrupt("the log", failed), err)
	}
	if damaged(io.ErrUnexpectedEOF) {
		t.Error("what cannot be read is called damaged")
	}
	if !damaged(&session.NotFoundError{What: "Definition", ID: "ab"}) {
		t.Error("what is not there is not called damaged")
	}
}
