package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/transfer"
)

// A file as what is copied (store/internal/transfer says how), and what becomes of it then: it is frozen. Who writes
// looks for that in each transaction, behind the lock of the file, so that nothing is committed
// after it was frozen, by any process.

// A Copyable is a store that can be copied to another one, or another one to it.
type Copyable interface{ Copying() transfer.Target }

// CopyOptions say how a store is copied.
type CopyOptions = transfer.Options

// A Copy says what was copied.
type Copy = transfer.Report

// CopyStore copies a store to another one, or goes on with that, while the former is used. The latter was
// opened for that ([SQLiteOptions].Copy). Interrupted, it can be run again with Resume set. It returns a
// [session.CorruptError] if either is damaged; the copy cannot be opened then.
func CopyStore(ctx context.Context, from, to Copyable, o CopyOptions) (Copy, error) {
	source, target := from.Copying(), to.Copying()
	done, err := transfer.Copy(ctx, source, target, o)
	return done, errors.Join(err, source.Close(), target.Close())
}

// Thaw has a store written to again that was copied to another one for good.
func Thaw(ctx context.Context, s Copyable) error {
	is := s.Copying()
	return errors.Join(is.Freeze(ctx, ""), is.Close())
}

// Copying returns the store as one that is copied to another one or, if it was opened for that
// ([SQLiteOptions].Copy), has another one copied into it.
func (s *SQLite) Copying() transfer.Target { return &copied{s: s} }

// A copied is a file that is copied, or copied into.
type copied struct {
	s    *SQLite
	file bool // numbers of what is copied into it are those of a file
}

// Name implements [transfer.Source].
func (c *copied) Name() string {
	if path, err := filepath.Abs(c.s.path); err == nil {
		return path
	}
	return c.s.path
}

// ID implements [transfer.Source].
func (c *copied) ID(context.Context) (string, error) { return "", nil }

// Close implements [transfer.Source].
func (c *copied) Close() error { return nil }

// Frozen implements [transfer.Source].
func (c *copied) Frozen(ctx context.Context) (to string, err error) {
	to, _, err = c.s.reader().copying(ctx)
	return to, translate(err)
}

// Freeze implements [transfer.Source].
func (c *copied) Freeze(ctx context.Context, to string) error {
	return c.write(ctx, func(conn *sql.Conn) error { return freeze(ctx, conn, to) })
}

// freeze has everybody who writes to a file refused, or nobody any more.
func freeze(ctx context.Context, conn *sql.Conn, to string) error {
	query := `INSERT INTO copying (one, frozen, source) VALUES (1, ?1, '') ON CONFLICT DO UPDATE SET frozen=?1`
	if to == "" {
		query = `DELETE FROM copying WHERE source='' AND ?1=''`
	}
	_, err := conn.ExecContext(ctx, query, to)
	return err
}

// write has do write by the connection that does, all of it or nothing, also where others are refused.
func (c *copied) write(ctx context.Context, do func(conn *sql.Conn) error) error {
	return c.s.anyway(ctx, do)
}

func (s *file) anyway(ctx context.Context, do func(conn *sql.Conn) error) error {
	return s.out.do(&job{ctx: ctx, alone: func(ctx context.Context, conn *sql.Conn) error {
		return inTransaction(ctx, conn, func() error { return do(conn) })
	}})
}

// refuseCopied has whoever writes to a file refused while nothing may be written to it. copying says whether that may be so.
func (s *file) refuseCopied(copying *hot) {
	s.out.refuses = func(ctx context.Context) error {
		var is [1]int64
		if _, err := copying.numbers(is[:]); err != nil || is[0] == 0 {
			return err
		}
		return (reader{s.out.conn}).frozen(ctx)
	}
}

// copyingQuery asks whether nothing may be written.
const copyingQuery = `SELECT EXISTS (SELECT 1 FROM copying)`

