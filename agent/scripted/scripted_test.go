package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
)

var submit = []agent.Tool{{Name: "submit"}}

// TestTurn: one line says, measures, uses, submits and ends, in this order.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"as":"orch","wait_ms":250,"text":"Tests first.","used":52000,"window":100000,"cost_usd":0.5,"tools":[{"tool":"Write","input":{"file_path":"d/a.txt","content":"a"}}],"submit":{"transition":"report","message":"done"}}`)
		cwd := t.TempDir()
		began := time.Now()
		h := open(t, a, agent.Spec{ID: "s/orch-1", As: "orch", Cwd: cwd, Tools: submit}, nil)
		h.Say(agent.Message{ID: "m1"})
		synctest.Wait()
		time.Sleep(time.Hour)
		h.End()
		same(t, h.Words(),
			`opened {"agent":"scripted:s.jsonl","version":"1","model":"script","capabilities":{"resume":true,"hook_notice":true,"block_compaction":true,"probe":true,"live_usage":true,"cost":true,"subagent_ids":true,"spawn_limits":true,"permission":true},"session_id":"scripted-s/orch-1","window":0,"ceiling":0,"resumed":false}`,
			`receipt {"msg_id":"m1","state":"queued"}`,
			`turn_started {}`,
			`receipt {"msg_id":"m1","state":"started"}`,
			`text {"text":"Tests first.","message_id":"line-1"}`,
			`usage {"used":52000,"window":100000,"ceiling":100000,"tokens":{"in":52000,"out":0,"cache_read":0,"cache_write":0},"cost_usd":0.5}`,
			`tool {"tool_use_id":"use-1","tool":"Write","input":{"file_path":"d/a.txt","content":"a"},"message_id":"line-1"}`,
			`hook {"hook":"hook-2","point":"before_tool","tool":"Write","input":{"file_path":"d/a.txt","content":"a"}}`,
			`permission {"ask":"ask-3","tool":"Write","input":{"file_path":"d/a.txt","content":"a"},"tool_use_id":"use-1"}`,
			`tool_done {"tool_use_id":"use-1","ok":true,"ms":0}`,
			`hook {"hook":"hook-4","point":"after_tool","tool":"Write","input":{"file_path":"d/a.txt","content":"a"}}`,
			`tool_call {"call":"use-5","tool":"submit","input":{"transition":"report","message":"done"}}`,
			`receipt {"msg_id":"m1","state":"completed"}`,
			`turn_done {"outcome":"done","text":"Tests first.","session_id":"scripted-s/orch-1","turn":1}`,
			`exited {"code":0}`)
		if took := h.Told()[4].At.Sub(began); took != 250*time.Millisecond {
			t.Errorf("the text came after %v", took)
		}
		if text, err := os.ReadFile(filepath.Join(cwd, "d/a.txt")); string(text) != "a" {
			t.Errorf("a.txt: %q, %v", text, err)
		}
	})
}

// TestPlace: a line is for its specialist or for any, is played once over all sessions of an
// Agent, and after a restart goes on where the host says. Past the last one turns are empty.
func TestPlace(t *testing.T) {
	lines := []string{`{"text":"1"}`, `{"as":"b","text":"2"}`, ``, `{"as":"a","text":"4"}`, `{"text":"5"}`, `{"as":"a","text":"6"}`}
	synctest.Test(t, func(t *testing.T) {
		var taken []int
		turn := func(a agent.Agent, as string) string {
			h := open(t, a, agent.Spec{ID: as, As: as, Taken: taken}, nil)
			h.Say(agent.Message{})
			synctest.Wait()
			h.End()
			done := all[agent.Done](h)[0]
			if done.Outcome != agent.Finished {
				t.Fatalf("%+v", done)
			}
			if done.Turn != 0 {
				taken = append(taken, done.Turn)
			}
			return done.Text
		}
		a := script(t, lines...)
		for i, step := range [][2]string{{"a", "1"}, {"a", "4"}, {"b", "2"}, {"restart", ""}, {"b", "5"}, {"b", "The script is at its end."}, {"restart", ""}, {"a", "6"}, {"a", "The script is at its end."}} {
			if step[0] == "restart" {
				a = script(t, lines...)
			} else if got := turn(a, step[0]); got != step[1] {
				t.Fatalf("step %d: %s plays %q, want %q", i, step[0], got, step[1])
			}
		}
		if !slices.Equal(taken, []int{1, 4, 2, 5, 6}) {
			t.Fatalf("taken %v", taken)
		}
	})
}

