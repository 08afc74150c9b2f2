package trust

import "slices"

// A human who has made a mistake takes it back. What that ruling has taught then leaves
// what everybody's word counts for: tallies, confusions, who errs together, the outcomes
// to which experts are fitted. It does not leave the tests: those of a promise, of
// promotion and of drift have counted it at its place, and one that may leave out
// afterwards what went against it proves nothing. What a new version has inherited from
// an earlier one stays, too.

// Retract takes back an outcome that was added, as it was added. It returns an error
// wrapping [ErrOutcome], and changes nothing, if [Outcome.Check] refuses it, or if nothing
// like it was ever added.
func (l *Ledger) Retract(o Outcome) error {
	if err := o.Check(); err != nil {
		return err
	}
	if len(o.Options) < 2 {
		return nil // where there was nothing to choose, nothing was learned
	}
	if !l.counted(&o) {
		return badOutcome("round %s is taken back and was never learned", o.Round)
	}
	m := l.pool(o.Machine)
	l.ownUnits()
	m.retract(l, &o)
	m.refit(l)
	return nil
}

// counted reports whether everybody who proposed in an outcome has been counted in its state.
func (l *Ledger) counted(o *Outcome) bool {
	m := l.pools[o.Machine]
	s := m.state(o.State)
	if s == nil || s.n == 0 || s.class(o.Truth) < 0 || s.truths[s.class(o.Truth)] == 0 {
		return false
	}
	for i := range o.Proposals {
		q := &o.Proposals[i]
		if q.Human || q.Replaced {
			continue
		}
		u, known := l.units.index[unitKey{q.SpecialistID, q.Version}]
		if !known {
			return false
		}
		member, known := m.members[u]
		c := s.cell(member)
		if !known || c == nil || q.Failed && c.failed == 0 || !q.Failed && c.at(s.class(o.Truth), s.class(q.Transition)) == 0 {
			return false
		}
	}
	return true
}

func (m *pool) retract(l *Ledger, o *Outcome) {
	state := m.ownState(o.State)
	s := m.states[state]
	p := &past{round: o.Round, state: state, truth: int32(slices.Index(o.Options, o.Truth)), classes: s.classesOf(o.Options)}
	e := entry{o, l, p, 0, -1}
	for i := range o.Proposals {
		m.count(&e, &o.Proposals[i])
	}
	m.n--
	s.n--
	s.truths[p.classes[p.truth]]--
	m.pairs.add(l, m, p, -1)
	m.window = slices.DeleteFunc(m.window, func(q *past) bool { return q.round == o.Round })
}
