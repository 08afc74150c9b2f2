package trust

import "slices"

// evidence is what a specialist showed in one state, in rounds that are a random
// sample: of which [Ledger.Candidate] makes the tests of promotion.
type evidence struct {
	all, blind sampled
	a, b       float64 // Beta posterior of its trust from other states, before the first outcome here
	begun      bool
	from, to   int64 // Outcome.Seq of the first and the last round
}

// sampled counts agreements, also by what the human chose.
type sampled struct {
	tally   counts
	byTruth []counts // by class
}

func (s sampled) clone() sampled { return sampled{s.tally, slices.Clone(s.byTruth)} }

func (e evidence) clone() evidence {
	e.all, e.blind = e.all.clone(), e.blind.clone()
	return e
}

func (s *sampled) add(one counts, class int32) {
	s.tally = s.tally.plus(one)
	for int(class) >= len(s.byTruth) {
		s.byTruth = append(s.byTruth, counts{})
	}
	s.byTruth[class] = s.byTruth[class].plus(one)
}

// randomSample reports whether the round is one that a human was bound to see:
// while calibrating, after an abstention, or drawn for an audit.
func (o *Outcome) randomSample() bool { return !o.Unasked }

// observe counts a proposal as evidence for promotion. It comes before the outcome
// is counted for trust, so that the stakes depend on earlier ones only.
func (m *pool) observe(o *entry, u int32, c *cell, one counts) {
	e := &c.evidence
	if !e.begun {
		e.begun, e.from = true, o.Seq
		m.states[o.past.state].tested++
		e.a, e.b = m.elsewhere(o.ledger, u, c, o.mu)
	}
	e.to = o.Seq
	class := o.past.classes[o.past.truth]
	e.all.add(one, class)
	if o.Blind {
		e.blind.add(one, class)
	}
}

// elsewhere returns the Beta posterior of a unit's trust without this state.
func (m *pool) elsewhere(l *Ledger, u int32, c *cell, mu float64) (a, b float64) {
	t := &m.list[m.members[u]]
	other := t.tally.minus(c.tally)
	rest := l.units.list[u].tally.minus(t.tally)
	global := (float64(rest.k) + float64(pull4*mu)) / (float64(rest.n) + pull4)
	return float64(other.k) + float64(pull4*global), float64(other.n-other.k) + float64(pull4*(1-global))
}
