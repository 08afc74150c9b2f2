package runner_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/verdict"
)

// A source is the engine and the session as they are compiled, without their tests.
type source struct {
	info  *types.Info
	sites map[string][]string // what happens, and in which functions
}

// sessionOnly imports the package of sessions, and all others as empty ones: their types do
// not matter here.
type sessionOnly struct{ session *types.Package }

func (k sessionOnly) Import(path string) (*types.Package, error) {
	name := path[strings.LastIndex(path, "/")+1:]
	if name == "session" && k.session != nil {
		return k.session, nil
	}
	p := types.NewPackage(path, name)
	p.MarkComplete()
	return p, nil
}

func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{sites: map[string][]string{}, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	session := s.read(t, "../session", sessionOnly{})
	s.read(t, ".", sessionOnly{session})
	for _, sites := range s.sites {
		slices.Sort(sites)
	}
	return s
}

// read reads one package.
func (s *source) read(t *testing.T, dir string, others types.Importer) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	c := types.Config{Importer: others, Error: func(error) {}} // other packages look empty
	p, _ := c.Check(filepath.Base(dir), fset, files, s.info)
	for _, f := range files {
		for _, d := range f.Decls {
			name := strings.TrimPrefix(fset.Position(d.Pos()).Filename, "../")
			if fn, ok := d.(*ast.FuncDecl); ok {
				name += " " + fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool { s.look(name, n); return true })
		}
	}
	return p
}

func (s *source) found(what, where string) {
	if !slices.Contains(s.sites[what], where) {
		s.sites[what] = append(s.sites[what], where)
	}
}

// watched are the types whose making, and the fields whose writing, is of
// interest.
var watched = []string{"permit", "Executed", "RoundOpened"}

func (s *source) look(where string, n ast.Node) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if name := named(s.info.TypeOf(n)); slices.Contains(watched, name) {
			s.found("make "+name, where)
		} else if name == "Session" {
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); !ok || fmt.Sprint(kv.Key) == "State" {
					s.found("write Session.State", where)
				}
			}
		}
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			s.write(where, left)
		}
	case *ast.IncDecStmt:
		s.write(where, n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND { // an address could be written through
			s.write(where, n.X)
		}
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
			if x, ok := f.X.(*ast.Ident); ok && x.Name == "fsm" {
				name = "fsm." + name
			}
		}
		switch name {
		case "move", "execute", "pass", "apply", "Event", "fsm.NewFSM":
			s.found("call "+name, where)
		case "Apply": // from outside of the package of sessions
			s.found("call apply", where)
		}
	}
}

// write notes a write to what says where a session stands, or to a permit. A
// field whose owner is not known counts too.
func (s *source) write(where string, x ast.Expr) {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return
	}
	owner := named(s.info.TypeOf(sel.X))
	switch name := sel.Sel.Name; {
	case (owner == "Session" || owner == "") && (name == "State" || name == "Executed" || name == "last"):
		s.found("write Session."+name, where)
	case owner == "permit" || owner == "" && name == "valid":
		s.found("write permit", where)
	}
}

