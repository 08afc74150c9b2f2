package claude_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/agenttest"
	"github.com/dialai/dialai/agent/claude"
)

// The tests drive the real program, which asks a server of the test.

type m = map[string]any

// model is one whose window is known.
const model = "claude-haiku-4-5"

// A fixture is a program, the server that it asks, and where it works.
type fixture struct {
	*agenttest.Server
	agent *claude.Agent
	spec  agent.Spec
}

func setup(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	path := agenttest.Program(t, "claude")
	s := agenttest.Start(t)
	return &fixture{Server: s, agent: claude.New(path, agenttest.ClaudeEnv(s, t.TempDir())...), spec: agent.Spec{
		ID: agenttest.ID(t), Cwd: t.TempDir(), Model: model, SystemPrompt: "You are number one.",
		OwnTools: []string{"Agent", "Bash", "Edit", "Read", "Write"},
		Tools:    []agent.Tool{{Name: "submit", Description: "Submit a move.", InputSchema: json.RawMessage(`{"type":"object","properties":{"transition":{"type":"string"}}}`)}},
	}}
}

func (f *fixture) open(t *testing.T, reply func(agent.Event) (agent.Reply, bool)) *agenttest.Host {
	t.Helper()
	h := agenttest.Open(t, f.agent, f.spec, reply)
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

// say has the program take a turn of these steps.
func say(h *agenttest.Host, steps ...agenttest.Step) {
	h.Say(agent.Message{Content: agenttest.Prompt("Go on.", steps...)})
}

func bash(command string) agenttest.Step {
	return agenttest.Uses("Bash", m{"command": command, "description": "a command"})
}

var submit = agenttest.Uses("mcp__dialai__submit", m{"transition": "report"})

// pinned is the version whose facts the tests hold. In another one what differs is logged; what
// the adapter promises fails there, too.
const pinned = "2.1.330"

func fact(t *testing.T, h *agenttest.Host, holds bool, format string, args ...any) {
	t.Helper()
	version := h.Until(agent.KindOpened, 1).Body.(agent.Opened).Version
	switch {
	case holds:
	case version == pinned:
		t.Errorf(format, args...)
	default:
		t.Logf("differs in "+version+": "+format, args...)
	}
}

// TestTurn: a session opens, says what it is, takes a turn in which it uses a tool of its own
// and one of the host, tells what it used, and leaves nothing when it is closed.
func TestTurn(t *testing.T) {
	f := setup(t)
	h := f.open(t, nil)
	opened := h.Until(agent.KindOpened, 1).Body.(agent.Opened)
	if opened.Agent != "claude" || opened.Version == "" || opened.Model != model || opened.Resumed {
		t.Errorf("%+v", opened)
	}
	fact(t, h, opened.Window == 200_000 && opened.Ceiling == 167_000, "window and ceiling are %d and %d", opened.Window, opened.Ceiling)
	first := bash("echo made > made.txt; cat made.txt")
	first.Text, first.Input, first.CacheRead, first.CacheWrite = "I make it.", 1_000, 50_000, 300
	second := submit
	second.Input, second.CacheRead = 40, 52_000
	h.Say(agent.Message{ID: "5f0c2a3e-0000-4000-8000-000000000001", Content: agenttest.Prompt("Go on.", first, second, agenttest.Step{Text: "It is made.", Input: 1, CacheRead: 53_000})})
	done := h.Until(agent.KindDone, 1).Body.(agent.Done)
	if done.Outcome != agent.Finished || done.Text != "It is made." || done.AgentSession != opened.AgentSession || done.Unprompted {
		t.Errorf("%+v", done)
	}
	if text, err := os.ReadFile(filepath.Join(f.spec.Cwd, "made.txt")); string(text) != "made\n" {
		t.Errorf("%q, %v", text, err)
	}
	var used []int64
	for _, u := range agenttest.All[agent.Usage](h) {
		used = append(used, u.Used)
	}
	if len(used) != 4 || used[0] != 51_300 || used[1] != 52_040 || used[2] != 53_001 || used[3] != 53_001 {
		t.Errorf("used: %v", used)
	}
	last := agenttest.All[agent.Usage](h)[3]
	if last.CostUSD == nil || *last.CostUSD <= 0 || last.Tokens.In != 1_041 || last.Tokens.CacheRead != 155_000 {
		t.Errorf("%+v", last)
	}
	calls := agenttest.All[agent.ToolCall](h)
	if len(calls) != 1 || calls[0].Tool != "submit" || string(calls[0].Input) != `{"transition":"report"}` {
		t.Errorf("%+v", calls)
	}
	uses, ends := agenttest.All[agent.ToolUse](h), agenttest.All[agent.ToolDone](h)
	if len(uses) != 1 || uses[0].Tool != "Bash" || len(ends) == 0 || !ends[0].OK || ends[0].Output != "made" || ends[0].ID != uses[0].ID {
		t.Errorf("%+v, %+v", uses, ends)
	}
	h.Until(agent.KindReceipt, 3)
	if got := strings.Join(h.Words(agent.KindReceipt), "\n"); got != `receipt {"msg_id":"5f0c2a3e-0000-4000-8000-000000000001","state":"queued"}
receipt {"msg_id":"5f0c2a3e-0000-4000-8000-000000000001","state":"started"}
receipt {"msg_id":"5f0c2a3e-0000-4000-8000-000000000001","state":"completed"}` {
		t.Errorf("receipts:\n%s", got)
	}
	if got := f.Requests()[0]; !strings.Contains(got.System, "You are number one.") {
		t.Error("the model was not given the persona")
	}
	if got := f.Requests()[2].Since; !strings.Contains(got, "ok") {
		t.Errorf("the model was not told what the host answered: %q", got)
	}
	h.End()
	exited := agenttest.All[agent.Exited](h)
	if len(exited) != 1 || exited[0].Code != 0 || len(exited[0].Left) > 0 {
		t.Errorf("%+v", exited)
	}
	if err := h.Send(context.Background(), agent.Message{Content: "x"}); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("send after the end: %v", err)
	}
}

