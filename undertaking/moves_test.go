package undertaking

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/strategies"
)

func soloMachine(t *testing.T) *machine.Machine {
	t.Helper()
	file, text, ok := machines.Read("undertaking-solo")
	if !ok {
		t.Fatal("there is no sample undertaking-solo")
	}
	m, err := machine.Parse(file, text, strategies.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMovesTable: of every specialist, state and transition of the machine, exactly those of
// the specification are moves, and every move is a transition of its state, whose author the
// state lists.
func TestMovesTable(t *testing.T) {
	want := []string{
		"working orchestrator report", "working orchestrator inquire", "working orchestrator hand_off", "working orchestrator complete",
		"working engine cut_short", "working engine lost", "wrapping orchestrator hand_off", "wrapping engine lost",
		"checking checks passed", "checking checks failed", "ruling checks accept",
	}
	m, n := soloMachine(t), 0
	for _, s := range m.States() {
		for _, tr := range s.Transitions {
			for _, id := range []string{orchestrator, engine, checks, owner, "stranger"} {
				legal := slices.Contains(want, s.Name+" "+id+" "+tr.Name)
				if mayMove(s.Name, id, tr.Name) != legal {
					t.Errorf("%s may make %s in %s: %v, want %v", id, tr.Name, s.Name, !legal, legal)
				}
				if !legal {
					continue
				}
				if n++; !slices.ContainsFunc(s.Roster, func(r machine.Specialist) bool { return r.SpecialistID == id }) {
					t.Errorf("%s does not list %s", s.Name, id)
				}
			}
		}
	}
	if n != len(want) {
		t.Errorf("%d of %d moves are transitions of the machine", n, len(want))
	}
}

// TestRecordSchema: a record has its lists, is not empty, leaves nothing to do when all is
// done, says what whoever goes on must know, fits into 16 KiB, and sets no figure of the loop's.
func TestRecordSchema(t *testing.T) {
	large := strings.Repeat("x", 17<<10)
	for in, problem := range map[string]string{
		`{"transition":"hand_off","message":"m","accomplished":["a"],"remaining":["b"],"context":"c"}`:                  "",
		`{"transition":"hand_off","message":"m","accomplished":["a"],"remaining":[]}`:                                   "",
		`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[]}`:                                   "",
		`{"transition":"complete","message":"m","accomplished":["a"],"remaining":["b"],"context":"c"}`:                  "remaining is not empty",
		`{"transition":"hand_off","message":"m","accomplished":["a"],"remaining":["b"]}`:                                "context is missing",
		`{"transition":"hand_off","message":"m","accomplished":["a"],"remaining":["b"],"context":7}`:                    "context is no text",
		`{"transition":"hand_off","message":"m","remaining":["b"],"context":"c"}`:                                       "accomplished is missing",
		`{"transition":"hand_off","message":"m","accomplished":["a"]}`:                                                  "remaining is missing",
		`{"transition":"hand_off","message":"m","accomplished":[],"remaining":[]}`:                                      "both empty",
		`{"transition":"hand_off","message":"m","accomplished":null,"remaining":["b"],"context":"c"}`:                   "accomplished is no list",
		`{"transition":"complete","message":"m","accomplished":["a"],"remaining":null}`:                                 "remaining is no list",
		`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[],"files":"a.txt"}`:                   "files is no list",
		`{"transition":"complete","message":"m","accomplished":[7],"remaining":[]}`:                                     "accomplished is no list",
		`{"transition":"complete","message":"m","accomplished":["a"],"remaining":[],"number":3}`:                        "number is not yours",
		`{"transition":"hand_off","message":"m","accomplished":["a"],"remaining":["b"],"context":"` + large + `"}`:      "16384",
		`{"transition":"hand_off","message":"` + large[:6<<10] + `","accomplished":["a"],"remaining":[],"context":"c"}`: "",
	} {
		_, err := checkMove("working", orchestrator, json.RawMessage(in))
		switch {
		case problem == "" && err != nil:
			t.Errorf("%.120s is refused: %v", in, err)
		case problem != "" && (err == nil || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), "Legal moves: ")):
			t.Errorf("%.120s: %v, want %q and the legal moves", in, err, problem)
		}
	}
}

// TestTasksOwned: no worker says that a task is verified; a check that has passed does, of those
// that are done, and a successor owns the list as it was.
func TestTasksOwned(t *testing.T) {
	l := &Loop{c: Config{Tell: func(Line) {}}}
	if _, err := l.useTasks(who{orchestrator, 1}, json.RawMessage(`{"op":"set","id":1,"status":"verified"}`)); err == nil {
		t.Error("a worker may say that a task is verified")
	}
	s := State{}
	for i, status := range []string{"done", "active", "pending"} {
		s = fold(s, entry{Agent: true, Seq: int64(i + 1), Kind: kindTask, Data: mustJSON(map[string]any{"number": 1, "id": i + 1, "text": "t", "status": status})})
	}
	s = fold(s, entry{Seq: 1, Kind: "executed", Data: json.RawMessage(`{"specialistId":"checks","transitionName":"failed"}`)})
	if s.Tasks[0].Status != "done" {
		t.Errorf("after a failed check the task is %s", s.Tasks[0].Status)
	}
	s = fold(s, entry{Seq: 2, Kind: "executed", Data: json.RawMessage(`{"specialistId":"checks","transitionName":"passed","toState":"ruling"}`)})
	if got := []string{s.Tasks[0].Status, s.Tasks[1].Status, s.Tasks[2].Status}; !slices.Equal(got, []string{"verified", "active", "pending"}) {
		t.Errorf("after a passed check the tasks are %v", got)
	}
}

// TestOneNotice: a worker is told once of a level; the hard one takes the soft one with it, and
// what it was told is not told again.
func TestOneNotice(t *testing.T) {
	levels := agent.Levels{Soft: 70, Hard: 85}
	s := fold(State{}, entry{Agent: true, Seq: 1, Kind: "opened", Data: json.RawMessage(`{"as":"orchestrator","number":1}`)})
	told := 0
	for i, used := range []int64{60_000, 70_000, 75_000, 90_000, 95_000} {
		level, crossed := levels.Cross(s.Workers[0].Crossed, used, 100_000)
		s = fold(s, entry{Agent: true, Seq: int64(2 + 2*i), Kind: kindCrossed, Data: mustJSON(struct {
			who
			crossing
		}{who{orchestrator, 1}, crossing{level, crossed, 0, notice(orchestrator, level, 0, levels)}})})
		if s.Workers[0].Notice != "" {
			told++
		}
		s = fold(s, entry{Agent: true, Seq: int64(3 + 2*i), Kind: kindNoticed, Data: json.RawMessage(`{"as":"orchestrator","number":1}`)})
		if s.Workers[0].Notice != "" {
			t.Error("what was told is still to be told")
		}
	}
	if told != 2 || s.Workers[0].Level != agent.Hard {
		t.Errorf("%d notices, level %s; want 2, hard", told, s.Workers[0].Level)
	}
}
