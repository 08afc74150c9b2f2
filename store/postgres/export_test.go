package postgres

import (
	"context"

	"github.com/dialai/dialai/session"
)

// CommitTogether commits changes as one batch, in the order in which they are handed in, and returns what
// became of each.
func (s *Store) CommitTogether(ctx context.Context, changes ...*session.Change) (errs []error) {
	batch := make([]*job, len(changes))
	for i, c := range changes {
		p, err := s.pending(ctx, c)
		if err != nil {
			return []error{err}
		}
		batch[i] = &job{p: p}
	}
	s.hot.commit(batch)
	for i, j := range batch {
		errs = append(errs, j.err)
		if j.err == nil {
			changes[i].After.Head = &j.p.Record.Hash
		}
	}
	return errs
}

// RenewOwners renews the owners of this process now.
func (d *database) RenewOwners(ctx context.Context) error {
	conn, err := d.connect(ctx)
	if err == nil {
		defer conn.Close(ctx)
		d.owners.renewOnce(ctx, conn)
	}
	return err
}

// Hurried returns options with which leases run out so many times as fast.
func Hurried(o Options, times int) Options {
	o.hurry = times
	return o
}
