// Package transfer copies a store to another one, whatever keeps either.
package transfer

import (
	"context"
	"fmt"
	"iter"

	"github.com/dialai/dialai/session"
)

// A copy has what nothing else follows from: the logs of sessions and of machine names, definitions, the
// audit of models, the logs of agents, what is kept of archived sessions, the secret. It is read as of one
// moment (a Snapshot), in parts, each in an order of its own, and every record is held to the hash of the
// one before. It is written some rows at a time, each time in one transaction with how far the part is, so
// that a copy that was interrupted goes on from there. Then what follows from the logs is made
// anew, all of the copy is verified, and the last record of each log is compared with that of the store
// that was copied. Until then nobody can open it: it looks like a store, but is none yet.
//
// The log of sessions keeps its places, for verdicts, and cursors of readers, name them. A file counts rosters, logs of
// agents and the audit of models without leaving a number out, so what comes from elsewhere is numbered anew there.
//
// The store may be used meanwhile; what comes after the snapshot is copied by the next run. The last one
// freezes the store first: whoever wants to write to it is told where it went.

// A Part is one kind of rows.
type Part string

// The parts, in the order in which they are copied.
const (
	Machines        Part = "machines"         // Of is the name
	Definitions     Part = "definitions"      // Digest, Machine, Body
	Archived        Part = "archived"         // Of, Session, Machine, First is the last event, Hash the head, Body what it taught, Archive, At
	ArchivedRecords Part = "archived_records" // Place, Hash, and Session is 1 for a log of agents
	Rosters         Part = "roster_log"       // Place, Of is the machine, First, Body, Prev, Hash
	Log             Part = "log"              // Place, Of is the session, Session, Machine, Digest, First, Decides, At, Body, Prev, Hash
	Agents          Part = "agent_log"        // Place, Of is the session, Session, First is the number in its log, Body, Prev, Hash
	Audit           Part = "llm_audit"        // Place, Of is the session or "", Body, Hash of one that was erased; of a file also Prev, and each has a Hash
	Gaps            Part = "gaps"             // places of the log that hold nothing, from Place to First
	// Heads are not copied but compared: of each log, in the order of Of, which is the kind of log and whose it is,
	// Hash is the hash of its last record, Place the place of that if it is a session's, and First where it begins if it is none.
	Heads Part = "heads"
)

// all are the parts that are copied.
var all = []Part{Machines, Definitions, Archived, ArchivedRecords, Rosters, Log, Agents, Audit, Gaps}

// Appended reports whether a part only grows, behind its last place: a copy goes on from there.
func (p Part) Appended() bool { return p == Rosters || p == Log || p == Agents || p == Audit }

// A Row is a row of any part; the part says what is in it.
type Row struct {
	Place      int64
	Of         string
	Session    int64 // number of the session's row
	Machine    string
	Digest     string
	First      int64
	At         int64  // ms since 1970
	Decides    string // machine name, if a transition was executed
	Body       []byte // as it is stored
	Prev, Hash []byte // nil if there is none
	Archive    string
	Erased     bool // payloads were taken out of it, so that its hash is that of what it was; only its log proves it
}

// An Identity tells a store and its copies from all others.
type Identity struct {
	Secret    []byte
	Epoch     []byte // that from which the epoch of places follows: the secret unless the store was restored
	ArchiveOf []byte // of an archive: what says of which store; else nil
	File      bool   // it numbers all that it appends without leaving one out
}

// A Cursor says how far a part was copied.
type Cursor struct {
	Place int64 // of the last row, in the store that is copied
	Count int64 // rows
}

// A Snapshot is a store as it is at one moment. It is not for concurrent use. Close must be called.
type Snapshot interface {
	Identity() Identity
	// Rows yields the rows of a part, of one that only grows those behind a place. A row is valid until
	// the next one is asked for, its bytes are the caller's.
	Rows(ctx context.Context, part Part, after int64) iter.Seq2[*Row, error]
	// Count returns how many rows of a part that only grows there are up to a place.
	Count(ctx context.Context, part Part, upTo int64) (int64, error)
	Close() error
}

