package bridge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
)

// TestConversation: a session opens, takes a turn in which it summons an orchestrator, uses a
// tool of the host's and one of its own, fills its context, and is killed.
func TestConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"text": "I begin.", "used": 150000, "window": 200000, "cost_usd": 0.5, "tools": [{"tool": "spawn_orchestrator", "input": {"prompt": "Write a.txt"}}, {"tool": "look", "input": {"where": "here"}}, {"tool": "Bash", "input": {"command": "true"}}]}`))
		h.send(`{"cmd":"spawn","req":1,"id":"arbiter","config":{"mcp_tools":["spawn_orchestrator","look"],"tools":[{"name":"look","description":"Look.","input_schema":{"type":"object"}}]}}`,
			`{"cmd":"message","req":2,"id":"arbiter","content":"Go on.","msg_id":"5f0c2a3e-0000-4000-8000-000000000001"}`)
		call := h.until("tool_call", "tool=look")
		h.send(line(m{"cmd": "tool_result", "id": "arbiter", "req": 3, "call": call["call"], "content": "a wall"}))
		ask := h.until("permission", "tool=Bash")
		h.send(`{"cmd":"list","req":4}`, line(m{"cmd": "approve", "id": "arbiter", "req": 5, "ask": ask["ask"], "allow": true}))
		h.until("done", "outcome=done")
		h.send(`{"cmd":"usage","id":"arbiter","req":6}`)
		h.until("ok", "req=6")
		h.send(`{"cmd":"kill","id":"arbiter","req":7}`)
		h.until("exit", "code=0", "left=[]")
		h.send(`{"cmd":"shutdown","req":8}`)
		if err := h.rest(); err != nil {
			t.Fatal(err)
		}
		want := `session ok ok receipt receipt assistant usage context_warning tool_call tool_call ok tool_use permission ok tool_done receipt done ok ok exit`
		if got := h.kinds("arbiter"); got != want {
			t.Errorf("%s\nwant\n%s\n%s", got, want, h)
		}
		for kind, fields := range map[string][]string{
			"session":         {"session_id=" + h.all("session")[0].text("session_id"), "agent=scripted:s.jsonl", "resumed=false", "id=arbiter"},
			"tool_call":       {"tool=spawn_orchestrator", "orch=orch-1", "input=map[prompt:Write a.txt]"},
			"assistant":       {"text=I begin.", "context_pct=0", "message_id=line-1"},
			"context_warning": {"pct=75", "level=soft", "used=150000", "ceiling=200000"},
			"done":            {"outcome=done", "cost_usd=0.5", "unprompted=false"},
		} {
			if len(h.all(kind, fields...)) != 1 {
				t.Errorf("no %s with %v:\n%s", kind, fields, h)
			}
		}
		if got := h.all("ok", "req=4")[0]; fmt.Sprint(got["sessions"]) != fmt.Sprintf("[map[agent:scripted:s.jsonl context_pct:75 id:arbiter session_id:%s state:waiting]]", h.all("session")[0].text("session_id")) {
			t.Errorf("list: %v", got)
		}
		if got := h.all("ok", "req=6")[0]; got.number("context_pct") != 75 || got.number("cost_usd") != 0.5 {
			t.Errorf("usage: %v", got)
		}
		for req := range 8 {
			if len(h.all("ok", fmt.Sprintf("req=%d", req+1))) != 1 {
				t.Errorf("command %d was not answered once", req+1)
			}
		}
		if last := h.told[len(h.told)-1]; !last.is("ok", "req=8") {
			t.Errorf("the last is %v", last)
		}
		if ts := h.told[0].text("ts"); ts != "2000-01-01T00:00:00.000Z" {
			t.Errorf("ts: %s", ts)
		}
	})
}

// TestNotice: what a crossing makes the agent be told comes with the next result of its main
// thread, or the next message, once.
func TestNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"used": 72000, "window": 100000, "tools": [{"tool": "Bash", "input": {"command": "true"}}, {"tool": "Bash", "input": {"command": "true"}}]}`,
			`{"used": 90000, "window": 100000}`, `{"used": 91000}`, `{"used": 10000}`, `{"used": 99000, "tools": [{"tool": "look", "input": {}}]}`)
		s := &spy{Agent: a[""]}
		h := serve(t, agents{"": s})
		h.send(`{"cmd":"spawn","id":"a","config":{"permission":{"allow":["Bash"]},"mcp_tools":["look"],"tools":[{"name":"look"}]}}`)
		for range 5 {
			h.send(`{"cmd":"message","id":"a","content":"Go on."}`)
			if len(h.all("done")) == 4 {
				h.send(line(m{"cmd": "tool_result", "id": "a", "call": h.until("tool_call")["call"], "content": "seen"}))
			}
			h.until("done")
		}
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
		var notices []string
		for _, r := range s.replies {
			notices = append(notices, r.Notice)
		}
		if len(notices) != 7 || !strings.HasPrefix(notices[2], "[Notice] Your context is 72 % full.") || !strings.HasPrefix(notices[6], "[Notice] Your context is 99 % full.") || strings.Join(notices, "") != notices[2]+notices[6] {
			t.Errorf("notices: %q", notices)
		}
		for i, msg := range s.sent {
			if want := i == 2; strings.Contains(msg.Content, "90 % full. Begin nothing new") != want || !want && msg.Content != "Go on." {
				t.Errorf("message %d: %q", i, msg.Content)
			}
		}
		var levels []string
		for _, e := range h.all("context_warning") {
			levels = append(levels, e.text("level"))
		}
		if got := strings.Join(levels, " "); got != "soft hard hard" {
			t.Errorf("warnings: %s", got)
		}
	})
}

