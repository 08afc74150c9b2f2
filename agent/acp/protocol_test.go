package acp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/acp"
	"github.com/dialai/dialai/agent/agenttest"
)

// This test binary, run again, is an agent that shakes hands and answers a prompt with the lines
// of a file, or the relay of the host's tools.

const (
	linesEnv = "DIALAI_TEST_LINES"
	helloEnv = "DIALAI_TEST_HELLO"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "relay":
		if err := acp.Relay(os.Stdin, os.Stdout, os.Getenv); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv(linesEnv) != "":
		replay(os.Getenv(linesEnv))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A told is what the host sends.
type told struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Servers []struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
			Env     []struct{ Name, Value string }
		} `json:"mcpServers"`
		Prompt []struct{ Text string } `json:"prompt"`
	} `json:"params"`
}

// replay is the agent. A line of the file is printed as it is, but "ask TEXT", which has the tool
// submit called over the relay, and "wait", after which the rest follows session/cancel, and "answers N", after which it follows
// the N-th answer.
func replay(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	hello := os.Getenv(helloEnv)
	if hello == "" {
		hello = `{"protocolVersion":1,"agentInfo":{"name":"replayed","version":"0"},"agentCapabilities":{"loadSession":true}}`
	}
	var tool func(input string) string
	var rest []string
	var turn json.RawMessage
	answered, need := 0, 0
	play := func(lines []string) {
		for i, l := range lines {
			if input, asks := strings.CutPrefix(l, "ask "); asks {
				fmt.Printf("asked %s\n", tool(input))
				continue
			}
			if l == "die" {
				os.Exit(3)
			}
			if l == "wait" {
				rest = lines[i+1:]
				return
			}
			if n, err := fmt.Sscanf(l, "answers %d", &need); n == 1 && err == nil && answered < need {
				rest = lines[i+1:]
				return
			} else if n == 1 {
				continue
			}
			fmt.Println(strings.ReplaceAll(l, "TURN", string(turn)))
		}
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var l told
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			panic(err)
		}
		switch l.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", l.ID, hello)
		case "session/new", "session/load", "session/resume":
			if len(l.Params.Servers) > 0 {
				tool = relayed(l)
			}
			if l.Method == "session/load" {
				fmt.Println(says("s1", "OF BEFORE"))
			}
			if strings.Contains(in.Text(), `"sessionId":"lost"`) {
				fmt.Printf(`{"id":%s,"error":{"code":-32603,"message":"no such session"}}`+"\n", l.ID)
				continue
			}
			fmt.Printf(`{"id":%s,"result":{"sessionId":"s1"}}`+"\n", l.ID)
		case "session/prompt":
			turn = l.ID
			fmt.Printf("prompted %q\n", l.Params.Prompt[0].Text)
			play(strings.Split(string(text), "\n"))
		case "session/cancel":
			play(rest)
		case "": // an answer, which is told as what it is: a line of no protocol
			fmt.Printf("answer %s\n", in.Bytes())
			if answered++; answered == need {
				play(rest)
			}
		}
	}
}

// relayed starts the relay and returns how to use the host's tool submit.
func relayed(l told) func(input string) string {
	server := l.Params.Servers[0]
	cmd := exec.Command(server.Command, server.Args...)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, linesEnv) {
			cmd.Env = append(cmd.Env, e)
		}
	}
	for _, e := range server.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	from, err2 := cmd.StdoutPipe()
	if err = errors.Join(err, err2, cmd.Start()); err != nil {
		panic(err)
	}
	answers := bufio.NewReader(from)
	say := func(line string) string {
		_, _ = io.WriteString(to, line+"\n")
		text, err := answers.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(text)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"nothing"}}`,
	} {
		fmt.Printf("mcp %s\n", say(line))
	}
	return func(input string) string {
		return say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"submit","arguments":` + input + `}}`)
	}
}