// TestPermission: nothing is done before it is permitted; a reason for not permitting it
// reaches the model; what is answered twice is stale.
func TestPermission(t *testing.T) {
	f := setup(t)
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if p, ok := e.Body.(agent.Permission); ok {
			if strings.Contains(string(p.Input), "refused") {
				return agent.Reply{To: p.ID, Reason: "Write a test first."}, true
			}
			if _, err := os.Stat(filepath.Join(f.spec.Cwd, "allowed")); err == nil {
				t.Error("it was done before it was permitted")
			}
		}
		return agenttest.Allow(e)
	})
	say(h, bash("touch allowed"), bash("touch refused"), agenttest.Step{Text: "Well."})
	h.Until(agent.KindDone, 1)
	asks := agenttest.All[agent.Permission](h)
	if len(asks) != 2 || asks[0].Tool != "Bash" || asks[0].Question || asks[0].ToolUseID == "" || len(asks[0].Suggestions) == 0 {
		t.Errorf("%+v", asks)
	}
	for name, want := range map[string]bool{"allowed": true, "refused": false} {
		if _, err := os.Stat(filepath.Join(f.spec.Cwd, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := f.Requests()[2].Since; !strings.Contains(got, "Write a test first.") {
		t.Errorf("the model was told %q", got)
	}
	if err := h.Answer(context.Background(), agent.Reply{To: asks[0].ID, Allow: true}); !errors.Is(err, agent.ErrStale) {
		t.Errorf("a second answer: %v", err)
	}
}

// TestQuestion: what the agent asks its user is a permission, whose answers reach the model.
func TestQuestion(t *testing.T) {
	f := setup(t)
	f.spec.OwnTools = append(f.spec.OwnTools, "AskUserQuestion")
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if p, ok := e.Body.(agent.Permission); ok {
			if !p.Question {
				t.Errorf("not a question: %+v", p)
			}
			return agent.Reply{To: p.ID, Allow: true, Answers: json.RawMessage(`{"Which colour?":"Blue"}`)}, true
		}
		return agenttest.Allow(e)
	})
	say(h, agenttest.Uses("AskUserQuestion", m{"questions": []any{m{"question": "Which colour?", "header": "Colour", "multiSelect": false,
		"options": []any{m{"label": "Red", "description": "warm"}, m{"label": "Blue", "description": "cold"}}}}}), agenttest.Step{Text: "Blue it is."})
	h.Until(agent.KindDone, 1)
	if got := f.Requests()[1].Since; !strings.Contains(got, "Blue") {
		t.Errorf("the model was told %q", got)
	}
}

