package postgres_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/store/postgres"
)

// TestFoldLogs: however many fold logs at once, what they come to is in the order of the sessions, and of several that are damaged the
// first is told.
func TestFoldLogs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	address := pgtest.Database(t)
	s, m := open(t, address, postgres.Options{}), parse(t)
	var want []string
	for range 40 {
		want = append(want, begin(t, m, s).last.ID.String())
	}
	if got, err := s.FoldLogs(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Fatalf("folded were %v (%v), want %v", got, err, want)
	}
	damaged := want[12:]
	exec(t, address, `UPDATE dialai.log SET hash='\x00' WHERE session IN (SELECT id FROM dialai.sessions WHERE session_id::text IN ('`+strings.Join(damaged, `','`)+`'))`)
	for range 20 {
		if got, err := s.FoldLogs(t.Context()); err == nil || !strings.Contains(err.Error(), damaged[0]) || !slices.Equal(got, want[:12]) {
			t.Fatalf("folded were %v (%v), want %v and that %s is damaged", got, err, want[:12], damaged[0])
		}
	}
	exec(t, address, `DELETE FROM dialai.log WHERE session=(SELECT min(id) FROM dialai.sessions)`)
	if got, err := s.FoldLogs(t.Context()); err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(err.Error(), "it is gone") {
		t.Errorf("folded were %v (%v) where the first log is gone", got, err)
	}
}
