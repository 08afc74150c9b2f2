package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/lint"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// two is a machine with a state of its own people and one without.
func two(here string, who ...string) def {
	return def{who: who, states: `"open":{"transitions":{"go":"plain","stay":"open"},"specialists":[` + here + `]},
		"plain":{"transitions":{"go":"done","stay":"open"}},"done":{}`}
}

func ref(role, id string, rest ...string) string { return entry(role, id, "", rest...) }

// TestWhoTakesPart asks a round in a state with a list of its own and then one
// in a state without: who is asked, who decides.
func TestWhoTakesPart(t *testing.T) {
	off := `"disabled":true`
	judge, other := arbFn("judge"), entry("arbiter", "arb2", `"strategyFn":"other"`)
	for _, c := range []struct {
		name   string
		d      def
		want   string // asked in open
		want2  string // asked in plain
		noArb  bool
		noneIn string
	}{
		{"a list of its own", two(fn("a")+","+fn("b"), fn("m"), judge), "a b judge", "m judge", false, ""},
		{"an empty list", two("", fn("m"), judge), "", "", false, "open"},
		{"disabled there only", two(ref("proposer", "m", off)+","+ref("proposer", "n"), fn("m"), fn("n"), judge), "n judge", "m n judge", false, ""},
		{"switched on there", two(ref("proposer", "m", `"enabled":true`), fn("m"), fn("n"), judge), "m judge", "m n judge", false, ""},
		{"disabled everywhere", two(ref("proposer", "m")+","+ref("proposer", "n"), fn("m", off), fn("n"), judge), "n judge", "n judge", false, ""},
		{"in the order of the list", two(ref("proposer", "n")+","+fn("x")+","+ref("proposer", "m"), fn("m"), fn("n"), judge), "n x m judge", "m n judge", false, ""},
		{"a state's arbiter", two(fn("a")+","+other, fn("m"), judge), "a other", "m judge", false, ""},
		{"a state's arbiter, disabled", two(fn("a")+","+entry("arbiter", "arb2", `"strategyFn":"other"`, off), fn("m"), judge), "a judge", "m judge", false, ""},
		{"a reference to an arbiter", two(fn("a")+","+ref("arbiter", "arb2"), fn("m"), judge, other), "a other", "m judge", false, ""},
		{"an arbiter disabled there only", two(fn("a")+","+ref("arbiter", "arb", off), fn("m"), judge, other), "a other", "m judge", false, ""},
		{"the first arbiter disabled", two(fn("a"), fn("m"), arbFn("judge", off), other), "a other", "m other", false, ""},
		{"the only arbiter disabled there", two(fn("a")+","+ref("arbiter", "arb", off), fn("m"), judge), "", "m judge", true, ""},
		{"an arbiter of the state alone", two(fn("a")+","+other, fn("m")), "a other", "", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			for _, id := range []string{"a", "b", "m", "n", "x"} {
				b.cast.say(id, "go")
			}
			b.cast.judge("judge", electFirst)
			b.cast.judge("other", electFirst)
			s := b.start(b.machine(c.d))
			tick, err := b.r.Step(b.ctx, s.ID)
			if c.noArb {
				b.refused(err, session.ErrNotFound, "No arbiter registered for machine: desk")
				b.cast.who()
			} else if b.ok(err); strings.Join(b.cast.who(), " ") != c.want && c.want != "" {
				t.Errorf("in its own state, asked were not %s", c.want)
			}
			if c.noneIn != "" {
				if tick.Status != runner.TickHuman || tick.Reasoning() != "No proposals" {
					t.Errorf("with nobody to ask, the step came to %s: %s", tick.Status, tick.Reasoning())
				}
				return
			}
			if c.noArb {
				return
			}
			tick, err = b.r.Step(b.ctx, s.ID)
			if c.want2 == "" {
				b.refused(err, session.ErrNotFound, "No arbiter registered for machine: desk")
				return
			}
			b.ok(err)
			if got := strings.Join(b.cast.who(), " "); got != c.want2 {
				t.Errorf("in the other state, asked were %q, want %q", got, c.want2)
			}
		})
	}
}

