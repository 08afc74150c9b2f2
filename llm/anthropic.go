package llm

import (
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// Requests and answers of Anthropic's Messages API. What differs from others: a limit
// of output must be given and the temperature is at most 1; a schema for the answer is
// only sent if every object in it is closed, since others are refused; and the input
// count leaves out cached tokens, which are added here, so that a count means the same
// for every provider and is priced once.

// messages is Anthropic's Messages API.
type messages struct{}

func (messages) path(string) string { return "/messages" }

func (messages) headers(key string) []webhook.Header {
	return []webhook.Header{{Name: "X-Api-Key", Value: key}, {Name: "Anthropic-Version", Value: "2023-06-01"}}
}

func (messages) encode(dst []byte, model string, r *Request, q quirks) []byte {
	dst = jsontext.AppendString(append(dst, `{"model":`...), model)
	dst = appendInt(dst, "max_tokens", int64(r.maxTokens()))
	if r.System != "" {
		dst = jsontext.AppendString(append(dst, `,"system":`...), r.System)
	}
	if !q.has(noTemperature) {
		dst = jsontext.AppendFloat(append(dst, `,"temperature":`...), min(r.Temperature, 1))
	}
	dst = jsontext.AppendString(append(dst, `,"messages":[{"role":"user","content":`...), r.User)
	dst = append(dst, `}]`...)
	if len(r.Tools) > 0 {
		dst = append(dst, `,"tools":[`...)
		for i, t := range r.Tools {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendTool(dst, t, "input_schema")
		}
		dst = append(dst, `],"tool_choice":{"type":"`...)
		dst = append(dst, q.choice(`auto"`, `any"`)...)
		if !q.has(freeParallel) {
			dst = append(dst, `,"disable_parallel_tool_use":true`...)
		}
		dst = append(dst, '}')
	}
	if r.Schema != nil && !q.has(noSchema) && closed(r.Schema) {
		dst = append(dst, `,"output_config":{"format":{"type":"json_schema","schema":`...)
		dst = append(append(dst, r.Schema...), `}}`...)
	}
	return append(dst, '}')
}

// closed reports whether all objects in a JSON Schema are closed, which Anthropic demands:
// it refuses every schema in which additionalProperties of an object is not false. So an
// object of which nothing is known cannot be asked for in this way.
func closed(schema json.RawMessage) bool {
	var value any
	return json.Unmarshal(schema, &value) == nil && isClosed(value)
}

func isClosed(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		if v["type"] == "object" && v["additionalProperties"] != false {
			return false
		}
		for _, inner := range v {
			if !isClosed(inner) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !isClosed(inner) })
	}
	return true
}

// A message is the body of a success.
type message struct {
	ID      name `json:"id"`
	Model   name `json:"model"`
	Content []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content"`
	StopReason string `json:"stop_reason"`
	Usage      *struct {
		Input         tally `json:"input_tokens"`
		Output        tally `json:"output_tokens"`
		CacheRead     tally `json:"cache_read_input_tokens"`
		CacheWrite    tally `json:"cache_creation_input_tokens"`
		CacheCreation struct {
			FiveMinutes tally `json:"ephemeral_5m_input_tokens"`
			OneHour     tally `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
	} `json:"usage"`
	Error *apiError `json:"error"`
}

func (messages) decode(body []byte, into *Response) error {
	var m message
	if err := readBody(body, &m); err != nil {
		return err
	}
	into.ID, into.Model, into.Finish = string(m.ID), string(m.Model), messageFinish[m.StopReason]
	m.usage(&into.Usage)
	for _, c := range m.Content {
		switch c.Type {
		case "text":
			into.Text += c.Text
		case "tool_use":
			into.ToolCalls = append(into.ToolCalls, ToolCall{c.Name, string(c.Input)})
		}
	}
	switch {
	case into.Finish == Refused:
		into.Refusal = into.Text
	case m.Error != nil:
		return m.Error
	case len(m.Content) == 0:
		return errNoChoices
	}
	return nil
}

// usage takes over the counts. Anthropic's input count leaves cached tokens out;
// ours has them in, as the price table expects unless it is told otherwise.
func (m *message) usage(into *specialist.Usage) {
	u := m.Usage
	if u == nil {
		return
	}
	d := specialist.UsageDetail{CacheReadTokens: u.CacheRead.n, CacheWrite5mTokens: u.CacheWrite.n}
	if c := u.CacheCreation; c.FiveMinutes.given || c.OneHour.given {
		d.CacheWrite5mTokens, d.CacheWrite1hTokens = c.FiveMinutes.n, c.OneHour.n
	}
	count(&into.NumInputTokens, u.Input.count(), &into.Given, specialist.InputGiven)
	count(&into.NumOutputTokens, u.Output.count(), &into.Given, specialist.OutputGiven)
	if into.Has(specialist.InputGiven) {
		for _, n := range [...]int64{d.CacheReadTokens, d.CacheWrite5mTokens, d.CacheWrite1hTokens} {
			into.NumInputTokens = exact.AddSat(into.NumInputTokens, n)
		}
	}
	detail(into, d)
}

// messageFinish is why this API says that the model stopped.
var messageFinish = map[string]Finish{
	"end_turn": Stopped, "stop_sequence": Stopped, "tool_use": Called,
	"max_tokens": TooLong, "model_context_window_exceeded": TooLong, "refusal": Refused,
}
