package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dialai/dialai/agent/agenttest"
)

// late is how long after it was asked a permission is answered: longer than programs wait for what
// takes no human.
const late = 61 * time.Second

// TestPermissionOverKill: what a real agent asks to be allowed is asked once, also if the process
// that drives it is killed meanwhile and another goes on, by whose agent the same is asked again;
// an answer that comes a minute later has the command run, once. A secret in it is shown nowhere.
func TestPermissionOverKill(t *testing.T) {
	if testing.Short() {
		t.Skip("an answer that comes a minute late takes a minute")
	}
	t.Parallel()
	const secret, token = "hunter2xyz", "ghp_0123456789abcdefghijklmnopqrstuvwxyz" // nobody's
	for name, of := range realAgents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := agenttest.Start(t)
			a, d := of(t, fake), undertakingIn(t, "")
			asked := filepath.Join(d.dir, "work", "asked.txt")
			var asks atomic.Int32
			fake.Answers(func(r agenttest.Request) (agenttest.Step, bool) {
				switch _, err := os.Stat(asked); {
				case !slices.Contains(r.Tools, a.submit):
					return agenttest.Step{Text: "A title"}, true // the program asks for itself
				case strings.Contains(r.Since, "is the move of this turn"):
					return agenttest.Step{Text: "The turn is over."}, true
				case err != nil && asks.Add(1) <= 2:
					return a.runs("echo x >>asked.txt; : --password " + secret + " " + token), true
				}
				return agenttest.Uses(a.submit, map[string]any{"transition": "complete", "message": "done", "accomplished": []string{"all"}, "remaining": []string{}}), true
			})

			killed := d.undertakes(a, "--solo", "spec.md", "--agent", a.name, "--cwd", "work")
			first := d.waitsFor("permission")
			if err := killed.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-killed.ended
			if _, err := os.Stat(asked); err == nil {
				t.Fatalf("it was done before it was allowed\n%s", &killed.told)
			}
			if left := d.inbox("permission"); len(left) != 1 || left[0].Facts.Meta.InputDigest != first.Facts.Meta.InputDigest {
				t.Fatalf("killed it waits for %+v, want %+v", left, first)
			}

			host := d.undertakes(a, "--resume")
			d.until("the agent that is gone on with asks the same again", func() bool {
				return len(d.agentLog(first.SessionID, "permission")) == 2
			})
			if open := d.inbox("permission"); len(open) != 1 || open[0].SessionID != first.SessionID {
				t.Errorf("asked again it waits for %+v, want %+v", open, first)
			}
			select {
			case <-time.After(late):
			case <-host.ended:
				t.Fatalf("it did not wait\n%s", &host.told)
			}
			shown := d.shown(first.SessionID)
			if out, code := d.dialai("decide", first.SessionID, "allow", "--quiet"); code != 0 {
				t.Fatalf("decide exits with %d\n%s", code, out)
			}
			if out, code := d.dialai("decide", first.SessionID, "allow", "--quiet"); code == 0 || !strings.Contains(out, "has ended") {
				t.Errorf("what is answered is answered again: %d\n%s", code, out)
			}
			ruling := d.waitsFor("undertaking-solo")
			shown += d.shown(ruling.SessionID)
			if out, code := d.dialai("decide", ruling.SessionID, "accept", "--quiet"); code != 0 && code != 5 {
				t.Fatalf("accept exits with %d\n%s", code, out)
			}
			<-host.ended
			told := killed.told.String() + host.told.String()
			if code := host.ProcessState.ExitCode(); code != 0 || !strings.Contains(told, "may use") || !strings.Contains(told, "orchestrator complete") || strings.Contains(told, "did not reach") {
				t.Errorf("it exits with %d\n%s", code, told)
			}
			if text, err := os.ReadFile(asked); err != nil || string(text) != "x\n" || asks.Load() != 2 {
				t.Errorf("asked %d times, it has %q, %v\n%s", asks.Load(), text, err, told)
			}
			if used := d.agentLog(first.SessionID, "permission_used"); len(used) != 1 {
				t.Errorf("it was used %d times", len(used))
			}
			shown += told + d.shown(first.SessionID) + d.files()
			if i := max(strings.Index(shown, secret), strings.Index(shown, token)); i >= 0 {
				t.Errorf("the secret is shown: %q", shown[max(0, i-200):i+50])
			} else if !strings.Contains(shown, "[redacted:") {
				t.Errorf("what was asked is not shown\n%s", shown)
			}
		})
	}
}

