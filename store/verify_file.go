package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// file returns the checks of the file itself.
func (a *audit) file() []check {
	return []check{
		{inSchema, "schema", a.checkOwnSchema},
		{inSchema, "migrations", a.checkVersions},
		{inFile, "file", a.checkPages},
	}
}

// checkOwnSchema holds the text of tables and indexes against the migrations.
func (a *audit) checkOwnSchema(ctx context.Context) error {
	all, err := sessions.migrations()
	if err != nil {
		return err
	}
	var id int64
	if err := a.q.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return err
	}
	if id != sessions.applicationID {
		return differs(inFile, "file", "its application id is %#x instead of %#x", id, sessions.applicationID)
	}
	err = checkSchema(ctx, a.q, all, meaning)
	if e, ok := errors.AsType[*SchemaError](err); ok {
		return differs(inSchema, "schema", "%s %s", e.Object, e.Problem)
	}
	if err != nil {
		return err
	}
	err = checkSchema(ctx, a.q, all, func(text string) string { return text })
	if e, ok := errors.AsType[*SchemaError](err); ok {
		return differs(inFile, "schema", "a comment or a blank in the text that made %s is another", e.Object)
	}
	return err
}

// checkVersions holds what is recorded of migrations against the program's.
func (a *audit) checkVersions(ctx context.Context) error {
	all, err := sessions.migrations()
	if err != nil {
		return err
	}
	err = checkRecorded(ctx, a.q, all)
	if e, ok := errors.AsType[*MigrationError](err); ok {
		return differs(inSchema, "migrations", "%v", e)
	}
	if err != nil {
		return err
	}
	var applied, other, last, sequence int64
	err = a.q.QueryRowContext(ctx, `SELECT count(DISTINCT version_id) FILTER (WHERE is_applied AND version_id BETWEEN 0 AND ?1),
		count(*) FILTER (WHERE NOT is_applied OR version_id NOT BETWEEN 0 AND ?1), max(id),
		coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name='goose_db_version'), 0) FROM goose_db_version`, len(all)).Scan(&applied, &other, &last, &sequence)
	if err == nil && (applied != int64(len(all))+1 || other != 0 || last != sequence) {
		return differs(inSchema, "goose_db_version", "it does not list the migrations 1 to %d", len(all))
	}
	return err
}

// maxProblems is how many problems of the file's pages are looked for.
const maxProblems = 20

// malformed is what SQLite finds where it cannot check a page: where tables begin is wrong, and nobody can
// promise that they can be read.
const malformed = "database disk image is malformed"

// checkPages runs SQLite's own checks.
func (a *audit) checkPages(ctx context.Context) error {
	var problems []string
	var line string
	for err := range scan(a.q.QueryContext(ctx, fmt.Sprintf(`PRAGMA integrity_check(%d)`, maxProblems))).into(&line) {
		if err != nil {
			return err
		}
		if line != "ok" {
			problems = append(problems, strings.TrimSpace(strings.TrimPrefix(line, "*** in database main ***")))
		}
	}
	if slices.Contains(problems, malformed) {
		return differs(inSchema, "schema", "SQLite cannot tell where the tables are: %s", malformed)
	}
	if len(problems) > 0 {
		return differs(inFile, "file", "SQLite finds %s", strings.ReplaceAll(strings.Join(problems, "; "), "\n", "; "))
	}
	return a.checkForeignKeys(ctx)
}

func (a *audit) checkForeignKeys(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		return differs(inFile, "file", "a foreign key leads nowhere")
	}
	return rows.Err()
}
