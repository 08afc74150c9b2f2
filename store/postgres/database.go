package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A database is what sessions and what a server must remember have in common: each is kept in a schema of
// its own, which this process has connections to, owners in, and locks.
type database struct {
	address address
	options Options
	config  *pgx.ConnConfig // of connections that are no readers
	readers *pgxpool.Pool
	lock    int64 // of advisory locks: what is in order in all processes
	owners  owners
	clock   clock
	answer  time.Duration // by then the server has answered; 0 if that may take any time
	form    atomic.Int64  // that the store had when it was looked at last; 0 before
	looked  chan struct{} // closed when nobody looks at it any more; nil if nobody does
	drop    func()        // drops what is cached, under mu; nil if nothing is
	// arrived is told the timeline of the server of each new connection to one that may be written to, and
	// has to be done before anything is written there. It may be nil.
	arrived func(ctx context.Context, conn *pgx.Conn, timeline string) error

	closing context.Context // done once closing has begun
	close   context.CancelFunc

	mu       sync.Mutex
	identity string // of what the last new connection has led to
	replaced int64  // how often that was another than before
}

// base returns d: it is how queries are asked of whatever is kept in a database.
func (d *database) base() *database { return d }

// init says where a database is, without connecting.
func (d *database) init(a address, config *pgx.ConnConfig, o Options, drop func()) {
	d.address, d.config, d.options, d.drop = a, config, o, drop
	d.closing, d.close = context.WithCancel(context.Background())
	d.owners.d, d.answer = d, answerWithin
	d.clock.start(o.time())
}

// open connects, to tables that are made and migrated if need be. The error is an *[OpenError].
func (d *database) open(ctx context.Context, t *tables) error {
	err := d.connectAll(ctx, t)
	if err != nil {
		d.close()
		return d.unopened(err)
	}
	return nil
}

// unopened returns the error of opening.
func (d *database) unopened(err error) *OpenError {
	if reading, ok := readingErrorOf(err); ok {
		return &OpenError{d.address.String(), reading}
	}
	return &OpenError{d.address.String(), d.translate(err)}
}

func (d *database) connectAll(ctx context.Context, t *tables) error {
	_, err := t.migrate(ctx, d.config, d.address, d.options)
	if d.options.Standby && !d.address.chosen && onlyReads(err) {
		d.config.ValidateConnect = nil // none can be written to, so any will do
		_, err = t.migrate(ctx, d.config, d.address, d.options)
	}
	if err != nil {
		return err
	}
	pool, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	pool.ConnConfig = d.config
	pool.MaxConns = readers()
	pool.AfterConnect, pool.PingTimeout = d.meet, d.options.hurried(pingWithin)
	if d.readers, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), pool); err != nil {
		return err
	}
	conn, err := d.readers.Acquire(ctx)
	if err != nil {
		d.readers.Close()
		return err
	}
	defer conn.Release()
	var statement float64 // in s
	if err := conn.QueryRow(ctx, `SELECT hashtextextended('dialai ' || store_id, 0), extract(epoch FROM current_setting('statement_timeout')::interval)::float8 FROM meta`).Scan(&d.lock, &statement); err != nil {
		return err
	}
	d.limits(time.Duration(statement * float64(time.Second)))
	if d.options.TooOld != nil {
		d.looked = make(chan struct{})
		go d.look(d.looked)
	}
	return nil
}

// end closes the connections, but for those of lanes.
func (d *database) end() {
	d.owners.stop()
	if d.looked != nil {
		d.close()
		<-d.looked
	}
	d.readers.Close()
}

// connect opens a connection.
func (d *database) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err == nil {
		if err = d.meet(ctx, conn); err != nil {
			conn.Close(ctx)
		}
	}
	return conn, err
}

// meet looks at whom a new connection has led to. Where that is not the store as it was, but a restored
// one, or a standby that took its place and may lack the last commits, nothing that was cached counts
// any more, and nobody is who he was.
func (d *database) meet(ctx context.Context, conn *pgx.Conn) error {
	var identity string
	var server time.Time
	var form int64
	ctx, cancel := d.answered(ctx)
	defer cancel()
	asked := d.clock.passed()
	if err := conn.QueryRow(ctx, `SELECT epoch::text, clock_timestamp(), greatest(min_reader, min_writer)::bigint FROM meta`).Scan(&identity, &server, &form); err != nil {
		return err
	}
	d.noticed(form)
	d.clock.measured(asked, server, d.clock.passed())
	var timeline string // it cannot be asked of a standby, nor where the role may not
	if conn.QueryRow(ctx, `SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`).Scan(&timeline) == nil {
		identity += " " + timeline
		if d.arrived != nil {
			if err := d.arrived(ctx, conn, timeline); err != nil {
				return err
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.identity != identity && d.identity != "" {
		d.replaced++
		if d.drop != nil {
			d.drop()
		}
		d.owners.lose()
	}
	d.identity = identity
	return nil
}
