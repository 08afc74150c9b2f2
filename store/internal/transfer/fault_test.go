package transfer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/transfer"
	"github.com/dialai/dialai/store/postgres"
)

// A place is where a store is, which can be opened again and again.
type place struct {
	testing.TB
	path, address string
}

func inFile(t testing.TB) place { return place{TB: t, path: filepath.Join(t.TempDir(), "dialai.db")} }

func inDatabase(t testing.TB) place { return place{TB: t, address: pgtest.Database(t)} }

// open opens the store as one that is copied to.
func (p place) open() (closable, error) {
	if p.path != "" {
		s, err := store.OpenSQLite(p.Context(), p.path, store.SQLiteOptions{Copy: true})
		return s, err
	}
	s, err := postgres.Open(p.Context(), p.address, postgres.Options{Copy: true})
	return s, err
}

// use opens the store as everybody does, for a while.
func (p place) use(do func(s closable)) error {
	var s closable
	var err error
	if p.path != "" {
		s, err = store.OpenSQLite(p.Context(), p.path, store.SQLiteOptions{})
	} else {
		s, err = postgres.Open(p.Context(), p.address, postgres.Options{})
	}
	if err != nil {
		return err
	}
	defer s.Close()
	do(s)
	return nil
}

// copied copies a store to another one, each opened for that.
func (p place) copied(to place, o transfer.Options) (done transfer.Report, err error) {
	p.Helper()
	from, err := p.open()
	if err != nil {
		return done, err
	}
	defer from.Close()
	into, err := to.open()
	if err != nil {
		return done, err
	}
	defer into.Close()
	return store.CopyStore(p.Context(), from, into, o)
}

// asFile returns all that is in a store, as a file has it.
func (p place) asFile() (text string) {
	p.Helper()
	to := inFile(p.TB)
	if _, err := p.copied(to, transfer.Options{}); err != nil {
		p.Fatal(err)
	}
	if err := to.use(func(s closable) { text = dump(p.TB, s.(*store.SQLite)) }); err != nil {
		p.Fatal(err)
	}
	return text
}

// exec changes the store behind its back.
func (p place) exec(query string) {
	p.Helper()
	if p.path != "" {
		db, err := sql.Open("sqlite", p.path)
		if err == nil {
			_, err = db.Exec(query)
			db.Close()
		}
		if err != nil {
			p.Fatal(err)
		}
		return
	}
	conn, err := pgx.Connect(p.Context(), p.address)
	if err == nil {
		_, err = conn.Exec(p.Context(), `SET search_path=dialai; `+query)
		conn.Close(p.Context())
	}
	if err != nil {
		p.Fatal(err)
	}
}

// kindOf returns what makes another store of the kind of one.
func kindOf(p place) func(testing.TB) place {
	if p.path != "" {
		return inFile
	}
	return inDatabase
}

// each runs a test from each kind of store to each.
func each(t *testing.T, test func(t *testing.T, from, to place)) {
	for _, c := range []struct {
		name     string
		from, to func(t testing.TB) place
	}{{"file to file", inFile, inFile}, {"file to database", inFile, inDatabase}, {"database to file", inDatabase, inFile}, {"database to database", inDatabase, inDatabase}} {
		t.Run(c.name, func(t *testing.T) { test(t, c.from(t), c.to(t)) })
	}
}

