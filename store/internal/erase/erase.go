// Package erase takes payloads out of sessions that have ended, in whatever store they are kept.
package erase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/pack"
)

// Payloads are taken out of sessions that have ended, and out of their forks, which have copies of
// them: what was said is gone, and what happened, what it cost and what it taught stays, and is verified
// and rebuilt as before (session/erase.go says how, session.go here what is written).
//
// Each session is one transaction, forks before what they were forked from: so a run that was
// interrupted finds the rest again when it is run again, also by the subject, which goes with the
// last of them. What a server remembers of a session goes before the session does. Then what was there is overwritten,
// for it still stands where the store kept it; a row of erasing says that this is still to be done.

// Options say what is erased: Session, or Subject.
type Options struct {
	Session  specialist.SessionID
	Subject  string // the whole subject that sessions have now; "" for that of Session alone
	Archive  string // path of a file to which sessions were archived, and in which they are erased, too; "" is none
	Note     string // why; it is recorded, so it names nobody
	Actor    *session.Actor
	At       specialist.Time // now
	Programs *session.Programs
	Page     int // sessions that are looked at at a time; 0 means 1,000
	// After is called after each step of Erase, and ends it there by an error. nil is told nothing.
	After func(step string) error
}

// Erased is what was erased, or would be.
type Erased struct {
	Sessions []Session `json:"sessions"`
	// Remembered counts what a server had kept of the sessions beside the store.
	Remembered int64 `json:"remembered"`
	// Origins are sessions that some of these were forked from: they have what these had, and were not
	// erased.
	Origins []string `json:"origins,omitempty"`
	// Archives are the files to which sessions of the store were archived: forks may be there.
	Archives []string `json:"archives,omitempty"`
}

// A Session is one of them.
type Session struct {
	SessionID   string `json:"sessionId"`
	MachineName string `json:"machineName"`
	Status      string `json:"status"`
	ForkedFrom  string `json:"forkedFrom,omitempty"`
	Archive     string `json:"archive,omitempty"` // the file that it was archived to
	Records     int    `json:"records"`           // of its log that are other ones now
	AgentLog    int    `json:"agentLog"`          // entries
	Audit       int    `json:"audit"`             // entries of the audit of models
}

// Errors of erasing.
var (
	// ErrArchive: the store is an archive; what its sessions taught, and the audit of models, is in
	// the one that it was made of.
	ErrArchive = errors.New("it is an archive, and what its sessions taught stands in the store that it was archived from")
	// ErrArchiving: another process archives or erases sessions of the store.
	ErrArchiving = errors.New("another process archives the store, or erases in it")
	// ErrStillRead: the sessions were erased, but what was there before is still in use.
	ErrStillRead = errors.New("the sessions are erased, but another process still reads what was there, so it could not be overwritten yet")
)

// A LiveError says that a session lives, so that nothing was erased.
type LiveError struct {
	ID, Status, ForkedFrom string
}

func (e *LiveError) Error() string {
	fork := ""
	if e.ForkedFrom != "" {
		fork = ", which was forked from session " + e.ForkedFrom + ","
	}
	return fmt.Sprintf("session %s%s has not ended: it is %s", e.ID, fork, e.Status)
}

// A View is a store as it is at one moment.
type View interface {
	// Look returns what a run goes by. It returns an error if nothing may be erased in the store.
	Look(ctx context.Context, o *Options) (Looked, error)
	// Families returns the sessions that began after one, n of them or fewer, in the order in which they began; none if that
	// was the last one. Those after the zero Family are the first ones.
	Families(ctx context.Context, after Family, n int) ([]Family, error)
	// Stored returns what is stored of a session.
	Stored(ctx context.Context, f Family) (*Stored, error)
}

// Looked is what a run goes by.
type Looked struct {
	Named      []string // ids of those that the options name
	Missing    error    // of the session that they name, if it is not there
	Unfinished bool     // a run that has erased something was not finished
	Archives   []string // in order
}