// Writable returns an error that wraps [ErrReadOnly] if nobody may write to the store now, since it was copied to another one
// for good, or a copy of another one into it is not finished. Its advice says what to do.
func (s *SQLite) Writable(ctx context.Context) error { return translate(s.reader().frozen(ctx)) }

// frozen returns why nothing may be written to a store, if that is so.
func (r reader) frozen(ctx context.Context) error {
	to, source, err := r.copying(ctx)
	switch {
	case err != nil:
		return err
	case source != "":
		return fmt.Errorf("%w: %w", ErrReadOnly, &transfer.UnfinishedError{From: source})
	case to != "":
		return fmt.Errorf("%w: %w", ErrReadOnly, &transfer.FrozenError{To: to})
	}
	return nil
}

// copying returns where the store was copied to, and what is copied into it; "" if neither is so.
func (r reader) copying(ctx context.Context) (to, source string, err error) {
	err = r.q.QueryRowContext(ctx, `SELECT frozen, source FROM copying`).Scan(&to, &source)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return to, source, err
}

// whole returns an error if a copy of another store into it is not finished.
func (s *SQLite) whole(ctx context.Context) error {
	_, source, err := s.reader().copying(ctx)
	if err == nil && source != "" {
		err = &transfer.UnfinishedError{From: source}
	}
	return err
}

// Snapshot implements [transfer.Source].
func (c *copied) Snapshot(ctx context.Context) (transfer.Snapshot, error) {
	conn, err := c.s.read.Conn(ctx)
	if err != nil {
		return nil, translate(err)
	}
	s := &snapshot{conn: conn, reader: reader{conn}}
	if _, err = conn.ExecContext(ctx, `BEGIN`); err == nil {
		s.is, err = s.identity(ctx)
	}
	if err != nil {
		return nil, errors.Join(translate(err), s.Close())
	}
	return s, nil
}

// A snapshot is the file in one transaction that reads.
type snapshot struct {
	conn   *sql.Conn
	closed bool
	reader
	is transfer.Identity
}

// identity reads what tells the store from others.
func (r reader) identity(ctx context.Context) (is transfer.Identity, err error) {
	is.File = true
	var name string
	var value, sum []byte
	for err := range scan(r.q.QueryContext(ctx, `SELECT name, value FROM secrets`)).into(&name, &value) {
		if err != nil {
			return is, err
		}
		switch name {
		case "store":
			is.Secret = value
		case secretSum:
			sum = value
		case secretEpoch:
			is.Epoch = value
		case secretLive:
			is.ArchiveOf = value
		}
		value = nil
	}
	if is.Epoch == nil {
		is.Epoch = is.Secret
	}
	if want := sha256.Sum256(is.Secret); string(sum) != string(want[:]) {
		return is, &session.CorruptError{What: "the secret", Problem: "it is not the one that the store was made with: see dialai store verify"}
	}
	return is, nil
}

// Identity implements [transfer.Snapshot].
func (s *snapshot) Identity() transfer.Identity { return s.is }

// Close implements [transfer.Snapshot].
func (s *snapshot) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	_, err := s.conn.ExecContext(context.Background(), `ROLLBACK`)
	return translate(errors.Join(err, s.conn.Close()))
}

// Count implements [transfer.Snapshot].
func (s *snapshot) Count(ctx context.Context, part transfer.Part, upTo int64) (n int64, err error) {
	err = s.q.QueryRowContext(ctx, `SELECT count(*) FROM `+string(part)+` WHERE id<=?`, upTo).Scan(&n)
	return n, translate(err)
}

