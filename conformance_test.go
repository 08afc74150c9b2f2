package dialai_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// required are the ids that docs/conformance.md must account for.
const required = `N01-N39 B01-B23
	D001 D005 D007-D025 D026-D037 D049-D051 D056-D058 D060 D065 D066 D068-D071 D104-D107 D110-D113 D115-D119 D125 D127-D145 D147-D150
	D171-D173 D175 D178 D198-D207 D211-D217 D220-D224 D227 D228 D230-D235 D237-D239 D241 D242 D244 D247-D252 D254-D256 D259-D268 D274 D276-D280
	D285-D294 D300 D301 D305-D311 D314 D315 D317-D322 D330 D345-D389 D392-D398 D400-D406 D408 D410 D414-D431 T1-T9`

// cases are the ids of what is decided, who may decide it, and by when. Ranges are
// not used there, since ids end in a number of their section: C9.3.
const cases = `
C1.1 C1.2 C1.3 C1.4
C2.1 C2.2 C2.3 C2.4 C2.5
C3.1 C3.2 C3.3
C4.1 C4.2 C4.3 C4.4 C4.5 C4.6 C4.7
C5.1 C5.2 C5.3
C6.1 C6.2 C6.3 C6.4 C6.5
C7.1 C7.2 C7.3 C7.4 C7.5
C8.1 C8.2 C8.3 C8.4 C8.5 C8.6 C8.7
C10.1 C10.2 C10.3 C10.4 C10.5 C10.6 C10.7
C9.1 C9.2 C9.3 C9.4 C9.5 C9.6 C9.7 C9.8 C9.9 C9.10 C9.11 C9.12 C9.13 C9.14 C9.15 C9.16 C9.17 C9.18 C9.19 C9.20
`

// expand returns ids with ranges written out: D001-D003 is three.
func expand(t *testing.T, list string) (ids []string) {
	t.Helper()
	for _, word := range strings.Fields(list) {
		if strings.HasPrefix(word, "C") {
			ids = append(ids, word)
			continue
		}
		from, to, ranged := strings.Cut(word, "-")
		if !ranged {
			to = from
		}
		first, err1 := strconv.Atoi(from[1:])
		last, err2 := strconv.Atoi(to[1:])
		if err1 != nil || err2 != nil || last < first || from[0] != to[0] {
			t.Fatalf("%q is no id or range of ids", word)
		}
		for n := first; n <= last; n++ {
			ids = append(ids, fmt.Sprintf("%c%0*d", from[0], len(from)-1, n))
		}
	}
	return ids
}

// sourceTests returns every test of the source tree as package.Name. Tests of
// the root are in package dialai.
func sourceTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && regexp.MustCompile(`^(Test|Fuzz|Example)`).MatchString(fn.Name.Name) {
				found[strings.TrimSuffix(f.Name.Name, "_test")+"."+fn.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestConformance holds docs/conformance.md to the source: each id has one row,
// and each row names tests that exist.
func TestConformance(t *testing.T) {
	text, err := os.ReadFile("docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, rows := sourceTests(t), map[string]int{}
	name := regexp.MustCompile("`([a-z0-9]+\\.(?:Test|Fuzz|Example)\\w*)(?:/([^`]+))?`")
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !regexp.MustCompile(`^ [NBDTC]\d`).MatchString(cells[1]) {
			continue
		}
		for _, id := range expand(t, cells[1]) {
			rows[id]++
		}
		named := name.FindAllStringSubmatch(cells[len(cells)-2], -1)
		if len(named) == 0 {
			t.Errorf("the row%snames no test", cells[1])
		}
		for _, m := range named {
			if !tests[m[1]] {
				t.Errorf("the row%snames %s, and there is no such test", cells[1], m[1])
			}
			if _, err := os.Stat("cli/testdata/script/" + m[2] + ".txtar"); m[1] == "cli.TestScript" && (m[2] == "" || err != nil) {
				t.Errorf("the row%snames %q, which is none of the scripts", cells[1], m[2])
			}
		}
	}
	ids := expand(t, required+" "+cases)
	for _, id := range ids {
		if rows[id] != 1 {
			t.Errorf("%s has %d rows, want one", id, rows[id])
		}
	}
	for id := range maps.Keys(rows) {
		if !slices.Contains(ids, id) {
			t.Errorf("the row of %s is about nothing that is required", id)
		}
	}
}

// TestOneListens shows that no package but the server, and the command that starts it, answers
// requests from outside, beside the examples and what tests ask. Its tests are in the rows N19 and N20.
func TestOneListens(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "examples") || strings.HasPrefix(path, "llm/llmtest") || strings.HasPrefix(path, "internal/pgtest") || strings.HasPrefix(path, "agent/agenttest") || path == "server/server.go" || strings.HasPrefix(path, "cli/internal/serving/") { // the other side
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && (x.Name == "net" && strings.HasPrefix(sel.Sel.Name, "Listen") && sel.Sel.Name != "ListenUnix" || // a socket of this machine is not outside
				x.Name == "http" && (sel.Sel.Name == "Server" || strings.HasPrefix(sel.Sel.Name, "ListenAndServe") || sel.Sel.Name == "Serve" || sel.Sel.Name == "ServeTLS")) {
				t.Errorf("%s uses %s.%s: package server is what listens", path, x.Name, sel.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 50 {
		t.Errorf("%d files were read: %v", seen, err)
	}
}

// TestKnownMargins compares panels of specialists with long records with margins
// worked out by hand.
func TestKnownMargins(t *testing.T) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"s","goalState":"g","states":{"s":{"transitions":{"a":"g","b":"g"}},"g":{}}}`), strategies.Checks())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		votes string // how often each was right in 10,000, and for what
		limit machine.Threshold
		want  string
	}{
		{"9000a 6000a 3000a", machine.Threshold{Given: 1, Weight: 1_000_000_000}, "Alignment-weighted margin 1.00 >= threshold 1 (leader: a)"},
		{"9000a 6000a 3000b", machine.Threshold{Given: 0.5, Weight: 500_000_000}, "Alignment-weighted margin 0.67 >= threshold 0.5 (leader: a)"},
		{"9000a 3000b", machine.Threshold{Given: 0.5, Weight: 500_000_000}, "Alignment-weighted margin 0.51 >= threshold 0.5 (leader: a)"},
		{"9000a 6000b", machine.Threshold{Given: 0.3, Weight: 300_000_000}, "Alignment-weighted margin 0.20 below threshold 0.3"},
	} {
		r := &arbiter.Round{Machine: m, State: m.State("s"), Threshold: &c.limit}
		for i, v := range strings.Fields(c.votes) {
			k, err := strconv.ParseInt(v[:len(v)-1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.Votes = append(r.Votes, arbiter.Vote{Rank: int32(i), Weight: trust.Score(k, 10_000), Proposal: &specialist.Proposal{Transition: r.State.Transition(v[len(v)-1:])}})
		}
		d, err := strategies.AlignmentMargin{}.Decide(context.Background(), r)
		if err != nil || d.Reasoning() != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.votes, d.Reasoning(), c.want, err)
		}
	}
}
