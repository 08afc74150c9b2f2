package strategies_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// past is what a session of these tests remembers.
type past struct {
	specialist.Past
	steps, visits int
	last          *machine.Transition
}

func (p past) Steps() int                { return p.steps }
func (p past) Visits(*machine.State) int { return p.visits }
func (p past) Last() *machine.Transition { return p.last }

func question(round int32) specialist.Question {
	return specialist.Question{Key: specialist.RoundKey{Session: specialist.SessionID{7}, Round: round}, Machine: desk, State: desk.Initial(), Past: past{visits: 1}, Self: "me"}
}

func TestBuiltinProposers(t *testing.T) {
	for _, c := range []struct {
		p                   specialist.Proposer
		transition, because string
	}{
		{strategies.FirstAvailable, "a", "Choosing first available transition: a"},
		{strategies.LastAvailable, "c", "Choosing last available transition: c"},
	} {
		answer, err := c.p.Propose(t.Context(), question(1))
		if answer.TransitionName != c.transition || answer.Reasoning != c.because || answer.ToState != "" || err != nil {
			t.Errorf("%+v (%v), want %s because %q", answer, err, c.transition, c.because)
		}
	}
	end := question(1)
	end.State = desk.Goal()
	for _, name := range strategies.Names(machine.Proposer) {
		p, _ := strategies.Registry{}.Proposer(nil, &machine.Specialist{StrategyFnName: name}, nil)
		if _, err := p.Propose(t.Context(), end); !errors.Is(err, strategies.ErrNoTransitions) || err.Error() != "No transitions available from current state" {
			t.Errorf("%s in a state that leads nowhere: %v", name, err)
		}
	}
}

// TestRandom: the same ask draws the same, others draw evenly.
func TestRandom(t *testing.T) {
	const n = 30_000
	draw := func(q specialist.Question) string {
		answer, err := strategies.Random.Propose(t.Context(), q)
		if err != nil || answer.Reasoning != "Randomly selected transition: "+answer.TransitionName {
			t.Fatalf("%+v (%v)", answer, err)
		}
		return answer.TransitionName
	}
	count := map[string]int{}
	differs := map[string]int{}
	for i := range int32(n) {
		q := question(i)
		name := draw(q)
		count[name]++
		for what, change := range map[string]func(*specialist.Question){
			"nothing":   func(*specialist.Question) {},
			"the state": func(q *specialist.Question) { q.Meta, q.Notices, q.Past = []byte("1"), []string{"n"}, past{visits: 9} },
			"seed":      func(q *specialist.Question) { q.Seed = 9 },
			"session":   func(q *specialist.Question) { q.Key.Session[3]++ },
			"attempt":   func(q *specialist.Question) { q.Key.Attempt++ },
			"self":      func(q *specialist.Question) { q.Self = "you" },
		} {
			other := q
			if change(&other); draw(other) != name {
				differs[what]++
			}
		}
	}
	for _, name := range names {
		if sigma := math.Sqrt(n * 2.0 / 9); math.Abs(float64(count[name])-n/3.0) > 5*sigma {
			t.Errorf("%s was drawn %d times of %d", name, count[name], n)
		}
	}
	for what, times := range differs {
		if share := float64(times) / n; math.Abs(share-2.0/3) > 0.02 {
			t.Errorf("after changing %s, %.3f of the draws differ", what, share)
		}
	}
	if len(differs) != 4 {
		t.Errorf("draws differ after changing %v; they may depend on seed, session, attempt and self only", differs)
	}
	seeded := question(1)
	seeded.Seed = 42
	other := seeded
	other.Key.Session = specialist.SessionID{9, 9}
	if draw(seeded) != draw(other) {
		t.Error("two sessions with one seed draw differently")
	}
}

func TestBuiltinNames(t *testing.T) {
	builtin := func(name string) (specialist.Proposer, arbiter.Arbiter) {
		s := &machine.Specialist{StrategyFnName: name}
		p, err := strategies.Registry{}.Proposer(nil, s, nil)
		a, err2 := strategies.Registry{}.Arbiter(nil, s)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return p, a
	}
	if got := fmt.Sprint(strategies.Names(machine.Proposer), strategies.Names(machine.Arbiter)); got != "[firstAvailable lastAvailable random] [alignmentMargin firstProposal bayes]" {
		t.Errorf("the built-in strategies are %s", got)
	}
	for _, name := range strategies.Names(machine.Arbiter) {
		p, a := builtin(name)
		if a == nil {
			t.Errorf("%s is listed and does not exist", name)
		} else if _, ok := a.(arbiter.Stopper); !ok {
			t.Errorf("%s cannot stop early", name)
		}
		if p != nil {
			t.Errorf("the arbiter %s proposes", name)
		}
	}
	for _, name := range []string{"", "FirstAvailable", "Bayes"} {
		if p, a := builtin(name); p != nil || a != nil {
			t.Errorf("%q is %v and %v", name, p, a)
		}
	}
}

