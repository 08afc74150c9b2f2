package expression

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// A Read is a member of data or of metaJson that an expression looks at.
type Read struct {
	Variable string
	Path     []string // the member, and those of it that are looked at in turn
	Compared []any    // texts, numbers (float64), true and false that it is compared with
	Yielded  bool     // it is what the expression yields
}

// Reads returns the members of data and metaJson that an expression names: as data.amount,
// has(data.amount), data["amount"] or "amount" in data, in the order in which they stand.
// What it works out when it runs is not among them; nor is anything of one that cannot be
// compiled.
func Reads(use Use, source string) []Read {
	_, checked, err := compile(use, source)
	if err != nil {
		return nil
	}
	var r reader
	r.walk(checked.NativeRep().Expr())
	root := checked.NativeRep().Expr()
	if _, path := r.path(root); len(path) > 0 && (root.Kind() != ast.SelectKind || !root.AsSelect().IsTestOnly()) {
		r.found[0].Yielded = true
	}
	return r.found
}

type reader struct {
	found  []Read
	hidden []string // names that mean something else where the reader is
}

func (r *reader) walk(e ast.Expr) {
	if variable, path := r.path(e); len(path) > 0 {
		r.note(Read{Variable: variable, Path: path})
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		r.walk(e.AsSelect().Operand())
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			r.walk(c.Target())
		}
		r.all(c.Args())
		r.compared(c)
	case ast.ListKind:
		r.all(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.all([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()})
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		r.all([]ast.Expr{c.IterRange(), c.AccuInit()})
		r.hidden = append(r.hidden, c.IterVar(), c.IterVar2())
		r.all([]ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()})
		r.hidden = r.hidden[:len(r.hidden)-2]
	}
}

func (r *reader) all(list []ast.Expr) {
	for _, e := range list {
		r.walk(e)
	}
}

// path returns which member of data or metaJson an expression is; variable is empty if it
// is none, and path if it is all of them.
func (r *reader) path(e ast.Expr) (variable string, path []string) {
	var of ast.Expr
	var member string
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); (name == "data" || name == "metaJson") && !slices.Contains(r.hidden, name) {
			return name, nil
		}
		return "", nil
	case ast.SelectKind:
		of, member = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index {
			return "", nil
		}
		name, ok := literal(c.Args()[1]).(string)
		if !ok {
			return "", nil
		}
		of, member = c.Args()[0], name
	default:
		return "", nil
	}
	if variable, path = r.path(of); variable == "" {
		return "", nil
	}
	return variable, append(path, member)
}

// compared notes what a member is compared with, and members that are asked for with in.
func (r *reader) compared(c ast.CallExpr) {
	if len(c.Args()) != 2 {
		return
	}
	left, right := c.Args()[0], c.Args()[1]
	switch c.FunctionName() {
	case operators.Equals, operators.NotEquals:
		r.values(left, []ast.Expr{right})
		r.values(right, []ast.Expr{left})
	case operators.In:
		if right.Kind() == ast.ListKind {
			r.values(left, right.AsList().Elements())
		}
		name, ok := literal(left).(string)
		if variable, path := r.path(right); ok && variable != "" {
			r.note(Read{Variable: variable, Path: append(path, name)})
		}
	}
}

// values notes the literals that a member is compared with.
func (r *reader) values(e ast.Expr, with []ast.Expr) {
	variable, path := r.path(e)
	if len(path) == 0 {
		return
	}
	for _, w := range with {
		if v := literal(w); v != nil {
			read := r.note(Read{Variable: variable, Path: path})
			read.Compared = append(read.Compared, v)
		}
	}
}

// literal returns a text, number or truth value that is written in an expression; nil if
// that is something else.
func literal(e ast.Expr) any {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	switch v := asDouble(e.AsLiteral()).(type) {
	case types.String:
		return string(v)
	case types.Double:
		return float64(v)
	case types.Bool:
		return bool(v)
	}
	return nil
}

// note keeps that a member is read, once.
func (r *reader) note(read Read) *Read {
	i := slices.IndexFunc(r.found, func(f Read) bool { return f.Variable == read.Variable && slices.Equal(f.Path, read.Path) })
	if i < 0 {
		i, r.found = len(r.found), append(r.found, read)
	}
	return &r.found[i]
}
