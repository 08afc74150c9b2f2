package strategies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// This is the only file that knows the expression language, CEL: expressions
// are type-checked when a machine is loaded and cost-limited when they run.

const (
	maxExpression = 1024    // characters of source
	costLimit     = 200_000 // of one evaluation, in CEL's units
	checkEvery    = 128     // loop turns between looks at the context
)

// The environments, one for each role, are built when the first expression is
// met: most machines have none.
var (
	proposerEnv = sync.OnceValues(func() (*cel.Env, error) {
		return cel.NewEnv(cel.CrossTypeNumericComparisons(true),
			cel.Variable("state", cel.StringType), cel.Variable("metaJson", cel.DynType),
			cel.Variable("visits", cel.IntType), cel.Variable("steps", cel.IntType),
			cel.Variable("last", cel.StringType))
	})
	arbiterEnv = sync.OnceValues(func() (*cel.Env, error) {
		name := cel.NullableType(cel.StringType)
		return cel.NewEnv(cel.CrossTypeNumericComparisons(true),
			cel.Variable("proposals", cel.IntType), cel.Variable("humans", cel.IntType),
			cel.Variable("leader", name), cel.Variable("aheadBy", cel.IntType),
			cel.Variable("heaviest", name), cel.Variable("margin", cel.DoubleType),
			cel.Variable("threshold", cel.DoubleType), cel.Constant("none", name, types.NullValue))
	})
)

// CheckExpression type-checks an inline expression, a strategyFn that begins
// with "=", for a role. Each literal in result position must be one of the
// transitions.
func CheckExpression(role machine.Role, source string, transitions []string) error {
	_, checked, err := compile(role, source)
	if err != nil {
		return err
	}
	return checkResults(checked.NativeRep().Expr(), transitions)
}

// compile parses and checks source.
func compile(role machine.Role, source string) (*cel.Env, *cel.Ast, error) {
	text := strings.TrimSpace(strings.TrimPrefix(source, "="))
	switch n := utf8.RuneCountInString(source); {
	case n > maxExpression:
		return nil, nil, fmt.Errorf("the expression has %d characters, more than %d", n, maxExpression)
	case text == "":
		return nil, nil, errors.New("the expression is empty")
	}
	makeEnv := proposerEnv
	if role == machine.Arbiter {
		makeEnv = arbiterEnv
	}
	env, err := makeEnv()
	if err != nil {
		return nil, nil, err
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, nil, fmt.Errorf("%s: %s", place(text, first.Location), first.Message)
	}
	switch t := checked.OutputType(); {
	case t.IsExactType(cel.StringType), t.IsExactType(cel.DynType), t.IsExactType(cel.NullType) && role == machine.Arbiter,
		t.IsExactType(cel.NullableType(cel.StringType)) && role == machine.Arbiter:
		return env, checked, nil
	default:
		return nil, nil, fmt.Errorf("the expression yields %s, not the name of a transition", t)
	}
}

// place says where in text, as characters from its beginning whatever line they
// are on.
func place(text string, at common.Location) string {
	if at.Line() < 1 || at.Column() < 0 {
		return "the expression"
	}
	before := 0
	for range at.Line() - 1 {
		line, rest, _ := strings.Cut(text, "\n")
		before += utf8.RuneCountInString(line) + 1
		text = rest
	}
	return fmt.Sprintf("at character %d of the expression", before+at.Column()+1)
}

// few names transitions, but no more than a reader wants to see.
func few(transitions []string) string {
	const most = 12
	if n := len(transitions) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(transitions[:most], ", "), n)
	}
	return strings.Join(transitions, ", ")
}

// checkResults checks the literals at the root and in the branches of ternaries.
func checkResults(e ast.Expr, transitions []string) error {
	switch e.Kind() {
	case ast.LiteralKind:
		if name, ok := e.AsLiteral().(types.String); ok && !slices.Contains(transitions, string(name)) {
			return fmt.Errorf("the expression yields %q, which is no transition of a state it serves (%s)", string(name), few(transitions))
		}
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Conditional {
			return cmp.Or(checkResults(c.Args()[1], transitions), checkResults(c.Args()[2], transitions))
		}
	}
	return nil
}

// An expression is a compiled inline expression. It may be used concurrently.
type expression struct {
	source  string // as written, for the reasoning
	program cel.Program
}

