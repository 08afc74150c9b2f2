package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/store/storetest"
)

// TestErase holds a database to the suite of erasing. What was said is looked for in every column of every table of
// both schemas.
func TestErase(t *testing.T) {
	storetest.RunErase(t, func(t *testing.T) storetest.EraseMaker {
		return eraseMaker(pgtest.Database(t))
	})
}

// eraseMaker returns stores in a database in which sessions are erased.
func eraseMaker(address string) storetest.EraseMaker {
	return storetest.EraseMaker{
		Open: func(t *testing.T) storetest.EraseStore {
			return open(t, address+"&pack=off", postgres.Hurried(postgres.Options{}, 10))
		},
		Found: func(t *testing.T, words []string) []string { return found(t, address, words) },
		Verify: func(t *testing.T, s storetest.EraseStore) error {
			return whole(s.(*postgres.Store).Verify(t.Context(), session.NewPrograms(), nil))
		},
		Rebuild: func(t *testing.T, s storetest.EraseStore) error {
			return whole(s.(*postgres.Store).Rebuild(t.Context(), session.NewPrograms(), nil))
		},
		FoundIn: foundIn,
		File:    archiveFile,
		Reading: func(t *testing.T) func() {
			conn := connected(t, address)
			if _, err := conn.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM dialai.log`); err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, err := conn.Exec(t.Context(), `ROLLBACK`); err != nil {
					t.Error(err)
				}
			}
		},
	}
}

// whole returns what is wrong with a store of which a report was made.
func whole(report store.Report, err error) error {
	if err == nil && report.Difference != nil {
		err = report.Difference
	}
	return err
}

// connected returns a connection to a database until the test ends.
func connected(t testing.TB, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// found returns which words stand in any column of bytes or text of any table of a store, and of what servers remember.
func found(t testing.TB, address string, words []string) (list []string) {
	t.Helper()
	conn := connected(t, address)
	rows, _ := conn.Query(t.Context(), `SELECT ARRAY[format('%I.%I', table_schema, table_name), format('%I', column_name), data_type] FROM information_schema.columns
		WHERE table_schema IN ('dialai', 'dialai_control') AND data_type IN ('bytea', 'text')`) // the error comes with the rows
	columns, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil || len(columns) < 20 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	for _, word := range words {
		for _, c := range columns {
			column := c[1]
			if c[2] == "text" {
				column = `convert_to(` + column + `, 'UTF8')`
			}
			var n int
			if err := conn.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM %s WHERE position($1::bytea IN %s)>0`, c[0], column), []byte(word)).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				list = append(list, word)
				break
			}
		}
	}
	return list
}

// foundIn returns which words stand in the bytes of a file, or of its write-ahead log.
func foundIn(t *testing.T, words []string, path string) (list []string) {
	t.Helper()
	for _, file := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, word := range words {
			if bytes.Contains(data, []byte(word)) {
				list = append(list, word)
			}
		}
	}
	return list
}

// TestEraseTampered: whatever is altered of an erased record, entry or proof, or put back, is found; and what was damaged
// before is not erased.
func TestEraseTampered(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address+"&pack=off", postgres.Options{})
	is := storetest.Speak(t, s, true)
	exec(t, address, `CREATE SCHEMA was; CREATE TABLE was.log AS TABLE dialai.log; CREATE TABLE was.agent_log AS TABLE dialai.agent_log; CREATE TABLE was.llm_audit AS TABLE dialai.llm_audit`)
	exec(t, address, `UPDATE dialai.log SET events=convert_to(replace(convert_from(events, 'UTF8'), 'wordruling', 'wordrulinx'), 'UTF8')`)
	if _, err := s.Erase(t.Context(), storetest.EraseOf(is.ID)); err == nil || !strings.Contains(err.Error(), "hash") {
		t.Errorf("a damaged log was erased: %v", err)
	}
	exec(t, address, `UPDATE dialai.log l SET events=w.events FROM was.log w WHERE w.place=l.place`)
	if _, err := s.Erase(t.Context(), storetest.EraseOf(is.ID)); err != nil {
		t.Fatal(err)
	}
	save, restore := copied()
	for _, more := range []string{"llm_audit"} {
		save += `CREATE TABLE saved.` + more + ` AS TABLE dialai.` + more + `; `
		restore += `TRUNCATE dialai.` + more + `; INSERT INTO dialai.` + more + ` OVERRIDING SYSTEM VALUE SELECT * FROM saved.` + more + `; `
	}
	exec(t, address, save)
	conn := connected(t, address)
	for table, c := range map[string]struct{ id, body string }{"log": {"place", "events"}, "agent_log": {"place", "event"}, "llm_audit": {"id", "entry"}} {
		rows, _ := conn.Query(t.Context(), fmt.Sprintf(`SELECT n.%[2]s FROM dialai.%[1]s n JOIN was.%[1]s w USING (%[2]s) WHERE n.%[3]s<>w.%[3]s`, table, c.id, c.body)) // the error comes with the rows
		places, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(places) == 0 {
			t.Fatalf("of %s these were erased: %v, %v", table, places, err)
		}
		for _, place := range places {
			for what, set := range map[string]string{
				"a byte of":     c.body + `=set_byte(` + c.body + `, length(` + c.body + `)/2, get_byte(` + c.body + `, length(` + c.body + `)/2) # 1)`,
				"the hash of":   `hash=set_byte(hash, 3, get_byte(hash, 3) # 1)`,
				"what was once": c.body + `=(SELECT w.` + c.body + ` FROM was.` + table + ` w WHERE w.` + c.id + `=n.` + c.id + `)`,
			} {
				exec(t, address, fmt.Sprintf(`UPDATE dialai.%s n SET %s WHERE n.%s=%d`, table, set, c.id, place))
				if err := whole(s.Verify(t.Context(), session.NewPrograms(), nil)); err == nil {
					t.Errorf("not found: %s %s %d", what, table, place)
				}
				exec(t, address, restore)
			}
		}
	}
	exec(t, address, `UPDATE dialai.llm_audit n SET entry=w.entry, hash=NULL FROM was.llm_audit w WHERE w.id=n.id`)
	if err := whole(s.Verify(t.Context(), session.NewPrograms(), nil)); err == nil || !strings.Contains(err.Error(), "as it was before") {
		t.Errorf("the audit of models was put back, and found is %v", err)
	}
	exec(t, address, restore)
	if err := whole(s.Verify(t.Context(), session.NewPrograms(), nil)); err != nil {
		t.Error(err)
	}
}

