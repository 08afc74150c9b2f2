// Package postgres keeps sessions, and what a server must remember, in a database of Postgres, which many
// processes may use at once.
package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/snapshots"
	"github.com/dialai/dialai/store/internal/transfer"
)

// A process has a few connections, each opened when it is first needed: one that commits (lane.go), one
// that commits what has to be in order (below), one that renews its name (owner.go), one that claims and
// releases sessions (work.go), two that wake others and hear them (wake.go), one that counts what tenants use
// (quota.go), and a pool that reads.
//
// A commit is one statement that updates the session's row where its sequence number and its head are
// still those of before, and appends to the log from what it has updated: so it happens as a whole, once,
// or not at all (commit.go). What teaches, and rosters, commit one transaction after the other in all
// processes, for who folds lessons goes on after the last place and must miss none. All other commits
// pass each other; who follows the log reads up to where it is complete (history.go).
//
// What is cached is checked before it is used: a session by its head, what belongs to a machine name by
// versions that are at most 200 ms old (versions.go). All of it is dropped where a new connection finds
// that the store is not the one it was: a restored one, or a standby that took over.

// staleness is how old the versions may be by which a book or a roster is taken for current.
const staleness = 200 * time.Millisecond

// A Store keeps sessions in a schema of a database. Several processes may use it at once. A commit is as
// durable as the server makes it when it returns; commits that wait together share a transaction. Its
// methods may be called concurrently. Close must be called.
type Store struct {
	database
	hot     *lane // commits sessions
	ordered *lane // commits what has to be in the order of its places
	log     follower
	held    held
	wakes   wakes
	keeper  snapshots.Keeper
	quotas  quotas

	// What follows is guarded by database.mu.
	sessions *lru.Cache[specialist.SessionID, cached]
	machines *lru.Cache[string, *cachedMachine]
	defined  *lru.Cache[string, bool] // digests whose definitions are stored
	fresh    int64                    // number of the first partition of the log that may have to be made
}

var (
	_ session.Store        = (*Store)(nil)
	_ session.LedgerKeeper = (*Store)(nil)
	_ session.WorkStore    = (*Store)(nil)
	_ session.Watcher      = (*Store)(nil)
	_ session.Replaceable  = (*Store)(nil)
	_ session.Clock        = (*Store)(nil)
	_ session.QuotaStore   = (*Store)(nil)
)

// remembered is how many sessions, machine names and definitions are cached at least.
const remembered = 2048

// Options say how a store is used. The zero value is fine.
type Options struct {
	// Observe is told of each transaction that writes: of how many commits, how long it took, and why
	// it failed. It must not block; nil is told nothing.
	Observe func(commits int, took time.Duration, err error)
	// Migrating is told now and then, while a store of an older version is brought up to date, what is being
	// done that takes as long as the store is large, such as "reading the log", and with how many of how many
	// rows: at the end of each part with all. It must return soon; nil is told nothing.
	Migrating func(part string, done, of int64)
	// Existing refuses to make a store where there is none.
	Existing bool
	// Copy opens also a store into which a copy of another one is not finished: see [Store.Copying].
	Copy bool
	// Standby takes a server that can only be read, such as a standby, where the address names none that can be
	// written to; nothing may be written then. Who follows the log there is told what the server has, which may lack
	// a record whose commit another one has overtaken. Without it such a server is an error of Open.
	Standby bool
	// TooOld is told once this program is too old for the store, since that is for newer versions only: within 10 s
	// of that, with a [session.NewerError]. What was begun can still be ended, and then the process should end. It must
	// neither block nor use the store; nil is told nothing.
	TooOld func(error)

	hurry int              // how many times as fast leases run out, in tests; 0 is once
	clock func() time.Time // of this process, in tests; nil is time.Now
}

// time returns what time it is to this process.
func (o *Options) time() time.Time {
	if o.clock != nil {
		return o.clock()
	}
	return time.Now()
}

// hurried returns how long something about leases takes.
func (o *Options) hurried(d time.Duration) time.Duration { return d / time.Duration(max(1, o.hurry)) }

