package postgres

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/archive"
	"github.com/dialai/dialai/store/internal/transfer"
)

// How sessions are moved from a database to a file (store/internal/archive says in which steps).
//
// In a file, sessions have numbers in the order in which they began, which those of a database need not have. So in the
// archive a session has the place of its first record as its number.
//
// Then partitions of the log give their room back (partition_tidy.go).

// Archivable returns what [Store.Archive] would move, and moves nothing. The errors are those of that.
func (s *Store) Archivable(ctx context.Context, o store.ArchiveOptions) (a store.Archived, err error) {
	o.Fill()
	secret, err := s.Secret(ctx)
	if err == nil && o.To != "" {
		err = store.FitsArchive(ctx, o.To, secret)
	}
	if err != nil {
		return a, err
	}
	err = s.reading(ctx, func(tx pgx.Tx) (err error) {
		if err = knows(ctx, tx, o.MachineName); err == nil {
			a, err = archivable(ctx, tx, &o)
		}
		return err
	})
	return a, err
}

// knows returns an error if there is no machine of a name; "" is any.
func knows(ctx context.Context, q querier, machineName string) (err error) {
	known := machineName == ""
	if !known {
		err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM machines WHERE machine_name=$1)`, machineName).Scan(&known)
	}
	if err == nil && !known {
		err = &session.NotFoundError{What: "Machine", ID: machineName}
	}
	return err
}

// toArchive are the sessions that are to be archived, the newest apart: it ended before $1, is of the machine $2 and has one of the
// statuses $3.
const toArchive = `SELECT s.id, s.id IN (SELECT max(id) FROM sessions UNION ALL (SELECT session FROM log ORDER BY place DESC LIMIT 1) UNION ALL (SELECT session FROM agent_log ORDER BY place DESC LIMIT 1)) AS newest
	FROM sessions s WHERE s.ended_at<$1 AND s.reviews=0 AND ($2='' OR s.machine=(SELECT id FROM machines WHERE machine_name=$2)) AND s.status=ANY($3::smallint[]) AND s.status>=2`

// conditions returns the arguments of toArchive.
func conditions(o *store.ArchiveOptions) []any {
	var statuses []int16
	for _, status := range o.Statuses {
		statuses = append(statuses, int16(status))
	}
	return []any{int64(o.Before), o.MachineName, statuses}
}

func archivable(ctx context.Context, q querier, o *store.ArchiveOptions) (a store.Archived, err error) {
	err = q.QueryRow(ctx, `WITH old AS MATERIALIZED (`+toArchive+`)
		SELECT count(DISTINCT o.id), count(l.session), coalesce(sum(length(l.events)), 0)::bigint, (SELECT count(*) FROM old WHERE newest) FROM old o JOIN log l ON l.session=o.id WHERE NOT o.newest`, conditions(o)...).
		Scan(&a.Sessions, &a.Records, &a.Bytes, &a.Kept)
	return a, err
}

// Archive moves the logs of sessions that have ended to a file, while others read and write the
// store. Interrupted, it can be run again. The errors are those of [store.SQLite.Archive]; it takes the role that owns the tables.
func (s *Store) Archive(ctx context.Context, o store.ArchiveOptions) (done store.Archived, err error) {
	o.Fill()
	conn, err := s.connection(ctx)
	if err != nil {
		return done, s.translate(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := readingBy(ctx, conn, func(tx pgx.Tx) error { return s.mayMove(ctx, tx) }); err != nil {
		return done, s.translate(err)
	}
	unlock, err := s.archiving()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	m := &archiving{s: s, conn: conn, o: &o, begins: map[int64]int64{}}
	var all store.Archived
	err = readingBy(ctx, conn, func(tx pgx.Tx) (err error) {
		if err = cmp.Or(refused(ctx, tx), knows(ctx, tx, o.MachineName)); err == nil {
			all, err = archivable(ctx, tx, &o)
		}
		return err
	})
	if err != nil {
		return done, s.translate(err)
	}
	if all.Sessions == 0 {
		done.Kept = all.Kept
		return done, s.translate(m.tidyPartitions(ctx))
	}
	secret, err := s.Secret(ctx)
	if err != nil {
		return done, err
	}
	if m.file, err = store.OpenArchiveFile(ctx, o.To, secret); err != nil {
		return done, err
	}
	done, err = archive.Run(ctx, m, &o, m.file.Path(), all)
	if err = errors.Join(err, m.file.Close()); err == nil {
		err = s.translate(m.tidyPartitions(ctx))
	}
	return done, err
}

// An archiving is one run of Archive.
type archiving struct {
	s    *Store
	conn *pgx.Conn
	o    *store.ArchiveOptions
	file *store.ArchiveFile

	begins map[int64]int64 // numbers in the archive of sessions that were copied
}

// Next implements [archive.Store].
func (m *archiving) Next(ctx context.Context, after int64) ([]int64, error) {
	rows, _ := m.conn.Query(ctx, `SELECT id FROM (`+toArchive+`) old WHERE NOT newest AND id>$4 ORDER BY id LIMIT $5`, append(conditions(m.o), after, m.o.Batch)...) // the error comes with the rows
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return list, m.s.translate(err)
}

// Copy implements [archive.Store].
func (m *archiving) Copy(ctx context.Context, rows []int64) error {
	var definitions, records, agents []transfer.Row
	err := readingBy(ctx, m.conn, func(tx pgx.Tx) error {
		const begins = `(SELECT b.place FROM log b WHERE b.session=x.session AND b.first=1)`
		for _, part := range []struct {
			into  *[]transfer.Row
			query string
		}{
			{&definitions, `SELECT d.id, '', 0::bigint, m.machine_name, d.machine_digest, 0::bigint, 0::bigint, '', d.definition, ''::bytea FROM definitions d JOIN machines m ON m.id=d.machine
				WHERE d.machine IN (SELECT machine FROM sessions WHERE id=ANY($1)) ORDER BY d.id`},
			{&records, `SELECT x.place, '', ` + begins + `, '', '', x.first, x.at, coalesce(m.machine_name, ''), x.events, x.hash FROM log x LEFT JOIN machines m ON m.id=x.decides WHERE x.session=ANY($1) ORDER BY x.place`},
			{&agents, `SELECT x.place, '', ` + begins + `, '', '', x.seq, 0::bigint, '', x.event, x.hash FROM agent_log x WHERE x.session=ANY($1) ORDER BY x.place`},
		} {
			list, _ := tx.Query(ctx, part.query, rows) // the error comes with the rows
			var err error
			if *part.into, err = pgx.CollectRows(list, func(row pgx.CollectableRow) (r transfer.Row, err error) {
				return r, row.Scan(&r.Place, &r.Of, &r.Session, &r.Machine, &r.Digest, &r.First, &r.At, &r.Decides, &r.Body, &r.Hash)
			}); err != nil {
				return err
			}
		}
		var row, place int64
		list, _ := tx.Query(ctx, `SELECT session, place FROM log WHERE session=ANY($1) AND first=1`, rows) // the error comes with the rows
		_, err := pgx.ForEachRow(list, []any{&row, &place}, func() error { m.begins[row] = place; return nil })
		return err
	})
	if err != nil {
		return m.s.translate(err)
	}
	return m.file.Add(ctx, definitions, records, agents)
}

// Verify implements [archive.Store].
func (m *archiving) Verify(ctx context.Context) ([]string, error) { return m.file.Verify(ctx, m.o) }

// Count implements [archive.Store].
func (m *archiving) Count(ctx context.Context, machineName string) error {
	return stats.NewFollower(m.s, m.o.Programs).Keep(ctx, machineName)
}

// Left implements [archive.Store].
func (m *archiving) Left(ctx context.Context) (store.Archived, error) {
	left, err := archivable(ctx, m.conn, m.o)
	return left, m.s.translate(err)
}

// Delete implements [archive.Store].
func (m *archiving) Delete(ctx context.Context, rows []int64, done store.Archived) (store.Archived, error) {
	var has []toMove
	for _, row := range rows {
		begins, ok := m.begins[row]
		if !ok { // it ended since the logs were copied
			continue
		}
		is, ok, err := m.file.Session(ctx, begins)
		if err != nil {
			return done, err
		}
		if ok {
			has = append(has, toMove{row, is})
		}
	}
	if len(has) == 0 {
		return done, nil
	}
	batch := done
	var gone []string
	err := pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) (err error) {
		batch = done
		gone, err = m.delete(ctx, tx, has, &batch)
		return err
	})
	if err != nil {
		return done, m.s.translate(err)
	}
	m.s.gone("", gone...)
	return batch, nil
}

// A toMove is a session with what the archive has of it.
type toMove struct {
	row int64
	is  store.ArchivedSession
}

// delete deletes those of some sessions that are as the archive has them, writes down where they went, and returns their ids.
func (m *archiving) delete(ctx context.Context, tx pgx.Tx, has []toMove, done *store.Archived) (gone []string, err error) {
	ids, heads, taught, entries := make([]int64, len(has)), make([][]byte, len(has)), make([][]byte, len(has)), make([]int64, len(has))
	for i := range has {
		ids[i], heads[i], taught[i], entries[i] = has[i].row, has[i].is.Head[:], has[i].is.Taught, has[i].is.Agents
	}
	if _, err := tx.Exec(ctx, inTurn, m.s.lock); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `SELECT FROM sessions WHERE id=ANY($1) ORDER BY id FOR UPDATE`, ids); err != nil { // so that nobody appends to their logs
		return nil, err
	}
	rows, _ := tx.Query(ctx, `INSERT INTO archived (session_id, row, machine, sequence, head, taught, archive, at)
		SELECT s.session_id, s.id, s.machine, s.sequence, s.head, a.taught, $5, $6 FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[]) a (id, head, taught, entries)
		JOIN sessions s ON s.id=a.id AND s.head=a.head WHERE (SELECT count(*) FROM agent_log g WHERE g.session=s.id)=a.entries RETURNING session_id::text, row`,
		ids, heads, taught, entries, m.file.Path(), int64(m.o.At)) // the error comes with the rows
	var text string
	var row int64
	ids = ids[:0]
	if _, err := pgx.ForEachRow(rows, []any{&text, &row}, func() error { gone, ids = append(gone, text), append(ids, row); return nil }); err != nil {
		return nil, err
	}
	var records, bytes int64
	if err := tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(length(events)), 0)::bigint FROM log WHERE session=ANY($1)`, ids).Scan(&records, &bytes); err != nil {
		return nil, err
	}
	for _, statement := range []string{
		`INSERT INTO archived_records (agents, place, hash) SELECT 0, place, hash FROM log WHERE session=ANY($1) UNION ALL SELECT 1, place, hash FROM agent_log WHERE session=ANY($1)`,
		`DELETE FROM log WHERE session=ANY($1)`, `DELETE FROM agent_log WHERE session=ANY($1)`, `DELETE FROM snapshots WHERE session=ANY($1)`,
		`DELETE FROM work WHERE session=ANY($1)`, `DELETE FROM sessions WHERE id=ANY($1)`,
	} {
		if _, err := tx.Exec(ctx, statement, ids); err != nil {
			return nil, err
		}
	}
	done.Sessions, done.Records, done.Bytes = done.Sessions+int64(len(ids)), done.Records+records, done.Bytes+bytes
	return gone, nil
}