// A Source is a store that can be copied.
type Source interface {
	// Name says which store it is, without any password.
	Name() string
	Snapshot(ctx context.Context) (Snapshot, error)
	// ID tells the store from every other one, however it is named; "" if its name does.
	ID(ctx context.Context) (string, error)
	// Frozen returns for which store it is frozen, "" if it is not.
	Frozen(ctx context.Context) (to string, err error)
	// Freeze has everybody who writes to the store refused, who is told its new name, once it
	// returns; with "" nobody is any more.
	Freeze(ctx context.Context, to string) error
	// Close gives back what copying took; the store stays open.
	Close() error
}

// A Target is a store that another one is copied to. Nobody else can open it from Begin to Finish.
type Target interface {
	Source
	// Begin makes the store one into which a copy of another one is under way. It returns [ErrOther] if
	// it is neither empty nor a copy of that store, [ErrCopied] if it is one and resume is not set, and
	// [ErrChanged] if it was written to since.
	Begin(ctx context.Context, of Identity, from string, resume bool) error
	// At returns how far a part is.
	At(ctx context.Context, part Part) (Cursor, error)
	// Add adds rows of a part and says how far it is then, all of it or nothing. What is there
	// already, of a part that does not only grow, stays as it is.
	Add(ctx context.Context, part Part, rows []Row, now Cursor) error
	// Clear removes all rows of the audit of models.
	Clear(ctx context.Context) error
	// Rebuild makes everything anew that follows from what was copied, and verifies all of it. told is
	// told how many of how many records were read. It returns a [session.CorruptError] for what is damaged.
	Rebuild(ctx context.Context, programs *session.Programs, told func(step string, done, of int64)) error
	// Finish makes it a store like every other.
	Finish(ctx context.Context) error
}

// A Refusal says why a store cannot be copied to another one, and what to do about it.
type Refusal struct{ problem, advice string }

func (e *Refusal) Error() string { return e.problem }

// Advice says what to do about it.
func (e *Refusal) Advice() string { return e.advice }

// Errors of [Target] Begin, and of [Copy].
var (
	ErrSame    = &Refusal{"it is the store itself", "name another one to copy it to"}
	ErrOther   = &Refusal{"it is another store, and is not written over", "name a store that is empty or a file that does not exist"}
	ErrCopied  = &Refusal{"it has a copy of that store already, or a part of one", "go on with --resume"}
	ErrChanged = &Refusal{"it has records that the other store does not have: it was used since, or is no copy that dialai store copy has made", "copy to an empty store"}
	ErrThawed  = &Refusal{"it was thawed, or copied to another place for good, while it was copied: the copy may lack what came then", "run it again, with --resume --final"}
	ErrArchive = &Refusal{"what is copied is an archive, and those are kept in files", "name a file to copy it to"}
)

// An UnfinishedError says that a store is a copy that was not finished.
type UnfinishedError struct{ From string }

func (e *UnfinishedError) Error() string { return "a copy of " + e.From + " into it is not finished" }

// Advice says what to do about it.
func (e *UnfinishedError) Advice() string {
	return "finish it: dialai store copy FROM TO --resume; it can be removed as well"
}

// A FrozenError says that a store was copied to another one for good.
type FrozenError struct{ To string }

func (e *FrozenError) Error() string {
	return "it was copied to " + e.To + ", which is used in its place"
}

// Advice says what to do about it.
func (e *FrozenError) Advice() string { return "use that one: --store " + e.To }

