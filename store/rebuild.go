package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/internal/pack"
	"github.com/dialai/dialai/store/internal/projection"
	"github.com/dialai/dialai/store/internal/scratch"
)

// Rebuild trusts nothing of a file but what the logs prove. It writes a new file beside
// the store: the rows of the logs as they are, everything that follows from them as they
// say, every index from nothing. Then SQLite copies the new file's pages over the
// store's in one transaction, so that other processes go on with it, and a crash leaves
// either the old or the new. The transaction begins before the logs are read, and keeps
// every writer out.

// ErrDriven is the error of rebuilding a store whose sessions a process carries on.
var ErrDriven = errors.New("a process carries the sessions of the store on")

// RebuildOptions say how a store is rebuilt. The zero value is fine.
type RebuildOptions struct {
	AcceptCut bool // ends of logs that were cut off are taken as they are
	Repack    bool // events that stand in the logs as JSON are packed
}

// Rebuild writes everything that follows from the logs anew, indexes and free space
// included, in one transaction. It refuses, with the difference in the report, if a log
// or a definition is damaged; where what nothing follows from is damaged (the secret, the audit of models, logs of agents)
// the report says so, too, and all else is made anew. For a while it takes as much room on the disk as the store again. It
// returns [ErrDriven] if another process holds the lock of [SQLite.DriverLock], and holds it itself
// meanwhile.
func (s *SQLite) Rebuild(ctx context.Context, programs *session.Programs, o RebuildOptions) (report Report, err error) {
	lock, err := s.DriverLock()
	if err != nil {
		return report, err
	}
	switch free, err := lock.TryLock(); {
	case err != nil:
		return report, err
	case !free:
		return report, ErrDriven
	}
	defer func() { _ = lock.Unlock() }() // it goes with the process at the latest
	b := &rebuild{store: s, fresh: s.path + ".rebuild", programs: programs, o: o, ctx: ctx}
	err = s.out.do(&job{ctx: ctx, alone: b.run})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = newCache()
	return b.report, err
}

// A rebuild is the writing of all rows. It keeps the first error.
type rebuild struct {
	store    *SQLite
	fresh    string // path of the new file
	programs *session.Programs
	o        RebuildOptions
	report   Report
	left     Report // what it cannot repair, nor needs
	a        *audit
	ctx      context.Context //nolint:containedctx // of the one call it lives in
	conn     *sql.Conn       // reads the store as main, writes the new file as fresh
	err      error
}

// run locks the store by its writing connection, and rebuilds it.
func (b *rebuild) run(_ context.Context, conn *sql.Conn) error {
	if err := removeStore(b.fresh); err != nil {
		return err
	}
	if err := makeFile(b.fresh); err != nil {
		return err
	}
	defer removeStore(b.fresh)
	if err := b.migrate(); err != nil { // before anything is locked: SQLite takes an empty file for all there is to copy
		return err
	}
	return translate(conn.Raw(func(driver any) error {
		copied, err := driver.(restorer).NewRestore("file:" + escapePath(b.fresh))
		if err != nil {
			return err
		}
		if _, err = copied.Step(0); err == nil { // copies nothing yet, but locks the store
			err = b.write()
		}
		if err == nil && b.report.Difference == nil {
			if _, err = copied.Step(-1); err == nil {
				b.report = b.left
			}
		}
		return errors.Join(err, copied.Finish())
	}))
}

// A restorer is a connection whose file can be replaced by another's pages.
type restorer interface {
	NewRestore(from string) (*sqlite.Backup, error)
}

// write fills the new file, unless the logs are damaged.
func (b *rebuild) write() error {
	pool, err := openPool(b.store.path, b.store.how, false)
	if err != nil {
		return err
	}
	defer pool.Close()
	err = b.check(pool)
	if b.a != nil {
		defer b.a.read.Close()
	}
	if err != nil || b.report.Difference != nil {
		return err
	}
	if b.conn, err = pool.Conn(b.ctx); err != nil {
		return err
	}
	defer b.conn.Close()
	b.exec(`ATTACH ? AS fresh`, "file:"+escapePath(b.fresh))
	b.exec(`PRAGMA fresh.synchronous=OFF`)
	b.exec(`BEGIN`)
	b.all()
	b.exec(`COMMIT`)
	return b.err
}

// migrate gives the new file its tables.
func (b *rebuild) migrate() error {
	all, err := sessions.migrations()
	if err != nil {
		return err
	}
	pool, err := openPool(b.fresh, access{busy: b.store.how.busy, scratch: true}, false)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = sessions.apply(b.ctx, pool, all, 0, func(string, int64, int64) {})
	return err
}

