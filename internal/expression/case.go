package expression

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/dialai/dialai/internal/jsontext"
)

// A Case is what the expressions of a machine see of a session: the values of their
// variables. It is for one goroutine; a Case may be used for several expressions, as long
// as nothing in it changes.
type Case struct {
	Data     jsontext.Object // if it has no members, those of MetaJSON are the data
	MetaJSON json.RawMessage // compact, nil for {}
	Visits   int             // of the state
	Steps    int
	Last     string // transition
	// Of a step that is executed:
	Payload   json.RawMessage // compact, nil for {}
	By        string
	Human     bool
	State, To string
	Now       time.Time

	data, meta, payload ref.Val // made when somebody asks
	own                 object  // what data is
}

// An activation is a Case as CEL asks for its variables.
type activation Case

// ResolveName implements [interpreter.Activation].
func (c *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "data":
		if c.data == nil {
			if c.own.of = c.Data; len(c.Data.Members()) == 0 {
				c.own.of = jsontext.ReadObject(c.MetaJSON)
			}
			c.data = &c.own
		}
		return c.data, true
	case "metaJson":
		return jsonOnce(&c.meta, c.MetaJSON), true
	case "payload":
		return jsonOnce(&c.payload, c.Payload), true
	case "visits":
		return types.Int(c.Visits), true
	case "steps":
		return types.Int(c.Steps), true
	case "last":
		return types.String(c.Last), true
	case "by":
		return types.String(c.By), true
	case "human":
		return types.Bool(c.Human), true
	case "state":
		return types.String(c.State), true
	case "to":
		return types.String(c.To), true
	case "now":
		return types.String(c.Now.UTC().Format(jsontext.TimeLayout)), true
	}
	return nil, false
}

// Parent implements [interpreter.Activation].
func (c *activation) Parent() interpreter.Activation { return nil }

func jsonOnce(v *ref.Val, raw json.RawMessage) ref.Val {
	if *v == nil {
		if raw == nil {
			raw = json.RawMessage("{}")
		}
		*v = fromJSON(raw)
	}
	return *v
}

// Holds returns what a condition comes to.
func (e *Expression) Holds(ctx context.Context, c *Case) (bool, error) {
	v, err := e.eval(ctx, c)
	if err != nil {
		return false, err
	}
	if holds, ok := v.(types.Bool); ok {
		return bool(holds), nil
	}
	return false, e.wrong(v)
}

// Text returns the text that an expression yields.
func (e *Expression) Text(ctx context.Context, c *Case) (string, error) {
	v, err := e.eval(ctx, c)
	if err != nil {
		return "", err
	}
	if text, ok := v.(types.String); ok {
		return string(text), nil
	}
	return "", e.wrong(v)
}

// JSON returns what an expression yields, as compact JSON. What JSON has no word for is an
// error: bytes, times, infinities, whole numbers beyond 2^53.
func (e *Expression) JSON(ctx context.Context, c *Case) (json.RawMessage, error) {
	v, err := e.eval(ctx, c)
	if err != nil {
		return nil, err
	}
	text, err := appendJSON(nil, v, 1)
	if err != nil {
		return nil, fmt.Errorf("expression %q yields %w", e.source, err)
	}
	return text, nil
}
