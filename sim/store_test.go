package sim_test

import (
	"bytes"
	"context"
	"iter"
	"path/filepath"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// Every world has one store: mostly in memory, and for every tenth seed in a file, with
// everything that package store does to a record on the way to a disk and back.

// open makes the store of the world.
func (w *world) open() {
	if !w.onDisk {
		w.base = store.NewSeededMemory(w.hash("secret"))
	} else {
		w.path = filepath.Join(w.t.TempDir(), "sim.db")
		w.file = w.openFile()
		w.base = w.seeded(w.file)
	}
	if w.mutation.is("letter is flipped") {
		w.base = flipped{w.base}
	}
}

func (w *world) openFile() *store.SQLite {
	db, err := store.OpenSQLite(context.Background(), w.path, store.SQLiteOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return db
}

func (w *world) closeFile(db *store.SQLite) {
	if db == nil {
		return
	}
	if err := db.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) seeded(s session.Store) session.Store { return seeded{s, w.hash("secret")} }

// mount gives a process the store: the one in memory, or the file, opened by the
// process itself, with caches of its own.
func (p *process) mount() session.Store {
	if !p.w.onDisk {
		return p.w.base
	}
	p.file = p.w.openFile()
	return p.w.seeded(p.file)
}

// A seeded store draws what the seed says, so that a run can be played again.
type seeded struct {
	session.Store
	secret [32]byte
}

// Secret implements [session.RosterStore].
func (s seeded) Secret(context.Context) ([]byte, error) { return s.secret[:], nil }

// A flipped store reads a letter of what somebody proposed as another.
type flipped struct{ session.Store }

// Records implements [session.HistoryStore].
func (f flipped) Records(ctx context.Context, id specialist.SessionID, from int64) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		for rec, err := range f.Store.Records(ctx, id, from) {
			rec.Events = bytes.ReplaceAll(bytes.Clone(rec.Events), []byte("says so in round"), []byte("says no in round"))
			if !yield(rec, err) {
				return
			}
		}
	}
}

// verify has the file of the store verify itself, once everybody is done.
func (w *world) verify() {
	w.rememberLessons()
	w.compareTallies()
	if w.file == nil {
		return
	}
	report, err := w.file.Verify(context.Background(), session.NewPrograms())
	if err != nil || report.Difference != nil {
		w.fail(storeVerifies, "%v (%v)", report.Difference, err)
	}
	w.count("files verified")
}

// rememberLessons has a ledger written down after half of what the world was taught, read, and
// taught the rest.
func (w *world) rememberLessons() {
	whole, read := trust.New(), trust.New()
	var list []trust.Lesson
	for x, err := range w.base.Lessons(context.Background(), 0) {
		if err == nil {
			err = whole.Learn(x)
		}
		if err != nil {
			w.fail(ledgerKept, "lesson %d: %v", x.Seq, err)
			return
		}
		list = append(list, x)
	}
	half := trust.New()
	for i, x := range list {
		if i == len(list)/2 {
			c := wire.NewReader(written(half))
			if read.Code(c); c.Close() != nil {
				w.fail(ledgerKept, "after %d lessons what was written cannot be read: %v", i, c.Close())
				return
			}
			half = read
		}
		if !w.mutation.is("snapshot lacks a lesson") || i != len(list)/2-1 {
			_ = half.Learn(x) // whole has learned it
		}
	}
	if !bytes.Equal(written(half), written(whole)) {
		w.fail(ledgerKept, "read after half of %d lessons, the ledger comes to something else", len(list))
	}
	w.count("ledgers remembered")
}

// written returns a ledger as it is written down.
func written(l *trust.Ledger) []byte {
	c := wire.NewWriter()
	l.Code(c)
	return c.Bytes()
}
