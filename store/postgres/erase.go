package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/erase"
	"github.com/dialai/dialai/store/internal/pack"
)

// How payloads are taken out of sessions in a database (store/internal/erase says which, and in which order). Each session is
// read and prepared as of one moment, and then written in a transaction that is in order with all that teach, if
// the session is still the one that was read.
//
// A row that was replaced stays in its table until nobody reads it any more and VACUUM has removed it. So at the end this waits until no
// transaction is left that began before, and vacuums. Then no query finds it; blocks of files have it until
// they are written to again, as has the write-ahead log: those are the server's.

// Erasable returns what [Store.Erase] would erase, and changes nothing.
func (s *Store) Erasable(ctx context.Context, o store.EraseOptions) (done store.Erased, err error) {
	err = s.reading(ctx, func(tx pgx.Tx) error {
		e := &erasing{Store: s, tx: tx}
		v, closed, err := e.with(ctx, &o, true)
		if err != nil {
			return err
		}
		done, err = erase.Erasable(ctx, v, o, func(ctx context.Context, ids []string) (int64, error) {
			return e.naming(ctx, tx, `SELECT count(*) FROM `, ids)
		})
		return errors.Join(err, closed())
	})
	return done, err
}

// Erase takes payloads out of ended sessions, while others read and write the store, and what servers remember of them. Interrupted, it
// can be run again. The errors are those of [store.SQLite.Erase]; it takes the role that owns the tables.
func (s *Store) Erase(ctx context.Context, o store.EraseOptions) (done store.Erased, err error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return done, s.translate(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := readingBy(ctx, conn, func(tx pgx.Tx) error { return s.mayMove(ctx, tx) }); err != nil { // who may not needs no lock
		return done, s.translate(err)
	}
	unlock, err := s.archiving()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	v, closed, err := (&erasing{Store: s, conn: conn}).with(ctx, &o, false)
	if err != nil {
		return done, err
	}
	done, err = erase.Run(ctx, v, o)
	return done, errors.Join(s.translate(err), closed())
}

// reading has do read the store as it is at one moment, for as long as it takes.
func (s *Store) reading(ctx context.Context, do func(tx pgx.Tx) error) error {
	conn, err := s.connection(ctx)
	if err != nil {
		return s.translate(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return s.translate(readingBy(ctx, conn, do))
}

func readingBy(ctx context.Context, conn *pgx.Conn, do func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

// An erasing is a database in which sessions are erased: by a connection, or as a transaction sees it.
type erasing struct {
	*Store
	conn *pgx.Conn // that writes
	tx   pgx.Tx    // that reads; nil if each call is one
	head []byte    // of the session that was read last
}

// seeing has do read by a transaction.
func (e *erasing) seeing(ctx context.Context, do func(e *erasing) error) error {
	return readingBy(ctx, e.conn, func(tx pgx.Tx) error { return do(&erasing{Store: e.Store, tx: tx}) })
}

// Look implements [erase.View].
func (e *erasing) Look(ctx context.Context, o *store.EraseOptions) (l erase.Looked, err error) {
	if e.tx == nil {
		err = e.seeing(ctx, func(e *erasing) (err error) { l, err = e.Look(ctx, o); return err })
		return l, err
	}
	if err := e.mayMove(ctx, e.tx); err != nil {
		return l, err
	}
	query, what := `SELECT session_id::text FROM sessions WHERE session_id=$1`, any([16]byte(o.Session))
	if o.Subject != "" {
		query, what = `SELECT session_id::text FROM sessions WHERE subject=$1`, []byte(o.Subject)
	}
	if l.Named, err = texts(ctx, e.tx, query, what); err != nil {
		return l, err
	}
	if len(l.Named) == 0 && o.Subject == "" {
		l.Missing = e.elsewhere(ctx, o.Session)
	}
	if err := e.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM erasing)`).Scan(&l.Unfinished); err != nil {
		return l, err
	}
	l.Archives, err = texts(ctx, e.tx, `SELECT DISTINCT archive FROM archived ORDER BY archive`)
	return l, err
}

// Families implements [erase.View].
func (e *erasing) Families(ctx context.Context, after erase.Family, n int) (page []erase.Family, err error) {
	if e.tx == nil {
		err = e.seeing(ctx, func(e *erasing) (err error) { page, err = e.Families(ctx, after, n); return err })
		return page, err
	}
	var f erase.Family
	var status int16
	var packed, hash []byte
	rows, _ := e.tx.Query(ctx, `SELECT s.id, s.session_id::text, s.status, l.events, l.hash FROM sessions s JOIN log l ON l.session=s.id AND l.first=1 WHERE s.id>$1 ORDER BY s.id LIMIT $2`, after.Row, n) // the error comes with the rows
	_, err = pgx.ForEachRow(rows, []any{&f.Row, &f.ID, &status, &packed, &hash}, func() error {
		copy(f.First[:], hash)
		f.Status = session.Status(status).String()
		_, err := f.Began(nil, packed)
		page = append(page, f)
		return err
	})
	return page, err
}

// texts returns the texts that a query yields.
func texts(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]string, error) {
	rows, _ := tx.Query(ctx, query, args...) // the error comes with the rows
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Stored implements [erase.View].
func (e *erasing) Stored(ctx context.Context, f erase.Family) (*erase.Stored, error) {
	s := &erase.Stored{Definition: func(digest string) (text []byte, err error) {
		err = e.tx.QueryRow(ctx, `SELECT definition FROM definitions WHERE machine_digest=$1`, digest).Scan(&text)
		if errors.Is(err, pgx.ErrNoRows) {
			err = &session.CorruptError{What: "definition " + digest, Problem: "it is not stored"}
		}
		return text, err
	}}
	var status int16
	err := e.tx.QueryRow(ctx, `SELECT s.status, m.machine_name, s.head FROM sessions s JOIN machines m ON m.id=s.machine WHERE s.id=$1`, f.Row).Scan(&status, &s.Machine, &s.Head)
	if errors.Is(err, pgx.ErrNoRows) {
		id, _ := session.ParseID(f.ID) // it was read
		err = e.elsewhere(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	s.Status, e.head = session.Status(status).String(), s.Head
	for r, err := range e.rows(ctx, `SELECT place, first, events, hash FROM log WHERE session=$1 ORDER BY first`, f.Row) {
		if err == nil {
			r.Body, err = pack.Unpack(nil, r.Body)
		}
		if err != nil {
			return nil, session.Corrupt("the log of session "+f.ID, err)
		}
		s.Log = append(s.Log, r)
	}
	s.Agents = e.rows(ctx, `SELECT place, seq, event, hash FROM agent_log WHERE session=$1 ORDER BY seq`, f.Row)
	s.Audit = e.rows(ctx, auditOf, f.ID)
	return s, nil
}

// auditOf reads the entries of a session in the audit of models.
const auditOf = `SELECT id, 0::bigint, entry, hash FROM llm_audit WHERE session_id=$1 ORDER BY id`

// rows yields rows as they are stored.
func (e *erasing) rows(ctx context.Context, query string, of any) iter.Seq2[erase.Row, error] {
	return func(yield func(erase.Row, error) bool) {
		rows, err := e.tx.Query(ctx, query, of)
		if err != nil {
			yield(erase.Row{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var r erase.Row
			var hash []byte
			err := rows.Scan(&r.Place, &r.First, &r.Body, &hash)
			copy(r.Hash[:], hash)
			if !yield(r, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(erase.Row{}, err)
		}
	}
}

// Write implements [erase.Store].
func (e *erasing) Write(ctx context.Context, f erase.Family, prepare func(erase.View) (*erase.Erasure, error)) error {
	for written := false; !written; {
		if err := ctx.Err(); err != nil {
			return err
		}
		view := &erasing{Store: e.Store}
		var x *erase.Erasure
		err := readingBy(ctx, e.conn, func(tx pgx.Tx) (err error) {
			view.tx = tx
			x, err = prepare(view)
			return err
		})
		if err != nil || x.Nothing() {
			return err
		}
		err = pgx.BeginFunc(ctx, e.conn, func(tx pgx.Tx) (err error) {
			written, err = e.write(ctx, tx, x, view.head)
			return err
		})
		if err != nil {
			return err
		}
		if written {
			e.gone(x.Machine, x.ID)
		}
	}
	return nil
}

// gone drops what is cached of sessions that are other ones now, or not here any more, and tells others; also of what is learned of a machine, unless it is "".
func (s *Store) gone(machine string, ids ...string) {
	if machine != "" {
		s.changed(machine)
	}
	for _, text := range ids {
		id, err := session.ParseID(text)
		if err != nil {
			continue
		}
		s.mu.Lock()
		s.sessions.Delete(id)
		s.mu.Unlock()
		s.wakes.committed(id, false)
	}
}

// write writes all of what is left of a session whose last record has the hash head. It reports whether that was so.
func (e *erasing) write(ctx context.Context, tx pgx.Tx, x *erase.Erasure, head []byte) (bool, error) {
	if _, err := tx.Exec(ctx, inTurn, e.lock); err != nil {
		return false, err
	}
	var machine int
	err := tx.QueryRow(ctx, `SELECT machine FROM sessions WHERE id=$1 AND head=$2 FOR UPDATE`, x.Row, head).Scan(&machine)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	packed := func(events []byte) []byte {
		if e.address.plain {
			return events
		}
		return pack.Append(nil, events)
	}
	exec := func(query string, args ...any) {
		if err == nil {
			_, err = tx.Exec(ctx, query, args...)
		}
	}
	for _, r := range x.Records {
		exec(`UPDATE log SET events=$1 WHERE session=$2 AND place=$3`, packed(r.Now), x.Row, r.Place)
	}
	for _, r := range x.Agents {
		exec(`UPDATE agent_log SET event=$1 WHERE place=$2`, r.Now, r.Place)
	}
	for _, r := range x.Audit {
		exec(`UPDATE llm_audit SET entry=$1, hash=$2 WHERE id=$3`, r.Now, r.Hash[:], r.Place)
	}
	exec(`INSERT INTO log (session, first, at, events, hash) VALUES ($1, $2, $3, $4, $5)`, x.Row, x.Last.First, int64(x.At), packed(x.Last.Events), x.Last.Hash[:])
	var status session.Status
	if err == nil {
		err = status.UnmarshalText([]byte(x.Session.Status))
	}
	sets, args := []string{}, []any{x.Row}
	for _, v := range moving(&x.Session, status, x.Last.Hash[:]) {
		args = append(args, v.value)
		sets = append(sets, fmt.Sprintf("%s=$%d", v.column, len(args)))
	}
	exec(`UPDATE sessions SET `+strings.Join(sets, ", ")+` WHERE id=$1`, args...)
	exec(`DELETE FROM snapshots WHERE session=$1`, x.Row)
	for _, prefix := range x.Exemplars {
		exec(`UPDATE exemplars SET exemplar='' WHERE machine=$1 AND substring(exemplar FROM 1 FOR $2::int)=$3`, machine, len(prefix), []byte(prefix))
	}
	exec(`UPDATE machines SET trust_version=trust_version+1 WHERE id=$1`, machine)
	exec(sayErasing, int64(x.At))
	exec(raiseFormat, format)
	return err == nil, err
}

const (
	sayErasing  = `INSERT INTO erasing (at) VALUES ($1) ON CONFLICT (one) DO UPDATE SET at=excluded.at`
	raiseFormat = `UPDATE meta SET min_reader=greatest(min_reader, $1), min_writer=greatest(min_writer, $1)`
)

// stillRead is how long is waited for transactions that may read what was erased.
const stillRead = 5 * time.Second

// Overwrite implements [erase.Store].
func (e *erasing) Overwrite(ctx context.Context, overwritten func() error) error {
	var due bool
	if err := e.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM erasing)`).Scan(&due); err != nil || !due {
		return err
	}
	if err := e.alone(ctx); err != nil {
		return err
	}
	list := []string{"log", "agent_log", "llm_audit", "exemplars", "sessions", "snapshots", "archived"}
	remembers, err := e.remembers(ctx, e.conn)
	if err != nil {
		return err
	}
	if remembers {
		for _, n := range erase.Naming {
			list = append(list, e.address.schema+controlSuffix+"."+n.Table)
		}
	}
	if _, err := e.conn.Exec(ctx, `VACUUM `+strings.Join(list, ", ")); err != nil {
		return err
	}
	if err := overwritten(); err != nil {
		return err
	}
	_, err = e.conn.Exec(ctx, `DELETE FROM erasing`)
	return err
}

// alone waits until no transaction is left that may read what was there before. What backends of other roles read is
// only seen by who may see that.
func (e *erasing) alone(ctx context.Context) error {
	var now uint32
	if err := e.conn.QueryRow(ctx, `SELECT pg_current_xact_id()::xid`).Scan(&now); err != nil {
		return err
	}
	for began, pause := time.Now(), fencePause; ; pause = min(2*pause, 100*fencePause) {
		var read bool
		if err := e.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid() AND backend_type='client backend' AND age(backend_xmin)>=age($1::xid))`, now).Scan(&read); err != nil || !read {
			return err
		}
		if time.Since(began) > stillRead {
			return erase.ErrStillRead
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// remembers reports whether a server remembers something in the schema beside.
func (e *erasing) remembers(ctx context.Context, q querier) (is bool, err error) {
	err = q.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, e.address.schema+controlSuffix+".claims").Scan(&is)
	return is, err
}

// Remembered implements [erase.Store].
func (e *erasing) Remembered(ctx context.Context, ids []string) (n int64, err error) {
	err = pgx.BeginFunc(ctx, e.conn, func(tx pgx.Tx) error {
		has, err := e.remembers(ctx, tx)
		if err == nil && has {
			_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('dialai ' || store_id, 0)) FROM `+e.address.schema+controlSuffix+`.meta`) // with all others that write there
		}
		if err == nil {
			n, err = e.naming(ctx, tx, `DELETE FROM `, ids)
		}
		if err == nil && n > 0 {
			_, err = tx.Exec(ctx, sayErasing, time.Now().UnixMilli())
		}
		return err
	})
	return n, err
}

// naming counts or deletes what servers remember of sessions, as the verb says.
func (e *erasing) naming(ctx context.Context, tx pgx.Tx, verb string, ids []string) (n int64, err error) {
	if has, err := e.remembers(ctx, tx); err != nil || !has {
		return 0, err
	}
	for _, of := range erase.Naming {
		var where []string
		for _, column := range of.Columns {
			where = append(where, `position(id IN coalesce(`+column+`, ''))>0`)
			if of.Begins {
				where = []string{`substring(` + column + ` FROM 1 FOR length(id))=id`}
			}
		}
		query := verb + e.address.schema + controlSuffix + `.` + of.Table + ` WHERE EXISTS (SELECT FROM unnest($1::bytea[]) named (id) WHERE ` + strings.Join(where, ` OR `) + `)`
		var names [][]byte
		for _, id := range ids {
			names = append(names, []byte(id))
		}
		if strings.HasPrefix(verb, "SELECT") {
			var some int64
			err = tx.QueryRow(ctx, query, names).Scan(&some)
			n += some
		} else if done, failed := tx.Exec(ctx, query, names); failed == nil {
			n += done.RowsAffected()
		} else {
			err = failed
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
