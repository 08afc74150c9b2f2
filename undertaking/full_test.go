package undertaking_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// turn is a line of a script.
func turn(as, submit string, more ...string) string {
	return fmt.Sprintf(`{"as":%q,%s"used":20000,"window":200000,"cost_usd":0.1,"submit":%s}`, as, strings.Join(append(more, ""), ","), submit)
}

const (
	plans    = `{"transition":"state_plan","message":"This is what I have understood.","understanding":"a.txt with the letter a","deliverables":["a.txt"],"out_of_scope":[],"done_when":["a.txt holds a"]}`
	briefs   = `{"transition":"brief","message":"Write a.txt."}`
	begins   = `{"transition":"begin","message":"I write it.","understanding":"a.txt","approach":"write it","tasks":["write a.txt"]}`
	done     = `{"transition":"complete","message":"a.txt is there","accomplished":["a.txt"],"remaining":[]}`
	accepts  = `{"transition":"accept_report","message":"That is all of it."}`
	isSound  = `{"transition":"sound","message":"It holds.","findings":[{"text":"a.txt holds a","evidence":"cat a.txt"}]}`
	fulfils  = `{"transition":"fulfil","message":"a.txt is there, and checked."}`
	writesIt = `"tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"a"}}]`
)

// fullRun is the script of an undertaking in which all goes well.
func fullRun() []string {
	return []string{
		turn("manager", plans), turn("manager", briefs), turn("orchestrator", begins), turn("orchestrator", done, writesIt),
		turn("manager", accepts), turn("verifier-a", isSound), turn("verifier-b", isSound), turn("manager", fulfils),
	}
}

// TestFullMachine: the manager states what it has understood, the human agrees, a worker is
// briefed and works, its record is read, the check runs, two verifiers judge, the human follows
// them, and the manager says what was done.
func TestFullMachine(t *testing.T) {
	w := beginOf(t, "undertaking", "test -f a.txt", fullRun()...)
	s, u := w.waits("awaiting_assent")
	if u.Workers != nil || len(u.Others["manager"]) != 1 {
		t.Errorf("before the human has agreed there are %+v", u)
	}
	if got := string(s.Data().Get("plan")); !strings.Contains(got, "a.txt holds a") {
		t.Errorf("the plan in the case is %s", got)
	}
	w.rule("assent", "")
	s, u = w.waits("verifying")
	w.moved(s, "manager state_plan, owner assent, engine awakened, manager brief, orchestrator begin, orchestrator complete, manager accept_report, checks passed")
	for _, v := range []string{"verifier-a", "verifier-b"} {
		if len(u.Others[v]) != 1 || u.Others[v][0].Open {
			t.Errorf("%s: %+v", v, u.Others[v])
		}
	}
	for _, m := range u.Mail {
		if to := map[string]undertaking.Worker{"manager": u.Others["manager"][0], "orchestrator": u.Workers[0]}[m.To]; m.Round <= to.Told {
			t.Errorf("%s has %s of round %d, and it is kept", m.To, m.Transition, m.Round)
		}
	}
	w.told("verifier-a proposes sound: It holds.")
	w.told("verifier-b finds: a.txt holds a (cat a.txt)")
	if len(u.Tasks) != 1 || u.Tasks[0].Text != "write a.txt" {
		t.Errorf("tasks are %+v", u.Tasks)
	}
	w.rule("sound", "")
	s, _, err := w.run(t.Context())
	if err != nil || s.Status != session.Completed || s.State.Name != "fulfilled" {
		t.Fatalf("it is %s in %s (%s), %v", s.Status, s.State.Name, s.Outcome().Reason, err)
	}
}

// has checks what a text has and has not; what begins with ! it must not have.
func has(t *testing.T, of, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		without, not := strings.CutPrefix(want, "!")
		if strings.Contains(text, without) == not {
			t.Errorf("%s: %q is there: %v, in\n%s", of, without, not, text)
		}
	}
}