// answers is a proposer, an arbiter and a context that is no function.
type answers struct{ name string }

func (a answers) Propose(_ context.Context, q specialist.Question) (specialist.Answer, error) {
	return q.Choose(q.State.Transition(a.name), "as told"), nil
}
func (a answers) Decide(context.Context, *arbiter.Round) (arbiter.Decision, error) {
	return arbiter.None(a.name), nil
}
func (a answers) Gather(context.Context, specialist.Question) (string, error) { return a.name, nil }

// TestRegistry: values and functions of every kind, found by kind and name; the
// last of a name counts, and no registry changes.
func TestRegistry(t *testing.T) {
	var empty strategies.Registry
	proposer := specialist.ProposerFunc(func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		return answers{"b"}.Propose(ctx, q)
	})
	one := empty.WithProposer("x", proposer).WithProposer("y", strategies.LastAvailable)
	two := one.WithProposer("x", answers{"c"}).
		WithArbiter("x", arbiter.Func(answers{"an arbiter"}.Decide)).WithArbiter("y", answers{"another"}).
		WithContext("x", specialist.ContextFunc(answers{"a context"}.Gather)).WithContext("y", answers{"other"})
	for _, c := range []struct {
		r          strategies.Registry
		name, want string
	}{
		{empty, "x", "- - -"}, {one, "x", "b - -"}, {one, "y", "c - -"}, {one, "z", "- - -"}, {one, "X", "- - -"}, {one, "", "- - -"},
		{two, "x", "c an arbiter a context"}, {two, "y", "c another other"},
		{two.WithProposer("x", nil).WithArbiter("y", nil), "x", "- an arbiter a context"}, {empty.WithContext("x", nil), "x", "- - -"},
	} {
		got := []string{"-", "-", "-"}
		s := &machine.Specialist{StrategyFn: c.name, ContextFn: c.name}
		if p, _ := c.r.Proposer(nil, s, nil); p != nil {
			answer, _ := p.Propose(t.Context(), question(1))
			got[0] = answer.TransitionName
		}
		if a, _ := c.r.Arbiter(nil, s); a != nil {
			got[1] = decide(t, a, round(t, "")).Text
		}
		if x, _ := c.r.Context(nil, s); x != nil {
			got[2], _ = x.Gather(t.Context(), question(1))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q means %q, want %s", c.name, got, c.want)
		}
	}
}

// TestChecks: the rules of this package as a machine file meets them.
func TestChecks(t *testing.T) {
	file := func(who string) string {
		return `{"machineName":"m","initialState":"open","goalState":"done","states":{"open":{"transitions":{"go":"done","stay":"open"}},"done":{}},"specialists":[` + who + `]}`
	}
	for _, c := range []struct{ who, want string }{
		{`{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"}`, ""},
		{`{"role":"proposer","specialistId":"p","strategyFnName":"lastavailable"}`, "[unknown-strategy]: Unknown proposer strategy: lastavailable\n    hint: did you mean \"lastAvailable\"?"},
		{`{"role":"arbiter","specialistId":"p","strategyFnName":"firstAvailable"}`, "[unknown-strategy]: Unknown arbiter strategy: firstAvailable"},
		{`{"role":"proposer","specialistId":"p","strategyFn":"anyName"}`, ""}, // the registry is asked at the start
		{`{"role":"proposer","specialistId":"p","strategyFn":"= visits > 1 ? \"go\" : \"stay\""}`, ""},
		{`{"role":"proposer","specialistId":"p","strategyFn":"= visits > 1 ? \"go\" : \"stop\""}`, `[bad-expression]: the expression yields "stop", which is no transition of a state it serves (go, stay)`},
		{`{"role":"proposer","specialistId":"p","strategyFn":"= visits >"}`, "[bad-expression]: at character 9 of the expression: Syntax error"},
		{`{"role":"arbiter","specialistId":"p","strategyFn":"= aheadBy > 1 ? leader : none"}`, ""},
		{`{"role":"arbiter","specialistId":"p","strategyFn":"= visits > 1 ? leader : none"}`, "[bad-expression]: at character 1 of the expression: undeclared reference to 'visits'"},
	} {
		_, err := machine.Parse("m.json", []byte(file(c.who)), strategies.Checks())
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.who, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), "error"+c.want)):
			t.Errorf("%s: %v, want %s", c.who, err, c.want)
		}
	}
	if slices.Contains(strategies.Names(machine.Proposer), "alignmentMargin") {
		t.Error("an arbiter among the proposers")
	}
}