// TestThresholds: a host has its own levels, and base.
func TestThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"used": 31000, "window": 100000}`))
		h.send(`{"cmd":"spawn","id":"a","config":{"hooks":{"context_thresholds":[10,30]},"context_base":"window"}}`, `{"cmd":"message","id":"a","content":"Go on."}`)
		h.until("done")
		if err := h.end(); err != nil || len(h.all("context_warning")) != 1 || len(h.all("context_warning", "level=hard", "pct=31")) != 1 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}

// TestLateResult: a tool of the host's that is not answered fails after a minute, and can be
// answered no more.
func TestLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"tools": [{"tool": "look", "input": {}}]}`)
		s := &spy{Agent: a[""]}
		h := serve(t, agents{"": s})
		h.send(`{"cmd":"spawn","id":"a","config":{"mcp_tools":["look"],"tools":[{"name":"look"}]}}`, `{"cmd":"message","id":"a","content":"Go on."}`)
		call := h.until("tool_call")
		began := time.Now()
		h.until("done", "outcome=done")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		if len(s.replies) != 1 || !s.replies[0].IsError || !strings.Contains(s.replies[0].Content, "60 s") {
			t.Errorf("%+v", s.replies)
		}
		h.send(line(m{"cmd": "tool_result", "id": "a", "call": call["call"], "content": "late", "req": 7}))
		h.until("error", "code=stale", "req=7")
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestUsageOncePerSecond: usage is told at most once in a second, and the newest is told.
func TestUsageOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		for i := range 10 {
			lines = append(lines, fmt.Sprintf(`{"used": %d, "window": 100000, "wait_ms": 250}`, 1000+i))
		}
		h := serve(t, script(t, lines...))
		h.send(`{"cmd":"spawn","id":"a"}`)
		for range 10 {
			h.send(`{"cmd":"message","id":"a","content":"Go on."}`)
			h.until("done")
		}
		time.Sleep(3 * time.Second)
		h.send(`{"cmd":"list"}`)
		h.sessions()
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
		var last time.Time
		for _, e := range h.all("usage") {
			at, err := time.Parse(time.RFC3339, e.text("ts"))
			if err != nil || at.Sub(last) < time.Second {
				t.Errorf("usage at %v, %v after the last", at, at.Sub(last))
			}
			last = at
		}
		if n := len(h.all("usage")); n != 4 || len(h.all("usage", "used=1009")) != 1 {
			t.Errorf("%d events of usage\n%s", n, h)
		}
	})
}

// sessions is the newest list.
func (h *host) sessions() any {
	h.t.Helper()
	for {
		if e := h.next(); e["sessions"] != nil {
			return e["sessions"]
		}
	}
}