// TestCutOff: what Close cuts off is played again; what Interrupt cuts off is not. Either way the
// turn has its end, and an open permission is withdrawn.
func TestCutOff(t *testing.T) {
	for name, cut := range map[string]func(*host){
		"close":     func(h *host) { h.End() },
		"interrupt": func(h *host) { _ = h.Session.Interrupt(context.Background()); synctest.Wait(); h.End() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := script(t, `{"text":"1","tools":[{"tool":"Bash","input":{"command":"touch x"}}]}`, `{"text":"2"}`)
				cwd := t.TempDir()
				var ask string
				h := open(t, a, agent.Spec{ID: "s", Cwd: cwd}, func(e agent.Event) (agent.Reply, bool) {
					if p, ok := e.Body.(agent.Permission); ok {
						ask = p.ID
						return agent.Reply{}, false
					}
					return allow(e)
				})
				h.Say(agent.Message{})
				synctest.Wait()
				cut(h)
				same(t, h.Words(agent.KindPermission, agent.KindWithdrawn, agent.KindDone, agent.KindExited),
					`permission {"ask":"`+ask+`","tool":"Bash","input":{"command":"touch x"},"tool_use_id":"use-1"}`,
					`withdrawn {"ask":"`+ask+`"}`,
					`turn_done {"outcome":"cancelled","text":"1","session_id":"scripted-s"`+map[string]string{"close": "", "interrupt": `,"turn":1`}[name]+`}`,
					`exited {"code":0}`)
				if err := h.Session.Answer(context.Background(), agent.Reply{To: ask, Allow: true}); !errors.Is(err, agent.ErrClosed) {
					t.Errorf("a late answer: %v", err)
				}
				if _, err := os.Stat(filepath.Join(cwd, "x")); err == nil {
					t.Error("the tool was used")
				}
				next := open(t, a, agent.Spec{ID: "s2", Cwd: t.TempDir()}, nil)
				next.Say(agent.Message{})
				synctest.Wait()
				next.End()
				if got, want := all[agent.Done](next)[0].Text, map[string]string{"close": "1", "interrupt": "2"}[name]; got != want {
					t.Errorf("then %q is played, want %q", got, want)
				}
			})
		})
	}
}

