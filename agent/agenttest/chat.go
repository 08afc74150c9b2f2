package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chat is the Chat Completions API of OpenAI, which others have, too.
type chat struct{}

func (chat) read(r *Request) (talk []said, err error) {
	var in struct {
		Model string `json:"model"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &in); err != nil {
		return nil, err
	}
	r.Model = in.Model
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	for _, m := range in.Messages {
		text := textOf(m.Content)
		if m.Role == "system" {
			r.System += text
			continue
		}
		talk = append(talk, said{m.Role == "assistant", text})
	}
	return talk, nil
}

func (chat) answer(w http.ResponseWriter, r Request, s Step, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(data map[string]any) {
		data["id"], data["object"], data["created"], data["model"] = fmt.Sprintf("chat_%06d", n), "chat.completion.chunk", 1, r.Model
		text, err := json.Marshal(data)
		if err != nil {
			panic(fmt.Sprintf("agenttest: a chunk: %v", err))
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text) // who has gone does not read it
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	choose := func(delta map[string]any, end any) {
		send(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": end}}})
	}
	choose(map[string]any{"role": "assistant", "content": s.Text}, nil)
	stop := "stop"
	for i, u := range s.Tools {
		stop = "tool_calls"
		choose(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": fmt.Sprintf("call_%06d_%d", n, i), "type": "function", "function": map[string]any{"name": u.Name, "arguments": string(u.Input)}}}}, nil)
	}
	choose(map[string]any{}, stop)
	read := s.Input + s.CacheRead + s.CacheWrite
	send(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": read, "completion_tokens": s.Output, "total_tokens": read + s.Output, "prompt_tokens_details": map[string]any{"cached_tokens": s.CacheRead}}})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

func (chat) fail(w http.ResponseWriter, s Step) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": s.Error, "message": "the step says so"}})
}
