package dialai_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dialai/dialai"

// ladder says which packages of ours each package may import. Imports go down,
// never sideways or up; a package that is missing here fails the test.
var ladder = map[string][]string{
	"exact":                      {},
	"internal/jsontext":          {"exact"},
	"internal/wire":              {},
	"internal/files":             {},
	"internal/pgtest":            {},
	"internal/lru":               {},
	"internal/seal":              {"internal/files"},
	"internal/deadline":          {},
	"internal/expression":        {"internal/jsontext"},
	"machine":                    {"internal/expression", "exact", "internal/jsontext"},
	"specialist":                 {"exact", "internal/jsontext", "machine"},
	"internal/trust":             {"exact", "internal/wire", "internal/jsontext", "machine", "specialist"},
	"verdict":                    {"exact", "specialist"},
	"internal/section":           {"exact", "internal/jsontext", "machine"},
	"internal/text":              {"exact", "internal/jsontext", "machine"},
	"internal/spend":             {"exact", "machine", "specialist", "verdict", "internal/section"},
	"internal/packs":             {"verdict", "internal/section", "internal/text"},
	"internal/batch":             {"internal/jsontext", "machine", "specialist", "verdict", "internal/section", "internal/text"},
	"internal/truth":             {"exact", "machine", "internal/spend", "verdict", "internal/section", "internal/packs"},
	"guard":                      {"internal/wire", "internal/files", "exact", "internal/jsontext", "machine", "specialist", "verdict", "internal/section", "internal/text", "internal/packs", "internal/spend", "internal/truth", "internal/batch"},
	"arbiter":                    {"exact", "internal/jsontext", "machine", "specialist", "internal/trust"},
	"strategies":                 {"internal/expression", "exact", "machine", "specialist", "internal/trust", "guard", "internal/truth", "arbiter"},
	"internal/lab/trial":         {"exact", "internal/trust"},
	"session":                    {"internal/wire", "internal/lru", "exact", "internal/jsontext", "machine", "specialist", "internal/trust", "verdict", "internal/spend", "guard", "arbiter"},
	"internal/cases":             {"internal/expression", "internal/jsontext", "machine", "session", "specialist"},
	"internal/lessons":           {"exact", "internal/wire", "machine", "specialist", "internal/trust", "session"},
	"internal/stats":             {"exact", "internal/lru", "internal/spend", "internal/trust", "internal/wire", "session", "specialist"},
	"internal/tenants":           {"internal/spend", "session", "specialist", "verdict"},
	"internal/refusal":           {},
	"internal/planning":          {"exact", "internal/cases", "internal/spend", "internal/refusal", "internal/trust", "internal/truth", "guard", "arbiter", "machine", "session", "specialist", "strategies"},
	"internal/collapse":          {"arbiter", "exact", "internal/lessons", "internal/planning", "internal/trust", "session", "specialist"},
	"runner":                     {"internal/collapse", "internal/planning", "internal/refusal", "internal/cases", "internal/lru", "internal/deadline", "internal/lessons", "internal/stats", "internal/tenants", "exact", "internal/jsontext", "machine", "specialist", "internal/trust", "verdict", "internal/spend", "guard", "internal/packs", "internal/truth", "arbiter", "session", "strategies"},
	"agent":                      {},
	"agent/scripted":             {"agent"},
	"agent/agenttest":            {"agent"},
	"agent/codex":                {"agent", "agent/internal/hosttools", "agent/internal/process", "agent/internal/rpc"},
	"agent/claude":               {"agent", "agent/internal/hosttools", "agent/internal/process"},
	"agent/bridge":               {"agent"},
	"agent/acp":                  {"agent", "agent/internal/hosttools", "agent/internal/process", "agent/internal/rpc"},
	"agent/leftover":             {"agent/internal/process"},
	"agent/internal/process":     {"agent"},
	"agent/internal/rpc":         {"agent"},
	"agent/internal/hosttools":   {"agent"},
	"permit":                     {"internal/jsontext", "internal/packs", "internal/section", "machine", "runner", "session", "specialist"},
	"tui":                        {"agent", "exact", "internal/text", "session", "undertaking"},
	"undertaking":                {"agent", "arbiter", "exact", "internal/batch", "internal/files", "internal/jsontext", "internal/packs", "machine", "permit", "runner", "session", "specialist"},
	"internal/lint":              {"internal/planning", "machine", "internal/trust", "session", "runner"},
	"explain":                    {"internal/collapse", "internal/planning", "exact", "machine", "specialist", "internal/trust", "internal/spend", "guard", "arbiter", "session", "strategies", "runner"},
	"report":                     {"internal/planning", "internal/spend", "internal/stats", "exact", "machine", "specialist", "internal/trust", "session", "runner"},
	"api":                        {"control", "exact", "explain", "guard", "internal/packs", "internal/trust", "machine", "report", "session", "specialist", "runner"},
	"client":                     {"api"},
	"control":                    {"exact", "specialist"},
	"server/internal/params":     {},
	"notify":                     {"api", "control", "internal/lru", "internal/seal", "internal/spend", "internal/trust", "runner", "session", "specialist", "verdict", "webhook"},
	"server/mcp":                 {"api", "internal/seal", "internal/text"},
	"docs":                       {},
	"desk":                       {},
	"server":                     {"store/postgres", "desk", "internal/jobs", "internal/lab/backtest", "internal/lab/dryrun", "internal/lab/simulate", "internal/trust", "strategies", "internal/telemetry/prom", "internal/telemetry/spans", "docs", "server/mcp", "api", "control", "driver", "exact", "explain", "guard", "internal/graph", "internal/guardlog", "internal/issuer", "internal/jsontext", "internal/lru", "internal/packs", "internal/seal", "machine", "notify", "report", "runner", "server/internal/params", "session", "specialist", "store", "webhook", "internal/text"},
	"internal/issuer":            {},
	"driver":                     {"control", "internal/lru", "specialist", "session", "runner"},
	"store/internal/pack":        {"session"},
	"store/internal/fold":        {"session", "specialist", "store/internal/pack", "store/internal/snapshots"},
	"store/internal/groupcommit": {},
	"store/internal/projection":  {"internal/trust", "machine", "session", "specialist", "store/internal/pack"},
	"store/internal/snapshots":   {"internal/lessons", "internal/stats", "internal/trust", "internal/wire", "session", "specialist", "store/internal/pack"},
	"store/internal/archive":     {"session", "specialist"},
	"store/internal/scratch":     {"session", "store/internal/projection"},
	"store/internal/erase":       {"internal/stats", "session", "specialist", "store/internal/fold", "store/internal/pack", "store/internal/projection", "store/internal/snapshots"},
	"store":                      {"control", "store/internal/archive", "store/internal/erase", "store/internal/scratch", "store/internal/snapshots", "store/internal/fold", "store/internal/groupcommit", "store/internal/pack", "store/internal/projection", "internal/stats", "internal/lru", "exact", "machine", "specialist", "internal/trust", "verdict", "internal/spend", "guard", "arbiter", "strategies", "session", "runner", "internal/lessons", "store/internal/transfer"},
	"store/postgres":             {"exact", "internal/spend", "internal/stats", "internal/tenants", "store/internal/snapshots", "internal/lru", "internal/trust", "machine", "session", "specialist", "store", "store/internal/fold", "store/internal/groupcommit", "store/internal/pack", "store/internal/projection", "store/internal/scratch", "control", "store/internal/archive", "store/internal/erase", "store/internal/transfer"},
	"store/internal/transfer":    {"session", "store/internal/pack"},
	"store/storetest":            {"control", "exact", "internal/spend", "internal/tenants", "store/internal/archive", "store/internal/erase", "machine", "specialist", "internal/trust", "verdict", "guard", "arbiter", "strategies", "session", "runner"},
	"internal/lab/backtest":      {"internal/collapse", "internal/planning", "exact", "internal/jsontext", "machine", "specialist", "internal/trust", "verdict", "guard", "arbiter", "strategies", "session", "runner", "report"},
	"internal/lab/simulate":      {"internal/planning", "exact", "machine", "specialist", "internal/trust", "verdict", "guard", "arbiter", "strategies", "session", "runner", "store"},
	"internal/lab/dryrun":        {"api", "arbiter", "guard", "machine", "runner", "session", "specialist", "store", "strategies"},
	"internal/lab/plot":          {},
	"internal/jobs":              {"api", "guard", "internal/guardlog", "internal/lab/backtest", "internal/lab/simulate", "internal/text", "internal/trust", "machine", "runner", "session", "specialist", "store", "strategies"},
	"webhook":                    {"exact", "internal/jsontext", "machine", "specialist", "verdict", "guard", "internal/truth", "arbiter"},
	"llm":                        {"exact", "internal/jsontext", "machine", "specialist", "internal/trust", "verdict", "internal/spend", "guard", "internal/packs", "internal/truth", "arbiter", "webhook"},
	"llm/llmtest":                {},
	"internal/cassette":          {"internal/files", "internal/jsontext", "machine", "specialist", "webhook"},
	"internal/telemetry":         {"specialist", "llm"},
	"internal/telemetry/prom":    {"internal/lru", "runner", "session", "specialist", "store"},
	"internal/telemetry/spans":   {"internal/lru", "runner", "specialist", "webhook"},
	"internal/otlp":              {"webhook"},
	"internal/graph":             {"exact", "internal/text", "machine"},
	"internal/proxy":             {"guard", "internal/guardlog", "internal/jsontext", "internal/packs", "internal/text", "verdict"},
	"machines":                   {},
	"internal/guardlog":          {"exact", "internal/jsontext", "internal/spend", "guard", "internal/packs", "session", "specialist", "verdict"},
	"cli/internal/render":        {"api", "internal/jobs", "internal/text", "internal/guardlog", "exact", "internal/jsontext", "machine", "specialist", "internal/trust", "internal/spend", "guard", "internal/packs", "session", "runner", "explain", "report", "store", "internal/lab/trial", "internal/lab/simulate", "internal/lab/plot", "internal/lab/backtest", "llm"},
	"cli/internal/payloads":      {"cli/internal/render", "internal/jsontext", "session"},
	"cli/internal/vectors":       {"internal/guardlog", "cli/internal/render", "exact", "machine", "specialist", "internal/trust", "verdict", "internal/spend", "guard", "internal/batch", "internal/packs", "internal/truth", "arbiter", "strategies"},
	"cli/internal/command":       {"api", "cli/internal/render", "internal/files", "internal/otlp", "internal/packs", "internal/spend", "internal/telemetry", "llm", "machine", "machines", "runner", "session", "specialist", "store", "store/postgres", "strategies", "webhook"},
	"cli/internal/serving":       {"internal/section", "internal/spend", "cli/internal/payloads", "internal/telemetry/prom", "internal/telemetry/spans", "internal/proxy", "internal/issuer", "webhook", "api", "cli/internal/command", "cli/internal/render", "control", "driver", "internal/files", "internal/packs", "llm", "machine", "runner", "server", "server/mcp", "internal/seal", "session", "specialist", "store", "store/postgres", "client", "notify", "internal/text", "cli/internal/guards", "guard"},
	"cli/internal/guards":        {"cli/internal/command", "cli/internal/render", "exact", "guard", "internal/files", "internal/guardlog", "internal/jsontext", "internal/packs", "internal/spend", "machine", "verdict", "internal/text", "api"},
	"cli/internal/agents":        {"agent", "agent/acp", "agent/bridge", "agent/leftover", "agent/claude", "agent/codex", "agent/scripted", "exact", "runner", "specialist", "tui", "undertaking", "cli/internal/command", "cli/internal/render", "internal/files", "internal/jsontext", "machine", "machines", "permit", "server/mcp", "session"},
	"cli/internal/remote":        {"api", "cli/internal/command", "cli/internal/render", "client", "explain", "internal/files", "internal/trust", "machine", "runner", "session", "specialist"},
	"cli":                        {"undertaking", "cli/internal/agents", "permit", "internal/jobs", "cli/internal/guards", "cli/internal/remote", "internal/proxy", "cli/internal/serving", "cli/internal/command", "api", "client", "internal/planning", "internal/lint", "internal/guardlog", "cli/internal/payloads", "cli/internal/render", "cli/internal/vectors", "internal/files", "exact", "internal/jsontext", "machine", "specialist", "internal/trust", "verdict", "internal/spend", "guard", "internal/packs", "strategies", "session", "runner", "explain", "report", "store", "store/postgres", "internal/lab/backtest", "internal/lab/simulate", "webhook", "llm", "internal/cassette", "internal/graph", "machines", "internal/lab/trial", "internal/text"},
	"cmd/dialai":                 {"cli", "strategies"},
	"desk/everypage":             {},
	"desk/desktest":              {"api", "cli", "client", "machine", "machines", "strategies"},
	"examples/custom-arbiter":    {"cli", "strategies", "arbiter"},
	"examples/minimal":           {"cli", "strategies", "specialist"},
	"examples/chat-notifier":     {"webhook"},
	"examples/webhook-arbiter":   {"webhook"},
	"examples/webhook-proposer":  {},
	"examples/embed":             {"."},
	".":                          {"internal/files", "machine", "specialist", "guard", "internal/packs", "arbiter", "strategies", "session", "runner", "store", "webhook", "llm"},
	// Nothing but tests, and a comment that says so.
	"bench": {},
	"e2e":   {},
	"sim":   {},
}

