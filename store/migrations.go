package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/pressly/goose/v3"

	"github.com/dialai/dialai/session"
)

// Migrations are frozen. Once a program with a migration has been seen by anybody,
// files exist that it made, and nothing may change it: what is wrong in it is repaired
// by another one. So each is recorded in the file as it runs, with the checksum of its
// text, in the transaction that applies it, and a file in which others ran than this
// program has is refused, naming both.
//
// Files of schema 1 to 4 have recorded nothing. Of what ran there speaks the schema
// itself: SQLite keeps the text that made each table and index, so it is compared with
// what these migrations make. One migration was changed after it had run, before this
// rule: the text it had is kept in migrations/replaced, files that it made are known
// by their schema, and the fifth migration brings them to what it is now.

//go:embed migrations/*.sql migrations/replaced/*.sql migrations/control/*.sql
var migrationFiles embed.FS

// kinds are all kinds of files.
var kinds = []*kind{&sessions, &controls}

// sessions are the files that hold the sessions of an engine.
var sessions = kind{name: "sessions", applicationID: sessionsID, dir: "migrations", recordedFrom: recordedFrom, after: afterSessions,
	before: map[int64]func(context.Context, *sql.DB, func(part string, done, of int64)) error{12: copyLog}}

const (
	sessionsID   = 0x6469616c // "dial" in ASCII
	recordedFrom = 5
)

// A migration is one step from a schema to the next.
type migration struct {
	version int64
	name    string
	sum     string // SHA-256 of its text in hex
	up      string
}

// migrations returns those of a directory in order.
func migrations(dir string) ([]migration, error) {
	names, err := fs.Glob(migrationFiles, dir+"/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	list := make([]migration, len(names))
	for i, name := range names {
		data, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		text := strings.ReplaceAll(string(data), "\r\n", "\n") // as Git may write it
		sum := sha256.Sum256([]byte(text))
		up, _, _ := strings.Cut(strings.TrimPrefix(text, "-- +goose Up"), "-- +goose Down")
		m := migration{name: path.Base(name), sum: hex.EncodeToString(sum[:]), up: up}
		if m.version, err = goose.NumericComponent(name); err != nil {
			return nil, err
		}
		list[i] = m
	}
	return list, nil
}

// migrations returns those of this program; their number is the newest schema.
func (k *kind) migrations() ([]migration, error) { return migrations(k.dir) }

// A MigrationError says that another migration ran in a file than the one this program
// has under that number.
type MigrationError struct {
	Version         int64
	Has, HasSum     string // name and SHA-256 of the one that ran; empty if it recorded none
	Knows, KnowsSum string // of this program's
}

func (e *MigrationError) Error() string {
	has := "no record of migration " + fmt.Sprint(e.Version)
	if e.Has != "" {
		has = fmt.Sprintf("migration %s (sha256 %s)", e.Has, e.HasSum)
	}
	return fmt.Sprintf("it was made by %s, this program has %s (sha256 %s); use the program that made it", has, e.Knows, e.KnowsSum)
}

// A SchemaError says that the tables of a file are not those that its migrations make.
type SchemaError struct {
	Version int64
	Object  string // a table or an index
	Problem string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("its schema is not what the migrations 1 to %d make: %s %s; another program or damage changed it: restore a copy", e.Version, e.Object, e.Problem)
}

// checkRecorded compares the migrations that ran in a file with those of the program.
func checkRecorded(ctx context.Context, q querier, made []migration) error {
	recorded := map[int64]migration{}
	var m migration
	for err := range scan(q.QueryContext(ctx, `SELECT version, name, sha256 FROM migrations ORDER BY version`)).into(&m.version, &m.name, &m.sum) {
		if err != nil {
			return err
		}
		recorded[m.version] = m
	}
	for _, m := range made {
		if has := recorded[m.version]; has.name != m.name || has.sum != m.sum {
			return &MigrationError{m.version, has.name, has.sum, m.name, m.sum}
		}
	}
	if len(recorded) != len(made) {
		return fmt.Errorf("it records %d migrations, but has schema %d", len(recorded), len(made))
	}
	return nil
}

// ran returns the migrations that made a file of a schema that recorded none.
func ran(ctx context.Context, db querier, all []migration, current int) ([]migration, error) {
	made := slices.Clone(all[:current])
	problem := checkSchema(ctx, db, made, meaning)
	var differs *SchemaError
	if !errors.As(problem, &differs) {
		return made, problem
	}
	replaced, err := migrations("migrations/replaced")
	if err != nil {
		return nil, err
	}
	for _, m := range replaced {
		if m.version <= int64(current) {
			made[m.version-1] = m
		}
	}
	if checkSchema(ctx, db, made, meaning) == nil {
		return made, nil
	}
	return nil, problem
}

// checkSchema returns a SchemaError unless the tables and indexes of a file are those
// that the migrations make, by what a reading of their texts leaves.
func checkSchema(ctx context.Context, q querier, made []migration, read func(text string) string) error {
	want, err := schemaOf(ctx, made)
	if err != nil {
		return err
	}
	got, err := objects(ctx, q, read)
	if err != nil {
		return err
	}
	for name, text := range want {
		switch has, ok := got[name]; {
		case !ok:
			return &SchemaError{int64(len(made)), name, "is missing"}
		case has != read(text):
			return &SchemaError{int64(len(made)), name, fmt.Sprintf("is %s instead of %s", has, read(text))}
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return &SchemaError{int64(len(made)), name, "is none of ours"}
		}
	}
	return nil
}

// schemas are what migrations make, by their checksums: it is the same each time.
var schemas sync.Map

// schemaOf returns the texts of the tables and indexes that the migrations make. It must not be changed.
func schemaOf(ctx context.Context, made []migration) (map[string]string, error) {
	var sums strings.Builder
	for _, m := range made {
		sums.WriteString(m.sum)
	}
	if known, ok := schemas.Load(sums.String()); ok {
		return known.(map[string]string), nil
	}
	scratch, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer scratch.Close()
	scratch.SetMaxOpenConns(1) // each connection would have a database of its own
	for _, m := range made {
		if _, err := scratch.ExecContext(ctx, m.up); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	list, err := objects(ctx, scratch, func(text string) string { return text })
	if err == nil {
		schemas.Store(sums.String(), list)
	}
	return list, err
}

// meaning returns the text of a statement without comments and blanks.
func meaning(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "--")
	}
	return strings.Join(strings.Fields(strings.Join(lines, "\n")), " ")
}