// TestInterrupt: a turn that waits for a permission ends when it is interrupted; the permission
// is withdrawn, a late answer is stale, and the tool is not used. The session goes on.
func TestInterrupt(t *testing.T) {
	f := setup(t)
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if e.Body.Kind() == agent.KindPermission {
			return agent.Reply{}, false
		}
		return agenttest.Allow(e)
	})
	say(h, bash("touch made"), agenttest.Step{Text: "not said"})
	ask := h.Until(agent.KindPermission, 1).Body.(agent.Permission)
	if err := h.Interrupt(context.Background()); err != nil {
		t.Fatal(err)
	}
	if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.Outcome != agent.Cancelled {
		t.Errorf("%+v", done)
	}
	if got := agenttest.All[agent.Withdrawn](h); len(got) != 1 || got[0].ID != ask.ID {
		t.Errorf("withdrawn: %+v", got)
	}
	if err := h.Answer(context.Background(), agent.Reply{To: ask.ID, Allow: true}); !errors.Is(err, agent.ErrStale) {
		t.Errorf("a late answer: %v", err)
	}
	say(h, agenttest.Step{Text: "Again."})
	if done := h.Until(agent.KindDone, 2).Body.(agent.Done); done.Outcome != agent.Finished || done.Text != "Again." {
		t.Errorf("%+v", done)
	}
	if _, err := os.Stat(filepath.Join(f.spec.Cwd, "made")); err == nil {
		t.Error("the tool was used")
	}
}

// TestNotice: a notice after a tool is in the next request, and in no other.
func TestNotice(t *testing.T) {
	f := setup(t)
	const notice = "Context thins: begin to wrap up."
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if k, ok := e.Body.(agent.Hook); ok && k.Point == agent.AfterTool && strings.Contains(string(k.Input), "second") {
			return agent.Reply{To: k.ID, Notice: notice}, true
		}
		if c, ok := e.Body.(agent.ToolCall); ok {
			return agent.Reply{To: c.ID, Content: "accepted", Notice: "Also this."}, true
		}
		return agenttest.Allow(e)
	})
	say(h, bash("echo first"), bash("echo second"), submit, agenttest.Step{Text: "Done."})
	h.Until(agent.KindDone, 1)
	for i, r := range f.Requests() {
		if got, want := strings.Contains(r.Since, notice), i == 2; got != want {
			t.Errorf("request %d has the notice: %v", i, got)
		}
	}
	if got := f.Requests()[3].Since; !strings.Contains(got, "Also this.") {
		t.Errorf("the notice of a tool of the host: %q", got)
	}
}

// TestSubagent: a subagent is told of, blocks the turn, can be refused before it starts, and
// uses no tool of the host.
func TestSubagent(t *testing.T) {
	f := setup(t)
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if k, ok := e.Body.(agent.Hook); ok && k.Point == agent.BeforeTool && strings.Contains(string(k.Input), "too many") {
			return agent.Reply{To: k.ID, Reason: "No more subagents."}, true
		}
		return agenttest.Allow(e)
	})
	spawn := func(description string, steps ...agenttest.Step) agenttest.Step {
		return agenttest.Uses("Agent", m{"description": description, "subagent_type": "general-purpose", "run_in_background": true, "prompt": agenttest.Prompt("Do it.", steps...)})
	}
	say(h, spawn("look", bash("echo inner"), submit, agenttest.Step{Text: "Found."}), spawn("too many", agenttest.Step{Text: "no"}), agenttest.Step{Text: "Over."})
	done := h.Until(agent.KindDone, 1).Body.(agent.Done)
	if done.Text != "Over." {
		t.Errorf("%+v", done)
	}
	subs := agenttest.All[agent.Subagent](h)
	if len(subs) != 2 || subs[0].Description != "look" || subs[0].Depth != 1 || subs[0].Background || subs[0].Status != "" || subs[1].Status != "completed" || subs[1].TaskID != subs[0].TaskID {
		t.Errorf("%+v", subs)
	}
	uses := agenttest.All[agent.ToolUse](h)
	if len(uses) != 3 || uses[0].Tool != "Agent" || uses[1].Parent != uses[0].ID || uses[2].Parent != "" {
		t.Errorf("%+v", uses)
	}
	for _, k := range agenttest.All[agent.Hook](h) {
		if k.Tool == "Bash" && k.Parent != uses[0].ID {
			t.Errorf("whose hook is it? %+v", k)
		}
	}
	if calls := agenttest.All[agent.ToolCall](h); len(calls) > 0 {
		t.Errorf("a subagent used a tool of the host: %+v", calls)
	}
	var all strings.Builder
	for _, r := range f.Requests() {
		all.WriteString(r.Since)
	}
	for _, want := range []string{"No more subagents.", "Only the main agent uses this tool."} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no model was told %q", want)
		}
	}
}

// TestManagerTools: with no tools of its own, the model has those of the host and no other.
func TestManagerTools(t *testing.T) {
	f := setup(t)
	f.spec.OwnTools = []string{}
	h := f.open(t, nil)
	say(h, agenttest.Step{Text: "Hm."})
	h.Until(agent.KindDone, 1)
	if got := f.Requests()[0].Tools; len(got) != 1 || got[0] != "mcp__dialai__submit" {
		t.Errorf("tools: %v", got)
	}
}