// TestWhoIsTold: each agent is told what its part needs, and nothing of what it must not know: a
// verifier hears nothing of what was said while the work was done.
func TestWhoIsTold(t *testing.T) {
	w := beginOf(t, "undertaking", "test -f a.txt", turn("manager", `{"transition":"ask","message":"Before I plan:","questions":[{"text":"Which letter?"}]}`),
		turn("manager", plans), turn("manager", briefs),
		turn("orchestrator", `{"transition":"clarify","message":"One thing.","questions":[{"text":"With a newline?"}]}`),
		turn("manager", `{"transition":"brief","message":"Without a newline."}`), turn("orchestrator", begins), turn("orchestrator", done, writesIt),
		turn("manager", `{"transition":"question","message":"Is it one byte?"}`), turn("orchestrator", `{"transition":"recount","message":"One byte, by wc."}`),
		turn("manager", accepts), turn("verifier-a", isSound), turn("verifier-b", isSound), turn("manager", fulfils))
	w.waits("awaiting_human")
	w.told("question 1: Which letter?")
	w.rule("reply", `{"message":"the letter a"}`)
	w.waits("awaiting_assent")
	w.told("done when: a.txt holds a")
	has(t, "after the reply", w.hears("manager", 1), "the letter a", "state_plan", restarts)
	w.rule("assent", "")
	s, _ := w.waits("verifying")
	w.moved(s, "manager ask, owner reply, manager state_plan, owner assent, engine awakened, manager brief, orchestrator clarify, manager brief, orchestrator begin, orchestrator complete, manager question, orchestrator recount, manager accept_report, checks passed")
	has(t, "the worker's first", w.hears("orch-1", 0), "a.txt holds a", "Write a.txt.", "test -f a.txt", "clarify, begin", "!Which letter?")
	has(t, "the worker's second", w.hears("orch-1", 1), "Without a newline.", "!Write a.txt.")
	has(t, "the worker's third", w.hears("orch-1", 2), "Go on with the work", "report, inquire, hand_off, complete")
	has(t, "the worker's last", w.hears("orch-1", 3), "Is it one byte?", "recount")
	has(t, "the manager on the clarification", w.hears("manager", 3), "One thing.", "With a newline?", "onboarding")
	has(t, "the manager in debrief", w.hears("manager", 4), "a.txt is there", "I write it.")
	for of, part := range map[string]string{"manager": "You manage one undertaking", "orch-1": "You are worker 1", "verifier-a": "You judge work that others have done", "verifier-b": "You judge work that others have done"} {
		if spec := w.specs[of]; !strings.HasPrefix(spec.SystemPrompt, part) || spec.As != strings.Replace(of, "orch-1", "orchestrator", 1) {
			t.Errorf("%s is %s: %s", of, spec.As, spec.SystemPrompt)
		}
	}
	if m, v := w.specs["manager"].OwnTools, w.specs["verifier-a"].OwnTools; m == nil || len(m) > 0 || strings.Join(v, " ") != "Bash Read" {
		t.Errorf("the manager has the tools %v, a verifier %v", m, v)
	}
	for _, v := range []string{"verifier-a", "verifier-b"} {
		has(t, v, w.hears(v, 0), "a.txt holds a", "test -f a.txt", "a.txt is there", "!One byte", "!Write a.txt.", "!One thing", "sound, incomplete, unsound")
	}
}

// restarts is what an agent is told whose process was started again.
const restarts = "Your process was started again"

