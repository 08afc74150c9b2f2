package trust

import (
	"cmp"
	"slices"
)

// A past is an outcome as the fits need it.
type past struct {
	round   string
	state   int32
	truth   int32   // index into classes
	classes []int32 // by option, the class in the state
	votes   []pastVote
	shadows []shadow
	stands  float64 // how many rounds it stands for where asking fewer is replayed; 0 if it is no fair sample
}

// A pastVote is one live vote of an outcome. Votes are sorted by specialist.
type pastVote struct {
	unit, member int32 // -1 for humans
	option       int32
	order        string
	human        string // "" for others
	cost         int64  // pico-dollars
}

// A shadow is a proposal that counted for its author's trust and was no vote.
type shadow struct {
	member int32
	right  bool
}

// An entry is an outcome that is being counted.
type entry struct {
	*Outcome
	ledger *Ledger
	past   *past
	mu     float64 // mean of the machine before the outcome
	times  int64   // how often it is counted: -1 for one that is taken back
}

// add counts one outcome, which was checked.
func (m *pool) add(l *Ledger, o *Outcome) {
	state := m.ownState(o.State)
	s := m.states[state]
	mu := max(1/float64(len(o.Options))+aboveLuck, m.crowd.mean())
	p := &past{round: o.Round, state: state, truth: int32(slices.Index(o.Options, o.Truth)), classes: s.classesOf(o.Options), stands: o.standsFor()}
	e := entry{o, l, p, mu, 1}
	if len(o.Options) > 1 { // where there is nothing to choose, nothing is learned
		for i := range o.Proposals {
			m.count(&e, &o.Proposals[i])
		}
		m.n++
		s.n++
		s.truths[p.classes[p.truth]]++
		m.remember(l, p)
	}
	m.unruled.drop(o.Round) // a human has spoken
	m.test(o)
}

// standsFor returns the inverse of the probability with which a human came to see
// the round, 0 if it is no fair sample of full panels.
func (o *Outcome) standsFor() float64 {
	if o.Partial || !o.randomSample() {
		return 0
	}
	return 1 / o.samplingProb().Float()
}

// count enters one proposal.
func (m *pool) count(e *entry, q *OutcomeProposal) {
	l, p := e.ledger, e.past
	option := int32(slices.Index(e.Options, q.Transition))
	switch {
	case q.Replaced:
		return
	case q.Human:
		if !q.Failed && q.SpecialistID != e.HumanID { // the ruling is no vote for itself
			p.votes = append(p.votes, pastVote{-1, -1, option, q.OptionOrder, q.SpecialistID, 0})
		}
		return
	}
	u := l.unit(q)
	i := m.member(u)
	c := m.ownCell(p.state, i)
	if q.Failed {
		l.units.list[u].failed += e.times
		m.list[i].failed += e.times
		c.failed += e.times
		return
	}
	one := compared(option == p.truth).times(e.times)
	if e.times > 0 && e.randomSample() {
		m.observe(e, u, c, one)
	}
	l.units.list[u].tally = l.units.list[u].tally.plus(one)
	m.crowd = m.crowd.minus(share(m.list[i].tally))
	m.list[i].tally = m.list[i].tally.plus(one)
	m.crowd = m.crowd.plus(share(m.list[i].tally))
	c.tally = c.tally.plus(one)
	c.widen(int32(len(m.states[p.state].classes)))
	c.conf[p.classes[p.truth]*c.width+p.classes[option]] += int32(e.times)
	if q.Shadow {
		p.shadows = append(p.shadows, shadow{i, option == p.truth})
		return
	}
	p.votes = append(p.votes, pastVote{u, i, option, q.OptionOrder, "", int64(q.Cost)})
}

// remember keeps an outcome for the fits and counts who erred together.
func (m *pool) remember(l *Ledger, p *past) {
	slices.SortFunc(p.votes, func(a, b pastVote) int { return cmp.Compare(a.id(l.units), b.id(l.units)) })
	m.pairs.add(l, m, p, 1)
	m.window = append(m.window, p)
	if len(m.window) > Window {
		m.window = m.window[1:]
	}
}

func (v pastVote) id(u *units) string {
	if v.unit < 0 {
		return v.human
	}
	return u.list[v.unit].id
}
