package expression

import (
	"context"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// A Read is a member of data, metaJson or payload that an expression looks at.
type Read struct {
	Variable string
	Path     []string // the member, and those of it that are looked at in turn
	Compared []any    // texts, numbers (float64), true and false that it is compared with
	Yielded  bool     // it is what the expression yields
	Tested   bool     // the expression asks whether it is there
}

// Element stands in the path of a Read for whichever element of a list is looked at.
const Element = "[]"

// String returns what is read as an expression writes it, with [] for an element of a list.
func (r *Read) String() string {
	return strings.ReplaceAll(strings.Join(append([]string{r.Variable}, r.Path...), "."), "."+Element, Element)
}

// Reads returns the members of data, metaJson and payload that an expression names: as
// data.amount, has(data.amount), data["amount"] or "amount" in data, and as members of the
// elements of a list that it goes through, in the order in which they stand. What it works
// out when it runs is not among them; nor is anything of one that cannot be compiled.
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

// Constant returns whether a condition holds that reads no variable, so holds always or
// never; it never does if it fails. Of any other, and of one that cannot be compiled, constant
// is false.
func Constant(source string) (holds, constant bool) {
	env, checked, err := compile(When, source)
	if err != nil {
		return false, false
	}
	for _, v := range env.Variables() {
		for _, used := range checked.NativeRep().ReferenceMap() {
			if used.Name == v.Name() {
				return false, false
			}
		}
	}
	e, err := New(When, source)
	if err != nil {
		return false, false
	}
	holds, _ = e.Holds(context.Background(), &Case{})
	return holds, true
}

type reader struct {
	found []Read
	bound []binding // the names that comprehensions around the reader give to what they go through
}

// A binding is what a name means inside a comprehension; Variable is empty if that is no
// member.
type binding struct {
	name string
	Read
}

func (r *reader) walk(e ast.Expr) {
	if variable, path := r.path(e); len(path) > 0 {
		tested := e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly()
		read := r.note(Read{Variable: variable, Path: path})
		read.Tested = read.Tested || tested
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
		element := binding{name: c.IterVar()}
		if variable, path := r.path(unfiltered(c.IterRange())); variable != "" && c.IterVar2() == "" {
			element.Read = Read{Variable: variable, Path: append(path, Element)}
		}
		r.bound = append(r.bound, element, binding{name: c.IterVar2()})
		r.all([]ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()})
		r.bound = r.bound[:len(r.bound)-2]
	}
}

// unfiltered returns the list whose elements, or some of them, those of a list are.
func unfiltered(e ast.Expr) ast.Expr {
	if e.Kind() != ast.ComprehensionKind {
		return e
	}
	c := e.AsComprehension()
	if c.LoopStep().Kind() != ast.CallKind || c.LoopStep().AsCall().FunctionName() != operators.Conditional {
		return e
	}
	then := c.LoopStep().AsCall().Args()[1] // of filter: what was found so far + [element]
	if then.Kind() != ast.CallKind || then.AsCall().FunctionName() != operators.Add {
		return e
	}
	added := then.AsCall().Args()[1]
	if added.Kind() != ast.ListKind || added.AsList().Size() != 1 {
		return e
	}
	if element := added.AsList().Elements()[0]; element.Kind() != ast.IdentKind || element.AsIdent() != c.IterVar() {
		return e
	}
	return unfiltered(c.IterRange())
}

func (r *reader) all(list []ast.Expr) {
	for _, e := range list {
		r.walk(e)
	}
}

// path returns which member of a variable an expression is; variable is empty if it is none,
// and path if it is all of them.
func (r *reader) path(e ast.Expr) (variable string, path []string) {
	var of ast.Expr
	var member string
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		for _, b := range slices.Backward(r.bound) {
			if b.name == name {
				return b.Variable, slices.Clone(b.Path)
			}
		}
		if name == "data" || name == "metaJson" || name == "payload" {
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
		switch key := literal(c.Args()[1]).(type) {
		case string:
			of, member = c.Args()[0], key
		case float64:
			of, member = c.Args()[0], Element
		default:
			return "", nil
		}
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
			r.note(Read{Variable: variable, Path: append(path, name)}).Tested = true
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
