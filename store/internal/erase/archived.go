package erase

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/projection"
)

// Where sessions were archived, their logs are in a file, and the store has kept what they taught, exemplars with it, and the audit
// of models. The two are not one transaction: first goes what the store has kept, with the sums by which what is left of
// the audit is proven, and then the log in the file, by which the session is found again until then. So a run that was interrupted
// finishes when it is run again.
//
// A session may be in both, where archiving was interrupted, or somebody took it up again meanwhile. The store has it then, and the file
// a copy, or the beginning of one, which is removed: the next archiving makes it anew.

// A Keeper is a store that has kept something of the sessions that were archived from it.
type Keeper interface {
	Store
	// Among returns which of the sessions the store has itself.
	Among(ctx context.Context, ids []string) ([]string, error)
	// Kept returns what the store has kept of a session that was archived.
	Kept(ctx context.Context, id string) (Kept, error)
	// Forget takes what [Erasure.Keep] says out of what the store has kept of a session, and writes the rest of the audit of models, in
	// one transaction. Of a session of which it has kept nothing it does nothing.
	Forget(ctx context.Context, x *Erasure) error
}

// Kept is what a store has kept of a session that was archived; the zero value is nothing.
type Kept struct {
	Taught []byte // as it is stored; nil if the session was not archived
	Audit  []Row  // of models
}

// An Archive is a file to which sessions were archived.
type Archive interface {
	Store
	Path() string
	// Drop removes a session whose first record has a hash, if there is one.
	Drop(ctx context.Context, first session.Hash) error
}

// WithArchive returns a store with an archive of it, in both of which sessions are erased. after is called between the two, and
// ends the run there by an error; nil is told nothing.
func WithArchive(s Keeper, a Archive, after func(step string) error) Store {
	if after == nil {
		after = func(string) error { return nil }
	}
	return &both{s, a, after}
}

type both struct {
	Keeper
	file  Archive
	after func(step string) error
}

// Look implements [View].
func (b *both) Look(ctx context.Context, o *Options) (Looked, error) {
	l, err := b.Keeper.Look(ctx, o)
	if err != nil {
		return l, err
	}
	there, err := b.file.Look(ctx, o)
	for _, id := range there.Named {
		if !slices.Contains(l.Named, id) {
			l.Named = append(l.Named, id)
		}
	}
	l.Unfinished = l.Unfinished || there.Unfinished
	l.Archives = slices.DeleteFunc(l.Archives, func(path string) bool { return path == b.file.Path() })
	return l, err
}

// Families implements [View]. Those of the archive come behind those of the store.
func (b *both) Families(ctx context.Context, after Family, n int) (page []Family, err error) {
	if after.Archive == "" {
		if page, err = b.Keeper.Families(ctx, after, n); err != nil || len(page) > 0 {
			return page, err
		}
		after = Family{}
	}
	for page, err = b.file.Families(ctx, after, n); err == nil && len(page) > 0; page, err = b.file.Families(ctx, after, n) {
		after = page[len(page)-1]
		here, err := b.Among(ctx, ids(page))
		if err != nil {
			return nil, err
		}
		page = slices.DeleteFunc(page, func(f Family) bool { return slices.Contains(here, f.ID) })
		if len(page) == 0 {
			continue
		}
		for i := range page {
			page[i].Archive = b.file.Path()
		}
		return page, nil
	}
	return nil, err
}

// Stored implements [View].
func (b *both) Stored(ctx context.Context, f Family) (*Stored, error) {
	if f.Archive == "" {
		return b.Keeper.Stored(ctx, f)
	}
	s, err := b.file.Stored(ctx, f)
	if err != nil {
		return nil, err
	}
	kept, err := b.Kept(ctx, f.ID)
	if err != nil {
		return nil, err
	}
	s.Audit = func(yield func(Row, error) bool) {}
	if kept.Taught != nil { // else nothing could prove what is left
		list, err := projection.UnpackTaught(kept.Taught)
		if err != nil {
			return nil, session.Corrupt("what is kept of archived session "+f.ID, err)
		}
		s.AuditErased = []string{}
		for i := range list {
			s.AuditErased = append(s.AuditErased, list[i].Erased...)
		}
		s.Audit = each(kept.Audit)
	}
	return s, nil
}

func each(rows []Row) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Write implements [Store].
func (b *both) Write(ctx context.Context, f Family, prepare func(View) (*Erasure, error)) error {
	if f.Archive == "" {
		if err := b.file.Drop(ctx, f.First); err != nil {
			return err
		}
		return b.Keeper.Write(ctx, f, prepare)
	}
	x, err := prepare(b) // whoever archives or erases has the lock of the store: nobody else writes to the file
	if err != nil {
		return err
	}
	if err := b.Forget(ctx, x); err != nil {
		return err
	}
	if err := b.after("forgotten in the store"); err != nil {
		return err
	}
	there := *x
	there.Audit = nil
	return b.file.Write(ctx, f, func(View) (*Erasure, error) { return &there, nil })
}

// Overwrite implements [Store].
func (b *both) Overwrite(ctx context.Context, overwritten func() error) error {
	err := b.file.Overwrite(ctx, overwritten)
	if err != nil && !errors.Is(err, ErrStillRead) {
		return err
	}
	return cmp.Or(err, b.Keeper.Overwrite(ctx, overwritten))
}

// Logged reports whether something was taken out of the log of the session, or out of that of its agents: then Last was appended.
func (x *Erasure) Logged() bool { return len(x.Records)+len(x.Agents) > 0 }

// Keep returns what is kept, packed, of what a session taught that was archived, and the texts of exemplars that are not. changed is
// false if that is what was kept before.
func (x *Erasure) Keep(taught []byte) (now []byte, exemplars []string, changed bool, err error) {
	list, err := projection.UnpackTaught(taught)
	if err != nil {
		return nil, nil, false, session.Corrupt("what is kept of archived session "+x.ID, err)
	}
	for i := range list {
		if t := &list[i]; t.Exemplar != "" {
			exemplars, t.Exemplar = append(exemplars, t.Exemplar), ""
		}
	}
	if len(x.Audit) > 0 {
		sums := make([]string, len(x.Audit))
		for i, r := range x.Audit {
			sums[i] = session.ErasedSum(r.Hash, x.ID, r.Now)
		}
		list = append(list, projection.Taught{Erased: sums})
	}
	now, err = projection.PackTaught(list)
	return now, exemplars, len(exemplars) > 0 || len(x.Audit) > 0 || x.Logged(), err
}
