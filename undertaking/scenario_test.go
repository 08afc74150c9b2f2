package undertaking_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// waits runs the undertaking until a human is asked in a state.
func (w *works) waits(state string) (*session.Session, undertaking.State) {
	w.Helper()
	s, u, err := w.run(w.Context())
	if !errors.Is(err, undertaking.ErrWaits) || s.State.Name != state {
		w.Fatalf("it came to %s in %s (%s): %v", s.Status, s.State.Name, s.Outcome().Reason, err)
	}
	return s, u
}

// moves returns the transitions that were executed, the oldest first.
func moves(s *session.Session) string {
	var list []string
	for _, e := range s.History() {
		list = append(list, e.SpecialistID+" "+e.Transition.Name)
	}
	return strings.Join(list, ", ")
}

func (w *works) moved(s *session.Session, want string) {
	w.Helper()
	if got := moves(s); got != want {
		w.Errorf("executed were %s\nwant %s", got, want)
	}
}

// TestHandsOver: the next worker gets the record, the specification and the check's output, and
// nothing of what its predecessor said.
func TestHandsOver(t *testing.T) {
	w := begin(t, "test -f b.txt", writesA, handsOff,
		`{"as":"orchestrator","tools":[{"tool":"Write","input":{"file_path":"b.txt","content":"b"}}],"submit":{"transition":"complete","message":"both","accomplished":["b.txt"],"remaining":[]}}`)
	s, u := w.waits("ruling")
	w.moved(s, "orchestrator report, orchestrator hand_off, checks failed, orchestrator complete, checks passed")
	if len(u.Workers) != 2 || u.Workers[0].Gone != "released" || u.Bound != 2 {
		t.Errorf("workers are %+v", u.Workers)
	}
	var record struct {
		Number    int
		SessionID string `json:"session_id"`
		Reason    string
	}
	for _, e := range s.History() {
		if e.Transition.Name == "hand_off" {
			if err := json.Unmarshal(e.MetaJSON, &record); err != nil || record.Number != 1 || record.SessionID == "" || record.Reason != "released" {
				t.Errorf("the record is %s (%v)", e.MetaJSON, err)
			}
		}
	}
}

// TestFailedCheck: a check that fails sends the same worker back, with its output; a check that
// passes does not finish work that remains.
func TestFailedCheck(t *testing.T) {
	w := begin(t, "cat a.txt; echo; echo there is no b; grep -q b a.txt", writesA, claims,
		`{"as":"orchestrator","tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"b"}}],"submit":{"transition":"complete","message":"now","accomplished":["a.txt"],"remaining":[]}}`)
	s, u := w.waits("ruling")
	w.moved(s, "orchestrator report, orchestrator complete, checks failed, orchestrator complete, checks passed")
	w.told("(exit code 1) there is no b")
	if len(u.Workers) != 1 {
		t.Errorf("there are %d workers", len(u.Workers))
	}
}

// TestLevels: soft is told once, hard cuts the worker short, which hands over; the next starts
// with an empty context.
func TestLevels(t *testing.T) {
	w := begin(t, "", `{"as":"orchestrator","used":141000,"window":200000,"submit":{"transition":"report","message":"on the way"}}`,
		`{"as":"orchestrator","used":150000,"window":200000,"submit":{"transition":"report","message":"nearly"}}`,
		`{"as":"orchestrator","used":171000,"window":200000,"tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"a"}}],"submit":{"transition":"hand_off","message":"over","accomplished":["half"],"remaining":["half"],"context":"c"}}`,
		claims)
	s, u := w.waits("ruling")
	w.moved(s, "orchestrator report, orchestrator report, engine cut_short, orchestrator hand_off, checks failed, orchestrator complete, checks passed")
	if u.Workers[0].Gone != "hard" || u.Workers[0].Level != "hard" || u.Workers[1].Level != "" {
		t.Errorf("workers are %+v", u.Workers)
	}
}