// objects returns what reading the text that made each table and index leaves. What
// SQLite and goose made for themselves is left out.
func objects(ctx context.Context, q querier, read func(text string) string) (map[string]string, error) {
	list := map[string]string{}
	var name, text string
	for err := range scan(q.QueryContext(ctx, `SELECT type || ' ' || name || ' of ' || tbl_name, coalesce(sql, '') FROM sqlite_schema
		WHERE name NOT IN ('sqlite_sequence', 'goose_db_version')`)).into(&name, &text) {
		if err != nil {
			return nil, err
		}
		list[name] = read(text)
	}
	return list, nil
}

// apply applies what a file of a schema lacks, each migration with its record in a
// transaction of its own, and returns their names. told is told how far what takes long is.
func (k *kind) apply(ctx context.Context, db *sql.DB, all []migration, current int, told func(part string, done, of int64)) ([]string, error) {
	made := all[:current]
	if int64(current) < k.recordedFrom {
		var err error
		if made, err = ran(ctx, db, all, current); err != nil {
			return nil, err
		}
	}
	var steps []*goose.Migration
	for _, m := range all {
		steps = append(steps, goose.NewGoMigration(m.version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, m.up); err != nil {
				return err
			}
			return k.after(ctx, tx, m, all, made, told)
		}}, nil))
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	var names []string
	up := func(version int64) error {
		results, err := p.UpTo(ctx, version)
		for _, r := range results {
			names = append(names, all[r.Source.Version-1].name)
		}
		return err
	}
	for _, version := range slices.Sorted(maps.Keys(k.before)) {
		if version <= int64(current) {
			continue
		}
		if err := up(version - 1); err != nil {
			return names, err
		}
		if err := k.before[version](ctx, db, told); err != nil {
			return names, err
		}
	}
	return names, up(int64(len(all)))
}

