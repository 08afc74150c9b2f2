// Package expression knows the language of expressions, CEL (https://cel.dev): what a
// machine file may write after "=" where a name, a value or a condition is expected.
package expression

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// When a machine is loaded, an expression is parsed and type-checked for its use: it sees
// only the variables of that, and must yield what is wanted. Names of transitions in result
// position, at the root and in the branches of ?:, must be those of a state that it serves;
// what is computed is held to that only when it runs.
//
// An expression comes from a file, so its work is bounded: by the length of its source, by
// a limit of cost for one evaluation, and by the context. It reads nothing but its
// variables and changes nothing, so the same values yield the same result.

const (
	maxCharacters = 1024    // of source
	costLimit     = 200_000 // of one evaluation, in CEL's units
	checkEvery    = 128     // loop turns between looks at the context
)

// An Expression is a compiled expression. It may be used concurrently.
type Expression struct {
	source  string // without the sign in front
	use     Use
	program cel.Program
	loops   bool // it may take long, so it is watched
}

// Check type-checks an expression. Where it yields the name of a transition, each name
// that is written in result position must be one of the transitions.
func Check(use Use, source string, transitions []string) error {
	_, checked, err := compile(use, source)
	if err != nil || use > Arbitrate {
		return err
	}
	return checkResults(checked.NativeRep().Expr(), transitions)
}

// New compiles an expression, with or without the sign in front.
func New(use Use, source string) (*Expression, error) {
	env, checked, err := compile(use, source)
	if err != nil {
		return nil, err
	}
	e := &Expression{source: trim(source), use: use, loops: mayTakeLong(checked.NativeRep().Expr())}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if e.loops {
		options = append(options, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(checkEvery))
	}
	e.program, err = env.Program(checked, options...)
	return e, err
}

func trim(source string) string { return strings.TrimSpace(strings.TrimPrefix(source, "=")) }

// String returns the expression as it was written, without the sign in front.
func (e *Expression) String() string { return e.source }

// compile parses and checks source.
func compile(use Use, source string) (*cel.Env, *cel.Ast, error) {
	text := trim(source)
	switch n := utf8.RuneCountInString(source); {
	case n > maxCharacters:
		return nil, nil, fmt.Errorf("the expression has %d characters, more than %d", n, maxCharacters)
	case text == "":
		return nil, nil, errors.New("the expression is empty")
	}
	env, err := environments[use]()
	if err != nil {
		return nil, nil, err
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, nil, fmt.Errorf("%s: %s", place(text, first.Location), plainly(first.Message, text, env))
	}
	if t := checked.OutputType(); !use.yields(t) {
		return nil, nil, fmt.Errorf("the expression yields %s, not %s", t, use.result())
	}
	return env, checked, checkNumbers(use, text, checked.NativeRep())
}

// plainly says what is wrong in words that fit a machine file; of a name that means
// nothing, also which do.
func plainly(message, text string, env *cel.Env) string {
	message = strings.TrimSuffix(message, " (in container '')")
	rest, undeclared := strings.CutPrefix(message, "undeclared reference to '")
	if !undeclared {
		return message
	}
	if name, _, _ := strings.Cut(rest, "'"); strings.Contains(text, name+"(") {
		return message + ": CEL's standard library has no such function"
	}
	var names []string
	for _, v := range env.Variables() {
		if v.Type().Kind() != types.TypeKind { // the names of types, which every expression has
			names = append(names, v.Name())
		}
	}
	return fmt.Sprintf("%s: there are %s", message, strings.Join(names, ", "))
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

// mayTakeLong reports whether evaluation may take longer than the source and what it
// reads are long: logic, comparisons, members, and a few sums are known not to.
func mayTakeLong(e ast.Expr) bool {
	sums := 0
	return !quick(e, &sums) || sums > maxSums
}

// maxSums is how many sums are not watched: each may put together texts that are as large
// as a session's data.
const maxSums = 4

func quick(e ast.Expr, sums *int) bool {
	switch e.Kind() {
	case ast.LiteralKind, ast.IdentKind:
		return true
	case ast.SelectKind:
		return quick(e.AsSelect().Operand(), sums)
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() == operators.Add {
			*sums++
		} else if c.IsMemberFunction() || !quickCalls[c.FunctionName()] {
			return false
		}
		for _, a := range c.Args() {
			if !quick(a, sums) {
				return false
			}
		}
		return true
	}
	return false
}

var quickCalls = map[string]bool{
	operators.Conditional: true, operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.Negate: true,
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	operators.Subtract: true, operators.Multiply: true, operators.Divide: true, operators.Modulo: true, operators.Index: true,
}

// Name returns the name of a transition that the expression yields, "" for none. The
// variables are a map by name, or a [*Case].
func (e *Expression) Name(ctx context.Context, variables any) (string, error) {
	v, err := e.eval(ctx, variables)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Null:
		return "", nil
	}
	return "", e.wrong(v)
}

// wrong is the error of a result that the use of e knows nothing to do with.
func (e *Expression) wrong(v ref.Val) error {
	return fmt.Errorf("expression %q yields %s, not %s", e.source, v.Type().TypeName(), e.use.result())
}

func (e *Expression) eval(ctx context.Context, variables any) (v ref.Val, err error) {
	if c, ok := variables.(*Case); ok {
		variables = (*activation)(c)
	}
	if e.loops {
		v, _, err = e.program.ContextEval(ctx, variables)
	} else {
		v, _, err = e.program.Eval(variables)
	}
	if err == nil {
		return v, nil
	}
	name, missing := strings.CutPrefix(err.Error(), "no such key: ")
	switch {
	case missing && e.use <= Arbitrate:
		return nil, fmt.Errorf("expression %q: nothing is called %s: start the session with it, or test for it with has()", e.source, name)
	case missing:
		return nil, fmt.Errorf("expression %q: nothing is called %s: let the session start with it or a transition set it, or test for it with has()", e.source, name)
	case strings.HasPrefix(err.Error(), "no such overload"):
		return nil, fmt.Errorf("expression %q: %w: values of kinds that do not go together (beside a text, write string() of a number)", e.source, err)
	}
	return nil, fmt.Errorf("expression %q: %w", e.source, err)
}
