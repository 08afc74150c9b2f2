package expression

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/dialai/dialai/internal/jsontext"
)

// JSON becomes a value of the language, and what an expression yields becomes JSON.
// Numbers are floating-point, whole ones too. An object is taken apart only as far as an
// expression looks into it, and only once: a member that nobody reads costs nothing, and a
// loop that reads one does not read the text again.

// An object is a JSON object as a value of the language.
type object struct {
	of    jsontext.Object
	whole traits.Mapper // all of it; nil until somebody needs that
	read  []readMember  // what is no scalar and somebody has read
}

type readMember struct {
	name  string
	value ref.Val
}

// all returns the whole object.
func (o *object) all() traits.Mapper {
	if o.whole == nil {
		members := make(map[string]any, len(o.of.Members()))
		for _, m := range o.of.Members() {
			members[m.Name] = fromJSON(m.Value)
		}
		o.whole = types.NewStringInterfaceMap(types.DefaultTypeAdapter, members)
	}
	return o.whole
}

// Find implements [traits.Mapper].
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return o.all().Find(key)
	}
	raw := o.of.Get(string(name))
	switch {
	case raw == nil:
		return nil, false
	case len(raw) <= shortText && raw[0] != '{' && raw[0] != '[':
		return fromJSON(raw), true
	}
	for i := range o.read {
		if o.read[i].name == string(name) {
			return o.read[i].value, true
		}
	}
	v := fromJSON(raw)
	o.read = append(o.read, readMember{string(name), v})
	return v, true
}

// shortText is how long a JSON text is, in bytes, that is read sooner than found.
const shortText = 32

// Get implements [traits.Indexer].
func (o *object) Get(key ref.Val) ref.Val {
	if v, found := o.Find(key); found {
		return v
	}
	return o.all().Get(key) // which says what is wrong
}

// Contains implements [traits.Container].
func (o *object) Contains(key ref.Val) ref.Val {
	if name, ok := key.(types.String); ok {
		return types.Bool(o.of.Get(string(name)) != nil)
	}
	return o.all().Contains(key)
}

// The rest is that of any map.

func (o *object) ConvertToNative(t reflect.Type) (any, error) { return o.all().ConvertToNative(t) }
func (o *object) ConvertToType(t ref.Type) ref.Val            { return o.all().ConvertToType(t) }
func (o *object) Equal(other ref.Val) ref.Val {
	if second, ok := other.(*object); ok {
		other = second.all()
	}
	return o.all().Equal(other)
}
func (o *object) Iterator() traits.Iterator { return o.all().Iterator() }
func (o *object) Size() ref.Val             { return types.Int(len(o.of.Members())) }
func (o *object) Type() ref.Type            { return types.MapType }
func (o *object) Value() any                { return o.all().Value() }

var _ traits.Mapper = (*object)(nil)

// fromJSON returns the value of compact JSON; nothing is null.
func fromJSON(raw []byte) ref.Val {
	if len(raw) == 0 {
		return types.NullValue
	}
	switch raw[0] {
	case '{':
		return &object{of: jsontext.ReadObject(raw)}
	case '[':
		var list []ref.Val
		c := jsontext.Cursor{B: raw}
		c.Elements(func() { list = append(list, fromJSON(c.Raw())) })
		return types.NewRefValList(types.DefaultTypeAdapter, list)
	case '"':
		text, _, next := jsontext.Unquote(raw, 0, nil)
		if next != len(raw) {
			return types.NewErr("a text that is no JSON")
		}
		return types.String(text)
	case 't', 'f':
		return types.Bool(raw[0] == 't')
	case 'n':
		return types.NullValue
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return types.NewErr("the number %s is too large", raw)
	}
	if math.Abs(n) == maxWhole { // what has been rounded to the bound is beyond it
		if exact, _, err := big.ParseFloat(string(raw), 10, 256, big.ToNearestEven); err == nil && exact.Cmp(big.NewFloat(n)) != 0 {
			n += math.Copysign(2, n)
		}
	}
	return types.Double(n)
}

const (
	maxDepth = 64      // of what is written into data
	maxWhole = 1 << 53 // above it float64 cannot tell whole numbers apart
)

// appendJSON appends what an expression has yielded, as compact JSON. The error is for
// what JSON has no word for.
func appendJSON(dst []byte, v ref.Val, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels of lists and objects", maxDepth)
	}
	switch v := v.(type) {
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bool:
		return fmt.Append(dst, bool(v)), nil
	case types.String:
		return jsontext.AppendString(dst, string(v)), nil
	case types.Int:
		return appendNumber(dst, float64(v), v < -maxWhole || v > maxWhole)
	case types.Uint:
		return appendNumber(dst, float64(v), v > maxWhole)
	case types.Double:
		return appendNumber(dst, float64(v), math.Abs(float64(v)) > maxWhole && math.Trunc(float64(v)) == float64(v))
	case *object:
		return appendMap(dst, v.all(), depth)
	case traits.Mapper:
		return appendMap(dst, v, depth)
	case traits.Lister:
		dst = append(dst, '[')
		for i := types.Int(0); i < v.Size().(types.Int); i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendJSON(dst, v.Get(i), depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	return nil, fmt.Errorf("%s, which is no JSON", v.Type().TypeName())
}

func appendNumber(dst []byte, n float64, tooLarge bool) ([]byte, error) {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return nil, fmt.Errorf("%v, which is no JSON", n)
	case tooLarge:
		return nil, fmt.Errorf("a whole number beyond 2^53, which JSON does not keep exactly: yield a text")
	}
	return jsontext.AppendFloat(dst, n), nil
}

// appendMap appends the members of a map by name, so that the same map is always the same
// text.
func appendMap(dst []byte, m traits.Mapper, depth int) ([]byte, error) {
	var names []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		name, ok := it.Next().(types.String)
		if !ok {
			return nil, fmt.Errorf("an object whose names are no texts")
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendJSON(append(jsontext.AppendString(dst, name), ':'), m.Get(types.String(name)), depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
