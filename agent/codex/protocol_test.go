package codex_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/agenttest"
	"github.com/dialai/dialai/agent/codex"
)

// What the real program does not say when it is asked to is said by this test binary, run again:
// it shakes hands, and answers a message with the lines of a file.

const linesEnv = "DIALAI_TEST_LINES"

func TestMain(m *testing.M) {
	if path := os.Getenv(linesEnv); path != "" {
		replay(path)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func replay(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var l struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			panic(err)
		}
		switch l.Method {
		case "initialize":
			fmt.Printf(`{"id":%s,"result":{"userAgent":"dialai/0 (x)"}}`+"\n", l.ID)
		case "thread/start":
			fmt.Printf(`{"id":%s,"result":{"model":"m","thread":{"id":"t"}}}`+"\n", l.ID)
		case "turn/start":
			fmt.Printf(`{"id":%s,"result":{}}`+"\n%s\n", l.ID, text)
		case "turn/interrupt":
			fmt.Println(ended("interrupted", "null"))
		case "": // an answer, which is told as what it is: a line of no protocol
			fmt.Printf("answer %s\n", in.Bytes())
		}
	}
}

const begin = `{"method":"turn/started","params":{"turn":{"id":"1","status":"inProgress"}}}`

func ended(status, failure string) string {
	return fmt.Sprintf(`{"method":"turn/completed","params":{"turn":{"id":"1","status":%q,"error":%s}}}`, status, failure)
}

// play has an agent say lines in one turn, and returns the session.
func play(t *testing.T, lines ...string) *agenttest.Host {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := agenttest.Open(t, codex.New(self, linesEnv+"="+path, "GORACE=atexit_sleep_ms=0"), agent.Spec{ID: agenttest.ID(t)}, nil)
	h.Say(agent.Message{})
	h.Until(agent.KindDone, 1)
	return h
}

// TestOutcomeTable: what a turn came to, by what its last line says.
func TestOutcomeTable(t *testing.T) {
	because := func(info string) string { return `{"message":"why","codexErrorInfo":` + info + `}` }
	for line, want := range map[string]agent.Outcome{
		ended("completed", "null"):                                                            agent.Finished,
		ended("interrupted", "null"):                                                          agent.Cancelled,
		ended("failed", "null"):                                                               agent.Provider,
		ended("failed", because(`"contextWindowExceeded"`)):                                   agent.Full,
		ended("failed", because(`"unauthorized"`)):                                            agent.Auth,
		ended("failed", because(`"usageLimitExceeded"`)):                                      agent.Limit,
		ended("failed", because(`"serverOverloaded"`)):                                        agent.Provider,
		ended("failed", because(`{"responseStreamConnectionFailed":{"httpStatusCode":403}}`)): agent.Auth,
		ended("failed", because(`{"responseStreamConnectionFailed":{"httpStatusCode":500}}`)): agent.Provider,
		ended("failed", because(`{"responseStreamDisconnected":null}`)):                       agent.Provider,
		ended("a word from the future", because(`5`)):                                         agent.Provider,
	} {
		h := play(t, begin, line)
		if done := agenttest.All[agent.Done](h); len(done) != 1 || done[0].Outcome != want {
			t.Errorf("%s: %+v, want %s", line, done, want)
		}
		h.End()
	}
}

// TestNoise: lines that are no part of the protocol are told or left alone, and what follows them
// counts; every request is answered.
func TestNoise(t *testing.T) {
	h := play(t, `not JSON`, `["a list"]`, `{"method":"novel","params":{"turn":5}}`, `{"id":99,"result":{}}`, `{"id":"text","result":{}}`,
		begin, `{"id":7,"method":"from/the/future","params":[]}`,
		`{"method":"error","params":{"willRetry":true,"error":{"message":"busy"}}}`,
		`{"method":"thread/tokenUsage/updated","params":{"tokenUsage":{"last":{"inputTokens":0}}}}`,
		`{"method":"item/completed","params":{"item":{"type":"commandExecution","id":"never begun"}}}`,
		`{"method":"item/completed","params":{"item":{"type":"agentMessage","id":"a","text":"`+strings.Repeat("x", 9<<20)+`"}}}`,
		ended("completed", "null"))
	h.Until(agent.KindLog, 3) // two of what was no message, and the answer
	logs := agenttest.All[agent.Log](h)
	if logs[0].Text != "not JSON" || logs[1].Text != `["a list"]` || !strings.Contains(logs[2].Text, `"id":7`) || !strings.Contains(logs[2].Text, `"error"`) {
		t.Errorf("%+v", logs)
	}
	if texts := agenttest.All[agent.Text](h); len(texts) != 1 || len(texts[0].Text) != 9<<20 {
		t.Errorf("%d texts", len(texts))
	}
	if got := h.Words(agent.KindRetry, agent.KindUsage, agent.KindHook); len(got) != 1 || got[0] != `retry {"attempt":0,"max":0,"delay_ms":0,"reason":"busy"}` {
		t.Errorf("%q", got)
	}
	h.End()
}

// TestQuestions: the answers to questions go by the ids of these, once, and nothing is granted
// that was not allowed.
func TestQuestions(t *testing.T) {
	path := `{"fileSystem":{"write":["/etc"]}}`
	lines := []string{begin,
		`{"id":1,"method":"item/tool/requestUserInput","params":{"itemId":"i","questions":[{"id":"q1","question":"Which?"},{"id":"q2","question":"Why?"}]}}`,
		`{"id":2,"method":"item/permissions/requestApproval","params":{"itemId":"i","permissions":` + path + `}}`,
		`{"id":3,"method":"item/permissions/requestApproval","params":{"itemId":"i","permissions":` + path + `,"reason":"no"}}`}
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	h := agenttest.Open(t, codex.New(self, linesEnv+"="+file, "GORACE=atexit_sleep_ms=0"), agent.Spec{ID: agenttest.ID(t)}, func(e agent.Event) (agent.Reply, bool) {
		p, ok := e.Body.(agent.Permission)
		return agent.Reply{To: p.ID, Allow: p.ID != "3", Answers: json.RawMessage(`{"Which?":"This","Else?":"That"}`)}, ok
	})
	h.Say(agent.Message{})
	h.Until(agent.KindLog, 3)
	logs := agenttest.All[agent.Log](h)
	for i, want := range []string{`{"id":1,"result":{"answers":{"q1":{"answers":["This"]}}}}`, `{"id":2,"result":{"permissions":` + path + `,"scope":"turn"}}`, `{"id":3,"result":{"permissions":{}}}`} {
		if logs[i].Text != "answer "+want {
			t.Errorf("%q, want %q", logs[i].Text, want)
		}
	}
	if asks := agenttest.All[agent.Permission](h); !asks[0].Question || asks[1].Question {
		t.Errorf("%+v", asks)
	}
	h.End()
}