// TestResume: a session goes on with its id, under a new persona, and with what was said. One
// that the program does not know is lost.
func TestResume(t *testing.T) {
	f := setup(t)
	h := f.open(t, nil)
	say(h, agenttest.Step{Text: "I remember the word walnut."})
	id := h.Until(agent.KindDone, 1).Body.(agent.Done).AgentSession
	h.End()
	f.spec.Resume, f.spec.SystemPrompt = id, "You are number two."
	h = f.open(t, nil)
	if o := h.Until(agent.KindOpened, 1).Body.(agent.Opened); !o.Resumed || o.AgentSession != id {
		t.Errorf("%+v", o)
	}
	say(h, agenttest.Step{Text: "Again."})
	if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.AgentSession != id {
		t.Errorf("%+v", done)
	}
	last := f.Requests()[1]
	if !strings.Contains(string(last.Body), "walnut") || !strings.Contains(last.System, "number two") || strings.Contains(last.System, "number one") {
		t.Error("the model was given another persona than the new one, or not what was said")
	}
	f.spec.Resume = "11111111-1111-4111-8111-111111111111"
	if _, err := f.agent.Open(t.Context(), f.spec, make(chan agent.Event)); !errors.Is(err, agent.ErrUnknown) {
		t.Errorf("an unknown session: %v", err)
	}
}

// TestCeiling: from the ceiling on the program compacts, unless it is told not to; and where
// the context is full, no turn is possible.
func TestCeiling(t *testing.T) {
	f := setup(t)
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if k, ok := e.Body.(agent.Hook); ok && k.Point == agent.BeforeCompaction {
			return agent.Reply{To: k.ID, Reason: "Hand over instead."}, true
		}
		return agenttest.Allow(e)
	})
	full := bash("echo on")
	full.Input, full.CacheRead = 1_000, 170_000
	wall := bash("echo wall")
	wall.Input, wall.CacheRead = 1_000, 177_000
	say(h, full, wall, agenttest.Step{Text: "not said"})
	done := h.Until(agent.KindDone, 1).Body.(agent.Done)
	fact(t, h, done.Outcome == agent.Full && len(f.Requests()) == 2, "at 178,000 of 200,000 tokens, after %d requests, a turn ends %+v", len(f.Requests()), done)
	blocked := agenttest.All[agent.Compaction](h)
	fact(t, h, len(blocked) > 0 && blocked[0].Blocked && blocked[0].Trigger == "auto", "at 171,000 of 200,000 tokens, compactions are %+v", blocked)
}

// TestOutcomes: how a turn ended is told apart.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		step agenttest.Step
		want agent.Outcome
	}{
		"bad request":  {agenttest.Step{Status: 400, Error: "invalid_request_error"}, agent.Provider},
		"unauthorised": {agenttest.Step{Status: 401, Error: "authentication_error"}, agent.Auth},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			h := f.open(t, nil)
			say(h, c.step)
			done := h.Until(agent.KindDone, 1).Body.(agent.Done)
			if done.Outcome != c.want || done.Problem == "" || len(agenttest.All[agent.Failed](h)) != 1 {
				t.Errorf("%+v\n%s", done, strings.Join(h.Words(), "\n"))
			}
		})
	}
}

// TestMeter: the program says how full its context is, at no cost, before its first turn too.
func TestMeter(t *testing.T) {
	f := setup(t)
	h := f.open(t, nil)
	u, err := h.Session.(agent.Meter).Usage(context.Background())
	if err != nil || u.Used <= 0 || u.Window <= 0 || u.Ceiling >= u.Window {
		t.Errorf("%+v, %v", u, err)
	}
	if n := len(f.Requests()); n != 0 {
		t.Errorf("it cost %d requests", n)
	}
}

// TestCheck: a check says what the program is, at no cost.
func TestCheck(t *testing.T) {
	f := setup(t)
	info, err := f.agent.Check(t.Context())
	if err != nil || info.Version == "" || !info.Capabilities.Permission {
		t.Errorf("%+v, %v", info, err)
	}
	if n := len(f.Requests()); n != 0 {
		t.Errorf("it cost %d requests", n)
	}
	if _, err := claude.New("/no/such/program").Check(t.Context()); err == nil {
		t.Error("what is not there was checked")
	}
}