// TestIgnoredWarning: a worker that goes on after it was cut short is interrupted, asked for
// its record in a turn of its own, and lost if it gives none.
func TestIgnoredWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := strings.Repeat(`{"tool":"Read","input":{"file_path":"a.txt"}},`, 12)
		w := begin(t, "", writesA, `{"as":"orchestrator","used":171000,"window":200000,"tools":[`+strings.TrimSuffix(read, ",")+`],"end":"hang"}`,
			`{"as":"orchestrator","text":"but","end":"hang"}`, claims)
		s, u := w.waits("ruling")
		w.moved(s, "orchestrator report, engine cut_short, engine lost, orchestrator complete, checks passed")
		if u.Workers[0].Gone != "lost" || !strings.Contains(string(s.History()[2].MetaJSON), "left no record") {
			t.Errorf("the first worker: %+v, %s", u.Workers[0], s.History()[2].MetaJSON)
		}
	})
}

// TestNoMove: a turn without a move is asked again with the legal moves, twice; then a human is
// asked, and whoever resumes has the worker asked again.
func TestNoMove(t *testing.T) {
	silent := `{"as":"orchestrator","text":"hm"}`
	w := begin(t, "", silent, silent, silent, claims)
	s, _ := w.waits("working")
	if s.Status != session.NeedsHuman {
		t.Fatalf("it is %s", s.Status)
	}
	w.told("no_move")
	if _, err := w.runner.Resume(t.Context(), w.id, runner.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	s, u := w.waits("ruling")
	w.moved(s, "orchestrator complete, checks passed")
	if len(u.Workers) != 1 {
		t.Errorf("there are %d workers", len(u.Workers))
	}
}

// TestSubmitRefusals: a move that is not legal, or lacks what it needs, is a tool error that
// names what may be done; the last good one counts.
func TestSubmitRefusals(t *testing.T) {
	bad := func(submit string) string {
		return `{"as":"orchestrator","submit":` + submit + `}`
	}
	w := begin(t, "", bad(`{"transition":"lost","message":"x"}`), bad(`{"transition":"complete","message":"x","accomplished":["a"],"remaining":["b"]}`), claims)
	s, _ := w.waits("ruling")
	w.moved(s, "orchestrator complete, checks passed")
}

// TestInquire: a worker's question is the owner's; the reply reaches the same worker.
func TestInquire(t *testing.T) {
	w := begin(t, "", `{"as":"orchestrator","submit":{"transition":"inquire","message":"which?","questions":[{"text":"Which format?","options":["CSV","JSON"]}]}}`, claims)
	s, _ := w.waits("ruling")
	if got := string(s.Data().Get("questions")); !strings.Contains(got, "Which format?") {
		t.Errorf("the case has %s", got)
	}
	if closed := s.WhyClosed(s.State.Transition("accept")); closed == "" {
		t.Error("nothing has passed, and may be accepted")
	}
	w.rule("reply", `{"message":"CSV"}`)
	s, u := w.waits("ruling")
	w.moved(s, "orchestrator inquire, owner reply, orchestrator complete, checks passed")
	if len(u.Workers) != 1 || u.Workers[0].Turns != 2 {
		t.Errorf("workers are %+v", u.Workers)
	}
}

// TestCrash: a process that goes is opened again, three times without a completed turn; then
// the worker is lost, and the next goes on from the logs.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crash := `{"as":"orchestrator","text":"boom","end":"crash"}`
		w := begin(t, "", crash, writesA, crash, crash, crash, crash, claims)
		began := time.Now()
		s, u := w.waits("ruling")
		w.moved(s, "orchestrator report, engine lost, orchestrator complete, checks passed")
		if len(u.Workers) != 2 || u.Workers[0].Gone != "lost" || u.Workers[0].Opened != 5 {
			t.Errorf("workers are %+v", u.Workers)
		}
		if took := time.Since(began); took < 21*time.Second || took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

// TestStopsBeforeTurn: a turn that might cost more than is left does not begin; more budget
// lets it go on.
func TestStopsBeforeTurn(t *testing.T) {
	dear := func(cost string) string {
		return `{"as":"orchestrator","cost_usd":` + cost + `,"submit":{"transition":"report","message":"m"}}`
	}
	w := begin(t, "", dear("8"), dear("7"), claims)
	s, u, err := w.run(t.Context())
	if err != nil || s.Status != session.Stopped || !strings.Contains(s.Outcome().Reason, "$15 of $20 is spent, and the next turn may cost $8") {
		t.Fatalf("it is %s (%s), %v", s.Status, s.Outcome().Reason, err)
	}
	if u.Workers[0].Turns != 2 {
		t.Errorf("workers are %+v", u.Workers)
	}
}

// TestChurnHalts: workers that hand over one after the other and leave nothing stop the
// undertaking.
func TestChurnHalts(t *testing.T) {
	idle := `{"as":"orchestrator","submit":{"transition":"hand_off","message":"over","accomplished":[],"remaining":["all"],"context":"c"}}`
	w := begin(t, "", idle, idle, idle, idle, idle)
	s, u, err := w.run(t.Context())
	if err != nil || s.Status != session.Stopped || len(u.Workers) != 3 || !strings.Contains(s.Outcome().Reason, "3 workers in a row") {
		t.Fatalf("it is %s (%s) after %d workers, %v", s.Status, s.Outcome().Reason, len(u.Workers), err)
	}
}

// TestHaltedGoesOn: whoever resumes an undertaking that was stopped since workers or managers leave in a
// row has as many more of them tried, also in another process.
func TestHaltedGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := `{"as":"orchestrator","submit":{"transition":"hand_off","message":"over","accomplished":[],"remaining":["all"],"context":"c"}}`
		full := `{"as":"manager","end":"full"}`
		for as, w := range map[string]*works{
			"orchestrator": begin(t, "", idle, idle, idle, idle, idle, idle, idle),
			"manager":      beginOf(t, "undertaking", "", full, full, full, full, full, full, full),
		} {
			for i := range 2 {
				s, u, err := w.run(t.Context())
				if got := len(append(u.Workers, u.Others[as]...)); err != nil || s.Status != session.Stopped || i == 0 && got != 3 || i == 1 && got < 5 {
					t.Fatalf("%s, run %d: it is %s (%s) after %d, %v", as, i, s.Status, s.Outcome().Reason, got, err)
				}
				if _, err := w.runner.Resume(t.Context(), w.id, runner.ResumeOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestManagersTooLarge: managers that finish turns without a move, since their context is full as
// soon as they know what there is, stop the undertaking too.
func TestManagersTooLarge(t *testing.T) {
	ask := `{"as":"manager","used":190000,"window":200000,"cost_usd":0.1,"submit":{"transition":"ask","message":"q","questions":[{"text":"q?"}]}}`
	w := beginOf(t, "undertaking", "", ask, ask, ask, ask, ask, ask)
	s, u, err := w.run(t.Context())
	if err != nil || s.Status != session.Stopped || len(u.Others["manager"]) != 3 {
		t.Errorf("it is %s (%s) after %d managers, %v", s.Status, s.Outcome().Reason, len(u.Others["manager"]), err)
	}
}

// TestSpawnLimit: subagents have no subagents, and a turn starts no more than it may.
func TestSpawnLimit(t *testing.T) {
	task := `{"tool":"Task","input":{"description":"d","prompt":"p"}}`
	w := begin(t, "", `{"as":"orchestrator","tools":[`+strings.TrimSuffix(strings.Repeat(task+",", 12), ",")+`],"submit":{"transition":"report","message":"m"}}`, claims)
	_, u := w.waits("ruling")
	if u.Workers[0].Spawned != 8 {
		t.Errorf("%d subagents were started, want 8", u.Workers[0].Spawned)
	}
	w.told("this turn has started 8 subagents")
}

// TestStash: git stash is refused, also where nobody asks for permission.
func TestStash(t *testing.T) {
	w := begin(t, "", `{"as":"orchestrator","tools":[{"tool":"Bash","input":{"command":"cd . && git stash"}}],"submit":{"transition":"report","message":"m"}}`, claims)
	w.waits("ruling")
	w.told("git stash is one stack for all worktrees")
}

// TestWithdrawn: the owner may end it at any time; the turn that runs is ended with it.
func TestWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "", `{"as":"orchestrator","end":"hang"}`)
		go func() {
			time.Sleep(time.Minute)
			w.rule("withdraw", "")
		}()
		s, u, err := w.run(t.Context())
		if err != nil || s.State.Name != "abandoned" || u.Workers[0].Open {
			t.Errorf("it came to %s in %s: %v, %+v", s.Status, s.State.Name, err, u.Workers)
		}
	})
}

