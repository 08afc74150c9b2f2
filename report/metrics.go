package report

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/stats"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// How far a machine does without humans, from its decisions. What they come to is
// counted once, as they come (internal/stats): who decided, by which margin, what was asked and
// what it cost, who proposed what was executed. To that come the alignments of now, what
// definition and ledger say of promises and stages (metrics_states.go), and
// signals, which name what is worth knowing: no alignment yet, a lone specialist,
// margins close to the threshold, a plateau.
//
// Nothing here decides anything. "Recent" are the last ten decisions, or as many as the store still has: archived ones are not among them. How long a human
// looked at a question is known where the ruling says so; where it does not, minutes are an
// assumption that the reader can change (Assume).

// Metrics say how far a machine, or one of its states, can do without humans:
// DIAL's getCollapseMetrics.
type Metrics struct {
	MachineName            string                      `json:"machineName"`
	State                  string                      `json:"state,omitempty"`
	TotalDecisions         int                         `json:"totalDecisions"`
	HumanDecisions         int                         `json:"humanDecisions"`
	AIDecisions            int                         `json:"aiDecisions"`
	Timers                 int                         `json:"timers,omitempty"`   // transitions that timers executed, which are nobody's decisions
	NoQuorum               int                         `json:"noQuorum,omitempty"` // of HumanDecisions, where too few had answered, or somebody who is required had not
	CollapseRatio          float64                     `json:"collapseRatio"`
	RecentCollapseRatio    float64                     `json:"recentCollapseRatio"`
	RecentDecisions        int                         `json:"recentDecisions"` // of which that is: at most ten, fewer where fewer are in the store
	AverageConsensusMargin float64                     `json:"averageConsensusMargin"`
	AlignmentScores        map[string]exact.Billionths `json:"alignmentScores"`
	Specialists            []SpecialistMetrics         `json:"specialists"`
	Signals                []Signal                    `json:"signals"`
	// HumanLooks is how often humans looked at rounds beside deciding them: audits of
	// closed rounds, second humans, and third ones. HumanMinutes is what decisions and
	// looks took: of HumanMeasured of them it was recorded, and the others are taken to
	// have taken some minutes each: see [Metrics.Assume].
	HumanLooks    int     `json:"humanLooks,omitempty"`
	HumanMinutes  float64 `json:"humanMinutes,omitempty"`
	HumanMeasured int     `json:"humanMeasured,omitempty"`
	// AskedPerRound is how many proposers were asked for each decision on average,
	// CostPerDecision what their answers and the arbiter's cost.
	AskedPerRound   float64         `json:"askedPerRound,omitempty"`
	CostPerDecision exact.Money     `json:"costPerDecisionUSD,omitempty"`
	Promises        []PromiseStatus `json:"promises,omitempty"`
	States          []StateMetrics  `json:"states,omitempty"` // those that are left by decisions, in definition order

	looks  int   // of which it was recorded how long they took
	looked int64 // the milliseconds that they took
}

// SpecialistMetrics are those of one proposer.
type SpecialistMetrics struct {
	SpecialistID     string           `json:"specialistId"`
	Alignment        exact.Billionths `json:"alignment"`
	TotalProposals   int              `json:"totalProposals"`
	WinningProposals int              `json:"winningProposals"` // the same transition was executed
	WinRate          float64          `json:"winRate"`
}

// A Signal is something worth knowing about a machine.
type Signal struct {
	Level   string `json:"level"` // action, warning, info
	Code    string `json:"code"`
	Message string `json:"message"`
}

// recent is how many decisions "recent" means.
const recent = 10

// MetricsOf computes the metrics of a machine; of one of its states if state is
// not "". It returns ErrNotFound for a state that the newest definition lacks and in
// which nothing was decided.
func MetricsOf(ctx context.Context, r *runner.Runner, machineName string, state machine.StateName) (*Metrics, error) {
	tally, err := r.Tally(ctx, machineName)
	if err != nil {
		return nil, err
	}
	last, err := newest(ctx, r, machineName, state)
	if err != nil {
		return nil, err
	}
	book, err := r.Store().Book(ctx, machineName)
	if err != nil {
		return nil, err
	}
	sum := tally.Of(string(state))
	m := &Metrics{MachineName: machineName, State: string(state), TotalDecisions: int(sum.Human + sum.Automatic), Timers: int(sum.Timers),
		AlignmentScores: map[string]exact.Billionths{}, Specialists: []SpecialistMetrics{}, Signals: []Signal{}}
	compared := false
	for _, rec := range book.Records(machineName) {
		if state != "" && rec.State != string(state) && rec.State != "" {
			continue
		}
		compared = compared || rec.TotalComparisons > 0
		m.AlignmentScores[rec.SpecialistID] = max(m.AlignmentScores[rec.SpecialistID], rec.AlignmentScore)
	}
	m.count(sum)
	m.RecentDecisions = len(last)
	m.RecentCollapseRatio = ratio(len(last)-humans(last), len(last))
	err = m.decide(ctx, r, tally)
	found := m.Signals
	m.Signals = []Signal{}
	m.signal(last, compared)
	m.Signals = append(m.Signals, found...)
	m.Assume(DefaultHumanMinutes)
	return m, err
}

