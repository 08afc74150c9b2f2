package postgres

import (
	"context"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
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

// SnapshotAt returns up to which event a snapshot is kept of a session, once all are written that are due.
func (s *Store) SnapshotAt(ctx context.Context, id specialist.SessionID) (int64, error) {
	s.keeper.Wait()
	return one[int64](ctx, s, `SELECT coalesce(max(sequence), 0) FROM snapshots WHERE session=(SELECT id FROM sessions WHERE session_id=$1)`, [16]byte(id))
}

// Forget drops what is cached.
func (s *Store) Forget() { s.forget() }

// Used reports whether what the cache has of a session was folded from a snapshot.
func (s *Store) Used(id specialist.SessionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := s.sessions.Get(id)
	return v.snapshots.Kept > 0
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

// Timed returns options with which this process has a clock of its own.
func Timed(o Options, clock func() time.Time) Options {
	o.clock = clock
	return o
}

// LeaveQuotas has all that this process holds of quotas be charged by whoever comes next.
func (s *Store) LeaveQuotas() { s.leaveQuotas() }

// Hurried returns options with which leases run out so many times as fast.
func Hurried(o Options, times int) Options {
	o.hurry = times
	return o
}

// LeaveMany has a worker leave as many sessions of a machine to others as it can remember, for so long.
func LeaveMany(w session.Worker, machine int64, d time.Duration) {
	of := w.(*worker)
	of.sending.Lock()
	defer of.sending.Unlock()
	for i := range int64(leftAtMost) {
		of.left.leave(&lease{row: -i - 1, machine: machine}, time.Now().Add(d))
	}
}

// Renewing returns what renews the owners of this process, by a connection that is opened now.
func (d *database) Renewing(ctx context.Context) (renew func(), err error) {
	conn, err := d.connect(ctx)
	return func() { d.owners.renewOnce(ctx, conn) }, err
}

// Mute has the store tell no other process what it commits. It is called before anything is committed.
func (s *Store) Mute() { s.wakes.kick = make(chan struct{}, 1) }

// FoldLogs folds the logs of the first sessions as a rebuild does, and returns whose they are, up to the first that is damaged, and why
// that is.
func (s *Store) FoldLogs(ctx context.Context) (ids []string, err error) {
	b := &rebuild{copied: &copied{s: s}, programs: session.NewPrograms()}
	defer b.hangUp(ctx)
	if err := b.connect(ctx); err != nil {
		return nil, err
	}
	rows, err := b.readers[0].page(ctx, 0)
	for _, f := range b.fold(ctx, rows) {
		if f.err != nil {
			return ids, f.err
		}
		ids = append(ids, f.row.ID)
	}
	return ids, err
}
