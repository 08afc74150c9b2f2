package tui

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
)

// A works is an undertaking whose moves and entries a test makes.
type works struct {
	testing.TB
	store *store.Memory
	r     *runner.Runner
	s     *session.Session
	seq   int64
}

// begin starts an undertaking of a machine.
func begin(t testing.TB, name, task string) *works {
	t.Helper()
	file, text, _ := machines.Read(name)
	return beginText(t, file, text, task)
}

// beginText starts one of an edited machine.
func beginText(t testing.TB, file string, text []byte, task string) *works {
	t.Helper()
	m, err := machine.Parse(file, text, strategies.Checks())
	if err != nil {
		t.Fatal(err)
	}
	w := &works{TB: t, store: store.NewMemory()}
	w.r, err = runner.New(runner.Config{
		Store: w.store, Resolver: strategies.Registry{}.WithArbiter("seats", undertaking.Seats{}),
		Agents: func(*machine.Machine, *machine.Specialist) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	meta, _ := json.Marshal(map[string]string{"task": task, "cwd": "/work", "check": "go test ./..."})
	if w.s, err = w.r.Start(t.Context(), m, runner.StartOptions{Meta: meta, Driver: session.DriverNone}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	return w
}

func (w *works) settle() {
	w.Helper()
	for {
		tick, err := w.r.Step(w.Context(), w.s.ID)
		if err != nil {
			w.Fatal(err)
		}
		if w.s = tick.Session; tick.Status != runner.TickAdvanced && tick.Status != runner.TickSolicited && tick.Status != runner.TickRejected {
			return
		}
	}
}

// move has a specialist make a move; the owner rules.
func (w *works) move(as, transition, payload string) {
	w.Helper()
	var err error
	if as == "owner" {
		actor := session.LocalActor("somebody")
		_, err = w.r.Decide(w.Context(), runner.Ruling{SessionID: w.s.ID, RoundID: w.s.Key().ID(), SpecialistID: "owner", TransitionName: transition, MetaJSON: json.RawMessage(payload), Actor: &actor})
	} else {
		var message struct{ Message string }
		_ = json.Unmarshal([]byte(payload), &message)
		_, _, err = w.r.Propose(w.Context(), runner.Submission{SessionID: w.s.ID, RoundID: w.s.Key().ID(), SpecialistID: machine.SpecialistID(as), TransitionName: transition, MetaJSON: json.RawMessage(payload), Reasoning: message.Message})
	}
	if err != nil {
		w.Fatalf("%s's %s in %s: %v", as, transition, w.s.State.Name, err)
	}
	w.settle()
}

// log appends entries to the agent_log: a kind and what it says, one after the other.
func (w *works) log(entries ...string) {
	w.Helper()
	for i := 0; i < len(entries); i += 2 {
		e := session.AgentEvent{At: specialist.TimeOf(time.Now()), Kind: entries[i], Data: json.RawMessage(entries[i+1])}
		if err := w.store.AppendAgentLog(w.Context(), w.s.ID, w.seq, e); err != nil {
			w.Fatal(err)
		}
		w.seq++
	}
}

// now is what there is to show.
func (w *works) now() Now {
	w.Helper()
	u, err := undertaking.Load(w.Context(), w.store, w.s.ID, undertaking.State{})
	if err != nil {
		w.Fatal(err)
	}
	return Now{Session: w.s, State: u, At: time.Now()}
}

const (
	questions = `{"message":"Two things before I plan.","questions":[{"text":"Which separator?","options":["comma","semicolon"]},{"text":"Which columns?"}]}`
	plan      = `{"message":"This is what I have understood.","understanding":"An export of invoices as CSV","deliverables":["a query layer","a CSV encoder","a download route"],"out_of_scope":["sending it by mail"],"done_when":["the route answers with a CSV file"],"check":"go test ./..."}`
	record1   = `{"message":"The query layer is there; my context is nearly full.","accomplished":["query layer"],"remaining":["CSV encoder","download route"],"context":"The rows come from internal/query.","commits":["1a2b3c4"],"number":1,"reason":"hard","pct":86}`
)

// planned is an undertaking whose plan waits for assent.
func planned(t testing.TB) *works {
	w := begin(t, "undertaking", "Invoice export")
	w.log("opened", `{"as":"manager","number":1,"agent":"claude","session_id":"m1","window":200000,"ceiling":167000,"since":1}`, "usage", `{"as":"manager","number":1,"used":3900,"window":200000,"ceiling":167000}`)
	w.move("manager", "ask", questions)
	w.move("owner", "reply", `{"message":"Comma. Number and amount."}`)
	w.move("manager", "state_plan", plan)
	return w
}

// working is an undertaking whose second worker works.
func working(t testing.TB) *works {
	w := planned(t)
	w.move("owner", "assent", "")
	w.log("opened", `{"as":"orchestrator","number":1,"agent":"claude","session_id":"o1","window":200000,"ceiling":167000,"since":4}`)
	w.move("engine", "awakened", `{"number":1,"id":"orch-1","message":"orch-1 is there"}`)
	w.move("manager", "brief", `{"message":"Begin with the query layer."}`)
	w.move("orchestrator", "begin", `{"message":"I begin.","understanding":"u","approach":"a","tasks":["Query layer","CSV encoder","Download route"]}`)
	w.move("orchestrator", "hand_off", record1)
	w.move("manager", "pass_on", `{"message":"Go on with the encoder."}`)
	w.log("released", `{"as":"orchestrator","number":1,"reason":"hard"}`)
	w.log("opened", `{"as":"orchestrator","number":2,"agent":"claude","session_id":"o2","window":200000,"ceiling":167000,"since":9}`)
	w.move("engine", "awakened", `{"number":2,"id":"orch-2","message":"orch-2 is there"}`)
	w.move("manager", "brief", `{"message":"The rows come from internal/query."}`)
	w.move("orchestrator", "begin", `{"message":"I go on.","understanding":"u","approach":"a","tasks":[]}`)
	w.log("task", `{"as":"orchestrator","number":1,"id":1,"text":"Query layer","status":"done"}`, "task", `{"as":"orchestrator","number":2,"id":2,"text":"CSV encoder","status":"active"}`, "task", `{"as":"orchestrator","number":2,"id":3,"text":"Download route","status":"pending"}`,
		"turn_started", `{"as":"orchestrator","number":2}`, "turn_done", `{"as":"orchestrator","number":2,"outcome":"done"}`, "turn_started", `{"as":"orchestrator","number":2}`,
		"subagent", `{"as":"orchestrator","number":2,"task_id":"t","description":"Writing the CSV encoder"}`,
		"usage", `{"as":"orchestrator","number":2,"used":130260,"window":200000,"ceiling":167000}`, "usage", `{"as":"manager","number":1,"used":51770,"window":200000,"ceiling":167000}`,
		"crossed", `{"as":"orchestrator","number":2,"level":"soft","crossed":{"soft":true}}`, "charge", `{"as":"orchestrator","number":2,"usd":6.1,"in":812345,"out":0}`)
	return w
}

// judged is an undertaking whose verdicts wait for the human.
func judged(t testing.TB) *works {
	w := working(t)
	w.move("orchestrator", "complete", `{"message":"All is there.","accomplished":["CSV encoder","download route"],"remaining":[],"number":2,"reason":"complete"}`)
	w.move("manager", "accept_report", `{"message":"Judge the route."}`)
	w.move("checks", "passed", `{"message":"go test ./...","command":"go test ./...","exit":0,"output":"ok"}`)
	w.move("verifier-a", "sound", `{"message":"It holds.","findings":[{"text":"the route answers","evidence":"curl"}]}`)
	w.move("verifier-b", "incomplete", `{"message":"The header is missing.","findings":[{"text":"no header","evidence":"head -1"}]}`)
	return w
}

// withdraw ends an ask.
func (w *works) withdraw(as, code, note string) {
	w.Helper()
	if _, err := w.r.Withdraw(w.Context(), runner.Withdrawal{SessionID: w.s.ID, RoundID: w.s.Key().ID(), SpecialistID: machine.SpecialistID(as), Code: code, Note: note}); err != nil {
		w.Fatal(err)
	}
}
