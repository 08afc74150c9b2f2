package codex_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/agenttest"
	"github.com/dialai/dialai/agent/codex"
)

// The tests drive the real program, which asks a server of the test.

type m = map[string]any

type fixture struct {
	*agenttest.Server
	agent *codex.Agent
	spec  agent.Spec
}

func setup(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	path := agenttest.Program(t, "codex")
	s := agenttest.Start(t)
	return &fixture{Server: s, agent: codex.New(path, agenttest.CodexEnv(t, s, t.TempDir())...), spec: agent.Spec{
		ID: agenttest.ID(t), Cwd: t.TempDir(), SystemPrompt: "You are number one.",
		Tools: []agent.Tool{{Name: "submit", Description: "Submit a move.", InputSchema: json.RawMessage(`{"type":"object","properties":{"transition":{"type":"string"}}}`)}},
	}}
}

func (f *fixture) open(t *testing.T, reply func(agent.Event) (agent.Reply, bool)) *agenttest.Host {
	t.Helper()
	h := agenttest.Open(t, f.agent, f.spec, reply)
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

func say(h *agenttest.Host, id string, steps ...agenttest.Step) {
	h.Say(agent.Message{ID: id, Content: agenttest.Prompt("Go on.", steps...)})
}

func run(command string) agenttest.Step { return agenttest.Uses("exec_command", m{"cmd": command}) }

var submit = agenttest.Uses("submit", m{"transition": "report"})

// TestTurn: a session opens, takes a turn in which it uses a tool of its own and one of the
// host, tells what it used, and leaves nothing when it is closed.
func TestTurn(t *testing.T) {
	f := setup(t)
	h := f.open(t, nil)
	opened := h.Until(agent.KindOpened, 1).Body.(agent.Opened)
	if opened.Agent != "codex" || opened.Version == "" || opened.Model != "of-the-test" || opened.AgentSession == "" {
		t.Errorf("%+v", opened)
	}
	first := run("cat /dev/null; echo made")
	first.Text, first.Input, first.CacheRead = "I make it.", 1_000, 50_000
	second := submit
	second.Input, second.CacheRead = 40, 52_000
	say(h, "a", first, second, agenttest.Step{Text: "It is made."})
	done := h.Until(agent.KindDone, 1).Body.(agent.Done)
	if done.Outcome != agent.Finished || done.Text != "It is made." || done.AgentSession != opened.AgentSession || done.Unprompted {
		t.Errorf("%+v", done)
	}
	var used []int64
	for _, u := range agenttest.All[agent.Usage](h) {
		used = append(used, u.Used)
	}
	if fmt.Sprint(used) != "[51000 52040 100]" {
		t.Errorf("used: %v", used)
	}
	if last := agenttest.All[agent.Usage](h)[2]; last.Tokens.CacheRead != 102_000 || last.Tokens.In != 1_140 || last.Window <= 0 || last.CostUSD != nil {
		t.Errorf("%+v", last)
	}
	calls := agenttest.All[agent.ToolCall](h)
	if len(calls) != 1 || calls[0].Tool != "submit" || string(calls[0].Input) != `{"transition":"report"}` {
		t.Errorf("%+v", calls)
	}
	if asks := agenttest.All[agent.Permission](h); len(asks) != 1 || asks[0].Tool != "exec_command" || !strings.Contains(string(asks[0].Input), "echo made") {
		t.Errorf("%+v", asks)
	}
	if ends := agenttest.All[agent.ToolDone](h); len(ends) != 1 || ends[0].Millis < 0 {
		t.Errorf("%+v", ends)
	}
	if got := strings.Join(h.Words(agent.KindReceipt), "|"); got != `receipt {"msg_id":"a","state":"queued"}|receipt {"msg_id":"a","state":"started"}|receipt {"msg_id":"a","state":"completed"}` {
		t.Errorf("receipts: %s", got)
	}
	if !strings.Contains(string(f.Requests()[0].Body), "You are number one.") {
		t.Error("the model was not given the persona")
	}
	if got := f.Requests()[2].Since; !strings.Contains(got, "ok") {
		t.Errorf("the model was not told what the host answered: %q", got)
	}
	for _, tool := range f.Requests()[0].Tools {
		if strings.Contains(tool, "agent") {
			t.Errorf("it can start subagents: %s", tool)
		}
	}
	h.End()
	if exited := agenttest.All[agent.Exited](h); len(exited) != 1 || len(exited[0].Left) > 0 {
		t.Errorf("%+v", exited)
	}
	if err := h.Send(context.Background(), agent.Message{Content: "x"}); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("send after the end: %v", err)
	}
}