// TestEndings: a crash ends the session, a hang lasts until it is interrupted, and after full
// no turn does anything.
func TestEndings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"text":"1","end":"hang"}`, `{"text":"2","end":"full"}`, `{"text":"3","end":"crash"}`)
		h := open(t, a, agent.Spec{ID: "s"}, nil)
		h.Say(agent.Message{})
		synctest.Wait()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if got := all[agent.Done](h); len(got) > 0 {
			t.Fatalf("a hanging turn ended: %+v", got)
		}
		if err := h.Session.Interrupt(context.Background()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			h.Say(agent.Message{Deliver: agent.After})
		}
		synctest.Wait()
		h.End()
		same(t, h.Words(agent.KindDone),
			`turn_done {"outcome":"cancelled","text":"1","session_id":"scripted-s","turn":1}`,
			`turn_done {"outcome":"full","text":"2","problem":"the script says so","session_id":"scripted-s","turn":2}`,
			`turn_done {"outcome":"full","problem":"the script says so","session_id":"scripted-s"}`)

		h = open(t, a, agent.Spec{ID: "t", Resume: "scripted-s"}, nil)
		h.Say(agent.Message{})
		<-h.Ended()
		same(t, h.Words(agent.KindDone, agent.KindExited),
			`turn_done {"outcome":"crashed","text":"3","problem":"the script says so","session_id":"scripted-s","turn":3}`,
			`exited {"code":1}`)
		if err := h.Session.Send(context.Background(), agent.Message{Content: "x"}); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("send after a crash: %v", err)
		}
		h.End()
		if !all[agent.Opened](h)[0].Resumed {
			t.Error("it says that it is new")
		}
	})
}

// TestSteerAfterInterrupt: what is said once the turn was interrupted is for the next.
func TestSteerAfterInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, script(t, `{"text":"1","end":"hang"}`, `{"text":"2"}`), agent.Spec{ID: "s"}, nil)
		h.Say(agent.Message{ID: "a"})
		synctest.Wait()
		_ = h.Session.Interrupt(context.Background())
		h.Say(agent.Message{ID: "b"})
		synctest.Wait()
		h.End()
		if done := all[agent.Done](h); len(done) != 2 || done[1].Text != "2" {
			t.Errorf("%+v", done)
		}
	})
}

// TestInterruptWins: what was interrupted before it was permitted is not done, whichever of the
// two is noticed first.
func TestInterruptWins(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			cwd := t.TempDir()
			var h *host
			ready := make(chan struct{})
			h = open(t, script(t, `{"tools":[{"tool":"Write","input":{"file_path":"x","content":"x"}}]}`), agent.Spec{ID: "s", Cwd: cwd}, func(e agent.Event) (agent.Reply, bool) {
				if _, ok := e.Body.(agent.Permission); ok {
					<-ready
					_ = h.Session.Interrupt(context.Background())
				}
				return allow(e)
			})
			close(ready)
			h.Say(agent.Message{})
			synctest.Wait()
			h.End()
			if _, err := os.Stat(filepath.Join(cwd, "x")); err == nil {
				t.Fatal("it was done")
			}
		})
	}
}

// TestUnknownSession: what no scripted agent has opened cannot be gone on with.
func TestUnknownSession(t *testing.T) {
	_, err := script(t).Open(t.Context(), agent.Spec{ID: "s", Resume: "9f2"}, nil)
	if !errors.Is(err, agent.ErrUnknown) {
		t.Fatal(err)
	}
}

// TestDelivery: what steers goes into the running turn, what is for after gets its own, and
// what is for now ends the running one.
func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"text":"1","wait_ms":1000}`, `{"text":"2","wait_ms":1000}`, `{"text":"3"}`)
		h := open(t, a, agent.Spec{ID: "s"}, nil)
		h.Say(agent.Message{ID: "first"})
		synctest.Wait()
		h.Say(agent.Message{ID: "after", Deliver: agent.After})
		h.Say(agent.Message{ID: "steer"})
		time.Sleep(1500 * time.Millisecond)
		h.Say(agent.Message{ID: "now", Deliver: agent.Now})
		time.Sleep(time.Hour)
		h.End()
		same(t, h.Words(agent.KindReceipt, agent.KindDone),
			`receipt {"msg_id":"first","state":"queued"}`,
			`receipt {"msg_id":"first","state":"started"}`,
			`receipt {"msg_id":"after","state":"queued"}`,
			`receipt {"msg_id":"steer","state":"queued"}`,
			`receipt {"msg_id":"steer","state":"started"}`,
			`receipt {"msg_id":"first","state":"completed"}`,
			`receipt {"msg_id":"steer","state":"completed"}`,
			`turn_done {"outcome":"done","text":"1","session_id":"scripted-s","turn":1}`,
			`receipt {"msg_id":"after","state":"started"}`,
			`receipt {"msg_id":"now","state":"queued"}`,
			`receipt {"msg_id":"after","state":"completed"}`,
			`turn_done {"outcome":"cancelled","text":"2","session_id":"scripted-s","turn":2}`,
			`receipt {"msg_id":"now","state":"started"}`,
			`receipt {"msg_id":"now","state":"completed"}`,
			`turn_done {"outcome":"done","text":"3","session_id":"scripted-s","turn":3}`)
	})
}

// TestBadMessage: what cannot be sent is refused.
func TestBadMessage(t *testing.T) {
	h := open(t, script(t), agent.Spec{ID: "s"}, nil)
	defer h.End()
	for _, m := range []agent.Message{{}, {Content: "x", Deliver: "soon"}} {
		if err := h.Session.Send(context.Background(), m); err == nil {
			t.Errorf("%+v is sent", m)
		}
	}
	if err := h.Session.Answer(context.Background(), agent.Reply{To: "ask-1"}); !errors.Is(err, agent.ErrStale) {
		t.Errorf("an answer to nothing: %v", err)
	}
}

