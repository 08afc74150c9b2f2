package postgres_test

import (
	"errors"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// TestTooOld: that a store is for newer versions only notices who does nothing with it and makes no connection, who
// makes one, and who renews an owner; each is told once. What it has begun it can still end.
func TestTooOld(t *testing.T) {
	address := pgtest.Database(t)
	begun := begin(t, parse(t), open(t, address, postgres.Options{}))
	for _, c := range []struct {
		who   string
		hurry int
		does  func(*postgres.Store) error
	}{
		{"who does nothing", 100, func(*postgres.Store) error { return nil }},
		{"who connects", 1, func(s *postgres.Store) error { return s.RenewOwners(t.Context()) }},
		{"who renews", 1, func(s *postgres.Store) error {
			if _, err := s.Claim(t.Context()); err != nil {
				return err
			}
			renew, err := s.Renewing(t.Context())
			if err == nil {
				exec(t, address, `UPDATE dialai.meta SET min_writer=99`)
				renew()
				renew()
			}
			return err
		}},
	} {
		exec(t, address, `UPDATE dialai.meta SET min_writer=1`)
		told := make(chan error, 10)
		s := open(t, address, postgres.Hurried(postgres.Options{TooOld: func(err error) { told <- err }}, c.hurry))
		if c.who != "who renews" {
			exec(t, address, `UPDATE dialai.meta SET min_reader=99`)
		}
		if err := c.does(s); err != nil {
			t.Fatal(err)
		}
		if c.hurry == 1 && len(told) == 0 {
			t.Errorf("%s is not told at once", c.who)
		}
		if err := <-told; !errors.As(err, new(*session.NewerError)) {
			t.Errorf("%s is told %v", c.who, err)
		}
		if err := read(t, parse(t), s, begun.last.ID).commit(t.Context()); err != nil {
			t.Errorf("%s cannot end what it has begun: %v", c.who, err)
		}
		if len(told) > 0 {
			t.Errorf("%s is told again: %v", c.who, <-told)
		}
		exec(t, address, `UPDATE dialai.meta SET min_reader=1`)
	}
}

// TestControlTooOld: so does who has what a server remembers.
func TestControlTooOld(t *testing.T) {
	address := pgtest.Database(t)
	told := make(chan error, 1)
	c, err := postgres.OpenControl(t.Context(), address, postgres.Hurried(postgres.Options{TooOld: func(err error) { told <- err }}, 100))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exec(t, address, `UPDATE dialai_control.meta SET min_reader=99`)
	if err := <-told; !errors.As(err, new(*session.NewerError)) {
		t.Errorf("told is %v", err)
	}
}