// A Store is one in which sessions are erased.
type Store interface {
	View
	// Remembered deletes what a server keeps of sessions beside the store, and returns how many rows that were.
	Remembered(ctx context.Context, ids []string) (int64, error)
	// Write prepares and writes, in one transaction, what is left of a session. prepare reads that transaction, and
	// returns nil, or what is not [Erasure].Nothing to write.
	Write(ctx context.Context, f Family, prepare func(View) (*Erasure, error)) error
	// Overwrite sees to it that nothing is left of what was erased, if something was. It calls overwritten before it
	// keeps that it has done so.
	Overwrite(ctx context.Context, overwritten func() error) error
}

// Naming says where a server keeps what names sessions: what it has answered, what webhooks are still to be
// told, what came of jobs, and notes of who has taken a question. Its audit log stays: it has no payloads.
var Naming = []struct {
	Table   string
	Columns []string // the id stands in one of them; a column may be NULL
	Begins  bool     // with the id
}{
	{"receipts", []string{"location", "answer"}, false},
	{"deliveries", []string{"body"}, false},
	{"results", []string{"result", "finding"}, false},
	{"claims", []string{"question_id"}, true},
}

// Erasable returns what Run would erase; of sessions that are not found, as Run does, the archives in which they may be. remembered counts what a server keeps of sessions.
func Erasable(ctx context.Context, v View, o Options, remembered func(ctx context.Context, ids []string) (int64, error)) (Erased, error) {
	e := erasing{o: o.filled(), roots: map[string]bool{}}
	plan, err := e.plan(ctx, v)
	if err != nil {
		return e.report, err
	}
	for _, f := range plan {
		done, err := prepare(ctx, v, f, &e.o)
		if err != nil {
			return Erased{}, err
		}
		e.count(done)
	}
	e.report.Remembered, err = remembered(ctx, ids(plan))
	return e.report, err
}

// Run erases. Interrupted, it can be run again. It returns a [LiveError] if one of the sessions, or of their forks,
// lives, and then changes nothing, and [ErrStillRead] if it has to be run again for the rest.
func Run(ctx context.Context, s Store, o Options) (Erased, error) {
	e := erasing{o: o.filled(), roots: map[string]bool{}, seen: map[string]bool{}}
	err := e.run(ctx, s)
	return e.report, err
}

// filled returns the options with what was left out.
func (o Options) filled() Options {
	if o.After == nil {
		o.After = func(string) error { return nil }
	}
	if o.Page == 0 {
		o.Page = 1000
	}
	return o
}

// An erasing is one run.
type erasing struct {
	o      Options
	roots  map[string]bool // ids of the sessions that were named
	seen   map[string]bool // ids of those that were erased
	report Erased
}

func (e *erasing) run(ctx context.Context, s Store) error {
	for {
		plan, err := e.plan(ctx, s)
		if err != nil {
			return err
		}
		plan = slices.DeleteFunc(plan, func(f Family) bool { return e.seen[f.ID] })
		if len(plan) == 0 {
			break
		}
		n, err := s.Remembered(ctx, ids(plan))
		if e.report.Remembered += n; err != nil {
			return err
		}
		if err := e.o.After("forgotten"); err != nil {
			return err
		}
		for _, f := range plan {
			if err := e.one(ctx, s, f); err != nil {
				return err
			}
			if err := e.o.After("erased"); err != nil {
				return err
			}
		}
	}
	return s.Overwrite(ctx, func() error { return e.o.After("overwritten") })
}

// one erases one session.
func (e *erasing) one(ctx context.Context, s Store, f Family) error {
	var done *Erasure
	if err := s.Write(ctx, f, func(v View) (*Erasure, error) {
		var err error
		done, err = prepare(ctx, v, f, &e.o)
		return done, err
	}); err != nil {
		return err
	}
	e.seen[f.ID] = true
	e.count(done)
	return nil
}

// count adds what was erased to the report.
func (e *erasing) count(done *Erasure) {
	if !done.Nothing() {
		e.report.Sessions = append(e.report.Sessions, Session{done.ID, done.Machine, done.Status, done.From, done.Archive, len(done.Records), len(done.Agents), len(done.Audit)})
	}
}