// TestRefusals: a tool is not used unless the session has it, the hook lets it, and the
// permission is given; the reason is its output.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		own   []string
		reply func(agent.Event) (agent.Reply, bool)
		want  string
	}{
		"not its own": {[]string{"Read"}, allow, "there is no tool Bash"},
		"none":        {[]string{}, allow, "there is no tool Bash"},
		"hook": {nil, func(e agent.Event) (agent.Reply, bool) {
			if h, ok := e.Body.(agent.Hook); ok && h.Point == agent.BeforeTool {
				return agent.Reply{To: h.ID, Reason: "not now"}, true
			}
			return allow(e)
		}, "refused: not now"},
		"permission": {nil, func(e agent.Event) (agent.Reply, bool) {
			if p, ok := e.Body.(agent.Permission); ok {
				return agent.Reply{To: p.ID, Reason: "write a test"}, true
			}
			return allow(e)
		}, "not permitted: write a test"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cwd := t.TempDir()
				h := open(t, script(t, `{"tools":[{"tool":"Bash","input":{"command":"touch x"}}]}`), agent.Spec{ID: "s", Cwd: cwd, OwnTools: c.own}, c.reply)
				h.Say(agent.Message{})
				synctest.Wait()
				h.End()
				done := all[agent.ToolDone](h)[0]
				if done.OK || done.Output != c.want {
					t.Errorf("%+v, want %q", done, c.want)
				}
				if _, err := os.Stat(filepath.Join(cwd, "x")); err == nil {
					t.Error("the tool was used")
				}
			})
		})
	}
}