// copyQueries read the parts. Their columns are those of a [transfer.Row], in order: place, of, session, machine,
// digest, first, at, decides, body, prev, hash, archive. Sessions and machines whose rows are gone are ”.
var copyQueries = map[transfer.Part]string{
	transfer.Machines:        `SELECT id, machine_name, 0, '', '', 0, 0, '', NULL, NULL, NULL, '' FROM machines WHERE ?1=?1 ORDER BY id`,
	transfer.Definitions:     `SELECT d.id, '', 0, m.machine_name, d.machine_digest, 0, 0, '', d.definition, NULL, NULL, '' FROM definitions d JOIN machines m ON m.id=d.machine WHERE ?1=?1 ORDER BY d.id`,
	transfer.Archived:        `SELECT 0, a.session_id, a.row, m.machine_name, '', a.sequence, a.at, '', a.taught, NULL, a.head, a.archive FROM archived a JOIN machines m ON m.id=a.machine WHERE ?1=?1 ORDER BY a.session_id`,
	transfer.ArchivedRecords: `SELECT place, '', agents, '', '', 0, 0, '', NULL, NULL, hash, '' FROM archived_records WHERE ?1=?1 ORDER BY agents, place`,
	transfer.Rosters: `SELECT r.id, coalesce(m.machine_name, ''), 0, '', '', r.first, 0, '', r.events, (SELECT p.hash FROM roster_log p WHERE p.machine=r.machine AND p.first<r.first ORDER BY p.first DESC LIMIT 1), r.hash, ''
		FROM roster_log r LEFT JOIN machines m ON m.id=r.machine WHERE r.id>?1 ORDER BY r.id`,
	transfer.Log: `SELECT l.id, coalesce(s.session_id, ''), l.session, coalesce(m.machine_name, ''), coalesce(s.machine_digest, ''), l.first, l.at, coalesce(n.machine_name, ''), l.events,
		(SELECT p.hash FROM log p WHERE p.session=l.session AND p.first<l.first ORDER BY p.first DESC LIMIT 1), l.hash, ''
		FROM log l LEFT JOIN sessions s ON s.id=l.session LEFT JOIN machines m ON m.id=s.machine LEFT JOIN machines n ON n.id=l.decides WHERE l.id>?1 ORDER BY l.id`,
	transfer.Agents: `SELECT a.id, coalesce(s.session_id, ''), a.session, '', '', a.seq, 0, '', a.event, (SELECT p.hash FROM agent_log p WHERE p.session=a.session AND p.seq<a.seq ORDER BY p.seq DESC LIMIT 1), a.hash, ''
		FROM agent_log a LEFT JOIN sessions s ON s.id=a.session WHERE a.id>?1 ORDER BY a.id`,
	transfer.Audit: `SELECT a.id, a.session_id, 0, '', '', 0, 0, '', a.entry, (SELECT p.hash FROM llm_audit p WHERE p.id<a.id ORDER BY p.id DESC LIMIT 1), a.hash, '' FROM llm_audit a WHERE a.id>?1 ORDER BY a.id`,
	transfer.Gaps:  `SELECT place, '', 0, '', '', last, 0, '', NULL, NULL, NULL, '' FROM gaps WHERE ?1=?1 ORDER BY place`,
	transfer.Heads: `SELECT 0, 'agent_log ' || s.session_id, 0, '', '', a.seq, 0, '', NULL, NULL, a.hash, '' FROM agent_log a JOIN sessions s ON s.id=a.session WHERE ?1=?1 AND a.seq=(SELECT max(seq) FROM agent_log WHERE session=a.session)
		UNION ALL SELECT 0, 'archived ' || session_id, 0, '', '', sequence, 0, '', NULL, NULL, head, '' FROM archived
		UNION ALL SELECT 0, 'audit of models', 0, '', '', count(*), 0, '', NULL, NULL, NULL, '' FROM llm_audit
		UNION ALL SELECT 0, 'machine ' || m.machine_name, 0, '', '', r.first, 0, '', NULL, NULL, r.hash, '' FROM roster_log r JOIN machines m ON m.id=r.machine WHERE r.first=(SELECT max(first) FROM roster_log WHERE machine=r.machine)
		UNION ALL SELECT coalesce((SELECT id FROM log WHERE session=s.id ORDER BY first DESC LIMIT 1), 0), 'session ' || s.session_id, 0, '', '', 0, 0, '', NULL, NULL, s.head, '' FROM sessions s
		ORDER BY 2`,
}