// TestInterrupted: wherever a copy ends, nobody can open it, and the next run goes on and makes it the same as one that
// was not interrupted, with what came meanwhile.
func TestInterrupted(t *testing.T) {
	each(t, func(t *testing.T, from, to place) {
		if err := from.use(func(s closable) { use(t, s).live(4) }); err != nil {
			t.Fatal(err)
		}
		stop, want := errors.New("the power fails"), from.asFile()
		first, by := 1, 1 // all from file to file, of the others some
		if i := slices.Index([]string{"file_to_database", "database_to_file", "database_to_database"}, path.Base(t.Name())); i >= 0 {
			first, by = 1+i, 5
		}
		for n := first; ; n += by * fewer {
			left, at, final := n, "", n%2 == 0
			step := func(step string) error {
				if left--; left == 0 {
					at = step
					return stop
				}
				return nil
			}
			o := transfer.Options{Final: final, // what servers remember may fail to be copied too
				Frozen:    func(context.Context, string) error { return step("what servers remember is frozen") },
				Finishing: func(context.Context) error { return step("what servers remember is put") },
			}.InBatches(30).AfterStep(step)
			_, err := from.copied(to, o)
			if at == "" {
				if err != nil || n < 15 {
					t.Fatalf("%d steps, then %v", n, err)
				}
				return
			}
			if !errors.Is(err, stop) {
				t.Fatalf("interrupted at %s: %v", at, err)
			}
			var unfinished *transfer.UnfinishedError
			if err := to.use(func(closable) {}); !errors.As(err, &unfinished) || unfinished.From == "" {
				t.Fatalf("interrupted at %s it is opened: %v", at, err)
			}
			if n == 7 { // it is used meanwhile
				if s, err := from.open(); err != nil || store.Thaw(t.Context(), s) != nil || s.Close() != nil {
					t.Fatal(err)
				}
				if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
					t.Fatal(err)
				}
				want = from.asFile()
			}
			if _, err := from.copied(to, transfer.Options{Resume: true, Final: final}.InBatches(30)); err != nil {
				t.Fatalf("interrupted at %s and resumed: %v", at, err)
			}
			if s, err := from.open(); err != nil || store.Thaw(t.Context(), s) != nil || s.Close() != nil {
				t.Fatal(err)
			}
			equal(t, to.asFile(), want)
			if err := to.use(func(s closable) { sound(t, s) }); err != nil {
				t.Fatal(err)
			}
			to = kindOf(to)(t)
		}
	})
}

// TestRememberedBefore: what servers remember is copied once nobody writes to the store any more, and before anybody opens the copy; where
// that fails the copy is none yet, and goes on.
func TestRememberedBefore(t *testing.T) {
	each(t, func(t *testing.T, from, to place) {
		if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
			t.Fatal(err)
		}
		unfinished := func() {
			t.Helper()
			var is *transfer.UnfinishedError
			if err := to.use(func(closable) {}); !errors.As(err, &is) {
				t.Errorf("the copy is opened: %v", err)
			}
		}
		frozen := func(_ context.Context, to string) error {
			if err := from.use(func(s closable) {
				w := use(t, s)
				if _, err := w.r.Start(t.Context(), w.m, runner.StartOptions{}); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), to) {
					t.Errorf("starting a session in a store that is frozen for %s = %v", to, err)
				}
			}); err != nil {
				t.Error(err)
			}
			unfinished()
			return nil
		}
		stop := errors.New("what servers remember is not to be had")
		fails, put := func(context.Context) error { return stop }, false
		for _, o := range []transfer.Options{
			{Final: true, Frozen: func(context.Context, string) error { return stop }},
			{Resume: true, Final: true, Frozen: frozen, Finishing: fails},
			{Resume: true, Finishing: fails},
			{Resume: true, Final: true, Frozen: frozen, Finishing: func(context.Context) error { unfinished(); put = true; return nil }},
		} {
			_, err := from.copied(to, o)
			if put {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if !errors.Is(err, stop) {
				t.Fatalf("it ends with %v", err)
			}
			unfinished()
		}
		if err := to.use(func(s closable) { sound(t, s); use(t, s).live(1) }); err != nil || !put {
			t.Errorf("the copy is not used: %v", err)
		}
	})
}

// writers is how many write while a store is copied.
const writers = 2 + 6/fewer