// Open opens the store at an address, postgres://USER:PASSWORD@HOST:PORT/DATABASE, made and migrated if
// need be. What the address leaves out is read as psql does, from PGHOST, PGPASSWORD, PGPASSFILE and the
// like. It is kept in the schema dialai, or the one that ?schema= names; ?pack=off stores the events of
// records as JSON, where they are packed else, and either is read. No error shows a password.
//
// It returns an *[OpenError] if the server cannot be reached, refuses the user, has no such database, or
// keeps there what this program does not know.
func Open(ctx context.Context, name string, o Options) (*Store, error) {
	a, config, err := parse(name, &sessionTables)
	if err != nil {
		return nil, err
	}
	s := &Store{}
	s.forget()
	s.init(a, config, o, s.forget)
	s.arrived = leaveOut
	s.hot, s.ordered = newLane(&s.database, false), newLane(&s.database, true)
	s.quotas.lane = newLane(&s.database, false)
	s.quotas.lane.quiet = true
	s.log.s, s.wakes.s, s.keeper.Write = s, s, s.keepSnapshot
	if err := s.open(ctx, &sessionTables); err != nil {
		return nil, err
	}
	source, err := one[*string](ctx, s, `SELECT source FROM meta`)
	if err == nil && source != nil && !o.Copy {
		err = &transfer.UnfinishedError{From: *source}
	}
	if err != nil {
		return nil, errors.Join(&OpenError{a.String(), err}, s.Close())
	}
	return s, nil
}

// Close waits for the commits under way and closes the connections. A commit whose answer has not come
// is given up: it returns an error that wraps ErrUnknown.
func (s *Store) Close() error {
	s.keeper.Close()
	s.leaveQuotas()
	s.close()
	s.hot.stop()
	s.ordered.stop()
	s.quotas.lane.stop()
	s.wakes.stop()
	s.end()
	return nil
}

// Address returns where the store is, as HOST/DATABASE, without any password.
func (s *Store) Address() string { return s.address.String() }

// cached is a session that was committed or folded here.
type cached struct {
	row     int64 // sessions.id
	session *session.Session

	snapshots snapshots.Progress
}

// cachedMachine is what is known of a machine name.
type cachedMachine struct {
	id      int             // machines.id; 0 if it is not known
	is      versions        // as they were read last
	read    time.Time       // before is was; zero if it has to be read
	changes int             // how often it was changed here
	asked   *question       // nobody has begun to look up the answer
	book    *trust.Book     // nil if it has to be read
	trust   int64           // version of book
	roster  *session.Roster // nil if it has to be read; its version is its sequence number
}

// machine returns what is known of a machine name. s.mu is held.
func (s *Store) machine(name string) *cachedMachine {
	return s.machines.GetOr(name, func() *cachedMachine { return &cachedMachine{} })
}

// Replaced implements [session.Replaceable].
func (s *Store) Replaced() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaced
}

// leftOut is how many places are left out where another server has taken over: more than one may lack that
// followed the one before, and few enough to be drawn in half a second, which takes no other right than to
// commit does.
const leftOut = 1_000_000

// leaveOut has a server that took over begin with places that the one before has given to nobody, whose last
// records it may lack: who has seen those goes on behind them, and misses nothing of what comes now. It is done
// by whoever comes first, before that commits anything; others wait.
func leaveOut(ctx context.Context, conn *pgx.Conn, timeline string) error {
	var known bool
	err := conn.QueryRow(ctx, `SELECT timeline IS NOT DISTINCT FROM $1 FROM meta`, timeline).Scan(&known)
	if err == nil && !known {
		_, err = conn.Exec(ctx, `WITH moved AS (UPDATE meta SET timeline=$1 WHERE timeline IS DISTINCT FROM $1 RETURNING (SELECT timeline FROM meta) AS before)
			SELECT count(nextval('place')) FROM moved, generate_series(1, CASE WHEN before IS NOT NULL THEN $2::int ELSE 0 END)`, timeline, leftOut) // none are made for nothing
	}
	if c := code(err); c == readOnly || c == "42501" {
		return nil // who may not write leaves it to who may
	}
	return err
}

// forget drops everything that is cached. s.mu is held, or nobody has the store yet.
func (s *Store) forget() {
	s.sessions = lru.New[specialist.SessionID, cached](remembered)
	s.machines = lru.New[string, *cachedMachine](remembered)
	s.defined = lru.New[string, bool](remembered)
	s.fresh = 0
}
