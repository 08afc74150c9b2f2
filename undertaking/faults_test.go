package undertaking_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
)

// entries returns those of the agent_log of some kind.
func (w *works) entries(kind string) (list []string) {
	w.Helper()
	for e, err := range w.store.AgentLog(w.Context(), w.id, 0) {
		if err != nil {
			w.Fatal(err)
		}
		if e.Kind == kind {
			list = append(list, string(e.Data))
		}
	}
	return list
}

// TestPaused: a process that was paused takes nobody for silent whom it could not hear.
func TestPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "", `{"as":"orchestrator","wait_ms":60000,"submit":{"transition":"report","message":"m"}}`, claims)
		c := w.config(t.Context())
		var mu sync.Mutex
		var pause time.Duration
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(pause) }
		time.AfterFunc(10*time.Second, func() { mu.Lock(); defer mu.Unlock(); pause = time.Hour })
		s, u, err := undertaking.New(c).Run(t.Context())
		if !errors.Is(err, undertaking.ErrWaits) || u.Workers[0].Opened != 1 || strings.Contains(strings.Join(w.lines, "\n"), "no sign of life") {
			t.Errorf("it came to %s in %s, %v: %+v", s.Status, s.State.Name, err, u.Workers)
		}
	})
}

// TestQueueSurvives: what a human said in a turn that was killed is said again, and what was
// said after it too; nothing is said twice otherwise.
func TestQueueSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "", `{"as":"orchestrator","wait_ms":60000,"submit":{"transition":"report","message":"m"}}`, claims)
		ctx, kill := context.WithCancelCause(t.Context())
		actor := session.LocalActor("owner")
		say := func(text string, deliver agent.Delivery) {
			if _, err := undertaking.Say(t.Context(), w.runner, w.id, text, deliver, &actor, time.Now()); err != nil {
				t.Error(err)
			}
		}
		time.AfterFunc(10*time.Second, func() { say("use tabs", agent.Steer); say("then stop", agent.After) })
		time.AfterFunc(20*time.Second, func() { kill(errKilled) })
		if _, _, err := w.run(ctx); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if n := len(w.entries("told")); n != 1 {
			t.Fatalf("told %d times", n)
		}
		w.process()
		w.waits("ruling")
		list := w.entries("told")
		var again struct{ Words []string }
		if len(list) != 2 || json.Unmarshal([]byte(list[1]), &again) != nil || len(again.Words) != 2 {
			t.Errorf("told were %s, want both words after the kill", list)
		}
	})
}

// A slow agent takes three seconds to heed an interrupt, and says nothing until then.
type slow struct{ crowd }

func (s *slow) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	_, err := s.crowd.Open(ctx, spec, events)
	return s, err
}

func (s *slow) Send(context.Context, agent.Message) error { return nil }

func (s *slow) Interrupt(context.Context) error {
	time.AfterFunc(3*time.Second, func() { s.tell(agent.Done{Outcome: agent.Cancelled}) })
	return nil
}

// TestRuledInTurn: where a human rules in a worker's place, its turn ends, and the check runs
// only when nothing changes what it checks any more.
func TestRuledInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "true")
		c, at := w.config(t.Context()), map[string]time.Time{}
		c.Agent = func(string) (agent.Agent, error) { return &slow{}, nil }
		tell := c.Tell
		c.Tell = func(l undertaking.Line) {
			tell(l)
			for _, what := range []string{"owner complete", "runs the check"} {
				if strings.HasPrefix(l.Text, what) {
					at[what] = l.At
				}
			}
		}
		time.AfterFunc(time.Minute, func() { w.rule("complete", "") })
		s, _, err := undertaking.New(c).Run(t.Context())
		if w.moved(s, "owner complete, checks passed"); !errors.Is(err, undertaking.ErrWaits) {
			t.Error(err)
		}
		if after := at["runs the check"].Sub(at["owner complete"]); after < 3*time.Second || after > 5*time.Second {
			t.Errorf("the check ran %s after the ruling, and the turn goes on for 3 s", after)
		}
	})
}

