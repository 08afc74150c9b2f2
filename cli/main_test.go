package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

var update = flag.Bool("update", false, "write what scripts expect")

// TestMain lets the test binary be the program: dialai as it is built for users,
// dialai-go, a user's own with Go strategies, and dialai-faulty, in which some things panic.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // else each process would sleep a second at its end
	program := func(registry strategies.Registry, drivers ...cli.Driver) func() {
		return func() {
			run := func(args []string) int { return cli.Main(context.Background(), registry, args, drivers...) }
			if code, done := atDistance(run); done {
				os.Exit(code)
			}
			os.Exit(run(os.Args[1:]))
		}
	}
	testscript.Main(withPostgres{m}, map[string]func(){
		"dialai":        program(strategies.Registry{}),
		"dialai-driver": program(strategies.Registry{}, courier()),
		"dialai-faulty": func() {
			faulty()
			program(strategies.Registry{})()
		},
		"mcpserver": mcpServer,
		"mcpagent":  mcpAgent,
		"dialai-go": program(strategies.Registry{}.WithProposer("panics", specialist.ProposerFunc(panics)).WithProposer("waits", specialist.ProposerFunc(waits))),
	})
}

// courier is a driver with a command that takes a session as far as it goes.
func courier() cli.Driver {
	var depot string
	var back bool
	return cli.Driver{
		Name:  "temporal",
		Flags: func(f *flag.FlagSet) { f.StringVar(&depot, "depot", "here", "the `place` that couriers start from") },
		Run: func(context.Context, cli.DriverEngine) error {
			if depot == "nowhere" {
				return errors.New("couriers have nowhere to start from")
			}
			return nil
		},
		Serving: func(_ context.Context, e cli.DriverEngine) (string, any) {
			if depot == "here" {
				return "", nil
			}
			return "starts from " + depot + "\nfor " + e.Tenant, map[string]string{"depot": depot}
		},
		Detail: func(_ context.Context, _ cli.DriverEngine, s *session.Session) (string, error) {
			return "parcel " + s.ID.String()[:8], nil
		},
		Commands: []cli.DriverCommand{{
			Use: "carry <session>", Short: "Take a session as far as it goes", Example: "  dialai-driver carry 0b9c1d3e",
			Run: func(ctx context.Context, e cli.DriverEngine, args []string) error {
				s, err := e.Find(ctx, args[0])
				if err != nil {
					return err
				}
				p, err := e.Advance(ctx, s.ID, runner.AdvanceOptions{})
				if err != nil {
					return err
				}
				fmt.Fprintf(e.Out, "from %s: %s %s %t\n", depot, p.Status, p.Code, e.JSON)
				return nil
			},
		}, {
			Use: "take <session>", Short: "Have couriers carry a session on", Example: "  dialai-driver take 0b9c1d3e",
			Flags: func(f *flag.FlagSet) { f.BoolVar(&back, "back", false, "give it back") },
			Run: func(ctx context.Context, e cli.DriverEngine, args []string) error {
				s, err := e.Find(ctx, args[0])
				if err != nil {
					return err
				}
				to := session.DriverTemporal
				if back {
					to = session.DriverPool
				}
				_, err = e.SetDriver(ctx, s.ID, to, e.Actor)
				return err
			},
		}, { // which dialai has, too
			Use: "status", Short: "Say where couriers are", Long: "With --depot, say where couriers are.", Example: "  dialai-driver status --depot here",
			Run: func(_ context.Context, e cli.DriverEngine, args []string) error {
				fmt.Fprintf(e.Out, "couriers of %s are at %s\n", strings.Join(args, " "), depot)
				return nil
			},
		}},
	}
}

// withPostgres ends the cluster that tests have shared, if any has needed it.
type withPostgres struct{ *testing.M }

// Run runs the tests.
func (m withPostgres) Run() int { return pgtest.Main(m.M) }

// panics is a strategy with a bug.
func panics(context.Context, specialist.Question) (specialist.Answer, error) {
	panic("a bug in a strategy")
}

// waits is a strategy that comes to no answer.
func waits(ctx context.Context, _ specialist.Question) (specialist.Answer, error) {
	<-ctx.Done()
	return specialist.Answer{}, ctx.Err()
}