// Options say how a store is copied. The zero value is fine.
type Options struct {
	Resume   bool // TO has a part of a copy, or an older one
	Final    bool // FROM is frozen, and what has come meanwhile is copied
	Programs *session.Programs
	// Frozen is called with the name of TO once FROM is frozen, and Finishing before TO becomes a store like every other: what
	// servers remember is copied there. An error ends the copy, which goes on with Resume. nil does nothing.
	Frozen    func(ctx context.Context, to string) error
	Finishing func(ctx context.Context) error
	// Told is told how many of how many rows a step has done: "copying", "rebuilding", "verifying",
	// "comparing". nil tells nobody.
	Told func(step string, done, of int64)

	after func(step string) error // of tests: fails, or ends the process, after a step
	batch int                     // rows of a transaction; 0 means batchRows
}

// A Report says what a copy has done.
type Report struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Sessions int64  `json:"sessions"` // that the copy has
	Records  int64  `json:"records"`  // of sessions, that it has
	Copied   int64  `json:"copied"`   // rows of all kinds that this run has copied
	Frozen   bool   `json:"frozen"`
}

// The bounds of a transaction.
const (
	batchRows  = 5000
	batchBytes = 16 << 20
)

// Copy copies a store to another one, or goes on with that. Interrupted, it can be run again with Resume set.
func Copy(ctx context.Context, from Source, to Target, o Options) (Report, error) {
	if o.Told == nil {
		o.Told = func(string, int64, int64) {}
	}
	if o.after == nil {
		o.after = func(string) error { return nil }
	}
	if o.batch == 0 {
		o.batch = batchRows
	}
	if o.Programs == nil {
		o.Programs = session.NewPrograms()
	}
	if o.Frozen == nil {
		o.Frozen = func(context.Context, string) error { return nil }
	}
	if o.Finishing == nil {
		o.Finishing = func(context.Context) error { return nil }
	}
	c := &copying{from: from, to: to, o: o, report: Report{From: from.Name(), To: to.Name()}}
	if err := c.run(ctx); err != nil {
		return c.report, err
	}
	return c.report, nil
}

// A copying is one run of Copy.
type copying struct {
	from   Source
	to     Target
	o      Options
	report Report
}

func (c *copying) run(ctx context.Context) error {
	snapshot, err := c.from.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = snapshot.Close() }() // the last one; it has only read
	if err := c.mayCopy(ctx); err != nil {
		return err
	}
	if err := c.to.Begin(ctx, snapshot.Identity(), c.from.Name(), c.o.Resume); err != nil {
		return err
	}
	if err := c.o.after("begun"); err != nil {
		return err
	}
	if err := c.parts(ctx, snapshot); err != nil {
		return err
	}
	if c.o.Final {
		if err := c.from.Freeze(ctx, c.to.Name()); err != nil {
			return fmt.Errorf("freezing %s: %w", c.from.Name(), err)
		}
		c.report.Frozen = true
		if err := c.o.after("frozen"); err != nil {
			return err
		}
		if err := c.o.Frozen(ctx, c.to.Name()); err != nil {
			return fmt.Errorf("what servers remember: %w", err)
		}
		if err := snapshot.Close(); err != nil {
			return err
		}
		if snapshot, err = c.from.Snapshot(ctx); err != nil {
			return err
		}
		if err := c.parts(ctx, snapshot); err != nil {
			return err
		}
	}
	if err := c.to.Rebuild(ctx, c.o.Programs, c.o.Told); err != nil {
		return err
	}
	if err := c.o.after("rebuilt"); err != nil {
		return err
	}
	if err := c.compare(ctx, snapshot); err != nil {
		return err
	}
	if err := c.o.after("compared"); err != nil {
		return err
	}
	if err := c.o.Finishing(ctx); err != nil {
		return fmt.Errorf("what servers remember: %w", err)
	}
	if c.o.Final { // somebody may have thawed it, or copied it to another place for good
		switch to, err := c.from.Frozen(ctx); {
		case err != nil:
			return err
		case to != c.to.Name():
			return ErrThawed
		}
	}
	return c.to.Finish(ctx)
}