// TestCrashAttribution: that we end a worker's process, or that ours is killed, is no failure of
// the agent.
func TestCrashAttribution(t *testing.T) {
	var asks []string
	for _, q := range []string{"red", "green", "blue", "black", "white"} {
		asks = append(asks, `{"as":"orchestrator","text":"`+q+`","submit":{"transition":"inquire","message":"Is it `+q+`?","questions":[{"text":"Is it `+q+`?"}]}}`)
	}
	w := begin(t, "", append(asks, claims)...)
	for range asks {
		_, u := w.waits("ruling")
		if len(u.Workers) != 1 || u.Workers[0].Failures != 0 {
			t.Fatalf("workers are %+v", u.Workers)
		}
		w.rule("reply", `{"message":"yes"}`)
		w.process()
	}
}

// TestIllegalMove: a move that an edited machine does not take asks a human; the undertaking
// goes on by what is said then.
func TestIllegalMove(t *testing.T) {
	w := begin(t, "", `{"as":"orchestrator","submit":{"transition":"report","message":"m"}}`, claims)
	_, text, _ := machines.Read("undertaking-solo")
	edited := strings.Replace(string(text), `"report": { "target": "working",`, `"report": { "target": "working", "parameters": {"type": "object", "required": ["ticket"]},`, 1)
	m, err := machine.Parse("edited.json", []byte(edited), strategies.Checks())
	if err != nil || edited == string(text) {
		t.Fatal(err)
	}
	meta, _ := json.Marshal(map[string]string{"task": "t", "cwd": w.cwd})
	s, err := w.runner.Start(t.Context(), m, runner.StartOptions{Meta: meta, Driver: session.DriverNone})
	if err != nil {
		t.Fatal(err)
	}
	w.id = s.ID
	s, _ = w.waits("working")
	if w.told("illegal_move"); s.Status != session.NeedsHuman {
		t.Errorf("it is %s", s.Status)
	}
	actor := session.LocalActor("owner")
	if _, err := undertaking.Say(t.Context(), w.runner, w.id, "finish", agent.Steer, &actor, time.Now()); err != nil {
		t.Fatal(err)
	}
	s, _ = w.waits("ruling")
	w.moved(s, "orchestrator complete, checks passed")
}

// A crowd is an agent that asks for many subagents at once, before any has started, and then
// claims that all is done.
type crowd struct {
	many    int
	events  chan<- agent.Event
	spec    agent.Spec
	mu      sync.Mutex
	allowed int
	replies int
}

func (c *crowd) Check(context.Context) (agent.Info, error) { return agent.Info{}, nil }

func (c *crowd) Open(_ context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	c.events, c.spec = events, spec
	go c.tell(agent.Opened{AgentSession: "crowd"})
	return c, nil
}

func (c *crowd) tell(list ...agent.Body) {
	for _, b := range list {
		c.events <- agent.Event{Session: c.spec.ID, At: time.Now(), Body: b}
	}
}

func (c *crowd) Send(context.Context, agent.Message) error {
	var hooks []agent.Body
	for i := range c.many {
		hooks = append(hooks, agent.Hook{ID: fmt.Sprint(i), Point: agent.BeforeTool, Tool: "Task", Input: json.RawMessage(`{}`)})
	}
	go c.tell(hooks...)
	return nil
}

func (c *crowd) Answer(_ context.Context, r agent.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replies++; r.Allow {
		c.allowed++
	}
	if c.replies == c.many {
		go c.tell(agent.ToolCall{ID: "s", Tool: "submit", Input: json.RawMessage(`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[]}`)}, agent.Done{Outcome: agent.Finished})
	}
	return nil
}

func (c *crowd) Interrupt(context.Context) error { return nil }

func (c *crowd) Close(context.Context) error { c.tell(agent.Exited{}); return nil }

// TestManySpawnsAtOnce: subagents are counted when they are let, not when they have started, so
// that many that are asked for at once are not more than one after the other.
func TestManySpawnsAtOnce(t *testing.T) {
	w := begin(t, "")
	c, a := w.config(t.Context()), &crowd{many: 361}
	c.Agent = func(string) (agent.Agent, error) { return a, nil }
	if _, _, err := undertaking.New(c).Run(t.Context()); !errors.Is(err, undertaking.ErrWaits) {
		t.Fatal(err)
	}
	if a.allowed != 8 || a.replies != 361+1 {
		t.Errorf("%d of %d were let, want 8", a.allowed, a.replies-1)
	}
}
