package llm

import (
	"encoding/json"
	"strconv"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// Requests and answers of the chat completions API, as OpenAI defines it and many
// servers speak it more or less. So requests hold only what nearly all of them know,
// and leave out what this one has refused before (quirks); answers are read by what is
// there: a text may come as parts, an error with status 200, thoughts beside the
// completion in the total alone. Counts that are negative or missing are not given,
// which is not 0.

// chat is OpenAI's chat completions API, which OpenRouter, Ollama, vLLM, LM Studio
// and many others speak too.
type chat struct{}

func (chat) path(string) string { return "/chat/completions" }

func (chat) headers(key string) []webhook.Header {
	if key == "" {
		return nil
	}
	return []webhook.Header{{Name: "Authorization", Value: "Bearer " + key}}
}

func (chat) encode(dst []byte, model string, r *Request, q quirks) []byte {
	dst = jsontext.AppendString(append(dst, `{"model":`...), model)
	dst = append(dst, `,"messages":[`...)
	if r.System != "" {
		dst = jsontext.AppendString(append(dst, `{"role":"system","content":`...), r.System)
		dst = append(dst, `},`...)
	}
	dst = jsontext.AppendString(append(dst, `{"role":"user","content":`...), r.User)
	dst = append(dst, `}]`...)
	switch {
	case q.has(noMaxTokens):
	case q.has(otherMaxTokens):
		dst = appendInt(dst, "max_completion_tokens", int64(r.maxTokens()))
	default:
		dst = appendInt(dst, "max_tokens", int64(r.maxTokens()))
	}
	if !q.has(noTemperature) {
		dst = jsontext.AppendFloat(append(dst, `,"temperature":`...), r.Temperature)
	}
	if r.Seed != 0 && !q.has(noSeed) {
		dst = appendInt(dst, "seed", r.Seed)
	}
	if r.LogProbs && !q.has(noLogProbs) {
		dst = append(dst, `,"logprobs":true`...)
	}
	return append(chat{}.shape(dst, r, q), '}')
}

// shape appends what form the answer is to have.
func (chat) shape(dst []byte, r *Request, q quirks) []byte {
	if len(r.Tools) > 0 {
		dst = append(dst, `,"tools":[`...)
		for i, t := range r.Tools {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendTool(append(dst, `{"type":"function","function":`...), t, "parameters")
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
		dst = append(dst, q.choice(`,"tool_choice":"auto"`, `,"tool_choice":"required"`)...)
		if !q.has(freeParallel) {
			dst = append(dst, `,"parallel_tool_calls":false`...)
		}
	}
	if r.Schema != nil && !q.has(noSchema) {
		dst = append(dst, `,"response_format":{"type":"json_schema","json_schema":{"name":"proposal","schema":`...)
		dst = append(append(dst, r.Schema...), `}}`...)
	}
	return dst
}

func appendInt(dst []byte, name string, v int64) []byte {
	dst = append(append(append(dst, ',', '"'), name...), '"', ':')
	return strconv.AppendInt(dst, v, 10)
}

// appendTool appends a tool as an object, with its schema under the name that the
// API has for it.
func appendTool(dst []byte, t Tool, schema string) []byte {
	dst = jsontext.AppendString(append(dst, `{"name":`...), t.Name)
	if t.Description != "" {
		dst = jsontext.AppendString(append(dst, `,"description":`...), t.Description)
	}
	dst = append(append(append(dst, `,"`...), schema...), `":`...)
	return append(append(dst, t.Parameters...), '}')
}

// A chatAnswer is the body of a success.
type chatAnswer struct {
	ID      name `json:"id"`
	Model   name `json:"model"`
	Choices []struct {
		FinishReason string    `json:"finish_reason"`
		Error        *apiError `json:"error"` // of the server behind a router, which broke off
		Message      struct {
			Content   chatText `json:"content"`
			Refusal   string   `json:"refusal"`
			ToolCalls []struct {
				Function struct {
					Name      string   `json:"name"`
					Arguments chatText `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
		LogProbs *struct {
			Content []struct {
				Token   string          `json:"token"`
				LogProb json.RawMessage `json:"logprob"`
			} `json:"content"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
	Error *apiError  `json:"error"` // some send it with status 200
}

// A chatUsage is what was counted.
type chatUsage struct {
	Prompt        tally `json:"prompt_tokens"`
	Completion    tally `json:"completion_tokens"`
	Total         tally `json:"total_tokens"`
	PromptDetails struct {
		Cached     tally `json:"cached_tokens"`
		CacheWrite tally `json:"cache_write_tokens"`
		Audio      tally `json:"audio_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning tally `json:"reasoning_tokens"`
		Audio     tally `json:"audio_tokens"`
	} `json:"completion_tokens_details"`
	Cost price `json:"cost"` // of OpenRouter, in dollars
}

// A chatText is a string, or, from some servers, another value: then it is that
// value as JSON, or the texts of a list of parts.
type chatText string

// UnmarshalJSON reads any value.
func (t *chatText) UnmarshalJSON(data []byte) error {
	var s string
	var parts []struct {
		Text string `json:"text"`
	}
	switch {
	case string(data) == "null":
	case json.Unmarshal(data, &s) == nil:
		*t = chatText(s)
	case json.Unmarshal(data, &parts) == nil:
		for _, p := range parts {
			*t += chatText(p.Text)
		}
	default:
		*t = chatText(data)
	}
	return nil
}

func (chat) decode(body []byte, into *Response) error {
	var a chatAnswer
	if err := readBody(body, &a); err != nil {
		return err
	}
	into.ID, into.Model = string(a.ID), string(a.Model)
	if a.Usage != nil {
		a.Usage.read(&into.Usage)
	}
	if len(a.Choices) == 0 {
		if a.Error != nil {
			return a.Error
		}
		return errNoChoices
	}
	c := &a.Choices[0]
	if c.Error != nil {
		return c.Error
	}
	into.Text, into.Refusal, into.Finish = string(c.Message.Content), c.Message.Refusal, chatFinish[c.FinishReason]
	if into.Refusal != "" {
		into.Finish = Refused
	}
	for _, call := range c.Message.ToolCalls {
		into.ToolCalls = append(into.ToolCalls, ToolCall{call.Function.Name, string(call.Function.Arguments)})
	}
	if c.LogProbs != nil {
		for _, p := range c.LogProbs.Content {
			into.logProb(p.Token, p.LogProb)
		}
	}
	return nil
}

// chatFinish is why this API says that the model stopped: its words are ours.
var chatFinish = map[string]Finish{"stop": Stopped, "length": TooLong, "tool_calls": Called, "content_filter": Filtered}

// beside returns how many tokens some servers wrote that they do not count as
// completion: thoughts, which stand in the total alone, or with a count of their own too.
func (c *chatUsage) beside() int64 {
	if !c.Prompt.given || !c.Completion.given || !c.Total.given {
		return 0
	}
	n := c.Total.n - exact.AddSat(c.Prompt.n, c.Completion.n)
	if thoughts := c.CompletionDetails.Reasoning.n; n > 0 && (thoughts == 0 || n == thoughts) {
		return n
	}
	return 0
}

func (c *chatUsage) read(u *specialist.Usage) {
	c.Completion.n += c.beside()
	count(&u.NumInputTokens, c.Prompt.count(), &u.Given, specialist.InputGiven)
	count(&u.NumOutputTokens, c.Completion.count(), &u.Given, specialist.OutputGiven)
	detail(u, specialist.UsageDetail{
		CacheReadTokens: c.PromptDetails.Cached.n, CacheWrite5mTokens: c.PromptDetails.CacheWrite.n, AudioInputTokens: c.PromptDetails.Audio.n,
		ReasoningTokens: c.CompletionDetails.Reasoning.n, AudioOutputTokens: c.CompletionDetails.Audio.n,
	})
	if c.Cost.amount != nil {
		*u = u.WithCost(*c.Cost.amount)
	}
}

// count takes over a count that is there and is one.
func count(into, from *int64, given *specialist.Given, bit specialist.Given) {
	if from != nil && *from >= 0 {
		*into, *given = *from, *given|bit
	}
}

// detail sets what tokens were, if anything is known of them.
func detail(u *specialist.Usage, d specialist.UsageDetail) {
	for _, n := range []*int64{&d.CacheReadTokens, &d.CacheWrite5mTokens, &d.CacheWrite1hTokens, &d.ReasoningTokens, &d.AudioInputTokens, &d.AudioOutputTokens} {
		*n = max(*n, 0)
	}
	if d != (specialist.UsageDetail{}) {
		u.Detail = &d
	}
}
