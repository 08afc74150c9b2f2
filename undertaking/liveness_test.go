package undertaking_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// A silent agent says nothing in its first turn; in its second it claims that all is done.
type silent struct {
	crowd
	began, ended time.Time
	opened       int
	first        agent.Body // what it says at once, if anything
}

func (s *silent) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	s.opened++
	_, err := s.crowd.Open(ctx, spec, events)
	return s, err
}

func (s *silent) Send(context.Context, agent.Message) error {
	if s.opened > 1 {
		go s.tell(agent.ToolCall{ID: "s", Tool: "submit", Input: json.RawMessage(`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[]}`)}, agent.Done{Outcome: agent.Finished})
		return nil
	}
	s.began = time.Now()
	if s.first != nil {
		go s.tell(s.first)
	}
	return nil
}

func (s *silent) Answer(context.Context, agent.Reply) error { return nil }

func (s *silent) Interrupt(context.Context) error {
	s.ended = time.Now()
	go s.tell(agent.Done{Outcome: agent.Cancelled})
	return nil
}

// A metered agent is silent, and says for some time that it is there.
type metered struct {
	silent
	probes []time.Duration // after its turn began
	until  time.Duration
}

func (m *metered) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	_, err := m.silent.Open(ctx, spec, events)
	return m, err
}

func (m *metered) Usage(ctx context.Context) (agent.Usage, error) {
	after := time.Since(m.began)
	if m.probes = append(m.probes, after); after <= m.until {
		return agent.Usage{}, nil
	}
	<-ctx.Done()
	return agent.Usage{}, ctx.Err()
}

// givenUp returns after how long a silent agent was interrupted.
func givenUp(t *testing.T, a agent.Agent, s *silent) time.Duration {
	t.Helper()
	w := begin(t, "")
	c := w.config(t.Context())
	c.Settings = undertaking.Settings{}
	c.Agent = func(string) (agent.Agent, error) { return a, nil }
	session, _, err := undertaking.New(c).Run(t.Context())
	if !errors.Is(err, undertaking.ErrWaits) || session.State.Name != "ruling" || s.opened != 2 {
		t.Fatalf("it came to %s, opened %d times: %v", session.State.Name, s.opened, err)
	}
	return s.ended.Sub(s.began).Round(10 * time.Second)
}

// TestProbe: a silent agent is asked after two minutes whether it is there. One that does not say
// so, three times, is given up; one that does has ten minutes, or thirty while a tool runs; one that
// cannot be asked has half as long again.
func TestProbe(t *testing.T) {
	use := agent.ToolUse{ID: "1", Tool: "Bash", MessageID: "m"}
	for name, of := range map[string]struct {
		agent interface {
			agent.Agent
			of() *silent
		}
		want time.Duration
	}{
		"gone":             {&metered{}, 2*time.Minute + 30*time.Second},
		"goes later":       {&metered{until: 5 * time.Minute}, 6*time.Minute + 30*time.Second},
		"there":            {&metered{until: time.Hour}, 10 * time.Minute},
		"there, in a tool": {&metered{until: time.Hour, silent: silent{first: use}}, 30 * time.Minute},
		"no meter":         {&silent{}, 15 * time.Minute},
		"no meter, a tool": {&silent{first: use}, 45 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := givenUp(t, of.agent, of.agent.of()); got != of.want {
					t.Errorf("it was given up after %s, want %s", got, of.want)
				}
			})
		})
	}
}

func (s *silent) of() *silent { return s }

// TestLivenessOnMove: an agent that waits for a permission is not silent, however long it takes.
func TestLivenessOnMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &metered{until: 0}
		a.first = agent.Permission{ID: "p", Tool: "Bash", Input: json.RawMessage(`{"command":"make"}`)}
		w := begin(t, "")
		c := w.config(t.Context())
		c.Settings, c.Permit.Unanswered = undertaking.Settings{}, permit.Wait
		c.Permit.Settings.Rules = permit.Rules{}
		c.Agent = func(string) (agent.Agent, error) { return a, nil }
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Hour)
		defer stop()
		_, _, err := undertaking.New(c).Run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !a.ended.IsZero() || len(a.probes) > 0 {
			t.Errorf("it was interrupted at %s, probed %d times: %v", a.ended, len(a.probes), err)
		}
	})
}

// TestBatchLoop: an agent that does the same again and again is told at three times, and at five
// its turn and its ask end; another agent session begins with nothing counted.
func TestBatchLoop(t *testing.T) {
	again := `{"as":"orchestrator","tools":[{"tool":"Read","input":{"file_path":"a.txt"}}],"submit":{"transition":"report","message":"%s"}}`
	turns := []string{writesA}
	for _, what := range []string{"first look", "another look", "a closer one", "yet more", "the last of all"} {
		turns = append(turns, fmt.Sprintf(again, what))
	}
	w := begin(t, "", append(turns, claims)...)
	s, u := w.waits("working")
	if why := s.ReasonWithFailures(s.Outcome(), false); s.Status != session.NeedsHuman || !strings.Contains(why, "came 5 times") {
		t.Errorf("it is %s: %s", s.Status, why)
	}
	w.told("Loop guard warning")
	w.moved(s, "orchestrator report, orchestrator report, orchestrator report, orchestrator report, orchestrator report")
	has(t, "the turn after the third", w.hears("orch-1", 4), "Loop guard warning")
	var warned, batches int
	for _, e := range w.entries("batch") {
		if batches++; strings.Contains(e, `"warned":true`) {
			warned++
		}
	}
	if warned != 1 || batches != 12 || len(u.Workers[0].Batches.Window) != batches {
		t.Errorf("of %d batches %d were warned of, %d are in the window", batches, warned, len(u.Workers[0].Batches.Window))
	}
}

