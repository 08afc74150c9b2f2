package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/acp"
	"github.com/dialai/dialai/agent/agenttest"
)

// The real OpenCode, whose provider is a server of the test.

type real struct {
	*agenttest.Server
	agent *acp.Agent
	spec  agent.Spec
}

func openCode(t *testing.T) *real {
	t.Helper()
	t.Parallel()
	path, s := agenttest.Program(t, "acp"), agenttest.Start(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &real{s, acp.New([]string{self, "relay"}, []string{path, "acp"}, agenttest.OpenCodeEnv(t, s, t.TempDir())...), agent.Spec{
		ID: agenttest.ID(t), Cwd: t.TempDir(), SystemPrompt: "You are number one.", Tools: []agent.Tool{submit},
	}}
}

func (r *real) open(t *testing.T, reply func(agent.Event) (agent.Reply, bool)) *agenttest.Host {
	t.Helper()
	h := agenttest.Open(t, r.agent, r.spec, reply)
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h
}

func runs(command string) agenttest.Step {
	return agenttest.Uses("bash", map[string]any{"command": command, "description": "of the test"})
}

// TestOpenCode: a turn in which it says something, is allowed a command, is refused another with a
// reason that it reads next, and uses a tool of the host; then it goes on with the session, and
// leaves nothing.
func TestOpenCode(t *testing.T) {
	r := openCode(t)
	h := r.open(t, func(e agent.Event) (agent.Reply, bool) {
		switch b := e.Body.(type) {
		case agent.Permission:
			return agent.Reply{To: b.ID, Allow: strings.Contains(string(b.Input), "echo made"), Reason: "NOT THAT ONE"}, true
		case agent.ToolCall:
			return agent.Reply{To: b.ID, Content: "taken " + string(b.Input), Notice: "A NOTICE"}, true
		}
		return agent.Reply{}, false
	})
	made := runs("echo made > a.txt")
	made.Text, made.Input, made.CacheRead = "I make it.", 1_000, 50_000
	h.Say(agent.Message{ID: "m", Content: agenttest.Prompt("Go on.", made, agenttest.Uses("dialai_submit", map[string]any{"transition": "report"}), agenttest.Step{Text: "First turn."})})
	done := h.Until(agent.KindDone, 1).Body.(agent.Done)
	if done.Outcome != agent.Finished || done.Text != "First turn." {
		t.Errorf("%+v", done)
	}
	if _, err := os.Stat(filepath.Join(r.spec.Cwd, "a.txt")); err != nil {
		t.Error(err)
	}
	permissions := agenttest.All[agent.Permission](h)
	var asked struct{ Command string }
	if len(permissions) != 1 || permissions[0].Tool != "Bash" || json.Unmarshal(permissions[0].Input, &asked) != nil || asked.Command != "echo made > a.txt" {
		t.Errorf("%+v", permissions)
	}
	if calls := agenttest.All[agent.ToolCall](h); len(calls) != 1 || calls[0].Tool != "submit" || !strings.Contains(string(calls[0].Input), "report") {
		t.Errorf("%+v", calls)
	}
	if n := len(agenttest.All[agent.ToolDone](h)); n != 1 {
		t.Errorf("%d uses of its own were told, want one", n)
	}
	if !r.said("taken {") || !r.said("A NOTICE") || !r.said("You are number one.") {
		t.Error("the model did not read what the host said")
	}

	h.Say(agent.Message{ID: "n", Content: agenttest.Prompt("Go on.", runs("rm a.txt"), agenttest.Step{Text: "Second turn."})})
	h.Until(agent.KindDone, 2)
	h.Say(agent.Message{ID: "o", Content: "And now?"})
	h.Until(agent.KindDone, 3)
	if _, err := os.Stat(filepath.Join(r.spec.Cwd, "a.txt")); err != nil || !r.said("NOT THAT ONE") {
		t.Errorf("refused, and the model read why: %v; %v", r.said("NOT THAT ONE"), err)
	}
	session := h.Until(agent.KindOpened, 1).Body.(agent.Opened).AgentSession
	h.End()

	r.spec.Resume, r.spec.ID = session, r.spec.ID+"-again"
	h = r.open(t, nil)
	h.Say(agent.Message{ID: "p", Content: agenttest.Prompt("Still there?", agenttest.Step{Text: "Third turn."})})
	h.Until(agent.KindDone, 1)
	for _, text := range agenttest.All[agent.Text](h) {
		if strings.Contains(text.Text, "First turn.") {
			t.Error("what was said before is told again")
		}
	}
	requests := r.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "First turn.") {
		t.Error("the session that was gone on with does not know what was said before")
	}
	h.End()
	if left := agenttest.All[agent.Exited](h); len(left) != 1 || len(left[0].Left) > 0 {
		t.Errorf("%+v", left)
	}
}

// said reports whether the model has read a text.
func (r *real) said(text string) bool {
	for _, q := range r.Requests() {
		if strings.Contains(string(q.Body), text) {
			return true
		}
	}
	return false
}

// TestOpenCodeInterrupted: a turn that waits for a permission ends when it is interrupted, and the
// command was not run; one that is killed with the permission open has run nothing either.
func TestOpenCodeInterrupted(t *testing.T) {
	r := openCode(t)
	h := r.open(t, func(agent.Event) (agent.Reply, bool) { return agent.Reply{}, false })
	h.Say(agent.Message{ID: "m", Content: agenttest.Prompt("Go on.", runs("touch ran"), agenttest.Step{Text: "It ran."})})
	h.Until(agent.KindPermission, 1)
	if err := h.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done := h.Until(agent.KindDone, 1).Body.(agent.Done); done.Outcome != agent.Cancelled {
		t.Errorf("%+v", done)
	}
	h.Say(agent.Message{ID: "n", Content: agenttest.Prompt("Again.", runs("touch ran"), agenttest.Step{Text: "It ran."})})
	h.Until(agent.KindPermission, 2)
	h.End()
	if _, err := os.Stat(filepath.Join(r.spec.Cwd, "ran")); err == nil {
		t.Error("what nobody has allowed was run")
	}
}

// TestOpenCodeCheck: the handshake spends nothing.
func TestOpenCodeCheck(t *testing.T) {
	r := openCode(t)
	info, err := r.agent.Check(t.Context())
	if err != nil || !strings.HasPrefix(info.Version, "OpenCode ") || !info.Capabilities.Resume || len(r.Requests()) > 0 {
		t.Errorf("%+v, %v, %d requests", info, err, len(r.Requests()))
	}
	r.spec.Resume = "ses_000000000000000000000000000"
	if _, err := r.agent.Open(t.Context(), r.spec, make(chan agent.Event)); !errors.Is(err, agent.ErrUnknown) {
		t.Errorf("a session that never was: %v", err)
	}
}