// TestTools performs the four tools, and asks a question.
func TestTools(t *testing.T) {
	for name, c := range map[string]struct {
		tool, input, output string
		ok                  bool
	}{
		"read":           {"Read", `{"file_path":"have.txt"}`, "one two", true},
		"read absent":    {"Read", `{"file_path":"not.txt"}`, "no such file", false},
		"read nothing":   {"Read", `{}`, "file_path is missing", false},
		"edit":           {"Edit", `{"file_path":"have.txt","old_string":"two","new_string":"three"}`, "", true},
		"edit twice":     {"Edit", `{"file_path":"have.txt","old_string":"o","new_string":"0"}`, "2 times", false},
		"write outside":  {"Write", `{"file_path":"../out.txt","content":"x"}`, "escapes", false},
		"write absolute": {"Write", `{"file_path":"CWD/new.txt","content":"x"}`, "", true},
		"bash":           {"Bash", `{"command":"cat have.txt; echo $DIALAI_SESSION $MINE"}`, "one twos yes\n", true},
		"bash fails":     {"Bash", `{"command":"echo no; exit 3"}`, "exit status 3: no", false},
		"bash leaves":    {"Bash", `{"command":"sleep 600 & echo left"}`, "left\n", true},
		"bash nothing":   {"Bash", `{}`, "command is missing", false},
		"question":       {"AskUserQuestion", `{"questions":[]}`, `{"Which?":"this"}`, true},
		"other":          {"WebFetch", `{}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			cwd := t.TempDir()
			if err := os.WriteFile(filepath.Join(cwd, "have.txt"), []byte("one two"), 0o600); err != nil {
				t.Fatal(err)
			}
			input := strings.ReplaceAll(c.input, "CWD", cwd)
			ended := make(chan agent.ToolDone, 1)
			h := open(t, script(t, `{"tools":[{"tool":"`+c.tool+`","input":`+input+`}]}`), agent.Spec{ID: "s", Cwd: cwd, Env: []string{"MINE=yes"}}, func(e agent.Event) (agent.Reply, bool) {
				if d, ok := e.Body.(agent.ToolDone); ok {
					ended <- d
				}
				r, ok := allow(e)
				if p, asks := e.Body.(agent.Permission); asks && p.Question {
					r.Answers = json.RawMessage(`{"Which?":"this"}`)
				}
				return r, ok
			})
			h.Say(agent.Message{})
			got := <-ended
			h.End()
			if got.OK != c.ok || !strings.Contains(got.Output, c.output) {
				t.Errorf("%+v, want %v with %q", got, c.ok, c.output)
			}
		})
	}
}

// TestNoFolder: nothing is performed where the session was given no folder.
func TestNoFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, script(t, `{"tools":[{"tool":"Bash","input":{"command":"pwd"}}]}`), agent.Spec{ID: "s"}, nil)
		h.Say(agent.Message{})
		synctest.Wait()
		h.End()
		if done := all[agent.ToolDone](h)[0]; done.OK {
			t.Errorf("%+v", done)
		}
	})
}

// TestBashLeavesNothing: what a command leaves running ends with it.
func TestBashLeavesNothing(t *testing.T) {
	cwd := t.TempDir()
	h := open(t, script(t, `{"tools":[{"tool":"Bash","input":{"command":"mkfifo fifo && { sleep 600 > fifo & } && echo > fifo"}}]}`), agent.Spec{ID: "s", Cwd: cwd}, nil)
	h.Say(agent.Message{})
	for {
		if f, err := os.Open(filepath.Join(cwd, "fifo")); err == nil {
			text, err := io.ReadAll(f) // until nobody holds it open
			if string(text) != "\n" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
			_ = f.Close()
			h.End()
			return
		}
	}
}

// TestInterruptBash: a command that runs is ended with the turn, and so is what it started.
func TestInterruptBash(t *testing.T) {
	cwd := t.TempDir()
	fifo := filepath.Join(cwd, "fifo")
	h := open(t, script(t, `{"tools":[{"tool":"Bash","input":{"command":"mkfifo fifo && { sleep 600 > fifo & } && sleep 600"}}]}`), agent.Spec{ID: "s", Cwd: cwd}, nil)
	h.Say(agent.Message{})
	for {
		if f, err := os.Open(fifo); err == nil { // waits until both have begun
			defer func() { _ = f.Close() }()
			if err := h.Session.Interrupt(context.Background()); err != nil {
				t.Fatal(err)
			}
			h.End()
			if n, err := f.Read(make([]byte, 1)); n != 0 || err == nil { // until whoever writes has ended
				t.Errorf("read %d, %v", n, err)
			}
			return
		}
	}
}

// TestSubagent: a subagent uses the tools in its input, as its own; the hook can refuse it, and
// one within it, by what they tell.
func TestSubagent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"tools":[{"tool":"Task","input":{"description":"outer","tools":[{"tool":"Agent","input":{"description":"inner"}},{"tool":"submit","input":{"transition":"complete"}}]}}]}`)
		h := open(t, a, agent.Spec{ID: "s", Tools: submit, OwnTools: []string{"Agent"}}, func(e agent.Event) (agent.Reply, bool) {
			if k, ok := e.Body.(agent.Hook); ok && k.Point == agent.BeforeTool && k.Parent != "" {
				return agent.Reply{To: k.ID, Reason: "too deep"}, true
			}
			return allow(e)
		})
		h.Say(agent.Message{})
		synctest.Wait()
		h.End()
		same(t, h.Words(agent.KindSubagent, agent.KindToolDone, agent.KindToolCall),
			`subagent {"task_id":"task-use-1","description":"outer","depth":1}`,
			`tool_done {"tool_use_id":"use-3","ok":false,"ms":0,"output":"refused: too deep"}`,
			`tool_call {"call":"use-6","tool":"submit","input":{"transition":"complete"},"parent":"use-1"}`,
			`subagent {"task_id":"task-use-1","description":"outer","depth":1,"status":"completed"}`,
			`tool_done {"tool_use_id":"use-1","ok":true,"ms":0,"output":"completed"}`)
	})
}

// TestMeter: a session can be asked what its newest turn told; costs add up.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"used":10,"cost_usd":0.25}`, `{"cost_usd":0.5}`, `{"used":20,"window":1000}`)
		h := open(t, a, agent.Spec{ID: "s"}, nil)
		for range 3 {
			h.Say(agent.Message{Deliver: agent.After})
		}
		synctest.Wait()
		u, err := h.Session.(agent.Meter).Usage(context.Background())
		if err != nil || u.Used != 20 || u.Ceiling != 1000 || *u.CostUSD != 0.75 || u.Tokens.In != 30 {
			t.Errorf("%+v, %v", u, err)
		}
		h.End()
		same(t, h.Words(agent.KindUsage),
			`usage {"used":10,"window":200000,"ceiling":200000,"tokens":{"in":10,"out":0,"cache_read":0,"cache_write":0},"cost_usd":0.25}`,
			`usage {"used":10,"window":200000,"ceiling":200000,"tokens":{"in":10,"out":0,"cache_read":0,"cache_write":0},"cost_usd":0.75}`,
			`usage {"used":20,"window":1000,"ceiling":1000,"tokens":{"in":30,"out":0,"cache_read":0,"cache_write":0},"cost_usd":0.75}`)
	})
}