func named(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// TestOnlyTheGateMoves reads the source: a permit is made where the event is
// fired, an executed event where a permit is shown or a log is read back, and a
// session stands elsewhere only after such an event was applied. lookIn makes a
// session that no store knows, to look at a state: nothing of it is committed. A move opens
// the round of the same state anew, in another definition (moved.go). A snapshot says what a log was folded
// into, and is proven against it.
func TestOnlyTheGateMoves(t *testing.T) {
	s := readSource(t)
	for what, want := range map[string]string{
		"call fsm.NewFSM":        "gate.go newPassage",
		"call Event":             "gate.go pass",
		"make permit":            "gate.go pass",
		"write permit":           "",
		"call pass":              "advance.go execute",
		"call execute":           "evaluate.go executeElected, round_states.go executing, ruling.go executeForced, timer.go executeTimer",
		"call move":              "advance.go execute",
		"make Executed":          "advance.go move, session/folder.go newData, session/snapshot.go history",
		"make RoundOpened":       "advance.go move, advance.go refused, commit_batch.go newOpened, move.go moveOnce, session/folder.go newData, session/opening.go fill, session/snapshot.go facts",
		"call apply":             "commit.go emit, session/folder.go Add, session/fork.go replay, session/opening.go NewOpening",
		"write Session.State":    "report_machine.go lookIn, session/fold.go applyEvent, session/fold.go applyExecuted, session/fold.go applyRound, session/form_events.go comparisonForm, session/moved.go applyMoved, session/shown.go Shown, session/snapshot.go program, session/snapshot.go session", // the state of a trust.Comparison; one that is only shown
		"write Session.Executed": "session/fold.go applyExecuted, session/snapshot.go session",
		"write Session.last":     "session/fold.go applyExecuted, session/snapshot.go history",
	} {
		if got := strings.Join(s.sites[what], ", "); got != want {
			t.Errorf("%s: in %s, want %s", what, got, want)
		}
	}
}

// deskGate returns the gate of one transition of the desk.
func deskGate(t *testing.T, transition string) *runner.Gate {
	t.Helper()
	m := parse(t, def{who: []string{fn("a")}}.text())
	return runner.NewGate(m.State("open").Transition(transition))
}

func passing(string, string) verdict.Verdict { return verdict.Verdict{} }

// TestGateKeysFire proves that neither callback key is misspelt: a gate that does
// not hear its own callbacks gives no permit.
func TestGateKeysFire(t *testing.T) {
	if got := fmt.Sprint(runner.Keys); got != "[before_event after_event]" {
		t.Errorf("the keys are %s", got)
	}
	for transition, target := range map[string]string{"finish": "done", "again": "open", "park": "parked"} {
		g := deskGate(t, transition)
		for range 3 {
			seen := ""
			ok, v, err := g.Pass(context.Background(), func(src, dst string) verdict.Verdict { seen += src + ">" + dst; return verdict.Verdict{} })
			if !ok || err != nil || v.Status != verdict.OK || seen != "open>"+target {
				t.Errorf("%s: permit %t, judged %q, verdict %v, %v", transition, ok, seen, v, err)
			}
		}
	}
}

// TestGateVerdicts gives a permit for ok and warn alone, and works on after a
// refusal.
func TestGateVerdicts(t *testing.T) {
	for _, transition := range []string{"finish", "again"} {
		g := deskGate(t, transition)
		for status, want := range map[verdict.Status]bool{verdict.OK: true, verdict.Warn: true, verdict.Retry: false, verdict.Escalate: false, verdict.Abort: false} {
			ok, v, err := g.Pass(context.Background(), func(string, string) verdict.Verdict {
				return verdict.Verdict{Status: status, Reasons: []verdict.Reason{{Code: "c"}}}
			})
			if ok != want || err != nil || v.Status != status || v.Codes()[0] != "c" {
				t.Errorf("%s, %s: permit %t, verdict %v, %v", transition, status, ok, v, err)
			}
			if ok, _, err := g.Pass(context.Background(), passing); !ok || err != nil {
				t.Errorf("after %s the gate is shut: %v", status, err)
			}
		}
	}
}

// TestGateSurvives cancels contexts and panics at the worst moments.
func TestGateSurvives(t *testing.T) {
	for _, transition := range []string{"finish", "again"} {
		g := deskGate(t, transition)
		ctx, cancel := context.WithCancel(context.Background())
		ok, _, err := g.Pass(ctx, func(string, string) verdict.Verdict { cancel(); return verdict.Verdict{} })
		if !ok || err != nil {
			t.Errorf("%s, cancelled while judging: permit %t, %v", transition, ok, err)
		}
		if ok, _, err := g.Pass(ctx, passing); ok || !errors.Is(err, context.Canceled) {
			t.Errorf("%s, with a context that is done: permit %t, %v", transition, ok, err)
		}
		func() {
			defer func() { recover() }()
			g.Pass(context.Background(), func(string, string) verdict.Verdict { panic("a guard") })
			t.Error("a panic was swallowed")
		}()
		for range 3 {
			if ok, _, err := g.Pass(context.Background(), passing); !ok || err != nil {
				t.Errorf("%s: the gate is wedged: %v", transition, err)
			}
		}
	}
}

// TestGateIsShared sends many steps through one gate at once: each gets the
// verdict of its own judge.
func TestGateIsShared(t *testing.T) {
	g := deskGate(t, "finish")
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 100 {
				status := []verdict.Status{verdict.OK, verdict.Abort}[i%2]
				ok, v, err := g.Pass(context.Background(), func(string, string) verdict.Verdict {
					return verdict.Verdict{Status: status, Reasons: []verdict.Reason{{Code: fmt.Sprint(i)}}}
				})
				if ok != (status == verdict.OK) || v.Codes()[0] != fmt.Sprint(i) || err != nil {
					t.Errorf("caller %d: permit %t, %v, %v", i, ok, v, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestEveryWayPassesTheGate decides in every way: each execution follows a
// judgement of the guards that let it pass, and each refusal leaves the session
// in its state and history.
func TestEveryWayPassesTheGate(t *testing.T) {
	capped := `"guards":{"limits":{"max_steps":1}}`
	for _, c := range []struct {
		name   string
		decide func(*bench, *session.Session)
	}{
		{"step", func(b *bench, s *session.Session) { b.step(s) }},
		{"eager step", func(b *bench, s *session.Session) { b.step(s) }},
		{"submitted consensus", func(b *bench, s *session.Session) {
			b.propose(s, "a", "again")
			b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound})
		}},
		{"forced", func(b *bench, s *session.Session) {
			b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
		}},
		{"executed", func(b *bench, s *session.Session) {
			_, err := b.r.Execute(b.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: "again"})
			b.ok(err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.cast.say("a", "again")
			top := capped
			if strings.HasPrefix(c.name, "eager") {
				top += `,"solicit":"eager"`
			}
			s := b.start(b.machine(def{who: []string{fn("a"), human("human"), half}, top: top}))
			c.decide(b, s)
			moved := b.now(s)
			c.decide(b, s)
			now := b.now(s)
			if moved.Executed != 1 || now.Executed != 1 || now.State != moved.State || now.Last() != moved.Last() {
				t.Errorf("executed %d, then %d", moved.Executed, now.Executed)
			}
			var gates []string
			for _, r := range b.raw(s) {
				if r.Kind == "gated" || r.Kind == "executed" {
					gates = append(gates, r.Kind)
				}
			}
			if got := strings.Join(gates, " "); got != "gated executed gated" {
				t.Errorf("the log holds %s", got)
			}
			if state := now.GuardState(); state.Steps != 1 {
				t.Errorf("the guards count %d steps", state.Steps)
			}
		})
	}
}

// TestGatesAreShared proves that sessions of one definition share its compiled
// transitions, and that a gate uses its state machines again.
func TestGatesAreShared(t *testing.T) {
	b := newBench(t)
	text := def{who: []string{fn("a"), half}}.text()
	if one, other := b.start(parse(t, text)), b.start(parse(t, text)); one.Program != other.Program {
		t.Error("two sessions of one definition have programs of their own")
	}
	g := deskGate(t, "again")
	again := testing.AllocsPerRun(200, func() { g.Pass(b.ctx, passing) })
	anew := testing.AllocsPerRun(200, func() { deskGate(t, "again").Pass(b.ctx, passing) }) - testing.AllocsPerRun(200, func() { deskGate(t, "again") })
	if again*4 > anew*3 { // the race detector makes pools forget
		t.Errorf("passing allocates %.0f times, with a new state machine %.0f", again, anew)
	}
}
