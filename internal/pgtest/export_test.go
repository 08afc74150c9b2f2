package pgtest

import "testing"

// StartIn starts a cluster with the programs in a folder.
func StartIn(t testing.TB, bin string) { start(t, bin, false) }

// Programs returns the folder of the programs of Postgres.
func Programs(pattern string) string { return programs(pattern) }
