package backtest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// desk returns a machine whose rounds all go to carol, or are decided by another
// arbiter, under what else is written on top.
func desk(t testing.TB, arbiter, top string) *machine.Machine {
	t.Helper()
	text := fmt.Sprintf(`{"machineName":"desk","initialState":"open","goalState":"done",%s
		"states":{"open":{"transitions":{"left":"open","right":"open","finish":"done"}},"done":{}},
		"specialists":[{"role":"proposer","specialistId":"a","strategyFn":"v95"},{"role":"proposer","specialistId":"b","strategyFn":"v95"},
		{"role":"proposer","specialistId":"c","strategyFn":"v90"},{"role":"proposer","specialistId":"carol","isHuman":true},%s]}`, top, arbiter)
	m, err := machine.Parse("desk.json", []byte(text), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	byMargin = `"consensusThreshold":1,`
	byPanel  = `"risk":{"maxError":0.1,"confidence":0.9},`
)

// ruled returns a history of a desk whose every round carol decided.
func ruled(t testing.TB, rounds int) *history {
	h := newHistory(t)
	s, err := h.r.Start(h.ctx, desk(t, arb(`"strategyFn":"= none"`), byMargin), runner.StartOptions{})
	h.ok(err)
	p := &player{h, rand.New(rand.NewPCG(seed, 7)), nil, map[specialist.SessionID]string{}, map[specialist.RoundKey]string{}}
	h.players[s.ID] = p
	for range rounds {
		p.truth[s.ID] = []string{"left", "right"}[p.rng.IntN(2)]
		_, err := h.r.Step(h.ctx, s.ID)
		h.ok(err)
		_, err = h.r.Decide(h.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "carol", TransitionName: p.truth[s.ID], Blind: true})
		h.ok(err)
	}
	return h
}

var panel = backtest.Policy{Arbiter: &machine.Specialist{Role: machine.Arbiter, StrategyFnName: machine.Bayes}, Risk: &machine.Risk{MaxError: .1, Confidence: .9}}

// decidedAlone starts a session under the policy that was tried, has every voter say
// the same, and reports how its first round came to an end.
func (h *history) decidedAlone() runner.TickStatus {
	h.Helper()
	s, err := h.r.Start(h.ctx, desk(h, arb(`"strategyFnName":"bayes"`), byPanel), runner.StartOptions{})
	h.ok(err)
	h.players[s.ID] = &player{h, rand.New(rand.NewPCG(seed, 8)), nil, map[specialist.SessionID]string{s.ID: "left"}, nil}
	tick, err := h.r.Step(h.ctx, s.ID)
	h.ok(err)
	return tick.Status
}

// TestAdoptEndToEnd: a policy that is adopted decides alone as soon as it is in the
// file, also after a restart; who does not adopt waits for humans.
func TestAdoptEndToEnd(t *testing.T) {
	if without := ruled(t, 130); without.decidedAlone() != runner.TickHuman {
		t.Error("a policy that nobody adopted decides alone")
	}
	h := ruled(t, 130)
	r, _ := h.flips(backtest.Config{MachineName: "desk", Policy: panel})
	if len(r.Adoptions) != 1 || len(r.Adoptions[0].Pairs) != 120 || r.Total.Tau == 0 || r.Trial.From != 1 {
		t.Fatalf("the back-test found %d pairs, tau %s, %+v", len(r.Adoptions[0].Pairs), r.Total.Tau, r.Trial)
	}
	in := runner.Adopting{Adoption: r.Adoptions[0], Trial: r.Trial, SpecialistID: "carol", Reason: "it was right"}
	for _, id := range []string{"a", "nobody", runner.Operator, ""} {
		in.SpecialistID = machine.SpecialistID(id)
		if _, err := h.r.Adopt(h.ctx, in); !errors.Is(err, runner.ErrForbidden) {
			t.Errorf("%q adopts: %v", id, err)
		}
	}
	in.SpecialistID = "carol"
	done, err := h.r.Adopt(h.ctx, in)
	h.ok(err)
	if done.Tried != 1 {
		t.Errorf("%d policies were tried", done.Tried)
	}
	h.restart()
	l, err := h.r.Ledger(h.ctx)
	h.ok(err)
	if tau, _ := l.Risk("desk", "open", done.Promise, done.PolicyDigest); tau != r.Total.Tau {
		t.Errorf("tau is %s, in the back-test it was %s", tau, r.Total.Tau)
	}
	if status := h.decidedAlone(); status != runner.TickAdvanced {
		t.Errorf("under the adopted policy the first round ends %s", status)
	}
	h.restart()
	risks, err := report.RisksOf(h.ctx, h.r, "desk")
	h.ok(err)
	if p := risks.Promises[0]; p.State != trust.Met || p.Adopted != 120 || p.Tried != 1 || p.AIDecisions != 1 {
		t.Errorf("the promise is %+v", p)
	}
	again, _ := h.flips(backtest.Config{MachineName: "desk", Exact: true})
	if again.Verdicts == 0 || again.Reproduced != again.Verdicts {
		t.Errorf("%d of %d verdicts come out as recorded", again.Reproduced, again.Verdicts)
	}
	same, _ := h.flips(backtest.Config{MachineName: "desk", Policy: panel})
	if len(same.Adoptions[0].Pairs) != 120 || same.Total.Tau != r.Total.Tau {
		t.Errorf("tried again, the policy has %d pairs, tau %s: what was adopted counts twice", len(same.Adoptions[0].Pairs), same.Total.Tau)
	}
}

