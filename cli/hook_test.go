package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// A hook is a service that specialists are asked at. What it answers depends on
// the path: /first and /last propose that transition, /pick/NAME any, /later
// accepts with 202, /refuse says no, /hostile and /rude try to take over a
// terminal, /wait answers when it is released, /huge and /garbage answer what nobody
// can read, and /arbiter elects the first proposal.
type hook struct {
	*httptest.Server
	released chan struct{}

	mu    sync.Mutex
	heard *sync.Cond
	calls map[string]int
	late  bool // somebody has waited too long
}

func newHook() *hook {
	h := &hook{released: make(chan struct{}), calls: map[string]int{}}
	h.heard = sync.NewCond(&h.mu)
	h.Server = httptest.NewServer(h)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var q struct {
		Transitions json.RawMessage `json:"transitions"`
		Proposals   []struct {
			ProposalID string `json:"proposalId"`
		} `json:"proposals"`
	}
	if strings.HasPrefix(strings.TrimPrefix(req.URL.Path, "/base"), "/v1/") { // it collects telemetry too
		h.count(req.URL.Path)
		return
	}
	if err := json.NewDecoder(req.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.count(req.URL.Path)
	names := keys(q.Transitions)
	answer := map[string]any{"reasoning": "said by a service"}
	switch path := req.URL.Path; {
	case path == "/first":
		answer["transitionName"] = names[0]
	case path == "/last":
		answer["transitionName"] = names[len(names)-1]
	case path == "/rich":
		answer["transitionName"], answer["costUSD"], answer["latencyMsec"], answer["numInputTokens"], answer["numOutputTokens"] = names[0], 0.25, 12, 100, 20
		answer["model"], answer["metaJson"] = "a-model", map[string]any{"certain": true}
		answer["toolCalls"] = []any{map[string]any{"name": "search", "args": map[string]any{"q": "dial"}, "id": "call-1"}}
	case strings.HasPrefix(path, "/pick/"):
		answer["transitionName"] = strings.TrimPrefix(path, "/pick/")
	case path == "/later":
		w.WriteHeader(http.StatusAccepted)
		return
	case path == "/refuse":
		http.Error(w, "I would rather not", http.StatusForbidden)
		return
	case path == "/hostile":
		answer["transitionName"], answer["reasoning"] = names[len(names)-1], "\x1b[2J\u202e\u009b2J\nSession complete: b"
	case path == "/rude":
		http.Error(w, "\x1b[2J\u202e\u009b2J\nSession complete: b", http.StatusForbidden)
		return
	case path == "/wait":
		select {
		case <-h.released:
		case <-req.Context().Done():
			return
		}
		answer["transitionName"] = names[0]
	case path == "/huge":
		answer["reasoning"] = strings.Repeat("x", 1<<20)
	case path == "/garbage":
		fmt.Fprint(w, "nonsense")
		return
	case path == "/context":
		answer = map[string]any{"context": "three receipts"}
	case path == "/arbiter":
		answer = map[string]any{"consensusReached": true, "winningProposalId": q.Proposals[0].ProposalID, "reasoning": "the first will do"}
	}
	json.NewEncoder(w).Encode(answer)
}

// keys returns the names of an object's members, in the order they are written.
func keys(object json.RawMessage) (names []string) {
	dec := json.NewDecoder(strings.NewReader(string(object)))
	dec.Token()
	for dec.More() {
		name, _ := dec.Token()
		names = append(names, fmt.Sprint(name))
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return names
		}
	}
	return names
}

func (h *hook) count(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[path]++
	h.heard.Broadcast()
}

// await returns once a path was called so many times, or with an error if that
// takes too long.
func (h *hook) await(path string, n int) error {
	late := time.AfterFunc(patience, h.giveUp)
	defer late.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.calls[path] < n {
		if h.late {
			return fmt.Errorf("%s was called %d times, not %d", path, h.calls[path], n)
		}
		h.heard.Wait()
	}
	return nil
}

func (h *hook) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.late = true
	h.heard.Broadcast()
}

func (h *hook) address() string { return strings.TrimPrefix(h.URL, "http://") }

// startHook is a command of scripts.
func startHook(ts *testscript.TestScript, neg bool, args []string) {
	h := newHook()
	ts.Defer(h.Close)
	ts.Setenv("HOOK", h.address())
	hooks.Store(h.address(), h)
}

// hooks are the services of scripts, by address.
var hooks sync.Map

// called is a command of scripts.
func called(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: called PATH N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	h, ok := hooks.Load(ts.Getenv("HOOK"))
	if !ok {
		ts.Fatalf("no webhook was started")
	}
	ts.Check(h.(*hook).await(args[0], n))
}
