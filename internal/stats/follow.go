package stats

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/internal/wire"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Whoever asks for the tally of a machine reads the records that have come since it was counted
// last, by this process or by another that has left a snapshot. A record is read in its session: the
// sessions that were met last are remembered as they were, and others are read from their beginning.
//
// A session that is archived leaves the log, and what its decisions add stays. Its store makes a
// snapshot that has them before it lets them go, so a newer snapshot is always taken, and a count
// during which one was made is made anew. Whoever has no snapshot begins with what archived sessions
// have left.

// SnapshotEvery is after how many records that add something a snapshot is made.
const SnapshotEvery = 1000

const (
	atOnce   = 1024 // records between two looks at the lessons
	sessions = 256  // that are remembered of a machine as they were
	machines = 64   // that are remembered
)

// A Store has what is counted. One that is a [session.LedgerKeeper] keeps snapshots, one that is an
// [Archiver] has let sessions go.
type Store interface {
	session.SessionStore
	session.TrustStore
	session.HistoryStore
}

// An Archiver is a store that has let sessions go.
type Archiver interface {
	// ArchivedTallies yields what each record of archived sessions of a machine adds, and its place, in no
	// order.
	ArchivedTallies(ctx context.Context, machineName string) iter.Seq2[Added, error]
}

// Added is what the record at a place adds.
type Added struct {
	Place int64
	Tally Tally
}

// Human reports whether a human decided by the record.
func (a *Added) Human() bool { return a.Tally.Of("").Human > 0 }

// A Follower follows the decisions of the machines of one store. It may be used concurrently.
type Follower struct {
	store    Store
	programs *session.Programs

	mu       sync.Mutex
	machines *lru.Cache[string, *count]
}

// NewFollower returns a Follower that has counted nothing yet.
func NewFollower(s Store, programs *session.Programs) *Follower {
	return &Follower{store: s, programs: programs, machines: lru.New[string, *count](machines)}
}

// Of returns the tally of a machine with every record whose commit returned before the call. It is
// never changed again, and must not be changed.
func (f *Follower) Of(ctx context.Context, machineName string) (*Tally, error) {
	c := f.machine(machineName)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally, c.follow(ctx, false)
}

// Keep is Of, and has the store keep a snapshot of it.
func (f *Follower) Keep(ctx context.Context, machineName string) error {
	c := f.machine(machineName)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.follow(ctx, true)
}

func (f *Follower) machine(name string) *count {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machines.GetOr(name, func() *count { return &count{Follower: f, name: name} })
}

// A count is what was counted of one machine.
type count struct {
	*Follower
	name string

	mu       sync.Mutex
	replaced int64  // how often the store was when tally was begun
	tally    *Tally // nil before the first; never changed once others may have it
	place    int64  // up to where it was counted
	unkept   int    // records that have added something since the newest snapshot
	sessions *lru.Cache[specialist.SessionID, *reading]
	texts    map[string][]byte // definitions, by digest
	lacks    string            // the digest of one that has to be read
}

// A reading is a session as far as its log was read.
type reading struct {
	folder *session.Folder
	watch  *Watch
}

// follow counts what has come, anew where a snapshot was made meanwhile.
func (c *count) follow(ctx context.Context, keep bool) error {
	for {
		if is := session.Replaced(c.store); is != c.replaced {
			c.replaced, c.tally = is, nil
		}
		kept, err := c.resume(ctx)
		if err == nil {
			err = c.catchUp(ctx)
		}
		var now session.LedgerSnapshot
		if err == nil {
			now, err = c.newest(ctx)
		}
		switch {
		case session.Replaced(c.store) != c.replaced:
			continue
		case err != nil:
			return err
		case now.Place != kept:
			c.tally = nil
			continue
		}
		if c.unkept >= SnapshotEvery || keep && c.place != kept {
			return c.keep(ctx, keep)
		}
		return nil
	}
}

// resume goes to the newest snapshot, if that is ahead, and returns its place; 0 if there is none that
// can be read.
func (c *count) resume(ctx context.Context) (int64, error) {
	s, err := c.newest(ctx)
	if err != nil || c.tally != nil && s.Place <= c.place {
		return s.Place, err
	}
	c.tally, c.place, c.unkept, c.sessions = &Tally{}, 0, 0, lru.New[specialist.SessionID, *reading](sessions)
	if s.Place > 0 {
		if t, err := Read(s); err == nil {
			c.tally, c.place = t, s.Place
		}
	}
	return s.Place, nil
}

// newest returns the newest snapshot; the zero one if there is none.
func (c *count) newest(ctx context.Context) (session.LedgerSnapshot, error) {
	if keeper, ok := c.store.(session.LedgerKeeper); ok {
		for s, err := range keeper.LedgerSnapshots(ctx, Scope(c.name)) {
			return s, err
		}
	}
	return session.LedgerSnapshot{}, nil
}

func (c *count) keep(ctx context.Context, must bool) error {
	keeper, ok := c.store.(session.LedgerKeeper)
	if !ok {
		return nil
	}
	if err := keeper.KeepLedger(ctx, Snapshot(c.name, c.place, c.tally)); err != nil && must {
		return err // else the next process counts more
	}
	c.unkept = 0
	return nil
}

// catchUp counts what comes after c.place.
func (c *count) catchUp(ctx context.Context) error {
	end, err := c.store.Place(ctx)
	if err != nil {
		return err
	}
	for {
		next := delta{count: c, tally: c.tally.Clone(), place: c.place, humans: map[int64]bool{}}
		more, err := next.records(ctx)
		if err != nil {
			return err
		}
		if !more {
			next.place = max(next.place, end)
		}
		if err := next.lessons(ctx); err != nil {
			return err
		}
		c.tally, c.place, c.unkept = next.tally, next.place, c.unkept+next.added
		if !more {
			return nil
		}
	}
}