// TestVerdictSendsBack: what the verifiers find reaches the next worker and the manager, and the
// next worker has the record, and nothing that its predecessor said.
func TestVerdictSendsBack(t *testing.T) {
	script := fullRun()[:7]
	script[5] = turn("verifier-a", `{"transition":"incomplete","message":"Something is missing.","findings":[{"text":"no newline","evidence":"wc -l"}]}`)
	script[6] = turn("verifier-b", `{"transition":"incomplete","message":"It is missing.","findings":[{"text":"no newline","evidence":"tail"}]}`)
	script[2] = turn("orchestrator", begins, `"text":"SECRET THOUGHT"`)
	w := beginOf(t, "undertaking", "test -f a.txt", append(script, turn("manager", `{"transition":"brief","message":"Add the newline."}`), turn("orchestrator", begins),
		turn("orchestrator", done, `"tools":[{"tool":"Write","input":{"file_path":"a.txt","content":"a\n"}}]`), turn("manager", accepts), turn("verifier-a", isSound), turn("verifier-b", isSound))...)
	w.waits("awaiting_assent")
	w.rule("assent", "")
	w.waits("verifying")
	w.rule("incomplete", `{"message":"Yes, the newline.","findings":[{"text":"no newline","evidence":"I looked"}]}`)
	s, u := w.waits("verifying")
	if len(u.Workers) != 2 || u.Workers[0].Gone != "complete" || u.Workers[1].Number != 2 || len(u.Others["verifier-a"]) != 2 {
		t.Errorf("workers are %+v, verifiers %+v", u.Workers, u.Others["verifier-a"])
	}
	has(t, "the second worker", w.hears("orch-2", 0), "the record of worker 1", "a.txt is there", "no newline (I looked)", "Yes, the newline.", "Add the newline.", "!SECRET THOUGHT")
	has(t, "the second verdict", w.hears("verifier-a-2", 0), "!no newline")
	if got := moves(s); strings.Count(got, "engine awakened") != 2 {
		t.Errorf("executed were %s", got)
	}
}

// TestFailedCheckBeatsVotes: where the check fails nobody is asked for a verdict.
func TestFailedCheckBeatsVotes(t *testing.T) {
	script := fullRun()
	script[3] = turn("orchestrator", done, `"text":"I THINK THAT IT IS THERE, BUT I HAVE NOT LOOKED"`)
	w := beginOf(t, "undertaking", "test -f a.txt", append(script[:5], turn("manager", `{"transition":"brief","message":"It is not there."}`), turn("orchestrator", begins),
		turn("orchestrator", `{"transition":"inquire","message":"Shall I?","questions":[{"text":"Shall I?"}]}`),
		turn("manager", `{"transition":"escalate","message":"Your word.","questions":[{"text":"Shall it?"}]}`))...)
	w.waits("awaiting_assent")
	w.rule("assent", "")
	s, u := w.waits("awaiting_ruling")
	if got := moves(s); !strings.Contains(got, "checks failed, engine awakened") || strings.Contains(got, "verifier") || len(u.Workers) != 2 {
		t.Errorf("executed were %s", got)
	}
	has(t, "the second worker", w.hears("orch-2", 0), `The check "test -f a.txt" does not pass`, "the record of worker 1", "!I THINK")
}

// TestChangedTree: the verdict of a verifier that has changed the tree does not count, and that of
// the other does.
func TestChangedTree(t *testing.T) {
	script := fullRun()
	script[5] = turn("verifier-a", isSound, `"tools":[{"tool":"Bash","input":{"command":"echo b > b.txt"}}]`)
	w := beginOf(t, "undertaking", "test -f a.txt", script[:7]...)
	w.waits("awaiting_assent")
	w.rule("assent", "")
	s, _ := w.waits("verifying")
	var by []string
	for _, p := range s.Proposals() {
		by = append(by, p.SpecialistID)
	}
	if strings.Join(by, " ") != "verifier-b" {
		t.Errorf("verdicts are those of %v", by)
	}
	w.told("changed_tree")
}

