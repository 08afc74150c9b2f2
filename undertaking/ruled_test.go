package undertaking_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
)

// TestNoCheckNoAccept: where no command was run, nothing speaks for the work but the owner.
func TestNoCheckNoAccept(t *testing.T) {
	w := begin(t, "", claims)
	s, _ := w.waits("ruling")
	for _, p := range s.Proposals() {
		if p.SpecialistID == "checks" {
			t.Errorf("no check has run, and checks proposes %s", p.Transition.Name)
		}
	}
}

// TestNumbers: workers are numbered by the order in which they were opened, without a gap, also
// when one was lost and the process began anew.
func TestNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crash := `{"as":"orchestrator","text":"boom","end":"crash"}`
		w := begin(t, "", crash, crash, crash, crash,
			`{"as":"orchestrator","tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"a"}}],"submit":{"transition":"hand_off","message":"over","accomplished":["a"],"remaining":["b"],"context":"c"}}`,
			`{"as":"orchestrator","submit":{"transition":"inquire","message":"q","questions":[{"text":"q"}]}}`, claims)
		w.waits("ruling")
		w.rule("reply", `{"message":"yes"}`)
		w.process()
		_, u := w.waits("ruling")
		for i, worker := range u.Workers {
			if worker.Number != i+1 {
				t.Errorf("worker %d has the number %d", i+1, worker.Number)
			}
		}
		if len(u.Workers) != 3 || u.Bound != 3 {
			t.Errorf("%d workers, %d goes on; want 3, 3", len(u.Workers), u.Bound)
		}
	})
}

// TestRuledHandOver: what a human rules in a worker's place has a record, too.
func TestRuledHandOver(t *testing.T) {
	silent := `{"as":"orchestrator","text":"hm"}`
	w := begin(t, "test -f b.txt", silent, silent, silent)
	w.waits("working")
	w.rule("hand_off", "")
	_, u := w.waits("working") // the next one makes no move either
	if len(u.Workers) != 2 || !strings.Contains(string(u.Record), "This one was made from the logs") {
		t.Errorf("after %d workers the record is %s", len(u.Workers), u.Record)
	}
}

// TestStopsInTurn: a turn that brings the undertaking over its tokens is ended, also where
// nobody knows what they cost.
func TestStopsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "", `{"as":"orchestrator","used":50000,"window":200000,"end":"hang"}`)
		w.limitTokens("40000")
		began := time.Now()
		s, _, err := w.run(t.Context())
		if err != nil || s.Status != session.Stopped || !strings.Contains(s.Outcome().Reason, "of 40000 tokens are spent") {
			t.Errorf("it is %s (%s), %v", s.Status, s.Outcome().Reason, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the turn went on for %s", took)
		}
	})
}

// limitTokens begins the undertaking anew, limited by tokens alone.
func (w *works) limitTokens(n string) {
	w.Helper()
	file, text, _ := machines.Read("undertaking-solo")
	m, err := machine.Parse(file, []byte(strings.Replace(string(text), `"hard_limit_usd": 20, "default_estimate_usd": 0`, `"hard_limit_tokens": `+n, 1)), strategies.Checks())
	if err != nil {
		w.Fatal(err)
	}
	s, err := w.runner.Start(w.Context(), m, runner.StartOptions{Meta: mustMeta(w.cwd), Driver: session.DriverNone})
	if err != nil {
		w.Fatal(err)
	}
	w.id = s.ID
}

func mustMeta(cwd string) json.RawMessage {
	meta, _ := json.Marshal(map[string]string{"task": "t", "cwd": cwd})
	return meta
}

// A mortal is a store whose process dies at an entry of the agent_log: before it is there, or after.
type mortal struct {
	session.Store
	kind  string
	after bool
	dead  *atomic.Bool
}

func (d mortal) AppendAgentLog(ctx context.Context, id specialist.SessionID, last int64, events ...session.AgentEvent) error {
	dies := slices.ContainsFunc(events, func(e session.AgentEvent) bool { return e.Kind == d.kind })
	if d.dead.Load() || dies && !d.after {
		d.dead.Store(true)
		return errKilled
	}
	err := d.Store.AppendAgentLog(ctx, id, last, events...)
	d.dead.Store(dies)
	return err
}