// TestLadderIsDescribed: the table of ARCHITECTURE.md has every package, and each only
// below those that it imports.
func TestLadderIsDescribed(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## The ladder\n")
	table, _, _ = strings.Cut(table, "\n## ")
	place := map[string]int{}
	for i, line := range strings.Split(table, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				place[name[1]] = i
			}
		}
	}
	for name, imports := range ladder {
		if name == "." {
			name = "dialai"
		}
		family, _, _ := strings.Cut(name, "/") // of examples it says one thing
		if place[name] == 0 && place[family] == 0 {
			t.Errorf("ARCHITECTURE.md does not have %s", name)
		}
		for _, below := range imports {
			if place[name] != 0 && place[below] > place[name] {
				t.Errorf("ARCHITECTURE.md has %s above %s, which it imports", name, below)
			}
		}
	}
}

// TestRunnerIsDescribed: ARCHITECTURE.md says of each file of the runner to which mechanism
// it belongs.
func TestRunnerIsDescribed(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## The runner, by mechanism\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, s := range sources(t) {
		if n := strings.Count(table, "`"+filepath.ToSlash(s.path)+"`"); s.pkg == "runner" && n != 1 {
			t.Errorf("ARCHITECTURE.md names %s %d times among the mechanisms of the runner, and should once", s.path, n)
		}
	}
}

