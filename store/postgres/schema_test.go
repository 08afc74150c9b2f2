package postgres

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/internal/pgtest"
)

// TestRelations: what tables, sequences and columns the migrations are said to make is what they make.
func TestRelations(t *testing.T) {
	address := pgtest.Database(t)
	if _, err := Migrate(t.Context(), address, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, of := range []*tables{&sessionTables, &controlTables} {
		a, config, err := parse(address, of)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		i, err := inspect(t.Context(), conn, a)
		if err != nil {
			t.Fatal(err)
		}
		delete(i.found, versionTable)
		want := a.relations()
		if has, made := slices.Sorted(maps.Keys(i.found)), slices.Sorted(maps.Keys(want)); !slices.Equal(has, made) {
			t.Errorf("%s has %v, want %v", a.schema, has, made)
		}
		for name, r := range i.found {
			if want[name].sequence {
				continue
			}
			if has, made := slices.Sorted(slices.Values(r.columns)), slices.Sorted(maps.Keys(want[name].columns)); !slices.Equal(has, made) {
				t.Errorf("%s.%s has the columns %v, want %v", a.schema, name, has, made)
			}
		}
		if e := i.tables(); e != nil {
			t.Errorf("a new schema: %v", e)
		}
	}
}
