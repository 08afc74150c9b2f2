package strategies_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

func proposerOf(source string) (specialist.Proposer, error) {
	return strategies.Registry{}.Proposer(nil, &machine.Specialist{StrategyFn: asExpression(source)}, nil)
}

func arbiterOf(source string) (arbiter.Arbiter, error) {
	return strategies.Registry{}.Arbiter(nil, &machine.Specialist{StrategyFn: asExpression(source)})
}

// asExpression returns a source as a machine file has it: without the sign in front it would
// be the name of a Go function.
func asExpression(source string) string { return "=" + strings.TrimPrefix(source, "=") }

// ask evaluates a proposer's expression: the transition, or the error.
func ask(t testing.TB, source, meta string, p past) string {
	t.Helper()
	if err := strategies.CheckExpression(machine.Proposer, source, names); err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	e, err := proposerOf(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	q := question(1)
	q.Past = p
	if meta != "" {
		q.Meta = json.RawMessage(meta)
	}
	answer, err := e.Propose(t.Context(), q)
	if err != nil {
		return err.Error()
	}
	if want := "Expression: " + strings.TrimSpace(source[1:]); answer.Reasoning != want {
		t.Errorf("%s: the reasoning is %q", source, answer.Reasoning)
	}
	return answer.TransitionName
}

func TestProposerExpressions(t *testing.T) {
	amount := `= metaJson.amount < 100 ? "a" : "b"`
	for _, c := range []struct{ source, meta, want string }{
		{`="a"`, "", "a"}, {"=  \t\n\"b\"  ", "", "b"},
		{amount, `{"amount":99.5}`, "a"}, {amount, `{"amount":100}`, "b"}, {amount, `{"amount":1e300}`, "b"}, // numbers compare across types
		{amount, `{}`, `expression "metaJson.amount < 100 ? \"a\" : \"b\"": nothing is called amount: start the session with it, or test for it with has()`},
		{amount, ``, `expression "metaJson.amount < 100 ? \"a\" : \"b\"": nothing is called amount: start the session with it, or test for it with has()`}, // absent metaJson is {}
		{amount, `{"amount":"99"}`, `expression "metaJson.amount < 100 ? \"a\" : \"b\"": no such overload: values of kinds that do not go together (beside a text, write string() of a number)`},
		{`= has(metaJson.amount) ? "a" : "b"`, ``, "b"}, {`= has(metaJson.amount) ? "a" : "b"`, `{"amount":null}`, "a"},
		{`= metaJson.n + 1.0 == 3.0 ? "a" : "b"`, `{"n":2}`, "a"},
		{`= metaJson.list.exists(x, x == "é") ? "a" : "b"`, `{"list":["e","é"]}`, "a"},
		{`= metaJson.name`, `{"name":"c"}`, "c"}, {`= metaJson`, `"b"`, "b"},
		{`= state == "open" && visits == 2 && steps == 5 && last == "c" ? "a" : "b"`, "", "a"},
		{`= metaJson.name`, `{"name":5}`, `expression "metaJson.name" yields double, not the name of a transition`},
		{`= metaJson.name`, `{"name":["a"]}`, `expression "metaJson.name" yields list, not the name of a transition`},
		{`= metaJson.name`, `{"name":null}`, `expression "metaJson.name" yields no transition`},
		{`= metaJson.name`, `{"name":""}`, `expression "metaJson.name" yields no transition`},
		{`= dyn(7)`, ``, `expression "dyn(7)" yields int, not the name of a transition`},
		{`= 1 / (visits - 2) == 0 ? "a" : "b"`, "", `expression "1 / (visits - 2) == 0 ? \"a\" : \"b\"": division by zero`},
		{`= metaJson.a == 1 ? "a" : "b"`, `{"a":`, "metaJson: unexpected end of JSON input"},
	} {
		if got := ask(t, c.source, c.meta, past{steps: 5, visits: 2, last: desk.Initial().Transitions[2]}); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.source, c.meta, got, c.want)
		}
	}
	if got := ask(t, `= last == "" ? "a" : "b"`, "", past{}); got != "a" {
		t.Errorf("before the first step, last is not empty: %s", got)
	}
}

