// Package llmtest is the other side of package llm: a server on loopback that
// speaks the formats of OpenAI's chat completions, Anthropic's messages and
// Google's generateContent, and answers what a test or a demonstration tells it
// to.
package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Call is what a model was asked, whatever the format.
type Call struct {
	API    string // chat, messages or generate
	Model  string
	Key    string // that came with it; "" if there was none
	System string
	User   string
	Tools  []string // their names, in order
	Body   map[string]any
}

// A Reply is what a model says. The zero Reply is an empty text.
type Reply struct {
	Text    string
	Tools   []Tool
	Finish  string // stop, tool_calls, length, refusal or content_filter; "" lets it follow from the rest
	Refusal string
	Model   string // that answers; "" is the one that was asked
	NoUsage bool
	Usage   Usage
	// LogProbs are those of the text's tokens, which are its characters.
	LogProbs []float64

	Status     int    // 0 is 200
	Body       string // instead of all of the above
	RetryAfter string
	Delay      time.Duration // before it answers
	Slow       time.Duration // in the middle of the body
	Truncate   bool          // the body breaks off in the middle
	Reset      bool          // the connection breaks off without an answer
}

// A Tool is one call of a tool. Args is what the model writes, JSON or not.
type Tool struct{ Name, Args string }

// A Usage is what a provider counts. Zero input and output become 100 and 10.
type Usage struct {
	Input, Output, Cached, Reasoning int64
	Cost                             string // a JSON number, of chat only; "" is none
}

// A Server answers calls. Close it when it is no longer needed.
type Server struct {
	URL string // without a slash at the end

	answer func(n int, c Call) Reply
	server http.Server
	done   chan struct{}

	mu    sync.Mutex
	calls []Call
}

// Start returns a server on loopback. answer is told how many calls there were
// before; it may be called concurrently.
func Start(answer func(n int, c Call) Reply) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + l.Addr().String(), answer: answer, done: make(chan struct{})}
	s.server.Handler = s
	s.server.ReadHeaderTimeout = 10 * time.Second
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l) // until it is closed
	}()
	return s, nil
}

// Script returns an answer that gives replies in order; the last one for good.
func Script(replies ...Reply) func(int, Call) Reply {
	return func(n int, _ Call) Reply { return replies[min(n, len(replies)-1)] }
}

// Close stops the server and waits for it.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// Calls returns all calls so far, in the order in which they came.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := readCall(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	n := len(s.calls)
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	s.reply(w, r, &c, s.answer(n, c))
}

func (s *Server) reply(w http.ResponseWriter, r *http.Request, c *Call, p Reply) {
	if !waited(r, p.Delay) {
		return
	}
	if p.Reset {
		panic(http.ErrAbortHandler)
	}
	body := p.Body
	if body == "" {
		body = string(p.encode(c))
	}
	if p.RetryAfter != "" {
		w.Header().Set("Retry-After", p.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(max(p.Status, 200))
	half := len(body) / 2
	if !p.Truncate && p.Slow == 0 {
		half = 0
	}
	if half > 0 {
		_, _ = io.WriteString(w, body[:half])
		_ = http.NewResponseController(w).Flush()
	}
	if p.Truncate {
		panic(http.ErrAbortHandler)
	}
	if waited(r, p.Slow) {
		_, _ = io.WriteString(w, body[half:])
	}
}

// waited waits, and reports whether somebody still wants to know.
func waited(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// readCall reads a request in any of the formats.
func readCall(r *http.Request) (c Call, err error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c.Body); err != nil {
		return c, fmt.Errorf("the body is no JSON object: %w", err)
	}
	c.Model, _ = c.Body["model"].(string)
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		c.API, c.Key = "chat", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		for _, m := range list(c.Body["messages"]) {
			if text := str(m, "content"); str(m, "role") == "system" {
				c.System = text
			} else {
				c.User = text
			}
		}
		for _, t := range list(c.Body["tools"]) {
			c.Tools = append(c.Tools, str(t, "function", "name"))
		}
	case strings.HasSuffix(r.URL.Path, "/messages"):
		c.API, c.Key, c.System = "messages", r.Header.Get("X-Api-Key"), str(c.Body, "system")
		for _, m := range list(c.Body["messages"]) {
			c.User = str(m, "content")
		}
		for _, t := range list(c.Body["tools"]) {
			c.Tools = append(c.Tools, str(t, "name"))
		}
	case strings.HasSuffix(r.URL.Path, ":generateContent"):
		c.API, c.Key = "generate", r.Header.Get("X-Goog-Api-Key")
		c.Model = strings.TrimSuffix(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], ":generateContent")
		c.System, c.User = parts(c.Body["systemInstruction"]), ""
		for _, m := range list(c.Body["contents"]) {
			c.User += parts(m)
		}
		for _, t := range list(c.Body["tools"]) {
			for _, f := range list(at(t, "functionDeclarations")) {
				c.Tools = append(c.Tools, str(f, "name"))
			}
		}
	default:
		return c, fmt.Errorf("no API has the path %s", r.URL.Path)
	}
	return c, nil
}

func list(v any) []any { l, _ := v.([]any); return l }

func at(v any, path ...string) any {
	for _, name := range path {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

func str(v any, path ...string) string { s, _ := at(v, path...).(string); return s }

func parts(v any) (text string) {
	for _, p := range list(at(v, "parts")) {
		text += str(p, "text")
	}
	return text
}
