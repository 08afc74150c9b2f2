package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/projection"
)

// Migrations are frozen, each runs in a transaction of its own, and all of them under a lock that keeps
// other processes from doing the same. A newer program may have migrated the store further: this one goes
// on as long as the store says that it may (meta.min_reader, meta.min_writer), so that versions can run
// side by side while one takes the place of the other.

//go:embed migrations/*.sql migrations/control/*.sql
var migrationFiles embed.FS

// format is which form of the tables and records this program reads and writes. A store says that it is of form 2 once
// payloads were erased in it: before, nobody proved such records.
const format = 2

// migrating is the advisory lock that is held while the store is migrated.
const migrating = 0x6469616c6d696772 // "dialmigr"

// oldest is the oldest version of Postgres that has what is used.
const oldest = 130000

// tables are those of a schema.
type tables struct {
	dir  string                                 // of their migrations
	made func(context.Context, *pgx.Conn) error // writes the row of meta, unless it is there
	// then is what follows a migration, in its transaction. told is told how far it is.
	then map[int64]func(ctx context.Context, tx *sql.Tx, told func(part string, done, of int64)) error
}

// sessionTables are those of a store of sessions.
var sessionTables = tables{dir: "migrations", made: func(ctx context.Context, conn *pgx.Conn) error {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	_, err := conn.Exec(ctx, `INSERT INTO meta (secret) VALUES ($1) ON CONFLICT DO NOTHING`, secret)
	return err
}, then: map[int64]func(context.Context, *sql.Tx, func(part string, done, of int64)) error{10: fillDrivers, 11: fillSince}}

// controlTables are those of what a server must remember.
var controlTables = tables{dir: "migrations/control", made: func(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `INSERT INTO meta DEFAULT VALUES ON CONFLICT DO NOTHING`)
	return err
}}

// Migrate brings a store up to date, makes it if there is none, and returns the names of the migrations
// that were applied: those of sessions, then as control/NAME those of what a server must remember. Opening
// does the same. Of the options Migrating counts. The errors are those of [Open].
func Migrate(ctx context.Context, name string, o Options) (applied []string, err error) {
	for _, t := range []*tables{&sessionTables, &controlTables} {
		a, config, err := parse(name, t)
		if err != nil {
			return applied, err
		}
		done, err := t.migrate(ctx, config, a, Options{Migrating: o.Migrating})
		for _, name := range done {
			applied = append(applied, strings.TrimPrefix(strings.TrimPrefix(t.dir+"/"+name, "migrations"), "/"))
		}
		if err != nil {
			return applied, (&database{address: a, config: config}).unopened(err)
		}
	}
	return applied, nil
}

// ErrNone: there is no store at the address, and none is to be made.
var ErrNone = errors.New("there is none")

