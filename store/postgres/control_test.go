package postgres_test

import (
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/store/storetest"
)

func TestControl(t *testing.T) {
	storetest.RunControl(t, func(t *testing.T) func(*testing.T) storetest.ControlStore {
		address := pgtest.Database(t)
		return func(t *testing.T) storetest.ControlStore { return openControl(t, address) }
	})
}

func openControl(t testing.TB, address string) *postgres.Control {
	t.Helper()
	c, err := postgres.OpenControl(t.Context(), address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