// TestInterjections: what the human says while a worker works is the manager's; it relays one
// word and answers the other, and the worker's turn goes on.
func TestInterjections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := beginOf(t, "undertaking", "", turn("manager", plans), turn("manager", briefs), turn("orchestrator", begins),
			turn("orchestrator", `{"transition":"report","message":"half"}`, `"wait_ms":60000`), turn("manager", `{"transition":"relay","message":"Capital A, says the human."}`),
			turn("manager", `{"transition":"relay","message":"And a newline."}`), turn("manager", `{"transition":"respond","message":"In ten minutes."}`), turn("orchestrator", done, writesIt),
			turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))
		w.waits("awaiting_assent")
		w.rule("assent", "")
		for at, text := range map[int]string{10: "a capital A please", 20: "and a newline", 30: "how long will it take?"} {
			time.AfterFunc(time.Duration(at)*time.Second, func() { w.say(text, agent.Steer) })
		}
		s, u := w.waits("awaiting_ruling")
		w.moved(s, "manager state_plan, owner assent, engine awakened, manager brief, orchestrator begin, manager relay, manager relay, manager respond, orchestrator report, orchestrator complete, manager escalate")
		has(t, "the worker in its turn", w.hears("orch-1", 2), "manager, relay", "Capital A, says the human.", "!Legal moves")
		has(t, "the manager on the first word", w.hears("manager", 2), "a capital A please", "weaving")
		has(t, "the worker again", w.hears("orch-1", 3), "And a newline.", "!Capital A")
		has(t, "the manager on the third", w.hears("manager", 4), "how long will it take?", "!a capital A please")
		if u.Workers[0].Turns != 3 {
			t.Errorf("the worker had %d turns", u.Workers[0].Turns)
		}
	})
}

// TestHold: held turns end, what they were to end with does not count, and a word has the same
// sessions go on.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := beginOf(t, "undertaking", "", turn("manager", plans), turn("manager", briefs), turn("orchestrator", begins),
			turn("orchestrator", `{"transition":"report","message":"half"}`, `"end":"hang"`), turn("orchestrator", done, writesIt),
			turn("manager", `{"transition":"respond","message":"Good."}`), turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))
		w.waits("awaiting_assent")
		w.rule("assent", "")
		l := undertaking.New(w.config(t.Context()))
		time.AfterFunc(10*time.Second, l.Hold)
		s, u, err := l.Run(t.Context())
		if !errors.Is(err, undertaking.ErrWaits) || s.State.Name != "weaving" || s.Status != session.NeedsHuman || !strings.Contains(s.ReasonWithFailures(s.Outcome(), false), "a human has the work held") {
			t.Fatalf("it is %s in %s: %s, %v", s.Status, s.State.Name, s.ReasonWithFailures(s.Outcome(), false), err)
		}
		if u.Workers[0].Gone != "" || u.Workers[0].Turn {
			t.Errorf("the worker is %+v", u.Workers[0])
		}
		w.say("go on", agent.Steer)
		s, u = w.waits("awaiting_ruling")
		if len(u.Workers) != 1 || strings.Contains(moves(s), "orchestrator report") {
			t.Errorf("executed were %s by %d workers", moves(s), len(u.Workers))
		}
	})
}

// TestManagerReplaced: a manager whose context gets full leaves what its successor must know, and
// the state and the ask stay as they are.
func TestManagerReplaced(t *testing.T) {
	full := func(used int, submit string) string {
		return fmt.Sprintf(`{"as":"manager","used":%d,"window":200000,"submit":%s}`, used, submit)
	}
	legacy := `"continuity":{"intent":"THE INTENT","decisions":["no upload"],"open_questions":[]}`
	w := beginOf(t, "undertaking", "", full(100000, plans),
		full(151000, briefs) /* soft, and nothing is left to a successor */, full(152000, strings.TrimSuffix(briefs, "}")+","+legacy+"}"), turn("orchestrator", begins),
		turn("orchestrator", `{"transition":"inquire","message":"One?","questions":[{"text":"One?"}]}`),
		full(185000, `{"transition":"answer","message":"Yes, one."}`),
		turn("orchestrator", done, writesIt), turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))
	w.waits("awaiting_assent")
	w.rule("assent", `{"message":"go"}`)
	s, u := w.waits("awaiting_ruling")
	has(t, "moves", moves(s), "manager brief", "manager answer", "manager escalate")
	if list := u.Others["manager"]; len(list) != 2 || list[0].Gone != "hard" || list[1].Gone != "" {
		t.Fatalf("managers are %+v", u.Others["manager"])
	}
	has(t, "the second manager", w.hears("manager-2", 0), "THE INTENT", "a.txt holds a", "a.txt is there", "assent: go", "debrief", "!One?")
}