func TestArbiterExpressions(t *testing.T) {
	tie := []string{"a 0.2", "b 0.7"}
	most := []string{"a 0.1", "b 0.9", "a 0.2", "human a"}
	for _, c := range []struct {
		source, threshold string
		votes             []string
		want              string
	}{
		{`= leader`, "", tie, "-"}, {`= leader`, "", most, "s3"}, {`= leader`, "", nil, "-"}, // the heaviest of the leader's
		{`= heaviest`, "", tie, "s1"}, {`= heaviest`, "", []string{"a 0", "b 0"}, "-"}, {`= heaviest`, "", []string{"a 0.5", "b 0.5"}, "-"}, {`= heaviest`, "", nil, "-"},
		{`= aheadBy >= 2 ? leader : none`, "", most, "s3"}, {`= aheadBy >= 3 ? leader : none`, "", most, "-"}, {`= aheadBy >= 1 ? leader : none`, "", tie, "-"},
		{`= aheadBy == 1 ? leader : none`, "", []string{"c 0"}, "s0"}, // alone, it is ahead by its count
		{`= aheadBy == 0 && leader == null ? "a" : none`, "", tie, "s0"},
		{`= proposals == 4 && humans == 1 ? "b" : none`, "", most, "s1"},
		{`= margin >= threshold ? heaviest : none`, "0.5", []string{"a 0.8", "a 0.7", "b 0.5"}, "s0"},
		{`= margin >= threshold ? heaviest : none`, "0.6", []string{"a 0.8", "a 0.7", "b 0.5"}, "-"},
		{`= threshold == 1.0 ? "a" : none`, "", tie, "s0"}, {`= threshold == 0.0 ? "a" : none`, "0", tie, "s0"}, // undefined is 1, 0 is a value
		{`= "c"`, "", tie, "-"}, // nobody proposed it
		{`= none`, "", tie, "-"}, {`= null`, "", tie, "-"},
		{`= margin == 0.0 ? "a" : none`, "", nil, "-"},
	} {
		if err := strategies.CheckExpression(machine.Arbiter, c.source, names); err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		e, err := arbiterOf(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		r := round(t, c.threshold, c.votes...)
		got, want := result(r, decide(t, e, r)), c.want+" Expression: "+c.source[2:]
		if got != want {
			t.Errorf("%q: %s, want %s", c.votes, got, want)
		}
		if _, stops := e.(arbiter.Stopper); stops {
			t.Error("an expression claims to know when a round is decided")
		}
	}
}

// TestRefusedExpressions: what is wrong, and where, as characters of what follows
// the sign, on whichever line.
func TestRefusedExpressions(t *testing.T) {
	long := "= " + strings.Repeat("é", 1023)
	for _, c := range []struct {
		role         machine.Role
		source, want string
	}{
		{"proposer", ``, "the expression is empty"}, {"proposer", "=", "the expression is empty"}, {"proposer", "= \t\n", "the expression is empty"},
		{"proposer", long, "the expression has 1025 characters, more than 1024"},
		{"proposer", long[:len(long)-2], "at character 1 of the expression: Syntax error: token recognition error at: 'é"}, // just short enough
		{"proposer", "= foo", "at character 1 of the expression: undeclared reference to 'foo'"},
		{"proposer", `= "é" == foo ? "a" : "b"`, "at character 8 of the expression: undeclared reference to 'foo'"},
		{"proposer", "= state ==\n\"é\" +\n  foo ? \"a\" : \"b\"", "at character 18 of the expression: undeclared reference to 'foo'"},
		{"proposer", "= visits >", "at character 9 of the expression: Syntax error: mismatched input '<EOF>'"},
		{"proposer", "= " + strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500), "the expression: expression recursion limit exceeded: 250"},
		{"proposer", "= " + strings.Repeat("[", 1022), "the expression: expression recursion limit exceeded: 250"},
		{"proposer", "= visits + 1", "the expression yields int, not the name of a transition"},
		{"proposer", "= [state]", "the expression yields list(string), not the name of a transition"},
		{"proposer", `= visits > "1" ? "a" : "b"`, "at character 8 of the expression: found no matching overload for '_>_' applied to '(int, string)'"},
		{"proposer", `= visits > 1 ? "a" : 5`, "at character 12 of the expression: found no matching overload for '_?_:_'"},
		{"proposer", "= null", "the expression yields null_type, not the name of a transition"},
		{"proposer", "= none", "at character 1 of the expression: undeclared reference to 'none'"},
		{"proposer", "= leader", "at character 1 of the expression: undeclared reference to 'leader'"},
		{"arbiter", "= metaJson.x", "at character 1 of the expression: undeclared reference to 'metaJson'"},
		{"arbiter", "= aheadBy", "the expression yields int, not the name of a transition"},
		{"proposer", `= "d"`, `the expression yields "d", which is no transition of a state it serves (a, b, c)`},
		{"proposer", `= visits > 1 ? "a" : steps > 1 ? "x" : "y"`, `the expression yields "x", which is no transition of a state it serves (a, b, c)`},
		{"arbiter", `= aheadBy > 1 ? (humans > 0 ? leader : "d") : none`, `the expression yields "d", which is no transition of a state it serves (a, b, c)`},
		{"proposer", `= ""`, `the expression yields "", which is no transition of a state it serves (a, b, c)`},
		{"proposer", "= \x00", "at character 1 of the expression: Syntax error: token recognition error"},
		{"proposer", "= 99999999999999999999", "at character 1 of the expression: invalid int literal"},
	} {
		err := strategies.CheckExpression(c.role, c.source, names)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.60q of an %s: %v, want %s", c.source, c.role, err, c.want)
		}
	}
	for _, broken := range []string{"=", "= foo", "= 1"} {
		if _, err := proposerOf(broken); err == nil {
			t.Errorf("%q became a proposer", broken)
		}
		if _, err := arbiterOf(broken); err == nil {
			t.Errorf("%q became an arbiter", broken)
		}
	}
}