// homes says in which package each library of others may be imported. Where a
// file is named, it is the only one. An interface and what is set up behind it may
// have two.
var homes = map[string]string{
	"github.com/looplab/fsm":                 "runner/gate.go",
	"github.com/google/uuid":                 "runner/runner.go session/id.go server/middleware.go cli/proxy.go cli/internal/agents undertaking",
	"github.com/danielgtaylor/huma":          "server",
	"github.com/coreos/go-oidc/v3":           "internal/issuer",
	"golang.org/x/oauth2":                    "internal/issuer",
	"golang.org/x/time":                      "server/rate.go",
	"golang.org/x/net":                       "server/server.go",
	"gopkg.in/yaml.v3":                       "machine/yaml.go",
	"github.com/go-playground/validator/v10": "machine/check_fields.go",
	"github.com/google/jsonschema-go":        "machine",
	"cel.dev/cel-go":                         "internal/expression",
	"github.com/cenkalti/backoff/v5":         "webhook",
	"modernc.org/sqlite":                     "store store/internal/scratch",
	"github.com/pressly/goose/v3":            "store/migrations.go store/postgres/migrate.go",
	"github.com/jackc/pgx/v5":                "internal/pgtest store/postgres",
	"github.com/klauspost/compress":          "store/internal/pack",
	"github.com/gofrs/flock":                 "store internal/proxy/log.go undertaking/treelock.go undertaking/worktree.go",
	"github.com/modelcontextprotocol/go-sdk": "internal/proxy server/mcp",
	"github.com/spf13/cobra":                 "cli cli/internal/agents cli/internal/command cli/internal/guards cli/internal/remote cli/internal/serving",
	"github.com/spf13/pflag":                 "cli cli/internal/command cli/internal/guards cli/internal/remote cli/internal/serving",
	"golang.org/x/term":                      "cli/internal/render",
	"mvdan.cc/sh/v3":                         "permit cli/internal/agents/agents.go",
	"charm.land/bubbletea/v2":                "tui",
	"github.com/charmbracelet/x/ansi":        "tui internal/graph/terminal.go",
	"github.com/chromedp":                    "desk/desktest",
	"go.opentelemetry.io/otel":               "internal/telemetry internal/telemetry/prom internal/telemetry/spans internal/otlp cli/internal/command/otel.go",
	"go.opentelemetry.io/otel/sdk":           "internal/otlp internal/telemetry/prom cli/internal/command/otel.go",
	"go.opentelemetry.io/otel/exporters":     "internal/otlp internal/telemetry/prom",
	"github.com/prometheus":                  "internal/telemetry/prom",
	"go.opentelemetry.io/proto/otlp":         "internal/otlp",
	"google.golang.org/genproto":             "internal/otlp", // what a collector answers to what it does not take
	"google.golang.org/protobuf":             "internal/otlp",
}