func newExpression(role machine.Role, source string) (expression, error) {
	env, checked, err := compile(role, source)
	if err != nil {
		return expression{}, err
	}
	program, err := env.Program(checked, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(checkEvery), cel.EvalOptions(cel.OptOptimize))
	return expression{strings.TrimSpace(strings.TrimPrefix(source, "=")), program}, err
}

func (e expression) reasoning() string { return "Expression: " + e.source }

// eval returns the name that the expression yields, "" for none.
func (e expression) eval(ctx context.Context, variables map[string]any) (string, error) {
	v, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		if name, missing := strings.CutPrefix(err.Error(), "no such key: "); missing {
			return "", fmt.Errorf("expression %q: nothing is called %s: start the session with it, or test for it with has()", e.source, name)
		}
		return "", fmt.Errorf("expression %q: %w", e.source, err)
	}
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Null:
		return "", nil
	}
	return "", fmt.Errorf("expression %q yields %s, not the name of a transition", e.source, typeName(v))
}

func typeName(v ref.Val) string { return v.Type().TypeName() }

// proposerExpression proposes what an expression yields.
type proposerExpression struct{ expression }

// newProposerExpression compiles an inline expression of a proposer.
func newProposerExpression(source string) (specialist.Proposer, error) {
	e, err := newExpression(machine.Proposer, source)
	return proposerExpression{e}, err
}

// Propose implements [specialist.Proposer].
func (e proposerExpression) Propose(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	meta := any(map[string]any{})
	if q.Meta != nil {
		if err := json.Unmarshal(q.Meta, &meta); err != nil {
			return specialist.Answer{}, fmt.Errorf("metaJson: %w", err)
		}
	}
	last := ""
	if t := q.Past.Last(); t != nil {
		last = t.Name
	}
	name, err := e.eval(ctx, map[string]any{
		"state": q.State.Name, "metaJson": meta, "last": last,
		"visits": q.Past.Visits(q.State), "steps": q.Past.Steps(),
	})
	if err == nil && name == "" {
		err = fmt.Errorf("expression %q yields no transition", e.source)
	}
	return specialist.Answer{TransitionName: name, Reasoning: e.reasoning()}, err
}

// arbiterExpression elects what an expression yields.
type arbiterExpression struct{ expression }

// newArbiterExpression compiles an inline expression of an arbiter.
func newArbiterExpression(source string) (arbiter.Arbiter, error) {
	e, err := newExpression(machine.Arbiter, source)
	return arbiterExpression{e}, err
}

// Decide implements [arbiter.Arbiter]. The winner is the heaviest proposal of
// the transition that the expression yields; one that nobody proposed is no
// consensus.
func (e arbiterExpression) Decide(ctx context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	scores := r.Tally(nil)
	name, err := e.eval(ctx, roundVariables(r, scores))
	if err != nil {
		return arbiter.Decision{}, err
	}
	for _, s := range scores {
		if s.Transition.Name == name {
			return arbiter.Elect(s.Best, e.reasoning()), nil
		}
	}
	return arbiter.None(e.reasoning()), nil
}

func roundVariables(r *arbiter.Round, scores []arbiter.Score) map[string]any {
	threshold := unanimity
	if r.Threshold != nil {
		threshold = *r.Threshold
	}
	humans := 0
	for _, v := range r.Votes {
		if v.IsHuman {
			humans++
		}
	}
	leader, aheadBy := ahead(scores, func(s arbiter.Score) exact.Billionths { return exact.Billionths(s.Count) })
	heaviest, lead := ahead(scores, bySum)
	return map[string]any{
		"proposals": len(r.Votes), "humans": humans,
		"leader": leader, "aheadBy": int64(aheadBy),
		"heaviest": heaviest, "margin": exact.Share(lead, totalOf(r.Votes)).Float(), "threshold": threshold.Given,
	}
}

// ahead returns the transition that leads alone, or null, and by how much.
func ahead(scores []arbiter.Score, by func(arbiter.Score) exact.Billionths) (name any, lead exact.Billionths) {
	first, second := arbiter.Leaders(scores, by)
	if first < 0 {
		return types.NullValue, 0
	}
	lead = by(scores[first])
	if second >= 0 {
		lead -= by(scores[second])
	}
	if lead == 0 {
		return types.NullValue, 0
	}
	return scores[first].Transition.Name, lead
}