// TestRefused: what is not permitted is not done, and the reason reaches the model.
func TestRefused(t *testing.T) {
	f := setup(t)
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if p, ok := e.Body.(agent.Permission); ok {
			return agent.Reply{To: p.ID, Reason: "Write a test first."}, true
		}
		return agenttest.Allow(e)
	})
	say(h, "a", run("touch refused"), agenttest.Step{Text: "Well."}, agenttest.Step{Text: "Well."})
	h.Until(agent.KindDone, 1)
	if _, err := os.Stat(filepath.Join(f.spec.Cwd, "refused")); err == nil {
		t.Error("it was done")
	}
	told := false
	for _, r := range f.Requests() {
		told = told || strings.Contains(r.Since, "Write a test first.")
	}
	if !told {
		t.Error("the model was not told why")
	}
	ask := agenttest.All[agent.Permission](h)[0]
	if err := h.Answer(context.Background(), agent.Reply{To: ask.ID, Allow: true}); !errors.Is(err, agent.ErrStale) {
		t.Errorf("a second answer: %v", err)
	}
}

// TestInterrupt: a turn that waits for a permission ends when it is interrupted; the permission
// is withdrawn, and the tool is not used. The session goes on.
func TestInterrupt(t *testing.T) {
	f := setup(t)
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if e.Body.Kind() == agent.KindPermission {
			return agent.Reply{}, false
		}
		return agenttest.Allow(e)
	})
	say(h, "a", run("touch made"), agenttest.Step{Text: "not said"})
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
	say(h, "b", agenttest.Step{Text: "Again."})
	if done := h.Until(agent.KindDone, 2).Body.(agent.Done); done.Outcome != agent.Finished || done.Text != "Again." {
		t.Errorf("%+v", done)
	}
	if _, err := os.Stat(filepath.Join(f.spec.Cwd, "made")); err == nil {
		t.Error("the tool was used")
	}
}

// TestDelivery: what steers goes into the running turn, also while a permission is open; what is
// for after has its own.
func TestDelivery(t *testing.T) {
	f := setup(t)
	var h *agenttest.Host
	ready := make(chan struct{})
	h = f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if e.Body.Kind() == agent.KindPermission {
			<-ready
			h.Say(agent.Message{ID: "b", Content: "Mind the walnut.", Deliver: agent.Steer})
			h.Say(agent.Message{ID: "c", Content: "Then the almond.", Deliver: agent.After})
		}
		return agenttest.Allow(e)
	})
	close(ready)
	say(h, "a", run("touch made"), agenttest.Step{Text: "First."}, agenttest.Step{Text: "First."})
	h.Until(agent.KindDone, 2)
	var where []string
	for i, r := range f.Requests() {
		for _, word := range []string{"walnut", "almond"} {
			if strings.Contains(r.Since, word) {
				where = append(where, fmt.Sprint(word, i))
			}
		}
	}
	if fmt.Sprint(where) != "[walnut1 almond2]" {
		t.Errorf("what was said came at %v of %d", where, len(f.Requests()))
	}
	if err := h.Send(context.Background(), agent.Message{Content: "x", Deliver: agent.Now}); err == nil {
		t.Error("it ends a turn for a message")
	}
}

// TestResume: a session goes on with its id and with what was said, and still has the tools of
// the host. One that the program does not know is lost.
func TestResume(t *testing.T) {
	f := setup(t)
	h := f.open(t, nil)
	say(h, "a", agenttest.Step{Text: "I remember the word walnut."})
	id := h.Until(agent.KindDone, 1).Body.(agent.Done).AgentSession
	h.End()
	f.spec.Resume = id
	h = f.open(t, nil)
	if o := h.Until(agent.KindOpened, 1).Body.(agent.Opened); !o.Resumed || o.AgentSession != id {
		t.Errorf("%+v", o)
	}
	say(h, "b", submit, agenttest.Step{Text: "Again."})
	if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.AgentSession != id || done.Outcome != agent.Finished {
		t.Errorf("%+v", done)
	}
	if !strings.Contains(string(f.Requests()[1].Body), "walnut") {
		t.Error("what was said is forgotten")
	}
	if calls := agenttest.All[agent.ToolCall](h); len(calls) != 1 {
		t.Errorf("%+v", calls)
	}
	f.spec.Resume = "01a21e13-7d3d-78d1-b020-6e06799c99a2"
	if _, err := f.agent.Open(t.Context(), f.spec, make(chan agent.Event)); !errors.Is(err, agent.ErrUnknown) {
		t.Errorf("an unknown session: %v", err)
	}
}