// TestDelivery: what steers goes into the running turn; what is for after has its own.
func TestDelivery(t *testing.T) {
	f := setup(t)
	var h *agenttest.Host
	ready := make(chan struct{})
	h = f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if k, ok := e.Body.(agent.Hook); ok && k.Point == agent.BeforeTool {
			<-ready
			h.Say(agent.Message{ID: "5f0c2a3e-0000-4000-8000-00000000000a", Content: "Mind the walnut.", Deliver: agent.Steer})
			h.Say(agent.Message{ID: "5f0c2a3e-0000-4000-8000-00000000000b", Content: "Then the almond.", Deliver: agent.After})
		}
		return agenttest.Allow(e)
	})
	close(ready)
	say(h, bash("echo one"), agenttest.Step{Text: "First."})
	h.Until(agent.KindDone, 2)
	requests := f.Requests()
	if len(requests) != 3 || !strings.Contains(requests[1].Since, "walnut") || strings.Contains(requests[1].Since, "almond") || !strings.Contains(requests[2].Since, "almond") {
		for _, r := range requests {
			t.Logf("%q", r.Since)
		}
		t.Error("what was said came elsewhere")
	}
}

// TestNoProcessLeft: closing ends also what the agent has started in the background, and a turn
// that runs is cancelled.
func TestNoProcessLeft(t *testing.T) {
	f := setup(t)
	h := f.open(t, nil)
	say(h, bash("setsid sleep 300 > /dev/null 2>&1 & echo started"), agenttest.Step{Millis: 60_000, Text: "not said"})
	h.Until(agent.KindToolDone, 1)
	began := time.Now()
	h.End()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	done := agenttest.All[agent.Done](h)
	if len(done) != 1 || done[0].Outcome != agent.Cancelled {
		t.Errorf("%+v", done)
	}
	if left := running(f.spec.ID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestHostKilled: when the host is killed, in its second turn, while a permission is open, the program ends, the tool
// is not used and nobody is asked any more; the session can be gone on with.
func TestHostKilled(t *testing.T) {
	f := setup(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	f.agent = claude.New(agenttest.Program(t, "claude"), agenttest.ClaudeEnv(f.Server, home)...)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), hostEnv+"="+string(mustJSON(t, hosted{Path: agenttest.Program(t, "claude"), URL: f.URL, Home: home, Spec: f.spec,
		Prompt: agenttest.Prompt("Go on.", bash("touch made"), agenttest.Step{Text: "not said"})})))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // once the permission is asked
	id := lines.Text()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for until := time.Now().Add(10 * time.Second); len(running(f.spec.ID)) > 0; {
		if time.Now().After(until) {
			t.Fatalf("still there: %v", running(f.spec.ID))
		}
	}
	if n := len(f.Requests()); n != 2 {
		t.Errorf("%d requests, not 2", n)
	}
	f.spec.Resume = id
	h := f.open(t, nil)
	say(h, agenttest.Step{Text: "Again."})
	if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.AgentSession != id || done.Outcome != agent.Finished {
		t.Errorf("%+v", done)
	}
	if _, err := os.Stat(filepath.Join(f.spec.Cwd, "made")); err == nil {
		t.Error("the tool was used")
	}
}

// hostEnv has the test binary be a host, which opens a session, says something, prints the
// session's id once it is asked for a permission, and waits.
const hostEnv = "DIALAI_TEST_HOST"

type hosted struct {
	Path, URL, Home, Prompt string
	Spec                    agent.Spec
}

func TestMain(m *testing.M) {
	if text := os.Getenv(hostEnv); text != "" {
		beHost(text)
	}
	if path := os.Getenv(linesEnv); path != "" {
		replay(path)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func beHost(text string) {
	var h hosted
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		panic(err)
	}
	events := make(chan agent.Event)
	s, err := claude.New(h.Path, agenttest.ClaudeEnv(&agenttest.Server{URL: h.URL}, h.Home)...).Open(context.Background(), h.Spec, events)
	if err != nil {
		panic(err)
	}
	say := func(prompt string) {
		if err := s.Send(context.Background(), agent.Message{Content: prompt}); err != nil {
			panic(err)
		}
	}
	say("First.") // a session of which nothing is written yet cannot be gone on with
	var id string
	for e := range events {
		switch b := e.Body.(type) {
		case agent.Opened:
			id = b.AgentSession
		case agent.Hook:
			_ = s.Answer(context.Background(), agent.Reply{To: b.ID, Allow: true})
		case agent.Done:
			say(h.Prompt)
		case agent.Permission:
			fmt.Println(id)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// running returns the processes of a session.
func running(session string) (found []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range paths {
		env, _ := os.ReadFile(p)
		if strings.Contains("\x00"+string(env), "\x00DIALAI_SESSION="+session+"\x00") {
			found = append(found, p)
		}
	}
	return found
}
