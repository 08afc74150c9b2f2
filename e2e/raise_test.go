package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestRaisedLimitSurvivesAKill kills the program right after it raised the budget of a
// session and while the first service is asked under the new one. The raise is there,
// the session goes on to its goal without another, and everything was charged once.
func TestRaisedLimitSurvivesAKill(t *testing.T) {
	c := newCrash(t)
	file := filepath.Join(t.TempDir(), "raise.json")
	definition := fmt.Sprintf(`{"machineName":"raise","initialState":"s0","goalState":"done","guards":{"budget":{"hard_limit_usd":0.15}},
		"states":{"s0":{"transitions":{"next":"s1","end":"done"}},"s1":{"transitions":{"next":"s2","end":"done"}},"s2":{"transitions":{"next":"s0","end":"done"}},"done":{}},
		"specialists":[{"role":"proposer","specialistId":"dear","strategyWebhookUrl":"%s/propose/dear","webhookTokenName":"CRASH_WEBHOOK_TOKEN","estimatedCostUSD":%s},
			{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"arbiter","strategyFnName":"firstProposal"}]}`, c.server.URL, prices["dear"])
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := c.command(file).Output()
	if !strings.Contains(string(out), "Session stopped by guard: budget_usd") {
		t.Fatalf("it was not stopped:\n%s", out)
	}
	_, id, _ := strings.Cut(string(out), "Session ID:    ")
	id, _, _ = strings.Cut(id, "\n")
	proposes := func(path string, _ bool) bool { return strings.HasPrefix(path, "/propose") }
	c.killAt(crashPoint{kills: proposes, hangs: proposes}, c.command("resume", id, "--raise", "budget.hard_limit_usd=9", "--note", "worth it"))
	look := func(status session.Status) {
		t.Helper()
		c.inProcess(func(r *runner.Runner, _ *store.SQLite) {
			parsed, err := session.ParseID(id)
			if err != nil {
				t.Fatal(err)
			}
			s, err := r.Session(c.ctx, parsed)
			if err != nil {
				t.Fatal(err)
			}
			raised, charged := s.Raised(), c.hook.chargedTo(id)
			if len(raised) != 1 || raised[0].Limit != "budget.hard_limit_usd" || raised[0].To != "9" || s.Status != status {
				t.Errorf("the session is %s, raised was %+v", s.Status, raised)
			}
			if status == session.Completed && (s.Spent().Money != charged || int(s.Executed) != legs) {
				t.Errorf("after %d transitions it has spent $%s, charged was $%s", s.Executed, s.Spent().Money, charged)
			}
		})
	}
	look(session.Running)
	c.hook.set(nil)
	if out, err := c.command("resume", id).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	look(session.Completed)
	c.verify()
}