func (t *tables) migrate(ctx context.Context, config *pgx.ConnConfig, a address, o Options) (applied []string, err error) {
	if err := alone(ctx, config); err != nil {
		return nil, err
	}
	config = a.patient(config, "lock_timeout")
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	standby, err := fits(ctx, conn)
	switch {
	case err != nil:
		return nil, err
	case standby && !o.Standby:
		return nil, errStandby // the address says that one will do
	}
	files, err := fs.Sub(migrationFiles, t.dir)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	has, err := migrated(ctx, conn)
	whole := !slices.ContainsFunc(names, func(name string) bool { return !has[number(name)] })
	if err != nil || whole && o.Standby && t == &sessionTables { // who only reads sessions reads what there is
		return nil, err
	}
	is, err := inspect(ctx, conn, a) // before anything is said of it, or made
	if err != nil {
		return nil, err
	}
	switch e := cmp.Or(is.unusable(), is.tables()); {
	case e != nil:
		e.at = a
		return nil, e
	case whole:
		return nil, nil
	}
	if len(has) == 0 && len(is.applied) > 1 && t == &sessionTables {
		var used bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM log)`).Scan(&used); err != nil {
			return nil, err
		}
		if used { // to make another one would be another store, by another secret
			return nil, &schemaError{at: a, problem: "the table meta of the schema " + a.schema + " is empty, and the log is not: what tells the store from others, and the secret that audits are drawn by, are gone", advice: "restore the database from a backup"}
		}
	}
	switch {
	case len(has) == 0 && (o.Existing || standby):
		return nil, ErrNone
	case standby:
		return nil, errBehind
	}
	if e := is.older(); e != nil {
		e.at = a
		return nil, e
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrating); err != nil { // it goes with the connection
		return nil, err
	}
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, a.schema).Scan(&exists); err != nil {
		return nil, err
	}
	if !exists {
		if _, err := conn.Exec(ctx, `CREATE SCHEMA `+a.schema); err != nil {
			return nil, err
		}
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if applied, err = t.up(ctx, db, files, o.Migrating); err != nil {
		return applied, err
	}
	return applied, t.made(ctx, conn)
}

// up applies the migrations that are missing.
func (t *tables) up(ctx context.Context, db *sql.DB, files fs.FS, told func(part string, done, of int64)) (applied []string, err error) {
	if told == nil {
		told = func(string, int64, int64) {}
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithAllowOutofOrder(true), goose.WithSlog(slog.New(slog.DiscardHandler))}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	byNumber := map[int64]string{}
	for _, name := range names {
		n := number(name)
		byNumber[n] = name
		if t.then[n] == nil {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithExcludeNames([]string{name}), goose.WithGoMigrations(goose.NewGoMigration(n, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, string(text)); err != nil {
				return err
			}
			return t.then[n](ctx, tx, told)
		}}, nil)))
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, options...)
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	for _, r := range results {
		applied = append(applied, byNumber[r.Source.Version])
	}
	return applied, err
}

// fillDrivers writes into the rows of sessions who carries each on, where that is not any process that does so for
// its store. It is in the logs only, packed. The table is locked meanwhile by what has made the column.
// told is told how far it is.
func fillDrivers(ctx context.Context, tx *sql.Tx, told func(part string, done, of int64)) error {
	var of int64
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM log`).Scan(&of); err != nil {
		return err
	}
	part := projection.NewPart("reading the log", of, told)
	rows, err := tx.QueryContext(ctx, `SELECT session, place, events FROM log`)
	if err != nil {
		return err
	}
	defer rows.Close()
	drivers := projection.Drivers{}
	for rows.Next() {
		var row, place int64
		var events sql.RawBytes
		if err := rows.Scan(&row, &place, &events); err != nil {
			return err
		}
		drivers.Add(row, place, events)
		part.Next()
	}
	part.End()
	if err := rows.Err(); err != nil {
		return err
	}
	for row, driver := range drivers.Changed() {
		if _, err := tx.ExecContext(ctx, `UPDATE sessions SET driver=$1 WHERE id=$2`, string(driver), row); err != nil {
			return err
		}
	}
	return nil
}

// fits returns an error if what the server is, or what the store says, is not for this program, and whether it is a standby.
func fits(ctx context.Context, conn *pgx.Conn) (standby bool, err error) {
	var version int
	var encoding string
	if err := conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), pg_is_in_recovery()`).Scan(&version, &encoding, &standby); err != nil {
		return standby, err
	}
	if version < oldest {
		return standby, fmt.Errorf("the server is Postgres %d, and must be %d or newer", version/10000, oldest/10000)
	}
	if encoding != "UTF8" {
		return standby, fmt.Errorf("the database has the encoding %s, and must have UTF8: createdb -E UTF8 -T template0 NAME", encoding)
	}
	var reader, writer int64
	err = conn.QueryRow(ctx, `SELECT min_reader, min_writer FROM meta`).Scan(&reader, &writer)
	switch {
	case undefined(err) || errors.Is(err, pgx.ErrNoRows):
		return standby, nil // nobody has made it yet
	case err == nil && max(reader, writer) > format:
		return standby, &store.NewerError{Has: max(reader, writer), Knows: format}
	}
	return standby, err
}

// migrated returns the numbers of the migrations that the store has; none if there is no store.
func migrated(ctx context.Context, conn *pgx.Conn) (has map[int64]bool, err error) {
	var list []int64
	var made bool // the last thing that making a store does
	err = conn.QueryRow(ctx, `SELECT array_agg(version_id), EXISTS (SELECT FROM meta) FROM goose_db_version WHERE is_applied`).Scan(&list, &made)
	if undefined(err) || err == nil && !made {
		return nil, nil
	}
	has = map[int64]bool{}
	for _, n := range list {
		has[n] = true
	}
	return has, err
}

// number returns the number of the migration in a file.
func number(name string) int64 {
	n, _ := goose.NumericComponent(name) // which read the names before
	return n
}

// undefined reports whether there is no such table.
func undefined(err error) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && (p.Code == "42P01" || p.Code == "3F000")
}