// pure packages take values and return values.
var pure = []string{"exact", "internal/jsontext", "internal/wire", "machine", "specialist", "verdict", "internal/trust", "internal/spend", "internal/section", "internal/text", "internal/packs", "internal/batch", "internal/truth", "guard", "arbiter", "session", "control", "store/internal/pack", "store/internal/projection", "internal/graph"}

// impure imports do I/O, log, or reach for the world.
var impure = []string{"os", "os/exec", "io/ioutil", "net", "net/http", "log", "log/slog", "database/sql", "syscall", "math/rand", "math/rand/v2", "crypto/rand"}

// A source is one Go file that is no test.
type source struct {
	path, pkg string // relative to the module
	fset      *token.FileSet
	file      *ast.File
}

func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); d.IsDir() && path != "." && err == nil {
			return filepath.SkipDir // a module of its own, such as temporal
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		list = append(list, source{path, filepath.ToSlash(filepath.Dir(path)), fset, f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("only %d files found: the test does not see the tree", len(list))
	}
	return list
}

func importsOf(f *ast.File) (paths []string) {
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// cutModule returns the path of a package of ours; the front door's is ".".
func cutModule(path string) (ours string, isOurs bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func TestLadder(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.pkg] = true
		allowed, known := ladder[s.pkg]
		if !known {
			t.Errorf("%s: package %s is not on the ladder", s.path, s.pkg)
			continue
		}
		for _, p := range importsOf(s.file) {
			if ours, isOurs := cutModule(p); isOurs && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s: not below it on the ladder", s.path, ours)
			}
		}
	}
	for pkg := range ladder {
		if !seen[pkg] {
			t.Errorf("the ladder names %s, which does not exist", pkg)
		}
	}
}

