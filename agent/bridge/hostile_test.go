package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/bridge"
)

// TestGarbage: what is no command changes nothing, and half a line at the end is none.
func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t))
		h.send(`{"cmd":"spawn","id":"a"}`, "\x00\x01\x02", `}{`, ``, `   `, strings.Repeat(`{"a":`, 5000), `{"cmd":"kill","id":"a`)
		go func() {
			_, _ = io.WriteString(h.in, `{"cmd":"kill","id":"a"`)
			_ = h.in.Close()
		}()
		if err := h.rest(); err != nil || len(h.all("error", "code=bad_json")) != 5 || len(h.all("error")) != 5 || len(h.all("exit")) != 1 {
			t.Errorf("%v\n%s", err, h)
		}
		h = serve(t, script(t))
		go func() {
			_, _ = io.WriteString(h.in, `{"cmd":"shutdown","req":1}`) // without an end
			_ = h.in.Close()
		}()
		if err := h.rest(); err != nil || len(h.all("ok", "req=1")) != 1 {
			t.Errorf("%v\n%s", err, h)
		}
	})
}

// TestShutdownInTurn: with a permission open all ends, and the tool is not used.
func TestShutdownInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		h := serve(t, script(t, `{"tools": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "a"}}]}`))
		h.send(line(m{"cmd": "spawn", "id": "a", "config": m{"cwd": dir}}), `{"cmd":"message","id":"a","content":"Go on."}`)
		ask := h.until("permission")
		h.send(`{"cmd":"shutdown","req":1}`, line(m{"cmd": "approve", "id": "a", "ask": ask["ask"], "allow": true, "req": 2}), `{"cmd":"list","req":3}`)
		if err := h.rest(); err != nil || !h.told[len(h.told)-1].is("ok", "req=1") || len(h.all("done", "outcome=cancelled")) != 1 || len(h.all("exit")) != 1 || strings.Contains(h.String(), `"req":2`) {
			t.Errorf("%v\n%s", err, h)
		}
		if _, err := os.Stat(filepath.Join(dir, "a.txt")); err == nil {
			t.Error("the tool was used")
		}
	})
}

// TestMany: eight sessions take a thousand messages each, all of which are taken.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, script(t))
		const sessions, messages = 8, 1000
		go func() {
			for i := range sessions {
				h.send(fmt.Sprintf(`{"cmd":"spawn","id":"s%d"}`, i))
			}
			for n := range messages {
				for i := range sessions {
					h.send(fmt.Sprintf(`{"cmd":"message","id":"s%d","content":"%d","deliver":"steer","msg_id":"00000000-0000-4000-8000-%012d"}`, i, n, n))
				}
			}
		}()
		taken := map[string][]string{}
		for left := sessions * messages; left > 0; {
			if e := h.next(); e.is("receipt", "state=completed") {
				taken[e.text("id")] = append(taken[e.text("id")], e.text("msg_id"))
				left--
			}
		}
		if err := h.end(); err != nil || len(h.all("error")) > 0 || len(h.all("ok")) != sessions*(messages+1) || len(h.all("exit")) != sessions {
			t.Errorf("%v", err)
		}
		for id, list := range taken {
			for n, msg := range list {
				if want := fmt.Sprintf("00000000-0000-4000-8000-%012d", n); msg != want {
					t.Fatalf("%s took %s in place of %s", id, msg, want)
				}
			}
		}
	})
}

// A flood is an agent that says more than anybody reads, until it is closed.
type flood struct {
	agent.Session
	agent.Agent
	stop chan struct{}
	said *atomic.Int64
}

const wave = 64 << 10 // bytes that it says at once

func (f flood) Open(_ context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	go func() {
		tell := func(b agent.Body) { events <- agent.Event{Session: spec.ID, Body: b} }
		tell(agent.Opened{})
		for {
			select {
			case <-f.stop:
				tell(agent.Exited{})
				return
			default:
				tell(agent.Log{Stream: "stdout", Text: strings.Repeat("<", wave)})
				f.said.Add(1)
			}
		}
	}()
	return f, nil
}

func (f flood) Close(context.Context) error { close(f.stop); return nil }

// TestFlood: a host that does not read makes the agent stand still; it can end it even so, and
// then reads everything.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flood{stop: make(chan struct{}), said: &atomic.Int64{}}
		h := serve(t, agents{"": f})
		h.send(`{"cmd":"spawn","id":"a"}`)
		synctest.Wait()
		if n := f.said.Load(); n < 100 || n > 200 { // 8 MiB, and what is under way
			t.Errorf("%d waves were taken", n)
		}
		h.send(`{"cmd":"list"}`, `{"cmd":"kill","id":"a"}`)
		synctest.Wait()
		h.send(`{"cmd":"list","req":1}`, `{"cmd":"shutdown"}`)
		h.until("exit")
		h.until("ok", "req=1", "sessions=[]") // it has ended although nothing was read
		if err := h.rest(); err != nil || int64(len(h.all("log"))) != f.said.Load() {
			t.Errorf("%v: %d of %d waves were told", err, len(h.all("log")), f.said.Load())
		}
		for i, e := range h.told {
			if int(e.number("seq")) != i+1 {
				t.Fatalf("event %d has seq %v", i+1, e["seq"])
			}
		}
	})
}