// TestManagerTold: the manager is told what befell the worker while it heard nothing.
func TestManagerTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := beginOf(t, "undertaking", "", turn("manager", plans), turn("manager", briefs), turn("orchestrator", begins),
			`{"as":"orchestrator","text":"boom","end":"crash"}`, turn("orchestrator", `{"transition":"report","message":"HALF DONE"}`),
			`{"as":"orchestrator","used":171000,"window":200000,"submit":{"transition":"hand_off","message":"over","accomplished":["half"],"remaining":["half"],"context":"c"}}`,
			turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))
		w.waits("awaiting_assent")
		w.rule("assent", "")
		w.waits("awaiting_ruling")
		has(t, "the manager", w.hears("manager", 2), "orch-1: its process went", "orch-1: its process was started again", "HALF DONE", "86 % full", "hand_off")
	})
}

// TestLostWorker: a worker that cannot be brought back is lost; the manager briefs the next one,
// which has a record that was made from the logs, and so has the case.
func TestLostWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crash := `{"as":"orchestrator","text":"boom","end":"crash"}`
		w := beginOf(t, "undertaking", "", turn("manager", plans), turn("manager", briefs), turn("orchestrator", begins), crash, crash, crash, crash,
			turn("manager", `{"transition":"brief","message":"Go on."}`), turn("orchestrator", begins),
			turn("orchestrator", `{"transition":"inquire","message":"One?","questions":[{"text":"One?"}]}`), turn("manager", `{"transition":"dismiss","message":"No."}`),
			turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))
		w.waits("awaiting_assent")
		w.rule("assent", "")
		s, u := w.waits("awaiting_ruling")
		has(t, "moves", moves(s), "engine lost, engine awakened", "manager dismiss, engine awakened")
		if len(u.Workers) != 3 || u.Workers[0].Gone != "lost" || u.Workers[1].Gone != "released" {
			t.Errorf("workers are %+v", u.Workers)
		}
		has(t, "the second worker", w.hears("orch-2", 0), "left no record", "the record of worker 1")
		has(t, "the case", string(s.Data().Get("record")), "left no record")
	})
}

// TestVisits: a manager that asks about a record for ever has a human asked.
func TestVisits(t *testing.T) {
	script := append([]string{}, fullRun()[:4]...)
	for range 4 {
		script = append(script, turn("manager", `{"transition":"question","message":"Really?"}`), turn("orchestrator", `{"transition":"recount","message":"Really."}`))
	}
	w := beginOf(t, "undertaking", "", script...)
	w.waits("awaiting_assent")
	w.rule("assent", "")
	s, _ := w.waits("debrief")
	if got := strings.Count(moves(s), "manager question"); got != 3 {
		t.Errorf("%d questions about one record, want 3", got)
	}
	has(t, "why a human is asked", s.ReasonWithFailures(s.Outcome(), false), "made the move question 3 times")
	has(t, "the last but one", strings.Join(w.heard, "\n"), "You may make the move question once more")
}

// TestLongTextDelivered: what a turn said at more length than its message goes with it to whom the
// move is for, and to nobody else.
func TestLongTextDelivered(t *testing.T) {
	long := strings.Repeat("The export has seven columns. ", 20)
	script := append(fullRun()[:3], turn("orchestrator", done, `"text":`+fmt.Sprintf("%q", long)))
	w := beginOf(t, "undertaking", "", append(script, fullRun()[4:7]...)...)
	w.waits("awaiting_assent")
	w.rule("assent", "")
	w.waits("verifying")
	has(t, "a verifier", w.hears("verifier-a", 0), "a.txt is there", "!seven columns")
	has(t, "the manager", w.hears("manager", 2), strings.TrimSpace(long), "a.txt is there")
}