// TestMeanwhile: a store is copied while many write to it, again, and for good; in the end the copy has all that was
// acknowledged, and nothing else.
func TestMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, from, to place) {
		var at sync.Map // sequences that were acknowledged, by session
		var refused error
		err := from.use(func(s closable) {
			w := use(t, s)
			w.live(2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			var mu sync.Mutex
			begun := make(chan struct{}, 8)
			var frozen atomic.Bool
			for range writers {
				wg.Go(func() {
					started, err := w.r.Start(ctx, w.m, runner.StartOptions{})
					begun <- struct{}{}
					for i := int64(0); err == nil; i++ {
						if frozen.Load() {
							err = errors.New("it was not refused")
							break
						}
						at.Store(started.ID, started.Sequence)
						if _, err = w.r.Step(ctx, started.ID); err == nil {
							err = s.AppendAgentLog(ctx, started.ID, i, session.AgentEvent{At: 1, Kind: "note", Data: []byte(`{}`)})
						}
						if err == nil {
							err = s.AppendAudit(ctx, specialist.AuditEntry{AuditEntryID: fmt.Sprint(i), SessionID: started.ID.String()})
						}
						if err == nil {
							now, failed := w.r.Session(ctx, started.ID)
							if err = failed; err == nil {
								_, err = w.r.Decide(ctx, runner.Ruling{SessionID: started.ID, RoundID: now.Key().ID(), SpecialistID: "h", TransitionName: "on", Reasoning: "go on"})
							}
						}
						if err == nil {
							if started, err = w.r.Session(ctx, started.ID); err == nil {
								at.Store(started.ID, started.Sequence)
							}
						}
					}
					mu.Lock()
					defer mu.Unlock()
					if !errors.Is(err, store.ErrReadOnly) {
						t.Errorf("a writer ended with %v", err)
					}
					refused = err
				})
			}
			for range writers {
				<-begun
			}
			for _, o := range []transfer.Options{{}, {Resume: true}, {Resume: true, Final: true}} {
				done, err := from.copied(to, o)
				if err != nil {
					t.Errorf("copied with %+v: %v", o, err)
					cancel()
					break
				}
				t.Logf("copied is %+v", done)
				frozen.Store(done.Frozen)
			}
			wg.Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		if frozen, ok := errors.AsType[*transfer.FrozenError](refused); !ok || frozen.To == "" {
			t.Errorf("who writes is told %v", refused)
		}
		equal(t, to.asFile(), from.asFile())
		if err := to.use(func(s closable) {
			at.Range(func(id, sequence any) bool {
				if now, err := s.Load(t.Context(), session.NewPrograms(), id.(specialist.SessionID)); err != nil || now.Sequence < sequence.(int64) {
					t.Errorf("of session %s event %d was acknowledged: %v", id, sequence, err)
				}
				return true
			})
			use(t, s).live(1)
		}); err != nil {
			t.Fatal(err)
		}
		if err := from.use(func(s closable) {
			w := use(t, s)
			if _, err := w.r.Start(t.Context(), w.m, runner.StartOptions{}); !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("starting a session in a frozen store = %v", err)
			}
			if _, err := w.r.Register(t.Context(), "learning", machine.Specialist{Role: machine.Proposer, SpecialistID: "no", StrategyFnName: "random"}, nil); !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("registering in a frozen store = %v", err)
			}
			if err := s.AppendAudit(t.Context(), specialist.AuditEntry{}); !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("auditing in a frozen store = %v", err)
			}
			w.ok(store.Thaw(t.Context(), s))
			w.live(1)
			sound(t, s)
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestThawed: a store that is thawed while it is copied for good, or copied to another place, makes no copy for good; one that was copied for good is not
// copied to another place before it is thawed.
func TestThawed(t *testing.T) {
	each(t, func(t *testing.T, from, to place) {
		if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
			t.Fatal(err)
		}
		thawed, elsewhere := `UPDATE meta SET frozen=NULL`, `UPDATE meta SET frozen='elsewhere'` // as the commands do, which wait in a database until its snapshot is read
		if from.path != "" {
			thawed, elsewhere = `DELETE FROM copying`, `UPDATE copying SET frozen='elsewhere'`
		}
		for i, meanwhile := range []string{thawed, elsewhere} {
			frozen := func(context.Context, string) error { from.exec(meanwhile); return nil }
			if _, err := from.copied(to, transfer.Options{Final: true, Resume: i > 0, Frozen: frozen}); !errors.Is(err, transfer.ErrThawed) {
				t.Errorf("with %s meanwhile it is copied with %v", meanwhile, err)
			}
			var is *transfer.UnfinishedError
			if err := to.use(func(closable) {}); !errors.As(err, &is) {
				t.Errorf("the copy is opened: %v", err)
			}
		}
		var refused *transfer.Refusal
		if _, err := from.copied(to, transfer.Options{Final: true, Resume: true}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "it was copied to elsewhere for good") {
			t.Errorf("copied to another place after it was for good: %v", err)
		}
		if s, err := from.open(); err != nil || store.Thaw(t.Context(), s) != nil || s.Close() != nil {
			t.Fatal(err)
		}
		if _, err := from.copied(to, transfer.Options{Final: true, Resume: true}); err != nil {
			t.Fatal(err)
		}
		if err := to.use(func(s closable) { sound(t, s) }); err != nil {
			t.Error(err)
		}
	})
}

// TestDriven: nothing is copied to a store that a process carries on, and then nobody is kept from writing to the one that was to be copied.
func TestDriven(t *testing.T) {
	each(t, func(t *testing.T, from, to place) {
		if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
			t.Fatal(err)
		}
		if _, err := from.copied(to, transfer.Options{}); err != nil {
			t.Fatal(err)
		}
		end := func() { to.exec(`DELETE FROM owners`) }
		if to.path == "" {
			to.exec(`INSERT INTO owners (name, until, about) VALUES ('a server', now()+interval '1 minute', '')`)
		} else {
			s, err := store.OpenSQLite(t.Context(), to.path, store.SQLiteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lock, err := s.DriverLock()
			if err != nil {
				t.Fatal(err)
			}
			if free, err := lock.TryLock(); err != nil || !free {
				t.Fatalf("the lock of a store that nobody carries on is free: %t, %v", free, err)
			}
			end = func() { lock.Unlock(); s.Close() }
		}
		if _, err := from.copied(to, transfer.Options{Resume: true, Final: true}); !errors.Is(err, store.ErrDriven) {
			t.Errorf("copied to a store that a process carries on: %v", err)
		}
		if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
			t.Fatal(err)
		}
		end()
		if _, err := from.copied(to, transfer.Options{Resume: true, Final: true}); err != nil {
			t.Fatal(err)
		}
		if err := to.use(func(s closable) { sound(t, s) }); err != nil {
			t.Error(err)
		}
	})
}

// TestItself: a database is not copied to itself, under whatever name, and is what it was.
func TestItself(t *testing.T) {
	from := inDatabase(t)
	if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
		t.Fatal(err)
	}
	same := from
	same.address = strings.Replace(from.address, "127.0.0.1", "localhost", 1)
	if same.address == from.address {
		t.Fatalf("%s has no other name here", from.address)
	}
	for _, o := range []transfer.Options{{}, {Resume: true}, {Resume: true, Final: true}} {
		if _, err := from.copied(same, o); !errors.Is(err, transfer.ErrSame) {
			t.Errorf("copied to itself with %+v: %v", o, err)
		}
	}
	if err := from.use(func(s closable) { use(t, s).live(1); sound(t, s) }); err != nil {
		t.Error(err)
	}
}

