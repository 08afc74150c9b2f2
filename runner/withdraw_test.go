package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func coder(id string, rest ...string) string {
	return entry("proposer", id, `"agent":"claude"`, rest...)
}

func drivesAgents(c *runner.Config) {
	c.Agents = func(_ *machine.Machine, s *machine.Specialist) error {
		if s.Agent != "claude" {
			return errors.New("there is no agent " + s.Agent)
		}
		return nil
	}
}

// TestAgentsAnswerLater: an agent is asked in the log, by every Runner, and proposes when it
// likes; a session with one starts only where somebody drives it.
func TestAgentsAnswerLater(t *testing.T) {
	b := newBench(t)
	if _, err := b.r.Start(b.ctx, b.desk(coder("a"), arb("firstProposal")), runner.StartOptions{}); err == nil || !strings.Contains(err.Error(), `specialist "a" is the coding agent "claude", and this program drives none: dialai undertake does`) {
		t.Errorf("without agents: %v", err)
	}
	driving := b.runner(drivesAgents)
	if _, err := driving.Start(b.ctx, b.desk(entry("proposer", "a", `"agent":"codex"`), arb("firstProposal")), runner.StartOptions{}); err == nil || !strings.Contains(err.Error(), `specialist "a": there is no agent codex`) {
		t.Errorf("an agent that nobody knows: %v", err)
	}
	s, err := driving.Start(b.ctx, b.desk(coder("a"), human("human"), arb("firstProposal")), runner.StartOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickWaiting) // by the Runner that drives no agents
	b.stepTo(s, runner.TickWaiting)
	asks := b.now(s).OpenAsks()
	if len(asks) != 1 || asks[0].SpecialistID != "a" || !asks[0].Remote.Accepted || asks[0].Source.String() != "agent" {
		t.Fatalf("open are %+v", asks)
	}
	b.submit(runner.Submission{SessionID: s.ID, RoundID: b.now(s).Key().ID(), SpecialistID: "a", TransitionName: "finish", Usage: cost(dollar / 4)})
	b.stepTo(s, runner.TickAdvanced)
	if got := b.now(s).Spent(); got.Money != dollar/4 || got.Calls != 1 {
		t.Errorf("$%s in %d calls is spent", got.Money, got.Calls)
	}
}

// TestWithdraw: an ask that nobody will answer is ended with its cost; nothing that comes
// afterwards counts, a human is asked, and whoever resumes has it asked again.
func TestWithdraw(t *testing.T) {
	b := newBench(t)
	driving := b.runner(drivesAgents)
	s, err := driving.Start(b.ctx, b.desk(coder("a"), human("human"), arb("firstProposal")), runner.StartOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickWaiting)
	round := b.now(s).Key().ID()
	gone := runner.Withdrawal{SessionID: s.ID, RoundID: round, SpecialistID: "a", Code: "no_move", Note: "its turn ended without a move", Usage: cost(dollar / 2)}
	for _, wrong := range []func(*runner.Withdrawal){
		func(w *runner.Withdrawal) { w.SpecialistID = "human" },
		func(w *runner.Withdrawal) { w.SpecialistID = "nobody" },
		func(w *runner.Withdrawal) { w.RoundID = "another" },
	} {
		w := gone
		if wrong(&w); true {
			if _, err := b.r.Withdraw(b.ctx, w); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%+v: %v", w, err)
			}
		}
	}
	bad := gone
	bad.Code = "No move"
	if _, err := b.r.Withdraw(b.ctx, bad); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("a code of another form: %v", err)
	}
	before := b.now(s).Sequence
	after, err := b.r.Withdraw(b.ctx, gone)
	b.ok(err)
	if after.Spent().Money != dollar/2 || len(after.OpenAsks()) != 0 {
		t.Errorf("$%s is spent, open are %v", after.Spent().Money, after.OpenAsks())
	}
	b.wantLog(s, before, `ask_failed a no_move 0.5`)
	if _, err := b.r.Withdraw(b.ctx, gone); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	b.stepTo(s, runner.TickHuman)
	_, err = b.r.Resume(b.ctx, s.ID, runner.ResumeOptions{})
	b.ok(err)
	b.stepTo(s, runner.TickWaiting)
	if asks := b.now(s).OpenAsks(); len(asks) != 1 {
		t.Fatalf("after a resume open are %+v", asks)
	}
	b.propose(s, "a", "finish")
	b.stepTo(s, runner.TickAdvanced)
}