// TestRecall: a human who recalls the work ends the worker's turn, and the briefing is open again.
func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := beginOf(t, "undertaking", "", turn("manager", plans), turn("manager", briefs), turn("orchestrator", begins),
			turn("orchestrator", `{"transition":"report","message":"half"}`, `"wait_ms":600000`), turn("manager", `{"transition":"ask","message":"What has changed?","questions":[{"text":"What?"}]}`))
		w.waits("awaiting_assent")
		w.rule("assent", "")
		time.AfterFunc(10*time.Second, func() { w.rule("recall", `{"message":"All has changed."}`) })
		began := time.Now()
		_, u := w.waits("awaiting_human")
		if len(u.Workers) != 1 || u.Workers[0].Gone == "" || u.Bound != 0 || time.Since(began) > time.Minute {
			t.Errorf("after %s workers are %+v", time.Since(began), u.Workers)
		}
		has(t, "the manager", w.hears("manager", 2), "All has changed.", "briefing")
	})
}

// TestResumeFull: whenever the process is killed between the human's assent and the verdicts, its
// successor comes to the same, with the same manager and the same worker, and knows the same.
func TestResumeFull(t *testing.T) {
	script := append(fullRun()[:4], turn("manager", `{"transition":"question","message":"Is it one byte?"}`), turn("orchestrator", `{"transition":"recount","message":"One byte."}`))
	script = append(script, fullRun()[4:]...)
	for kill := 1; ; kill++ {
		w := beginOf(t, "undertaking", "test -f a.txt", script...)
		w.waits("awaiting_assent")
		w.rule("assent", "")
		w.process()
		ctx, cancel := context.WithCancelCause(t.Context())
		c, n := w.config(ctx), 0
		tell := c.Tell
		c.Tell = func(l undertaking.Line) {
			tell(l)
			if n++; n == kill+1 { // the first line comes before anything is done
				cancel(errKilled)
			}
		}
		_, _, err := undertaking.New(c).Run(ctx)
		cancel(nil)
		if !errors.Is(err, errKilled) {
			if !errors.Is(err, undertaking.ErrWaits) || kill < 12 {
				t.Fatalf("killed at line %d: %v", kill, err)
			}
			return
		}
		w.process()
		s, u := w.waits("verifying")
		w.moved(s, "manager state_plan, owner assent, engine awakened, manager brief, orchestrator begin, orchestrator complete, manager question, orchestrator recount, manager accept_report, checks passed")
		if len(u.Workers) != 1 || len(u.Others["manager"]) != 1 || len(u.Tasks) != 1 {
			t.Errorf("killed at line %d there are %d workers, %d managers, %d tasks", kill, len(u.Workers), len(u.Others["manager"]), len(u.Tasks))
		}
		if len(s.Proposals()) != 2 {
			t.Errorf("killed at line %d there are %d verdicts", kill, len(s.Proposals()))
		}
		has(t, "what was charged", fmt.Sprint(u.Charged), "!map[]")
		for as, c := range u.Charged {
			if as != "owner" && c != u.HandedIn[as] {
				t.Errorf("killed at line %d: %s was charged %v, and %v is handed in", kill, as, c, u.HandedIn[as])
			}
		}
		told, err := undertaking.Load(t.Context(), w.store, w.id, undertaking.State{})
		if a, b := asJSON(told), asJSON(u); err != nil || a != b {
			t.Fatalf("killed at line %d the logs tell\n%s\nand the loop had\n%s", kill, a, b)
		}
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	return fmt.Sprint(string(text), err)
}

// TestManagersLeave: managers that crash one after the other, and never finish a turn, stop the
// undertaking; one that has gone is replaced while the ask stays open.
func TestManagersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crash := `{"as":"manager","text":"boom","end":"crash"}`
		w := beginOf(t, "undertaking", "", crash, crash, crash, crash, turn("manager", plans))
		s, u := w.waits("awaiting_assent")
		if list := u.Others["manager"]; len(list) != 2 || list[0].Gone != "lost" || list[0].Opened != 4 {
			t.Errorf("managers are %+v", list)
		}
		w.moved(s, "manager state_plan")

		var all []string
		for range 12 {
			all = append(all, crash)
		}
		w = beginOf(t, "undertaking", "", all...)
		s, u, err := w.run(t.Context())
		if err != nil || s.Status != session.Stopped || len(u.Others["manager"]) != 3 || !strings.Contains(s.Outcome().Reason, "managers leave one after the other") {
			t.Errorf("it is %s (%s) after %d managers, %v", s.Status, s.Outcome().Reason, len(u.Others["manager"]), err)
		}
	})
}

