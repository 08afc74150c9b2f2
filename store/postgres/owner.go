package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
)

// Owners are rows: each lives until a moment by the clock of the database, which alone decides, and all
// of a process are renewed at once every 10 s for 30 s. So the owners of a process that was killed, or
// that the database has not heard of for so long, are dead for everybody after 30 s at the latest, and what
// they had asked is asked again.
//
// A process has to stop in time: it does not know whether it was heard, but when it spoke last. 20 s
// after the last renewal that succeeded was sent, by its own clock that nobody sets, its owners are dead to
// itself: the runner begins nothing in their name and takes another.

const (
	lives      = 30 * time.Second
	renewEvery = 10 * time.Second
	silentFor  = 20 * time.Second
)

// owners are those of this process.
type owners struct {
	d *database

	mu      sync.Mutex
	names   map[string]bool // those that were not released; false if one is dead to this process
	sent    time.Time       // when the last renewal that has succeeded was
	stopped chan struct{}   // closed when nobody renews any more; nil if nobody does yet
	end     context.CancelFunc
}

// An owner is one of them.
type owner struct {
	o    *owners
	name string
}

// Claim implements [session.OwnerStore].
func (s *Store) Claim(ctx context.Context) (session.Owner, error) {
	o, err := s.claim(ctx)
	if err != nil {
		return nil, err // not a nil *owner
	}
	return o, nil
}

// claim makes this process another owner.
func (d *database) claim(ctx context.Context) (*owner, error) {
	var random [16]byte
	rand.Read(random[:]) // never fails
	name := hex.EncodeToString(random[:])
	host, _ := os.Hostname()
	sent := time.Now()
	if _, err := query(ctx, d, pgx.RowTo[int64], `WITH forgotten AS (DELETE FROM owners WHERE until<now()-interval '1 day') INSERT INTO owners (name, until, about) VALUES ($1, now()+$2, $3) ON CONFLICT DO NOTHING`,
		name, d.options.hurried(lives), fmt.Sprintf("%s, process %d", host, os.Getpid())); err != nil {
		return nil, err
	}
	d.owners.add(name, sent)
	return &owner{&d.owners, name}, nil
}

// add has an owner renewed.
func (o *owners) add(name string, sent time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.names == nil {
		o.names = map[string]bool{}
	}
	if !o.anyAlive() {
		o.sent = sent
	}
	o.names[name] = true
	if o.stopped == nil && o.d.closing.Err() == nil {
		var ctx context.Context
		ctx, o.end = context.WithCancel(o.d.closing)
		o.stopped = make(chan struct{})
		go o.renew(ctx, o.stopped)
	}
}

// renew renews the owners until the store is closed.
func (o *owners) renew(ctx context.Context, stopped chan<- struct{}) {
	defer close(stopped)
	tick := time.NewTicker(o.d.options.hurried(renewEvery))
	defer tick.Stop()
	var conn *pgx.Conn // of its own: it must not wait for one that reads
	defer func() {
		if conn != nil {
			conn.Close(context.Background())
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if conn == nil || conn.IsClosed() {
			var err error
			if conn, err = o.d.connect(ctx); err != nil {
				conn = nil
				continue
			}
		}
		o.renewOnce(ctx, conn)
	}
}

// renewOnce renews the owners that live. One whose row is gone, or that the database takes for dead, is.
func (o *owners) renewOnce(ctx context.Context, conn *pgx.Conn) {
	names := o.living()
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.d.options.hurried(renewEvery))
	defer cancel()
	sent, asked := time.Now(), o.d.clock.passed()
	var server time.Time
	form := int64(format)
	rows, _ := conn.Query(ctx, `UPDATE owners SET until=now()+$2 WHERE name=ANY($1) AND until>now() RETURNING name, clock_timestamp(), `+formOf, names, o.d.options.hurried(lives))
	renewed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (name string, err error) {
		err = row.Scan(&name, &server, &form)
		return name, err
	})
	if err != nil {
		return
	}
	if len(renewed) > 0 {
		o.d.noticed(form)
		o.d.clock.measured(asked, server, o.d.clock.passed())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = sent
	still := map[string]bool{}
	for _, name := range renewed {
		still[name] = true
	}
	for _, name := range names {
		if _, here := o.names[name]; here && !still[name] {
			o.names[name] = false
		}
	}
}

// living returns the names of the owners that live, by the clock of this process.
func (o *owners) living() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.names {
		if o.alive(name) {
			names = append(names, name)
		}
	}
	return names
}

// alive reports whether an owner lives as far as this process can tell, which it can of its own. o.mu
// is held.
func (o *owners) alive(name string) bool {
	if alive, ours := o.names[name]; !ours || !alive {
		return !ours
	}
	if time.Since(o.sent) < o.d.options.hurried(silentFor) {
		return true
	}
	for name := range o.names {
		o.names[name] = false
	}
	return false
}

// lives reports whether an owner of this process lives, as far as that can tell.
func (o *owners) lives(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ours := o.names[name]
	return ours && o.alive(name)
}

// anyAlive reports whether any owner of this process lives. o.mu is held.
func (o *owners) anyAlive() bool {
	for name := range o.names {
		if o.alive(name) {
			return true
		}
	}
	return false
}

// lose has all owners of this process be dead to it.
func (o *owners) lose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.names {
		o.names[name] = false
	}
}

// stop ends renewing.
func (o *owners) stop() {
	o.mu.Lock()
	stopped := o.stopped
	o.mu.Unlock()
	if stopped != nil {
		o.end()
		<-stopped
	}
}

// Alive implements [session.OwnerStore]. An owner of this process that was not renewed in time does not
// live for it, though it still may for others.
func (s *Store) Alive(ctx context.Context, name string) (bool, error) {
	s.owners.mu.Lock()
	alive := s.owners.alive(name)
	s.owners.mu.Unlock()
	if !alive {
		return false, nil
	}
	return one[bool](ctx, s, `SELECT EXISTS (SELECT FROM owners WHERE name=$1 AND until>now())`, name)
}

// Name implements [session.Owner].
func (o *owner) Name() string { return o.name }

// Release implements [session.Owner].
func (o *owner) Release() error {
	o.o.mu.Lock()
	delete(o.o.names, o.name)
	o.o.mu.Unlock()
	_, err := query(context.Background(), o.o.d, pgx.RowTo[int64], `DELETE FROM owners WHERE name=$1`, o.name)
	return err
}
