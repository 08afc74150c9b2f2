package backtest

import (
	"cmp"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
)

// What a back-test counts. Each closed round counts on both sides, as it was and as the
// policy would have it: automatic or human, right or wrong where a human's word is
// known, and what its answers cost. A word from an audit counts as one over the
// probability with which the round was drawn, so the error of automatic decisions is
// estimated for all of them.
//
// A round whose outcome under the policy is not known counts as such and on no other
// line of the new side. A round that the policy decides otherwise (a flip) leaves the
// recorded course: later rounds of its session are counted as off the path.

// A tally counts the rounds of one state of a machine.
type tally struct {
	machine, state string
	promise        *trust.Promise // of the newest definition, under the policy
	digest         string         // of that policy
	tau            exact.Billionths
	rounds         int
	unjudged       int // no arbiter was asked
	unknown        int
	unknownJudged  int
	unknownChecked float64 // weight of those of which a human's word is known
	unknownWrong   int     // number of them
	flips, offPath int
	old, new       side
	changed        bool        // something is tried
	open           bool        // of a sum: a part is not established
	costliest      exact.Money // what the missing answers of unknown rounds may cost
}

// tally returns the tally of a state of a machine.
func (f *fold) tally(machineName, state string) *tally {
	for _, t := range f.tallies {
		if t.machine == machineName && t.state == state {
			return t
		}
	}
	t := &tally{machine: machineName, state: state, changed: f.changed}
	f.tallies = append(f.tallies, t)
	return t
}

// sorted returns the tallies that count something, by machine.
func (f *fold) sorted() []*tally {
	list := slices.DeleteFunc(slices.Clone(f.tallies), func(t *tally) bool { return t.rounds == 0 })
	slices.SortStableFunc(list, func(a, b *tally) int { return cmp.Compare(a.machine, b.machine) })
	return list
}

// A side is one of the two policies.
type side struct {
	automatic, humans int
	measured          int     // of humans, of which it is known how long they took
	looked            int64   // that, in milliseconds
	checked, wrong    int     // automatic decisions on which there is a human's word
	weight, error     float64 // the same, each by how probable it was to be looked at
	cost              exact.Money
}

// A fate is what became of a round under one policy.
type fate struct {
	elected   *machine.Transition // nil: nothing
	automatic bool
	human     bool
}

// count counts a closed round; it reports whether the policy flips it.
func (f *fold) count(r *round) bool {
	t := r.part.report
	if q := &r.part.now.Question; q.Policy.Promise != nil && r.part.new.bayes {
		t.promise, t.digest = q.Policy.Promise, q.PolicyDigest
	}
	pt := r.now()
	elected, wasJudged := r.recorded()
	old := fate{elected, r.by == byConsensus || f.heldBack(r, elected), r.by == byHuman || r.by == stillOpen && r.waits}
	now := fate{pt.elected, pt.elected != nil, pt.elected == nil}
	if wasJudged && pt.elected == elected || !f.changed && !wasJudged {
		now = old
	}
	truth, weight := f.truth(r)
	t.rounds++
	f.keep(r, pt, now)
	if !wasJudged {
		t.unjudged++
	}
	if r.offPath {
		t.offPath++
	}
	all := func(string) bool { return true }
	t.old.count(old, truth, weight, r.looked)
	t.old.cost = t.old.cost.Add(r.cost(all))
	t.new.cost = t.new.cost.Add(r.cost(f.pays(r)))
	if pt.unknown {
		t.lack(f.missing(r, pt), wasJudged, truth != "", weight)
		return false
	}
	t.new.count(now, truth, weight, r.looked)
	flipped := wasJudged && pt.elected != elected
	if flipped {
		t.flips++
		f.flip(r, old, now, truth)
	}
	return flipped
}

// pays says whose answers the policy pays for.
func (f *fold) pays(r *round) func(id string) bool {
	return func(id string) bool {
		m := find(&r.part.was, id)
		return m == nil || m.IsHuman || f.Policy.keeps(id)
	}
}

// truth returns what a human said of the round, and one over the probability with
// which a human was asked; "" if nobody was.
func (f *fold) truth(r *round) (string, float64) {
	if len(f.audits) > 0 {
		if a, known := f.audits[r.key.ID()]; known {
			return a.truth, 1 / a.prob
		}
	}
	if r.by == byHuman {
		return r.took.Name, 1
	}
	return "", 0
}

// heldBack reports whether the engine decided the round, but a human had to look
// before it was executed.
func (f *fold) heldBack(r *round, elected *machine.Transition) bool {
	return r.by == byHuman && elected != nil && len(f.audits) > 0 && f.audits[r.key.ID()].automatic
}

// keep remembers how a round was decided until its outcome is learned.
func (f *fold) keep(r *round, pt *point, now fate) {
	if !f.changed || !r.part.new.bayes {
		return
	}
	id := r.key.ID()
	if _, again := f.audits[id]; !again && r.by != byHuman {
		return
	}
	l := learned{part: r.part, automatic: now.automatic}
	if !pt.unknown {
		l.judgement, l.noQuorum = pt.decision.Judgement, !pt.decision.Quorum.Reached()
	}
	f.learned[id] = l
}

// count counts a round at which humans have looked for some milliseconds; 0 is not known.
func (s *side) count(now fate, truth string, weight float64, looked int64) {
	if now.human {
		s.humans++
	}
	if now.human && looked > 0 {
		s.measured, s.looked = s.measured+1, s.looked+looked
	}
	if !now.automatic {
		return
	}
	s.automatic++
	if truth == "" {
		return
	}
	s.checked++
	s.weight += weight
	if now.elected.Name != truth {
		s.wrong++
		s.error += weight
	}
}

// lack counts a round whose decision under the policy is not known.
func (t *tally) lack(missing exact.Money, judged, checked bool, weight float64) {
	t.unknown++
	t.costliest = t.costliest.Add(missing)
	if judged {
		t.unknownJudged++
	}
	if checked {
		t.unknownWrong++
		t.unknownChecked += weight
	}
}

// missing returns what those whom the record lacks are thought to cost.
func (f *fold) missing(r *round, pt *point) (sum exact.Money) {
	for i := range r.part.now.Proposers {
		m := &r.part.now.Proposers[i]
		if !m.Off && !m.IsHuman && !answered(pt.votes, m.SpecialistID) && m.EstimatedCostUSD != nil {
			sum = sum.Add(*m.EstimatedCostUSD)
		}
	}
	return sum
}
