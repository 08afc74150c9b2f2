package undertaking

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// someMove is a payload that every move takes.
const someMove = `{"message":"m","number":%d,"questions":[{"text":"q"}],"findings":[{"text":"f","evidence":"e"}],"accomplished":["a"],"remaining":[],"record":{"accomplished":[],"remaining":[]}}`

// TestNoDeadEnd: after any moves of agents and rulings of the owner, the undertaking has ended, or
// somebody can move: an agent that is asked and may make an open move, or the owner.
func TestNoDeadEnd(t *testing.T) {
	for _, name := range []string{"undertaking", "undertaking-solo"} {
		file, text, _ := machines.Read(name)
		m, err := machine.Parse(file, text, strategies.Checks())
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			r, err := runner.New(runner.Config{
				Store: store.NewMemory(), Resolver: strategies.Registry{}.WithArbiter("seats", Seats{}),
				Agents: func(*machine.Machine, *machine.Specialist) error { return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			s, err := r.Start(t.Context(), m, runner.StartOptions{Meta: json.RawMessage(`{"task":"t","cwd":"/work"}`), Driver: session.DriverNone})
			if err != nil {
				t.Fatal(err)
			}
			for i := range rapid.IntRange(1, 40).Draw(t, "moves") {
				tick, err := r.Step(t.Context(), s.ID)
				if err != nil {
					t.Fatal(err)
				}
				if s = tick.Session; !s.Status.Live() {
					return
				}
				if tick.Status == runner.TickAdvanced || tick.Status == runner.TickSolicited || tick.Status == runner.TickRejected {
					continue
				}
				moveAtRandom(t, r, s, i)
			}
		}))
	}
}

func moveAtRandom(t *rapid.T, r *runner.Runner, s *session.Session, i int) {
	payload := json.RawMessage(fmt.Sprintf(someMove, i+1))
	var open []string
	for _, e := range s.State.Transitions {
		if s.WhyClosed(e) == "" {
			open = append(open, e.Name)
		}
	}
	type may struct{ as, move string }
	var list []may
	for _, ask := range s.OpenAsks() {
		for _, move := range moves[s.State.Name][ask.SpecialistID] {
			if slices.Contains(open, move) {
				list = append(list, may{ask.SpecialistID, move})
			}
		}
	}
	if s.Status == session.Running && len(list) == 0 && s.State.Name == "ruling" { // the loop says that no check speaks for the work
		if _, err := r.Withdraw(t.Context(), runner.Withdrawal{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: checks, Code: "nothing_passed"}); err != nil {
			t.Fatal(err)
		}
		return
	}
	if s.Status == session.Running && len(list) == 0 {
		t.Fatalf("in %s nobody who is asked can move: open are %v, asked are %d", s.State.Name, open, len(s.OpenAsks()))
	}
	if s.Status == session.NeedsHuman && len(open) < 2 {
		t.Fatalf("in %s the owner can only %v", s.State.Name, open)
	}
	if s.Status == session.NeedsHuman || rapid.IntRange(0, 9).Draw(t, "who") == 0 {
		move := rapid.SampledFrom(open).Draw(t, "ruling")
		actor := session.LocalActor("owner")
		if _, err := r.Decide(t.Context(), runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: owner, TransitionName: move, MetaJSON: payload, Actor: &actor}); err != nil {
			t.Fatalf("in %s the owner's %s: %v", s.State.Name, move, err)
		}
		return
	}
	m := rapid.SampledFrom(list).Draw(t, "move")
	if _, _, err := r.Propose(t.Context(), runner.Submission{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: machine.SpecialistID(m.as), TransitionName: m.move, MetaJSON: payload}); err != nil {
		t.Fatalf("in %s %s's %s: %v", s.State.Name, m.as, m.move, err)
	}
}

