package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What is promised in each state, beside what came of it. Two sources are put side by
// side: the newest definition with the ledger (who can be asked, how many independent
// voters they are worth, which threshold is established), and what decisions and lessons were
// counted to (how much was automatic, what audits and second humans found). Audits are counted
// for the state since ever, a promise's own report for its epoch only.
//
// How often humans looked is counted beside how often they decided: an audit before a
// decision is executed is a decision, an audit afterwards is another look.

// StateMetrics are those of one state: what is promised, how much is decided
// without humans, and what audits found of it, side by side.
type StateMetrics struct {
	State          string  `json:"state"`
	TotalDecisions int     `json:"totalDecisions"`
	HumanDecisions int     `json:"humanDecisions"`
	AIDecisions    int     `json:"aiDecisions"`
	Coverage       float64 `json:"coverage"` // share of AIDecisions
	// Voters are those who can be asked now, humans left out, and NEff how many
	// independent ones they are worth, if all of them proposed the same (a judgement says it
	// of the votes of its round); both 0 where there is no choice.
	Voters int              `json:"voters"`
	NEff   exact.Billionths `json:"nEff"`
	// Promise is the one in force; nil if nothing is promised. Its test may be over
	// other states too.
	Promise   *trust.Promise   `json:"promise,omitempty"`
	RiskState trust.RiskState  `json:"riskState,omitempty"`
	Tau       exact.Billionths `json:"tau,omitempty"`
	Audits    int64            `json:"audits"` // of this state's automatic decisions, ever
	Wrong     int64            `json:"wrong"`
	// Error is the estimated share of automatic decisions that a human would have
	// decided otherwise, and ErrorBound its upper bound at the promise's confidence,
	// or .9. Both are left out without audits.
	Error      *exact.Billionths `json:"error,omitempty"`
	ErrorBound *exact.Billionths `json:"errorBound,omitempty"`
	// Savings are those of asking one after the other, replayed, beside the accuracy
	// lost; nil in other modes, and as long as there is nothing to replay.
	Savings *runner.Saving `json:"savings,omitempty"`
	// Stage is where a state that declares a collapse has come to, and StageSince
	// since when; both are left out elsewhere.
	Stage      trust.Stage      `json:"stage,omitempty"`
	StageSince *specialist.Time `json:"stageSince,omitempty"` // nil at the beginning
}

// usualConfidence is that of a bound where nothing is promised.
const usualConfidence = exact.One / 10 * 9

// decide fills in what the definition, the ledger and the log say about how the
// machine decides.
func (m *Metrics) decide(ctx context.Context, r *runner.Runner, tally *stats.Tally) error {
	d, err := deciding(ctx, r, m.MachineName)
	if errors.Is(err, session.ErrNotFound) {
		return nil // it was never run
	}
	if err != nil {
		return err
	}
	if m.TotalDecisions == 0 && m.Timers == 0 { // an earlier definition may have had the state
		if err := known(d.Machine, machine.StateName(m.State)); err != nil {
			return err
		}
	}
	m.Promises = promises(d)
	m.Promises = slices.DeleteFunc(m.Promises, func(p PromiseStatus) bool { return m.State != "" && !slices.Contains(p.States, m.State) })
	for i := range m.Promises {
		m.Promises[i].count(tally)
	}
	for i := range d.States {
		s := &d.States[i]
		if s.State.Terminal() || len(s.State.Transitions) == 0 || m.State != "" && m.State != s.State.Name {
			continue
		}
		v := stateMetrics(d, s, m.Promises, tally.Of(s.State.Name))
		if saving := s.Saving(); saving.Rounds > 0 && s.State.Solicit.Mode == machine.Sequential {
			v.Savings = &saving
		}
		m.States = append(m.States, v)
	}
	m.signalDecisions(tally.Of(m.State))
	return m.signalRoster(ctx, r)
}

