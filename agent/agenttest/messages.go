package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// messages is the Messages API of Anthropic.
type messages struct{}

// A block is a part of a message; content is a text or a list of them.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

func (messages) read(r *Request) (talk []said, err error) {
	var in struct {
		Model    string                  `json:"model"`
		System   json.RawMessage         `json:"system"`
		Tools    []struct{ Name string } `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return nil, err
	}
	r.Model, r.System = in.Model, textOf(in.System)
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range in.Messages {
		talk = append(talk, said{m.Role == "assistant", textOf(m.Content)})
	}
	return talk, nil
}

// textOf returns all text in a content: it is one, or has blocks that have it.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
		if len(b.Content) > 0 {
			texts = append(texts, textOf(b.Content))
		}
	}
	return strings.Join(texts, "\n")
}

func (messages) answer(w http.ResponseWriter, r Request, s Step, n int) {
	e := &stream{w: w}
	stop := "end_turn"
	e.send("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%06d", n), "type": "message", "role": "assistant", "model": r.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": s.Input, "cache_read_input_tokens": s.CacheRead, "cache_creation_input_tokens": s.CacheWrite, "output_tokens": 1},
	}})
	index := 0
	part := func(block, delta map[string]any) {
		e.send("content_block_start", map[string]any{"index": index, "content_block": block})
		e.send("content_block_delta", map[string]any{"index": index, "delta": delta})
		e.send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if s.Text != "" {
		part(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": s.Text})
	}
	for i, u := range s.Tools {
		stop = "tool_use"
		part(map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%06d_%d", n, i), "name": u.Name, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": string(u.Input)})
	}
	e.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": s.Output}})
	e.send("message_stop", map[string]any{})
}

func (messages) fail(w http.ResponseWriter, s Step) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"type": s.Error, "message": "the step says so"}})
}

// A stream is of server-sent events.
type stream struct {
	w     http.ResponseWriter
	begun bool
}

// send sends an event; its type is its name, too.
func (e *stream) send(kind string, data map[string]any) {
	if !e.begun {
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.begun = true
	}
	data["type"] = kind
	text, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("agenttest: an event: %v", err))
	}
	_, _ = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", kind, text) // who has gone does not read it
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}
