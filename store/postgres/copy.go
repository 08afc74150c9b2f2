package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/transfer"
)

// A database as what is copied (store/internal/transfer says how). It is read in one snapshot, up to a fence
// (history.go), so that no record comes later at a lower place.
//
// It is frozen by triggers that are there only then, so who writes pays nothing for them otherwise. To make
// one waits for all who are writing to the table, so after that nothing is committed any more. It takes
// the role that owns the tables.

// Copying returns the store as one that is copied to another one or, if it was opened for that
// ([Options].Copy), has another one copied into it.
func (s *Store) Copying() transfer.Target { return &copied{s: s} }

// A copied is a store that is copied, or copied into.
type copied struct {
	s *Store
	// The connection that writes, nil until it does.
	conn       *pgx.Conn
	machines   map[string]int // machines.id
	partitions int64          // of the log, that are there
}

// Name implements [transfer.Source].
func (c *copied) Name() string { return c.s.address.String() }

// ID implements [transfer.Source].
func (c *copied) ID(ctx context.Context) (string, error) {
	list, err := query(ctx, c.s, pgx.RowTo[string], `SELECT store_id::text FROM meta`)
	return strings.Join(list, ""), err
}

// Frozen implements [transfer.Source].
func (c *copied) Frozen(ctx context.Context) (string, error) {
	list, err := query(ctx, c.s, pgx.RowTo[string], `SELECT coalesce(frozen, '') FROM meta`)
	return strings.Join(list, ""), err
}

// frozenTables are those that nobody writes to while the store is frozen.
var frozenTables = []string{"sessions", "log", "roster_log", "agent_log", "llm_audit", "machines", "definitions"}

