package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A disk is the store as one process sees it, with a cache of its own.
type disk struct {
	session.Store
	p    *process
	seen map[specialist.SessionID]*session.Session
}

var errDisk = errors.New("injected: the disk has failed")

// spoiled reports whether this operation of the disk is the one that fails.
func (d *disk) spoiled() error {
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	if d.p.dead {
		return errDead
	}
	if d.p.failIn > 0 {
		if d.p.failIn--; d.p.failIn == 0 {
			return errDisk
		}
	}
	return nil
}

// Ways of a commit.
const (
	done        = "done"
	failed      = "fails"
	unsure      = "is done, but the disk reports an error"
	crashBefore = "crash before it"
	crashAfter  = "is done, and the process crashes"
)

// Commit implements [session.SessionStore].
func (d *disk) Commit(ctx context.Context, c *session.Change) error {
	if err := d.spoiled(); err != nil {
		return err
	}
	p, w := d.p, d.p.w
	how := w.park(p, p.activityOf(ctx)+" commits "+inShort(c), func() []way {
		return []way{{done, 40, false}, {failed, 1, true}, {unsure, 1, true}, {crashBefore, 1, true}, {crashAfter, 2, true}}
	})
	switch how {
	case gone:
		return errDead
	case failed:
		return errDisk
	case crashBefore:
		d.crash()
		return errDead
	}
	c, there := w.mutated(d, c)
	var err error
	if there {
		err = d.Store.Commit(ctx, c)
	}
	if err == nil {
		w.mu.Lock()
		w.news = append(w.news, commit{p, actOf(ctx), c.After, c.First, c.Before})
		w.mu.Unlock()
		d.seen[c.After.ID] = c.After
	}
	switch how {
	case crashAfter:
		d.crash()
		return errDead
	case unsure:
		delete(d.seen, c.After.ID)
		return errors.Join(errDisk, err)
	}
	return err
}

// mutated returns what is stored in place of a change, and whether anything is.
func (w *world) mutated(d *disk, c *session.Change) (*session.Change, bool) {
	if w.mutation == nil || w.mutation.commit == nil {
		return c, true
	}
	return w.mutation.commit(d, c)
}

// crash marks the process as dead from within; the scheduler sees to the rest.
func (d *disk) crash() {
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	d.p.dead = true
}

// inShort says which kinds of events a change holds.
func inShort(c *session.Change) string {
	var kinds []string
	for _, e := range c.Events {
		kinds = append(kinds, e.Data.Kind())
	}
	return fmt.Sprintf("%d %s", c.First, strings.Join(slices.Compact(kinds), "+"))
}

// Load implements [session.SessionStore]. Each process folds the log for itself.
func (d *disk) Load(ctx context.Context, programs *session.Programs, id specialist.SessionID) (*session.Session, error) {
	if err := d.spoiled(); err != nil {
		return nil, err
	}
	if d.p.w.park(d.p, d.p.activityOf(ctx)+" loads", func() []way { return []way{{done, 40, false}} }) == gone {
		return nil, errDead
	}
	s, err := d.Store.Load(ctx, programs, id)
	if err != nil {
		return nil, err
	}
	if known := d.seen[id]; known != nil && known.Sequence == s.Sequence {
		return known, nil
	}
	f, err := d.p.w.fold(ctx, programs, id)
	if err != nil {
		return nil, err
	}
	d.seen[id] = f.Session()
	d.seen[id].Head = s.Head
	return d.seen[id], nil
}

// fold reads a session's log.
func (w *world) fold(ctx context.Context, programs *session.Programs, id specialist.SessionID) (*session.Folder, error) {
	for _, m := range []*machine.Machine{w.machine, w.other} {
		if _, err := programs.Of(m); err != nil {
			return nil, err
		}
	}
	f := &session.Folder{Programs: programs}
	for rec, err := range w.base.Records(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if _, err := f.Add(bytes.Clone(rec.Events)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Recent implements [session.SessionStore]: what this process saw last, however long
// ago.
func (d *disk) Recent(id specialist.SessionID) *session.Session { return d.seen[id] }

// Roster implements [session.RosterStore]. It is read whenever a step looks at its
// session: while requests are being sent, that waits until they are on their way, or a
// race would decide which are.
func (d *disk) Roster(ctx context.Context, name string) (*session.Roster, error) {
	d.p.w.mu.Lock()
	flying := d.p.flying
	d.p.w.mu.Unlock()
	if flying > 0 && d.p.w.park(d.p, d.p.activityOf(ctx)+" looks", func() []way { return []way{{done, 60, false}} }) == gone {
		return nil, errDead
	}
	if err := d.spoiled(); err != nil {
		return nil, err
	}
	return d.Store.Roster(ctx, name)
}

// Claim implements [session.OwnerStore].
func (d *disk) Claim(context.Context) (session.Owner, error) {
	if err := d.spoiled(); err != nil {
		return nil, err
	}
	d.p.w.mu.Lock()
	defer d.p.w.mu.Unlock()
	d.p.w.ids++
	o := owner{d.p.w, fmt.Sprintf("%s-%d-%d", d.p.name, d.p.lives, d.p.w.ids)}
	d.p.w.owners[o.name] = d.p
	return o, nil
}

// Alive implements [session.OwnerStore]: the owner's process has not crashed since,
// and the table still has it.
func (d *disk) Alive(_ context.Context, name string) (bool, error) {
	if err := d.spoiled(); err != nil {
		return false, err
	}
	return d.p.w.alive(name) && !d.p.w.mutation.is("owners are taken for lost"), nil
}

func (w *world) alive(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.owners[name]
	return p != nil && !p.dead && strings.HasPrefix(name, fmt.Sprintf("%s-%d-", p.name, p.lives))
}

type owner struct {
	w    *world
	name string
}

func (o owner) Name() string { return o.name }

func (o owner) Release() error {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	delete(o.w.owners, o.name)
	return nil
}