// TestQuestionsOfRealAgents: what a program has for asking its user. In an undertaking that is a move
// (inquire), so Claude Code and OpenCode offer their models no tool for it, also where the user has
// switched it on, and Codex refuses it. Where Codex does not, what it asks is a question of the
// inbox, and the answer reaches its model. A program that offers more than this is to be looked at:
// nobody answers what is not a permission here.
func TestQuestionsOfRealAgents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent, tool string
		offered     bool
		switched    func(t *testing.T, a *realAgent) // by its user; nil: nothing is
		told        string                           // to the model that has used it
	}{
		"claude": {"claude", "AskUserQuestion", false, nil, "No such tool available: AskUserQuestion"},
		"codex":  {"codex", "request_user_input", true, nil, "request_user_input is unavailable in Default mode"},
		"codex whose user has switched it on": {"codex", "request_user_input", true, func(t *testing.T, a *realAgent) {
			i := slices.IndexFunc(a.env, func(e string) bool { return strings.HasPrefix(e, "CODEX_HOME=") })
			path := filepath.Join(strings.TrimPrefix(a.env[i], "CODEX_HOME="), "config.toml")
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, append(text, "[features]\ndefault_mode_request_user_input = true\n"...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, `{"answers":{"colour":{"answers":["Blue"]}}}`},
		"opencode whose user has switched it on": {"opencode", "question", false, func(_ *testing.T, a *realAgent) {
			a.env = append(a.env, "OPENCODE_ENABLE_QUESTION_TOOL=1")
		}, "unavailable tool 'question'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := agenttest.Start(t)
			a, d := realAgents[c.agent](t, fake), undertakingIn(t, "")
			if c.switched != nil {
				c.switched(t, &a)
			}
			var used atomic.Bool
			fake.Answers(func(r agenttest.Request) (agenttest.Step, bool) {
				switch {
				case !slices.Contains(r.Tools, a.submit):
					return agenttest.Step{Text: "A title"}, true // the program asks for itself
				case strings.Contains(r.Since, "is the move of this turn"):
					return agenttest.Step{Text: "The turn is over."}, true
				case used.CompareAndSwap(false, true):
					return asksWhichColour(c.tool), true
				}
				return agenttest.Uses(a.submit, map[string]any{"transition": "complete", "message": "done", "accomplished": []string{"all"}, "remaining": []string{}}), true
			})
			d.undertakes(a, "--solo", "spec.md", "--agent", a.name, "--cwd", "work")
			asks := strings.Contains(c.told, "Blue")
			if asks {
				id := d.waitsFor("permission").SessionID
				if out, code := d.dialai("decide", id, "answer", "--data", `{"answers":{"Which colour?":"Green"}}`); code == 0 || !strings.Contains(out, "Green") {
					t.Errorf("an option that there is not is ruled: %d\n%s", code, out)
				}
				if out, code := d.dialai("decide", id, "answer", "--data", `{"answers":{"Which colour?":"Blue"}}`, "--quiet"); code != 0 {
					t.Errorf("decide exits with %d\n%s", code, out)
				}
			}
			d.waitsFor("undertaking-solo")
			if out, _ := d.dialai("sessions", "--machine", "permission", "--json"); !asks && strings.TrimSpace(out) != "" {
				t.Errorf("it is asked for\n%s", out)
			}
			told := ""
			for _, r := range fake.Requests() {
				if slices.Contains(r.Tools, a.submit) && slices.Contains(r.Tools, c.tool) != c.offered {
					t.Errorf("of the tools are %q", r.Tools)
				}
				told += r.Since
			}
			if strings.Count(told, c.told) != 1 {
				t.Errorf("the model was not told %q once, but …%s", c.told, told[max(0, len(told)-1000):])
			}
		})
	}
}

// asksWhichColour is a use of a tool by which the model asks the user.
func asksWhichColour(tool string) agenttest.Step {
	option := func(label string) any { return map[string]any{"label": label, "description": "as " + label} }
	return agenttest.Uses(tool, map[string]any{"questions": []any{map[string]any{"id": "colour", "question": "Which colour?", "header": "Colour", "multiSelect": false, "options": []any{option("Red"), option("Blue")}}}})
}

