package expression

import (
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// A Use is what an expression is for. It says which variables the expression sees, and
// what it must yield.
type Use uint8

// The uses of expressions.
const (
	Propose   Use = iota // the name of the transition that is proposed
	Arbitrate            // the name of the transition that wins, or none
	Set                  // what a transition writes into a session's data: any JSON value
	When                 // whether a transition may be chosen
	Subject              // in a few words, what a session is about
	Due                  // by when a state is to be left
)

// result says what an expression must yield.
func (u Use) result() string {
	return [...]string{"the name of a transition", "the name of a transition", "JSON", "true or false", "a text", "a text"}[u]
}

// yields reports whether t may turn out to be what an expression must yield.
func (u Use) yields(t *cel.Type) bool {
	if t.IsExactType(cel.DynType) {
		return true
	}
	switch u {
	case Propose, Subject, Due:
		return t.IsExactType(cel.StringType)
	case Arbitrate:
		return t.IsExactType(cel.StringType) || t.IsExactType(cel.NullType) || t.IsExactType(cel.NullableType(cel.StringType))
	case When:
		return t.IsExactType(cel.BoolType)
	}
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind, types.NullTypeKind, types.ListKind:
		return true
	case types.MapKind:
		return t.Parameters()[0].IsExactType(cel.StringType) || t.Parameters()[0].IsExactType(cel.DynType)
	}
	return false
}

// The variables by name; activation.ResolveName has those of cases.
var (
	ofCase = []cel.EnvOption{variable("data", cel.DynType), variable("metaJson", cel.DynType)}
	ofPath = []cel.EnvOption{variable("visits", cel.IntType), variable("steps", cel.IntType)}
	ofWhen = []cel.EnvOption{variable("last", cel.StringType)}
	ofStep = []cel.EnvOption{variable("payload", cel.DynType), variable("by", cel.StringType), variable("human", cel.BoolType),
		variable("state", cel.StringType), variable("to", cel.StringType)}
	ofTime = []cel.EnvOption{variable("now", cel.StringType)}
)

func variable(name string, t *cel.Type) cel.EnvOption { return cel.Variable(name, t) }

// None is the value of a variable of arbiters that names no transition.
const None = types.Null(0)

// The environments, one for each use, are built when the first expression is met: most
// machines have none.
var environments = [...]func() (*cel.Env, error){
	Propose: environment([]cel.EnvOption{variable("state", cel.StringType)}, ofCase, ofPath, ofWhen),
	Arbitrate: environment([]cel.EnvOption{
		variable("proposals", cel.IntType), variable("humans", cel.IntType),
		variable("leader", nullable), variable("aheadBy", cel.IntType),
		variable("heaviest", nullable), variable("margin", cel.DoubleType),
		variable("threshold", cel.DoubleType), cel.Constant("none", nullable, types.NullValue),
	}),
	Set:     environment(ofCase, ofStep, ofPath, ofTime),
	When:    environment(ofCase, ofPath, ofWhen),
	Subject: environment(ofCase),
	Due:     environment(ofCase, ofPath, ofWhen, ofTime),
}

var nullable = cel.NullableType(cel.StringType)

func environment(variables ...[]cel.EnvOption) func() (*cel.Env, error) {
	return sync.OnceValues(func() (*cel.Env, error) {
		options := append(library(), cel.CrossTypeNumericComparisons(true))
		for _, list := range variables {
			options = append(options, list...)
		}
		return cel.NewCustomEnv(options...)
	})
}