// TestNotice: a notice after a tool reaches the model in the same turn.
func TestNotice(t *testing.T) {
	f := setup(t)
	const notice = "Context thins: begin to wrap up."
	h := f.open(t, func(e agent.Event) (agent.Reply, bool) {
		if k, ok := e.Body.(agent.Hook); ok {
			return agent.Reply{To: k.ID, Notice: notice}, true
		}
		return agenttest.Allow(e)
	})
	say(h, "a", run("touch made"), agenttest.Step{Text: "On.", Millis: 300}, agenttest.Step{Text: "On."}, agenttest.Step{Text: "On."})
	h.Until(agent.KindDone, 1)
	told := 0
	for _, r := range f.Requests() {
		if strings.Contains(r.Since, notice) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the notice was in %d requests", told)
	}
}

// TestCeiling: below the ceiling the program does not compact; above, it does, and says so.
func TestCeiling(t *testing.T) {
	for used, compacts := range map[int64]bool{244_000: false, 245_000: true} {
		t.Run(fmt.Sprint(used), func(t *testing.T) {
			f := setup(t)
			h := f.open(t, nil)
			first := run("touch made")
			first.Input = used
			say(h, "a", first, agenttest.Step{Text: "Over."})
			u := h.Until(agent.KindUsage, 1).Body.(agent.Usage)
			if version := h.Until(agent.KindOpened, 1).Body.(agent.Opened).Version; version != pinned {
				t.Logf("differs perhaps: version %s, ceiling %d", version, u.Ceiling)
				return
			}
			if (used >= u.Ceiling) != compacts {
				t.Errorf("the ceiling is %d", u.Ceiling)
			}
			if compacts {
				h.Until(agent.KindCompaction, 1)
			} else if h.Until(agent.KindDone, 1); len(f.Requests()) != 2 || len(agenttest.All[agent.Compaction](h)) > 0 {
				t.Errorf("it compacted at %d", used)
			}
		})
	}
}

// pinned is the version whose facts the tests hold.
const pinned = "0.169.0"

// TestOutcomes: how a turn ended is told apart.
func TestOutcomes(t *testing.T) {
	for status, want := range map[int]agent.Outcome{400: agent.Provider, 401: agent.Auth} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			f := setup(t)
			h := f.open(t, nil)
			say(h, "a", agenttest.Step{Status: status, Error: "the_step"})
			if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.Outcome != want || done.Problem == "" {
				t.Errorf("%+v", done)
			}
		})
	}
}

// TestNoProcessLeft: closing ends also what the agent has started in the background, and a turn
// that runs is cancelled.
func TestNoProcessLeft(t *testing.T) {
	f := setup(t)
	h := f.open(t, nil)
	say(h, "a", run("setsid sleep 300 > /dev/null 2>&1 & echo started"), agenttest.Step{Millis: 60_000, Text: "not said"})
	h.Until(agent.KindToolDone, 1)
	h.End()
	if done := agenttest.All[agent.Done](h); len(done) != 1 || done[0].Outcome != agent.Cancelled {
		t.Errorf("%+v", done)
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range paths {
		if env, _ := os.ReadFile(p); strings.Contains("\x00"+string(env), "\x00DIALAI_SESSION="+f.spec.ID+"\x00") {
			t.Errorf("left: %s", p)
		}
	}
}

// TestCheck: a check says what the program is, at no cost.
func TestCheck(t *testing.T) {
	f := setup(t)
	info, err := f.agent.Check(t.Context())
	if err != nil || info.Version == "" || !info.Capabilities.Permission || len(f.Requests()) > 0 {
		t.Errorf("%+v, %v, %d requests", info, err, len(f.Requests()))
	}
}
