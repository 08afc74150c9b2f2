package undertaking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/session"
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
	if len(u.Tasks) != 1 || u.Tasks[0].Text != "write a.txt" {
		t.Errorf("tasks are %+v", u.Tasks)
	}
	w.rule("sound", "")
	s, _, err := w.run(t.Context())
	if err != nil || s.Status != session.Completed || s.State.Name != "fulfilled" {
		t.Fatalf("it is %s in %s (%s), %v", s.Status, s.State.Name, s.Outcome().Reason, err)
	}
}