// A delta is what comes to a count next.
type delta struct {
	*count
	tally  *Tally
	place  int64
	added  int
	humans map[int64]bool // places of records by which humans decided
}

// records counts the next records, and reports whether there may be more.
func (d *delta) records(ctx context.Context) (more bool, err error) {
	if archiver, ok := d.store.(Archiver); ok && d.count.place == 0 {
		for a, err := range archiver.ArchivedTallies(ctx, d.name) {
			if err != nil {
				return false, err
			}
			d.tally.Plus(&a.Tally)
			d.humans[a.Place] = a.Human()
		}
	}
	var list []session.LogEntry // none of which is read while a connection yields them
	for e, err := range d.store.Log(ctx, d.name, d.count.place) {
		if err != nil {
			return false, err
		}
		e.Events = bytes.Clone(e.Events)
		if list = append(list, e); len(list) == atOnce {
			break
		}
	}
	for i := range list {
		e := &list[i]
		r, err := d.read(ctx, e)
		if err != nil {
			return false, err
		}
		if d.tally.Add(e.Place, r); !r.Empty() {
			d.added++
		}
		if d.place = e.Place; r.Human() {
			d.humans[e.Place] = true
		}
	}
	return len(list) == atOnce, nil
}

// read reads a record in its session.
func (d *delta) read(ctx context.Context, e *session.LogEntry) (Record, error) {
	for {
		d.lacks = ""
		r, err := d.readOnce(ctx, e)
		if err == nil {
			return r, nil
		}
		d.sessions.Delete(e.Session)
		if d.lacks == "" {
			return r, err
		}
		if err := d.define(ctx); err != nil {
			return r, err
		}
	}
}

func (d *delta) readOnce(ctx context.Context, e *session.LogEntry) (Record, error) {
	r, _ := d.sessions.Get(e.Session)
	if r == nil || r.folder.Current.Sequence != e.First-1 {
		f := &session.Folder{Programs: d.programs, Definition: d.definition}
		r = &reading{f, On(f)}
		for rec, err := range d.before(ctx, e) {
			if err == nil {
				err = r.add(e.Session, rec.Events)
			}
			if err != nil {
				return Record{}, err
			}
			r.watch.Take()
		}
		d.sessions.Put(e.Session, r)
	}
	err := r.add(e.Session, e.Events)
	return r.watch.Take(), err
}

// before yields the records of a session before one.
func (c *count) before(ctx context.Context, e *session.LogEntry) iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) {
		if e.First == 1 {
			return
		}
		for r, err := range c.store.Records(ctx, e.Session, 0) {
			if err == nil && r.First >= e.First || !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func (r *reading) add(id specialist.SessionID, events []byte) error {
	if _, err := r.folder.Add(events); err != nil {
		return session.Corrupt("the log of session "+id.String(), err)
	}
	return nil
}

// definition returns a definition that was read, and else notes that it has to be.
func (c *count) definition(digest string) ([]byte, error) {
	if text := c.texts[digest]; text != nil {
		return text, nil
	}
	c.lacks = digest
	return nil, &session.NotFoundError{What: "Definition", ID: digest}
}

// define reads the definitions of the machine, of which one is lacking.
func (c *count) define(ctx context.Context) error {
	texts, err := c.store.Definitions(ctx, c.name)
	if err != nil {
		return err
	}
	c.texts = make(map[string][]byte, len(texts))
	for _, text := range texts {
		sum := sha256.Sum256(text)
		c.texts[hex.EncodeToString(sum[:])] = text
	}
	_, err = c.definition(c.lacks)
	return err
}

// lessons counts the lessons of the records.
func (d *delta) lessons(ctx context.Context) error {
	for x, err := range d.store.Lessons(ctx, d.count.place) {
		switch {
		case err != nil:
			return err
		case x.Seq > d.place:
			return nil
		case Taught(&x) == d.name:
			d.tally.Learn(&x, d.humans[x.Seq])
		}
	}
	return nil
}

// Taught returns the machine of whose decisions a lesson is; "" if it is of none.
func Taught(x *trust.Lesson) string {
	switch {
	case x.Outcome != nil:
		return x.Outcome.Machine
	case x.Second != nil:
		return x.Second.Machine
	}
	return ""
}

const scopePrefix = "stats "

// Scope returns the scope of the snapshots of a machine.
func Scope(machineName string) string { return scopePrefix + machineName }

// MachineOf returns the machine whose snapshots have a scope; ok is false for others.
func MachineOf(scope string) (machineName string, ok bool) {
	return strings.CutPrefix(scope, scopePrefix)
}

// Snapshot returns a snapshot of the tally of a machine. The same tally has the same one, to the byte.
func Snapshot(machineName string, place int64, t *Tally) session.LedgerSnapshot {
	c := wire.NewWriter()
	t.Code(c)
	return session.LedgerSnapshot{Scope: Scope(machineName), Place: place, Format: Format, Body: c.Bytes()}
}

var errFormat = errors.New("the tally was written by another version")

// Read returns the tally of a snapshot, or an error if it was written in another way.
func Read(s session.LedgerSnapshot) (*Tally, error) {
	if s.Format != Format {
		return nil, errFormat
	}
	t, c := &Tally{}, wire.NewReader(s.Body)
	if t.Code(c); c.Close() != nil {
		return nil, fmt.Errorf("a tally cannot be read: %w", c.Close())
	}
	return t, nil
}
