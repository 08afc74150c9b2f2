package claude_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/agenttest"
	"github.com/dialai/dialai/agent/claude"
)

// What the real program does not say when it is asked to is said by this test binary, run again:
// it shakes hands, and answers each message with the lines of a file, between two empty ones.

const linesEnv = "DIALAI_TEST_LINES"

// replay is a program that says what a file has.
func replay(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	turns := strings.Split(string(text), "\n\n")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var l struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
			Request   struct {
				Subtype string `json:"subtype"`
			} `json:"request"`
		}
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			os.Exit(1) // as the real one
		}
		switch {
		case l.Type == "control_request" && l.Request.Subtype == "initialize":
			fmt.Printf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"claude_code_version":"0"}}}`+"\n", l.RequestID)
		case l.Type == "control_request" && l.Request.Subtype == "get_context_usage":
			fmt.Printf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"model":"m","totalTokens":10,"maxTokens":1000000,"autoCompactThreshold":967000,"isAutoCompactEnabled":true}}}`+"\n", l.RequestID)
		case l.Type == "control_response":
			fmt.Printf("answer %s\n", in.Bytes()) // which is told as what it is: a line of no protocol
		case l.Type == "user" && len(turns) > 0:
			fmt.Println(turns[0])
			turns = turns[1:]
			if len(turns) == 0 {
				return // the end of the stream
			}
		}
	}
}

const (
	begin  = `{"type":"system","subtype":"init"}`
	finish = `{"type":"result","subtype":"success","result":"over"}`
)