// TestTableIsOfTheMachines: the table of moves has what the machines have: each move of an agent in
// a state where it is listed, and each listed agent has a move.
func TestTableIsOfTheMachines(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"undertaking", "undertaking-solo"} {
		file, text, _ := machines.Read(name)
		m, err := machine.Parse(file, text, strategies.Checks())
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.States() {
			s := &m.States()[i]
			seen[s.Name] = true
			for _, r := range s.Roster {
				if id := r.SpecialistID; id != owner && r.Role == "proposer" && len(moves[s.Name][id]) == 0 {
					t.Errorf("%s: %s is listed in %s, and has no move there", name, id, s.Name)
				}
			}
			for id, list := range moves[s.Name] {
				for _, move := range list {
					if s.Transition(move) == nil {
						t.Errorf("%s: %s has no transition %s, which is %s's", name, s.Name, move, id)
					}
				}
				if !slices.ContainsFunc(s.Roster, func(r machine.Specialist) bool { return r.SpecialistID == id }) {
					t.Errorf("%s: %s has moves in %s, and is not listed", name, id, s.Name)
				}
			}
			if len(s.Transitions) > 0 && movers[s.Name] == "" {
				t.Errorf("%s: nobody is the mover of %s", name, s.Name)
			}
			if s.Transition("withdraw") == nil && len(s.Transitions) > 0 {
				t.Errorf("%s: the owner cannot give up in %s", name, s.Name)
			}
		}
	}
	for state := range moves {
		if !seen[state] {
			t.Errorf("the table has a state %s that no machine has", state)
		}
	}
}

// TestClosedWithoutWorker: where no worker is bound, nothing can be told to one.
func TestClosedWithoutWorker(t *testing.T) {
	file, text, _ := machines.Read("undertaking")
	m, err := machine.Parse(file, text, strategies.Checks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: store.NewMemory(), Resolver: strategies.Registry{}.WithArbiter("seats", Seats{}), Agents: func(*machine.Machine, *machine.Specialist) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Start(t.Context(), m, runner.StartOptions{Meta: json.RawMessage(`{"task":"t","cwd":"/work"}`), Driver: session.DriverNone})
	if err != nil {
		t.Fatal(err)
	}
	closed := func(moves ...string) {
		t.Helper()
		for _, move := range moves {
			if tr := s.State.Transition(move); tr == nil || s.WhyClosed(tr) == "" {
				t.Errorf("without a worker %s may be made in %s", move, s.State.Name)
			}
		}
	}
	actor := session.LocalActor("owner")
	for _, move := range []string{"state_plan", "assent", "awakened", "brief", "begin", "hand_off", "question", "lost", "escalate"} {
		if s.State.Name == "debrief" && move == "question" {
			if why := s.WhyClosed(s.State.Transition(move)); why != "" {
				t.Errorf("with a worker it cannot be asked: %s", why)
			}
		}
		if move == "escalate" {
			closed("question")
		}
		for {
			tick, err := r.Step(t.Context(), s.ID)
			if err != nil {
				t.Fatal(err)
			}
			if s = tick.Session; tick.Status != runner.TickAdvanced && tick.Status != runner.TickSolicited {
				break
			}
		}
		a, err := r.Decide(t.Context(), runner.Ruling{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: owner, TransitionName: move, MetaJSON: json.RawMessage(fmt.Sprintf(someMove, 1)), Actor: &actor})
		if err != nil || !a.Executed {
			t.Fatalf("%s in %s: %+v, %v", move, s.State.Name, a, err)
		}
		if s, err = r.Session(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	closed("rule", "carry_on")
	if why := s.WhyClosed(s.State.Transition("verify")); why != "" {
		t.Errorf("the work cannot be checked: %s", why)
	}
}

// TestCandidateOfAState: what a manager has decided in one state is not its move in another; a
// worker's move is still its own after the engine has cut it short.
func TestCandidateOfAState(t *testing.T) {
	s := State{Name: "debrief", Moved: map[string]int32{manager: 3, orchestrator: 3}}
	move := &Move{From: "weaving", Transition: escalate, Round: 5}
	if s.candidate(&Worker{As: manager, Candidate: move}) != nil {
		t.Error("a manager's move of another state is handed in")
	}
	if s.candidate(&Worker{As: orchestrator, Candidate: move}) == nil {
		t.Error("a worker's move is gone")
	}
}

// TestRetryIsOver: a provider that was tried again is tried no more once anything else comes.
func TestRetryIsOver(t *testing.T) {
	s := fold(State{}, entry{Agent: true, Seq: 1, Kind: "opened", Data: json.RawMessage(`{"as":"manager","number":1}`)})
	s = fold(s, entry{Agent: true, Seq: 2, Kind: "retry", Data: json.RawMessage(`{"as":"manager","number":1,"attempt":2,"max":10,"reason":"busy"}`)})
	if r := s.Others[manager][0].Retry; r == nil || r.Attempt != 2 {
		t.Fatalf("the retry is %+v", r)
	}
	if s = fold(s, entry{Agent: true, Seq: 3, Kind: "text", Data: json.RawMessage(`{"as":"manager","number":1}`)}); s.Others[manager][0].Retry != nil {
		t.Error("it is still tried again")
	}
}