// mayCopy returns an error if the two are one store, or if one that is to be copied for good went elsewhere.
func (c *copying) mayCopy(ctx context.Context) error {
	from, err := c.from.ID(ctx)
	if err != nil {
		return err
	}
	to, err := c.to.ID(ctx)
	if err != nil {
		return err
	}
	if c.from.Name() == c.to.Name() || from != "" && from == to {
		return ErrSame
	}
	if !c.o.Final {
		return nil
	}
	switch went, err := c.from.Frozen(ctx); {
	case err != nil:
		return err
	case went != "" && went != c.to.Name():
		return &Refusal{"it was copied to " + went + " for good", "copy that one; or let this one be written to again: dialai store copy FROM --thaw"}
	}
	return nil
}

// parts copies what the target lacks.
func (c *copying) parts(ctx context.Context, snapshot Snapshot) error {
	for _, part := range all {
		if err := c.part(ctx, snapshot, part); err != nil {
			return err
		}
		if err := c.o.after("copied " + string(part)); err != nil {
			return err
		}
	}
	return nil
}

// part copies the rows of a part that come after those that the target has.
func (c *copying) part(ctx context.Context, snapshot Snapshot, part Part) error {
	at, err := c.begin(ctx, snapshot, part)
	if err != nil {
		return err
	}
	var of int64
	if part == Log {
		if of, err = snapshot.Count(ctx, part, last); err != nil {
			return err
		}
		c.o.Told("copying", at.Count, of)
	}
	var rows []Row
	var size int
	flush := func() error {
		if err := c.to.Add(ctx, part, rows, at); err != nil {
			return err
		}
		c.report.Copied += int64(len(rows))
		if part == Log {
			c.o.Told("copying", at.Count, max(of, at.Count))
		}
		clear(rows)
		rows, size = rows[:0], 0
		return c.o.after("copying " + string(part))
	}
	for row, err := range snapshot.Rows(ctx, part, at.Place) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = check(part, row)
		}
		if err != nil {
			return err
		}
		rows = append(rows, *row)
		if size += len(row.Body) + 256; part.Appended() {
			at = Cursor{row.Place, at.Count + 1}
		}
		if len(rows) >= c.o.batch || size >= batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(rows) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if part == Log {
		c.report.Records = at.Count
	}
	return nil
}

// last is a place that no row is behind.
const last = int64(1)<<62 - 1

// begin returns from where a part is copied. Entries of the audit of models of a database may come with
// lower places than those that are there: then all of it is copied anew, for it has to be in order.
func (c *copying) begin(ctx context.Context, snapshot Snapshot, part Part) (at Cursor, err error) {
	if !part.Appended() {
		return at, nil
	}
	if at, err = c.to.At(ctx, part); err != nil || part != Audit || at.Count == 0 {
		return at, err
	}
	n, err := snapshot.Count(ctx, part, at.Place)
	if err != nil || n == at.Count {
		return at, err
	}
	return Cursor{}, c.to.Clear(ctx)
}

// compare holds the last record of each log of the copy to that of the store as it was copied.
func (c *copying) compare(ctx context.Context, snapshot Snapshot) error {
	made, err := c.to.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }()
	next, stop := iter.Pull2(made.Rows(ctx, Heads, 0))
	defer stop()
	differs := func(of string) error {
		return &session.CorruptError{What: of, Problem: fmt.Sprintf("its log does not end in %s as in %s: see what dialai store verify says of either", c.from.Name(), c.to.Name())}
	}
	var done int64
	for want, err := range snapshot.Rows(ctx, Heads, 0) {
		if err != nil {
			return err
		}
		got, err, ok := next()
		switch {
		case err != nil:
			return err
		case !ok || got.Of != want.Of || got.First != want.First || got.Place != want.Place || string(got.Hash) != string(want.Hash):
			return differs(want.Of)
		}
		if got.Place != 0 {
			c.report.Sessions++
		}
		if done++; done%1000 == 0 {
			c.o.Told("comparing", done, done)
		}
	}
	if got, err, ok := next(); err != nil {
		return err
	} else if ok {
		return differs(got.Of)
	}
	return nil
}
