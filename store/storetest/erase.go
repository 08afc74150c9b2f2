package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/archive"
	"github.com/dialai/dialai/store/internal/erase"
)

// An EraseStore is a store in which payloads are erased.
type EraseStore interface {
	session.Store
	Erasable(ctx context.Context, o erase.Options) (erase.Erased, error)
	Erase(ctx context.Context, o erase.Options) (erase.Erased, error)
	Archive(ctx context.Context, o archive.Options) (archive.Archived, error)
}

// An EraseMaker makes stores for one test.
type EraseMaker struct {
	// Open returns another store over the same data, as another process would see it, which stores records as JSON.
	Open func(t *testing.T) EraseStore
	// Found returns which of the words stand in any table of the store.
	Found func(t *testing.T, words []string) []string
	// Verify checks the store, and Rebuild makes anew what follows from its logs. They return what is wrong with it.
	Verify, Rebuild func(t *testing.T, s EraseStore) error
	// FoundIn returns which of the words stand in the bytes of an archive.
	FoundIn func(t *testing.T, words []string, path string) []string
	// File is that of an [ArchiveMaker].
	File func(t *testing.T, path string, check bool, use func(s session.Store)) error
	// Reading has another process read the store as it is now, until it is told to stop.
	Reading func(t *testing.T) (stop func())
}

// Said are words that stand in what Speak has stored, each in one place.
var Said = []string{"wordmeta", "wordsubject", "wordproposal", "wordreason", "wordruling", "wordnote", "wordaudit", "wordanswer", "wordagent", "wordfork"}

const talking = `{ "machineName": "talking", "initialState": "a", "goalState": "z", "subject": "= data.about",
	"input": { "properties": { "about": { "type": "string" } } },
	"states": { "a": { "prompt": "On?", "transitions": { "on": "a", "stop": "z" } }, "z": {} },
	"specialists": [ { "role": "proposer", "specialistId": "h", "isHuman": true }, { "role": "proposer", "specialistId": "p", "isHuman": true }, { "role": "arbiter", "specialistId": "x" } ] }`

// A Spoken is a session in which all of Said was said, a fork of it, and a third one, which lives.
type Spoken struct{ ID, Fork, Other specialist.SessionID }

