package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/archive"
	"github.com/dialai/dialai/store/internal/erase"
)

// Erasing in archives, as part of the suite of erasing.

// archived has all be archived that has completed, to a new file, after each step of which after is called.
func (e *eraseBench) archived(is Spoken, after func(step string) error) (file string, err error) {
	e.Helper()
	file = filepath.Join(e.TempDir(), "archive.db")
	e.ok(e.store.AppendAgentLog(e.ctx, is.Other, 0, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{"text":"on it"}`)})) // the newest stays
	return file, e.archive(file, after)
}

func (e *eraseBench) archive(file string, after func(step string) error) error {
	e.Helper()
	_, err := e.store.Archive(e.ctx, archive.Options{Before: specialist.Time(1) << 50, To: file, At: 7, Programs: session.NewPrograms(), After: after})
	return err
}

// lookIn fails the test unless an archive verifies, and returns whether sessions were erased in it, and the records that it has of
// them.
func (e *eraseBench) lookIn(when, file string, ids ...specialist.SessionID) (erased []bool, logs []string) {
	e.Helper()
	if err := e.File(e.T, file, true, func(s session.Store) {
		for _, id := range ids {
			var b bytes.Buffer
			for r, err := range s.Records(e.ctx, id, 0) {
				e.ok(err)
				fmt.Fprintf(&b, "%d %s %x\n", r.First, r.Events, r.Hash)
			}
			now, err := s.Load(e.ctx, session.NewPrograms(), id)
			e.ok(err)
			erased, logs = append(erased, now.Erased()), append(logs, b.String())
		}
	}); err != nil {
		e.Errorf("%s: the archive: %v", when, err)
	}
	return erased, logs
}

// none fails the test if something that was said is left in the store, or in the archive, before and after what follows from
// logs was made anew, or if either is damaged.
func (e *eraseBench) none(when, file string) {
	e.Helper()
	for range 2 {
		e.whole(when)
		e.lookIn(when, file)
		if found := append(e.Found(e.T, Said), e.FoundIn(e.T, Said, file)...); len(found) > 0 {
			e.Errorf("%s: still there: %v", when, found)
		}
		e.ok(e.Rebuild(e.T, e.store))
		when += ", rebuilt"
	}
}

func inArchive(o erase.Options, file string) erase.Options { o.Archive = file; return o }

// testEraseArchived: sessions are erased in the archive, and what the store has kept of them, by the subject and by the id. Ended after
// any step, each is erased or as it was, and another run finishes.
func testEraseArchived(e *eraseBench) {
	e.erasesArchived(ofSubject)
	e.erasesArchived(nil)
}

// erasesArchived erases by options, nil is by the id.
func (e *eraseBench) erasesArchived(by func() erase.Options) {
	ended := errors.New("ended")
	for stop := 1; ; stop += each(5) {
		if stop > 1 || by == nil {
			e.EraseMaker = e.maker(e.T)
			e.store = e.Open(e.T)
		}
		is := Speak(e.T, e.store, true)
		file, err := e.archived(is, nil)
		e.ok(err)
		both := []specialist.SessionID{is.ID, is.Fork}
		_, logs := e.lookIn("archived", file, both...)
		before := e.teaches(is.Other)
		if len(e.FoundIn(e.T, Said, file)) < 5 || !slices.Equal(e.Found(e.T, []string{"wordaudit", "othersaudit"}), []string{"wordaudit", "othersaudit"}) {
			e.Fatalf("only these are in the archive: %v, and in the store: %v", e.FoundIn(e.T, Said, file), e.Found(e.T, Said))
		}
		if _, err := e.store.Erase(e.ctx, EraseOf(is.ID)); !errors.As(err, new(*session.ArchivedError)) {
			e.Errorf("erased without the archive: %v", err)
		}
		o := inArchive(EraseOf(is.ID), file)
		if by != nil {
			o = inArchive(by(), file)
		}
		may, err := e.store.Erasable(e.ctx, o)
		e.ok(err)
		steps, ending := 0, o
		ending.After = func(string) error {
			if steps++; steps == stop {
				return ended
			}
			return nil
		}
		done, err := e.store.Erase(e.ctx, ending)
		if steps >= stop {
			if !errors.Is(err, ended) {
				e.Errorf("step %d: %v", stop, err)
			}
			when := fmt.Sprintf("step %d", stop)
			e.whole(when)
			erased, now := e.lookIn(when, file, both...)
			for i := range now {
				if erased[i] == (now[i] == logs[i]) {
					e.Errorf("step %d: session %s is erased: %t, and its log is\n%s", stop, both[i], erased[i], now[i])
				}
			}
			e.store = e.Open(e.T)
			_, err = e.store.Erase(e.ctx, o)
		} else if fmt.Sprint(may) != fmt.Sprint(done) || len(done.Sessions) != 2 || done.Sessions[0].SessionID != is.Fork.String() || done.Sessions[1].Audit != 2 ||
			done.Sessions[1].AgentLog != 1 || done.Sessions[1].Records < 3 || done.Sessions[1].Archive != file || len(done.Archives) > 0 {
			e.Errorf("erased: %+v, would: %+v", done, may)
		}
		e.ok(err)
		if erased, _ := e.lookIn("erased", file, both...); slices.Contains(erased, false) {
			e.Errorf("step %d: erased are %v", stop, erased)
		}
		e.none(fmt.Sprintf("step %d, run again", stop), file)
		if now := e.teaches(is.Other); now != before {
			e.Errorf("step %d: what was taught, or another session, is\n%s\nand was\n%s", stop, now, before)
		}
		if len(e.Found(e.T, []string{"othersaudit"})) != 1 {
			e.Error("the audit of others is gone")
		}
		if again, err := e.store.Erase(e.ctx, inArchive(EraseOf(is.ID), file)); err != nil || len(again.Sessions) != 0 {
			e.Errorf("erased again: %+v, %v", again, err)
		}
		if _, err := e.store.Erase(e.ctx, inArchive(ofSubject(), file)); !errors.Is(err, session.ErrNotFound) {
			e.Errorf("step %d: it is not done: %v", stop, err)
		}
		if steps < stop {
			if stop < 7 {
				e.Errorf("there were only %d steps", steps)
			}
			e.goesOn(is.Other, file)
			return
		}
	}
}

// goesOn fails the test unless another session is archived to a file in which something was erased.
func (e *eraseBench) goesOn(id specialist.SessionID, file string) {
	e.Helper()
	r, err := runner.New(runner.Config{Store: e.store})
	e.ok(err)
	_, err = r.Step(e.ctx, id)
	e.ok(err)
	_, err = r.Decide(e.ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "stop", Reasoning: "enough"})
	e.ok(err)
	e.ok(r.Close())
	next := Speak(e.T, e.store, true)
	e.ok(e.store.AppendAgentLog(e.ctx, next.Other, 0, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{"text":"on it"}`)}))
	e.ok(e.archive(file, nil))
	e.lookIn("more was archived", file, id, next.ID)
	e.whole("more was archived")
}

