package llmtest

import (
	"cmp"
	"encoding/json"
)

type object = map[string]any

// encode returns the body of a reply in the format of the call.
func (p *Reply) encode(c *Call) []byte {
	p.Model = cmp.Or(p.Model, c.Model)
	if p.Usage.Input == 0 && p.Usage.Output == 0 {
		p.Usage.Input, p.Usage.Output = 100, 10
	}
	var body object
	switch c.API {
	case "chat":
		body = p.chat()
	case "messages":
		body = p.messages()
	default:
		body = p.generate()
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic("llmtest: " + err.Error()) // the fault of whoever wrote the reply
	}
	return data
}

func (p *Reply) finish(stop, called string) string {
	switch {
	case p.Finish != "":
		return p.Finish
	case len(p.Tools) > 0:
		return called
	}
	return stop
}

// tokens are the runes of the text, each with its probability under the name that an API gives it.
func (p *Reply) tokens(probability string) (list []any) {
	text := []rune(p.Text)
	for i, lp := range p.LogProbs {
		list = append(list, object{"token": string(text[min(i, len(text)):min(i+1, len(text))]), probability: lp})
	}
	return list
}

func (p *Reply) chat() object {
	message := object{"role": "assistant", "content": nil}
	if p.Text != "" {
		message["content"] = p.Text
	}
	if p.Refusal != "" {
		message["refusal"] = p.Refusal
	}
	var calls []any
	for _, t := range p.Tools {
		calls = append(calls, object{"id": "call_1", "type": "function", "function": object{"name": t.Name, "arguments": t.Args}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	choice := object{"index": 0, "message": message, "finish_reason": p.finish("stop", "tool_calls")}
	if p.LogProbs != nil {
		choice["logprobs"] = object{"content": p.tokens("logprob")}
	}
	body := object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": p.Model, "choices": []any{choice}}
	if !p.NoUsage {
		u := object{
			"prompt_tokens": p.Usage.Input, "completion_tokens": p.Usage.Output, "total_tokens": p.Usage.Input + p.Usage.Output,
			"prompt_tokens_details": object{"cached_tokens": p.Usage.Cached}, "completion_tokens_details": object{"reasoning_tokens": p.Usage.Reasoning},
		}
		if p.Usage.Cost != "" {
			u["cost"] = json.Number(p.Usage.Cost)
		}
		body["usage"] = u
	}
	return body
}

func (p *Reply) messages() object {
	content := []any{}
	if p.Text != "" || p.Refusal != "" {
		content = append(content, object{"type": "text", "text": p.Text + p.Refusal})
	}
	for _, t := range p.Tools {
		content = append(content, object{"type": "tool_use", "id": "toolu_1", "name": t.Name, "input": json.RawMessage(t.Args)})
	}
	reason := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}[p.finish("stop", "tool_calls")]
	if p.Refusal != "" {
		reason = "refusal"
	}
	body := object{"id": "msg_1", "type": "message", "role": "assistant", "model": p.Model, "content": content, "stop_reason": reason}
	if !p.NoUsage {
		body["usage"] = object{"input_tokens": p.Usage.Input - p.Usage.Cached, "output_tokens": p.Usage.Output, "cache_read_input_tokens": p.Usage.Cached, "cache_creation_input_tokens": 0}
	}
	return body
}

func (p *Reply) generate() object {
	parts := []any{}
	if p.Text != "" {
		parts = append(parts, object{"text": p.Text})
	}
	for _, t := range p.Tools {
		parts = append(parts, object{"functionCall": object{"name": t.Name, "args": json.RawMessage(t.Args)}})
	}
	reason := map[string]string{"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "content_filter": "SAFETY"}[p.finish("stop", "tool_calls")]
	candidate := object{"content": object{"role": "model", "parts": parts}, "finishReason": reason}
	body := object{"candidates": []any{candidate}, "modelVersion": p.Model, "responseId": "gen_1"}
	if p.Refusal != "" {
		body["candidates"], body["promptFeedback"] = []any{}, object{"blockReason": "SAFETY"}
	}
	if p.LogProbs != nil {
		candidate["logprobsResult"] = object{"chosenCandidates": p.tokens("logProbability")}
	}
	if !p.NoUsage {
		body["usageMetadata"] = object{
			"promptTokenCount": p.Usage.Input, "candidatesTokenCount": p.Usage.Output - p.Usage.Reasoning, "thoughtsTokenCount": p.Usage.Reasoning,
			"cachedContentTokenCount": p.Usage.Cached, "totalTokenCount": p.Usage.Input + p.Usage.Output,
		}
	}
	return body
}