// TestBudget: a turn that has cost too much is ended, says so before its end, and no other begins.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"used": 1000, "window": 100000, "cost_usd": 0.9}`, `{"used": 1000, "cost_usd": 0.2, "end": "hang"}`))
		h.send(`{"cmd":"spawn","id":"a","config":{"budget_usd":1}}`, `{"cmd":"message","id":"a","content":"Go on."}`)
		h.until("done", "outcome=done")
		h.send(`{"cmd":"message","id":"a","content":"Go on."}`)
		h.until("error", "code=limit", "retryable=false")
		h.until("done", "outcome=limit", "cost_usd=1.1")
		h.send(`{"cmd":"message","id":"a","content":"Go on.","req":3}`)
		h.until("error", "code=limit", "req=3")
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCrash: of a turn whose program ends the host is told why, that it ended, and the exit.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"text": "I", "end": "crash"}`, `{"text": "full", "end": "full"}`))
		h.send(`{"cmd":"spawn","id":"a"}`, `{"cmd":"message","id":"a","content":"Go on."}`)
		h.until("exit", "code=1")
		h.send(`{"cmd":"message","id":"a","content":"Are you there?","req":1}`)
		h.until("error", "code=unknown_id", "req=1")
		if got := h.kinds("a"); !strings.HasSuffix(got, "assistant receipt error done exit error") || len(h.all("error", "code=crashed", "retryable=true")) != 1 || len(h.all("done", "outcome=crashed")) != 1 {
			t.Errorf("%s\n%s", got, h)
		}
		h.send(`{"cmd":"spawn","id":"a"}`, `{"cmd":"message","id":"a","content":"Go on."}`) // the id is free
		h.until("error", "code=full", "retryable=false")
		h.until("done", "outcome=full")
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDecision: a session with a schema of its output hands it in by a tool, and the last counts.
func TestDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"tools": [{"tool": "decide", "input": {"n": 1}}, {"tool": "decide", "input": {"n": 2}}]}`, `{"text": "None."}`))
		h.send(`{"cmd":"spawn","id":"a","config":{"output_schema":{"type":"object"}}}`)
		for range 2 {
			h.send(`{"cmd":"message","id":"a","content":"Go on."}`)
			h.until("done")
		}
		if err := h.end(); err != nil || len(h.all("done", "decision=map[n:2]")) != 1 || len(h.all("done", "decision=<nil>")) != 1 || len(h.all("tool_call")) != 0 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}

// TestSubagent: a subagent is told of, and may use no tool of the host's.
func TestSubagent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"tools": [{"tool": "Task", "input": {"description": "look around", "tools": [{"tool": "spawn_orchestrator", "input": {"prompt": "x"}}]}}]}`)
		s := &spy{Agent: a[""]}
		h := serve(t, agents{"": s})
		h.send(`{"cmd":"spawn","id":"a","config":{"mcp_tools":["spawn_orchestrator"]}}`, `{"cmd":"message","id":"a","content":"Go on."}`)
		h.until("subagent_start", "description=look around", "depth=1", "background=false")
		h.until("subagent_stop", "status=completed")
		h.until("done")
		if err := h.end(); err != nil || len(h.all("tool_call")) != 0 {
			t.Errorf("%v\n%s", err, h)
		}
		refused := 0
		for _, r := range s.replies {
			if strings.Contains(r.Content, "Only the main agent") && r.IsError {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%+v", s.replies)
		}
	})
}

// TestInterrupt: it ends the turn only, and takes back what was asked.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"tools": [{"tool": "Bash", "input": {"command": "true"}}]}`, `{"text": "Again."}`))
		h.send(`{"cmd":"spawn","id":"a"}`, `{"cmd":"message","id":"a","content":"Go on."}`)
		ask := h.until("permission")
		h.send(`{"cmd":"interrupt","id":"a"}`)
		h.until("done", "outcome=cancelled")
		h.send(line(m{"cmd": "approve", "id": "a", "ask": ask["ask"], "allow": true, "req": 1}))
		h.until("error", "code=stale", "req=1")
		h.send(`{"cmd":"interrupt","id":"a","req":2}`, `{"cmd":"message","id":"a","content":"Go on."}`)
		h.until("ok", "req=2")
		h.until("done", "outcome=done")
		if err := h.end(); err != nil || len(h.all("tool_done", "ok=true")) != 0 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}