// TestFull: a worker whose context is full is lost at once, and the next begins only when its
// process has gone.
func TestFull(t *testing.T) {
	w := begin(t, "", writesA, `{"as":"orchestrator","used":199000,"window":200000,"end":"full"}`, claims)
	s, u := w.waits("ruling")
	if got := moves(s); !strings.HasSuffix(got, "engine lost, orchestrator complete, checks passed") {
		t.Errorf("executed were %s", got)
	}
	if len(u.Workers) != 2 || u.Workers[0].Gone != "lost" || u.Workers[0].Opened != 1 {
		t.Errorf("workers are %+v", u.Workers)
	}
	gone := false
	for e, err := range w.store.AgentLog(t.Context(), w.id, 0) {
		var about struct{ Number int }
		if err = errors.Join(err, json.Unmarshal(e.Data, &about)); err != nil {
			t.Fatal(err)
		}
		if gone = gone || e.Kind == "exited" && about.Number == 1; e.Kind == "opened" && about.Number == 2 && !gone {
			t.Error("the second worker was opened beside the first")
		}
	}
}

// TestSilence: an agent that gives no sign of life is opened again.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "", `{"as":"orchestrator","end":"hang"}`, claims)
		s, u := w.waits("ruling")
		w.told("no sign of life for 10m")
		w.moved(s, "orchestrator complete, checks passed")
		if u.Workers[0].Opened != 2 {
			t.Errorf("workers are %+v", u.Workers)
		}
	})
}

