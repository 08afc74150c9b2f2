package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// responses is the Responses API of OpenAI.
type responses struct{}

func (responses) read(r *Request) (talk []said, err error) {
	var in struct {
		Model        string                  `json:"model"`
		Instructions string                  `json:"instructions"`
		Tools        []struct{ Name string } `json:"tools"`
		Input        []struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Output  json.RawMessage `json:"output"`
		} `json:"input"`
	}
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return nil, err
	}
	r.Model, r.System = in.Model, in.Instructions
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, item := range in.Input {
		model := item.Role == "assistant" || item.Role == "" && item.Output == nil
		if model && len(talk) > 0 && talk[len(talk)-1].model {
			continue // several items are of one answer
		}
		talk = append(talk, said{model, textOf(item.Content) + textOf(item.Output)})
	}
	return talk, nil
}

func (responses) answer(w http.ResponseWriter, _ Request, s Step, n int) {
	e := &stream{w: w}
	id := fmt.Sprintf("resp_%06d", n)
	e.send("response.created", map[string]any{"response": map[string]any{"id": id}})
	index := 0
	item := func(i map[string]any) {
		e.send("response.output_item.added", map[string]any{"output_index": index, "item": i})
		e.send("response.output_item.done", map[string]any{"output_index": index, "item": i})
		index++
	}
	if s.Text != "" {
		item(map[string]any{"type": "message", "id": id + "_m", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": s.Text}}})
	}
	for i, u := range s.Tools {
		call := fmt.Sprintf("call_%06d_%d", n, i)
		item(map[string]any{"type": "function_call", "id": "fc_" + call, "call_id": call, "name": u.Name, "arguments": string(u.Input)})
	}
	in := s.Input + s.CacheRead + s.CacheWrite
	e.send("response.completed", map[string]any{"response": map[string]any{"id": id, "usage": map[string]any{
		"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": s.CacheRead},
		"output_tokens": s.Output, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": in + s.Output,
	}}})
}

func (responses) fail(w http.ResponseWriter, s Step) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": s.Error, "code": s.Error, "message": "the step says so"}})
}
