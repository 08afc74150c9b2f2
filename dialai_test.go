package dialai_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// pages is a machine whose proposer and arbiter are Go functions.
const pages = `machineName: pages
initialState: draft
goalState: printed
states:
  draft: {prompt: "Print it?", transitions: {print: printed, edit: draft}}
  printed: {}
specialists:
  - {role: proposer, specialistId: counter, strategyFn: countPages}
  - {role: proposer, specialistId: carol, isHuman: true}
  - {role: arbiter, specialistId: judge, strategyFn: neverAlone}
`

// TestFrontDoorIsSmall holds the front door to what a program needs in its first hour.
func TestFrontDoorIsSmall(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "dialai.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	exported := 0
	for _, n := range names {
		if ast.IsExported(n) {
			exported++
		}
	}
	if exported < 15 || exported > 25 {
		t.Errorf("%d names are exported, want at most 25: %q", exported, names)
	}
	others, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range others {
		if path != "dialai.go" && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s: the front door is one file", path)
		}
	}
}

// TestEngine goes through a session by the front door alone: Go functions propose and
// arbitrate, a human rules, and a file keeps it between two engines.
func TestEngine(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "pages.db")
	var asked string
	options := dialai.Options{
		Store: path,
		Proposers: map[string]dialai.ProposerFunc{"countPages": func(_ context.Context, r dialai.Request) (dialai.Answer, error) {
			asked = string(r.Meta)
			return dialai.Answer{TransitionName: "print"}, nil
		}},
		Arbiters: map[string]dialai.ArbiterFunc{"neverAlone": func(_ context.Context, r *dialai.Round) (dialai.Decision, error) {
			return dialai.NoWinner("a human looks at every page"), nil
		}},
	}
	m, err := dialai.Parse("pages.yaml", []byte(pages))
	must(t, err)
	engine, err := dialai.Open(ctx, options)
	must(t, err)
	session, err := engine.Start(ctx, m, map[string]int{"pages": 3})
	must(t, err)
	session, err = engine.Run(ctx, session.ID)
	must(t, err)
	if session.Status != dialai.NeedsHuman || session.Outcome().Reason != "a human looks at every page" || asked != `{"pages":3}` {
		t.Fatalf("%s: %s; asked about %s", session.Status, session.Outcome().Reason, asked)
	}
	must(t, engine.Close())

	engine, err = dialai.Open(ctx, options)
	must(t, err)
	defer engine.Close()
	questions, err := engine.Inbox(ctx, "carol")
	if must(t, err); len(questions) != 1 || questions[0].SessionID != session.ID.String() {
		t.Fatalf("the inbox holds %+v", questions)
	}
	ruling := questions[0].Choose("carol", "edit")
	session, err = engine.Decide(ctx, ruling)
	if must(t, err); session.Status != dialai.Running || session.Last().SpecialistID != "carol" {
		t.Errorf("after the ruling it is %s", session.Status)
	}
	if _, err := engine.Decide(ctx, ruling); !errors.Is(err, runner.ErrStaleRound) {
		t.Errorf("the same ruling again = %v, want ErrStaleRound", err)
	}
	history, err := engine.History(ctx, session.ID)
	if must(t, err); len(history) != 1 || history[0].TransitionName != "edit" || !history[0].IsHuman {
		t.Errorf("the history is %+v", history)
	}
}

// TestElectByTheFrontDoor lets an arbiter of one's own decide until the goal.
func TestElectByTheFrontDoor(t *testing.T) {
	ctx := t.Context()
	engine, err := dialai.Open(ctx, dialai.Options{
		Proposers: map[string]dialai.ProposerFunc{"countPages": func(_ context.Context, r dialai.Request) (dialai.Answer, error) {
			return r.Choose(r.Transitions()[0], "the first"), nil
		}},
		Arbiters: map[string]dialai.ArbiterFunc{"neverAlone": func(context.Context, *dialai.Round) (dialai.Decision, error) {
			return dialai.Elect(0, "whoever it is"), nil
		}},
	})
	must(t, err)
	defer engine.Close()
	m, err := dialai.Parse("pages.yaml", []byte(pages))
	must(t, err)
	session, err := engine.Start(ctx, m, nil)
	must(t, err)
	if session, err = engine.Run(ctx, session.ID); err != nil || session.Status != dialai.Completed {
		t.Errorf("it is %s, %v", session.Status, err)
	}
}

// TestLoadByTheFrontDoor reads the guards that a machine file names from its folder, and
// from nowhere else.
func TestLoadByTheFrontDoor(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("limits.json", `{"profile":"strict","limits":{"max_steps":3}}`)
	named := pages + "guards: limits.json\n"
	if m, err := dialai.Load(write("pages.yaml", named)); err != nil || m.Name() != "pages" {
		t.Errorf("Load = %v", err)
	}
	var problems *machine.Error
	if _, err := dialai.Parse("pages.yaml", []byte(named)); !errors.As(err, &problems) || !strings.Contains(err.Error(), "only Load reads files") {
		t.Errorf("Parse = %v", err)
	}
	if _, err := dialai.Load(write("out.yaml", pages+"guards: ../limits.json\n")); !errors.As(err, &problems) {
		t.Errorf("Load of guards outside = %v", err)
	}
	if _, err := dialai.Open(t.Context(), dialai.Options{Lookup: func(string) (string, bool) { return "a/b", true }}); err == nil || !strings.Contains(err.Error(), "DIALAI_WEBHOOK_ALLOW") {
		t.Errorf("Open with a bad environment = %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
