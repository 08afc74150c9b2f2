package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// TestStandby reads from a standby that is alone in the address, and is refused where it wants to write, whatever the address asks
// for; with its server in the address, too, that is written to.
func TestStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, false)
	address := server.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	standby := server.Standby(t, false)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	id := teach(t, r, m)
	alone := standby.Of(address)
	wait(t, "the standby", func() bool { return ask[int](t, alone, `SELECT count(*) FROM dialai.log`) == 2 })

	there := open(t, alone, postgres.Options{Standby: true, Existing: true})
	if l, err := there.Load(t.Context(), session.NewPrograms(), id); err != nil || len(l.History()) != 1 {
		t.Errorf("the session at the standby = %v, %v", l, err)
	}
	var places []int64
	for e, err := range there.Log(t.Context(), "", 0) {
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, e.Place)
	}
	if place, err := there.Place(t.Context()); err != nil || len(places) != 2 || places[1] != place {
		t.Errorf("the log at the standby has the places %v, and ends at %d (%v)", places, place, err)
	}
	if _, err := there.Status(t.Context()); err != nil {
		t.Error(err)
	}
	proven(t, there)
	if _, err := there.Claim(t.Context()); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("to write at the standby = %v, want ErrReadOnly", err)
	}

	for attrs, want := range map[string]string{
		"":           "the server is a standby, which can only be read",
		"any":        "the server is a standby, which can only be read",
		"standby":    "the server is a standby, which can only be read",
		"read-write": "the server can only be read, and the address asks for another one by target_session_attrs",
	} {
		u, err := url.Parse(alone)
		if err != nil {
			t.Fatal(err)
		}
		if q := u.Query(); attrs != "" {
			q.Set("target_session_attrs", attrs)
			u.RawQuery = q.Encode()
		}
		_, migrated := postgres.Migrate(t.Context(), u.String(), postgres.Options{})
		_, opened := postgres.Open(t.Context(), u.String(), postgres.Options{})
		_, control := postgres.OpenControl(t.Context(), u.String(), postgres.Options{})
		for _, err := range []error{migrated, opened, control} {
			o, ok := errors.AsType[*postgres.OpenError](err)
			if !ok || !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), want) || !strings.Contains(o.Advice(), "name the primary") {
				t.Errorf("to open with target_session_attrs=%q = %v, want it to say %q", attrs, err, want)
			}
		}
	}

	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	of, err := url.Parse(alone)
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(address, u.Host, of.Host+","+u.Host, 1)
	for _, reads := range []bool{true, false} {
		if _, err := open(t, both, postgres.Options{Standby: reads}).Claim(t.Context()); err != nil {
			t.Errorf("with both hosts in the address, to write = %v", err)
		}
	}
}

// TestStandbyBehind says where to migrate a store of an older version that is read at a standby, and that there is none where
// there is none.
func TestStandbyBehind(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, false)
	address, none := server.Database(t), server.Database(t)
	open(t, address, postgres.Options{})
	standby := server.Standby(t, false)
	exec(t, address, `DROP INDEX dialai.sessions_since; ALTER TABLE dialai.sessions DROP COLUMN since; DELETE FROM dialai.goose_db_version WHERE version_id=11`)
	wait(t, "the standby", func() bool {
		return ask[int](t, standby.Of(address), `SELECT count(*) FROM dialai.goose_db_version WHERE version_id=11`) == 0
	})
	_, err := postgres.Open(t.Context(), standby.Of(address), postgres.Options{Standby: true})
	if o, ok := errors.AsType[*postgres.OpenError](err); !ok || o.Advice() != "run dialai migrate at the primary: the standby follows" {
		t.Errorf("to open an older store at a standby = %v", err)
	}
	if _, err := postgres.Open(t.Context(), standby.Of(none), postgres.Options{Standby: true}); !errors.Is(err, postgres.ErrNone) {
		t.Errorf("to open no store at a standby = %v, want ErrNone", err)
	}
}

// TestOnlyReads says it of a server that is no standby, and only reads.
func TestOnlyReads(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	open(t, address, postgres.Options{})
	exec(t, address, `DO $$ BEGIN EXECUTE 'ALTER DATABASE '||current_database()||' SET default_transaction_read_only=on'; END $$`)
	_, err := postgres.Open(t.Context(), address, postgres.Options{})
	if o, ok := errors.AsType[*postgres.OpenError](err); !ok || !strings.Contains(err.Error(), "default_transaction_read_only is on") || !strings.Contains(o.Advice(), "RESET") {
		t.Errorf("to open a database whose transactions only read = %v", err)
	}
	open(t, address, postgres.Options{Standby: true})
}
