package llm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The legal transitions as tools, or as a schema for an answer in text. They are shown
// in an order drawn for this ask, from session, round and state, and turned for the
// specialists of one model, so that no place in the list favours an option; the machine
// may ask for the declared order.
//
// APIs restrict what a tool may look like. A name they would not take becomes t1, t2
// and so on, never the name of another transition; parameters that are no plain object
// are put into the member value (asObject), references inside of them included, and
// taken out again when the answer is read (arguments). So the schema that is asked for
// and the one that is checked say the same.

// options are the legal transitions of a state as one ask shows them.
type options struct {
	state   *machine.State
	order   []*machine.Transition // as shown
	aliases []string              // tool names, by index of the transition
}

// optionsOf returns the options of a question: in an order drawn for this ask, if
// the machine does not say otherwise, so that no place in the list is favoured.
func optionsOf(q *specialist.Question) options {
	o := options{state: q.State, order: q.State.Transitions, aliases: aliases(q.State)}
	if q.State.OptionOrder == machine.DeclaredOrder || len(o.order) < 2 {
		return o
	}
	o.order = make([]*machine.Transition, len(q.State.Transitions))
	session := q.Key.Session.String()
	if q.Seed != 0 {
		session = strconv.FormatUint(q.Seed, 10)
	}
	round := fmt.Sprintf("%d.%d", q.Key.Round, q.Key.Attempt)
	for i, j := range trust.OptionOrder(session, round, q.State.Name, len(o.order), rankOf(q)) {
		o.order[i] = q.State.Transitions[j]
	}
	return o
}

// rankOf returns how many specialists of the asked one's model come before it in
// the state: so that with two options the order alternates within a model.
func rankOf(q *specialist.Question) (rank int) {
	list := q.State.Roster
	if list == nil {
		list = q.Machine.Specialists()
	}
	self := slices.IndexFunc(list, func(s machine.Specialist) bool { return s.SpecialistID == q.Self })
	for i := range max(0, self) {
		if modelOf(q.Machine, &list[i]) == modelOf(q.Machine, &list[self]) {
			rank++
		}
	}
	return rank
}

// modelOf returns the model of a specialist that a state's list may only name.
func modelOf(m *machine.Machine, s *machine.Specialist) string {
	if !s.Reference() {
		return s.ModelID
	}
	list := m.Specialists()
	if i := slices.IndexFunc(list, func(d machine.Specialist) bool { return d.SpecialistID == s.SpecialistID }); i >= 0 {
		return list[i].ModelID
	}
	return ""
}

// names returns the options as shown.
func (o *options) names() []string {
	list := make([]string, len(o.order))
	for i, t := range o.order {
		list[i] = t.Name
	}
	return list
}

// legal returns the names of the options in written order, separated by commas.
func (o *options) legal() string {
	declared := options{order: o.state.Transitions}
	return strings.Join(declared.names(), ", ")
}

// isToolName reports whether APIs take s for the name of a tool: 1 to 64 letters,
// digits, underscores and hyphens.
func isToolName(s string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return s != "" && len(s) <= 64 && strings.Trim(s, allowed) == ""
}

// aliases returns the names of the state's transitions as tools: their own, or
// t1, t2 and so on, by their place in the machine, where an API would not take
// that. No alias is the name of another transition.
func aliases(s *machine.State) []string {
	list := make([]string, len(s.Transitions))
	for i, t := range s.Transitions {
		if isToolName(t.Name) {
			list[i] = t.Name
			continue
		}
		alias := fmt.Sprintf("t%d", i+1)
		for s.Transition(alias) != nil {
			alias += "_"
		}
		list[i] = alias
	}
	return list
}

// find returns the transition that a tool call names, by alias or by name; nil if
// there is none.
func (o *options) find(name string) *machine.Transition {
	for i, alias := range o.aliases {
		if alias == name {
			return o.state.Transitions[i]
		}
	}
	return o.state.Transition(name)
}

