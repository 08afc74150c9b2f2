package trust

// Tests are the tests of all promises: the fold of lessons as a [Ledger] has it, and nothing of what
// everybody's word counts for. They say after which lesson a promise stands otherwise than before.
// The zero Tests have learned nothing. They must not be used concurrently.
type Tests struct{ pools map[string]*pool }

// A TestChange says that the test of a promise has come to another state.
type TestChange struct {
	Machine, Scope string // a state, or "" for the machine
	From, To       RiskState
}

// Learn counts a lesson, and returns what it has changed: From and To are equal if nothing. It returns
// an error, and changes nothing, if [Lesson.Check] refuses it.
func (t *Tests) Learn(x Lesson) (c TestChange, err error) {
	if err := x.Check(); err != nil {
		return c, err
	}
	switch o, a := x.Outcome, x.Adoption; {
	case a != nil:
		c = TestChange{Machine: a.Machine, Scope: a.Promise.scope(a.State)}
	case o != nil && o.Promise != nil:
		c = TestChange{Machine: o.Machine, Scope: o.Promise.scope(o.State)}
	default:
		return c, nil
	}
	m := t.pools[c.Machine]
	if m == nil {
		m = &pool{risk: map[string]*riskEpoch{}, adopted: map[string]*riskEpoch{}}
		if t.pools == nil {
			t.pools = map[string]*pool{}
		}
		t.pools[c.Machine] = m
	}
	c.From = m.tested(c.Scope)
	if x.Adoption != nil {
		m.adopt(x.Adoption)
	} else {
		m.test(x.Outcome)
	}
	c.To = m.tested(c.Scope)
	return c, nil
}

// tested returns how the test of a promise stands that is under way.
func (m *pool) tested(scope string) RiskState {
	if e := m.risk[scope]; e != nil {
		return e.state()
	}
	return Collecting
}
