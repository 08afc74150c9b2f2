package expression

import (
	"fmt"
	"math"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/stdlib"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/dialai/dialai/internal/jsontext"
)

// Numbers of JSON are doubles, literals without a point, visits and sizes are whole. CEL
// compares one with the other, but does not calculate with both, and writes large doubles
// with an exponent. Here a whole number beside a double counts as one, a remainder may be
// that of doubles, and numbers become text as in JSON.

// arithmetic are the operators that calculate with numbers.
var arithmetic = map[string]bool{operators.Add: true, operators.Subtract: true, operators.Multiply: true, operators.Divide: true, operators.Modulo: true}

// library is the standard library with numbers as they are here.
func library() []cel.EnvOption {
	own := []*env.Function{}
	options := []cel.EnvOption{nil, cel.Function(overloads.TypeConvertString,
		cel.Overload(overloads.DoubleToString, []*cel.Type{cel.DoubleType}, cel.StringType, cel.UnaryBinding(doubleText)))}
	for _, f := range stdlib.Functions() {
		if arithmetic[f.Name()] {
			own = append(own, env.NewFunction(f.Name()))
			options = append(options, cel.Function(f.Name(), mixed(f)...))
		}
	}
	options[0] = cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeFunctions: own}))
	return options
}

// doubleText is string() of a double.
func doubleText(v ref.Val) ref.Val {
	if d := float64(v.(types.Double)); !math.IsNaN(d) && !math.IsInf(d, 0) {
		return types.String(jsontext.FormatFloat(d))
	}
	return v.ConvertToType(types.StringType)
}

// mixed is an operator of the standard library that takes a double and a whole number too.
func mixed(f *decls.FunctionDecl) (options []cel.FunctionOpt) {
	add := func(left, right *cel.Type) {
		options = append(options, cel.Overload(f.Name()+left.String()+"_"+right.String(), []*cel.Type{left, right}, cel.DoubleType))
	}
	for _, o := range f.OverloadDecls() {
		options = append(options, cel.Overload(o.ID(), o.ArgTypes(), o.ResultType()))
	}
	for _, whole := range []*cel.Type{cel.IntType, cel.UintType} {
		add(whole, cel.DoubleType)
		add(cel.DoubleType, whole)
	}
	if f.Name() == operators.Modulo {
		add(cel.DoubleType, cel.DoubleType)
	}
	bindings, err := f.Bindings()
	if err != nil || len(bindings) != 1 {
		panic("expression: " + f.Name() + " of the standard library is not one function")
	}
	standard := bindings[0]
	return append(options, cel.SingletonBinaryBinding(func(left, right ref.Val) ref.Val {
		l, r := alike(left, right)
		if d, ok := l.(types.Double); ok && f.Name() == operators.Modulo {
			return remainder(d, r)
		}
		if !l.Type().HasTrait(standard.OperandTrait) {
			return types.MaybeNoSuchOverloadErr(left)
		}
		return standard.Binary(l, r)
	}))
}

// alike returns two values, both as doubles if one is a double and the other a whole number.
func alike(left, right ref.Val) (l, r ref.Val) {
	if _, ok := left.(types.Double); ok {
		return left, asDouble(right)
	} else if _, ok := right.(types.Double); ok {
		return asDouble(left), right
	}
	return left, right
}

// asDouble returns a whole number as a double, and anything else as it is.
func asDouble(v ref.Val) ref.Val {
	switch n := v.(type) {
	case types.Int:
		return types.Double(n)
	case types.Uint:
		return types.Double(n)
	}
	return v
}

func remainder(l types.Double, right ref.Val) ref.Val {
	r, ok := right.(types.Double)
	switch {
	case !ok:
		return types.MaybeNoSuchOverloadErr(right)
	case r == 0:
		return types.NewErr("modulus by zero")
	}
	return types.Double(math.Mod(float64(l), float64(r)))
}

// checkNumbers refuses what the type checker would refuse if it could tell that a sum of
// anything and a number is a number: it does not know of which kind, so it takes it for
// anything.
func checkNumbers(use Use, text string, checked *ast.AST) (err error) {
	if isNumber(checked, checked.Expr()) && !use.yields(cel.DoubleType) {
		return fmt.Errorf("the expression yields a number, not %s", use.result())
	}
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if err != nil || e.Kind() != ast.CallKind || !alikeOnly[e.AsCall().FunctionName()] {
			return
		}
		name, args := e.AsCall().FunctionName(), e.AsCall().Args()
		for i, number := range args {
			if other := checked.GetType(args[1-i].ID()); isNumber(checked, number) && !isNumber(checked, args[1-i]) && other.Kind() != types.DynKind {
				err = fmt.Errorf("%s: %s takes no number beside %s", place(text, checked.SourceInfo().GetStartLocation(e.ID())), name, other)
			}
		}
	}))
	return err
}

// alikeOnly are the operators that take a number beside a number only.
var alikeOnly = map[string]bool{
	operators.Add: true, operators.Equals: true, operators.NotEquals: true,
	operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
}

// isNumber reports whether an expression can only be a number.
func isNumber(checked *ast.AST, e ast.Expr) bool {
	switch checked.GetType(e.ID()).Kind() {
	case types.IntKind, types.UintKind, types.DoubleKind:
		return true
	case types.DynKind:
		return e.Kind() == ast.CallKind && arithmetic[e.AsCall().FunctionName()] &&
			slices.ContainsFunc(e.AsCall().Args(), func(a ast.Expr) bool { return isNumber(checked, a) })
	}
	return false
}