// testEraseArchivedOrigin: a fork that is in the store is erased with the session in the archive that it was forked from, unless it
// lives: then nothing is changed.
func testEraseArchivedOrigin(e *eraseBench) {
	is := Speak(e.T, e.store, false)
	file, err := e.archived(is, nil)
	e.ok(err)
	_, logs := e.lookIn("archived", file, is.ID)
	found := e.Found(e.T, Said)
	_, err = e.store.Erase(e.ctx, inArchive(ofSubject(), file))
	if live, ok := errors.AsType[*erase.LiveError](err); !ok || live.ID != is.Fork.String() {
		e.Errorf("a fork lives: %v", err)
	}
	if _, now := e.lookIn("refused", file, is.ID); now[0] != logs[0] || !slices.Equal(e.Found(e.T, Said), found) {
		e.Error("it was refused, and something is erased")
	}
	r, err := runner.New(runner.Config{Store: e.store})
	e.ok(err)
	_, err = r.Stop(e.ctx, is.Fork, runner.Stopping{Actor: session.LocalActor("ann"), Note: "wordfork"})
	e.ok(err)
	e.ok(r.Close())
	done, err := e.store.Erase(e.ctx, inArchive(EraseOf(is.ID), file))
	if e.ok(err); len(done.Sessions) != 2 || done.Sessions[0].SessionID != is.Fork.String() || done.Sessions[0].Archive != "" || done.Sessions[1].Archive != file {
		e.Errorf("erased: %+v", done)
	}
	if !e.erased(is.Fork) {
		e.Error("the fork is not erased")
	}
	e.none("erased", file)
}

// testEraseHalfArchived: what was copied to the archive of a session that the store still has is removed there, and archived anew
// without payloads.
func testEraseHalfArchived(e *eraseBench) {
	ended := errors.New("ended")
	for _, at := range []string{"copied", "verified"} {
		e.EraseMaker = e.maker(e.T)
		e.store = e.Open(e.T)
		is := Speak(e.T, e.store, true)
		file, err := e.archived(is, func(step string) error {
			if step == at {
				return ended
			}
			return nil
		})
		if !errors.Is(err, ended) || len(e.FoundIn(e.T, Said, file)) < 5 {
			e.Fatalf("%s: %v, in the archive: %v", at, err, e.FoundIn(e.T, Said, file))
		}
		done, err := e.store.Erase(e.ctx, inArchive(ofSubject(), file))
		if e.ok(err); len(done.Sessions) != 2 || done.Sessions[1].Archive != "" {
			e.Errorf("%s: erased: %+v", at, done)
		}
		e.none(at+", erased", file)
		r, err := runner.New(runner.Config{Store: e.store})
		e.ok(err)
		_, err = r.Step(e.ctx, is.Other) // so that it has the newest record
		e.ok(err)
		e.ok(r.Close())
		e.ok(e.archive(file, nil))
		if erased, _ := e.lookIn("archived anew", file, is.ID, is.Fork); slices.Contains(erased, false) {
			e.Errorf("%s: erased are %v", at, erased)
		}
		e.none(at+", archived anew", file)
	}
}

// testEraseOtherArchive: nothing is erased in what is no archive of the store, and no file is made.
func testEraseOtherArchive(e *eraseBench) {
	is := Speak(e.T, e.store, true)
	file, err := e.archived(is, nil)
	e.ok(err)
	missing := filepath.Join(e.TempDir(), "missing.db")
	if _, err := e.store.Erase(e.ctx, inArchive(EraseOf(is.ID), missing)); !errors.Is(err, os.ErrNotExist) {
		e.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		e.Errorf("it is made: %v", err)
	}
	other := e.maker(e.T).Open(e.T)
	Speak(e.T, other, true)
	if _, err := other.Erase(e.ctx, inArchive(ofSubject(), file)); !errors.Is(err, archive.ErrNone) {
		e.Errorf("the archive of another store: %v", err)
	}
	if len(e.FoundIn(e.T, Said, file)) < 5 {
		e.Error("something is erased")
	}
}