// setTriggers makes the triggers that refuse whoever writes to tables, or removes them.
func setTriggers(ctx context.Context, tx pgx.Tx, tables []string, on bool) error {
	for _, table := range tables {
		var is bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid=to_regclass($1) AND tgname='refuse')`, table).Scan(&is)
		switch {
		case err != nil:
		case on && !is:
			_, err = tx.Exec(ctx, `CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON `+table+` FOR EACH STATEMENT EXECUTE FUNCTION refuse()`)
		case is && !on:
			_, err = tx.Exec(ctx, `DROP TRIGGER refuse ON `+table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Freeze implements [transfer.Source].
func (c *copied) Freeze(ctx context.Context, to string) error {
	return c.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE meta SET frozen=nullif($1, '')`, to)
		var refused bool
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT frozen IS NOT NULL OR source IS NOT NULL FROM meta`).Scan(&refused)
		}
		if err == nil {
			err = setTriggers(ctx, tx, frozenTables, refused)
		}
		return err
	})
}

// refused returns why nothing may be written to the store, if that is so.
func refused(ctx context.Context, tx pgx.Tx) error {
	var to, from *string
	err := tx.QueryRow(ctx, `SELECT frozen, source FROM meta`).Scan(&to, &from)
	switch {
	case err != nil:
		return err
	case from != nil:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, &transfer.UnfinishedError{From: *from})
	case to != nil:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, &transfer.FrozenError{To: *to})
	}
	return nil
}

// Writable returns an error that wraps [store.ErrReadOnly] if nobody may write to the store now, since it was copied to another
// one for good, or a copy of another one into it is not finished. Its advice says what to do.
func (s *Store) Writable(ctx context.Context) error {
	tx, err := s.readers.Begin(ctx)
	if err != nil {
		return s.translate(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // it has only read
	return s.translate(refused(ctx, tx))
}

// connection opens a connection for what takes as long as it takes.
func (d *database) connection(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, d.address.patient(d.config))
}

// write has do write, all of it or nothing.
func (c *copied) write(ctx context.Context, do func(tx pgx.Tx) error) (err error) {
	if c.conn == nil || c.conn.IsClosed() {
		if c.conn, err = c.s.connection(ctx); err == nil {
			_, err = c.conn.Exec(ctx, `SET dialai.copies='on'`)
		}
	}
	if err == nil {
		err = pgx.BeginFunc(ctx, c.conn, do)
	}
	return c.s.failed(err)
}

// failed is translate for what takes the rights of who owns the tables.
func (d *database) failed(err error) error {
	if code(err) == "42501" {
		return &rightsError{d.translate(err), "copy as the role that owns the tables, by which dialai migrate was run"}
	}
	return d.translate(err)
}

// A rightsError says that the role may not do what it takes.
type rightsError struct {
	error
	advice string
}

func (e *rightsError) Unwrap() error { return e.error }

// Advice says what to do about it.
func (e *rightsError) Advice() string { return e.advice }

// Close implements [transfer.Source].
func (c *copied) Close() error {
	if c.conn == nil {
		return nil
	}
	return c.s.translate(c.conn.Close(context.Background()))
}

// Snapshot implements [transfer.Source].
func (c *copied) Snapshot(ctx context.Context) (_ transfer.Snapshot, err error) {
	s := &snapshot{s: c.s}
	if s.agents, err = one[int64](ctx, c.s, `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM agent_place`); err != nil {
		return nil, err
	}
	place, complete, err := c.s.log.look()
	if err != nil {
		return nil, err
	}
	s.places = place
	if s.conn, err = c.s.connection(ctx); err != nil {
		return nil, c.s.translate(err)
	}
	if s.tx, err = s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err == nil {
		err = s.tx.QueryRow(ctx, `SELECT secret, coalesce(places, convert_to(epoch::text, 'UTF8')), frozen IS NOT NULL OR source IS NOT NULL FROM meta`).Scan(&s.is.Secret, &s.is.Epoch, &s.frozen)
	}
	switch {
	case err != nil:
	case s.frozen: // nobody writes
		s.places, s.agents = math.MaxInt64, math.MaxInt64
	case !complete:
		err = fmt.Errorf("%w: a transaction has been writing for longer than %s, so nobody can tell up to where the log is complete", session.ErrBusy, fenceWait)
	}
	if err != nil {
		return nil, errors.Join(c.s.translate(err), s.Close())
	}
	return s, nil
}

// A snapshot is the store as it is at one moment.
type snapshot struct {
	s              *Store
	conn           *pgx.Conn
	tx             pgx.Tx
	is             transfer.Identity
	frozen         bool
	places, agents int64 // up to where logs, and those of agents, are complete
}

// Identity implements [transfer.Snapshot].
func (s *snapshot) Identity() transfer.Identity { return s.is }

// Close implements [transfer.Snapshot].
func (s *snapshot) Close() error { return s.s.translate(s.conn.Close(context.Background())) }

// number is what rows of a part that only grows are in the order of, and up to where there are.
func (s *snapshot) number(part transfer.Part) (column string, bound int64) {
	switch part {
	case transfer.Audit:
		return "id", math.MaxInt64
	case transfer.Agents:
		return "place", s.agents
	}
	return "place", s.places
}

// Count implements [transfer.Snapshot].
func (s *snapshot) Count(ctx context.Context, part transfer.Part, upTo int64) (n int64, err error) {
	column, bound := s.number(part)
	err = s.tx.QueryRow(ctx, `SELECT count(*) FROM `+string(part)+` WHERE `+column+`<=$1`, min(upTo, bound)).Scan(&n)
	return n, s.s.translate(err)
}

// copyPage is how many rows of a log are read at a time.
const copyPage = 1000

// copyQueries read the parts. Their columns are those of a [transfer.Row], in order: place, of, session, machine,
// digest, first, at, decides, body, prev, hash, archive. $1 is the place that they are behind, $2 the last one, $3
// how many they are.
var copyQueries = map[transfer.Part]string{
	transfer.Machines:        `SELECT id, machine_name, 0, '', '', 0, 0, '', NULL, NULL, NULL, '' FROM machines ORDER BY id`,
	transfer.Definitions:     `SELECT d.id, '', 0, m.machine_name, d.machine_digest, 0, 0, '', d.definition, NULL, NULL, '' FROM definitions d JOIN machines m ON m.id=d.machine ORDER BY d.id`,
	transfer.Archived:        `SELECT 0, a.session_id::text, a.row, m.machine_name, '', a.sequence, a.at, '', a.taught, NULL, a.head, a.archive FROM archived a JOIN machines m ON m.id=a.machine ORDER BY a.session_id`,
	transfer.ArchivedRecords: `SELECT place, '', agents, '', '', 0, 0, '', NULL, NULL, hash, '' FROM archived_records ORDER BY agents, place`,
	transfer.Rosters: `SELECT r.place, coalesce(m.machine_name, ''), 0, '', '', r.first, 0, '', r.events, (SELECT p.hash FROM roster_log p WHERE p.machine=r.machine AND p.first<r.first ORDER BY p.first DESC LIMIT 1), r.hash, ''
		FROM roster_log r LEFT JOIN machines m ON m.id=r.machine WHERE r.place>$1 AND r.place<=$2 ORDER BY r.place LIMIT $3`,
	transfer.Log: `SELECT l.place, coalesce(s.session_id::text, ''), l.session, coalesce(m.machine_name, ''), coalesce(d.machine_digest, ''), l.first, l.at, coalesce(n.machine_name, ''), l.events,
		(SELECT p.hash FROM log p WHERE p.session=l.session AND p.first<l.first ORDER BY p.first DESC LIMIT 1), l.hash, ''
		FROM log l LEFT JOIN sessions s ON s.id=l.session LEFT JOIN machines m ON m.id=s.machine LEFT JOIN definitions d ON d.id=s.definition LEFT JOIN machines n ON n.id=l.decides
		WHERE l.place>$1 AND l.place<=$2 ORDER BY l.place LIMIT $3`,
	transfer.Agents: `SELECT a.place, coalesce(s.session_id::text, ''), a.session, '', '', a.seq, 0, '', a.event, (SELECT p.hash FROM agent_log p WHERE p.session=a.session AND p.seq<a.seq ORDER BY p.seq DESC LIMIT 1), a.hash, ''
		FROM agent_log a LEFT JOIN sessions s ON s.id=a.session WHERE a.place>$1 AND a.place<=$2 ORDER BY a.place LIMIT $3`,
	transfer.Audit: `SELECT id, session_id, 0, '', '', 0, 0, '', entry, NULL, hash, '' FROM llm_audit WHERE id>$1 AND id<=$2 ORDER BY id LIMIT $3`,
}

// headQuery reads the last record of each log, up to the place $1 or of agents $2. Where nobody writes, $3, the
// head of a session, and the last event of a machine name, are what its row says, so that a log is found whose end was cut off.
const headQuery = `SELECT * FROM (
	(SELECT DISTINCT ON (a.session) 0::bigint, 'agent_log ' || s.session_id AS of, 0, '', '', a.seq, 0, '', NULL::bytea, NULL::bytea, a.hash, '' FROM agent_log a JOIN sessions s ON s.id=a.session WHERE a.place<=$2 ORDER BY a.session, a.seq DESC)
	UNION ALL SELECT 0, 'archived ' || session_id, 0, '', '', sequence, 0, '', NULL, NULL, head, '' FROM archived
	UNION ALL SELECT 0, 'audit of models', 0, '', '', count(*), 0, '', NULL, NULL, NULL, '' FROM llm_audit
	UNION ALL SELECT 0, 'machine ' || m.machine_name, 0, '', '', CASE WHEN $3 THEN m.roster_version ELSE l.first END, 0, '', NULL, NULL, l.hash, '' FROM machines m
		LEFT JOIN LATERAL (SELECT first, hash FROM roster_log WHERE machine=m.id AND place<=$1 ORDER BY first DESC LIMIT 1) l ON true WHERE l.first>0 OR $3 AND m.roster_version>0
	UNION ALL SELECT coalesce(l.place, 0), 'session ' || s.session_id, 0, '', '', 0, 0, '', NULL, NULL, CASE WHEN $3 THEN s.head ELSE l.hash END, '' FROM sessions s
		LEFT JOIN LATERAL (SELECT place, hash FROM log WHERE session=s.id AND place<=$1 ORDER BY first DESC LIMIT 1) l ON true WHERE $3 OR l.place IS NOT NULL
	) h ORDER BY of COLLATE "C"`

// Rows implements [transfer.Snapshot].
func (s *snapshot) Rows(ctx context.Context, part transfer.Part, after int64) iter.Seq2[*transfer.Row, error] {
	return func(yield func(*transfer.Row, error) bool) {
		switch {
		case part == transfer.Gaps: // places are left out all the time
		case part == transfer.Heads:
			s.query(ctx, yield, headQuery, s.places, s.agents, s.frozen)
		case !part.Appended():
			s.query(ctx, yield, copyQueries[part])
		default:
			_, bound := s.number(part)
			for more := true; more; {
				n := 0
				more = s.query(ctx, func(r *transfer.Row, err error) bool {
					if n++; err == nil {
						after = r.Place
					}
					return yield(r, err)
				}, copyQueries[part], after, bound, copyPage) && n == copyPage
			}
		}
	}
}

// query yields the rows of a query, and reports whether all of them were taken.
func (s *snapshot) query(ctx context.Context, yield func(*transfer.Row, error) bool, text string, args ...any) bool {
	rows, err := s.tx.Query(ctx, text, args...)
	if err != nil {
		return yield(nil, s.s.translate(err)) && false
	}
	defer rows.Close()
	for rows.Next() {
		var r transfer.Row
		err := rows.Scan(&r.Place, &r.Of, &r.Session, &r.Machine, &r.Digest, &r.First, &r.At, &r.Decides, &r.Body, &r.Prev, &r.Hash, &r.Archive)
		if !yield(&r, s.s.translate(err)) || err != nil {
			return false
		}
	}
	if err := rows.Err(); err != nil {
		return yield(nil, s.s.translate(err)) && false
	}
	return true
}