// TestNobodyReads: a host that reads nothing is waited for at the end, but not for ever.
func TestNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flood{stop: make(chan struct{}), said: &atomic.Int64{}}
		h := serve(t, agents{"": f})
		h.send(`{"cmd":"spawn","id":"a"}`)
		synctest.Wait()
		began := time.Now()
		_ = h.in.Close()
		err := <-h.unread(t)
		if took := time.Since(began); err == nil || took < 10*time.Second || took > 20*time.Second {
			t.Errorf("it took %v: %v", took, err)
		}
	})
}

// unread is what Serve returns, without anybody reading; what still waits to be written is let go.
func (h *host) unread(t *testing.T) <-chan error {
	t.Helper()
	c := make(chan error, 1)
	go func() {
		c <- <-h.served
		for h.out.Scan() {
		}
	}()
	return c
}

// TestUnread: a host that goes on with commands, and reads nothing of what they are answered, is
// gone.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := errors.New(strings.Repeat("x", 1<<20))
		in, hostIn := io.Pipe()
		hostOut, out := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- bridge.Serve(context.Background(), in, out, func(string) (agent.Agent, error) { return nil, long })
			_ = in.Close()
		}()
		for {
			if _, err := io.WriteString(hostIn, `{"cmd":"spawn","id":"a"}`+"\n"); err != nil {
				break
			}
		}
		if err := <-served; err == nil || !strings.Contains(err.Error(), "does not read") {
			t.Error(err)
		}
		_ = hostOut.Close()
	})
}

// TestHostGone: where nothing can be written any more all sessions end, and so where the
// context does.
func TestHostGone(t *testing.T) {
	for _, how := range []string{"closed", "cancelled"} {
		synctest.Test(t, func(t *testing.T) {
			in, hostIn := io.Pipe()
			hostOut, out := io.Pipe()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			served := make(chan error, 1)
			a := script(t, `{"end": "hang"}`)
			go func() { served <- bridge.Serve(ctx, in, out, a.named) }()
			h := &host{t: t, in: hostIn, out: bufio.NewScanner(hostOut), served: served}
			h.send(`{"cmd":"spawn","id":"a"}`, `{"cmd":"message","id":"a","content":"Go on."}`)
			h.until("receipt", "state=started")
			gone := errors.New("gone")
			if how == "closed" {
				_ = hostOut.CloseWithError(gone)
				h.send(`{"cmd":"list"}`)
			} else {
				cancel(gone)
				go func() {
					for h.out.Scan() {
					}
				}()
			}
			if err := <-served; !errors.Is(err, gone) {
				t.Errorf("%s: %v", how, err)
			}
			_, _ = in.Close(), out.Close()
		})
	}
}

// TestWild: whatever an agent says, the host reads JSON, in the order of seq.
func TestWild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, agents{"": says{bodies: []agent.Body{
			agent.Opened{}, agent.Done{}, agent.Withdrawn{ID: "x"}, agent.ToolCall{ID: "1", Tool: "spawn_orchestrator", Input: json.RawMessage(`{`)},
			agent.ToolCall{ID: "2", Tool: "other"}, agent.ToolUse{ID: "3", Input: json.RawMessage(`no`)}, agent.Permission{ID: "4", Tool: "Bash"},
			agent.Permission{ID: "4", Tool: "Bash", Input: json.RawMessage(`[1,`)}, agent.Hook{ID: "5", Point: "elsewhere"}, agent.Usage{Used: -5, Ceiling: -1},
			agent.Usage{Used: 1 << 40, Ceiling: 1}, agent.Compaction{Trigger: "auto", Blocked: true}, agent.Compaction{Trigger: "auto", Blocked: true}, agent.Compaction{},
			agent.Text{Text: "\x00\xff<&>\u2028"}, agent.TurnStarted{}, agent.TurnStarted{}, agent.Log{Text: "token sk-0123456789"}, agent.Exited{},
		}}})
		h.send(`{"cmd":"spawn","id":"a","config":{"mcp_tools":["spawn_orchestrator"],"env":{"TOKEN":"sk-0123456789"}}}`)
		h.until("exit")
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
		want := "session ok error done tool_use permission permission usage context_warning compaction context_warning compaction compaction context_warning assistant log error exit"
		if got := h.kinds("a"); got != want {
			t.Errorf("%s\nwant\n%s\n%s", got, want, h)
		}
		if strings.Contains(h.String(), "sk-0123456789") {
			t.Error("a secret is told")
		}
	})
}

// TestOneAgent: an agent is made once, since it may remember: sessions of one script go on where
// others have stopped.
func TestOneAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		in, hostIn := io.Pipe()
		hostOut, out := io.Pipe()
		h := &host{t: t, in: hostIn, out: bufio.NewScanner(hostOut), served: make(chan error, 1)}
		go func() {
			err := bridge.Serve(context.Background(), in, out, func(string) (agent.Agent, error) {
				made++
				return script(t, `{"text": "first"}`, `{"text": "second"}`)[""], nil
			})
			_ = out.Close()
			h.served <- err
		}()
		for _, id := range []string{"a", "b"} {
			h.send(line(m{"cmd": "spawn", "id": id}), line(m{"cmd": "message", "id": id, "content": "Go on."}))
			h.until("done", "id="+id)
		}
		if err := h.end(); err != nil || made != 1 || len(h.all("assistant", "id=b", "text=second")) != 1 {
			t.Errorf("%v, made %d times\n%s", err, made, h)
		}
	})
}