// TestAdoptTheBestOfMany: what was tried on the same rounds divides the confidence,
// and tries on other rounds do not.
func TestAdoptTheBestOfMany(t *testing.T) {
	h := ruled(t, 60)
	tried := func(tr session.Trial) int64 {
		n, err := h.r.RecordTrial(h.ctx, "desk", tr, nil)
		h.ok(err)
		return n
	}
	for i, c := range []struct {
		session.Trial
		want int64
	}{
		{session.Trial{Policy: "one", From: 1, To: 50}, 1}, {session.Trial{Policy: "one", From: 1, To: 50}, 1}, {session.Trial{Policy: "two", From: 40, To: 60}, 2},
		{session.Trial{Policy: "three", From: 51, To: 60}, 2}, {session.Trial{Policy: "one", From: 1, To: 99}, 3}, {session.Trial{Policy: "four", From: 100, To: 110}, 1},
	} {
		if got := tried(c.Trial); got != c.want {
			t.Errorf("%d: %d were tried, want %d", i, got, c.want)
		}
		h.restart()
	}
	roster, err := h.store.Roster(h.ctx, "desk")
	h.ok(err)
	if len(roster.Trials) != 5 {
		t.Errorf("recorded are %+v", roster.Trials)
	}
	if _, err := h.r.RecordTrial(h.ctx, "nowhere", session.Trial{Policy: "one", From: 1, To: 1}, nil); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of a machine that never ran: %v", err)
	}
	r, _ := h.flips(backtest.Config{MachineName: "desk", Policy: panel})
	if r.Total.Tau == 0 {
		t.Fatal("50 pairs establish nothing")
	}
	done, err := h.r.Adopt(h.ctx, runner.Adopting{Adoption: r.Adoptions[0], Trial: r.Trial, SpecialistID: "carol"})
	h.ok(err)
	l, err := h.r.Ledger(h.ctx)
	h.ok(err)
	if tau, _ := l.Risk("desk", "open", done.Promise, done.PolicyDigest); done.Tried != 5 || tau != 0 {
		t.Errorf("the best of %d has tau %s: what suffices for one must not suffice for it", done.Tried, tau)
	}
	if again, _ := h.flips(backtest.Config{MachineName: "desk", Policy: panel}); again.Total.Tau != r.Total.Tau {
		t.Errorf("tried again, tau is %s, not %s: what was adopted is learned in a back-test", again.Total.Tau, r.Total.Tau)
	}
	none := r.Adoptions[0]
	none.Pairs = nil
	if _, err := h.r.Adopt(h.ctx, runner.Adopting{Adoption: none, Trial: r.Trial, SpecialistID: "carol"}); !errors.Is(err, runner.ErrIllegal) {
		t.Errorf("without pairs: %v", err)
	}
}

// TestAdoptRebuilt: an adoption has its place among the lessons when everything that
// follows from the logs is written anew.
func TestAdoptRebuilt(t *testing.T) {
	h := ruled(t, 40)
	lessons := func() (list []string) {
		for l, err := range h.store.Lessons(h.ctx, 0) {
			h.ok(err)
			text, err := l.Encode()
			h.ok(err)
			list = append(list, fmt.Sprint(l.Seq, string(text)))
		}
		return list
	}
	r, _ := h.flips(backtest.Config{MachineName: "desk", Policy: panel})
	_, err := h.r.Adopt(h.ctx, runner.Adopting{Adoption: r.Adoptions[0], Trial: r.Trial, SpecialistID: "carol"})
	h.ok(err)
	h.decidedAlone()
	before := lessons()
	for range 2 {
		report, err := h.store.Verify(h.ctx, session.NewPrograms())
		if err != nil || report.Difference != nil {
			t.Fatalf("%+v, %v", report, err)
		}
		_, err = h.store.Rebuild(h.ctx, session.NewPrograms(), store.RebuildOptions{})
		h.ok(err)
		h.restart()
	}
	if after := lessons(); len(before) != 41 || !slices.Equal(before, after) {
		t.Errorf("rebuilt, %d lessons are others", len(after))
	}
}

// TestAdoptInWaves: where the policy asks one after the other, its promise is tested
// at the votes where it would have stopped.
func TestAdoptInWaves(t *testing.T) {
	h := newHistory(t)
	s, err := h.r.Start(h.ctx, desk(t, arb(`"strategyFn":"= none"`), byMargin+`"solicit":"sequential",`), runner.StartOptions{})
	h.ok(err)
	p := &player{h, rand.New(rand.NewPCG(seed, 9)), nil, map[specialist.SessionID]string{}, map[specialist.RoundKey]string{}}
	h.players[s.ID] = p
	for range 80 {
		p.truth[s.ID] = []string{"left", "right"}[p.rng.IntN(2)]
		for status := runner.TickWaiting; status != runner.TickHuman; {
			tick, err := h.r.Step(h.ctx, s.ID)
			h.ok(err)
			status = tick.Status
		}
		_, err = h.r.Decide(h.ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "carol", TransitionName: p.truth[s.ID], Blind: true})
		h.ok(err)
	}
	r, _ := h.flips(backtest.Config{MachineName: "desk", Policy: panel})
	stops := 0
	for _, p := range r.Adoptions[0].Pairs {
		stops += len(p.Stops)
	}
	if len(r.Adoptions[0].Pairs) != 70 || stops == 0 {
		t.Errorf("of %d pairs %d would have stopped earlier", len(r.Adoptions[0].Pairs), stops)
	}
}
