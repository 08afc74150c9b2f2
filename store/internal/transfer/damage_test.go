package transfer_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/transfer"
)

// TestDamaged: what is altered, cut off or gone in a store does not get into a copy: that cannot be opened.
func TestDamaged(t *testing.T) {
	for name, kind := range map[string]func(testing.TB) place{"file": inFile, "database": inDatabase} {
		t.Run(name, func(t *testing.T) {
			names, isFile := strings.NewReplacer("PLACE", "place", "EMPTY", `'\x00'`), name == "file"
			if isFile {
				names = strings.NewReplacer("PLACE", "id", "EMPTY", `x'00'`)
			}
			damages := []string{
				`UPDATE log SET hash=EMPTY WHERE PLACE=(SELECT max(PLACE) FROM log)`,
				`UPDATE log SET first=2 WHERE first=1 AND PLACE=(SELECT min(PLACE) FROM log)`,
				`DELETE FROM log WHERE PLACE=(SELECT max(l.PLACE) FROM log l WHERE l.session=1)`,
				`DELETE FROM log WHERE PLACE=(SELECT max(PLACE) FROM log)`,
				`DELETE FROM log WHERE session=1 AND first=1`,
				`DELETE FROM log WHERE session=1 AND first=(SELECT min(l.first) FROM log l WHERE l.session=1 AND l.first>1)`,
				`DELETE FROM log WHERE session=1`,
				`DELETE FROM sessions WHERE id=2`,
				`UPDATE definitions SET definition='{}'`,
				`DELETE FROM definitions`,
				`UPDATE roster_log SET events=events||' '`,
				`DELETE FROM roster_log WHERE first=1`,
				`UPDATE agent_log SET event=event||' '`,
				`DELETE FROM agent_log WHERE seq=1 AND session=1`,
			}
			if isFile {
				damages = append(damages, `UPDATE llm_audit SET entry=entry||' '`, `DELETE FROM llm_audit WHERE id=1`, `DELETE FROM log WHERE session=1; DELETE FROM sessions WHERE id=1`,
					`UPDATE secrets SET value=randomblob(32) WHERE name='store'`, `DELETE FROM secrets`)
			} else {
				damages = append(damages, `DELETE FROM roster_log`)
			}
			for i, damage := range damages {
				if i%fewer != 0 {
					continue
				}
				from, to := kind(t), inFile(t)
				if err := from.use(func(s closable) { use(t, s).live(3) }); err != nil {
					t.Fatal(err)
				}
				from.exec(names.Replace(damage))
				final := name == "database" // only then is the end of a log what its row says
				all := false
				_, err := from.copied(to, transfer.Options{Final: final}.AfterStep(func(step string) error {
					all = all || step == "copied gaps"
					return nil
				}))
				if altered := strings.HasPrefix(damage, "UPDATE") && !strings.Contains(damage, "first=2"); altered && all {
					t.Errorf("%s: it was seen after all had been copied", damage)
				}
				if _, ok := errors.AsType[*session.CorruptError](err); !ok {
					t.Errorf("%s: copied with %v", damage, err)
				}
				if strings.Contains(damage, "secrets") {
					continue // before anything was begun: it is an empty store
				}
				if err := to.use(func(closable) {}); err == nil {
					t.Errorf("%s: the copy can be opened", damage)
				}
			}
		})
	}
}

// as returns the place as a role of its own sees it, which does not own the tables but has the rights that are given.
func (p place) as(rights string) place {
	p.Helper()
	u, err := url.Parse(p.address)
	if err != nil {
		p.Fatal(err)
	}
	role := "role" + strings.TrimPrefix(u.Path, "/")
	p.exec(`CREATE ROLE ` + role + ` LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA dialai TO ` + role + `; GRANT ` + rights + ` ON ALL TABLES IN SCHEMA dialai TO ` + role + `; GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA dialai TO ` + role)
	owner := p.address
	p.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), owner)
		if err == nil {
			_, err = conn.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role)
			conn.Close(context.Background())
		}
		if err != nil {
			p.Error(err)
		}
	})
	u.User = url.UserPassword(role, "secret")
	p.address = u.String()
	return p
}

// TestRights: a role that does not own the tables copies a store, but neither into it nor for good; it is told who does,
// and nothing has happened.
func TestRights(t *testing.T) {
	from, to := inDatabase(t), inDatabase(t)
	if err := from.use(func(s closable) { use(t, s).live(1) }); err != nil {
		t.Fatal(err)
	}
	if err := to.use(func(closable) {}); err != nil {
		t.Fatal(err)
	}
	reader, writer := from.as(`SELECT`), to.as(`SELECT, INSERT, UPDATE, DELETE`)
	denied := func(err error) {
		t.Helper()
		var advised interface{ Advice() string }
		if !errors.Is(err, store.ErrReadOnly) || !errors.As(err, &advised) || !strings.Contains(advised.Advice(), "owns the tables") || strings.Contains(err.Error(), "secret") {
			t.Errorf("denied with %v", err)
		}
	}
	file := inFile(t)
	if _, err := reader.copied(file, transfer.Options{}); err != nil {
		t.Fatal(err)
	}
	equal(t, file.asFile(), from.asFile())
	_, err := reader.copied(file, transfer.Options{Resume: true, Final: true})
	denied(err)
	_, err = from.copied(writer, transfer.Options{})
	denied(err)
	for _, p := range []place{from, to} {
		if err := p.use(func(s closable) { use(t, s).live(1); sound(t, s) }); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLateAudit: an entry of the audit of models of a database that comes after one with a higher number is copied, too.
func TestLateAudit(t *testing.T) {
	for _, kind := range []func(testing.TB) place{inFile, inDatabase} {
		from, to := inDatabase(t), kind(t)
		if err := from.use(func(s closable) { use(t, s).live(2) }); err != nil {
			t.Fatal(err)
		}
		from.exec(`UPDATE llm_audit SET id=id+10`)
		if _, err := from.copied(to, transfer.Options{}); err != nil {
			t.Fatal(err)
		}
		from.exec(`INSERT INTO llm_audit (id, session_id, entry) VALUES (5, '', '{"sessionId":""}')`)
		if done, err := from.copied(to, transfer.Options{Resume: true}); err != nil || done.Copied < 3 {
			t.Fatalf("%+v %v", done, err)
		}
		equal(t, to.asFile(), from.asFile())
		if err := to.use(func(s closable) { sound(t, s) }); err != nil {
			t.Fatal(err)
		}
	}
}