// TestDisabledArbiter disables arbiters as a person would, one after the other.
func TestDisabledArbiter(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	b.cast.judge("judge", electFirst)
	b.cast.judge("other", electFirst)
	s := b.start(b.desk(fn("a"), arbFn("judge"), entry("arbiter", "arb2", `"strategyFn":"other"`)))
	for _, c := range []struct{ off, want string }{{"", "a judge"}, {"arb", "a other"}, {"arb2", ""}} {
		if c.off != "" {
			b.ok(b.r.Disable(b.ctx, "desk", machine.SpecialistID(c.off)))
		}
		_, err := b.r.Step(b.ctx, s.ID)
		if c.want == "" {
			b.refused(err, session.ErrNotFound, "No arbiter registered for machine: desk")
		} else if b.ok(err); strings.Join(b.cast.who(), " ") != c.want {
			t.Errorf("with %q disabled, asked were not %s", c.off, c.want)
		}
	}
}

// TestHumansOfTheMachine proves that they take part everywhere, those of a state
// nowhere else, and that neither is ever asked.
func TestHumansOfTheMachine(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "go")
	b.cast.say("m", "go")
	s := b.start(b.machine(two(fn("a")+","+human("guest"), fn("m"), human("owner"), arbFn("judge"))))
	b.cast.judge("judge", electNone)
	for _, who := range []string{"owner", "guest"} {
		if p := b.propose(s, who, "stay"); !p.IsHuman {
			t.Errorf("%s is not human", who)
		}
	}
	_, _, err := b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "m", TransitionName: "go"})
	b.refused(err, runner.ErrForbidden, `Specialist m does not take part in state "open"`)
	b.stepTo(s, runner.TickHuman)
	if got := fmt.Sprint(b.cast.who()); got != "[a judge]" {
		t.Errorf("asked were %s", got)
	}
	ids, declared, err := b.r.Humans(b.ctx, b.now(s))
	b.ok(err)
	if !declared || !slices.Equal(ids, []string{"guest", "owner"}) {
		t.Errorf("humans are %v (%t)", ids, declared)
	}
	b.rule(runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "owner", TransitionName: "go"})
	_, _, err = b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "guest", TransitionName: "go"})
	b.refused(err, runner.ErrForbidden, `Specialist guest does not take part in state "plain"`)
	_, _, err = b.r.Propose(b.ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "a", TransitionName: "go"})
	b.refused(err, runner.ErrForbidden, `Specialist a does not take part in state "plain"`)
	if ids, _, err = b.r.Humans(b.ctx, b.now(s)); err != nil || !slices.Equal(ids, []string{"owner"}) {
		t.Errorf("humans are %v (%v)", ids, err)
	}
	b.propose(s, "owner", "go")
}

// TestNoLeaks runs machines beside each other whose specialists have the same
// ids: trust, people and rounds stay where they belong.
func TestNoLeaks(t *testing.T) {
	b := newBench(t)
	b.cast.say("a", "again")
	one := b.machine(def{name: "one", who: []string{fn("a"), human("human"), half}})
	other := b.machine(def{name: "other", who: []string{fn("a"), human("human"), half}})
	b.train(one, "a", 5, 5)
	for name, want := range map[string]int{"one": 1, "other": 0} {
		book, err := b.store.Book(b.ctx, name)
		b.ok(err)
		exemplars, err := b.store.Exemplars(b.ctx, name, "open", 0)
		b.ok(err)
		if len(book.Records(name)) != want || len(exemplars) != 5*want {
			t.Errorf("machine %s has %d records and %d exemplars", name, len(book.Records(name)), len(exemplars))
		}
	}
	s, untouched := b.start(other), b.start(other)
	b.stepTo(s, runner.TickAdvanced)
	if now := b.now(untouched); now.Sequence != untouched.Sequence || now.Round != 1 {
		t.Error("stepping one session moved another")
	}
}

