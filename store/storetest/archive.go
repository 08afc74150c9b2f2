package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/archive"
)

// An ArchiveStore is a store from which sessions are moved to a file.
type ArchiveStore interface {
	session.Store
	Archivable(ctx context.Context, o archive.Options) (archive.Archived, error)
	Archive(ctx context.Context, o archive.Options) (archive.Archived, error)
}

// An ArchiveMaker makes stores for one test.
type ArchiveMaker struct {
	// Open returns another store over the same data, as another process would see it.
	Open func(t *testing.T) ArchiveStore
	// Verify checks the store, and Rebuild makes anew what follows from its logs. They return what is wrong with it.
	Verify, Rebuild func(t *testing.T, s ArchiveStore) error
	// Exec changes the store behind its back.
	Exec func(t *testing.T, query string)
	// File opens an archive, has it used, and closes it; if check is set, it checks it before that.
	File func(t *testing.T, path string, check bool, use func(s session.Store)) error
}

// ArchiveFile returns what an [ArchiveMaker] has as File: a file that is not there yet has nothing. open returns a store with what checks it
// and what closes it.
func ArchiveFile(open func(t *testing.T, path string) (s session.Store, check, end func() error)) func(t *testing.T, path string, check bool, use func(s session.Store)) error {
	return func(t *testing.T, path string, checked bool, use func(s session.Store)) (err error) {
		t.Helper()
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		s, check, end := open(t, path)
		if use(s); checked {
			err = check()
		}
		return errors.Join(err, end())
	}
}

// RunArchive runs the suite of archiving. make is called for every test.
func RunArchive(t *testing.T, maker func(t *testing.T) ArchiveMaker) {
	for _, c := range []struct {
		name string
		test func(a *archiveBench)
	}{
		{"moved", testMoved},
		{"interrupted", testArchiveInterrupted},
		{"changed meanwhile", testArchiveChanged},
		{"refused", testArchiveRefused},
		{"lost", testArchiveLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &archiveBench{T: t, ctx: t.Context(), maker: maker}
			a.begin()
			c.test(a)
		})
	}
}

// An archiveBench is one test: a store with sessions that have ended, of which humans have taught something in
// each and agents have logged about two, and one that lives.
type archiveBench struct {
	*testing.T
	ArchiveMaker
	ctx   context.Context //nolint:containedctx // of the one test
	maker func(t *testing.T) ArchiveMaker
	store ArchiveStore
	ids   []specialist.SessionID // the second one lives
	to    string                 // path of the archive
}

func (a *archiveBench) ok(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *archiveBench) begin() {
	a.Helper()
	a.ArchiveMaker = a.maker(a.T)
	a.store, a.ids, a.to = a.Open(a.T), nil, filepath.Join(a.TempDir(), "archive.db")
	for i := range 6 {
		id := a.start()
		if a.ids = append(a.ids, id); i < 2 {
			a.logged(id, 0)
		}
		a.rule(id, "on")
		if i != 1 {
			a.rule(id, "stop")
		}
	}
}

// start starts a session, and rule has a human rule on it.
func (a *archiveBench) start() (id specialist.SessionID) {
	a.Helper()
	a.with(func(r *runner.Runner) {
		m, err := machine.Parse("talking.json", []byte(talking), runner.Checks())
		a.ok(err)
		one, err := r.Start(a.ctx, m, runner.StartOptions{Meta: []byte(`{"about":"it"}`)})
		a.ok(err)
		_, err = r.Step(a.ctx, one.ID)
		a.ok(err)
		id = one.ID
	})
	return id
}

func (a *archiveBench) rule(id specialist.SessionID, transition string) {
	a.Helper()
	a.with(func(r *runner.Runner) {
		_, _, err := r.Propose(a.ctx, runner.Submission{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "p", TransitionName: "on", Reasoning: "so"})
		a.ok(err)
		_, err = r.Decide(a.ctx, runner.Ruling{SessionID: id, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: transition, Reasoning: "because"})
		a.ok(err)
	})
}

