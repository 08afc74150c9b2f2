package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/webhook"
)

// A wire is the format of one provider's API. A further provider is one more.
type wire interface {
	// path returns what follows the base address, for a model.
	path(model string) string
	// headers returns those that carry the key; key may be "".
	headers(key string) []webhook.Header
	// encode appends the body of a request.
	encode(dst []byte, model string, r *Request, q quirks) []byte
	// decode reads the body of a success. Of a body that is only partly usable
	// it reads what it can before it returns an error.
	decode(body []byte, into *Response) error
}

// errNoChoices is an answer without a message in it. Its text is prescribed.
var errNoChoices = errors.New("LLM returned no choices")

// errNotJSON is an answer that is not what the API promises.
var errNotJSON = errors.New("the body is not the JSON of this API")

// An apiError is an error that came with the status of a success.
type apiError struct {
	Code    int
	Message string
}

func (e *apiError) Error() string { return fmt.Sprintf("LLM API error (%d): %s", e.Code, e.Message) }

// UnmarshalJSON reads an object with a code and a message, or the message alone.
func (e *apiError) UnmarshalJSON(data []byte) error {
	var text string
	var o struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	switch {
	case json.Unmarshal(data, &text) == nil:
		e.Message = text
	case json.Unmarshal(data, &o) == nil:
		e.Message = o.Message
		e.Code, _ = strconv.Atoi(strings.Trim(string(o.Code), `"`))
	default:
		e.Message = string(data)
	}
	return nil
}

// quirks are parameters that a model does not take as they are usually sent: a
// set of bits.
type quirks uint32

const (
	noTemperature quirks = 1 << iota
	noSeed
	autoTools    // a call cannot be required
	freeParallel // parallel calls cannot be switched off
	noSchema
	noLogProbs
	otherMaxTokens // max_tokens has another name
	noMaxTokens
)

func (q quirks) has(one quirks) bool { return q&one != 0 }

// choice says how tools are offered: to models that cannot be made to call one, or to others.
func (q quirks) choice(auto, required string) string {
	if q.has(autoTools) {
		return auto
	}
	return required
}

// parameters says by which names APIs call what a quirk leaves out.
var parameters = []struct {
	quirk quirks
	names []string
}{
	{freeParallel, []string{"parallel_tool_calls", "disable_parallel_tool_use"}},
	{autoTools, []string{"tool_choice", "functioncallingconfig", "function_calling_config", "tool_config"}},
	{noTemperature, []string{"temperature"}},
	{noSeed, []string{"seed"}},
	{noLogProbs, []string{"logprobs", "responselogprobs", "response_logprobs"}},
	{otherMaxTokens, []string{"max_tokens", "max_completion_tokens", "maxoutputtokens"}},
}

// schemaNames are how APIs call the schema of an answer.
var schemaNames = []string{"response_format", "responsejsonschema", "response_json_schema", "response_schema", "responseformat", "output_config", "output_format", "json_schema"}

// complaints are words of an error about a parameter, and not about its value or
// the rest of the request.
var complaints = []string{
	"unsupported", "not support", "n't support", "unknown", "unrecognized", "not allowed", "not permitted", "deprecated", "unexpected",
	"extra input", "invalid parameter", "not available", "not enabled", "cannot be", "only the default",
	"may not be", "may only be", "only be set", "not accepted", "no longer accepted", "forces tool use",
}

// learn returns the quirks of a model whose provider refused a request with that body;
// schema says that the request had one of the answer. It reports whether there is a new
// quirk among them: then the request is worth another try.
func (q quirks) learn(body string, schema bool) (quirks, bool) {
	body = strings.ToLower(body)
	if schema && !q.has(noSchema) && containsAny(body, schemaNames) {
		return q | noSchema, true // whatever is said of it: the model can do without
	}
	if !containsAny(body, complaints) && !strings.Contains(body, "that support") {
		return q, false
	}
	for _, p := range parameters {
		if !containsAny(body, p.names) {
			continue
		}
		switch {
		case !q.has(p.quirk):
			return q | p.quirk, true
		case p.quirk == otherMaxTokens && !q.has(noMaxTokens):
			return q | noMaxTokens, true
		}
	}
	return q, false
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