// TestEraseRemembered: what servers keep of an erased session goes, what they keep of others stays; and no dead row is
// left in any table.
func TestEraseRemembered(t *testing.T) {
	address := pgtest.Database(t)
	s := open(t, address+"&pack=off", postgres.Options{})
	is := storetest.Speak(t, s, true)
	if may, err := s.Erasable(t.Context(), storetest.EraseOf(is.ID)); err != nil || may.Remembered != 0 {
		t.Errorf("where no server remembers anything: %+v, %v", may, err)
	}
	openControl(t, address)
	for i, of := range []string{is.ID.String(), is.Fork.String(), is.Other.String()} {
		exec(t, address, fmt.Sprintf(`SET search_path=dialai_control;
			INSERT INTO receipts (key, body, at, process, turn, status, location) VALUES ('\x0%[1]d', '', 1, 'p', 1, 201, '/v1/sessions/%[2]s');
			INSERT INTO receipts (key, body, at, process, turn, status, answer) VALUES ('\x1%[1]d', '', 1, 'p', 1, 200, '{"id":"%[2]s","reasoning":"wordruling"}');
			INSERT INTO deliveries (delivery_id, webhook, type, body, created_at, next_at) VALUES ('d%[1]d', 1, 'x', '{"sessionId":"%[2]s","text":"wordproposal"}', 1, 1);
			INSERT INTO results (job, result) VALUES (%[1]d, 'session %[2]s wordreason');
			INSERT INTO claims (tenant, question_id, subject, specialist_id, at, expires_at, note, assigned) VALUES ('', '%[2]s.round', 's', 'h', 1, 2, 'wordnote', false)`, i, of))
	}
	exec(t, address, `INSERT INTO dialai_control.receipts (key, body, at, process, turn) VALUES ('\x09', '', 1, 'p', 1)`) // begun
	conn := connected(t, address)
	count := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM dialai_control.receipts) + (SELECT count(*) FROM dialai_control.deliveries) + (SELECT count(*) FROM dialai_control.results) + (SELECT count(*) FROM dialai_control.claims)`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	may, err := s.Erasable(t.Context(), storetest.EraseOf(is.ID))
	if err != nil || may.Remembered != 10 || count() != 16 {
		t.Errorf("it would delete %d of %d rows, %v", may.Remembered, count(), err)
	}
	done, err := s.Erase(t.Context(), storetest.EraseOf(is.ID))
	if err != nil || done.Remembered != 10 || count() != 6 {
		t.Errorf("it has deleted %d rows, and left %d, %v", done.Remembered, count(), err)
	}
	for _, gone := range []string{is.ID.String(), is.Fork.String()} {
		for _, table := range []string{"receipts", "deliveries", "results", "claims"} {
			var text string
			if err := conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(x::text, ' '), '') FROM dialai_control.`+table+` x`).Scan(&text); err != nil || strings.Contains(text, fmt.Sprintf("%x", gone)) {
				t.Errorf("%s is still named in %s, %v", gone, table, err)
			}
		}
	}
	exec(t, address, `CREATE EXTENSION pageinspect SCHEMA public`)
	var dead int // with an end that is neither void nor a lock
	for _, table := range []string{"dialai.log_0", "dialai.agent_log", "dialai.llm_audit", "dialai.exemplars", "dialai.sessions", "dialai_control.receipts", "dialai_control.deliveries", "dialai_control.results", "dialai_control.claims"} {
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM generate_series(0, pg_relation_size($1::text::regclass)/8192-1) page, LATERAL public.heap_page_items(public.get_raw_page($1::text, page::int)) WHERE t_xmax::text<>'0' AND lp_flags=1 AND (t_infomask & x'880'::int)=0`, table).Scan(&dead)
		if err != nil || dead > 0 {
			t.Errorf("%s has %d dead rows, %v", table, dead, err)
		}
	}
}