// TestVerifierCrashes: a verifier whose process goes again and again gives no verdict, and the
// other's stands; the human sees both.
func TestVerifierCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crash := `{"as":"verifier-a","text":"boom","end":"crash"}`
		script := append(fullRun()[:5], crash, crash, crash, crash, fullRun()[6])
		w := beginOf(t, "undertaking", "", script...)
		w.waits("awaiting_assent")
		w.rule("assent", "")
		s, u := w.waits("verifying")
		if list := s.Proposals(); len(list) != 1 || list[0].SpecialistID != "verifier-b" || len(u.Others["verifier-a"]) != 4 {
			t.Errorf("%d verdicts after %d verifiers", len(list), len(u.Others["verifier-a"]))
		}
		has(t, "why", s.ReasonWithFailures(s.Outcome(), false), "verifier-a failed: the process of verifier-a has gone 4 times")
	})
}

// TestOutOfBudgetAnywhere: whoever's turn it is, none begins that the budget may not bear, and
// what all have cost is in the session's log.
func TestOutOfBudgetAnywhere(t *testing.T) {
	dear := func(as, submit string) string {
		return strings.Replace(turn(as, submit), `"cost_usd":0.1`, `"cost_usd":7`, 1)
	}
	w := beginOf(t, "undertaking", "", dear("manager", plans), turn("manager", briefs), dear("orchestrator", begins), turn("orchestrator", done))
	w.waits("awaiting_assent")
	w.rule("assent", "")
	s, u, err := w.run(t.Context())
	if err != nil || s.Status != session.Stopped || undertaking.Exceeded(s) != "budget.hard_limit_usd" || !strings.Contains(s.Outcome().Reason, "$14.1 of $20 is spent, and the next turn may cost $7") {
		t.Fatalf("it is %s (%s), %v", s.Status, s.Outcome().Reason, err)
	}
	for as, c := range u.Charged {
		if c != u.HandedIn[as] {
			t.Errorf("%s was charged %v, and %v is handed in", as, c, u.HandedIn[as])
		}
	}
}

// TestOverBudgetInTurn: a turn that costs more than all that may be spent stops the undertaking, and
// which limit is to be raised is known.
func TestOverBudgetInTurn(t *testing.T) {
	w := beginOf(t, "undertaking", "", strings.Replace(turn("manager", plans), `"cost_usd":0.1`, `"cost_usd":27`, 1))
	s, _, err := w.run(t.Context())
	if err != nil || s.Status != session.Stopped || undertaking.Exceeded(s) != "budget.hard_limit_usd" {
		t.Errorf("it is %s (%s: %s), limit %q, %v", s.Status, s.Outcome().Code, s.Outcome().Reason, undertaking.Exceeded(s), err)
	}
}

// TestDumpOfFull: the dump has the manager's session, and workers as active or completed.
func TestDumpOfFull(t *testing.T) {
	w := beginOf(t, "undertaking", "", append(fullRun()[:4], turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))...)
	w.waits("awaiting_assent")
	w.rule("assent", "")
	s, u := w.waits("awaiting_ruling")
	d := undertaking.DumpOf(t.Context(), s, u, s.EnteredAt())
	if d.ManagerSession != u.Others["manager"][0].AgentSession || len(d.Workers) != 1 || d.Workers[0].Status != "active" || d.State != "awaiting_ruling" {
		t.Errorf("the dump is %+v", d)
	}
	has(t, "the status", undertaking.StatusOf(s, u, undertaking.Beside{}, time.Now()).Text(), "manager", "orch-1", "waiting for you", "○ write a.txt")
}