func TestHomes(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, p := range importsOf(s.file) {
			if !strings.Contains(strings.SplitN(p, "/", 2)[0], ".") || strings.HasPrefix(p, module+"/") || p == module {
				continue // of the standard library, or ours
			}
			library := ""
			for lib := range homes {
				if (p == lib || strings.HasPrefix(p, lib+"/")) && len(lib) > len(library) {
					library = lib
				}
			}
			home := homes[library]
			used[library] = true
			switch {
			case home == "":
				t.Errorf("%s imports %s, which has no home", s.path, p)
			case !slices.Contains(strings.Fields(home), s.pkg) && !slices.Contains(strings.Fields(home), s.path):
				t.Errorf("%s imports %s, whose home is %s", s.path, p, home)
			}
		}
	}
	for lib := range homes {
		if !used[lib] {
			t.Errorf("%s has a home, but nobody uses it", lib)
		}
	}
}

func TestPure(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(pure, s.pkg) || s.path == "guard/load.go" { // for programs that use guard alone
			continue
		}
		for _, p := range importsOf(s.file) {
			if slices.Contains(impure, p) {
				t.Errorf("%s imports %s: package %s takes values and returns values", s.path, p, s.pkg)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", s.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Sleep", "After", "Since", "Until", "NewTimer", "NewTicker"}, n.Sel.Name) {
					t.Errorf("%s reads the clock", s.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// TestNoForeignTypes checks that no exported signature of the library shows a
// type of another module: what is imported in one place can be replaced there.
func TestNoForeignTypes(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains(strings.Fields(homes["github.com/spf13/cobra"]), s.pkg) || strings.HasPrefix(s.pkg, "cmd/") || strings.HasPrefix(s.pkg, "examples/") || s.pkg == "internal/otlp" { // which is what the SDK wants of it
			continue
		}
		foreign := map[string]bool{}
		for _, i := range s.file.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			if strings.Contains(strings.SplitN(p, "/", 2)[0], ".") && !strings.HasPrefix(p, module) {
				name := filepath.Base(p)
				if i.Name != nil {
					name = i.Name.Name
				}
				foreign[strings.TrimPrefix(name, "go-")] = true
			}
		}
		for _, d := range s.file.Decls {
			for _, shown := range exportedTypes(d) {
				ast.Inspect(shown, func(n ast.Node) bool {
					if sel, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := sel.X.(*ast.Ident); ok && foreign[x.Name] {
							t.Errorf("%s: an exported name shows %s.%s", s.fset.Position(n.Pos()), x.Name, sel.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
}

// exportedTypes returns the type expressions that a declaration shows.
func exportedTypes(d ast.Decl) (shown []ast.Node) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && !hasHiddenReceiver(d) {
			shown = append(shown, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok || !ts.Name.IsExported() {
				continue
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				shown = append(shown, ts.Type)
				continue
			}
			for _, f := range st.Fields.List {
				if len(f.Names) == 0 || f.Names[0].IsExported() {
					shown = append(shown, f.Type)
				}
			}
		}
	}
	return shown
}

// hasHiddenReceiver reports whether a function is a method of a type that is not exported:
// nobody outside calls it but through an interface, which says what it shows.
func hasHiddenReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return false
	}
	name := d.Recv.List[0].Type
	if star, ok := name.(*ast.StarExpr); ok {
		name = star.X
	}
	id, ok := name.(*ast.Ident)
	return ok && !id.IsExported()
}

// TestDocumented checks that every package and every exported name has a
// comment that begins with its name.
func TestDocumented(t *testing.T) {
	commented := map[string]bool{}
	for _, s := range sources(t) {
		if s.file.Doc != nil {
			commented[s.pkg] = true
		}
		for _, d := range s.file.Decls {
			for _, missing := range undocumented(d) {
				t.Errorf("%s: %s has no comment of its own", s.fset.Position(missing.Pos()), missing.Name)
			}
		}
	}
	for pkg := range ladder {
		if !commented[pkg] {
			t.Errorf("package %s has no comment", pkg)
		}
	}
}

func undocumented(d ast.Decl) (missing []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !obvious[d.Name.Name] {
			missing = append(missing, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
					missing = append(missing, spec.Name)
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					if n.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						missing = append(missing, n)
					}
				}
			}
		}
	}
	return missing
}

// obvious methods are those whose interface says all there is to say.
var obvious = map[string]bool{"Error": true, "Unwrap": true, "Kind": true, "Name": true, "Release": true, "ServeHTTP": true}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

// unlinked are libraries that the program, or one that uses the front door, must not hold:
// they are large, and only tests, only the program or nobody needs them.
var unlinked = map[string][]string{
	"./cmd/dialai": {"github.com/rogpeppe", "github.com/creack/pty"}, // what writes metrics holds testing
	".":            {"github.com/jackc", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters", "go.opentelemetry.io/proto", "google.golang.org/grpc", "github.com/spf13", "github.com/rogpeppe", "testing"},
}

func TestUnlinked(t *testing.T) {
	for from, never := range unlinked {
		out, err := exec.Command("go", "list", "-deps", from).Output()
		if err != nil {
			t.Fatal(err)
		}
		packages := strings.Fields(string(out))
		if !slices.Contains(packages, module+"/runner") {
			t.Fatalf("what %s holds is not seen: %q", from, packages)
		}
		for _, p := range packages {
			for _, no := range never {
				if p == no || strings.HasPrefix(p, no+"/") {
					t.Errorf("%s holds %s", from, p)
				}
			}
		}
	}
}
