package postgres

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// What tables a schema has to have: it is read from the migrations, which say it once. They are written for it: each
// column begins a line of its own. A test compares that with what they make; one that drops something has to be read here, too.

// A relation is a table or a sequence that a migration makes.
type relation struct {
	migration int64
	sequence  bool
	columns   map[string]int64 // by name, the migration that adds it; none of a sequence
}

var (
	commentText  = regexp.MustCompile(`--[^\n]*`)
	createTable  = regexp.MustCompile(`(?ms)^CREATE TABLE (\w+) \((.*?)^\)`)
	createSeq    = regexp.MustCompile(`(?m)^CREATE SEQUENCE (\w+)`)
	alterTable   = regexp.MustCompile(`(?ms)^ALTER TABLE (\w+)(.*?);`)
	columnOf     = regexp.MustCompile(`(?m)^ +([a-z_]+) +[a-z]`)
	addColumn    = regexp.MustCompile(`ADD COLUMN (\w+)`)
	madeSessions = sync.OnceValue(func() map[string]relation { return makes(sessionTables.dir) })
	madeControl  = sync.OnceValue(func() map[string]relation { return makes(controlTables.dir) })
)

// relations returns the tables and sequences that the migrations of a schema make, by name. They are not to be changed.
func (a address) relations() map[string]relation {
	if a.migrations() == controlTables.dir {
		return madeControl()
	}
	return madeSessions()
}

// migrations returns the folder of the migrations of a schema.
func (a address) migrations() string {
	if strings.HasSuffix(a.schema, controlSuffix) {
		return controlTables.dir
	}
	return sessionTables.dir
}

// migrationsIn returns the migrations of a folder by their numbers.
func migrationsIn(dir string) map[int64]string {
	byNumber := map[int64]string{}
	names, _ := fs.Glob(migrationFiles, dir+"/*.sql") // the pattern is right
	for _, name := range names {
		byNumber[number(name)] = name
	}
	return byNumber
}

func makes(dir string) map[string]relation {
	all := map[string]relation{}
	byNumber := migrationsIn(dir)
	var numbers []int64
	for n := range byNumber {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		text, _ := migrationFiles.ReadFile(byNumber[n]) // it is there
		sql := commentText.ReplaceAllString(string(text), "")
		for _, m := range createTable.FindAllStringSubmatch(sql, -1) {
			r := relation{migration: n, columns: map[string]int64{}}
			for _, c := range columnOf.FindAllStringSubmatch(m[2], -1) {
				r.columns[c[1]] = n
			}
			all[m[1]] = r
		}
		for _, m := range createSeq.FindAllStringSubmatch(sql, -1) {
			all[m[1]] = relation{migration: n, sequence: true}
		}
		for _, m := range alterTable.FindAllStringSubmatch(sql, -1) {
			for _, c := range addColumn.FindAllStringSubmatch(m[2], -1) {
				all[m[1]].columns[c[1]] = n
			}
		}
	}
	return all
}