// TestFence: while somebody has drawn a place and may commit it yet, nothing is copied that could be behind it.
func TestFence(t *testing.T) {
	from, to := inDatabase(t), inFile(t)
	if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), from.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `UPDATE dialai.sessions SET subject=subject WHERE id=1; SELECT nextval('dialai.place')`)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.copied(to, transfer.Options{}); !errors.Is(err, session.ErrBusy) {
		t.Errorf("copied beside it: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := from.copied(to, transfer.Options{}); err != nil {
		t.Fatal(err)
	}
}

// TestRefused: nothing is written over, and nothing is taken for a copy that is none.
func TestRefused(t *testing.T) {
	each(t, func(t *testing.T, from, to place) {
		live := func(p place) {
			t.Helper()
			if err := p.use(func(s closable) { use(t, s).live(1) }); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(from, to place, o transfer.Options, want error) {
			t.Helper()
			if _, err := from.copied(to, o); !errors.Is(err, want) {
				t.Errorf("copied with %+v: %v, want %v", o, err, want)
			}
		}
		live(from)
		refused(from, from, transfer.Options{}, transfer.ErrSame)
		live(to)
		before := to.asFile()
		refused(from, to, transfer.Options{}, transfer.ErrOther)
		refused(from, to, transfer.Options{Resume: true}, transfer.ErrOther)
		equal(t, to.asFile(), before)
		made := kindOf(to)(t)
		if _, err := from.copied(made, transfer.Options{Resume: true}); err != nil { // there is nothing yet: that will do
			t.Fatal(err)
		}
		refused(from, made, transfer.Options{}, transfer.ErrCopied)
		live(made)
		refused(from, made, transfer.Options{Resume: true}, transfer.ErrChanged)
		if err := made.use(func(s closable) { sound(t, s) }); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"roster_log", "agent_log", "llm_audit"} { // of which alone something was appended
			made := kindOf(to)(t)
			if _, err := from.copied(made, transfer.Options{}); err != nil {
				t.Fatal(err)
			}
			made.exec(`UPDATE copied SET newest=newest-1 WHERE part='` + table + `'`)
			refused(from, made, transfer.Options{Resume: true}, transfer.ErrChanged)
		}
	})
}