// newest returns the newest decisions, the oldest first: what a timer executed is nobody's.
func newest(ctx context.Context, r *runner.Runner, machineName string, state machine.StateName) (last []*session.DecisionRecord, err error) {
	for d, err := range r.NewestDecisions(ctx, machineName, state) {
		if err != nil {
			return nil, err
		}
		if d.Timed() {
			continue
		}
		if last = append(last, d); len(last) == recent {
			break
		}
	}
	slices.Reverse(last)
	return last, nil
}

// DefaultHumanMinutes is how long a human decision is thought to take of which it is not
// recorded.
const DefaultHumanMinutes = 2

// Assume sets HumanMinutes and HumanMeasured, given how many minutes a decision takes of which
// it is not recorded.
func (m *Metrics) Assume(minutes float64) {
	all := m.HumanDecisions + m.HumanLooks
	m.HumanMeasured = min(m.looks, all)
	m.HumanMinutes = math.Round(10*(minutes*float64(all-m.HumanMeasured)+float64(m.looked)/60_000)) / 10
}

func (m *Metrics) count(sum *stats.State) {
	m.HumanDecisions, m.AIDecisions, m.NoQuorum = int(sum.Human), int(sum.Automatic), int(sum.NoQuorum)
	m.looks, m.looked, m.HumanLooks = int(sum.Looks), sum.Looked, int(sum.Beside)
	m.CollapseRatio = ratio(m.AIDecisions, m.TotalDecisions)
	if m.AskedPerRound = ratio(int(sum.Asked), m.TotalDecisions); m.TotalDecisions > 0 {
		m.CostPerDecision = sum.Cost / exact.Money(m.TotalDecisions)
	}
	if sum.Measured > 0 {
		m.AverageConsensusMargin = math.Round(float64(sum.Margins)/float64(sum.Measured)) / 1e9
	}
	for _, id := range sum.Voters() {
		v := sum.Votes[id]
		s := SpecialistMetrics{id, m.AlignmentScores[id], int(v.Total), int(v.Won), ratio(int(v.Won), int(v.Total))}
		if v.Human {
			s.Alignment = exact.One
		}
		m.Specialists = append(m.Specialists, s)
	}
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(float64(part)/float64(whole)*1e9) / 1e9
}

func humans(decisions []*session.DecisionRecord) (n int) {
	for _, d := range decisions {
		if d.IsHuman {
			n++
		}
	}
	return n
}

func (m *Metrics) signal(last []*session.DecisionRecord, compared bool) {
	if !compared {
		m.add("action", "COLD_START", "No alignment data available — human must decide all transitions")
	}
	if len(m.Specialists) == 1 {
		m.add("warning", "SINGLE_SPECIALIST", "Only 1 proposer registered — add more for meaningful consensus")
	}
	var best exact.Billionths
	for _, s := range m.AlignmentScores {
		best = max(best, s)
	}
	if best > 0 && best < exact.One/2 {
		m.add("warning", "LOW_ALIGNMENT", "Best specialist alignment is %.3f — below 0.5", best.Float())
	}
	if thin, measured := thinMargins(last); thin*2 > measured {
		m.add("warning", "THIN_MARGIN", "%d/%d recent AI decisions have margins within 0.1 of threshold", thin, measured)
	}
	if len(last) == recent && humans(last) == 0 && slices.ContainsFunc(m.States, func(s StateMetrics) bool { return s.Stage != "" }) {
		m.add("info", "FULL_COLLAPSE", "Last 10 decisions were all AI — full progressive collapse achieved")
	}
	if len(last) == recent && constant(last) {
		m.add("info", "ALIGNMENT_PLATEAU", "Alignment scores unchanged over last 10 decisions")
	}
}

// thinMargins counts the AI decisions whose margin was barely enough. Where arrival
// or a probability decided, no margin had to be.
func thinMargins(decisions []*session.DecisionRecord) (thin, measured int) {
	for _, d := range decisions {
		if d.IsHuman || d.ConsensusMargin == nil || d.Strategy == machine.FirstProposal || d.Strategy == machine.Bayes {
			continue
		}
		measured++
		if *d.ConsensusMargin < d.Threshold.Weight+exact.One/10 {
			thin++
		}
	}
	return thin, measured
}

// constant reports whether all snapshots are the same and not empty.
func constant(decisions []*session.DecisionRecord) bool {
	return !slices.ContainsFunc(decisions, func(d *session.DecisionRecord) bool {
		return len(d.AlignmentSnapshot) == 0 || !maps.Equal(d.AlignmentSnapshot, decisions[0].AlignmentSnapshot)
	})
}
