package undertaking_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/scripted"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
)

// A works is an undertaking with a scripted agent, in one process after the other.
type works struct {
	*testing.T
	store    session.Store
	runner   *runner.Runner
	id       specialist.SessionID
	cwd      string
	settings undertaking.Settings
	lines    []string
	script   string
	heard    []string              // "AS: what it was told", of each message
	specs    map[string]agent.Spec // of the newest opening of each agent session
	refuses  map[string]int        // how often an agent session still does not open
	model    string
}

// A listener hears what its agent's sessions are told.
type listener struct {
	agent.Agent
	w *works
}

type listened struct {
	agent.Session
	w  *works
	as string
}

func (a listener) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	if _, of, _ := strings.Cut(spec.ID, "/"); a.w.refuses[of] > 0 {
		a.w.refuses[of]--
		return nil, errors.New("the program does not start")
	}
	s, err := a.Agent.Open(ctx, spec, events)
	if err != nil {
		return nil, err
	}
	_, of, _ := strings.Cut(spec.ID, "/")
	if a.w.specs == nil {
		a.w.specs = map[string]agent.Spec{}
	}
	a.w.specs[of] = spec
	heard := listened{s, a.w, of}
	if m, meters := s.(agent.Meter); meters {
		return struct {
			listened
			agent.Meter
		}{heard, m}, nil
	}
	return heard, nil
}

func (s listened) Send(ctx context.Context, m agent.Message) error {
	s.w.heard = append(s.w.heard, s.as+": "+m.Content)
	return s.Session.Send(ctx, m)
}

// hears returns the n-th message to an agent session, from 0.
func (w *works) hears(as string, n int) string {
	w.Helper()
	for _, h := range w.heard {
		if text, of := strings.CutPrefix(h, as+": "); of {
			if n--; n < 0 {
				return text
			}
		}
	}
	w.Errorf("%s was not told so much", as)
	return ""
}