// TestArchivesStayFiles: an archive is copied to a file, as it is, and not to a database.
func TestArchivesStayFiles(t *testing.T) {
	w := use(t, file(t))
	w.live(7)
	archive := place{TB: t, path: filepath.Join(t.TempDir(), "archive.db")}
	_, err := w.s.(*store.SQLite).Archive(t.Context(), store.ArchiveOptions{Before: specialist.Time(1) << 50, To: archive.path, At: 7, Programs: session.NewPrograms()})
	w.ok(err)
	var text string
	w.ok(archive.use(func(s closable) { text = dump(t, s.(*store.SQLite)) }))
	equal(t, archive.asFile(), text)
	if _, err := archive.copied(inDatabase(t), transfer.Options{}); !errors.Is(err, transfer.ErrArchive) {
		t.Errorf("copied to a database: %v", err)
	}
}

// TestArchivedMeanwhile: what was archived after it had been copied is archived in the copy, too; its id is taken there, and
// whoever asks for it is told where it is.
func TestArchivedMeanwhile(t *testing.T) {
	for _, kind := range []func(testing.TB) place{inFile, inDatabase} {
		from, to := inFile(t), kind(t)
		var ids []specialist.SessionID
		if err := from.use(func(s closable) { w := use(t, s); w.live(6); ids = w.ids }); err != nil {
			t.Fatal(err)
		}
		if _, err := from.copied(to, transfer.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := from.use(func(s closable) { w := use(t, s); w.archived() }); err != nil {
			t.Fatal(err)
		}
		if _, err := from.copied(to, transfer.Options{Resume: true}); err != nil {
			t.Fatal(err)
		}
		equal(t, to.asFile(), from.asFile())
		if err := to.use(func(s closable) {
			sound(t, s)
			w := use(t, s)
			var gone []specialist.SessionID
			for _, id := range ids {
				_, err := s.Load(t.Context(), session.NewPrograms(), id)
				if at, ok := errors.AsType[*session.ArchivedError](err); ok && at.Archive != "" && at.ID == id.String() && at.MachineName == "learning" {
					gone = append(gone, id)
				} else if err != nil {
					t.Error(err)
				}
			}
			if len(gone) == 0 {
				t.Fatal("nothing was archived")
			}
			if _, err := w.r.Start(t.Context(), w.m, runner.StartOptions{ID: gone[0]}); !errors.Is(err, session.ErrExists) {
				t.Errorf("starting an archived session = %v", err)
			}
			if err := s.(interface {
				Archived(ctx context.Context, prefix string) error
			}).Archived(t.Context(), gone[0].String()[:8]); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("asked for the beginning of its id: %v", err)
			}
			if err := s.(interface {
				Archived(ctx context.Context, prefix string) error
			}).Archived(t.Context(), "00000000-0000-0000-0000-000000000000"); err != nil {
				t.Errorf("asked for none: %v", err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}