func says(session, text string) string {
	return fmt.Sprintf(`{"method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, session, text)
}

func updates(update string) string {
	return `{"method":"session/update","params":{"sessionId":"s1","update":` + update + `}}`
}

func ends(stopReason string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":TURN,"result":{"stopReason":%q}}`, stopReason)
}

func asksFor(id int, call string) string {
	return fmt.Sprintf(`{"id":%d,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":%s,"options":[{"optionId":"always","kind":"allow_always"},{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}`, id, call)
}

var submit = agent.Tool{Name: "submit", Description: "Submit a move.", InputSchema: json.RawMessage(`{"type":"object","properties":{"transition":{"type":"string"}}}`)}

// opened opens a session whose agent says lines when it is prompted.
func opened(t *testing.T, spec agent.Spec, reply func(agent.Event) (agent.Reply, bool), lines ...string) *agenttest.Host {
	t.Helper()
	spec.ID, spec.Cwd = agenttest.ID(t), t.TempDir()
	return agenttest.Open(t, agentOf(t, lines...), spec, reply)
}

func agentOf(t *testing.T, lines ...string) *acp.Agent {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return acp.New([]string{self, "relay"}, []string{self}, linesEnv+"="+path, "GORACE=atexit_sleep_ms=0")
}

// logs returns the lines of no protocol that begin so, without that.
func logs(h *agenttest.Host, prefix string) (list []string) {
	for _, l := range agenttest.All[agent.Log](h) {
		if text, of := strings.CutPrefix(l.Text, prefix+" "); of {
			list = append(list, text)
		}
	}
	return list
}