// TestResumeTurn: whenever the process is killed, its successor goes on with the same agent
// session, and comes to the same end.
func TestResumeTurn(t *testing.T) {
	for kill := 1; ; kill++ {
		w := begin(t, "test -f a.txt", writesA, claims)
		ctx, cancel := context.WithCancelCause(t.Context())
		n := 0
		c := w.config(ctx)
		tell := c.Tell
		c.Tell = func(l undertaking.Line) {
			tell(l)
			if n++; n == kill {
				cancel(errKilled)
			}
		}
		_, _, err := undertaking.New(c).Run(ctx)
		cancel(nil)
		if !errors.Is(err, errKilled) {
			if !errors.Is(err, undertaking.ErrWaits) || kill < 5 {
				t.Fatalf("killed at line %d: %v", kill, err)
			}
			return
		}
		w.process()
		s, u := w.waits("ruling")
		w.moved(s, "orchestrator report, orchestrator complete, checks passed")
		if len(u.Workers) != 1 {
			t.Errorf("killed at line %d there are %d workers", kill, len(u.Workers))
		}
		if _, err := os.Stat(filepath.Join(w.cwd, "a.txt")); err != nil {
			t.Errorf("killed at line %d: %v", kill, err)
		}
	}
}

var errKilled = errors.New("killed")

// TestFoldIsLive: the state that a loop has is that which its logs tell.
func TestFoldIsLive(t *testing.T) {
	w := begin(t, "test -f a.txt", writesA, handsOff, claims, claims)
	_, live := w.waits("ruling")
	told, err := undertaking.Load(t.Context(), w.store, w.id, undertaking.State{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(live)
	b, _ := json.Marshal(told)
	if string(a) != string(b) {
		t.Errorf("live\n%s\nthe logs\n%s", a, b)
	}
}

// TestSecretsAreMasked: what looks like a secret is in no entry of the agent_log, whatever said it.
func TestSecretsAreMasked(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	w := begin(t, "echo "+secret+"; true", `{"as":"orchestrator","text":"the token is `+secret+`","tools":[{"tool":"Bash","input":{"command":"echo `+secret+`"}},{"tool":"Write","input":{"file_path":"a.txt","content":"`+secret+`"}},{"tool":"Read","input":{"file_path":"a.txt"}}],"submit":{"transition":"report","message":"m"}}`, claims)
	s, _ := w.waits("ruling")
	n := 0
	for e, err := range w.store.AgentLog(t.Context(), w.id, 0) {
		if n++; err != nil || strings.Contains(string(e.Data), secret) {
			t.Errorf("%s: %s, %v", e.Kind, e.Data, err)
		}
	}
	if n < 10 {
		t.Errorf("the agent_log has %d entries", n)
	}
	if check := string(s.Data().Get("check")); !strings.Contains(check, "redacted") || strings.Contains(read(check, "output"), secret) {
		t.Errorf("the check's output is %s", check)
	}
}

func read(object, member string) string {
	var members map[string]any
	_ = json.Unmarshal([]byte(object), &members)
	text, _ := members[member].(string)
	return text
}
