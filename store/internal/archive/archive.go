// Package archive moves whole sessions that have ended from a store to a file, in whatever the store is kept.
package archive

import (
	"context"
	"errors"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A store grows with every session, and most of it is asked for no more. Archiving moves the whole
// logs of sessions that have ended to a file, an ordinary store that every command reads.
// What they taught stays: alignment, lessons and exemplars, what their decisions come to, and in the rows
// of archived what these follow from, so that verify and rebuild go on proving them.
//
// It goes in three steps, each of which can be interrupted and is done again by the next
// run. The logs are copied, with their places; then everything that follows from them is written in
// the archive, and all of that file verified; then those sessions are deleted whose last record is still the
// one that the archive has, some at a time, each in the transaction that says where it went. So at every
// moment a session is in at least one of the two.
//
// A store that was set back to a backup gives numbers and places a second time. So an archive takes only what
// goes on from what it has: it never loses a record, nor has two at a place.
//
// Numbers of rows are given on from the highest one, and places must never be given twice: so the session that
// began last, and those that hold the newest record of a log, stay.

// Options say what is archived.
type Options struct {
	Before      specialist.Time  // sessions that have changed since stay
	MachineName string           // "" for all
	Statuses    []session.Status // none means those that are completed; those that live stay in any case
	To          string           // path of the archive: a new file, or an archive of the same store
	At          specialist.Time  // now
	Programs    *session.Programs
	Compact     bool                    // a store's file gives back the room
	Copied      func(done, of int64)    // told of sessions that are copied; nil tells nobody
	Checked     func(done, of int64)    // of records of the archive that are verified
	Deleted     func(done, of int64)    // of sessions that are deleted
	Batch       int                     // sessions of one transaction; 0 means 1,000
	After       func(step string) error // called after each step, and ends it there by an error; nil is told nothing
}

// Fill fills in what is left out.
func (o *Options) Fill() {
	for _, told := range []*func(done, of int64){&o.Copied, &o.Checked, &o.Deleted} {
		if *told == nil {
			*told = func(int64, int64) {}
		}
	}
	if o.After == nil {
		o.After = func(string) error { return nil }
	}
	if o.Batch == 0 {
		o.Batch = 1000
	}
	if len(o.Statuses) == 0 {
		o.Statuses = []session.Status{session.Completed}
	}
}

// Archived is what was archived.
type Archived struct {
	Sessions int64  `json:"sessions"`
	Records  int64  `json:"records"`
	Bytes    int64  `json:"bytes"`             // of their events, as they are stored
	Archive  string `json:"archive,omitempty"` // the file; "" if nothing is to be moved
	// Kept counts the sessions that meet the conditions and stay: those that hold the newest record of
	// a log, and those that somebody changed meanwhile.
	Kept int64 `json:"kept"`
}

// ErrNone is the error of archiving into a file that is no archive of the store, or that has other
// records than it at the same places: the store was set back to a backup since.
var ErrNone = errors.New("it is no archive of this store, or the store was set back to a backup since")

// A Store is one whose sessions are moved, with the archive that is open.
type Store interface {
	// Next returns the rows of sessions that are to be moved and come after one, in order, as many as a transaction moves.
	Next(ctx context.Context, after int64) ([]int64, error)
	// Copy copies the logs of sessions to the archive, all or nothing. Of those that it has already, from
	// a run that was interrupted, what has come since is copied.
	Copy(ctx context.Context, rows []int64) error
	// Verify writes what follows from the logs of the archive, checks all of it, and returns the names of its machines.
	Verify(ctx context.Context) (machines []string, err error)
	// Count has the decisions of a machine counted that are to be deleted: whoever has counted some of them, and meets no
	// others, goes on from there.
	Count(ctx context.Context, machineName string) error
	// Delete deletes those of the sessions that the archive has as they are, and keeps where they went, all or
	// nothing. It returns what done is then.
	Delete(ctx context.Context, rows []int64, done Archived) (Archived, error)
	// Left returns what is still to be moved.
	Left(ctx context.Context) (Archived, error)
}

// Run moves sessions, all of which are as many as that says, to the archive of a path. The options are filled.
func Run(ctx context.Context, s Store, o *Options, path string, all Archived) (done Archived, err error) {
	copied := int64(0)
	if err := each(ctx, s, func(rows []int64) error {
		if err := s.Copy(ctx, rows); err != nil {
			return err
		}
		copied += int64(len(rows))
		o.Copied(copied, all.Sessions)
		return o.After("copying")
	}); err != nil {
		return done, err
	}
	if err := o.After("copied"); err != nil {
		return done, err
	}
	machines, err := s.Verify(ctx)
	if err != nil {
		return done, err
	}
	if err := o.After("verified"); err != nil {
		return done, err
	}
	for _, name := range machines {
		if err := s.Count(ctx, name); err != nil {
			return done, err
		}
	}
	if err := o.After("counted"); err != nil {
		return done, err
	}
	done = Archived{Archive: path}
	if err := each(ctx, s, func(rows []int64) error {
		if done, err = s.Delete(ctx, rows, done); err != nil {
			return err
		}
		o.Deleted(done.Sessions, all.Sessions)
		return o.After("deleting")
	}); err != nil {
		return done, err
	}
	left, err := s.Left(ctx)
	done.Kept = left.Sessions + left.Kept
	return done, err
}

// each has do see the rows of the sessions that are to be moved, some at a time, in order. What do
// changes may leave the next ones out.
func each(ctx context.Context, s Store, do func(rows []int64) error) error {
	for last := int64(0); ; {
		rows, err := s.Next(ctx, last)
		if err != nil || len(rows) == 0 {
			return err
		}
		last = rows[len(rows)-1]
		if err := do(rows); err != nil {
			return err
		}
	}
}
