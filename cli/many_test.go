package cli_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

const longNames = `{"machineName":"a machine of a name for which no line has room","initialState":"a state of a name that is as long","goalState":"done","subject":"= data.name",
	"states":{"a state of a name that is as long":{"transitions":{"on":"done"}},"done":{}},
	"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`

// TestTenThousandSessions: of a store of 10,000 sessions the newest 50 are shown, a line
// each, on a terminal of 40 columns as well, with ids and statuses whole (cases.md 8.6).
func TestTenThousandSessions(t *testing.T) {
	h := newHome(t)
	path := filepath.Join(h.dir, "many.db")
	sessions := 10_000
	if testing.Short() {
		sessions = 1000 // a hundred goroutines start them alike
	}
	crowd(t, path, sessions)
	for _, columns := range []int{40, 24, 200} {
		h.columns = uint16(columns)
		text := h.terminal(nil, "sessions", "--store", path).ends(0)
		lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n")
		if len(lines) != 52 || lines[0] != "The newest 50; --all lists all." {
			t.Fatalf("with %d columns there are %d lines:\n%s", columns, len(lines), text)
		}
		for _, line := range lines[2:] {
			id, _, _ := strings.Cut(line, " ")
			if len(id) < 8 || !strings.Contains(line, "  running") || utf8.RuneCountInString(line) > columns {
				t.Fatalf("with %d columns a line is %q", columns, line)
			}
		}
	}
	out, _ := h.run(0, "sessions", "--store", path, "--all", "--quiet")
	if n := strings.Count(out, "\n"); n != sessions {
		t.Errorf("all are %d, want %d", n, sessions)
	}
	out, _ = h.run(0, "sessions", "--store", path, "--all")
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		id, _, _ := strings.Cut(line, " ")
		if seen[id] {
			t.Errorf("two sessions are printed as %s", id)
		}
		seen[id] = true
	}
	if len(seen) != sessions+1 { // and the head
		t.Errorf("all are %d lines, want %d", len(seen), sessions+1)
	}
}

// crowd starts so many sessions.
func crowd(t *testing.T, path string, n int) {
	ctx := context.Background()
	s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := machine.Parse("m.json", []byte(longNames), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range n / 100 {
				if _, err := r.Start(ctx, m, runner.StartOptions{Meta: []byte(`{"name":"a subject that says what it is about"}`)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if list, err := r.Sessions(ctx, session.ListQuery{Limit: 1}); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
}
