package cli_test

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dialai/dialai/llm/llmtest"
)

// modelServers are the servers of models of scripts, by address.
var modelServers sync.Map

// startModel is a command of scripts. What a model says is in its name: pick-X
// calls the tool X, second-X does once a slow one was asked, mend-X after an answer that is
// none, judge-unsafe and judge-safe classify, say-X is a text, and status-N an error.
func startModel(ts *testscript.TestScript, neg bool, args []string) {
	s, err := llmtest.Start(newScripted().play)
	ts.Check(err)
	ts.Defer(func() { s.Close() })
	ts.Setenv("DIALAI_LLM_BASE_URL", s.URL)
	modelServers.Store(s.URL, s)
}

// scripted are the models of one server.
type scripted struct {
	slow chan struct{} // is closed once a slow one was asked
	once sync.Once
}

func newScripted() *scripted { return &scripted{slow: make(chan struct{})} }

func (m *scripted) play(n int, c llmtest.Call) llmtest.Reply {
	kind, rest, _ := strings.Cut(c.Model, "-")
	usage := llmtest.Usage{Input: 1000, Output: 100}
	switch kind {
	case "second":
		select {
		case <-m.slow:
		case <-time.After(patience):
		}
		fallthrough
	case "pick":
		return llmtest.Reply{Text: "said by a model", Tools: []llmtest.Tool{{Name: rest, Args: "{}"}}, Usage: usage}
	case "mend":
		if !strings.Contains(c.User, "could not be used") {
			return llmtest.Reply{Text: "let me think", Usage: usage}
		}
		return llmtest.Reply{Tools: []llmtest.Tool{{Name: rest, Args: "{}"}}, Usage: usage}
	case "status":
		status, _ := strconv.Atoi(rest)
		return llmtest.Reply{Status: status, Body: `{"error":{"message":"no: ` + c.Key + `"}}`}
	case "judge":
		return llmtest.Reply{Text: `{"unsafe":` + strconv.FormatBool(rest == "unsafe") + `,"score":0.5,"code":"fraud"}`, Usage: usage}
	case "slow":
		m.once.Do(func() { close(m.slow) })
		return llmtest.Reply{Text: rest, Delay: time.Hour}
	}
	return llmtest.Reply{Text: strings.ReplaceAll(rest, "_", " "), Usage: usage}
}

// asked is a command of scripts.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: asked N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	s, ok := modelServers.Load(ts.Getenv("DIALAI_LLM_BASE_URL"))
	if !ok {
		ts.Fatalf("no server of models was started")
	}
	if got := len(s.(*llmtest.Server).Calls()); got != n {
		ts.Fatalf("models were asked %d times, want %d", got, n)
	}
}
