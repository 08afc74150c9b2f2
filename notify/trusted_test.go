package notify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// stage records that a state of claims has come to a stage.
func (w *world) stage(to trust.Stage) {
	w.Helper()
	roster, err := w.runner.Store().Roster(w.Context(), "claims")
	w.ok(err)
	w.ok(w.runner.Store().Register(w.Context(), "claims", roster.Sequence, session.RosterEvent{At: specialist.TimeOf(time.Now()), Kind: session.KindStage, State: "review",
		Stage: &session.Collapse{Stage: to, Reason: "because"}, By: "carol", Reason: "because"}))
}

// stages returns the stages that were told of, by their places.
func (w *world) stages() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	byPlace := map[int64]string{}
	for _, r := range w.got {
		if d := r.message.Data; r.message.Type == "trust.stage_changed" {
			byPlace[d.RosterPlace] = d.Stage
			if strings.Contains(string(r.body), "because") || d.MachineName != "claims" || d.State != "review" || d.SessionID != "" || d.Place != 0 || d.URL != "" {
				w.Errorf("a stage is told as %s", r.body)
			}
		}
	}
	for place := int64(0); len(list) < len(byPlace); place++ {
		if s, told := byPlace[place]; told {
			list = append(list, s)
		}
	}
	return list
}

// TestStages: a state that has come to another stage is told of, by each process that delivers from
// where the last one was, and again under the same id when what happened since then is told again.
func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		only := func(in *api.NewWebhook) { in.Types = []string{"trust.stage_changed"} }
		id := w.hook(only)
		w.hook(only, func(in *api.NewWebhook) { in.Machines = []string{"others"} })
		w.stage(trust.Consensus)
		w.deliver(3 * time.Second)
		w.start(claims)
		time.Sleep(time.Minute)
		w.stage(trust.Championed)
		w.deliver(3 * time.Second)
		w.deliver(7 * time.Second)
		if got := fmt.Sprint(w.stages(), len(w.got)); got != "[consensus champion] 2" {
			t.Fatalf("told is %s", got)
		}
		before, place := w.ids(), w.webhook(id).Cursor
		w.back(id, 0)
		w.deliver(3 * time.Second)
		if len(w.got) != 4 || !slices.Equal(w.ids(), before) {
			t.Errorf("told again are %d messages, with the ids %v, before %v", len(w.got), w.ids(), before)
		}
		time.Sleep(time.Minute)
		w.start(claims)
		w.stage(trust.Demoted)
		w.deliver(3 * time.Second)
		w.back(id, place)
		w.deliver(3 * time.Second)
		if got := fmt.Sprint(w.stages(), len(w.got)); got != "[consensus champion demoted] 6" {
			t.Errorf("with what happened after %d told is %s", place, got)
		}
	})
}

// TestOlderWebhook: a webhook that was made before webhooks were told of machine names is told what
// happens to them from then on, and nothing twice.
func TestOlderWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		epoch, err := w.runner.Store().Epoch(t.Context())
		w.ok(err)
		hook, _, err := w.maker.New(api.NewWebhook{URL: "https://example.com/hook"}, control.Webhook{Tenant: "default", Epoch: epoch, Roster: -1})
		w.ok(err)
		w.ok(w.control.Commit(t.Context(), control.Changes{Webhook: &hook}))
		w.stage(trust.Consensus)
		w.start(byHand)
		w.deliver(2 * time.Second)
		w.stage(trust.Championed)
		w.deliver(3 * time.Second)
		if got := w.webhook(hook.ID); len(w.got) != 3 || fmt.Sprint(w.stages()) != "[champion]" || got.Roster != 2 || strings.Contains(got.Epoch, "+") {
			t.Errorf("told is %q, and the webhook is %+v", w.told(), got)
		}
	})
}

// promising is a machine that promises something, and two who always say the same.
const promising = `{"machineName":"promising","initialState":"open","goalState":"closed","risk":{"maxError":0.25,"confidence":0.8},"audit":{"rate":1,"newcomerRate":1},
	"states":{"open":{"irreversible":false,"transitions":{"again":"open","other":"open","close":"closed"}},"closed":{}},
	"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"rob","strategyFnName":"firstAvailable"},
		{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"bayes"}]}`

// TestPromises: that a promise is met, and lost, is told when the ledger comes to say so, of the decision or review by which it does; under the same ids by another process.
func TestPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.hook(func(in *api.NewWebhook) { in.Types = []string{"promise.met", "promise.lost"} })
		m, err := machine.Parse("test", []byte(promising), runner.Checks())
		w.ok(err)
		s, err := w.runner.Start(t.Context(), m, runner.StartOptions{})
		w.ok(err)
		var want []string
		state := func() trust.RiskState {
			l, err := w.runner.Ledger(t.Context())
			w.ok(err)
			for _, r := range l.Risks("promising") {
				return r.State
			}
			return trust.Collecting
		}
		was := state()
		looked := func() { // whether the promise stands otherwise than before
			place, err := w.runner.Store().Place(t.Context())
			w.ok(err)
			switch is := state(); {
			case is == was:
			case is == trust.Met:
				was, want = is, append(want, fmt.Sprint("promise.met ", place))
			case is == trust.Lost:
				was, want = is, append(want, fmt.Sprint("promise.lost alarm ", place))
			}
		}
		for alone := 0; alone < 12; {
			tick, err := w.runner.Step(t.Context(), s.ID)
			w.ok(err)
			if tick.Status == runner.TickAdvanced {
				alone++
				continue
			}
			w.rule(w.session(s.ID), "again")
			looked()
		}
		for _, v := range w.session(s.ID).Reviews() {
			_, err := w.runner.Review(t.Context(), runner.Reviewing{SessionID: s.ID, RoundID: v.Key.ID(), SpecialistID: "carol", TransitionName: "other", Blind: true})
			w.ok(err)
			looked()
		}
		if len(want) != 2 {
			t.Fatalf("the promise is %s after %v", was, want)
		}
		w.deliver(3 * time.Second)
		got := w.promised()
		if !slices.Equal(got, want) {
			t.Errorf("told is %q, want %q", got, want)
		}
		ids := w.ids()
		w.back(id, 0)
		w.deliver(3 * time.Second)
		if len(w.got) != 4 || !slices.Equal(w.ids(), ids) {
			t.Errorf("told again are %d messages, with the ids %v, before %v", len(w.got), w.ids(), ids)
		}
	})
}

// promised returns what was told of promises, by place.
func (w *world) promised() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.got, func(a, b request) int { return int(a.message.Data.Place - b.message.Data.Place) })
	for _, r := range w.got {
		d := r.message.Data
		if d.MachineName != "promising" || d.SessionID+d.RoundID+d.State+d.URL != "" || !json.Valid(r.body) {
			w.Errorf("a promise is told as %s", r.body)
		}
		list = append(list, strings.Join(strings.Fields(fmt.Sprint(r.message.Type, " ", d.Code, " ", d.Place)), " "))
	}
	return list
}
