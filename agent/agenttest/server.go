// Package agenttest is the other side of coding agents in tests: a server on loopback that
// speaks as their providers do (Messages of Anthropic, Responses of OpenAI), and says what the
// prompt tells it to. So the real programs of agents are tested, at no cost and the same each
// time.
//
// A prompt scripts the answers to itself by steps that [Prompt] writes into it, one for each
// request that the turn takes: text, uses of tools, what usage is told, how long it takes,
// whether it fails. The server keeps no state: it looks for the newest message of the user that
// has steps, and how often the model has spoken since says which is next. Past the last, and
// where a prompt has none, it says "ok". So an answer is the same when a request is repeated,
// and for a subagent, whose prompt has steps of its own.
package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Step is one answer of the model.
type Step struct {
	Text  string `json:"text,omitempty"`
	Tools []Use  `json:"tools,omitempty"`
	// Tokens that it says it has used; 0 in all of the first three means 100 of Input.
	Input      int64  `json:"input,omitempty"`
	CacheRead  int64  `json:"cache_read,omitempty"`
	CacheWrite int64  `json:"cache_write,omitempty"`
	Output     int64  `json:"output,omitempty"` // 0 means 10
	Millis     int64  `json:"ms,omitempty"`     // before it answers
	Status     int    `json:"status,omitempty"` // of HTTP, of an error
	Error      string `json:"error,omitempty"`  // its type, as the provider calls it
}

// A Use is that of a tool.
type Use struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// Uses returns a step that uses one tool, whose input is input as JSON.
func Uses(name string, input any) Step {
	text, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("agenttest: input of %s: %v", name, err))
	}
	return Step{Tools: []Use{{Name: name, Input: text}}}
}

// mark begins a step in a prompt.
const mark = "@step"

// Prompt returns words, and the steps that answer them.
func Prompt(words string, steps ...Step) string {
	var b strings.Builder
	b.WriteString(words)
	for _, s := range steps {
		text, err := json.Marshal(s)
		if err != nil {
			panic(fmt.Sprintf("agenttest: a step: %v", err))
		}
		fmt.Fprintf(&b, "\n%s%s", mark, text)
	}
	return b.String()
}

// A Request is one that the server has answered.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
	System string
	Model  string
	Tools  []string // the names of those that the model was offered
	Since  string   // all text after what the model said last
}

// A Server answers as a provider does. It may be used concurrently.
type Server struct {
	URL string // http://127.0.0.1:PORT

	mu       sync.Mutex
	answer   func(Request) (Step, bool) // nil if all is answered as prompts say
	requests []Request
	answered int
}

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: "http://" + l.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, messages{}) })
	mux.HandleFunc("POST /v1/messages/count_tokens", s.count)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, chat{}) })
	mux.HandleFunc("POST /v1/responses", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, responses{}) })
	web := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = web.Serve(l) }()
	t.Cleanup(func() { _ = web.Close(); <-done })
	return s
}

// Answers has a function answer requests: it returns a step, and whether it does. What it does not answer is answered
// as the prompt says.
func (s *Server) Answers(by func(Request) (Step, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = by
}

// Requests returns what the server was asked, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// A dialect is the protocol of a provider.
type dialect interface {
	// read fills in what a request says, and returns the conversation.
	read(r *Request) ([]said, error)
	answer(w http.ResponseWriter, r Request, s Step, n int)
	fail(w http.ResponseWriter, s Step)
}

// said is what one of the two has said: the model, or whoever talks to it.
type said struct {
	model bool
	text  string
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, d dialect) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	talk, err := d.read(&req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Since = since(talk)
	n := s.note(req)
	step := next(talk)
	s.mu.Lock()
	by := s.answer
	s.mu.Unlock()
	if by != nil {
		if own, answers := by(req); answers {
			step = own.filled()
		}
	}
	if step.Millis > 0 {
		timer := time.NewTimer(time.Duration(step.Millis) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	if step.Status != 0 {
		d.fail(w, step)
		return
	}
	d.answer(w, req, step, n)
}

func (s *Server) note(r Request) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.answered++
	return s.answered
}

func (s *Server) count(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"input_tokens":%d}`, n/4)
}

// since returns what was said after the model spoke last.
func since(talk []said) string {
	var texts []string
	for i := len(talk) - 1; i >= 0 && !talk[i].model; i-- {
		texts = append([]string{talk[i].text}, texts...)
	}
	return strings.Join(texts, "\n")
}

// next returns the step that is due.
func next(talk []said) Step {
	spoken := 0
	for i := len(talk) - 1; i >= 0; i-- {
		if talk[i].model {
			spoken++
			continue
		}
		if steps := stepsIn(talk[i].text); len(steps) > 0 {
			if spoken < len(steps) {
				return steps[spoken].filled()
			}
			break
		}
	}
	return Step{Text: "ok"}.filled()
}

func (s Step) filled() Step {
	if s.Input == 0 && s.CacheRead == 0 && s.CacheWrite == 0 {
		s.Input = 100
	}
	if s.Output == 0 {
		s.Output = 10
	}
	return s
}

// stepsIn finds the steps in a text, wherever they stand.
func stepsIn(text string) (steps []Step) {
	for {
		_, rest, found := strings.Cut(text, mark+"{")
		if !found {
			return steps
		}
		var s Step
		if json.NewDecoder(strings.NewReader("{"+rest)).Decode(&s) == nil {
			steps = append(steps, s)
		}
		text = rest
		if end := jsonEnd("{" + rest); end > 0 { // steps within a step are somebody else's
			text = rest[end-1:]
		}
	}
}

// jsonEnd returns where the JSON value ends that a text begins with; 0 if there is none.
func jsonEnd(text string) int {
	d := json.NewDecoder(strings.NewReader(text))
	var v json.RawMessage
	if d.Decode(&v) != nil {
		return 0
	}
	return int(d.InputOffset())
}
