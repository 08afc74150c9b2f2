package backtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// past makes the history of some plots, one after the other.
func past(t testing.TB, steps int, names ...string) *history {
	h := newHistory(t)
	for _, p := range plots {
		if slices.Contains(names, p.name) {
			h.ok(h.start(p.machine(t), 10).play(steps))
		}
	}
	return h
}

// flips back-tests and returns the report and the flips.
func (h *history) flips(c backtest.Config) (*backtest.Report, []backtest.Flip) {
	h.Helper()
	var list []backtest.Flip
	c.Flip = func(f backtest.Flip) error {
		list = append(list, f)
		return nil
	}
	if c.Source == nil {
		c.Source = h.store
	}
	r, err := backtest.Run(h.ctx, c)
	h.ok(err)
	return r, list
}

func threshold(t testing.TB, f float64) *machine.Threshold {
	t.Helper()
	th, err := machine.NewThreshold(f)
	if err != nil {
		t.Fatal(err)
	}
	return &th
}

func tried(strategy string) *machine.Specialist {
	return &machine.Specialist{Role: machine.Arbiter, SpecialistID: "tried", StrategyFnName: strategy}
}

// TestSamePolicy tries the policy that was in force as if it were another one: what
// is learned is made anew then, and nothing may flip.
func TestSamePolicy(t *testing.T) {
	h := past(t, 500, "margin", "bayes", "bayes-risk", "first", "expression")
	for _, c := range []struct {
		machine string
		policy  backtest.Policy
	}{
		{"margin", backtest.Policy{Arbiter: tried("alignmentMargin"), Threshold: threshold(t, .3)}},
		{"bayes", backtest.Policy{Arbiter: tried("bayes"), Threshold: threshold(t, .85)}},
		{"bayes-risk", backtest.Policy{Risk: &machine.Risk{MaxError: .2, Confidence: .8}}},
		{"first", backtest.Policy{Arbiter: tried("firstProposal")}},
		{"expression", backtest.Policy{Threshold: threshold(t, .2)}},
	} {
		for _, cold := range []bool{false, true} {
			r, flips := h.flips(backtest.Config{MachineName: c.machine, Policy: c.policy, Cold: cold})
			if len(flips) > 0 || r.Total.Rounds < 80 {
				t.Errorf("%s, cold %v: %d rounds, %d flips, the first %+v", c.machine, cold, r.Total.Rounds, len(flips), flips[:min(1, len(flips))])
			}
		}
	}
}

// TestRetracted: what humans have taken back leaves the weights from there on, in a back-test
// as it did when that happened: every verdict comes out the same, also where what is learned
// is made anew, and what was decided until then still counts (cases.md 4.7).
func TestRetracted(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy backtest.Policy
	}{
		{"margin", backtest.Policy{Arbiter: tried("alignmentMargin"), Threshold: threshold(t, .3)}},
		{"bayes", backtest.Policy{Arbiter: tried("bayes"), Threshold: threshold(t, .85)}},
		{"bayes-risk", backtest.Policy{Risk: &machine.Risk{MaxError: .2, Confidence: .8}}},
	} {
		h := newHistory(t)
		p := h.start(plots[slices.IndexFunc(plots, func(p plot) bool { return p.name == c.name })].machine(t), 10)
		p.regrets = true
		h.ok(p.play(500))
		if p.retracted < 5 { // how many depends on the ids that are drawn
			t.Errorf("%s: only %d rulings were taken back", c.name, p.retracted)
		}
		if r, flips := h.flips(backtest.Config{MachineName: c.name, Exact: true}); r.Verdicts < 80 || r.Reproduced != r.Verdicts || len(flips) > 0 {
			t.Errorf("%s: %d of %d verdicts were reproduced, %d flips", c.name, r.Reproduced, r.Verdicts, len(flips))
		}
		for _, cold := range []bool{false, true} {
			if r, flips := h.flips(backtest.Config{MachineName: c.name, Policy: c.policy, Cold: cold}); len(flips) > 0 || r.Total.Rounds < 80 {
				t.Errorf("%s, cold %v: %d rounds, %d flips, the first %+v", c.name, cold, r.Total.Rounds, len(flips), flips[:min(1, len(flips))])
			}
		}
	}
}