// TestReferencesToRegistered resolves a state's reference to a specialist that
// is registered only.
func TestReferencesToRegistered(t *testing.T) {
	b := newBench(t)
	b.cast.say("late", "go")
	m := b.machine(two(ref("proposer", "late"), fn("m"), half))
	_, err := b.r.Start(b.ctx, m, runner.StartOptions{})
	b.refused(err, nil, `machine.json:1:140: state "open" names specialist "late", which is neither declared nor registered for machine "desk" (declare it in the specialists of the machine, or register it)`)
	if found, err := lint.WithStore(b.ctx, b.r, m); err != nil || !slices.ContainsFunc(found, func(p machine.Problem) bool { return p.Code == planning.Dangling }) {
		t.Errorf("lint finds %v (%v)", found, err)
	}
	b.register(proposer("late"))
	if found, err := lint.WithStore(b.ctx, b.r, m); err != nil || slices.ContainsFunc(found, func(p machine.Problem) bool { return p.Code == planning.Dangling }) {
		t.Errorf("lint of somebody registered finds %v (%v)", found, err)
	}
	b.stepTo(b.start(m), runner.TickAdvanced)
	if got := fmt.Sprint(b.cast.who()); got != "[late]" {
		t.Errorf("asked were %s", got)
	}
}

// TestDanglingReference: who names a specialist whom nobody knows is told where, and
// who may be meant, by lint and at the start, in the file that was given then.
func TestDanglingReference(t *testing.T) {
	b := newBench(t)
	text := `{"machineName":"m","initialState":"a","goalState":"g","specialists":[{"role":"proposer","specialistId":"bob","strategyFnName":"firstAvailable"}],
		"states":{"a":{"specialists":[{"role":"proposer","specialistId":"bos"}],"transitions":{"go":"g"}},"g":{}}}`
	for line, file := range []string{2: "one.json", 4: "two.json"} {
		if file == "" {
			continue
		}
		m, err := machine.Parse(file, []byte(strings.Repeat("\n", line-2)+text), runner.Checks())
		b.ok(err)
		_, err = b.r.Start(b.ctx, m, runner.StartOptions{})
		b.refused(err, nil, fmt.Sprintf(`%s:%d:33: state "a" names specialist "bos", which is neither declared nor registered for machine "m" (did you mean "bob"?)`, file, line))
		found := slices.DeleteFunc(m.Lint(machine.LintOptions{Decisions: lint.Machine(m)}), func(p machine.Problem) bool { return p.Code != planning.Dangling })
		if len(found) != 1 || found[0].Line != line || found[0].Hint != `did you mean "bob"?` || found[0].Info {
			t.Errorf("lint of %s finds %v", file, found)
		}
	}
}

// TestDeclaredInEveryWay declares specialists of every mode in both lists: none
// is dropped.
func TestDeclaredInEveryWay(t *testing.T) {
	b := newBench(t)
	every := func(prefix string) []string {
		return []string{fn(prefix + "fn"), first(prefix + "name"), web(prefix + "web"), entry("proposer", prefix+"expr", `"strategyFn":"= \"go\""`), human(prefix + "human")}
	}
	for _, id := range []string{"s-fn", "s-web", "m-fn", "m-web"} {
		b.cast.say(id, "go")
	}
	b.cast.judge("judge", electFirst)
	m := b.machine(two(strings.Join(every("s-"), ","), append(every("m-"), arbFn("judge"))...))
	s := b.start(m)
	for _, prefix := range []string{"s-", "m-"} {
		b.stepTo(s, runner.TickAdvanced)
		decisions, err := b.r.Decisions(b.ctx, "desk", "", 1)
		b.ok(err)
		slices.Sort(decisions[0].Asked)
		if want := fmt.Sprintf("[%sexpr %sfn %sname %sweb]", prefix, prefix, prefix, prefix); fmt.Sprint(decisions[0].Asked) != want {
			t.Errorf("asked were %v, want %s", decisions[0].Asked, want)
		}
		if len(decisions[0].Proposals) != 4 {
			t.Errorf("%d proposals were decided", len(decisions[0].Proposals))
		}
	}
	if m.Definition().Specialists[0].Role != machine.Proposer {
		t.Error("the definition changed")
	}
}