// TestConversation: what a turn says and does, in its order; the persona is in the first prompt.
func TestConversation(t *testing.T) {
	h := opened(t, agent.Spec{SystemPrompt: "You are number one."}, nil,
		says("s1", "I "), says("s1", "make it."), updates(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`),
		updates(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"touch a","kind":"execute","status":"pending","rawInput":{}}`),
		updates(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress","rawInput":{"command":"touch a"}}`),
		asksFor(7, `{"toolCallId":"c1","title":"touch a","kind":"execute"}`),
		"answers 1", updates(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","rawOutput":"done"}`),
		updates(`{"sessionUpdate":"usage_update","used":53000,"size":200000,"cost":{"amount":0.25,"currency":"USD"}}`), updates(`{"sessionUpdate":"usage_update","used":0,"size":200000}`),
		says("another", "NOT MINE"), says("s1", "It is there."), ends("end_turn"))
	h.Say(agent.Message{ID: "m", Content: "Make a."})
	done := h.Until(agent.KindDone, 1).Body.(agent.Done)
	if done.Outcome != agent.Finished || done.Text != "It is there." || done.AgentSession != "s1" {
		t.Errorf("%+v", done)
	}
	want := []string{
		`receipt {"msg_id":"m","state":"queued"}`, `turn_started {}`, `receipt {"msg_id":"m","state":"started"}`, `text {"text":"I make it.","message_id":"s1-1"}`,
		`tool {"tool_use_id":"c1","tool":"Bash","input":{"command":"touch a"}}`, `permission {"ask":"ask-1","tool":"Bash","input":{"command":"touch a"},"tool_use_id":"c1"}`,
	}
	if got := h.Words(agent.KindReceipt, agent.KindTurn, agent.KindText, agent.KindToolUse, agent.KindPermission); strings.Join(got[:6], "\n") != strings.Join(want, "\n") {
		t.Errorf("it told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := logs(h, "prompted"); len(got) != 1 || got[0] != `"You are number one.\n\nMake a."` {
		t.Errorf("prompted with %s", got)
	}
	if got := logs(h, "answer"); len(got) != 1 || got[0] != `{"id":7,"jsonrpc":"2.0","result":{"outcome":{"optionId":"yes","outcome":"selected"}}}` {
		t.Errorf("answered %s", got)
	}
	usage := agenttest.All[agent.Usage](h)
	if len(usage) != 2 || usage[0].Used != 53000 || usage[0].Ceiling != 200000 || *usage[0].CostUSD != 0.25 || !usage[1].Stale {
		t.Errorf("%+v", usage)
	}
	if texts := agenttest.All[agent.Text](h); len(texts) != 2 {
		t.Errorf("%+v", texts)
	}
	h.End()
}

// TestDenied: a refusal is for once, its reason is in the next prompt, and an agent that offers no
// way to allow once is not allowed.
func TestDenied(t *testing.T) {
	h := opened(t, agent.Spec{}, func(e agent.Event) (agent.Reply, bool) {
		p, ok := e.Body.(agent.Permission)
		return agent.Reply{To: p.ID, Allow: p.Tool == "acp__delete", Reason: "not now"}, ok
	}, asksFor(1, `{"toolCallId":"c1","title":"rm a","kind":"execute","rawInput":{"command":"rm a"}}`),
		`{"id":2,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c2","title":"x","kind":"delete"},"options":[{"optionId":"ever","kind":"allow_always"}]}}`,
		`{"id":3,"method":"session/request_permission","params":{"sessionId":"other","toolCall":{"toolCallId":"c2"},"options":[{"optionId":"yes","kind":"allow_once"}]}}`,
		`{"id":4,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"/etc/passwd"}}`, `{"id":5,"method":"terminal/create","params":{"sessionId":"s1"}}`, "answers 5", ends("end_turn"))
	h.Say(agent.Message{ID: "m", Content: "Go."})
	h.Until(agent.KindDone, 1)
	h.Say(agent.Message{ID: "n", Content: "On."})
	h.Until(agent.KindDone, 2)
	answers := strings.Join(logs(h, "answer"), "\n")
	for _, want := range []string{`{"id":1,"jsonrpc":"2.0","result":{"outcome":{"optionId":"no","outcome":"selected"}}}`, `{"id":2,"jsonrpc":"2.0","result":{"outcome":{"outcome":"cancelled"}}}`,
		`{"id":3,"jsonrpc":"2.0","result":{"outcome":{"outcome":"cancelled"}}}`, `"id":4,"jsonrpc":"2.0"`, `unsupported: terminal/create`} {
		if !strings.Contains(answers, want) {
			t.Errorf("%s is not among\n%s", want, answers)
		}
	}
	if n := len(agenttest.All[agent.Permission](h)); n != 4 { // two in each turn: nothing of another session
		t.Errorf("%d permissions were asked for", n)
	}
	if got := logs(h, "prompted"); len(got) != 2 || got[1] != `"What was refused in the last turn, and why:\n- Bash: not now\n\nOn."` && !strings.Contains(got[1], `- Bash: not now\n`) {
		t.Errorf("prompted with %q", got)
	}
	h.End()
}

// TestTools: the host's tools reach the agent over the relay, in a folder of their own, and an
// agent asks nobody for them.
func TestTools(t *testing.T) {
	h := opened(t, agent.Spec{Tools: []agent.Tool{submit}}, func(e agent.Event) (agent.Reply, bool) {
		c, ok := e.Body.(agent.ToolCall)
		return agent.Reply{To: c.ID, Content: "taken: " + string(c.Input), Notice: "Nearly full.", IsError: strings.Contains(string(c.Input), "bad")}, ok
	}, asksFor(1, `{"toolCallId":"c1","title":"dialai_submit","kind":"other","rawInput":{"transition":"report"}}`), `ask {"transition":"report"}`, `ask {"transition":"bad"}`, ends("end_turn"))
	h.Say(agent.Message{ID: "m", Content: "Go."})
	h.Until(agent.KindDone, 1)
	if got := logs(h, "asked"); len(got) != 2 || !strings.Contains(got[0], `"text":"taken: {\"transition\":\"report\"}\n\nNearly full."`) || !strings.Contains(got[0], `"isError":false`) || !strings.Contains(got[1], `"isError":true`) {
		t.Errorf("the agent was told %q", got)
	}
	mcp := logs(h, "mcp")
	for i, want := range []string{`"code":-32601`, `"protocolVersion":"2025-11-25"`, `"result":{}`, `"name":"submit"`, `there is no tool nothing`} {
		if i >= len(mcp) || !strings.Contains(mcp[i], want) {
			t.Errorf("line %d of the relay is %q, want %s", i, mcp, want)
		}
	}
	if n := len(agenttest.All[agent.Permission](h)); n != 0 {
		t.Errorf("%d permissions were asked for", n)
	}
	h.End()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "dialai-*", "s")); len(left) > 0 {
		t.Logf("sockets of other sessions: %v", left)
	}
}

// TestUnasked: an agent that runs something without asking is interrupted, unless it is trusted.
func TestUnasked(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		h := opened(t, agent.Spec{TrustAgent: trusted}, nil, updates(`{"sessionUpdate":"tool_call","toolCallId":"c1","kind":"execute","status":"in_progress","rawInput":{"command":"touch a"}}`),
			updates(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`), map[bool]string{true: ends("end_turn"), false: "wait"}[trusted], ends("cancelled"))
		h.Say(agent.Message{ID: "m", Content: "Go."})
		done := h.Until(agent.KindDone, 1).Body.(agent.Done)
		problems := agenttest.All[agent.Failed](h)
		if interrupted := done.Outcome == agent.Cancelled && len(problems) == 1 && problems[0].Code == "unasked"; interrupted == trusted {
			t.Errorf("trusted %v: %+v, %+v", trusted, done, problems)
		}
		h.End()
	}
}

// TestCounts: an agent's own count of tokens goes before ours, a cost of nothing is none, and the
// model is that of its configuration.
func TestCounts(t *testing.T) {
	h := opened(t, agent.Spec{}, nil, updates(`{"sessionUpdate":"usage_update","used":1000,"size":200000,"cost":{"amount":0,"currency":"USD"}}`),
		`{"id":TURN,"result":{"stopReason":"end_turn","usage":{"inputTokens":900,"outputTokens":50,"cachedReadTokens":100}}}`)
	h.Say(agent.Message{ID: "m", Content: "Go."})
	h.Until(agent.KindDone, 1)
	usage := agenttest.All[agent.Usage](h)
	if len(usage) != 2 || usage[0].CostUSD != nil || usage[0].Tokens.In != 1000 || usage[1].Tokens != (agent.Tokens{In: 900, Out: 50, CacheRead: 100}) || usage[1].Used != 1000 {
		t.Errorf("%+v", usage)
	}
	h.End()
}

// TestFailsClosed: what only calls itself a tool of the host is asked for, an id that comes twice is
// two questions, a search is no known tool, and what the host does not let the agent have is
// refused without a question.
func TestFailsClosed(t *testing.T) {
	h := opened(t, agent.Spec{Tools: []agent.Tool{submit}, OwnTools: []string{"Bash"}}, func(e agent.Event) (agent.Reply, bool) {
		p, ok := e.Body.(agent.Permission)
		return agent.Reply{To: p.ID, Allow: strings.Contains(string(p.Input), "one")}, ok
	}, asksFor(1, `{"toolCallId":"c1","title":"dialai_submit","rawInput":{"command":"rm -rf /"}}`),
		asksFor(2, `{"toolCallId":"c2","kind":"execute","rawInput":{"command":"one"}}`), asksFor(2, `{"toolCallId":"c3","kind":"execute","rawInput":{"command":"two"}}`),
		asksFor(3, `{"toolCallId":"c4","kind":"search","title":"Grep for x","rawInput":{"filePath":"/etc/x"}}`), asksFor(4, `{"toolCallId":"c5","kind":"edit","rawInput":{}}`),
		"answers 5", ends("end_turn"), asksFor(5, `{"toolCallId":"c6","kind":"execute","rawInput":{"command":"one, after the turn"}}`))
	h.Say(agent.Message{ID: "m", Content: "Go."})
	h.Until(agent.KindDone, 1)
	h.Until(agent.KindLog, 12) // five lines of the relay, the prompt and six answers
	var tools []string
	for _, p := range agenttest.All[agent.Permission](h) {
		tools = append(tools, p.Tool)
	}
	if got := strings.Join(tools, " "); got != "acp__other Bash Bash acp__search" {
		t.Errorf("asked for were %s", got)
	}
	yes := 0
	for _, a := range logs(h, "answer") {
		if strings.Contains(a, `"yes"`) {
			yes++
		}
	}
	if yes != 1 {
		t.Errorf("%d were allowed, want the one\n%s", yes, strings.Join(logs(h, "answer"), "\n"))
	}
	h.End()
}

// TestInterrupt: a cancelled turn answers what is open with cancelled, and tells that it is no
// longer asked; an answer that comes too late is stale.
func TestInterrupt(t *testing.T) {
	h := opened(t, agent.Spec{}, func(agent.Event) (agent.Reply, bool) { return agent.Reply{}, false }, asksFor(1, `{"toolCallId":"c1","kind":"execute","rawInput":{"command":"make"}}`), "wait", ends("cancelled"))
	h.Say(agent.Message{ID: "m", Content: "Go."})
	h.Until(agent.KindPermission, 1)
	h.Say(agent.Message{ID: "later", Content: "Then."})
	if err := h.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.Outcome != agent.Cancelled {
		t.Errorf("%+v", done)
	}
	h.Until(agent.KindWithdrawn, 1)
	if err := h.Answer(t.Context(), agent.Reply{To: "ask-1", Allow: true}); !errors.Is(err, agent.ErrStale) {
		t.Errorf("a late answer: %v", err)
	}
	h.Until(agent.KindPermission, 2) // of the message that waited
	if got := logs(h, "answer"); len(got) != 1 || !strings.Contains(got[0], `"outcome":"cancelled"`) {
		t.Errorf("answered %q", got)
	}
	if err := h.Send(t.Context(), agent.Message{ID: "x", Content: "Now!", Deliver: agent.Now}); err == nil {
		t.Error("a message that ends the turn was taken")
	}
	h.End()
}

// TestOutcomes: what a turn came to, by its last line; an agent that ends in it has crashed.
func TestOutcomes(t *testing.T) {
	for line, want := range map[string]agent.Outcome{
		ends("end_turn"): agent.Finished, ends("cancelled"): agent.Cancelled, ends("max_tokens"): agent.Limit, ends("max_turn_requests"): agent.Limit,
		ends("refusal"): agent.Provider, ends("a word from the future"): agent.Provider, `{"id":TURN,"result":null}`: agent.Provider,
		`{"id":TURN,"error":{"code":-32000,"message":"sign in"}}`: agent.Auth, `{"id":TURN,"error":{"code":-32603,"message":"busy"}}`: agent.Provider,
	} {
		h := opened(t, agent.Spec{}, nil, says("s1", "text"), line)
		h.Say(agent.Message{ID: "m", Content: "Go."})
		if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.Outcome != want || done.Text != "text" {
			t.Errorf("%s: %+v, want %s", line, done, want)
		}
		h.End()
	}
}

// TestNoise: lines that are no part of the protocol are told or left alone, and what follows them
// counts.
func TestNoise(t *testing.T) {
	h := opened(t, agent.Spec{}, nil, `not JSON`, `["a list"]`, `{"method":"novel","params":{"update":5}}`, `{"id":99,"result":{}}`, `{"id":"text","result":{}}`,
		updates(`{"sessionUpdate":"from_the_future","content":[1]}`), updates(`{"sessionUpdate":"tool_call","toolCallId":5}`), updates(`{"sessionUpdate":"tool_call_update","toolCallId":"never begun","status":"completed"}`),
		says("s1", strings.Repeat("x", 9<<20)), ends("end_turn"))
	h.Say(agent.Message{ID: "m", Content: "Go."})
	h.Until(agent.KindDone, 1)
	if texts := agenttest.All[agent.Text](h); len(texts) != 1 || len(texts[0].Text) != 9<<20 {
		t.Errorf("%d texts", len(texts))
	}
	h.End()
}

// TestResume: a session that was loaded tells nothing of before, the persona is not said again,
// and one that is gone is unknown.
func TestResume(t *testing.T) {
	h := opened(t, agent.Spec{Resume: "s1", SystemPrompt: "persona"}, nil, says("s1", "On."), ends("end_turn"))
	if o := h.Until(agent.KindOpened, 1).Body.(agent.Opened); !o.Resumed || o.AgentSession != "s1" || !o.Capabilities.Resume || o.Version != "replayed 0" {
		t.Errorf("%+v", o)
	}
	h.Say(agent.Message{ID: "m", Content: "Go."})
	h.Until(agent.KindDone, 1)
	if got := logs(h, "prompted"); len(got) != 1 || got[0] != `"Go."` {
		t.Errorf("prompted with %s", got)
	}
	if texts := agenttest.All[agent.Text](h); len(texts) != 1 || texts[0].Text != "On." {
		t.Errorf("%+v", texts)
	}
	h.End()
	_, err := agentOf(t).Open(t.Context(), agent.Spec{ID: agenttest.ID(t), Cwd: t.TempDir(), Resume: "lost"}, make(chan agent.Event))
	if !errors.Is(err, agent.ErrUnknown) || !strings.Contains(err.Error(), "no such session") {
		t.Errorf("a session that is gone: %v", err)
	}
}

// TestOtherVersion: an agent of another version of the protocol is refused, with both.
func TestOtherVersion(t *testing.T) {
	t.Setenv(helloEnv, `{"protocolVersion":2}`)
	if _, err := agentOf(t).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "speaks version 2 of the protocol, and only 1 is known") {
		t.Errorf("it says %v", err)
	}
	t.Setenv(helloEnv, `{"protocolVersion":1}`)
	if info, err := agentOf(t).Check(t.Context()); err != nil || info.Capabilities.Resume || !info.Capabilities.Permission {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := acp.New(nil, []string{"there-is-no-such-program"}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "there-is-no-such-program") {
		t.Errorf("it says %v", err)
	}
	if _, err := acp.New(nil, nil).Check(t.Context()); err == nil {
		t.Error("no program is one")
	}
}

// TestCrash: an agent that ends in its turn has crashed, and takes the turn with it; half a line is
// told as what it is.
func TestCrash(t *testing.T) {
	h := opened(t, agent.Spec{}, nil, says("s1", "half"), `{"id":`, "die")
	h.Say(agent.Message{ID: "m", Content: "Go."})
	<-h.Ended()
	if done := agenttest.All[agent.Done](h); len(done) != 1 || done[0].Outcome != agent.Crashed || done[0].Text != "half" {
		t.Errorf("%+v", done)
	}
	if exits := agenttest.All[agent.Exited](h); len(exits) != 1 || exits[0].Code != 3 {
		t.Errorf("%+v", exits)
	}
	h.End()
}

// TestRelayAlone: the relay says what it is missing, and whoever has not the token is not heard.
func TestRelayAlone(t *testing.T) {
	none := func(string) string { return "" }
	if err := acp.Relay(strings.NewReader(""), io.Discard, none); err == nil || !strings.Contains(err.Error(), "no agent of a session has started this") {
		t.Errorf("it says %v", err)
	}
	gone := func(string) string { return filepath.Join(t.TempDir(), "s") }
	if err := acp.Relay(strings.NewReader(""), io.Discard, gone); err == nil || !strings.Contains(err.Error(), "the session has ended") {
		t.Errorf("it says %v", err)
	}
}