// slow decides the rounds of a margin machine again by reading all of the log as
// JSON: a second version of what a back-test does with another threshold.
func (h *history) slow(machineName string, t *machine.Threshold) (automatic int, flipped []string) {
	h.Helper()
	list, err := h.store.List(h.ctx, session.ListQuery{MachineName: machineName})
	h.ok(err)
	for _, s := range list {
		id := s.SessionID
		m := h.definition(machineName)
		var proposals []arbiter.Vote
		var round struct {
			RoundID string `json:"roundId"`
			State   string `json:"state"`
		}
		var was, now string
		var judged bool
		for rec, err := range h.store.Records(h.ctx, id, 0) {
			h.ok(err)
			raw, err := session.DecodeRaw(rec.Events)
			h.ok(err)
			for _, e := range raw {
				switch e.Kind {
				case session.KindRoundOpened:
					h.ok(json.Unmarshal(e.Data, &round))
					proposals, was, now, judged = nil, "", "", false
				case session.KindProposed:
					var p struct {
						SpecialistID, TransitionName string
						IsHuman                      bool
						Arrival                      int32
					}
					h.ok(json.Unmarshal(e.Data, &p))
					proposals = slices.DeleteFunc(proposals, func(v arbiter.Vote) bool { return v.SpecialistID == p.SpecialistID })
					tr := m.State(round.State).Transition(p.TransitionName)
					proposals = append(proposals, arbiter.Vote{Proposal: &specialist.Proposal{SpecialistID: p.SpecialistID, Transition: tr, IsHuman: p.IsHuman, Arrival: p.Arrival}})
				case session.KindJudged:
					var j struct {
						Winner           int
						ConsensusReached bool
						Order            []int32
						Weights          []exact.Billionths
					}
					h.ok(json.Unmarshal(e.Data, &j))
					r := &arbiter.Round{Threshold: t}
					for i, a := range j.Order {
						k := slices.IndexFunc(proposals, func(v arbiter.Vote) bool { return v.Arrival == a })
						r.Votes = append(r.Votes, arbiter.Vote{Proposal: proposals[k].Proposal, Weight: j.Weights[i]})
					}
					d, err := strategies.AlignmentMargin{}.Decide(h.ctx, r)
					h.ok(err)
					d = d.Floor(r)
					if judged = true; j.ConsensusReached && was == "" {
						was = r.Votes[j.Winner].Transition.Name
					}
					if d.Consensus() && now == "" {
						now = r.Votes[d.Winner].Transition.Name
					}
				case session.KindExecuted, session.KindEnded:
					if judged && now != "" {
						automatic++
					}
					if judged && was != now {
						flipped = append(flipped, round.RoundID)
					}
					judged = false
				}
			}
		}
		if judged && now != "" {
			automatic++
		}
		if judged && was != now {
			flipped = append(flipped, round.RoundID)
		}
	}
	return automatic, flipped
}

func (h *history) definition(machineName string) *machine.Machine {
	h.Helper()
	texts, err := h.store.Definitions(h.ctx, machineName)
	h.ok(err)
	m, err := machine.Parse("m.json", texts[0], runner.Checks())
	h.ok(err)
	return m
}

// TestAgainstSlow compares with the slow version: the same rounds flip. Only those
// may differ of which the record lacks somebody.
func TestAgainstSlow(t *testing.T) {
	h := past(t, 600, "margin", "margin-eager")
	for _, name := range []string{"margin", "margin-eager"} {
		for _, f := range []float64{0, .1, .25, .6, .9} {
			r, flips := h.flips(backtest.Config{MachineName: name, Policy: backtest.Policy{Threshold: threshold(t, f)}})
			_, want := h.slow(name, threshold(t, f))
			missing := 0
			for _, id := range want {
				if !slices.ContainsFunc(flips, func(g backtest.Flip) bool { return g.RoundID == id }) {
					missing++
				}
			}
			if len(flips)+missing != len(want) || missing > r.Total.Unknown || r.Total.Flips[0] != len(flips) {
				t.Errorf("%s at %v: %d flips, the slow version has %d, %d of them here unknown; %d rounds are unknown", name, f, len(flips), len(want), missing, r.Total.Unknown)
			}
		}
	}
}

// TestPairs checks that pairs are in order, the best case no worse than the worst,
// and that every round is counted once.
func TestPairs(t *testing.T) {
	h := past(t, 600, "bayes", "margin")
	for _, name := range []string{"bayes", "margin"} {
		for _, f := range []float64{.4, .6, .8, .95} {
			r, _ := h.flips(backtest.Config{MachineName: name, Policy: backtest.Policy{Threshold: threshold(t, f)}})
			n := &r.Total.New
			if n.Automatic[0] < n.Automatic[1] || n.Humans[0] > n.Humans[1] || n.Errors[0] > n.Errors[1] || n.ErrorShare != nil && n.ErrorShare[0] > n.ErrorShare[1] || n.CostUSD[0] > n.CostUSD[1] || r.Total.Flips[0] > r.Total.Flips[1] {
				t.Errorf("%s at %v: %+v", name, f, r.Total)
			}
			if all := n.Automatic[1] + n.Humans[0] + r.Total.Unknown; all > r.Total.Rounds || all < r.Total.Rounds-10 { // ten may be open
				t.Errorf("%s at %v: %d automatic, %d to humans and %d unknown of %d", name, f, n.Automatic[1], n.Humans[0], r.Total.Unknown, r.Total.Rounds)
			}
		}
	}
}