// TestSummonsAgain: a worker that was opened by a process that was killed before it could say so, and
// whose program does not start at once, is there later.
func TestSummonsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := beginOf(t, "undertaking", "test -f a.txt", fullRun()...)
		w.waits("awaiting_assent")
		w.rule("assent", "")
		ctx, kill := context.WithCancelCause(t.Context())
		c := w.config(ctx)
		tell := c.Tell
		c.Tell = func(l undertaking.Line) {
			if tell(l); strings.HasPrefix(l.Text, "opened") && l.State == "summoning" {
				kill(errKilled)
			}
		}
		if s, u, err := undertaking.New(c).Run(ctx); !errors.Is(err, errKilled) || s.State.Name != "summoning" || len(u.Workers) != 1 {
			t.Fatalf("it came to %s with %d workers, %v", s.State.Name, len(u.Workers), err)
		}
		w.process()
		w.refuses = map[string]int{"orch-1": 2}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if s, u, err := w.run(ctx); !errors.Is(err, undertaking.ErrWaits) || s.State.Name != "verifying" || len(u.Workers) != 1 {
			t.Errorf("it came to %s with %d workers, %v", s.State.Name, len(u.Workers), err)
		}
	})
}

// TestModelIsTheAgents: a model is one of the agent that works, and no other agent is asked for it.
func TestModelIsTheAgents(t *testing.T) {
	w := beginOf(t, "undertaking", "", append(fullRun()[:4], turn("manager", `{"transition":"escalate","message":"e","questions":[{"text":"q"}]}`))...)
	_, text, _ := machines.Read("undertaking")
	edited := strings.Replace(string(text), `"manager", "agent": "claude"`, `"manager", "agent": "codex"`, 1)
	m, err := machine.Parse("edited.json", []byte(edited), strategies.Checks())
	if err != nil || edited == string(text) {
		t.Fatal(err)
	}
	s, err := w.runner.Start(t.Context(), m, runner.StartOptions{Meta: json.RawMessage(fmt.Sprintf(`{"task":"t","cwd":%q}`, w.cwd)), Driver: session.DriverNone})
	if err != nil {
		t.Fatal(err)
	}
	w.id, w.model = s.ID, "the-model"
	w.waits("awaiting_assent")
	w.rule("assent", "")
	w.waits("awaiting_ruling")
	if of, is := w.specs["orch-1"].Model, w.specs["manager"].Model; of != "the-model" || is != "" {
		t.Errorf("the worker has the model %q, the manager %q", of, is)
	}
}

// TestCancelled: what a human has cancelled has ended; what the loop has stopped can be gone on with.
func TestCancelled(t *testing.T) {
	for human, want := range map[bool]bool{true: true, false: false} {
		w := beginOf(t, "undertaking", "", strings.Replace(turn("manager", plans), `"cost_usd":0.1`, `"cost_usd":15`, 1), turn("manager", briefs))
		w.waits("awaiting_assent")
		if human {
			if _, err := w.runner.Stop(t.Context(), w.id, runner.Stopping{Note: "enough", Actor: session.LocalActor("owner")}); err != nil {
				t.Fatal(err)
			}
		} else {
			w.rule("assent", "")
			if s, _, err := w.run(t.Context()); err != nil || s.Status != session.Stopped {
				t.Fatalf("it is %s, %v", s.Status, err)
			}
		}
		s, err := w.runner.Session(t.Context(), w.id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := undertaking.Cancelled(t.Context(), w.store, s); err != nil || got != want {
			t.Errorf("by a human %v: cancelled is %v, %v", human, got, err)
		}
	}
}