// noParameters is the schema of a transition without parameters.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// tools returns a tool for each option.
func (o *options) tools() []Tool {
	list := make([]Tool, len(o.order))
	for i, t := range o.order {
		list[i] = Tool{Name: o.aliases[t.Index], Description: cmp.Or(t.Description, t.Name), Parameters: noParameters}
		if t.Parameters != nil {
			list[i].Parameters, _ = asObject(t.Parameters.String())
		}
	}
	return list
}

// inside are words of JSON Schema that OpenAI and Anthropic refuse at the top of a tool's
// parameters, and take below that.
var inside = []string{"oneOf", "anyOf", "allOf", "not", "enum", "const"}

// asObject returns a schema as that of an object, which is all that tools can be
// called with: as it is, with its type added, or as that of the member value.
// wrapped says the latter.
func asObject(schema string) (object json.RawMessage, wrapped bool) {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(schema), &o) != nil || o == nil { // true or false
		return wrap(schema), true
	}
	switch kind := string(o["type"]); {
	case slices.ContainsFunc(inside, func(word string) bool { return o[word] != nil }):
		return wrap(schema), true
	case oddlyNamed(o["properties"]):
		return wrap(schema), true
	case kind == `"object"`:
		return json.RawMessage(schema), false
	case kind != "":
		return wrap(schema), true
	case len(o) == 0:
		return noParameters, false
	}
	return json.RawMessage(`{"type":"object",` + schema[1:]), false
}

// oddlyNamed reports whether members at the top of a tool's parameters have names that
// Anthropic refuses, with the whole request: it takes ^[a-zA-Z0-9_.-]{1,64}$, as its errors
// say. It does not look below the top.
func oddlyNamed(properties json.RawMessage) bool {
	var named map[string]json.RawMessage
	if json.Unmarshal(properties, &named) != nil {
		return false
	}
	for name := range named {
		if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_.-", c)
		}) {
			return true
		}
	}
	return false
}

func wrap(schema string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"value":` + lowered(schema) + `},"required":["value"]}`)
}

// lowered returns a schema in which references to parts of itself hold where it is that
// of the member value.
func lowered(schema string) string {
	var value any
	d := json.NewDecoder(strings.NewReader(schema))
	d.UseNumber()
	if !strings.Contains(schema, `"$ref"`) || d.Decode(&value) != nil {
		return schema
	}
	lower(value)
	text, err := jsontext.Marshal(value)
	if err != nil {
		return schema
	}
	return string(text)
}

// valueWords are those of JSON Schema that hold values, and namedWords those that hold
// schemas by names, which may be any of these words.
var (
	valueWords = []string{"const", "enum", "default", "examples"}
	namedWords = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)

func lower(value any) {
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && (ref == "#" || strings.HasPrefix(ref, "#/")) {
			v["$ref"] = "#/properties/value" + ref[1:]
		}
		for word, inner := range v {
			named, ok := inner.(map[string]any)
			switch {
			case slices.Contains(valueWords, word):
			case ok && slices.Contains(namedWords, word):
				for _, one := range named {
					lower(one)
				}
			default:
				lower(inner)
			}
		}
	case []any:
		for _, inner := range v {
			lower(inner)
		}
	}
}

// schema returns the JSON Schema of an answer in text.
func (o *options) schema() json.RawMessage {
	b := []byte(`{"type":"object","properties":{"transitionName":{"type":"string","enum":[`)
	for i, t := range o.order {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, t.Name)
	}
	b = append(b, `]},"reasoning":{"type":"string"}`...)
	if o.parameterized() {
		b = append(b, `,"metaJson":{"type":"object"}`...)
	}
	b = append(b, `},"required":["transitionName","reasoning"`...)
	if !slices.ContainsFunc(o.order, func(t *machine.Transition) bool { return !t.NeedsPayload }) {
		b = append(b, `,"metaJson"`...)
	}
	return append(b, `],"additionalProperties":false}`...)
}

func (o *options) parameterized() bool {
	return slices.ContainsFunc(o.order, func(t *machine.Transition) bool { return t.Parameters != nil })
}