// Rows implements [transfer.Snapshot].
func (s *snapshot) Rows(ctx context.Context, part transfer.Part, after int64) iter.Seq2[*transfer.Row, error] {
	return func(yield func(*transfer.Row, error) bool) {
		var r transfer.Row
		for err := range scan(s.q.QueryContext(ctx, copyQueries[part], after)).into(&r.Place, &r.Of, &r.Session, &r.Machine, &r.Digest, &r.First, &r.At, &r.Decides, &r.Body, &r.Prev, &r.Hash, &r.Archive) {
			if !yield(&r, err) || err != nil {
				return
			}
			r.Body, r.Prev, r.Hash = nil, nil, nil // they are whose the row is
		}
	}
}

// Begin implements [transfer.Target].
func (c *copied) Begin(ctx context.Context, of transfer.Identity, from string, resume bool) error {
	c.file = of.File
	if err := c.s.undriven(); err != nil {
		return &OpenError{c.s.path, err}
	}
	err := c.write(ctx, func(conn *sql.Conn) error {
		r := reader{conn}
		is, err := r.identity(ctx)
		if err != nil {
			return err
		}
		var used bool
		err = conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM machines) OR EXISTS (SELECT 1 FROM log) OR EXISTS (SELECT 1 FROM roster_log) OR EXISTS (SELECT 1 FROM llm_audit) OR EXISTS (SELECT 1 FROM copying)`).Scan(&used)
		same := string(is.Secret) == string(of.Secret)
		switch {
		case err != nil:
			return err
		case used && !same, same && string(is.ArchiveOf) != string(of.ArchiveOf):
			return transfer.ErrOther
		case same && !resume:
			return transfer.ErrCopied
		case same:
			err = r.unchanged(ctx)
		default:
			err = setIdentity(ctx, conn, of)
		}
		if err == nil {
			_, err = conn.ExecContext(ctx, `INSERT INTO copying (one, frozen, source) VALUES (1, '', ?1) ON CONFLICT DO UPDATE SET source=?1`, from)
		}
		return err
	})
	if err != nil {
		return &OpenError{c.s.path, err}
	}
	return nil
}

// undriven returns [ErrDriven] while a process carries the sessions of the store on.
func (s *SQLite) undriven() error {
	lock, err := s.DriverLock()
	if err != nil {
		return err
	}
	switch free, err := lock.TryLock(); {
	case err != nil:
		return err
	case !free:
		return ErrDriven
	}
	return lock.Unlock()
}

// unchanged returns an error if there is more in the logs than was copied.
func (r reader) unchanged(ctx context.Context) error {
	for _, part := range []transfer.Part{transfer.Log, transfer.Rosters, transfer.Agents, transfer.Audit} {
		var more bool
		if err := r.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM `+string(part)+` WHERE id>coalesce((SELECT newest FROM copied WHERE part=?), 0))`, string(part)).Scan(&more); err != nil {
			return err
		}
		if more {
			return transfer.ErrChanged
		}
	}
	return nil
}

// setIdentity makes an empty store a copy of another one.
func setIdentity(ctx context.Context, conn *sql.Conn, of transfer.Identity) error {
	set := func(name string, value []byte) error {
		_, err := conn.ExecContext(ctx, `INSERT OR REPLACE INTO secrets (name, value) VALUES (?,?)`, name, value)
		return err
	}
	if _, err := conn.ExecContext(ctx, `DELETE FROM secrets`); err != nil {
		return err
	}
	sum := sha256.Sum256(of.Secret)
	err := errors.Join(set("store", of.Secret), set(secretSum, sum[:]))
	if string(of.Epoch) != string(of.Secret) {
		err = errors.Join(err, set(secretEpoch, of.Epoch))
	}
	if of.ArchiveOf != nil {
		err = errors.Join(err, set(secretLive, of.ArchiveOf))
	}
	return err
}

// Finish implements [transfer.Target].
func (c *copied) Finish(ctx context.Context) error {
	return c.write(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, `DELETE FROM copying`)
		return err
	})
}
