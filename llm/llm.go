// Package llm makes language models specialists: it asks them over the APIs of
// their providers, reads what they say strictly, and counts what it cost.
//
// A [Client] finds the provider of a modelId, builds the prompt of an ask and
// returns a proposer for the runner, a completer for the truth gate or a
// classifier for the guards. Everything goes out over the transport of package
// webhook. No error, audit entry or log of it holds a key.
package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A Model is one language model at one provider.
//
// Ask sends the request, repeated as the retry rule allows, and returns what the
// model said. With an error, the Response still holds the usage that is known of.
// It must return soon after ctx is done and may be called concurrently.
type Model interface {
	Ask(ctx context.Context, r *Request) (Response, error)
}

// A Request is one question to a model. It must not be changed while it is
// asked.
type Request struct {
	System string // what the model is; may be ""
	User   string
	// Tools are what the model may call; if there are any, it must call one.
	Tools []Tool
	// Schema is the JSON Schema of the text to answer with; nil if the text is
	// free.
	Schema      json.RawMessage
	MaxTokens   int // of output; 0 means DefaultMaxTokens
	Temperature float64
	Seed        int64 // 0 sends none
	LogProbs    bool  // return the logarithms of the probabilities of the text's tokens
	Purpose     Purpose
	Origin      Origin // for the audit log
}

// DefaultMaxTokens is the most output a model is asked for, if a request does not
// say.
const DefaultMaxTokens = 1024

func (r *Request) maxTokens() int {
	return cmp.Or(max(r.MaxTokens, 0), DefaultMaxTokens)
}

// A Tool is a function that a model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON Schema of an object
}

// A Purpose says what a model is asked for.
type Purpose string

// The purposes.
const (
	Ask    Purpose = "ask"
	Repair Purpose = "repair" // an ask again, because the answer could not be used
	Probe  Purpose = "probe"  // of the guards, or of a person who tries a model
)

// An Origin says who asks. Its zero value is nobody in particular.
type Origin struct {
	SessionID    string
	MachineName  string
	State        string
	SpecialistID string
	RoundID      string
	Round        int32
	Attempt      int32
	Nth          int32 // how many asks of the specialist came before in the round
}

// A Response is what a model said.
type Response struct {
	Text      string
	ToolCalls []ToolCall
	Finish    Finish
	Refusal   string // what it said instead, if it refused
	Model     string // that answered, as the provider calls it; "" if it does not say
	ID        string // of the answer at its provider; "" if it has none
	// Usage has what the provider counted. What it did not count is estimated,
	// and the usage is marked so. CostUSD is given only if the provider named it.
	Usage     specialist.Usage
	LogProbs  []float64 // of the text's tokens; nil if there are none
	LogTokens []string  // these tokens
}

// scrub takes the key out of what was answered: a server may send back what it was
// sent, and answers are stored and shown to others. Names are cut to a length that
// names have.
func (r *Response) scrub(key *webhook.Concealer) {
	for _, text := range [...]*string{&r.Text, &r.Refusal, &r.Model, &r.ID} {
		*text = key.Hide(*text)
	}
	for i := range r.ToolCalls {
		c := &r.ToolCalls[i]
		c.Name, c.Arguments = key.Hide(c.Name), key.Hide(c.Arguments)
	}
	if said := strings.Join(r.LogTokens, ""); key.Hide(said) != said { // a key is hardly ever one token
		r.LogProbs, r.LogTokens = nil, nil
	}
	r.Model, r.ID = webhook.Clip(r.Model, maxName), webhook.Clip(r.ID, maxName)
}

// minKey is the length, in bytes, from which a key is looked for in answers. What is
// shorter is no secret, such as the word that a server without keys is given.
const minKey = 8

// maxName is the longest name of a model or an answer that is kept, in bytes.
const maxName = 256

// A ToolCall is one call that a model made. Arguments is what the model wrote,
// which may be no JSON at all.
type ToolCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A Finish says why a model stopped.
type Finish string

// The reasons. The zero Finish is one that is not known.
const (
	Stopped  Finish = "stop"
	Called   Finish = "tool_calls"
	TooLong  Finish = "length"
	Refused  Finish = "refusal"
	Filtered Finish = "content_filter"
)