// TestClaudeQuestion: where Claude Code runs by itself and leaves its prompts to dialai permit, what it
// asks its user is a question of the inbox, and the answer reaches the model.
func TestClaudeQuestion(t *testing.T) {
	c := claudeAt(t)
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"dialai": map[string]any{
		"command": program, "args": []string{"permit", "--mcp", "--store", c.store}}}})
	if err != nil {
		t.Fatal(err)
	}
	wait := c.start(agenttest.Prompt("Go on.", asksWhichColour("AskUserQuestion"), agenttest.Step{Text: "That is all."}),
		"--strict-mcp-config", "--mcp-config", string(config), "--permission-prompt-tool", "mcp__dialai__permit")
	c.dialai("decide", c.question(), "answer", "--data", `{"answers":{"Which colour?":"Blue"}}`, "--quiet", "--store", c.store)
	wait()
	if !c.told(`"Which colour?"="Blue"`) {
		t.Errorf("the model was not told the answer: %q", c.fake.Requests()[len(c.fake.Requests())-1].Since)
	}
}

// A hostProcess drives an undertaking in the background, and ends with the test at the latest.
type hostProcess struct {
	*exec.Cmd
	told  bytes.Buffer // once it has ended
	ended chan struct{}
}

// undertakes starts one.
func (d bench) undertakes(a realAgent, args ...string) *hostProcess {
	d.Helper()
	ctx, end := context.WithTimeout(context.Background(), 5*time.Minute)
	h := &hostProcess{Cmd: exec.CommandContext(ctx, program, append(append([]string{"undertake"}, args...), "--store", "d.db")...), ended: make(chan struct{})}
	h.Dir, h.Env, h.Stdout, h.Stderr = d.dir, append(os.Environ(), a.env...), &h.told, &h.told
	h.Cancel, h.WaitDelay = func() error { return h.Process.Signal(syscall.SIGTERM) }, 30*time.Second
	if err := h.Start(); err != nil {
		d.Fatal(err)
	}
	go func() { defer close(h.ended); _ = h.Wait() }()
	d.Cleanup(func() {
		end()
		if <-h.ended; d.Failed() {
			d.Logf("%v\n%s", args, &h.told)
		}
	})
	return h
}

// A waiting question is one as the inbox has it.
type waiting struct {
	SessionID   string
	MachineName string
	Facts       struct {
		Meta struct{ Tool, InputDigest string } `json:"metaJson"`
	}
}

// inbox returns the questions of a machine.
func (d bench) inbox(machine string) (list []waiting) {
	d.Helper()
	out, code := d.dialai("inbox", "--json")
	for lines := json.NewDecoder(strings.NewReader(out)); code == 0 && lines.More(); {
		var q waiting
		if err := lines.Decode(&q); err != nil {
			d.Fatalf("%v\n%s", err, out)
		}
		if q.MachineName == machine {
			list = append(list, q)
		}
	}
	return list
}

// until waits for what is to happen.
func (d bench) until(what string, happened func() bool) {
	d.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(2 * time.Minute); !happened(); <-again.C {
		if time.Now().After(end) {
			out, _ := d.dialai("inbox")
			d.Fatalf("not in time: %s\n%s", what, out)
		}
	}
}

// waitsFor returns the question of a machine, once there is one.
func (d bench) waitsFor(machine string) (q waiting) {
	d.Helper()
	d.until("a question of "+machine, func() bool {
		list := d.inbox(machine)
		if len(list) > 0 {
			q = list[0]
		}
		return len(list) > 0
	})
	return q
}

// agentLog returns the entries of a kind in the agent_log of a session.
func (d bench) agentLog(id, kind string) (list []string) {
	d.Helper()
	out, _ := d.dialai("log", id, "--agent", "--json")
	for line := range strings.Lines(out) {
		var e struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			d.Fatalf("%v\n%s", err, out)
		}
		if e.Kind == kind {
			list = append(list, line)
		}
	}
	return list
}

// shown returns all that is printed of a session.
func (d bench) shown(id string) (all string) {
	d.Helper()
	for _, args := range [][]string{{"inbox"}, {"inbox", "--json"}, {"sessions"}, {"show", id, "--show-proposals"}, {"show", id, "--json"}, {"log", id}, {"log", id, "--json"}, {"log", id, "--agent"}} {
		out, code := d.dialai(args...)
		if code != 0 {
			d.Errorf("%v exits with %d\n%s", args, code, out)
		}
		all += out
	}
	return all
}

// files returns what is in the files of the store, and beside it.
func (d bench) files() (all string) {
	d.Helper()
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all += string(text)
		return err
	})
	if err != nil {
		d.Error(err)
	}
	return all
}
