package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/storetest"
)

func TestControl(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) func(*testing.T) storetest.ControlStore {
		path := filepath.Join(t.TempDir(), "dialai.db.control")
		return func(t *testing.T) storetest.ControlStore { return newControl(t, path) }
	})
}

func newControl(t *testing.T, path string) *store.Control {
	t.Helper()
	c, err := store.OpenControl(t.Context(), path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withControl lets f use the file of a control store.
func withControl(t *testing.T, path string, f func(c *store.Control)) {
	t.Helper()
	c := newControl(t, path)
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	f(c)
}

// aRequest returns a request with an idempotency key.
func aRequest(key string) (control.Receipt, control.Entry) {
	return control.Receipt{Key: control.ReceiptKey{Tenant: "default", Key: key}, Body: control.HashOf("body")}, control.Entry{RequestID: key}
}

// answered returns the changes that answer a request.
func answered(key string) control.Changes {
	r, e := aRequest(key)
	e.Result = "200"
	return control.Changes{End: &control.End{Key: r.Key, Answer: &control.Answer{Status: 200, Body: []byte(key)}}, Entries: []control.Entry{e}}
}

func verifyControl(t *testing.T, c *store.Control) control.Verified {
	t.Helper()
	v, err := control.Verify(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestControlFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dialai.db.control")
	withControl(t, path, func(c *store.Control) {
		for _, name := range []string{path, path + "-wal", path + "-shm", path + ".owners"} {
			info, err := os.Stat(name)
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v, want nobody else to read it", name, info.Mode(), err)
			}
		}
	})
	if files, err := filepath.Glob(path + "*"); err != nil || len(files) != 2 {
		t.Errorf("after Close there are %v (%v)", files, err)
	}
}

// TestControlRefuses: neither kind of file is taken for the other, and neither is one of
// another program, of a newer version, or of other migrations; nothing of it is changed.
func TestControlRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	sessions, err := store.OpenSQLite(t.Context(), path("sessions"), store.SQLiteOptions{})
	if err == nil {
		err = sessions.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]string{"control": "", "newer": `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`, "other": `UPDATE migrations SET sha256='ab12'`} {
		withControl(t, path(name), func(*store.Control) {})
		execRaw(t, path(name), change)
	}
	execRaw(t, path("foreign"), `CREATE TABLE mine (text TEXT)`)
	for name, want := range map[string]string{
		"sessions": "it does not hold what a server remembers, but is another file of dialai",
		"newer":    "newer version of dialai",
		"other":    "it was made by migration 0001_control.sql (sha256 ab12)",
		"foreign":  "another program",
	} {
		before, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.OpenControl(t.Context(), path(name), store.SQLiteOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: OpenControl = %v, want %q", name, err, want)
		}
		if after, err := os.ReadFile(path(name)); err != nil || string(after) != string(before) {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
	if _, err := store.OpenSQLite(t.Context(), path("control"), store.SQLiteOptions{}); err == nil || !strings.Contains(err.Error(), "it does not hold sessions") {
		t.Errorf("OpenSQLite of a control store = %v", err)
	}
}

func execRaw(t *testing.T, path, query string) {
	t.Helper()
	db := openRaw(t, path)
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

func TestControlReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db.control")
	withControl(t, path, func(c *store.Control) {
		if err := c.Commit(t.Context(), control.Changes{Keys: []control.Key{{ID: "a"}}}); err != nil {
			t.Fatal(err)
		}
	})
	c, err := store.OpenControl(t.Context(), path, store.SQLiteOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Key(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	r, e := aRequest("k")
	if _, err := c.Begin(t.Context(), r, e); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Begin = %v, want ErrReadOnly", err)
	}
	if err := c.Commit(t.Context(), control.Changes{Entries: []control.Entry{e}}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Commit = %v, want ErrReadOnly", err)
	}
}

func TestControlClosed(t *testing.T) {
	c := newControl(t, filepath.Join(t.TempDir(), "dialai.db.control"))
	if err := errors.Join(c.Close()); err != nil {
		t.Fatal(err)
	}
	r, e := aRequest("k")
	if _, err := c.Begin(t.Context(), r, e); err == nil {
		t.Error("Begin works after Close")
	}
	if err := c.Commit(t.Context(), control.Changes{Entries: []control.Entry{e}}); err == nil {
		t.Error("Commit works after Close")
	}
	if _, err := c.Key(t.Context(), "a"); err == nil {
		t.Error("Key works after Close")
	}
}

// TestControlDiskFull: on a full disk nothing is begun and nothing ended, each with
// ErrFull; when there is room again, what could not be ended is taken up.
func TestControlDiskFull(t *testing.T) {
	withControl(t, filepath.Join(t.TempDir(), "dialai.db.control"), func(c *store.Control) {
		room := func(pages int) {
			if err := c.WriterExec(fmt.Sprintf(`PRAGMA max_page_count=%d`, pages)); err != nil {
				t.Fatal(err)
			}
		}
		r, e := aRequest("k")
		if _, err := c.Begin(t.Context(), r, e); err != nil {
			t.Fatal(err)
		}
		room(1) // as many as there are
		large := answered("k")
		large.End.Answer.Body = make([]byte, control.MaxAnswer)
		if err := c.Commit(t.Context(), large); !errors.Is(err, store.ErrFull) {
			t.Fatalf("Commit = %v, want ErrFull", err)
		}
		before := verifyControl(t, c)
		var err error
		begun := 0
		for err == nil && begun < 10_000 {
			r, e := aRequest(fmt.Sprint(begun))
			e.Target = strings.Repeat("x", 2000)
			if _, err = c.Begin(t.Context(), r, e); err == nil {
				begun++
			}
		}
		if !errors.Is(err, store.ErrFull) {
			t.Fatalf("after %d requests Begin = %v, want ErrFull", begun, err)
		}
		if v := verifyControl(t, c); v.Difference != nil || v.Records != before.Records+int64(begun) {
			t.Errorf("of %d requests the audit log has %d records more (%v)", begun, v.Records-before.Records, v.Difference)
		}
		room(1_000_000)
		last, e := aRequest(fmt.Sprint(begun))
		if b, err := c.Begin(t.Context(), last, e); err != nil || b.Resumed {
			t.Errorf("what could not be begun is now %+v, %v", b, err)
		}
		if b, err := c.Begin(t.Context(), r, e); err != nil || !b.Resumed {
			t.Errorf("what could not be ended is now %+v, %v", b, err)
		}
		if err := c.Commit(t.Context(), large); err != nil {
			t.Error(err)
		}
	})
}

// TestControlBatches: of many that commit together only those are refused that have to be,
// and nothing of them is there.
func TestControlBatches(t *testing.T) {
	withControl(t, filepath.Join(t.TempDir(), "dialai.db.control"), func(c *store.Control) {
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				refused := i%2 == 0
				keys := []control.Key{{ID: fmt.Sprint(i)}, {ID: fmt.Sprint(i - 1)}}
				if refused {
					keys[1].ID = keys[0].ID
				}
				err := c.Commit(t.Context(), control.Changes{Entries: []control.Entry{{RequestID: fmt.Sprint(i)}}, Keys: keys})
				if errors.Is(err, control.ErrExists) != refused || err != nil && !refused {
					t.Errorf("keys of %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		keys, err := c.Keys(t.Context(), control.Query{})
		if v := verifyControl(t, c); err != nil || len(keys) != 100 || v.Records != 50 || v.Difference != nil {
			t.Errorf("there are %d keys by %+v (%v)", len(keys), v, err)
		}
	})
}

// TestControlForgets: rows of what has expired do not stay for ever, and those of what was not
// ended do.
func TestControlForgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db.control")
	withControl(t, path, func(c *store.Control) {
		for i := range 200 {
			r, e := aRequest(fmt.Sprint(i))
			r.At = specialist.Time(i) * control.ReceiptLifetime / 10
			if _, err := c.Begin(t.Context(), r, e); err != nil {
				t.Fatal(err)
			}
			changes := answered(fmt.Sprint(i))
			changes.Claim = &control.Claim{QuestionID: fmt.Sprint(i), At: r.At, ExpiresAt: r.At + control.ClaimLifetime}
			if i == 0 {
				changes.End = nil
			}
			if err := c.Commit(t.Context(), changes); err != nil {
				t.Fatal(err)
			}
		}
	})
	db := openRaw(t, path)
	defer db.Close()
	var receipts, running, claims int
	if err := db.QueryRow(`SELECT count(*), count(*) FILTER (WHERE status IS NULL), (SELECT count(*) FROM claims) FROM receipts`).Scan(&receipts, &running, &claims); err != nil {
		t.Fatal(err)
	}
	if receipts != 11 || running != 1 || claims != 1 {
		t.Errorf("of 200 requests %d are kept, %d of them running, and %d claims", receipts, running, claims)
	}
}

// TestControlAuditDamage changes, removes, swaps and inserts records of two processes: each
// time the first one that differs is named.
func TestControlAuditDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db.control")
	first := newControl(t, path)
	withControl(t, path, func(second *store.Control) {
		for i := range 10 { // 1, 3, 5, … of the first process, 2, 4, 6, … of the second
			c := []*store.Control{first, second}[i%2]
			if err := c.Commit(t.Context(), control.Changes{Entries: []control.Entry{{RequestID: fmt.Sprint(i), Tenant: "acme"}}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int64{
		``: 0,
		`UPDATE audit SET entry=replace(entry, '"4"', '"5"') WHERE id=5`: 5,
		`UPDATE audit SET entry=entry || ' ' WHERE id=3`:                 3,
		`UPDATE audit SET entry=char(0) WHERE id=10`:                     10,
		`UPDATE audit SET hash=zeroblob(32) WHERE id=6`:                  6,
		`UPDATE audit SET hash=x'' WHERE id=1`:                           1,
		`UPDATE audit SET tenant='other' WHERE id=7`:                     7,
		`UPDATE audit SET process='x' WHERE id=9`:                        9,
		`UPDATE audit SET sequence=99 WHERE id=8`:                        8,
		`DELETE FROM audit WHERE id=1`:                                   2, // the second process began after it
		`DELETE FROM audit WHERE id=4`:                                   6,
		`UPDATE audit SET id=CASE id WHEN 3 THEN -5 ELSE -3 END WHERE id IN (3, 5); UPDATE audit SET id=-id WHERE id<0`:          3,
		`INSERT INTO audit SELECT 11, 'new', 1, tenant, entry, hash FROM audit WHERE id=10`:                                      11,
		`INSERT INTO audit SELECT 11, process, 6, tenant, entry, hash FROM audit WHERE id=10`:                                    11,
		`DELETE FROM audit WHERE process=(SELECT process FROM audit WHERE id=1)`:                                                 2, // a whole process
		`UPDATE audit SET id=id+100 WHERE process=(SELECT process FROM audit WHERE id=1)`:                                        2,
		`UPDATE audit SET entry='{"at":"1970-01-01T00:00:00.000Z","requestId":"","tenant":"acme"}', hash=x'01' WHERE sequence=5`: 9,
	} {
		t.Run(query, func(t *testing.T) {
			damaged := filepath.Join(t.TempDir(), "damaged")
			if err := os.WriteFile(damaged, data, 0o600); err != nil {
				t.Fatal(err)
			}
			execRaw(t, damaged, query)
			withControl(t, damaged, func(c *store.Control) {
				switch v := verifyControl(t, c); {
				case want == 0 && v.Difference != nil:
					t.Error(v.Difference)
				case want != 0 && (v.Difference == nil || v.Difference.Place != want || v.Difference.Error() == ""):
					t.Errorf("the first difference is %v, want record %d", v.Difference, want)
				}
			})
		})
	}
}

// TestControlDamagedKey: a key whose grants cannot be read is an error, never a key without
// limits.
func TestControlDamagedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db.control")
	withControl(t, path, func(c *store.Control) {
		if err := c.Commit(t.Context(), control.Changes{Keys: []control.Key{{ID: "a"}}}); err != nil {
			t.Fatal(err)
		}
	})
	execRaw(t, path, `UPDATE keys SET grants='[{"role":'`)
	withControl(t, path, func(c *store.Control) {
		if k, err := c.Key(t.Context(), "a"); err == nil || !errors.As(err, new(*session.CorruptError)) {
			t.Errorf("Key = %+v, %v", k, err)
		}
		if list, err := c.Keys(t.Context(), control.Query{}); err == nil {
			t.Errorf("Keys = %+v", list)
		}
	})
}

// TestControlListsGoByIndexes: nothing is sorted, and no more is read than is shown.
func TestControlListsGoByIndexes(t *testing.T) {
	withControl(t, filepath.Join(t.TempDir(), "dialai.db.control"), func(c *store.Control) {
		q := control.Query{Tenant: "acme", After: 5, Limit: 10, Desc: true}
		for query, by := range map[string]string{"keys": "keys_tenant (tenant=? AND id<?)", "audit": "audit_tenant (tenant=? AND id<?)", "machines": "machines_tenant (tenant=? AND id<?)"} {
			plan := c.Plan(t, query, q)
			if !strings.Contains(plan, by) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%s are listed by\n%s\nwant %s", query, plan, by)
			}
		}
		dead, sent := true, false
		for _, c2 := range []struct {
			q  control.DeliveryQuery
			by string
		}{
			{control.DeliveryQuery{WebhookID: "a", Due: 7, Query: control.Query{Limit: 4}}, "deliveries_due (webhook=? AND next_at<?)"},
			{control.DeliveryQuery{WebhookID: "a", Query: q}, "deliveries_webhook (webhook=? AND id<?)"},
			{control.DeliveryQuery{WebhookID: "a", Dead: &dead, Query: q}, "deliveries_dead (webhook=? AND id<?)"},
			{control.DeliveryQuery{WebhookID: "a", Dead: &sent, Query: q}, "deliveries_webhook (webhook=? AND id<?)"},
		} {
			if plan := c.PlanDeliveries(t, c2.q); !strings.Contains(plan, c2.by) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%+v is listed by\n%s\nwant %s", c2.q, plan, c2.by)
			}
		}
	})
}

// TestControlUpgrade: a file of the version before has webhooks and jobs after it was opened, and
// loses nothing.
func TestControlUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dialai.db.control")
	withControl(t, path, func(c *store.Control) {
		if err := c.Commit(t.Context(), control.Changes{Keys: []control.Key{{ID: "a"}}, Entries: []control.Entry{{RequestID: "r"}}}); err != nil {
			t.Fatal(err)
		}
	})
	execRaw(t, path, `DROP TABLE copying; DROP TABLE sign_ins; DROP TABLE bindings; DROP TABLE step_times; DROP TABLE jobs; DROP TABLE results; DROP TABLE webhooks; DROP TABLE deliveries; ALTER TABLE claims DROP COLUMN note; ALTER TABLE claims DROP COLUMN assigned; DELETE FROM goose_db_version WHERE version_id>1; DELETE FROM migrations WHERE version>1`)
	for range 2 {
		withControl(t, path, func(c *store.Control) {
			if _, err := c.Key(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			if v := verifyControl(t, c); v.Records != 1 || v.Difference != nil {
				t.Errorf("the audit log has %+v", v)
			}
			if list, err := c.Webhooks(t.Context(), control.Query{}); err != nil || len(list) != 0 {
				t.Errorf("the webhooks are %v (%v)", list, err)
			}
			if list, err := c.Jobs(t.Context(), control.Query{}); err != nil || len(list) != 0 {
				t.Errorf("the jobs are %v (%v)", list, err)
			}
		})
	}
}

// TestControlEveryOperationFails fails every operation of SQLite on its files in turn, with
// the process going on, and with it crashing there: what was acknowledged stays, nothing is
// there by half, and every request is answered in the end, by its own effect.
func TestControlEveryOperationFails(t *testing.T) {
	d := newDisk(t, "dialai-control-faults")
	empty := filepath.Join(t.TempDir(), "dialai.db.control") // how one is made, TestEveryOperationFails tests
	withControl(t, empty, func(*store.Control) {})
	made, err := os.ReadFile(empty)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []struct {
		name        string
		every       int
		crash, torn bool
		full        bool
	}{{name: "once", every: 1}, {name: "crash", every: 2, crash: true}, {name: "torn", every: 3, crash: true, torn: true}, {name: "full", every: 1, full: true}} {
		t.Run(mode.name, func(t *testing.T) {
			for k := 1; ; k += mode.every * min(fewer, 14) {
				path := filepath.Join(t.TempDir(), "dialai.db.control")
				if err := os.WriteFile(path, made, 0o600); err != nil {
					t.Fatal(err)
				}
				d.reset(k, mode.crash, mode.torn)
				d.full = mode.full
				life := controlLife(t.Context(), path, d.name)
				failed := d.failed
				d.reset(0, false, false)
				if failed == "" {
					if k < 50 || len(life.answered) != requestsOfALife {
						t.Errorf("without a fault %d requests are answered, in fewer than %d operations", len(life.answered), k)
					}
					return
				}
				for _, err := range life.errs {
					if mode.full && !errors.Is(err, store.ErrFull) {
						t.Errorf("on a full disk there is %v, want ErrFull", err)
					}
				}
				withControl(t, path, func(c *store.Control) { life.survived(t, c) })
				if t.Failed() {
					t.Fatalf("operation %d (%s) failed", k, failed)
				}
				os.RemoveAll(filepath.Dir(path))
			}
		})
	}
}

const requestsOfALife = 4

// A lifeOfControl is what a process knows of what it did.
type lifeOfControl struct {
	begun, answered []string // what was acknowledged
	errs            []error
}

// controlLife begins requests, adds a key for each, and ends them, as far as it gets.
func controlLife(ctx context.Context, path, vfs string) *lifeOfControl {
	life := &lifeOfControl{}
	c, err := store.OpenControl(ctx, path, store.SQLiteOptions{BusyTimeout: time.Millisecond}.Through(vfs))
	if err != nil {
		life.errs = append(life.errs, err)
		return life
	}
	defer c.Close()
	for i := range requestsOfALife {
		key := fmt.Sprint(i)
		r, e := aRequest(key)
		b, err := c.Begin(ctx, r, e)
		if err != nil { // it is tried again
			life.errs = append(life.errs, err)
			if b, err = c.Begin(ctx, r, e); err != nil {
				continue
			}
		}
		life.begun = append(life.begun, key)
		if b.Answer != nil {
			continue
		}
		changes := answered(key)
		changes.Keys = []control.Key{{ID: key}}
		if err := c.Commit(ctx, changes); err != nil {
			life.errs = append(life.errs, err)
			if _, err := c.Begin(ctx, r, e); err != nil {
				continue
			}
			if err := c.Commit(ctx, changes); err != nil {
				continue
			}
		}
		life.answered = append(life.answered, key)
	}
	return life
}

// survived checks what another process finds.
func (l *lifeOfControl) survived(t *testing.T, c *store.Control) {
	ctx := t.Context()
	for i := range requestsOfALife {
		key := fmt.Sprint(i)
		r, e := aRequest(key)
		_, known := c.Key(ctx, key)
		b, err := c.Begin(ctx, r, e)
		switch {
		case err != nil:
			t.Errorf("request %s: %v", key, err)
		case slices.Contains(l.answered, key) && (b.Answer == nil || string(b.Answer.Body) != key):
			t.Errorf("the answer of %s was acknowledged, now it is %+v", key, b)
		case slices.Contains(l.begun, key) && b.Answer == nil && !b.Resumed:
			t.Errorf("that %s was begun was acknowledged, and is not known", key)
		case (b.Answer != nil) != (known == nil):
			t.Errorf("of %s there is half: %+v and %v", key, b, known)
		}
		if b.Answer == nil && err == nil {
			changes := answered(key)
			changes.Keys = []control.Key{{ID: key}}
			if err := c.Commit(ctx, changes); err != nil {
				t.Errorf("request %s cannot be ended: %v", key, err)
			}
		}
	}
	if v := verifyControl(t, c); v.Difference != nil {
		t.Error(v.Difference)
	}
}