// play has an agent say lines in one turn, and returns the session once it has ended: after
// the lines of its last turn.
func play(t *testing.T, turns ...string) *agenttest.Host {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(strings.Join(turns, "\n\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := agenttest.Open(t, claude.New(self, linesEnv+"="+path, "GORACE=atexit_sleep_ms=0"), agent.Spec{ID: agenttest.ID(t), Env: []string{"API_KEY=sk-0123456789"}}, nil)
	for i := range turns {
		h.Say(agent.Message{})
		if i < len(turns)-1 {
			h.Until(agent.KindDone, i+1)
		}
	}
	<-h.Ended()
	return h
}

// TestOutcomeTable: what a turn came to, by what its last line says.
func TestOutcomeTable(t *testing.T) {
	for line, want := range map[string]agent.Outcome{
		`{"type":"result","subtype":"success"}`:                                                                      agent.Finished,
		`{"type":"result","subtype":"success","terminal_reason":"completed"}`:                                        agent.Finished,
		`{"type":"result","subtype":"success","is_error":false,"terminal_reason":"aborted_tools"}`:                   agent.Cancelled,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}`: agent.Cancelled,
		`{"type":"result","subtype":"success","is_error":true,"terminal_reason":"blocking_limit"}`:                   agent.Full,
		`{"type":"result","subtype":"error_max_turns","is_error":true}`:                                              agent.Limit,
		`{"type":"result","subtype":"error_max_budget_usd"}`:                                                         agent.Limit,
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":401}`:                               agent.Auth,
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":403}`:                               agent.Auth,
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":400}`:                               agent.Provider,
		`{"type":"result","subtype":"error_during_execution"}`:                                                       agent.Provider,
		`{"type":"system","subtype":"status"}`:                                                                       agent.Crashed,
	} {
		h := play(t, begin+"\n"+line)
		if done := agenttest.All[agent.Done](h); len(done) != 1 || done[0].Outcome != want {
			t.Errorf("%s: %+v, want %s", line, done, want)
		}
	}
}

// TestMeterTable: which lines say how full the context is.
func TestMeterTable(t *testing.T) {
	said := func(id, usage, more string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","usage":%s,"content":[]}%s}`, id, usage, more)
	}
	for name, c := range map[string]struct {
		lines []string
		used  int64
		stale bool
	}{
		"sum without output":  {[]string{said("a", `{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":4000}`, "")}, 321, false},
		"missing counters":    {[]string{said("a", `{"input_tokens":7}`, "")}, 7, false},
		"newest":              {[]string{said("a", `{"input_tokens":7}`, ""), said("b", `{"input_tokens":5}`, "")}, 5, false},
		"same message":        {[]string{said("a", `{"input_tokens":7}`, ""), said("a", `{"input_tokens":9}`, ""), said("a", `{"input_tokens":9}`, "")}, 9, false},
		"subagent":            {[]string{said("a", `{"input_tokens":7}`, ""), said("b", `{"input_tokens":99}`, `,"parent_tool_use_id":"t"`)}, 7, false},
		"sidechain":           {[]string{said("a", `{"input_tokens":7}`, ""), said("b", `{"input_tokens":99}`, `,"isSidechain":true`)}, 7, false},
		"error of the API":    {[]string{said("a", `{"input_tokens":7}`, ""), said("b", `{"input_tokens":0}`, `,"is_api_error_message":true`)}, 7, false},
		"error of the API, 2": {[]string{said("a", `{"input_tokens":7}`, ""), said("b", `{"input_tokens":0}`, `,"isApiErrorMessage":true`)}, 7, false},
		"synthetic":           {[]string{said("a", `{"input_tokens":7}`, ""), strings.Replace(said("b", `{"input_tokens":0}`, ""), `"m"`, `"<synthetic>"`, 1)}, 7, false},
		"all zero":            {[]string{said("a", `{"input_tokens":7}`, ""), said("b", `{"input_tokens":0}`, "")}, 7, true},
		"no usage":            {[]string{said("a", `{"input_tokens":7}`, ""), `{"type":"assistant","message":{"id":"b","content":[]}}`}, 7, false},
		"half a line":         {[]string{said("a", `{"input_tokens":7}`, ""), said("b", `{"input_tokens":99}`, "")[:40]}, 7, false},
		"result":              {[]string{said("a", `{"input_tokens":7}`, ""), `{"type":"result","subtype":"success","usage":{"input_tokens":500}}`}, 7, false},
	} {
		h := play(t, begin+"\n"+strings.Join(c.lines, "\n")+"\n"+finish)
		usage := agenttest.All[agent.Usage](h)
		if len(usage) == 0 || usage[len(usage)-1].Used != c.used || usage[len(usage)-1].Stale != c.stale {
			t.Errorf("%s: %+v", name, usage)
		}
	}
}

// TestNoise: lines that are no part of the protocol are told or left alone, and what follows
// them counts; every request is answered.
func TestNoise(t *testing.T) {
	giant := strings.Repeat("x", 9<<20)
	h := play(t, strings.Join([]string{
		begin, begin, `not JSON, sk-0123456789`, `["a list"]`, `"text"`, `{"type":"novel","anything":[1,2]}`, `{"type":7}`, `{"type":"system","subtype":"unknown","status":5}`,
		`{"type":"control_request","request_id":"r1","request":{"subtype":"from_the_future"}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"nobody","response":{}}}`,
		`{"type":"control_cancel_request","request_id":"nobody"}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"nobody","content":"x"}]}}`,
		`{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"` + giant + `"},{"type":"thinking"}]}}`,
		finish}, "\n"), begin+"\n"+finish)
	if n := len(agenttest.All[agent.TurnStarted](h)); n != 2 {
		t.Errorf("%d turns began, not 2", n)
	}
	if texts := agenttest.All[agent.Text](h); len(texts) != 1 || len(texts[0].Text) != len(giant) {
		t.Errorf("%d texts", len(texts))
	}
	logs := agenttest.All[agent.Log](h)
	if len(logs) < 3 || logs[0].Text != "not JSON, ***" || logs[0].Stream != "stdout" {
		t.Errorf("%+v", logs)
	}
	if got := answer(h, "r1"); !strings.Contains(got, `"subtype":"error"`) {
		t.Errorf("a request that is not known was answered %q", got)
	}
	if done := agenttest.All[agent.Done](h); len(done) != 2 || done[0].Outcome != agent.Finished {
		t.Errorf("%+v", done)
	}
}

// answer is what a program was answered; "" is nothing.
func answer(h *agenttest.Host, request string) string {
	for _, l := range agenttest.All[agent.Log](h) {
		if strings.HasPrefix(l.Text, "answer ") && strings.Contains(l.Text, `"request_id":"`+request+`"`) {
			return l.Text
		}
	}
	return ""
}

// TestWhoMayUse: tools of the host are for the main agent, without a question; what is refused
// without a reason is, too.
func TestWhoMayUse(t *testing.T) {
	ask := func(id, tool, more string) string {
		return `{"type":"control_request","request_id":"` + id + `","request":{"subtype":"can_use_tool","tool_name":"` + tool + `","input":{"a":1}` + more + `}}`
	}
	h := play(t, strings.Join([]string{begin, ask("main", "mcp__dialai__submit", ""), ask("sub", "mcp__dialai__submit", `,"agent_id":"x"`),
		ask("own", "Bash", `,"agent_id":"x"`), finish}, "\n"), begin+"\n"+finish, "")
	h.Until(agent.KindDone, 2)
	if got := answer(h, "main"); !strings.Contains(got, `"behavior":"allow","updatedInput":{"a":1}`) {
		t.Errorf("the main agent: %q", got)
	}
	if got := answer(h, "sub"); !strings.Contains(got, `"behavior":"deny"`) {
		t.Errorf("a subagent: %q", got)
	}
	if asks := agenttest.All[agent.Permission](h); len(asks) != 1 || asks[0].ID != "own" || asks[0].Parent != "x" {
		t.Errorf("%+v", asks)
	}
}

// TestUnprompted: a turn that no message has led to says so.
func TestUnprompted(t *testing.T) {
	h := play(t, `{"type":"command_lifecycle","command_uuid":"u","state":"started"}`+"\n"+begin+"\n"+finish+"\n"+begin+"\n"+finish, "")
	begun, done := agenttest.All[agent.TurnStarted](h), agenttest.All[agent.Done](h)
	if len(begun) != 2 || begun[0].Unprompted || !begun[1].Unprompted || done[0].Unprompted || !done[1].Unprompted {
		t.Errorf("%+v, %+v", begun, done)
	}
}

// TestRefusedCredentials: the program would try ten times; the first time is the last.
func TestRefusedCredentials(t *testing.T) {
	h := play(t, begin+"\n"+`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":512.5,"error_status":401,"error":"authentication_failed"}`+"\n"+
		`{"type":"result","subtype":"success","terminal_reason":"aborted_streaming"}`, "")
	if done := agenttest.All[agent.Done](h); done[0].Outcome != agent.Auth || done[0].Problem == "" {
		t.Errorf("%+v", done)
	}
	if got := h.Words(agent.KindRetry); len(got) != 1 || got[0] != `retry {"attempt":1,"max":10,"delay_ms":512,"status":401,"reason":"authentication_failed"}` {
		t.Errorf("%q", got)
	}
}

// TestSubagentCall: a tool of the host that a subagent uses is refused, also if the program has
// not asked whether it may.
func TestSubagentCall(t *testing.T) {
	call := func(use string) string {
		return `{"type":"control_request","request_id":"c-` + use + `","request":{"subtype":"mcp_message","server_name":"dialai","message":{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"submit","arguments":{},"_meta":{"claudecode/toolUseId":"` + use + `"}}}}}`
	}
	uses := func(id, parent string) string {
		return `{"type":"assistant","parent_tool_use_id":` + parent + `,"message":{"id":"m` + id + `","content":[{"type":"tool_use","id":"` + id + `","name":"mcp__dialai__submit","input":{}}]}}`
	}
	h := play(t, strings.Join([]string{begin, uses("u1", `"spawn"`), call("u1"), uses("u2", "null"), call("u2"), finish}, "\n"), "")
	if calls := agenttest.All[agent.ToolCall](h); len(calls) != 1 || calls[0].ID != "c-u2" {
		t.Errorf("%+v", calls)
	}
}

// TestBackpressure: a host that does not read its events does not keep anybody from answering.
func TestBackpressure(t *testing.T) {
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","content":[{"type":"text","text":"x"}]}}`, i))
	}
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(begin+"\n"+strings.Join(lines, "\n")+"\n"+finish), 0o600); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	events := make(chan agent.Event)
	s, err := claude.New(self, linesEnv+"="+path, "GORACE=atexit_sleep_ms=0").Open(context.Background(), agent.Spec{ID: agenttest.ID(t)}, events)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := s.Send(context.Background(), agent.Message{Content: strings.Repeat("y", 10_000)}); err != nil {
			t.Fatal(err)
		}
	}
	texts := 0
	for e := range events {
		switch e.Body.(type) {
		case agent.Text:
			texts++
		case agent.Exited:
			if texts != len(lines) {
				t.Errorf("%d texts", texts)
			}
			return
		}
	}
}
