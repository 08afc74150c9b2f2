package runner_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// TestApprovalsAreNoSecondLooks: what somebody chose openly, where a transition takes
// approvals, is compared with no word that was given without sight of others, whichever
// came first (cases.md 4.5).
func TestApprovalsAreNoSecondLooks(t *testing.T) {
	for _, order := range [][]string{{"alice pay", "bob drop", "dave drop"}, {"bob drop", "alice pay", "dave drop"}} {
		b := newBench(t)
		s := b.start(b.approved(secondBefore+",", `2`))
		b.stepTo(s, runner.TickHuman)
		for i, ruling := range order {
			who, transition, _ := strings.Cut(ruling, " ")
			if a, err := b.word(s, who, transition); err != nil || a.Executed != (i == 2) {
				t.Fatalf("%q: %s executed %t: %v", order, ruling, a.Executed, err)
			}
		}
		if now := b.now(s); now.Status != session.Completed || now.State.Name != "dropped" {
			t.Fatalf("%q: the session is %s in %s", order, now.Status, now.State.Name)
		}
		for _, l := range b.lessons() {
			if l.Second != nil {
				t.Errorf("%q is a second look: %+v", order, l.Second)
			}
		}
	}
}

// TestGroupIsExcluded: where everybody of a group is excluded of which one has to approve,
// the question says that nobody can, however many others there are (cases.md 4.4).
func TestGroupIsExcluded(t *testing.T) {
	b := newBench(t)
	m := b.approved("", `{"each":["group:finance","group:legal"],"exclude":["starter"]}`)
	for starters, want := range map[string]string{
		"carol lea": `transition "pay" takes the approval of one of legal, and nobody is left to give it for them: `,
		"carol":     "",
	} {
		s, err := b.r.Start(b.ctx, m, runner.StartOptions{Actor: &session.Actor{Subject: "local:op", Method: "local", Humans: strings.Fields(starters)}})
		b.ok(err)
		b.stepTo(s, runner.TickHuman)
		q, err := b.r.Question(b.ctx, b.now(s), "alice")
		b.ok(err)
		closed := q.Transitions[0].Closed
		if want == "" && closed != "" || !strings.HasPrefix(closed, want) {
			t.Errorf("started by %s, the question says %q, want %q", starters, closed, want)
		}
	}
}