// TestExpressionsAreBounded: what would run for hours is stopped by its cost, and
// nothing within the length makes compiling slow.
func TestExpressionsAreBounded(t *testing.T) {
	list := "[" + strings.Repeat("1,", 60) + "1]"
	nested := fmt.Sprintf(`= %[1]s.all(a, %[1]s.all(b, %[1]s.all(c, %[1]s.all(d, a+b+c+d > 0)))) ? "a" : "b"`, list)
	big := `{"s":"` + strings.Repeat("x", 200_000) + `","l":[` + strings.Repeat("1,", 50_000) + `1]}`
	for name, c := range map[string]struct{ source, meta string }{
		"loops in loops":    {nested, ""},
		"loops over data":   {`= metaJson.l.all(a, metaJson.l.all(b, a == b)) ? "a" : "b"`, big},
		"lists of lists":    {`= metaJson.l.map(a, metaJson.l.map(b, metaJson.l)).size() > 0 ? "a" : "b"`, big},
		"growing texts":     {"= " + strings.Repeat("(metaJson.s+metaJson.s)+", 30) + `"" == "" ? "a" : "b"`, big},
		"a heavy pattern":   {`= metaJson.l.exists(a, metaJson.s.matches("(x+x+)+y")) ? "a" : "b"`, big},
		"filters of filter": {`= metaJson.l.filter(a, metaJson.l.filter(b, b > a).size() > 0).size() > 0 ? "a" : "b"`, big},
	} {
		start := time.Now()
		got := ask(t, c.source, c.meta, past{})
		if took := time.Since(start); took > 30*time.Second { // a second at most, but under -race on a busy machine
			t.Errorf("%s took %s", name, took)
		}
		if !strings.HasSuffix(got, "actual cost limit exceeded") {
			t.Errorf("%s came to %.200q", name, got)
		}
	}
	for _, source := range []string{"= " + strings.Repeat("!", 1000) + "true", "= " + strings.Repeat("true?\"a\":", 110) + `"b"`,
		"= " + strings.Repeat("-", 1000) + "1", "= " + strings.Repeat("1+", 500) + "1", "= state" + strings.Repeat(".x", 500), `= "` + strings.Repeat("x", 1000) + `"`, "= " + strings.Repeat("\"a\"+", 250) + `"a"`} {
		start := time.Now()
		_ = strategies.CheckExpression(machine.Proposer, source, names)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%.40s… took %s to check", source, took)
		}
	}
	// A loop looks at the context, so a cancelled ask ends.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e, err := proposerOf(`= metaJson.l.all(a, a == 1.0) ? "a" : "b"`)
	if err != nil {
		t.Fatal(err)
	}
	q := question(1)
	q.Meta = json.RawMessage(`{"l":[` + strings.Repeat("1,", 5000) + `1]}`)
	if answer, err := e.Propose(ctx, q); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("a cancelled ask came to %+v (%v)", answer, err)
	}
	if answer, err := e.Propose(t.Context(), q); answer.TransitionName != "a" || err != nil {
		t.Errorf("the same, not cancelled: %+v (%v)", answer, err)
	}
}