// stateMetrics puts together what is known of one state.
func stateMetrics(d *runner.Deciding, s *runner.StateDeciding, promises []PromiseStatus, sum *stats.State) StateMetrics {
	v := StateMetrics{State: s.State.Name, HumanDecisions: int(sum.Human), AIDecisions: int(sum.Automatic)}
	if len(s.Panel.Options) > 1 && len(s.Panel.Roster) > 0 {
		v.Voters, v.NEff = len(s.Panel.Roster), d.Ledger.Effective(s.Panel)
	}
	if s.State.Collapse != nil {
		c := s.Stage()
		if v.Stage = c.StageOf(); c.Since != 0 {
			v.StageSince = &c.Since
		}
	}
	v.TotalDecisions = v.HumanDecisions + v.AIDecisions
	v.Coverage = ratio(v.AIDecisions, v.TotalDecisions)
	confidence := usualConfidence
	if p := promiseOf(promises, s.State.Name); p != nil {
		v.Promise, v.RiskState, v.Tau, confidence = &p.Promise, p.RiskReport.State, p.Tau, p.Promise.Confidence
	}
	if v.Wrong, v.Audits = sum.Audits.Counts(); v.Audits > 0 {
		share, bound := sum.Audits.Error(confidence)
		v.Error, v.ErrorBound = &share, &bound
	}
	return v
}

func (m *Metrics) add(level, code, format string, args ...any) {
	m.Signals = append(m.Signals, Signal{level, code, fmt.Sprintf(format, args...)})
}

// signalDecisions adds the signals of promises, audits, second humans and
// diversity.
func (m *Metrics) signalDecisions(sum *stats.State) {
	for i := range m.Promises {
		m.signalPromise(&m.Promises[i])
	}
	var wrong, audits int64
	for _, s := range m.States {
		wrong, audits = wrong+s.Wrong, audits+s.Audits
		if s.Voters > 1 && s.NEff.Float() < float64(s.Voters)/2 {
			m.add("warning", "diversity.low", "state %s: %d specialists, effective %.1f", s.State, s.Voters, s.NEff.Float())
		}
	}
	m.signalSavings()
	if wrong > 0 {
		m.add("warning", "audit.disagreed", "%d of %d audits found an automatic decision wrong", wrong, audits)
	}
	if sum.Apart > 0 {
		m.add("info", "human.disagreement", "Two humans disagreed in %d of %d rounds that both decided", sum.Apart, sum.Seconds)
	}
}

// signalSavings says where asking one after the other is not worth it.
func (m *Metrics) signalSavings() {
	for _, s := range m.States {
		v := s.Savings
		if v == nil || v.Note == "" {
			continue
		}
		what := "everyone is asked at once"
		if !v.Everyone {
			what = "but everyone at once would cost more than a human"
		}
		m.add("info", "savings.none", "state %s: %s: %s (replayed on %d rounds: %s)", s.State, v.Note, what, v.Rounds, v.Savings)
	}
}

func (m *Metrics) signalPromise(p *PromiseStatus) {
	where := "the machine"
	if p.Scope != "" {
		where = "state " + p.Scope
	}
	switch p.State {
	case trust.Met:
		m.add("info", "risk.established", "The promise of %s holds from probability %s", where, p.Tau)
	case trust.Lost:
		m.add("warning", "risk.lost", "The promise of %s was lost: audits raised the alarm, and it is tested again", where)
	case trust.Unattainable:
		m.add("warning", "risk.unattainable", "The promise of %s cannot be kept by these specialists", where)
	}
}

// signalRoster adds what happened last to the champion of each place, or to the
// stage of a state.
func (m *Metrics) signalRoster(ctx context.Context, r *runner.Runner) error {
	last := map[string]session.RosterEvent{}
	var places []string
	for e, err := range stageEvents(ctx, r, m.MachineName) {
		if err != nil {
			return err
		}
		if m.State != "" && e.State != "" && e.State != m.State {
			continue
		}
		if _, known := last[e.State]; !known {
			places = append(places, e.State)
		}
		last[e.State] = e
	}
	for _, place := range places {
		m.signalPlace(last[place])
	}
	return nil
}

func (m *Metrics) signalPlace(e session.RosterEvent) {
	where := "of the machine"
	if e.State != "" {
		where = "of state " + e.State
	}
	stage := trust.Stage("")
	if e.Stage != nil {
		stage = e.Stage.StageOf()
	}
	switch {
	case e.Kind == session.KindPromoted || stage == trust.Championed:
		m.add("info", "champion.promoted", "%s is champion %s since %s", e.ID, where, e.At)
	case e.Kind == session.KindDemoted:
		m.add("warning", "champion.demoted", "%s is champion %s no more since %s: %s", e.ID, where, e.At, e.Reason)
	case stage == trust.Demoted:
		m.add("warning", "champion.demoted", "The champion %s decides alone no more since %s: %s", where, e.At, e.Reason)
	default:
		m.add("info", "stage.changed", "The stage %s is %s since %s: %s", where, stage, e.At, e.Reason)
	}
}