// TestSubmitsForEver: an agent whose turn does not end, for it names its move again and again, is told
// and then stopped; what it looks at in each of its turns is no loop.
func TestSubmitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "")
		c := w.config(t.Context())
		a := &insistent{}
		c.Agent = func(string) (agent.Agent, error) { return a, nil }
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		s, _, err := undertaking.New(c).Run(ctx)
		if !errors.Is(err, undertaking.ErrWaits) || !strings.Contains(s.ReasonWithFailures(s.Outcome(), false), "came 5 times") {
			t.Fatalf("it is %s: %v", s.Status, err)
		}
		if a.submits != 5 || a.notices != 1 {
			t.Errorf("it submitted %d times, and was told %d times", a.submits, a.notices)
		}
		if a.turns != 8 {
			t.Errorf("it had %d turns", a.turns)
		}
	})
}

// An insistent agent reports, seven turns long, and looks at its moves in each; in the eighth it
// says that all is done, and goes on to say so.
type insistent struct {
	crowd
	turns, submits, notices int
	interrupted             bool
}

func (a *insistent) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	_, err := a.crowd.Open(ctx, spec, events)
	return a, err
}

func (a *insistent) Send(context.Context, agent.Message) error {
	a.turns++
	look := agent.ToolCall{ID: "look", Tool: "moves", Input: json.RawMessage(`{}`)}
	if a.turns == 8 {
		go a.tell(look, a.submit())
		return nil
	}
	go a.tell(look, agent.ToolCall{ID: "r", Tool: "submit", Input: fmt.Appendf(nil, `{"transition":"report","message":"file %d of 8 is written, and its tests pass"}`, a.turns)}, agent.Done{Outcome: agent.Finished})
	return nil
}

func (a *insistent) submit() agent.ToolCall {
	a.submits++
	return agent.ToolCall{ID: "s", Tool: "submit", Input: json.RawMessage(`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[]}`)}
}

func (a *insistent) Answer(_ context.Context, r agent.Reply) error {
	if r.Notice != "" {
		a.notices++
	}
	switch {
	case r.To != "s" || a.interrupted:
	case a.submits < 50:
		go a.tell(a.submit())
	default: // nobody stops it
		go a.tell(agent.Done{Outcome: agent.Finished})
	}
	return nil
}

func (a *insistent) Interrupt(context.Context) error {
	a.interrupted = true
	go a.tell(agent.Done{Outcome: agent.Cancelled})
	return nil
}

// TestSoftBudget: at four fifths of the budget the worker is told once.
func TestSoftBudget(t *testing.T) {
	dear := `{"as":"orchestrator","cost_usd":%s,"submit":{"transition":"report","message":"m"}}`
	w := begin(t, "", fmt.Sprintf(dear, "8"), fmt.Sprintf(dear, "8.5"), fmt.Sprintf(dear, "0.1"))
	if _, _, err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := slices.DeleteFunc(slices.Clone(w.heard), func(h string) bool { return !strings.Contains(h, "is spent: bring the work to an end") })
	if len(told) > 1 {
		t.Errorf("it was told %d times", len(told))
	}
}

// TestEarlierHandOver: an agent that may compact its context unasked hands over ten points earlier,
// and is told so.
func TestEarlierHandOver(t *testing.T) {
	a := &filling{}
	w := begin(t, "")
	c := w.config(t.Context())
	c.Agent = func(string) (agent.Agent, error) { return listener{a, w}, nil }
	_, u, err := undertaking.New(c).Run(t.Context())
	if !errors.Is(err, undertaking.ErrWaits) {
		t.Fatal(err)
	}
	if worker := u.Workers[0]; worker.Hard != 75 || worker.Gone != "hard" {
		t.Errorf("the worker is %+v", worker)
	}
	has(t, "what it was told", strings.Join(w.heard, "\n"), "Your context is 76 % full. Start nothing new.")
}

// A filling agent has a full context in its first turn, and hands over in its second; those after
// it claim that all is done.
type filling struct {
	crowd
	opened, turns int
}

func (f *filling) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	f.opened++
	_, err := f.crowd.Open(ctx, spec, events)
	return f, err
}

func (f *filling) Send(context.Context, agent.Message) error {
	submit := func(input string) agent.Body {
		return agent.ToolCall{ID: fmt.Sprint(f.turns), Tool: "submit", Input: json.RawMessage(input)}
	}
	switch f.turns++; {
	case f.opened > 1:
		go f.tell(submit(`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[]}`), agent.Done{Outcome: agent.Finished})
	case f.turns == 1:
		go f.tell(agent.Usage{Used: 76_000, Window: 100_000, Ceiling: 100_000}, agent.Done{Outcome: agent.Finished})
	default:
		go f.tell(submit(`{"transition":"hand_off","message":"m","accomplished":["a"],"remaining":["b"],"context":"c"}`), agent.Done{Outcome: agent.Finished})
	}
	return nil
}

func (f *filling) Answer(context.Context, agent.Reply) error { return nil }
