package backtest

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// One session as its log goes by: its present round, with the proposals that are live,
// who failed, what was spent, and the points at which the round was decided or could
// have been. A point keeps the votes of that moment with their weights and ranks, since
// later proposals take the place of earlier ones. The round counts by the first point
// at which there was a winner, or else by the last.
//
// A round waits for a human in the same way as in the session: rulings that wait for
// others keep it waiting, whatever else happens.

// A track follows one session through its log.
type track struct {
	id       specialist.SessionID
	machine  string
	scene    *scene
	part     *part
	mode     machine.Mode    // it was started with; "" for the file's
	standIn  bool            // firstProposal stands in where nobody arbitrates
	inherits bool            // it goes on with a round of the session from which it was forked
	offPath  bool            // a round before would have gone another way
	round    *round          // nil between rounds
	names    session.Session // as far as names in events mean what it says: its machine and its state
}

// A round is one attempt at a round, as far as it was recorded.
type round struct {
	key       specialist.RoundKey
	part      *part
	offered   *machine.State // the state with the transitions that conditions have left
	mode      machine.Mode
	proposals []*specialist.Proposal // live ones, by arrival
	failed    []string               // proposers who gave no legal answer
	spent     []spending
	points    []*point
	refused   *machine.Transition // a guard did not let it pass
	waits     bool                // for a human
	rulings   rulings             // that wait for others
	looked    int64               // for how many milliseconds humans looked who ruled, as far as they said
	by        closing
	took      *machine.Transition // executed; nil unless closed by a step
	at        specialist.Time     // of the newest event
	place     int64               // of the record that opened it
	standIn   bool
	offPath   bool
}

// closing says how a round came to its end.
type closing uint8

const (
	stillOpen closing = iota
	byConsensus
	byHuman
	byProgram // executeTransition
	sentBack  // a guard opened a further attempt
)

// spending is what one ask cost.
type spending struct {
	id   string
	cost exact.Money
}

// A point is a moment at which a round was decided, or could have been.
type point struct {
	votes    []arbiter.Vote // in the round's order; weights and ranks of then
	failed   []string
	judged   *session.Judged // nil if no arbiter was asked
	place    int64           // of its record
	decision arbiter.Decision
	decided  bool                // decision and unknown are set
	elected  *machine.Transition // by decision; nil if there is no winner
	lacked   bool                // what was elected needed a payload and had none: nobody stops early then
	unknown  bool                // the record lacks somebody who would have been asked
}

// begin starts a round.
func (t *track) begin(key specialist.RoundKey, p *part, at specialist.Time, place int64) {
	t.part, t.names.State = p, p.state
	mode := t.mode
	if mode == "" {
		mode = p.state.Solicit.Mode
	}
	t.round = &round{key: key, part: p, offered: p.was.State, mode: mode, at: at, place: place, standIn: t.standIn, offPath: t.offPath}
}

// propose adds a proposal; one of the same author gives way.
func (r *round) propose(p *specialist.Proposal) {
	r.proposals = slices.DeleteFunc(r.proposals, func(q *specialist.Proposal) bool { return q.SpecialistID == p.SpecialistID })
	r.proposals = append(r.proposals, p)
	r.wait(false)
}

// rulings are those of a round that wait for others.
type rulings struct {
	by     []string // whose they are
	waited bool     // the round waits for a human without them
}

// wait says whether the round waits for a human. While rulings wait for others it does,
// and only what ends any other reason to wait changes anything.
func (r *round) wait(waits bool) {
	switch {
	case len(r.rulings.by) == 0:
		r.waits = waits
	case !waits:
		r.rulings.waited = false
	}
}

// rule enters that somebody has ruled, or has taken that back.
func (r *round) rule(by string, back bool) {
	if len(r.rulings.by) == 0 {
		r.rulings.waited = r.waits
	}
	r.rulings.by = slices.DeleteFunc(r.rulings.by, func(id string) bool { return id == by })
	if !back {
		r.rulings.by = append(r.rulings.by, by)
	}
	r.waits = len(r.rulings.by) > 0 || r.rulings.waited
}

func (r *round) spend(id string, cost exact.Money) {
	if cost != 0 {
		r.spent = append(r.spent, spending{id, cost})
	}
}

// cost returns what the round cost, of those that are counted.
func (r *round) cost(counts func(id string) bool) (sum exact.Money) {
	for _, s := range r.spent {
		if counts(s.id) {
			sum = sum.Add(s.cost)
		}
	}
	return sum
}

// arrived returns the live proposal of that arrival, or nil.
func (r *round) arrived(arrival int32) *specialist.Proposal {
	for _, p := range r.proposals {
		if p.Arrival == arrival {
			return p
		}
	}
	return nil
}

// point adds a moment at which the proposals, in that order and of that weight,
// were before an arbiter or a human.
func (r *round) point(order []int32, weights []exact.Billionths, place int64) (*point, error) {
	if len(order) != len(weights) {
		return nil, fmt.Errorf("round %s: %d weights for %d proposals", r.key.ID(), len(weights), len(order))
	}
	pt := &point{votes: make([]arbiter.Vote, len(order)), failed: slices.Clip(r.failed), place: place}
	for i, arrival := range order {
		p := r.arrived(arrival)
		if p == nil {
			return nil, fmt.Errorf("round %s: the arbiter saw proposal %d, which is not there", r.key.ID(), arrival)
		}
		pt.votes[i] = arbiter.Vote{Proposal: p, Weight: weights[i], Rank: r.part.rank(p.SpecialistID, p.IsHuman), Version: r.part.version(p.SpecialistID)}
	}
	r.points = append(r.points, pt)
	return pt, nil
}

// deciding returns the point that counts: the first at which there was a winner,
// else the last; nil if there is none.
func (r *round) deciding(won func(*point) bool) *point {
	for _, pt := range r.points {
		if won(pt) {
			return pt
		}
	}
	if len(r.points) == 0 {
		return nil
	}
	return r.points[len(r.points)-1]
}

// recorded returns what the arbiter elected, nil if nothing; judged is false if
// it was never asked.
func (r *round) recorded() (t *machine.Transition, wasJudged bool) {
	pt := r.deciding(func(pt *point) bool { return pt.judged != nil && pt.judged.Decision.Winner >= 0 })
	if pt == nil || pt.judged == nil {
		return nil, false
	}
	if pt.judged.Decision.Winner < 0 {
		return nil, true
	}
	return pt.votes[pt.judged.Decision.Winner].Transition, true
}

// now returns the point that decides under the policy that is tried.
func (r *round) now() *point {
	return r.deciding(func(pt *point) bool { return !pt.unknown && pt.decision.Consensus() })
}