// TestSharedExpressions: one compiled expression serves many sessions at once,
// and each gets its own answer.
func TestSharedExpressions(t *testing.T) {
	p, err := proposerOf(`= metaJson.list.filter(x, x > 10.0).size() == visits ? "a" : last == "c" ? "b" : "c"`)
	if err != nil {
		t.Fatal(err)
	}
	a, err := arbiterOf(`= aheadBy >= 1 ? leader : heaviest`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			q := question(int32(i))
			q.Meta, q.Past = json.RawMessage(fmt.Sprintf(`{"list":[%d,%d,11]}`, i, i+5)), past{visits: 2, last: desk.Initial().Transitions[2]}
			want := "b"
			if i+5 > 10 && i <= 10 {
				want = "a"
			}
			r := round(t, "", "b 0.1", "c 0.5", names[i%2+1]+" 0.2")
			for range 200 {
				if answer, err := p.Propose(context.Background(), q); answer.TransitionName != want || err != nil {
					t.Errorf("session %d got %+v (%v), want %s", i, answer, err, want)
					return
				}
				if d, err := a.Decide(context.Background(), r); err != nil || r.Votes[d.Winner].Transition.Name != names[i%2+1] {
					t.Errorf("session %d elected %+v (%v)", i, d, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// FuzzExpression: no text crashes the checker, and what it accepts can be run:
// it yields a name or an error, within its bounds.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{`= "a"`, `= metaJson.amount < 100 ? "a" : "b"`, `= aheadBy >= 2 ? leader : none`, `= metaJson.l.all(x, x > 1)`, "=((((", "= \"\\ud800\"", "= timestamp(\"x\")",
		`= metaJson.s.matches("(a*)*") ? "a" : "b"`, `= {"a": 1}`, `= [1,2,3].map(x, x * 2).exists(x, x == 4) ? "a" : "b"`, "= 0x7fffffffffffffff + 1 > 0 ? \"a\" : \"b\"", `= has(metaJson.a.b) ? "a" : "b"`, "= b'\\xff' == b'' ? 'a' : 'b'", "=\xff\n\r\t", `metaJson.amount < 100 ? "a" : "b"`} {
		f.Add(s)
	}
	meta := json.RawMessage(`{"amount":5,"s":"aaaa","l":[1,2,3],"a":{"b":null}}`)
	votes := round(f, "0.5", "a 0.5", "b 0.7", "a 0.1")
	f.Fuzz(func(t *testing.T, source string) {
		for _, role := range []machine.Role{machine.Proposer, machine.Arbiter} {
			err := strategies.CheckExpression(role, source, names)
			if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "character 0")) {
				t.Fatalf("%q: %v", source, err)
			}
			if err != nil {
				continue
			}
			if utf8.RuneCountInString(source) > 1024 {
				t.Fatalf("%d characters were accepted", utf8.RuneCountInString(source))
			}
			if role == machine.Arbiter {
				e, err := arbiterOf(source)
				if err != nil {
					continue // constants that cannot be computed
				}
				if d, err := e.Decide(t.Context(), votes); err == nil && d.Check(votes) != nil {
					t.Fatalf("%q elects %+v", source, d)
				}
				continue
			}
			e, err := proposerOf(source)
			if err != nil {
				continue
			}
			q := question(1)
			q.Meta = meta
			if answer, err := e.Propose(t.Context(), q); (answer.TransitionName == "") == (err == nil) {
				t.Fatalf("%q proposes %+v (%v)", source, answer, err)
			} else if errors.Is(err, context.Canceled) {
				t.Fatalf("%q was cancelled by nobody", source)
			}
		}
	})
}

var _ specialist.Proposer = strategies.Random

// TestManyTransitions: what is wrong with a literal does not name a thousand others.
func TestManyTransitions(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	want := `the expression yields "x", which is no transition of a state it serves (t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11 and 988 more)`
	if err := strategies.CheckExpression(machine.Proposer, `= "x"`, names); err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
}