// check folds the logs, and reports what is damaged and cannot be written anew. It has a
// connection of its own: after a check of damaged pages SQLite refuses to write by it.
func (b *rebuild) check(pool *sql.DB) error {
	conn, err := pool.Conn(b.ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	a, err := newAudit(b.ctx, reader{conn}, b.programs, !b.o.AcceptCut)
	if err != nil {
		return err
	}
	b.a = a
	b.a.progress = b.store.told()
	if err = b.a.everything(b.ctx); err != nil {
		return err
	}
	found := b.a.found
	b.a.found = map[Kind]*Difference{}
	for kind, d := range found {
		if kind.source() {
			b.a.found[kind] = d
		}
	}
	b.a.conclude()
	b.report = b.a.report
	if b.report.Difference != nil {
		return nil
	}
	for kind, d := range found {
		if !kind.derived() {
			b.a.found[kind] = d
		}
	}
	b.a.conclude()
	b.left = b.a.report
	return nil
}

func (b *rebuild) exec(query string, args ...any) {
	if b.err == nil {
		if _, err := b.conn.ExecContext(b.ctx, query, args...); err != nil {
			b.err = fmt.Errorf("%s: %w", query, err)
		}
	}
}

// all writes every row.
func (b *rebuild) all() {
	b.copyTables()
	b.machines()
	b.besideRecords()
	for s := range b.a.read.Sessions() {
		b.session(s)
	}
	for _, r := range b.a.alignment() {
		machine := b.a.rows[r.Machine]
		b.exec(insert("fresh.alignment", projection.AlignmentColumns), r.Fields(nil, &machine)...)
	}
	n := int64(0)
	for e := range b.a.read.Exemplars() {
		n++
		machine := b.a.rows[e.Machine]
		b.insert("exemplars", n, projection.ExemplarColumns, e.Fields(nil, &machine)...)
	}
	for l := range b.a.read.Lessons() {
		b.insert("lessons", l.Place, []string{"lesson", "at"}, l.Text, l.At)
	}
	b.err = cmp.Or(b.err, b.a.read.Err())
}

// insert writes a row that has a number.
func (b *rebuild) insert(table string, id int64, columns []string, values ...any) {
	b.exec(insert("fresh."+table, append([]string{"id"}, columns...)), append([]any{id}, values...)...)
}

// copyTables copies what follows from nothing, row by row: no page and no index of the
// old file is used but those that hold the rows.
func (b *rebuild) copyTables() {
	b.exec(`DELETE FROM fresh.secrets`)
	b.exec(`DELETE FROM fresh.goose_db_version`)
	b.log()
	for table, columns := range map[string][]string{
		"goose_db_version": {"version_id", "is_applied", "tstamp"},
		"roster_log":       projection.RosterColumns,
		"llm_audit":        {"session_id", "entry", "hash"},
		"agent_log":        agentColumns,
	} {
		b.exec(fmt.Sprintf(`INSERT INTO fresh.%s (id, %s) SELECT id, %[2]s FROM main.%[1]s NOT INDEXED ORDER BY id`, table, strings.Join(columns, ", ")))
	}
	if b.o.Repack {
		b.repack()
	}
	b.exec(`INSERT INTO fresh.secrets (name, value) SELECT name, value FROM main.secrets WHERE name<>?`, secretBegun) // what follows is written
	b.exec(`INSERT INTO fresh.gaps (place, last) ` + emptyPlaces(logPlaces))
	b.exec(`INSERT INTO fresh.archived_records SELECT * FROM main.archived_records`)
	b.exec(`INSERT INTO fresh.archived SELECT * FROM main.archived`)
	b.exec(`INSERT INTO fresh.copying SELECT * FROM main.copying`)
	b.exec(`INSERT INTO fresh.copied SELECT * FROM main.copied`)
	b.exec(`INSERT INTO fresh.erasing SELECT * FROM main.erasing`)
}

// log copies the logs. Where a record begins in its log is unique there, so a record of which that is damaged comes to
// begin where none does, until [rebuild.besideRecords] has repaired it.
func (b *rebuild) log() {
	places, err := json.Marshal(slices.Collect(maps.Keys(b.a.beside)))
	b.err = errors.Join(b.err, err)
	columns := strings.Join(projection.LogColumns, ", ")
	first := strings.Replace(columns, "first", "iif(id IN (SELECT value FROM json_each(?)), -id, first)", 1)
	b.exec(`INSERT INTO fresh.log (id, `+columns+`) SELECT id, `+first+` FROM main.log NOT INDEXED ORDER BY id`, string(places))
}

// repack packs the events that were copied as JSON.
func (b *rebuild) repack() {
	for last := int64(0); b.err == nil; {
		var plain []byte
		err := b.conn.QueryRowContext(b.ctx, `SELECT id, events FROM fresh.log WHERE id>? AND substr(events, 1, 1)=x'5b' ORDER BY id LIMIT 1`, last).Scan(&last, &plain)
		if errors.Is(err, sql.ErrNoRows) {
			return
		}
		if b.err = err; err == nil {
			b.exec(`UPDATE fresh.log SET events=? WHERE id=?`, pack.Append(nil, plain), last)
		}
	}
}

// machines writes the names of machines, and definitions under them.
func (b *rebuild) machines() {
	for _, id := range slices.Sorted(maps.Keys(b.a.machines)) {
		name := b.a.machines[id]
		b.exec(`INSERT INTO fresh.machines (id, machine_name, trust_version)
			VALUES (?1, ?2, max(?3, coalesce((SELECT trust_version FROM main.machines WHERE id=?1), 0)) + 1)`, id, name, b.a.learned[name])
	}
	for digest, d := range b.a.definitions {
		b.insert("definitions", d.id, projection.DefinitionColumns, digest, d.machine, d.text)
	}
}

// besideRecords repairs what stands beside the events of a record.
func (b *rebuild) besideRecords() {
	for _, place := range slices.Sorted(maps.Keys(b.a.beside)) {
		want := b.a.beside[place]
		b.exec(`UPDATE fresh.log SET first=?, at=?, decides=? WHERE id=?`, want.first, want.at, want.decides, place)
	}
}

// session writes the row of a session whose log is whole.
func (b *rebuild) session(s *scratch.Session) {
	if machine, head := b.a.rows[s.Machine], s.Head[:]; s.Folded {
		b.insert("sessions", s.Row, projection.SessionColumns, s.Fields(nil, &machine, &head)...)
	}
}
