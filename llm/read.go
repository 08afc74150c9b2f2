package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// What a model said, read strictly: exactly one choice among the options, with a
// payload that satisfies the schema of its transition. Nothing is guessed from prose:
// no tool call or several, no JSON object or two of them, a name in other letters,
// another target than the option has, are faults. A fault says why, for the model,
// which is asked again (propose.go), and carries the error if it is not; a refusal or a
// filter is final.
//
// A text may be one JSON object, bare or in its only fenced block. What is recorded of
// an answer is bounded.

// A fault says why an answer cannot be used.
type fault struct {
	why   string // told to the model, if it is asked again
	err   error  // if it is not
	final bool   // asking again is of no use
}

// Limits of what can be recorded of an answer, in bytes.
const (
	maxReasoning = 64 << 10
	maxMetaJSON  = 64 << 10
)

// read reads what a model answered, strictly: one choice among the options, with
// parameters that satisfy the schema.
func (o *options) read(f form, resp *Response) (specialist.Answer, *fault) {
	if resp.Finish == Refused || resp.Finish == Filtered { // whatever it called before it was stopped
		said := cmp.Or(resp.Refusal, resp.Text, "no text, the model was stopped: "+string(resp.Finish))
		return specialist.Answer{}, &fault{err: unusable(said), final: true}
	}
	a, bad := o.choice(f, resp)
	if bad != nil && resp.Finish == TooLong {
		bad.why += "; it was cut off because it was too long, so be brief"
	}
	switch {
	case bad != nil:
	case len(a.Reasoning) > maxReasoning:
		bad = &fault{why: fmt.Sprintf("the reasoning has more than %d bytes", maxReasoning), err: unusable(a.Reasoning)}
	case len(a.MetaJSON) > maxMetaJSON:
		bad = &fault{why: fmt.Sprintf("what it gives to option %q has more than %d bytes", a.TransitionName, maxMetaJSON), err: unusable(string(a.MetaJSON))}
	}
	return a, bad
}

func (o *options) choice(f form, resp *Response) (specialist.Answer, *fault) {
	if f == byTool {
		return o.called(resp)
	}
	return o.written(resp)
}

// unusable is the error of an answer that is no choice.
func unusable(content string) error {
	//lint:ignore ST1005 the text is prescribed
	return fmt.Errorf("Failed to parse LLM proposer response: %s", webhook.Clip(strings.ToValidUTF8(content, "\uFFFD"), maxErrorText))
}

// called reads an answer by tools.
func (o *options) called(resp *Response) (a specialist.Answer, bad *fault) {
	switch len(resp.ToolCalls) {
	case 0:
		return a, &fault{why: "it called no tool", err: unusable(resp.Text)}
	case 1:
	default:
		return a, &fault{why: fmt.Sprintf("it called %d tools instead of one", len(resp.ToolCalls)), err: unusable(callsText(resp.ToolCalls))}
	}
	call := resp.ToolCalls[0]
	t := o.find(call.Name)
	if t == nil {
		name := webhook.Clip(call.Name, 128)
		err := fmt.Errorf("Tool call %q does not match any transition from state %q. Available: %s", name, o.state.Name, o.legal())
		return a, &fault{why: fmt.Sprintf("there is no tool %q", name), err: err}
	}
	meta, bad := arguments(t, &call)
	if bad != nil {
		return a, bad
	}
	return specialist.Answer{TransitionName: t.Name, Reasoning: strings.TrimSpace(resp.Text), MetaJSON: meta}, nil
}