// Speak makes one. Its session has ended, and the fork if forkEnded says so.
func Speak(t testing.TB, s session.Store, forkEnded bool) (is Spoken) {
	t.Helper()
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := runner.New(runner.Config{Store: s})
	ok(err)
	defer r.Close()
	m, err := machine.Parse("talking.json", []byte(talking), runner.Checks())
	ok(err)
	one, err := r.Start(ctx, m, runner.StartOptions{Meta: []byte(`{"about":"wordsubject of it","more":"wordmeta"}`)})
	ok(err)
	is.ID = one.ID
	_, err = r.Step(ctx, is.ID)
	ok(err)
	_, _, err = r.Propose(ctx, runner.Submission{SessionID: is.ID, RoundID: runner.CurrentRound, SpecialistID: "p", TransitionName: "on", Reasoning: "wordreason", MetaJSON: json.RawMessage(`{"x":"wordproposal"}`)})
	ok(err)
	rule := func(id specialist.SessionID, transition, why string) {
		t.Helper()
		_, err := r.Decide(ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: transition, Reasoning: why})
		ok(err)
	}
	rule(is.ID, "on", "wordruling")
	ok(s.AppendAgentLog(ctx, is.ID, 0, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{"text":"wordagent"}`)}))
	for range 2 {
		ok(s.AppendAudit(ctx, specialist.AuditEntry{AuditEntryID: "e", SessionID: is.ID.String(), SpecialistID: "p", Attempt: 1, RequestBody: "wordaudit", ResponseBody: "wordanswer"}))
	}
	ok(s.AppendAudit(ctx, specialist.AuditEntry{AuditEntryID: "o", RequestBody: "othersaudit"}))
	forked, err := r.Fork(ctx, is.ID, runner.Forking{})
	ok(err)
	is.Fork = forked.ID
	_, err = r.Step(ctx, is.Fork)
	ok(err)
	rule(is.ID, "stop", "wordfork")
	if forkEnded {
		rule(is.Fork, "stop", "wordfork")
	}
	now, err := r.Session(ctx, is.ID)
	ok(err)
	_, err = r.Retract(ctx, runner.Retracting{SessionID: is.ID, RoundID: now.Last().Key(is.ID).ID(), SpecialistID: "h", Note: "wordnote"})
	ok(err)
	another, err := r.Start(ctx, m, runner.StartOptions{Meta: []byte(`{"about":"something else"}`)})
	ok(err)
	is.Other = another.ID
	return is
}

// EraseOf returns options by which a session is erased.
func EraseOf(id specialist.SessionID) erase.Options {
	by := session.LocalActor("ann")
	return erase.Options{Session: id, Note: "asked to", Actor: &by, At: specialist.Time(1) << 41, Programs: session.NewPrograms(), Page: 1}
}

// ofSubject returns options by which all of a Spoken is erased.
func ofSubject() erase.Options {
	o := EraseOf(specialist.SessionID{})
	o.Subject = "wordsubject of it"
	return o
}

// RunErase runs the suite of erasing. make is called for every test.
func RunErase(t *testing.T, maker func(t *testing.T) EraseMaker) {
	for _, c := range []struct {
		name string
		test func(e *eraseBench)
	}{
		{"erased", testErased},
		{"refused", testEraseRefused},
		{"interrupted", testEraseInterrupted},
		{"still read", testEraseStillRead},
		{"by another process", testEraseHeld},
		{"changed meanwhile", testEraseAgain},
		{"archived", testEraseArchived},
		{"archived, and a fork was not", testEraseArchivedOrigin},
		{"archiving was interrupted", testEraseHalfArchived},
		{"other archives", testEraseOtherArchive},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := maker(t)
			c.test(&eraseBench{T: t, ctx: t.Context(), EraseMaker: m, maker: maker, store: m.Open(t)})
		})
	}
}

// each returns after how many steps one is interrupted the next time: after one, and after n with -short, as the race detector,
// to which all are alike, is run.
func each(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// An eraseBench is one test.
type eraseBench struct {
	*testing.T
	EraseMaker
	ctx   context.Context //nolint:containedctx // of the one test
	maker func(t *testing.T) EraseMaker
	store EraseStore
}

func (e *eraseBench) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// whole fails the test unless a store verifies.
func (e *eraseBench) whole(when string) {
	e.Helper()
	if err := e.Verify(e.T, e.store); err != nil {
		e.Errorf("%s: %v", when, err)
	}
}

// erased reports whether a session is, and fails the test if it cannot be read.
func (e *eraseBench) erased(id specialist.SessionID) bool {
	e.Helper()
	now, err := e.Open(e.T).Load(e.ctx, session.NewPrograms(), id)
	e.ok(err)
	return now.Erased()
}

// teaches returns what sessions have taught, and the log of one, as text.
func (e *eraseBench) teaches(id specialist.SessionID) string {
	e.Helper()
	var b strings.Builder
	book, err := e.store.Book(e.ctx, "talking")
	e.ok(err)
	fmt.Fprintf(&b, "%+v\n", book.Records("talking"))
	for l, err := range e.store.Lessons(e.ctx, 0) {
		e.ok(err)
		text, err := l.Encode()
		e.ok(err)
		fmt.Fprintf(&b, "%d %s\n", l.Seq, text)
	}
	for r, err := range e.store.Records(e.ctx, id, 0) {
		e.ok(err)
		fmt.Fprintf(&b, "%d %s %x\n", r.First, r.Events, r.Hash)
	}
	return b.String()
}

// testErased: what was said is in no table; what happened and what it taught stays, and is verified and rebuilt; other
// sessions are as they were.
func testErased(e *eraseBench) {
	is := Speak(e.T, e.store, true)
	if found := e.Found(e.T, append([]string{"othersaudit"}, Said...)); len(found) != len(Said)+1 {
		e.Fatalf("only these are there before: %v", found)
	}
	second := e.Open(e.T)
	_, err := second.Load(e.ctx, session.NewPrograms(), is.ID) // has it in its cache
	e.ok(err)
	before := e.teaches(is.Other)
	may, err := e.store.Erasable(e.ctx, EraseOf(is.ID))
	e.ok(err)
	if e.erased(is.ID) {
		e.Error("looking has erased it")
	}
	done, err := e.store.Erase(e.ctx, EraseOf(is.ID))
	e.ok(err)
	if fmt.Sprint(may) != fmt.Sprint(done) || len(done.Sessions) != 2 || done.Sessions[0].SessionID != is.Fork.String() || done.Sessions[0].ForkedFrom != is.ID.String() ||
		done.Sessions[1].Audit != 2 || done.Sessions[1].AgentLog != 1 || done.Sessions[1].Records < 3 || len(done.Origins) != 0 {
		e.Errorf("erased: %+v, would: %+v", done, may)
	}
	nothing := func(when string) {
		e.Helper()
		e.whole(when)
		if found := e.Found(e.T, Said); len(found) > 0 {
			e.Errorf("%s: still there: %v", when, found)
		}
		if now := e.teaches(is.Other); now != before {
			e.Errorf("%s: what was taught, or another session, is\n%s\nand was\n%s", when, now, before)
		}
	}
	nothing("erased")
	if found := e.Found(e.T, []string{"othersaudit"}); len(found) != 1 {
		e.Error("the audit of others is gone")
	}
	for _, s := range []EraseStore{e.store, second} {
		r, err := runner.New(runner.Config{Store: s})
		e.ok(err)
		for _, one := range []specialist.SessionID{is.ID, is.Fork} {
			now, err := r.Session(e.ctx, one)
			if e.ok(err); now.Status != session.Completed || !now.Erased() || !strings.HasPrefix(now.Subject(), "[erased ") {
				e.Errorf("session is %v, subject %q", now.Status, now.Subject())
			}
			if _, err := r.Fork(e.ctx, one, runner.Forking{At: 2}); !errors.Is(err, runner.ErrNotRunning) {
				e.Errorf("forked: %v", err)
			}
		}
		e.ok(r.Close())
		exemplars, err := s.Exemplars(e.ctx, "talking", "", 0)
		if e.ok(err); len(exemplars) != 0 {
			e.Errorf("exemplars: %v", exemplars)
		}
		for entry, err := range s.AgentLog(e.ctx, is.ID, 0) {
			if e.ok(err); !session.IsErased(entry.Data) {
				e.Errorf("an agent has logged %s", entry.Data)
			}
		}
	}
	again, err := e.store.Erase(e.ctx, EraseOf(is.ID))
	if e.ok(err); len(again.Sessions) != 0 {
		e.Errorf("erased again: %+v", again)
	}
	e.ok(e.Rebuild(e.T, e.store))
	nothing("rebuilt")
}

// testEraseRefused: nothing is changed where a fork lives, and of what is not there.
func testEraseRefused(e *eraseBench) {
	is := Speak(e.T, e.store, false)
	before := e.teaches(is.ID)
	none := ofSubject()
	none.Subject = "wordsubject" // not the whole one
	for what, c := range map[string]struct {
		o     erase.Options
		wrong func(err error) bool
	}{
		"a fork lives": {EraseOf(is.ID), func(err error) bool {
			live, ok := errors.AsType[*erase.LiveError](err)
			return ok && live.ID == is.Fork.String() && live.ForkedFrom == is.ID.String()
		}},
		"it lives itself": {EraseOf(is.Other), func(err error) bool {
			live, ok := errors.AsType[*erase.LiveError](err)
			return ok && live.ID == is.Other.String() && live.ForkedFrom == ""
		}},
		"unknown":         {EraseOf(specialist.SessionID{1}), func(err error) bool { return errors.Is(err, session.ErrNotFound) }},
		"no such subject": {none, func(err error) bool { return errors.Is(err, session.ErrNotFound) }},
	} {
		_, dry := e.store.Erasable(e.ctx, c.o)
		_, wet := e.store.Erase(e.ctx, c.o)
		if dry == nil || wet == nil || !c.wrong(dry) || !c.wrong(wet) {
			e.Errorf("%s: %v, %v", what, dry, wet)
		}
		if now := e.teaches(is.ID); now != before || len(e.Found(e.T, Said)) != len(Said) {
			e.Errorf("%s: it is changed: %s", what, now)
		}
	}
	e.whole("refused")
}

// testEraseInterrupted: ended after any step, each session is erased or as it was, and run again by the
// subject, which goes on the way, by another process, it finishes.
func testEraseInterrupted(e *eraseBench) {
	ended := errors.New("ended")
	for stop := 1; ; stop += each(3) {
		if stop > 1 {
			e.EraseMaker = e.maker(e.T)
			e.store = e.Open(e.T)
		}
		is := Speak(e.T, e.store, true)
		logs := map[specialist.SessionID]string{is.ID: e.teaches(is.ID), is.Fork: e.teaches(is.Fork)}
		steps := 0
		ending := ofSubject()
		ending.After = func(string) error {
			if steps++; steps == stop {
				return ended
			}
			return nil
		}
		_, err := e.store.Erase(e.ctx, ending)
		if steps < stop {
			if e.ok(err); stop < 5 {
				e.Errorf("there were only %d steps", steps)
			}
			return
		}
		if !errors.Is(err, ended) {
			e.Errorf("step %d: %v", stop, err)
		}
		e.whole(fmt.Sprintf("step %d", stop))
		for id, log := range logs {
			if now := e.teaches(id); e.erased(id) == (now == log) {
				e.Errorf("step %d: session %s is erased: %t, and its log is\n%s", stop, id, e.erased(id), now)
			}
		}
		e.store = e.Open(e.T)
		_, err = e.store.Erase(e.ctx, ofSubject())
		e.ok(err)
		e.whole(fmt.Sprintf("step %d, run again", stop))
		if found := e.Found(e.T, Said); len(found) > 0 || !e.erased(is.ID) || !e.erased(is.Fork) {
			e.Errorf("step %d, run again: still there: %v", stop, found)
		}
		if _, err := e.store.Erase(e.ctx, ofSubject()); !errors.Is(err, session.ErrNotFound) {
			e.Errorf("step %d: it is not done: %v", stop, err)
		}
	}
}

// testEraseStillRead: where another process reads what was there all the while, the sessions are erased, whoever
// erases is told that it is not done, and run again it is.
func testEraseStillRead(e *eraseBench) {
	is := Speak(e.T, e.store, true)
	stop := e.Reading(e.T)
	done, err := e.store.Erase(e.ctx, ofSubject())
	if !errors.Is(err, erase.ErrStillRead) || len(done.Sessions) != 2 || !e.erased(is.ID) {
		e.Errorf("while it is read: %+v, %v", done, err)
	}
	stop()
	again, err := e.store.Erase(e.ctx, ofSubject()) // the subject is gone, and that is known
	if e.ok(err); len(again.Sessions) != 0 {
		e.Errorf("run again: %+v", again)
	}
	if _, err := e.store.Erase(e.ctx, ofSubject()); !errors.Is(err, session.ErrNotFound) {
		e.Errorf("it is not done: %v", err)
	}
}

// testEraseHeld: one process at a time erases.
func testEraseHeld(e *eraseBench) {
	is := Speak(e.T, e.store, true)
	second := e.Open(e.T)
	asked := 0
	o := EraseOf(is.ID)
	o.After = func(string) error {
		if asked++; asked == 1 {
			if _, err := second.Erase(e.ctx, EraseOf(is.ID)); !errors.Is(err, erase.ErrArchiving) {
				e.Errorf("while another process erases: %v", err)
			}
		}
		return nil
	}
	_, err := e.store.Erase(e.ctx, o)
	if e.ok(err); asked == 0 {
		e.Error("nobody was asked")
	}
	_, err = second.Erase(e.ctx, EraseOf(is.ID))
	e.ok(err)
}

// testEraseAgain: what is said in a session after it was erased is erased by another run, and what was left of the first
// one stays proven.
func testEraseAgain(e *eraseBench) {
	is := Speak(e.T, e.store, true)
	_, err := e.store.Erase(e.ctx, ofSubject())
	e.ok(err)
	e.ok(e.store.AppendAudit(e.ctx, specialist.AuditEntry{AuditEntryID: "l", SessionID: is.ID.String(), SpecialistID: "p", Attempt: 1, RequestBody: "wordaudit"}))
	e.ok(e.store.AppendAgentLog(e.ctx, is.ID, 1, session.AgentEvent{At: 2, Kind: "note", Data: []byte(`{"text":"wordagent"}`)}))
	e.whole("said later")
	done, err := e.store.Erase(e.ctx, EraseOf(is.ID))
	if e.ok(err); len(done.Sessions) != 1 || done.Sessions[0].Audit != 1 || done.Sessions[0].AgentLog != 1 || done.Sessions[0].Records != 0 {
		e.Errorf("erased again: %+v", done)
	}
	e.whole("erased again")
	if found := e.Found(e.T, Said); len(found) > 0 {
		e.Errorf("still there: %v", found)
	}
}