// afterSessions is what follows a migration of a file of sessions.
func afterSessions(ctx context.Context, tx *sql.Tx, m migration, all, made []migration, told func(part string, done, of int64)) error {
	switch {
	case m.version == 1:
		return ours(ctx, tx)
	case m.version < recordedFrom:
		return nil
	case m.version == recordedFrom:
		return startRecords(ctx, tx, all, made)
	case m.version == driverFrom:
		if err := fillDrivers(ctx, tx, told); err != nil {
			return err
		}
	case m.version == sinceFrom:
		if err := fillSince(ctx, tx, told); err != nil {
			return err
		}
	}
	return m.record(ctx, tx)
}

// ours marks a file as one of ours and gives it its secret.
func ours(ctx context.Context, tx *sql.Tx) error {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO secrets (name, value) VALUES ('store', ?)`, secret); err != nil {
		return err
	}
	return mark(ctx, tx, sessionsID)
}

// mark marks a file as one of a kind.
func mark(ctx context.Context, tx *sql.Tx, applicationID int64) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	return err
}

func (m migration) record(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO migrations (version, name, sha256) VALUES (?,?,?)`, m.version, m.name, m.sum)
	return err
}

// startRecords brings what was not recorded up to what is: the migrations so far, the
// gaps in the log, the chain of the audit, the hash of the secret.
func startRecords(ctx context.Context, tx *sql.Tx, all, made []migration) error {
	for i, m := range made {
		if m.sum != all[i].sum {
			if err := m.replace(ctx, tx, all[i]); err != nil {
				return fmt.Errorf("bringing %s to %s: %w", m.name, all[i].name, err)
			}
		}
	}
	for _, m := range all[:recordedFrom] {
		if err := m.record(ctx, tx); err != nil {
			return err
		}
	}
	if err := ours(ctx, tx); err != nil { // a program that was killed at the right moment left that out
		return err
	}
	if err := sealSecret(ctx, tx); err != nil {
		return err
	}
	if err := recordGaps(ctx, tx); err != nil {
		return err
	}
	return chainAudit(ctx, tx)
}

// replace brings a file that m has made to what next would have made of it.
func (m migration) replace(ctx context.Context, tx *sql.Tx, next migration) error {
	if m.name != "0002_outcomes.sql" {
		return errors.New("nobody knows how")
	}
	_, err := tx.ExecContext(ctx, next.up+`; INSERT INTO lessons (id, lesson) SELECT id, '{"outcome":' || outcome || '}' FROM outcomes; DROP TABLE outcomes`)
	return err
}

// secretSum is the name of the row that holds the SHA-256 of the secret: what nothing
// follows from cannot be checked in another way.
const secretSum = "store.sha256"

// secretLive is the name of the row of an archive that says of which store it is.
const secretLive = "archive.of"

// secretBegun is the name of the row of an archive to which records were copied from which nothing was made to follow yet: archiving
// goes on, or was interrupted.
const secretBegun = "archive.begun"

// secretEpoch is the name of the row of a store that was restored, by which its places are told from
// those that it had before.
const secretEpoch = "epoch"

func sealSecret(ctx context.Context, tx *sql.Tx) error {
	var secret []byte
	if err := tx.QueryRowContext(ctx, `SELECT value FROM secrets WHERE name='store'`).Scan(&secret); err != nil {
		return err
	}
	sum := sha256.Sum256(secret)
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO secrets (name, value) VALUES (?,?)`, secretSum, sum[:])
	return err
}

// recordGaps records which places of the log are empty.
func recordGaps(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO gaps (place, last) `+emptyPlaces("log"))
	return err
}

// chainAudit gives the entries of the audit that were written without one their hash.
func chainAudit(ctx context.Context, tx *sql.Tx) error {
	var prev session.Hash
	for last := int64(0); ; {
		var sessionID, entry string
		err := tx.QueryRowContext(ctx, `SELECT id, session_id, entry FROM llm_audit WHERE id>? ORDER BY id LIMIT 1`, last).Scan(&last, &sessionID, &entry)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			prev = session.Chain(prev, sessionID, []byte(entry))
			_, err = tx.ExecContext(ctx, `UPDATE llm_audit SET hash=? WHERE id=?`, prev[:], last)
		}
		if err != nil {
			return err
		}
	}
}
