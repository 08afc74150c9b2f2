package notify_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/webhook"
)

// cooling is a machine whose first state nobody but its timer ends.
const cooling = `{"machineName":"cooling","initialState":"cooling","goalState":"done",
	"states":{"cooling":{"due":{"in":"2h","then":"go"},"specialists":[],"transitions":{"go":"done"}},"done":{}},
	"specialists":[{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// audited is claims in which the engine decides, and a human looks at what it has decided.
var audited = strings.NewReplacer(`"goalState":"paid",`, `"goalState":"paid","audit":{"rate":1},`, `{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},`, "", "alignmentMargin", "firstProposal").Replace(claims)

// guarded is byHand with a guard that warns of data about persons.
var guarded = strings.NewReplacer(`"goalState":"paid",`, `"goalState":"paid","guards":{"packs":{"pii":{"action":"warn"}}},`, "alignmentMargin", "firstProposal").Replace(byHand)

// TestKinds: what happens seldom is told of, too.
func TestKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name, machine string
			do            func(w *world)
			want          []string
		}{
			{"a wait", cooling, nil, []string{"session.started cooling running", "session.waiting cooling running"}},
			{"a review", audited, nil, []string{"session.started review running", "decision.executed paid running pay", "review.opened review completed audit", "session.completed paid completed goal"}},
			{"a warning", guarded, func(w *world) {
				s := w.only()
				_, _, err := w.runner.Propose(w.Context(), runner.Submission{SessionID: s.ID, RoundID: s.Key().ID(), SpecialistID: "carol", TransitionName: "pay", Reasoning: "ask bob.miller@firma.de, 4111 1111 1111 1111"})
				w.ok(err)
				_, err = w.runner.Run(w.Context(), s.ID, runner.RunOptions{})
				w.ok(err)
			}, []string{"session.started review running", "session.needs_human review needs_human no_proposals", "guard.warned review running pii_found pay", "decision.executed paid running pay", "session.completed paid completed goal"}},
			{"a stop", byHand, func(w *world) {
				s := w.only()
				_, err := w.runner.Stop(w.Context(), s.ID, runner.Stopping{Actor: session.Actor{Subject: "test", Method: "local"}, Note: "enough"})
				w.ok(err)
				_, err = w.runner.Resume(w.Context(), s.ID, runner.ResumeOptions{Note: "go on"})
				w.ok(err)
				m, err := machine.Parse("test", []byte(strings.Replace(byHand, "Pay?", "Pay now?", 1)), runner.Checks())
				w.ok(err)
				_, err = w.runner.Move(w.Context(), s.ID, m, runner.Moving{Actor: session.Actor{Subject: "test", Method: "local"}, Note: "better"})
				w.ok(err)
				_, err = w.runner.Run(w.Context(), s.ID, runner.RunOptions{})
				w.ok(err)
			}, []string{"session.started review running", "session.needs_human review needs_human no_proposals", "session.stopped review stopped cancelled", "session.resumed review running", "session.moved review running", "session.needs_human review needs_human no_proposals"}},
		} {
			w := newWorld(t)
			w.hook(func(in *api.NewWebhook) { in.Types = []string{"*"} })
			w.start(c.machine)
			if c.do != nil {
				c.do(w)
			}
			w.deliver(2 * time.Second)
			got := w.told()
			slices.Sort(got)
			want := slices.Clone(c.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("of %s is told\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// only returns the one session that there is.
func (w *world) only() *session.Session {
	w.Helper()
	list, err := w.runner.Sessions(w.Context(), session.ListQuery{})
	w.ok(err)
	return w.session(list[0].SessionID)
}

// lateDeliveries is a control store whose answers about what is due take a second to arrive.
type lateDeliveries struct{ control.Store }

func (c lateDeliveries) Deliveries(ctx context.Context, q control.DeliveryQuery) ([]control.Delivery, error) {
	list, err := c.Store.Deliveries(ctx, q)
	time.Sleep(time.Second)
	return list, err
}

// TestWhatHasArrivedIsNotSentAgain: a message that arrives while it is read what is due is in what
// was read, and is sent once all the same.
func TestWhatHasArrivedIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hook(func(in *api.NewWebhook) { in.Types = []string{"session.started", "session.needs_human"} })
		w.start(byHand)
		w.answer = func(r request) webhook.Reply {
			if r.message.Type == "session.needs_human" {
				time.Sleep(500 * time.Millisecond) // the other has arrived, and it is read what else is due
			}
			return webhook.Reply{Status: 204}
		}
		w.deliver(8*time.Second, func(c *notify.Config) { c.Control = lateDeliveries{w.control} })
		if got := w.told(); len(got) != 2 {
			t.Errorf("told is %q", got)
		}
	})
}
