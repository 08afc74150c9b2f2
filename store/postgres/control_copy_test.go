package postgres_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// ofOneFile are tables of a control file that are not copied: they say which program has made it, and where it went.
var ofOneFile = []string{"goose_db_version", "migrations", "sqlite_sequence", "copying"}

// TestControlCopied: all that a server remembers goes from a file to a database and back, whatever its bytes are, in the place of what was there; then
// both go on: numbers are not given twice.
func TestControlCopied(t *testing.T) {
	ctx, address := t.Context(), pgtest.Database(t)
	open := func(name string) *store.Control {
		t.Helper()
		c, err := store.OpenControl(ctx, filepath.Join(t.TempDir(), name), store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	one, two := open("one"), open("two")
	tables := fillControl(t, one.Path(), 1)
	fillControl(t, two.Path(), 7) // which is replaced
	there, err := postgres.OpenControl(ctx, address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	empty := func(want bool, of store.Remembering) {
		t.Helper()
		if is, err := store.ControlEmpty(ctx, of); err != nil || is != want {
			t.Errorf("it is empty: %t, %v", is, err)
		}
	}
	empty(true, there)
	empty(false, one)
	if err := store.CopyControl(ctx, two, there); err != nil {
		t.Fatal(err)
	}
	empty(false, there)
	for _, c := range []struct{ from, to store.Remembering }{{one, there}, {there, two}} {
		if err := store.CopyControl(ctx, c.from, c.to); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range tables {
		if was, is := controlRows(t, one.Path(), table), controlRows(t, two.Path(), table); len(was) < 3 || !slices.Equal(was, is) {
			t.Errorf("%s was\n%s\nand is\n%s", table, strings.Join(was, "\n"), strings.Join(is, "\n"))
		}
	}
	for _, c := range []control.Store{there, two} {
		if err := c.Commit(ctx, control.Changes{Keys: []control.Key{{ID: "new"}}}); err != nil {
			t.Errorf("a key cannot be created: %v", err)
		}
	}
}

// TestControlFrozen: once a store was copied for good nobody writes to what servers remember of it, whoever opened it when; each is
// told where it went, what is remembered is read, copied into again it is written to again, and so it is when it is thawed.
func TestControlFrozen(t *testing.T) {
	ctx := t.Context()
	type remembering interface {
		control.Store
		store.Remembering
		io.Closer
	}
	for name, opened := range map[string]func(place string) (remembering, error){
		"a file":     func(place string) (remembering, error) { return store.OpenControl(ctx, place, store.SQLiteOptions{}) },
		"a database": func(place string) (remembering, error) { return postgres.OpenControl(ctx, place, postgres.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "control")
			if name == "a database" {
				place = pgtest.Database(t)
			}
			open := func() remembering {
				t.Helper()
				c, err := opened(place)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			keys := 0
			create := func(c control.Store) error {
				keys++
				return c.Commit(ctx, control.Changes{Keys: []control.Key{{ID: fmt.Sprint("key", keys)}}})
			}
			refused := func(c control.Store) {
				t.Helper()
				_, begun := c.Begin(ctx, control.Receipt{Key: control.ReceiptKey{Key: fmt.Sprint(keys)}, At: 1}, control.Entry{})
				for _, err := range []error{create(c), begun} {
					if told, is := errors.AsType[interface {
						error
						Advice() string
					}](err); !errors.Is(err, store.ErrReadOnly) || !is || told.Advice() != "use that one: --store elsewhere" {
						t.Errorf("frozen, it says %v", err)
					}
				}
			}
			written := func(c control.Store) {
				t.Helper()
				if err := create(c); err != nil {
					t.Errorf("nothing can be written: %v", err)
				}
			}
			before, freezing := open(), open()
			written(before)
			for range 2 { // so that a copy that was interrupted goes on
				if err := freezing.Freeze(ctx, "elsewhere"); err != nil {
					t.Fatal(err)
				}
			}
			after := open()
			refused(before)
			refused(after)
			if list, err := after.Keys(ctx, control.Query{}); err != nil || len(list) != 1 {
				t.Errorf("%d keys are read: %v", len(list), err)
			}
			if err := freezing.Freeze(ctx, ""); err != nil {
				t.Fatal(err)
			}
			written(before)
			written(after)
			if err := freezing.Freeze(ctx, "elsewhere"); err != nil {
				t.Fatal(err)
			}
			from, err := store.OpenControl(ctx, filepath.Join(t.TempDir(), "from"), store.SQLiteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { from.Close() })
			if err := store.CopyControl(ctx, from, after); err != nil {
				t.Fatal(err)
			}
			written(before)
			written(freezing)
		})
	}
}

// TestControlCopiedToDatabase: all that a server remembers goes from a database to another one, in the place of what was there, row by row as it
// was; then the copy goes on: numbers are not given twice.
func TestControlCopiedToDatabase(t *testing.T) {
	ctx, addresses := t.Context(), [2]string{pgtest.Database(t), pgtest.Database(t)}
	var both [2]*postgres.Control
	var tables []string
	for i, address := range addresses {
		file, err := store.OpenControl(ctx, filepath.Join(t.TempDir(), "control"), store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		tables = fillControl(t, file.Path(), 1+6*i)
		if both[i], err = postgres.OpenControl(ctx, address, postgres.Options{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { both[i].Close() })
		if err := store.CopyControl(ctx, file, both[i]); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(of int, table string) []string {
		t.Helper()
		return ask[[]string](t, addresses[of], `SELECT array(SELECT t::text FROM dialai_control.`+table+` t ORDER BY 1)`)
	}
	was := map[string][]string{}
	for _, table := range tables {
		if was[table] = rows(0, table); len(was[table]) != 3 || slices.Equal(was[table], rows(1, table)) {
			t.Fatalf("%s of the two databases is\n%s\nand\n%s", table, strings.Join(was[table], "\n"), strings.Join(rows(1, table), "\n"))
		}
	}
	if err := store.CopyControl(ctx, both[0], both[1]); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if is := rows(1, table); !slices.Equal(was[table], is) {
			t.Errorf("%s was\n%s\nand is\n%s", table, strings.Join(was[table], "\n"), strings.Join(is, "\n"))
		}
		if is := rows(0, table); !slices.Equal(was[table], is) {
			t.Errorf("copied, %s has become\n%s", table, strings.Join(is, "\n"))
		}
	}
	if err := both[1].Commit(ctx, control.Changes{Keys: []control.Key{{ID: "new"}}}); err != nil {
		t.Errorf("a key cannot be created: %v", err)
	}
}

// fillControl writes three rows into each table of a control file, and returns the tables.
func fillControl(t *testing.T, path string, seed int) (tables []string) {
	t.Helper()
	db := openControlFile(t, path)
	for _, table := range strings.Fields(oneText(t, db, `SELECT group_concat(name, ' ') FROM sqlite_schema WHERE type='table'`)) {
		if slices.Contains(ofOneFile, table) {
			continue
		}
		tables = append(tables, table)
		columns := strings.Fields(oneText(t, db, `SELECT group_concat(name || ':' || type || ':' || "notnull", ' ') FROM pragma_table_info(?)`, table))
		for n := range 3 {
			var names []string
			var values []any
			for i, column := range columns {
				is := strings.Split(column, ":")
				number := int64(seed + n)
				var value any = number<<40 + int64(i)
				switch {
				case is[0] == "id", is[0] == "machine" && table == "versions", is[0] == "webhook", is[0] == "job", is[0] == "version", is[0] == "sequence":
					value = number
				case is[0] == "omitted", is[0] == "assigned":
					value = int64(n % 2)
				case is[1] == "INTEGER" && slices.Contains([]string{"status", "resumes", "attempts", "exit_code"}, is[0]):
					value = number
				case is[1] == "TEXT" && (is[0] == "process" || is[0] == "status"):
					value = fmt.Sprintf("%s of %d", is[0], number)
				case is[1] == "TEXT":
					value = fmt.Sprintf("%s\x00 é of %d", is[0], number)
				case is[1] == "BLOB":
					value = []byte(fmt.Sprintf("%s\xff\x00 of %d", is[0], number))
				}
				if n == 2 && is[2] == "0" && is[0] != "id" && is[0] != "job" {
					value = nil
				}
				if n == 2 && is[0] == "old_secret" {
					value = []byte{}
				}
				if n == 2 && is[0] == "note" {
					value = ""
				}
				names, values = append(names, is[0]), append(values, value)
			}
			if _, err := db.Exec(`INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) VALUES (?`+strings.Repeat(", ?", len(names)-1)+`)`, values...); err != nil {
				t.Fatalf("%s: %v", table, err)
			}
		}
	}
	if len(tables) < 13 {
		t.Fatalf("there are only the tables %v", tables)
	}
	return tables
}

// controlRows returns the rows of a table as text, without their numbers where a database has none.
func controlRows(t *testing.T, path, table string) (rows []string) {
	t.Helper()
	db := openControlFile(t, path)
	but := ""
	if !slices.Contains([]string{"audit", "keys", "machines", "webhooks", "deliveries", "jobs"}, table) {
		but = "id"
	}
	quoted := oneText(t, db, `SELECT group_concat('typeof("' || name || '") || quote(CAST("' || name || '" AS BLOB))', ' || '' '' || ') FROM pragma_table_info(?) WHERE name<>?`, table, but)
	list, err := db.Query(`SELECT ` + quoted + ` FROM ` + table + ` ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for list.Next() {
		var row string
		if err := list.Scan(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func openControlFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func oneText(t *testing.T, db *sql.DB, query string, args ...any) (text string) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
