package agenttest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
)

// Documented fails the test if docs/undertakings.md says something else of what an agent can do
// than c: in the column of that name, in the order in which dialai agents check says it.
func Documented(t testing.TB, name string, c agent.Capabilities) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../docs/undertakings.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| What an agent can do |")
	table, _, _ = strings.Cut("| What an agent can do |"+table, "\n\n")
	column := -1
	var got []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if column < 0 {
			column = slices.Index(cells, name)
		} else if strings.HasPrefix(line, "|---") || column >= len(cells) {
			continue
		} else {
			got = append(got, cells[column])
		}
	}
	var want []string
	for _, can := range []bool{c.Permission, c.Resume, c.HookNotice, c.BlockCompaction, c.LiveUsage, c.Probe, c.Cost, c.SubagentIDs, c.SpawnLimits} {
		want = append(want, map[bool]string{true: "yes", false: "no"}[can])
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/undertakings.md says of %s %v, and it is %v", name, got, want)
	}
}