// arguments returns the arguments of a call as metaJson; nil if there are none and
// none are asked for.
func arguments(t *machine.Transition, call *ToolCall) (json.RawMessage, *fault) {
	text := strings.TrimSpace(call.Arguments)
	if text == "" || text == "null" {
		text = "{}"
	}
	cannot := func(why string, args ...any) *fault {
		return &fault{why: fmt.Sprintf("the arguments of tool %q ", call.Name) + fmt.Sprintf(why, args...), err: unusable(callsText([]ToolCall{*call}))}
	}
	meta, err := jsontext.Tidy([]byte(text))
	if err != nil || len(meta) == 0 || meta[0] != '{' {
		return nil, cannot("are not one JSON object")
	}
	if t.Parameters == nil {
		if string(meta) == "{}" {
			return nil, nil
		}
		return meta, nil
	}
	if _, wrapped := asObject(t.Parameters.String()); wrapped {
		var o struct{ Value json.RawMessage }
		if err := json.Unmarshal(meta, &o); err != nil || o.Value == nil {
			return nil, cannot("have no member value")
		}
		meta = o.Value
	}
	if err := t.Parameters.Validate(meta); err != nil {
		return nil, cannot("do not satisfy its parameters: %v", err)
	}
	return meta, nil
}

func callsText(calls []ToolCall) string {
	texts := make([]string, len(calls))
	for i, c := range calls {
		texts[i] = c.Name + "(" + c.Arguments + ")"
	}
	return strings.Join(texts, ", ")
}

// written reads an answer in text: one JSON object, bare or fenced.
func (o *options) written(resp *Response) (a specialist.Answer, bad *fault) {
	cannot := func(why string, args ...any) (specialist.Answer, *fault) {
		return specialist.Answer{}, &fault{why: fmt.Sprintf(why, args...), err: unusable(resp.Text)}
	}
	if len(resp.ToolCalls) > 0 {
		return cannot("it called a tool, and there are none")
	}
	object, err := oneObject(resp.Text, "transitionName")
	if err != nil {
		return cannot("it is not one JSON object: %v", err)
	}
	var said struct {
		TransitionName     *string
		ToState, Reasoning string
		MetaJSON           json.RawMessage
	}
	if readMembers(object, map[string]any{"transitionName": &said.TransitionName, "toState": &said.ToState, "reasoning": &said.Reasoning, "metaJson": &said.MetaJSON}) != nil {
		return cannot("a member has the wrong type")
	}
	if said.TransitionName == nil {
		return cannot("transitionName is missing")
	}
	t := o.state.Transition(*said.TransitionName)
	switch {
	case t == nil:
		return cannot("there is no option %q", webhook.Clip(*said.TransitionName, 128))
	case said.ToState != "" && said.ToState != t.Target:
		return cannot("option %q leads to %q and not to %q", t.Name, t.Target, webhook.Clip(said.ToState, 128))
	}
	if string(said.MetaJSON) == "null" {
		said.MetaJSON = nil
	}
	if t.Parameters != nil {
		meta := said.MetaJSON
		if meta == nil {
			meta = json.RawMessage("{}")
		}
		if err := t.Parameters.Validate(meta); err != nil {
			return cannot("metaJson does not satisfy the parameters of option %q: %v", t.Name, err)
		}
	}
	return specialist.Answer{TransitionName: t.Name, Reasoning: said.Reasoning, MetaJSON: said.MetaJSON}, nil
}

// readMembers reads members of an object. Their names are compared letter by letter: one
// in capitals is another member, and no second answer.
func readMembers(object json.RawMessage, into map[string]any) (err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return err
	}
	for name, to := range into {
		if v, ok := members[name]; ok {
			err = errors.Join(err, json.Unmarshal(v, to))
		}
	}
	return err
}

// oneObject returns the one JSON object of a text: all of it, or what stands in
// its only block between three backticks, if no other one with that member is beside it.
func oneObject(text, member string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	object, err := jsontext.Tidy([]byte(text))
	if err != nil {
		before, block, _ := strings.Cut(text, "```")
		end := strings.LastIndex(block, "```")
		if end < 0 {
			return nil, err
		}
		if strings.Contains(before+block[end:], strconv.Quote(member)) {
			return nil, errors.New("there is another one beside the block")
		}
		object, err = jsontext.Tidy([]byte(strings.TrimPrefix(block[:end], "json")))
	}
	switch {
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(object, []byte("{")):
		return nil, fmt.Errorf("it is another value")
	}
	return object, nil
}