func parse(t *testing.T, name string) *machine.Machine {
	t.Helper()
	file, text, ok := machines.Read(name)
	if !ok {
		t.Fatalf("there is no sample %s", name)
	}
	c := strategies.Checks()
	m, err := machine.Parse(file, text, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// begin starts an undertaking with a check command; turns are those of the script.
func begin(t *testing.T, check string, turns ...string) *works {
	t.Helper()
	return beginOf(t, "undertaking-solo", check, turns...)
}

// beginOf is begin of a machine.
func beginOf(t *testing.T, name, check string, turns ...string) *works {
	t.Helper()
	w := &works{T: t, store: store.NewMemory(), cwd: t.TempDir(), settings: undertaking.Settings{Poll: 20 * time.Millisecond}, script: strings.Join(turns, "\n") + "\n"}
	w.process()
	meta, _ := json.Marshal(map[string]string{"task": "write a.txt", "spec": "a.txt holds the letter a", "check": check, "cwd": w.cwd})
	s, err := w.runner.Start(t.Context(), parse(t, name), runner.StartOptions{Meta: meta, Driver: session.DriverNone})
	if err != nil {
		t.Fatal(err)
	}
	w.id = s.ID
	return w
}

// process begins another process on the same store.
func (w *works) process() {
	w.Helper()
	r, err := runner.New(runner.Config{
		Store: w.store, Resolver: strategies.Registry{}.WithArbiter("seats", undertaking.Seats{}),
		Agents: func(*machine.Machine, *machine.Specialist) error { return nil },
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = r.Close() })
	w.runner = r
}

func (w *works) config(ctx context.Context) undertaking.Config {
	a, err := scripted.New("script.jsonl", []byte(w.script))
	if err != nil {
		w.Fatal(err)
	}
	pr, err := runner.New(runner.Config{Store: w.store})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = pr.Close() })
	rules, err := permit.ParseRules("rules.json", []byte(`{"allow": ["Write", "Read", "Edit", "Bash", "Task", "Agent"]}`))
	if err != nil {
		w.Fatal(err)
	}
	actor := session.LocalActor("somebody")
	return undertaking.Config{
		Runner: w.runner, Session: w.id, Agent: func(string) (agent.Agent, error) { return listener{a, w}, nil }, Cwd: w.cwd, Settings: w.settings,
		Permit: permit.Config{Runner: pr, Machine: withoutJudge(w.T), Actor: &actor, Unanswered: permit.Park, Settings: permit.Settings{Rules: rules, Home: "/home/somebody", Path: os.Getenv("PATH")}},
		Tell: func(l undertaking.Line) {
			w.lines = append(w.lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", l.State, l.Worker, l.Text)))
			w.Log(w.lines[len(w.lines)-1])
		},
		NoWait: true, Model: w.model,
	}
}

// run carries it on until a human is asked, it has ended, or something goes wrong.
func (w *works) run(ctx context.Context) (*session.Session, undertaking.State, error) {
	w.Helper()
	return undertaking.New(w.config(ctx)).Run(ctx)
}

func (w *works) told(what string) {
	w.Helper()
	if !strings.Contains(strings.Join(w.lines, "\n"), what) {
		w.Errorf("nobody was told %q", what)
	}
}

// say has the owner say something.
func (w *works) say(text string, deliver agent.Delivery) {
	w.Helper()
	actor := session.LocalActor("owner")
	if _, err := undertaking.Say(w.Context(), w.runner, w.id, text, deliver, &actor, time.Now()); err != nil {
		w.Error(err)
	}
}

// rule has the owner decide.
func (w *works) rule(transition, payload string) *session.Session {
	w.Helper()
	s, err := w.runner.Session(w.Context(), w.id)
	if err != nil {
		w.Fatal(err)
	}
	actor := session.LocalActor("owner")
	a, err := w.runner.Decide(w.Context(), runner.Ruling{SessionID: w.id, RoundID: s.Key().ID(), SpecialistID: "owner", TransitionName: transition, MetaJSON: json.RawMessage(payload), Actor: &actor})
	if err != nil || !a.Executed {
		w.Fatalf("the owner's %s: %+v, %v", transition, a, err)
	}
	s, err = w.runner.Session(w.Context(), w.id)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// withoutJudge is the machine of permissions without its model.
func withoutJudge(t *testing.T) *machine.Machine {
	t.Helper()
	_, text, _ := machines.Read("permission")
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "specialistId: judge") {
			kept = append(kept, line)
		}
	}
	m, err := machine.Parse("permission.yaml", []byte(strings.Join(kept, "")), strategies.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	writesA  = `{"as":"orchestrator","text":"I write it.","used":20000,"window":200000,"cost_usd":0.1,"tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"a"}}],"submit":{"transition":"report","message":"a.txt is there"}}`
	claims   = `{"as":"orchestrator","used":30000,"window":200000,"cost_usd":0.25,"submit":{"transition":"complete","message":"all is done","accomplished":["a.txt"],"remaining":[]}}`
	handsOff = `{"as":"orchestrator","used":30000,"window":200000,"submit":{"transition":"hand_off","message":"over to you","accomplished":["a.txt"],"remaining":["b.txt"],"context":"b is like a"}}`
)

// TestSolo: one worker works, claims that it is done, the check passes, and the owner agrees.
func TestSolo(t *testing.T) {
	w := begin(t, "test -f a.txt", writesA, claims)
	s, state, err := w.run(t.Context())
	if !errors.Is(err, undertaking.ErrWaits) || s.State.Name != "ruling" || s.Status != session.NeedsHuman {
		t.Fatalf("it came to %s in %s: %v", s.Status, s.State.Name, err)
	}
	if text, err := os.ReadFile(w.cwd + "/a.txt"); err != nil || string(text) != "a" {
		t.Errorf("a.txt is %q, %v", text, err)
	}
	if len(state.Workers) != 1 || state.Workers[0].Turns != 2 || state.Workers[0].Open {
		t.Errorf("workers are %+v", state.Workers)
	}
	if spent := s.Spent(); spent.Money != 35*exact.Dollar/100 || len(state.Charged) != 1 || state.Charged["orchestrator"] != state.HandedIn["orchestrator"] {
		t.Errorf("$%s is handed in, charged is %v", spent.Money, state.Charged)
	}
	if s := w.rule("accept", ""); s.Status != session.Completed || s.State.Name != "done" {
		t.Errorf("after the owner's word it is %s in %s", s.Status, s.State.Name)
	}
}
