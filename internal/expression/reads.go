package expression

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// A Read is a member of data or of metaJson that an expression looks at.
type Read struct{ Variable, Member string }

// Reads returns the members of data and metaJson that an expression names: as data.amount,
// has(data.amount) or data["amount"], each once, in the order in which they stand. What it
// works out when it runs is not among them; nor is anything of one that cannot be compiled.
func Reads(use Use, source string) []Read {
	_, checked, err := compile(use, source)
	if err != nil {
		return nil
	}
	var r reader
	r.walk(checked.NativeRep().Expr())
	return r.found
}

type reader struct {
	found  []Read
	hidden []string // names that mean something else where the reader is
}

func (r *reader) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		r.note(s.Operand(), s.FieldName())
		r.walk(s.Operand())
	case ast.CallKind:
		c := e.AsCall()
		if args := c.Args(); c.FunctionName() == operators.Index && args[1].Kind() == ast.LiteralKind {
			if name, ok := args[1].AsLiteral().(types.String); ok {
				r.note(args[0], string(name))
			}
		}
		if c.IsMemberFunction() {
			r.walk(c.Target())
		}
		r.all(c.Args())
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

// note keeps that a member of something is read, if that is data or metaJson.
func (r *reader) note(of ast.Expr, member string) {
	if of.Kind() != ast.IdentKind {
		return
	}
	name := of.AsIdent()
	if read := (Read{name, member}); (name == "data" || name == "metaJson") && !slices.Contains(r.hidden, name) && !slices.Contains(r.found, read) {
		r.found = append(r.found, read)
	}
}