// TestScript runs the scripts in testdata/script. Beside the commands of
// testscript they have these:
//
//	exits CODE PROGRAM ARGS...  runs a program; its output with ids, times and
//	                            hashes replaced is in the files out and err
//	remember NAME PATTERN       sets a variable to what the pattern's group
//	                            matches in the last stdout
//	webhook                     starts a service, HOOK is its address
//	called PATH N               waits until a path of it was called N times
//	expand FILE...              replaces $HOOK in files
//	model                       starts a server of models, DIALAI_LLM_BASE_URL is its address
//	asked N                     fails unless models were asked N times
//	stored FILE STORE           starts a session of a definition that loading refuses
//	                            and a store may hold
//	server                      starts dialai serve, SERVER is its address
//	named FILE STORE ID...      starts sessions with these ids
//
// A line after [here] holds where commands work on the store itself, and not at a server.
func TestScript(t *testing.T) {
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	p := scripts()
	p.Dir = ""
	for i, path := range all {
		if i%everyScript == everyScript-1 {
			p.Files = append(p.Files, path)
		}
	}
	testscript.Run(t, p)
}

func scripts() testscript.Params {
	return testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, ".data"))
			e.Setenv("EXAMPLE_WEBHOOK_TOKEN", "hooktoken")
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Values[shortenerKey] = &shortener{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "remember": remember, "webhook": startHook, "called": called, "expand": expand, "model": startModel, "asked": asked, "stored": startStored, "named": startNamed, "server": serveScript, "newer": makeNewer,
		},
		Condition: func(name string) (bool, error) {
			if name != "here" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return true, nil
		},
		UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	s := ts.Value(shortenerKey).(*shortener)
	for file, stream := range map[string]string{"out": "stdout", "err": "stderr"} {
		ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), file), []byte(s.short(ts.ReadFile(stream))), 0o600))
	}
}

// A shortener replaces what is different each time by names that are the same
// each time: the first id it sees is ID-1, wherever it is seen.
type shortener struct{ ids []string }

// shortenerKey is where a script keeps its own.
const shortenerKey = "shortener"

var (
	idPattern      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	printedPattern = regexp.MustCompile(`dialai [a-z ]+ ([0-9a-f]{8})\b`)
	shortPattern   = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	timePattern    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	hashPattern    = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	ownerPattern   = regexp.MustCompile(`"owner":"[0-9a-f]{32}"`)
	userPattern    = regexp.MustCompile(`decided by [^)"]+`)
	actorPattern   = regexp.MustCompile(`"subject":"local:[^"]+"`)
	rulerPattern   = regexp.MustCompile(`\(local:[^)]+\)`)
	hookPattern    = regexp.MustCompile(`127\.0\.0\.1:\d{2,}`)
	askedPattern   = regexp.MustCompile(`--question [0-9a-f]{12}\b`)
	msecPattern    = regexp.MustCompile(`"latencyMsec":\d+`)
	tookPattern    = regexp.MustCompile(`"elapsed_ms":\d+`)
	ageAtEnd       = regexp.MustCompile(`(?m)  \d+[smh]$`)
	agePattern     = regexp.MustCompile(`  \d+[smh]  +`)
)

func (s *shortener) short(text string) string {
	text = idPattern.ReplaceAllStringFunc(text, func(id string) string {
		for i, known := range s.ids {
			if strings.HasPrefix(id, known) {
				return fmt.Sprintf("ID-%d", i+1)
			}
		}
		s.ids = append(s.ids, id)
		return fmt.Sprintf("ID-%d", len(s.ids))
	})
	for _, m := range printedPattern.FindAllStringSubmatch(text, -1) { // one that was not seen whole
		if !slices.ContainsFunc(s.ids, func(known string) bool { return strings.HasPrefix(known, m[1]) }) {
			s.ids = append(s.ids, m[1])
		}
	}
	text = shortPattern.ReplaceAllStringFunc(text, func(short string) string {
		for i, known := range s.ids {
			if strings.HasPrefix(known, short) {
				return fmt.Sprintf("ID-%d", i+1)
			}
		}
		return short
	})
	for _, r := range []struct {
		pattern *regexp.Regexp
		by      string
	}{
		{timePattern, "TIME"}, {hashPattern, "HASH"}, {askedPattern, "--question DIGEST"}, {ownerPattern, `"owner":"OWNER"`}, {userPattern, "decided by USER"}, {actorPattern, `"subject":"local:USER"`}, {rulerPattern, "(local:USER)"}, {hookPattern, "HOOK"}, {msecPattern, `"latencyMsec":1`}, {tookPattern, `"elapsed_ms":0`}, {agePattern, "  AGE  "}, {ageAtEnd, "  AGE"},
	} {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	return text
}

func remember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: remember NAME PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("stdout does not match %s, or that has no group", pattern)
	}
	ts.Setenv(args[0], found[1])
	if idPattern.MatchString(found[1]) || shortPattern.MatchString(found[1]) { // of an id also its beginning, as NAME8
		ts.Setenv(args[0]+"8", found[1][:8])
	}
}

func expand(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		text := strings.ReplaceAll(ts.ReadFile(name), "$HOOK", ts.Getenv("HOOK"))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}
