package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// duePayment is the payment with a timer: what two humans have not approved within a day
// goes to a boss.
var duePayment = strings.NewReplacer(
	`"ready":{"transitions":{`, `"ready":{"due":{"in":"24h","then":"escalate"},"transitions":{`,
	`"reject":"rejected"}`, `"reject":"rejected","escalate":"boss"}`,
	`"rejected":{"final":true}`, `"rejected":{"final":true},"boss":{"final":true}`).Replace(paymentFile)

// tick is the program a day later.
func (d *till) tick() *exec.Cmd {
	cmd := exec.Command(clocked, "tick", "--quiet", "--store", d.path)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(d.path), "DIALAI_TEST_CLOCK=25h")
	return cmd
}

// TestKilledTimer has the second approver of a payment and its timer race, and kills both
// around their commits, over and over. When both have had their turn undisturbed, exactly
// one of the two transitions has been executed, once, and the other finds the round over
// (cases.md 6.2, 10).
func TestKilledTimer(t *testing.T) {
	d := newTill(t)
	d.file = duePayment
	approver, timer := &hunt{delay: 40 * time.Millisecond}, &hunt{delay: 30 * time.Millisecond}
	outcomes := map[string]int{}
	for i := 0; i < 30 || len(outcomes) < 2 && i < 150; i++ {
		id := d.start(1)[0]
		d.run(id, "carol")
		if p := d.look(id); !slices.Equal(p.ruled, []string{"carol"}) || len(p.executed) > 0 {
			t.Fatalf("payment %d after the first approval: %+v", i, p)
		}
		kill := func(h *hunt, cmd *exec.Cmd) (wait func()) {
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(h.aim(d.rng), func() { cmd.Process.Kill() })
			return func() {
				cmd.Wait()
				kill.Stop()
			}
		}
		ruled, ticked := kill(approver, d.rule(id, "dave", "pay", `{"amount":5}`)), kill(timer, d.tick())
		ruled()
		ticked()
		done := d.look(id).executed
		approver.learn(slices.Contains(done, "pay[carol dave]"))
		timer.learn(slices.Contains(done, "escalate[]"))
		d.run(id, "dave") // again, if it was not yet: else it is about a round that is over
		if out, err := d.tick().CombinedOutput(); err != nil {
			t.Fatalf("a tick: %v: %s", err, out)
		}
		p := d.look(id)
		if len(p.executed) != 1 || p.status != session.Completed || len(done) > 0 && done[0] != p.executed[0] {
			t.Fatalf("payment %d, which came to %v when both were killed: %+v", i, done, p)
		}
		if p.executed[0] == "pay[carol dave]" != paidOnce(p.data) {
			t.Fatalf("payment %d: %+v", i, p)
		}
		outcomes[p.executed[0]]++
	}
	t.Logf("%v; killed before and after the commit: approvals %d and %d, timers %d and %d", outcomes, approver.before, approver.after, timer.before, timer.after)
	if len(outcomes) != 2 {
		t.Errorf("only one of approval and timer was ever first: %v", outcomes)
	}
}

// run has a human approve, undisturbed.
func (d *till) run(id specialist.SessionID, who string) {
	d.rule(id, who, "pay", `{"amount":5}`).Run()
}