// TestOrchestrators: numbers are given once, whoever spawned what.
func TestOrchestrators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"as": "arbiter", "tools": [{"tool": "spawn_orchestrator", "input": {"prompt": "x"}}, {"tool": "spawn_orchestrator", "input": {}}, {"tool": "spawn_orchestrator", "input": {"prompt": "y"}}]}`))
		h.send(`{"cmd":"spawn","id":"orch-7"}`, `{"cmd":"spawn","id":"orch-99999999999999999999"}`, `{"cmd":"spawn","id":"arbiter","config":{"mcp_tools":["spawn_orchestrator"]}}`, `{"cmd":"message","id":"arbiter","content":"Go on."}`)
		h.until("tool_call", "orch=orch-8")
		h.until("tool_call", "orch=orch-9")
		h.until("done")
		if err := h.end(); err != nil || len(h.all("tool_call")) != 2 || len(h.all("exit")) != 3 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}

// TestDefaultDeny: a session that asks nobody does what rules allow.
func TestDefaultDeny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t, `{"tools": [{"tool": "Bash", "input": {"command": "echo a"}}, {"tool": "Bash", "input": {"command": "echo a; true"}}, {"tool": "Bash", "input": {"command": "printf a"}}]}`))
		h.send(line(m{"cmd": "spawn", "id": "a", "config": m{"cwd": t.TempDir(), "permission": m{"allow": []string{"Bash(echo *)", "Bash(printf *)"}, "deny": []string{"Bash(printf*)"}, "default": "deny"}}}), `{"cmd":"message","id":"a","content":"Go on."}`)
		h.until("done")
		if err := h.end(); err != nil || len(h.all("permission")) != 0 || len(h.all("tool_done")) != 3 || len(h.all("tool_done", "ok=true")) != 1 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}

// TestAnswers: what the bridge answers by itself: what is denied is so before the agent asks and
// when it does, a question is the host's, a compaction is refused, and a notice is for the main
// thread.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []agent.Reply
		bash := json.RawMessage(`{"command":"rm a"}`)
		h := serve(t, agents{"": says{told: &told, bodies: []agent.Body{
			agent.Opened{}, agent.TurnStarted{},
			agent.Hook{ID: "before", Point: agent.BeforeTool, Tool: "Bash", Input: bash},
			agent.Hook{ID: "other", Point: agent.BeforeTool, Tool: "Read"},
			agent.Permission{ID: "denied", Tool: "Bash", Input: bash},
			agent.Permission{ID: "allowed", Tool: "Read"},
			agent.Permission{ID: "question", Tool: "Ask", Question: true},
			agent.Usage{Used: 90, Ceiling: 100},
			agent.Hook{ID: "subagent", Point: agent.AfterTool, Parent: "x"},
			agent.ToolCall{ID: "theirs", Tool: "look", Parent: "x"},
			agent.Hook{ID: "main", Point: agent.AfterTool},
			agent.Hook{ID: "again", Point: agent.AfterTool},
			agent.Hook{ID: "compact", Point: agent.BeforeCompaction},
			agent.Compaction{Trigger: "auto", Blocked: true}, agent.Compaction{Trigger: "auto", Blocked: true},
			agent.Usage{Used: 75, Ceiling: 100}, agent.Usage{Used: 91, Ceiling: 100},
			agent.Compaction{Trigger: "auto", Blocked: true}, agent.Usage{Used: 92, Ceiling: 100},
			agent.Hook{ID: "late", Point: agent.AfterTool}, agent.Done{Outcome: agent.Finished}, agent.Exited{},
		}}})
		h.send(`{"cmd":"spawn","id":"a","config":{"permission":{"allow":["Read","Ask"],"deny":["Bash(rm*)"]}}}`)
		h.until("exit")
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range told {
			got = append(got, fmt.Sprintf("%s %v %v %v", r.To, r.Allow, r.Reason != "", r.Notice != ""))
		}
		want := "before false true false|other true false false|denied false true false|allowed true false false|subagent true false false|theirs false false false|main true false true|again true false false|compact false true false|late true false true"
		if strings.Join(got, "|") != want {
			t.Errorf("%s\nwant\n%s", strings.Join(got, "|"), want)
		}
		var levels []string
		for _, e := range h.all("context_warning") {
			levels = append(levels, e.text("level"))
		}
		if len(h.all("permission")) != 1 || strings.Join(levels, " ") != "hard compaction hard compaction" || len(h.all("compaction")) != 3 {
			t.Errorf("%v\n%s", levels, h)
		}
	})
}

// TestCompactionFirst: a compaction counts as the hard level, which is not crossed again then.
func TestCompactionFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, agents{"": says{bodies: []agent.Body{agent.Opened{}, agent.Usage{Used: 84, Ceiling: 100}, agent.Compaction{Blocked: true}, agent.Usage{Used: 86, Ceiling: 100}, agent.Exited{}}}})
		h.send(`{"cmd":"spawn","id":"a"}`)
		h.until("exit")
		if err := h.end(); err != nil || len(h.all("context_warning")) != 2 || len(h.all("context_warning", "level=compaction", "pct=84")) != 1 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}

// TestOnce: what the agent no longer asks cannot be answered, nor what was answered.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		h := serve(t, agents{"": says{end: end, bodies: []agent.Body{agent.Opened{}, agent.Permission{ID: "p"}, agent.ToolCall{ID: "c", Tool: "look"}, agent.Exited{}}}})
		h.send(`{"cmd":"spawn","id":"a","config":{"mcp_tools":["look"],"tools":[{"name":"look"}]}}`)
		h.until("tool_call")
		for range 2 { // the agent itself says so, then the bridge
			h.send(`{"cmd":"approve","id":"a","ask":"p","allow":true}`)
			h.until("error", "code=stale")
			h.send(`{"cmd":"tool_result","id":"a","call":"c","content":""}`)
			h.until("error", "code=stale")
		}
		h.send(`{"cmd":"list"}`)
		if list := fmt.Sprint(h.sessions()); !strings.Contains(list, "state:idle") {
			t.Error(list)
		}
		close(end)
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	})
}