// logged has an agent log something about a session.
func (a *archiveBench) logged(id specialist.SessionID, after int64) {
	a.Helper()
	a.ok(a.store.AppendAgentLog(a.ctx, id, after, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{"text":"on it"}`)}))
}

func (a *archiveBench) with(f func(r *runner.Runner)) {
	a.Helper()
	r, err := runner.New(runner.Config{Store: a.store})
	a.ok(err)
	f(r)
	a.ok(r.Close())
}

// options say that all that has ended is archived.
func (a *archiveBench) options() archive.Options {
	return archive.Options{Before: specialist.Time(1) << 50, To: a.to, At: 7, Programs: session.NewPrograms(), Batch: 2}
}

// whole fails the test unless the store and the archive, if there is one, verify.
func (a *archiveBench) whole(when string) {
	a.Helper()
	if err := a.Verify(a.T, a.store); err != nil {
		a.Errorf("%s: %v", when, err)
	}
}

// logs returns the log of each session, from the store or the archive, and says in how many it is. It fails the test if
// one is another in the archive than in the store, or, unless a run was interrupted, the archive does not verify.
func (a *archiveBench) logs(when string) (texts map[specialist.SessionID]string, in map[specialist.SessionID]int) {
	a.Helper()
	texts, in = map[specialist.SessionID]string{}, map[specialist.SessionID]int{}
	read := func(s session.Store) {
		for _, id := range a.ids {
			var b strings.Builder
			var failed error
			for r, err := range s.Records(a.ctx, id, 0) {
				if failed = err; err != nil {
					break
				}
				fmt.Fprintf(&b, "%d %s %x\n", r.First, r.Events, r.Hash)
			}
			if errors.Is(failed, session.ErrNotFound) {
				continue
			}
			a.ok(failed)
			for e, err := range s.AgentLog(a.ctx, id, 0) {
				a.ok(err)
				fmt.Fprintf(&b, "%d %s %x\n", e.Seq, e.Data, e.Hash)
			}
			if texts[id] != "" && texts[id] != b.String() {
				a.Errorf("%s: session %s is\n%s\nin the archive, and\n%s", when, id, b.String(), texts[id])
			}
			texts[id] = b.String()
			in[id]++
		}
	}
	read(a.store)
	a.ok(a.File(a.T, a.to, !strings.HasPrefix(when, "interrupted"), read))
	return texts, in
}

// taught returns what was taught.
func (a *archiveBench) taught() string {
	a.Helper()
	var b strings.Builder
	s := a.Open(a.T)
	book, err := s.Book(a.ctx, "talking")
	a.ok(err)
	fmt.Fprintf(&b, "%+v\n", book.Records("talking"))
	exemplars, err := s.Exemplars(a.ctx, "talking", "", 0)
	a.ok(err)
	fmt.Fprintf(&b, "%+v\n", exemplars)
	for l, err := range s.Lessons(a.ctx, 0) {
		a.ok(err)
		text, err := l.Encode()
		a.ok(err)
		fmt.Fprintf(&b, "%d at %d: %s\n", l.Seq, l.At, text)
	}
	return b.String()
}

// testMoved: sessions that have ended are in the archive as they were, and nowhere else; what they taught stays, is
// verified and rebuilt as before; their ids stay taken.
func testMoved(a *archiveBench) {
	before, _ := a.logs("before")
	taught := a.taught()
	if !strings.Contains(taught, "because") {
		a.Fatalf("humans taught nothing: %s", taught)
	}
	second := a.Open(a.T)
	_, err := second.Load(a.ctx, session.NewPrograms(), a.ids[0]) // has it in its cache
	a.ok(err)
	var told int64
	o := a.options()
	o.Deleted = func(done, _ int64) { told = done }
	may, err := a.store.Archivable(a.ctx, o)
	a.ok(err)
	done, err := a.store.Archive(a.ctx, o)
	a.ok(err)
	if done.Sessions < 3 || done.Kept < 1 || done.Sessions+done.Kept != 5 || done.Sessions != may.Sessions || done.Records != may.Records || done.Bytes != may.Bytes || done.Kept != may.Kept || told != done.Sessions || done.Archive != a.to {
		a.Errorf("archived: %+v, of %+v, told %d", done, may, told)
	}
	for _, s := range []ArchiveStore{a.store, second} {
		_, err := s.Load(a.ctx, session.NewPrograms(), a.ids[0])
		if at, ok := errors.AsType[*session.ArchivedError](err); !ok || at.Archive != a.to || at.MachineName != "talking" || !errors.Is(err, session.ErrNotFound) {
			a.Errorf("an archived session = %v", err)
		}
	}
	a.with(func(r *runner.Runner) {
		m, err := machine.Parse("talking.json", []byte(talking), runner.Checks())
		a.ok(err)
		if _, err := r.Start(a.ctx, m, runner.StartOptions{ID: a.ids[0]}); !errors.Is(err, session.ErrExists) {
			a.Errorf("starting an archived session = %v", err)
		}
	})
	for _, when := range []string{"archived", "rebuilt"} {
		a.whole(when)
		after, in := a.logs(when)
		for _, id := range a.ids {
			if after[id] != before[id] || in[id] != 1 {
				a.Errorf("%s: session %s is in %d places, and is\n%s\nand was\n%s", when, id, in[id], after[id], before[id])
			}
		}
		if now := a.taught(); now != taught {
			a.Errorf("%s: what was taught is\n%s\nand was\n%s", when, now, taught)
		}
		a.ok(a.Rebuild(a.T, a.store))
	}
	a.rule(a.ids[1], "stop") // the store goes on
	a.rule(a.start(), "stop")
	again, err := a.store.Archive(a.ctx, a.options())
	if a.ok(err); again.Sessions < 1 || again.Archive != a.to {
		a.Errorf("archived again: %+v", again)
	}
	a.whole("archived again")
	if _, in := a.logs("archived again"); in[a.ids[1]] != 1 || in[a.ids[0]] != 1 {
		a.Errorf("archived again: sessions are in %v", in)
	}
}

// testArchiveInterrupted: ended after any step, each session is in the store, or the archive, as it was, and run again by
// another process, it finishes.
func testArchiveInterrupted(a *archiveBench) {
	ended := errors.New("ended")
	for stop := 1; ; stop += each(3) {
		if stop > 1 {
			a.begin()
		}
		before, _ := a.logs("before")
		taught := a.taught()
		left, at := stop, ""
		o := a.options()
		o.After = func(step string) error {
			if left--; left == 0 {
				at = step
				return ended
			}
			return nil
		}
		if _, err := a.store.Archive(a.ctx, o); at != "" && !errors.Is(err, ended) || at == "" && err != nil {
			a.Fatalf("interrupted at %s: %v", at, err)
		}
		for range 2 {
			when := fmt.Sprintf("interrupted at %s, %d", at, stop)
			a.whole(when)
			after, _ := a.logs(when)
			for id, text := range before {
				if after[id] != text {
					a.Errorf("%s: session %s is\n%s\nand was\n%s", when, id, after[id], text)
				}
			}
			if now := a.taught(); now != taught {
				a.Errorf("%s: what was taught is\n%s\nand was\n%s", when, now, taught)
			}
			a.store = a.Open(a.T)
			_, err := a.store.Archive(a.ctx, a.options())
			a.ok(err)
		}
		if _, in := a.logs("run again"); in[a.ids[0]] != 1 || in[a.ids[1]] != 1 {
			a.Errorf("interrupted at %s, %d, and run again: sessions are in %v", at, stop, in)
		}
		if at == "" {
			if stop < 8 {
				a.Errorf("it has only %d steps", stop-1)
			}
			return
		}
	}
}

// testArchiveChanged: a session stays that somebody changes after it was copied, or about which an agent logs something, as it is
// then, and goes with the next run.
func testArchiveChanged(a *archiveBench) {
	o := a.options()
	var changed map[specialist.SessionID]string
	o.After = func(step string) error {
		if step != "verified" {
			return nil
		}
		a.with(func(r *runner.Runner) {
			now, err := r.Session(a.ctx, a.ids[0])
			a.ok(err)
			_, err = r.Retract(a.ctx, runner.Retracting{SessionID: a.ids[0], RoundID: now.Last().Key(now.ID).ID(), SpecialistID: "h", Note: "no"})
			a.ok(err)
		})
		a.logged(a.ids[2], 0)
		a.logged(a.ids[1], 1) // has the newest entry
		a.rule(a.ids[1], "on")
		changed = map[specialist.SessionID]string{}
		for _, id := range []specialist.SessionID{a.ids[0], a.ids[2]} {
			for r, err := range a.store.Records(a.ctx, id, 0) {
				a.ok(err)
				changed[id] += fmt.Sprintf("%d %s %x\n", r.First, r.Events, r.Hash)
			}
		}
		return nil
	}
	_, err := a.store.Archive(a.ctx, o)
	a.ok(err)
	for id, text := range changed {
		now, err := a.store.Load(a.ctx, session.NewPrograms(), id)
		if err != nil || !strings.HasPrefix(text, "1 ") || now.Sequence == 0 {
			a.Errorf("session %s was changed meanwhile, and is %v", id, err)
		}
	}
	a.whole("changed meanwhile")
	_, err = a.store.Archive(a.ctx, a.options())
	a.ok(err)
	a.whole("run again")
	after, in := a.logs("run again")
	for id, text := range changed {
		if in[id] != 1 || !strings.HasPrefix(after[id], text) {
			a.Errorf("session %s is in %d places, and is\n%s\nand was\n%s", id, in[id], after[id], text)
		}
	}
	if !strings.Contains(after[a.ids[2]], "on it") {
		a.Error("what an agent has logged meanwhile is lost")
	}
}

// testArchiveRefused: nothing is written to the archive of another store, and where nothing is old enough no file is made.
// testArchiveLost: where it is not known any more what an archived session has taught, that is damage, and rebuilding makes nobody forget it.
func testArchiveLost(a *archiveBench) {
	_, err := a.store.Archive(a.ctx, a.options())
	a.ok(err)
	taught := a.taught()
	a.Exec(a.T, `DELETE FROM archived WHERE session_id=(SELECT min(session_id::text)::uuid FROM archived)`)
	s := a.Open(a.T)
	for what, do := range map[string]func(*testing.T, ArchiveStore) error{"verified": a.Verify, "rebuilt": a.Rebuild} {
		if err := do(a.T, s); err == nil || !strings.Contains(err.Error(), "of a session that was archived, of which its row is gone or altered; rebuilding cannot repair it") {
			a.Errorf("%s without the row of a session that was archived: %v", what, err)
		}
	}
	if now := a.taught(); now != taught {
		a.Errorf("what was taught was\n%s\nand is\n%s", taught, now)
	}
}

func testArchiveRefused(a *archiveBench) {
	first := *a
	a.begin()
	_, err := first.store.Archive(a.ctx, first.options())
	a.ok(err)
	o := a.options()
	o.To = first.to
	if _, err := a.store.Archive(a.ctx, o); !errors.Is(err, archive.ErrNone) || !strings.Contains(err.Error(), first.to) {
		a.Errorf("to the archive of another store: %v", err)
	}
	o = a.options()
	o.Before = 1
	if done, err := a.store.Archive(a.ctx, o); err != nil || done.Sessions != 0 || done.Archive != "" {
		a.Errorf("archiving nothing = %+v, %v", done, err)
	}
	a.whole("refused")
	first.whole("refused")
}