// TestLearnsAfter tries bayes on fewer outcomes than it needs to decide anything:
// it never knows the truth before it is told.
func TestLearnsAfter(t *testing.T) {
	h := past(t, 40, "judge")
	policy := backtest.Policy{Arbiter: tried("bayes"), Threshold: threshold(t, .3)}
	r, flips := h.flips(backtest.Config{MachineName: "judge", Policy: policy})
	if r.Total.Old.Humans >= trust.CalibratedFrom || r.Total.New.Automatic[1] != 0 || len(flips) == 0 {
		t.Errorf("after %d outcomes bayes decides %d rounds alone; %d flips", r.Total.Old.Humans, r.Total.New.Automatic[1], len(flips))
	}
	for _, f := range flips {
		if f.New != backtest.ToHuman {
			t.Errorf("a flip from nothing learned: %+v", f)
		}
	}
	h = past(t, 400, "judge")
	if r, _ = h.flips(backtest.Config{MachineName: "judge", Policy: policy}); r.Total.New.Automatic[1] == 0 {
		t.Errorf("after %d outcomes bayes decides nothing", r.Total.Old.Humans)
	}
}

// TestCustomCode checks that somebody's own arbiter is never run: its verdicts are
// taken as recorded, or the round is unknown.
func TestCustomCode(t *testing.T) {
	h := past(t, 300, "judge")
	calls := h.calls.Load()
	same, flips := h.flips(backtest.Config{MachineName: "judge"})
	if len(flips) > 0 || same.Total.Unknown > 0 || same.Total.New.Automatic[0] != same.Total.Old.Automatic {
		t.Errorf("unchanged: %+v", same.Total)
	}
	without, flips := h.flips(backtest.Config{MachineName: "judge", Policy: backtest.Policy{Drop: []string{"v90-0"}}})
	if len(flips) > 0 || without.Total.Unknown < without.Total.Rounds*9/10 {
		t.Errorf("with fewer votes: %+v", without.Total)
	}
	mine := *tried("")
	mine.StrategyFn = "judge"
	other, _ := h.flips(backtest.Config{MachineName: "judge", Policy: backtest.Policy{Arbiter: &mine}})
	if other.Total.Unknown != other.Total.Rounds {
		t.Errorf("code that never spoke: %+v", other.Total)
	}
	if h.calls.Load() != calls {
		t.Error("somebody was asked")
	}
}

// TestReportBytes checks that the same log and policy give the same report.
func TestReportBytes(t *testing.T) {
	h := past(t, 300, "bayes", "margin-sequential")
	var texts []string
	for range 3 {
		r, flips := h.flips(backtest.Config{Policy: backtest.Policy{Arbiter: tried("bayes"), Risk: &machine.Risk{MaxError: .1, Confidence: .9}}})
		text, err := json.Marshal([]any{r.States, r.Machines, r.Total, flips})
		h.ok(err)
		texts = append(texts, string(text))
		h.restart()
	}
	if texts[0] != texts[1] || texts[1] != texts[2] {
		t.Errorf("the reports differ:\n%s\n%s", texts[0], texts[1])
	}
}

// A damaged source yields a log of its own.
type damaged struct {
	backtest.Source
	log func(yield func(session.LogEntry, error) bool)
}

func (d damaged) Log(context.Context, string, int64) iter.Seq2[session.LogEntry, error] { return d.log }

// TestDamaged checks that a log that makes no sense is an error that names the
// place, and never a panic: every record is cut, and bytes in it changed.
func TestDamaged(t *testing.T) {
	h := past(t, 30, "bayes")
	var entries []session.LogEntry
	for e, err := range h.store.Log(h.ctx, "", 0) {
		h.ok(err)
		e.Events = slices.Clone(e.Events)
		entries = append(entries, e)
	}
	broken := 0
	for i := range entries {
		for _, spoil := range []func(b []byte) []byte{
			func(b []byte) []byte { return b[:len(b)*2/3] },
			func(b []byte) []byte { return nil },
			func(b []byte) []byte { return []byte(strings.Replace(string(b), `"left"`, `"lost"`, 1)) },
			func(b []byte) []byte { return []byte(strings.Replace(string(b), `"order":[1`, `"order":[9`, 1)) },
			func(b []byte) []byte { return []byte(strings.Replace(string(b), `"winner":`, `"winner":7`, 1)) },
			func(b []byte) []byte {
				return []byte(strings.Replace(string(b), `"kind":"session_created"`, `"kind":"other"`, 1))
			},
		} {
			source := damaged{h.store, func(yield func(session.LogEntry, error) bool) {
				for j, e := range entries {
					if j == i {
						e.Events = spoil(slices.Clone(e.Events))
					}
					if !yield(e, nil) {
						return
					}
				}
			}}
			_, err := backtest.Run(h.ctx, backtest.Config{Source: source})
			var corrupt *session.CorruptError
			if err != nil && (!errors.As(err, &corrupt) || !strings.Contains(err.Error(), entries[i].Session.String())) {
				t.Errorf("record %d: %v", i, err)
			}
			if err != nil {
				broken++
			}
		}
	}
	if broken < len(entries) {
		t.Errorf("%d of %d records were found damaged", broken, len(entries))
	}
	cut := fmt.Errorf("the disk is gone")
	_, err := backtest.Run(h.ctx, backtest.Config{Source: damaged{h.store, func(yield func(session.LogEntry, error) bool) { yield(session.LogEntry{}, cut) }}})
	if !errors.Is(err, cut) {
		t.Errorf("the error is %v", err)
	}
	done, cancel := context.WithCancel(h.ctx)
	cancel()
	if _, err := backtest.Run(done, backtest.Config{Source: h.store}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