// A Family is a session, and what it was forked from.
type Family struct {
	Row        int64
	ID, Status string
	From       string       // "" if it is no fork
	First      session.Hash // of its first record
	Archive    string       // path of the file that it was archived to; "" if the store itself has it
}

// Began fills in what the first record of a session, as it is stored, says that it was forked from. It returns the
// memory that it has used, for the next one.
func (f *Family) Began(buffer, stored []byte) ([]byte, error) {
	damaged := func(err error) error { return session.Corrupt("the log of session "+f.ID, err) }
	f.From = ""
	events, err := pack.Unpack(buffer, stored)
	if err != nil {
		return buffer, damaged(err)
	}
	if bytes.Contains(events, []byte(`"forkedFrom"`)) {
		raw, err := session.SplitRaw(nil, events)
		if err != nil || len(raw) == 0 {
			return buffer, damaged(errors.New("its first record cannot be read"))
		}
		_, options, err := raw[0].Creation()
		if err != nil {
			return buffer, damaged(err)
		}
		if options.ForkedFrom != nil {
			f.From = options.ForkedFrom.SessionID
		}
	}
	if &events[0] == &stored[0] { // it is not ours
		return buffer, nil
	}
	return events, nil
}

// ids returns the ids of sessions.
func ids(plan []Family) []string {
	list := make([]string, len(plan))
	for i := range plan {
		list[i] = plan[i].ID
	}
	return list
}

// plan returns the sessions that are named, and their forks: what was forked before what it was forked from.
func (e *erasing) plan(ctx context.Context, v View) ([]Family, error) {
	l, err := v.Look(ctx, &e.o)
	if err != nil {
		return nil, err
	}
	e.report.Archives = l.Archives
	if err := e.named(&l); err != nil {
		return nil, err
	}
	plan, err := e.descent(ctx, v)
	if err != nil {
		return nil, err
	}
	in, from := map[string]bool{}, map[string]string{}
	for _, f := range plan {
		in[f.ID], from[f.ID] = true, f.From
	}
	e.report.Origins = nil
	for _, f := range plan {
		if f.From != "" && !in[f.From] {
			e.report.Origins = append(e.report.Origins, f.From)
		}
		if err := f.ended(f.Status); err != nil {
			return nil, err
		}
	}
	generation := func(f Family) (n int) {
		for ; in[f.From] && n < len(plan); n++ {
			f.From = from[f.From]
		}
		return n
	}
	slices.SortStableFunc(plan, func(x, y Family) int { return generation(y) - generation(x) })
	return plan, nil
}

// descent returns the sessions that are named, and all that were forked from them. It holds a page of the others at a time, and
// goes through them until it has found no more: a fork may have been forked itself, and need not come behind.
func (e *erasing) descent(ctx context.Context, v View) (plan []Family, err error) {
	in := map[string]bool{}
	for grew := len(e.roots) > 0; grew; {
		grew = false
		for page := []Family{{}}; len(page) > 0; {
			if page, err = v.Families(ctx, page[len(page)-1], e.o.Page); err != nil {
				return nil, err
			}
			for _, f := range page {
				if !in[f.ID] && (e.roots[f.ID] || in[f.From]) {
					in[f.ID], grew, plan = true, true, append(plan, f)
				}
			}
		}
	}
	return plan, nil
}

// ended returns an error if a session lives.
func (f *Family) ended(text string) error {
	var status session.Status
	if err := status.UnmarshalText([]byte(text)); err != nil || status.Live() {
		return &LiveError{f.ID, text, f.From}
	}
	return nil
}

// named keeps the sessions that are named, unless it has.
func (e *erasing) named(l *Looked) error {
	if len(e.roots) > 0 {
		return nil
	}
	for _, id := range l.Named {
		e.roots[id] = true
	}
	switch {
	case len(e.roots) > 0:
		return nil
	case e.o.Subject == "":
		return l.Missing
	case l.Unfinished: // the subject went with the last of them
		return nil
	}
	return &session.NotFoundError{What: "Session with the subject", ID: e.o.Subject}
}
