package scripted_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/agenttest"
	"github.com/dialai/dialai/agent/scripted"
)

func script(t *testing.T, lines ...string) *scripted.Agent {
	t.Helper()
	a, err := scripted.New("s.jsonl", []byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var (
	open  = agenttest.Open
	allow = agenttest.Allow
)

type host = agenttest.Host

func all[B agent.Body](h *host) []B { return agenttest.All[B](h) }

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