func (d mortal) Commit(ctx context.Context, c *session.Change) error {
	if d.dead.Load() {
		return errKilled
	}
	return d.Store.Commit(ctx, c)
}

// dies has the undertaking driven by a process that dies, and returns the store to another.
func (w *works) dies(kind string, after bool) {
	w.Helper()
	whole := w.store
	w.store = mortal{whole, kind, after, new(atomic.Bool)}
	w.process()
	if _, _, err := w.run(w.Context()); !errors.Is(err, errKilled) {
		w.Fatalf("it was not killed: %v", err)
	}
	w.store = whole
	w.process()
}

// TestCutTurn: a turn that ends with the process that drives it is made again, and its move is made
// once: its agent had not said that it was done.
func TestCutTurn(t *testing.T) {
	w := begin(t, "test -f a.txt", writesA, claims)
	w.dies("submitted", true)
	s, u := w.waits("ruling")
	w.moved(s, "orchestrator report, orchestrator complete, checks passed")
	if len(u.Workers) != 1 || u.Workers[0].Turns != 2 {
		t.Errorf("workers are %+v", u.Workers)
	}
}

// TestClosedTurn: so is one that is ended in good order, by who leaves, also of an agent that says so.
func TestClosedTurn(t *testing.T) {
	t.Run("silent", func(t *testing.T) { closedTurn(t, &dawdler{}) })
	t.Run("says so", func(t *testing.T) { closedTurn(t, &dawdler{says: true}) })
}

func closedTurn(t *testing.T, a *dawdler) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "")
		c := w.config(t.Context())
		c.Agent = func(string) (agent.Agent, error) { return a, nil }
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { leave(errKilled) })
		if _, _, err := undertaking.New(c).Run(ctx); !errors.Is(err, errKilled) {
			t.Fatalf("it did not end: %v", err)
		}
		a.ends = true
		s, _, err := undertaking.New(c).Run(t.Context())
		if !errors.Is(err, undertaking.ErrWaits) {
			t.Fatal(err)
		}
		w.moved(s, "orchestrator complete, checks passed")
	})
}

// A dawdler names a move, and does not end its turn; later it claims that all is done.
type dawdler struct {
	crowd
	ends bool
	says bool // that its turn was cut off, when it is closed
}

func (a *dawdler) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	_, err := a.crowd.Open(ctx, spec, events)
	return a, err
}

func (a *dawdler) Send(context.Context, agent.Message) error {
	if a.ends {
		go a.tell(agent.ToolCall{ID: "s", Tool: "submit", Input: json.RawMessage(`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[]}`)}, agent.Done{Outcome: agent.Finished})
		return nil
	}
	go a.tell(agent.ToolCall{ID: "s", Tool: "submit", Input: json.RawMessage(`{"transition":"report","message":"so far"}`)})
	return nil
}

func (a *dawdler) Answer(context.Context, agent.Reply) error { return nil }

func (a *dawdler) Close(ctx context.Context) error {
	if a.says && !a.ends {
		a.tell(agent.Done{Outcome: agent.Cancelled})
	}
	return a.crowd.Close(ctx)
}

// TestResumeHandOver: a process that is killed after a hand-over was executed, and before its
// worker was let go, leaves that to its successor: the worker is not asked again.
func TestResumeHandOver(t *testing.T) {
	w := begin(t, "test -f b.txt", writesA, handsOff,
		`{"as":"orchestrator","tools":[{"tool":"Write","input":{"file_path":"b.txt","content":"b"}}],"submit":{"transition":"complete","message":"both","accomplished":["b.txt"],"remaining":[]}}`)
	w.dies("released", false)
	s, u := w.waits("ruling")
	w.moved(s, "orchestrator report, orchestrator hand_off, checks failed, orchestrator complete, checks passed")
	if len(u.Workers) != 2 || u.Bound != 2 || u.Workers[0].Gone != "released" {
		t.Errorf("workers are %+v", u.Workers)
	}
}
