package e2e_test

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// A crashPoint is a moment between two commits at which the program is killed, and
// what its log then says of the first round.
type crashPoint struct {
	name     string
	hangs    func(path string, decided bool) bool // calls that are never answered
	kills    func(path string, decided bool) bool // the calls during which it is killed
	says     string                               // the line of output at which it is killed; "" for a call
	open     int                                  // asks that are out
	spent    exact.Money
	executed int32
	asking   bool // guards ask, and arbiters cost
}

// TestCrashPoints kills the program at each of the moments that budgets are about, not
// by luck as the others do: with what asking may cost reserved and nobody heard, also
// where it is the guards who ask; with what everybody cost settled and the transition
// not executed; and right after the transition was committed. The budget is neither made whole nor charged twice.
func TestCrashPoints(t *testing.T) {
	proposes := func(path string, _ bool) bool { return strings.HasPrefix(path, "/propose") }
	arbitrates := func(path string, _ bool) bool { return strings.HasPrefix(path, "/arbitrate") }
	classifies := func(path string, _ bool) bool { return strings.HasPrefix(path, "/classify") }
	next := func(_ string, decided bool) bool { return decided }
	never := func(string, bool) bool { return false }
	all := prices["cheap"] + prices["middling"] + prices["dear"]
	for _, p := range []crashPoint{
		{name: "between reserve and settle", hangs: proposes, kills: proposes, open: 3},
		{name: "between settle and commit", hangs: arbitrates, kills: arbitrates, open: 1, spent: all},
		{name: "after commit", hangs: next, kills: never, says: "Executed: next", spent: all, executed: 1},
		{name: "while guards ask", hangs: classifies, kills: classifies, open: 1, spent: all + prices["arbitrate"], asking: true},
	} {
		t.Run(p.name, func(t *testing.T) {
			c := newCrash(t)
			if c.asking, c.hook.paid = p.asking, p.asking; !p.asking {
				c.budget = exact.Dollar / 2
			}
			ids := c.start()[1:2] // one with an arbiter outside the process
			c.killAt(p, c.command("resume", ids[0].String()))
			c.inProcess(func(r *runner.Runner, _ *store.SQLite) {
				s, err := r.Session(c.ctx, ids[0])
				if err != nil {
					t.Fatal(err)
				}
				open := len(s.OpenAsks())
				if s.Spent().Money != p.spent || s.Executed != p.executed || p.executed == 0 && open != p.open {
					t.Fatalf("it was not killed there: $%s spent, %d asks out, %d transitions", s.Spent().Money, open, s.Executed)
				}
			})
			c.hook.set(nil)
			for tries := 0; c.live(ids) > 0; tries++ {
				if tries > 20 {
					t.Fatal("the session does not come to its end")
				}
				c.round(ids, false)
			}
			c.checkRecorded(ids)
			c.checkEnd(ids)
			c.verify()
			if c.refused+c.lost == 0 || p.asking && c.lost != 1 {
				t.Errorf("%d asks refused, %d questions lost: the test shows nothing", c.refused, c.lost)
			}
		})
	}
}

// killAt runs a process until it comes to the point, and kills it there.
func (c *crash) killAt(p crashPoint, cmd *exec.Cmd) {
	c.Helper()
	decided, started := false, make(chan struct{})
	c.hook.set(func(path string) (hang bool) {
		if p.kills(path, decided) {
			<-started // cmd.Process is there
			cmd.Process.Kill()
		}
		hang = p.hangs(path, decided)
		decided = decided || strings.HasPrefix(path, "/arbitrate")
		return hang
	})
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	close(started)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if p.says != "" && strings.Contains(lines.Text(), p.says) {
			cmd.Process.Kill()
		}
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		c.Fatalf("it was not killed: %s", cmd.ProcessState)
	}
	c.killed++
}

// set has the hook ask f, one call at a time, whether a call is never to be answered;
// nil answers all.
func (h *countingHook) set(f func(path string) (hang bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangs = f
}
