package trust

import (
	"cmp"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/wire"
)

// How a ledger is written down, so that nobody has to learn a hundred thousand lessons to know
// what the next one adds. Everything that was counted is written, floats by their bits: a ledger
// that is read judges as the one that was written, and learns on as it would have. The same
// lessons make the same bytes, so whoever has the lessons can prove them. What can be made of the
// rest (indexes) is not written.
//
// Outcomes of the window are written once for all ledgers of one Coder: a ledger and what it was
// a while ago have most of them in common.
//
// What is read is checked as far as the ledger's own code relies on it: places lie inside their
// lists, counts are not negative. A Ledger whose bytes were made up is wrong, but does not panic.

// LedgerFormat is the number of the way in which ledgers are written and lessons are learned: it
// rises with every change of either, for then the same lessons make other bytes.
const LedgerFormat = 4

// Code writes l, or fills it in.
func (l *Ledger) Code(c *wire.Coder) {
	if c.Reading() {
		*l = *New()
	}
	l.units.code(c)
	l.humans.code(c)
	wire.TextMap(c, &l.pools, func(m **pool) {
		if c.Reading() {
			*m = newPool(l.own)
		}
		(*m).code(c, len(l.units.list))
	})
}

// Of returns a ledger with what l knows of one machine, of all specialists and of all humans. It
// copies as little as [Ledger.Clone], and must not run while l is added to.
func (l *Ledger) Of(machine string) *Ledger {
	c := l.Clone()
	c.pools, c.poolsOf = map[string]*pool{}, c.own
	if m := l.pools[machine]; m != nil {
		c.pools[machine] = m
	}
	return c
}

func (u *units) code(c *wire.Coder) {
	wire.Slice(c, &u.list, func(v *unit) {
		wire.Text(c, &v.id)
		wire.Text(c, &v.version)
		wire.Text(c, &v.model)
		v.tally.code(c)
		v.prior.code(c)
		count(c, &v.failed)
	})
	if c.Reading() {
		for i := range u.list {
			u.index[u.list[i].unitKey] = int32(i)
		}
		c.Check(len(u.index) == len(u.list), "a version of a specialist stands there twice")
	}
	wire.TextMap(c, &u.latest, func(i *int32) { place(c, i, len(u.list)) })
}

func (h *humans) code(c *wire.Coder) {
	wire.TextMap(c, &h.tally, func(t *counts) { t.code(c) })
	wire.TextMap(c, &h.machines, func(p *humanPairs) {
		count(c, &p.pairs)
		count(c, &p.apart)
		count(c, &p.room)
	})
}

func (m *pool) code(c *wire.Coder, units int) {
	count(c, &m.n)
	wire.Slice(c, &m.list, func(v *member) {
		place(c, &v.unit, units)
		v.tally.code(c)
		v.prior.code(c)
		count(c, &v.failed)
	})
	wire.Slice(c, &m.states, func(s **stateCounts) {
		if c.Reading() {
			*s = &stateCounts{owner: m.owner}
		}
		(*s).code(c, len(m.list))
	})
	if c.Reading() {
		m.enter(c)
	}
	m.pairs.code(c, len(m.list))
	wire.Slice(c, &m.window, func(p **past) {
		wire.Shared(c, p, func(p *past) { p.code(c) })
		c.Check(*p != nil && (*p).within(m, units), "an outcome names what its ledger does not know")
	})
	if c.Reading() {
		var f fit
		f.code(c)
		m.outcomes = fitted(f)
		m.fit = m.outcomes
	} else {
		m.fit.read().code(c)
	}
	wire.TextMap(c, &m.risk, func(e **riskEpoch) { wire.Pointer(c, e, func(e *riskEpoch) { e.code(c) }) })
	wire.TextMap(c, &m.adopted, func(e **riskEpoch) { wire.Pointer(c, e, func(e *riskEpoch) { e.code(c) }) })
}

// enter makes the indexes of a pool that was read.
func (m *pool) enter(c *wire.Coder) {
	for i := range m.list {
		m.members[m.list[i].unit] = int32(i)
		m.crowd = m.crowd.plus(share(m.list[i].tally))
	}
	for i, s := range m.states {
		m.stateOf[s.name] = int32(i)
	}
	c.Check(len(m.members) == len(m.list) && len(m.stateOf) == len(m.states), "a member or a state stands there twice")
}

func (s *stateCounts) code(c *wire.Coder, members int) {
	wire.Text(c, &s.name)
	count(c, &s.n)
	wire.Slice(c, &s.classes, func(name *string) { wire.Text(c, name) })
	wire.Slice(c, &s.truths, func(n *int64) { count(c, n) })
	c.Check(len(s.truths) == len(s.classes), "a transition was not counted")
	wire.Slice(c, &s.cells, func(d **cell) {
		wire.Pointer(c, d, func(d *cell) {
			if c.Reading() {
				d.owner = s.owner
			}
			d.code(c, len(s.classes))
		})
	})
	c.Check(len(s.cells) <= members, "a state knows more than its machine")
	count(c, &s.tested)
}

func (d *cell) code(c *wire.Coder, classes int) {
	d.tally.code(c)
	d.prior.code(c)
	wire.Int(c, &d.width)
	wire.Slice(c, &d.conf, func(n *int32) {
		wire.Int(c, n)
		c.Check(*n >= 0, "a count is negative")
	})
	c.Check(d.width >= 0 && int(d.width) <= classes && len(d.conf) == int(d.width)*int(d.width), "a matrix is not as wide as it says")
	count(c, &d.failed)
	e := &d.evidence
	for _, s := range []*sampled{&e.all, &e.blind} {
		s.tally.code(c)
		wire.Slice(c, &s.byTruth, func(t *counts) { t.code(c) })
		c.Check(len(s.byTruth) <= classes, "evidence names transitions that its state does not know")
	}
	c.Float(&e.a)
	c.Float(&e.b)
	c.Bool(&e.begun)
	count(c, &e.from)
	count(c, &e.to)
}

func (p *past) code(c *wire.Coder) {
	wire.Text(c, &p.round)
	wire.Int(c, &p.state)
	wire.Slice(c, &p.classes, func(i *int32) { wire.Int(c, i) })
	place(c, &p.truth, len(p.classes))
	wire.Slice(c, &p.votes, func(v *pastVote) {
		wire.Int(c, &v.unit)
		wire.Int(c, &v.member)
		place(c, &v.option, len(p.classes))
		wire.Text(c, &v.order)
		wire.Text(c, &v.human)
		wire.Int(c, &v.cost)
	})
	wire.Slice(c, &p.shadows, func(v *shadow) {
		wire.Int(c, &v.member)
		c.Bool(&v.right)
	})
	c.Float(&p.stands)
}

// within reports whether a pool knows all that an outcome names.
func (p *past) within(m *pool, units int) bool {
	if p.state < 0 || int(p.state) >= len(m.states) {
		return false
	}
	classes := int32(len(m.states[p.state].classes))
	return !slices.ContainsFunc(p.classes, func(i int32) bool { return i < 0 || i >= classes }) &&
		!slices.ContainsFunc(p.votes, func(v pastVote) bool {
			return v.unit < -1 || int(v.unit) >= units || v.member < -1 || int(v.member) >= len(m.list) || (v.unit < 0) != (v.member < 0)
		}) && !slices.ContainsFunc(p.shadows, func(v shadow) bool { return v.member < 0 || int(v.member) >= len(m.list) })
}

func (p *pairs) code(c *wire.Coder, members int) {
	wire.Slice(c, &p.of, func(q *pair) {
		q.joint.code(c)
		count(c, &q.apart)
		c.Check(q.apart <= q.n, "a pair differs more often than it voted")
		wire.Int(c, &q.phi)
		if c.Reading() {
			q.evidence = q.evident()
		}
	})
	c.Check(len(p.of) <= members*(members-1)/2, "there are pairs of members that are not known")
	c.Bool(&p.many)
	c.Check(!p.many || len(p.of) == 0, "of many members only groups are kept")
	wire.TextMap(c, &p.groups, func(g *group) { g.code(c) })
	p.others.code(c)
	wire.Int(c, &p.phiSum)
	count(c, &p.phiN)
}

func (j *joint) code(c *wire.Coder) {
	for _, n := range []*int64{&j.n, &j.first, &j.second, &j.both} {
		count(c, n)
	}
}

func (g *group) code(c *wire.Coder) {
	g.joint.code(c)
	count(c, &g.outcomes)
}

func (f *fit) code(c *wire.Coder) {
	wire.Int(c, &f.n)
	for e := range iO { // the others: encode_unruled.go
		c.Float(&f.g[e])
		c.Float(&f.loss[e])
		c.Bool(&f.bySize[e])
	}
	c.Float(&f.panel)
	wire.Pointer(c, &f.stack, func(s *stack) {
		c.Float(&s.g)
		wire.Slice(c, &s.z, c.Float)
		wire.Slice(c, &s.bias, func(list *[]float64) { wire.Slice(c, list, c.Float) })
	})
	wire.Int(c, &f.scored)
}

func (e *riskEpoch) code(c *wire.Coder) {
	e.promise.code(c)
	c.Check(e.promise.Check() == nil, "a promise cannot be tested")
	wire.Text(c, &e.digest)
	count(c, &e.number)
	count(c, &e.eligible)
	for j := range e.reach {
		count(c, &e.reach[j])
	}
	wire.Int(c, &e.start)
	c.Check(e.start >= -1 && e.start <= ladder, "a test begins at no threshold")
	for j := range e.rungs {
		r := &e.rungs[j]
		r.counts.code(c)
		count(c, &r.own)
		c.Float(&r.best)
		c.Float(&r.borne)
	}
	count(c, &e.reached)
	wire.Map(c, &e.audits, cmp.Compare[exact.Billionths], func(p *exact.Billionths, t *counts) {
		wire.Int(c, p)
		t.code(c)
	})
	count(c, &e.overrule)
	for i := range e.detector.M {
		c.Float(&e.detector.M[i])
	}
	count(c, &e.detector.N)
	count(c, &e.detector.Since)
	c.Bool(&e.alarmed)
	count(c, &e.tried)
	count(c, &e.adopted)
	wire.Slice(c, &e.pairs, func(p *Pair) { p.code(c) })
	count(c, &e.frozen.looks)
	c.Check(e.frozen.looks < 48, "a test has looked more often than there are outcomes")
	wire.Int(c, &e.frozen.tau)
}

func (p *Promise) code(c *wire.Coder) {
	wire.Int(c, &p.MaxError)
	wire.Int(c, &p.Confidence)
	c.Bool(&p.PerState)
	wire.Int(c, &p.Scopes)
	c.Bool(&p.ClopperPearson)
}

func (p *Pair) code(c *wire.Coder) {
	wire.Int(c, &p.P)
	c.Bool(&p.Right)
	wire.Slice(c, &p.Stops, func(s *PairAt) {
		wire.Int(c, &s.Tau)
		wire.Int(c, &s.P)
		c.Bool(&s.Right)
	})
}

// Code writes a calibration, or fills it in.
func (k *Calibration) Code(c *wire.Coder) {
	wire.Map(c, &k.cells, func(a, b calibrationCell) int {
		return cmp.Or(cmp.Compare(a.bin, b.bin), cmp.Compare(a.prob, b.prob))
	}, func(cell *calibrationCell, l *looked) {
		place(c, &cell.bin, Bins)
		wire.Int(c, &cell.prob)
		count(c, &l.n)
		count(c, &l.right)
		count(c, &l.stated)
	})
}

// code codes counts: agreements are comparisons, too.
func (t *counts) code(c *wire.Coder) {
	count(c, &t.k)
	count(c, &t.n)
	c.Check(t.k <= t.n, "there are more agreements than comparisons")
}

// mostCount bounds what was counted, so that no sum of products of two counts leaves an int64.
const mostCount = 1 << 62

// count codes what was counted.
func count(c *wire.Coder, n *int64) {
	wire.Int(c, n)
	c.Check(*n >= 0 && *n < mostCount, "a count is negative or beyond all counting")
}

// place codes a place in a list.
func place[T ~int | ~int32](c *wire.Coder, i *T, length int) {
	wire.Int(c, i)
	c.Check(*i >= 0 && int(*i) < length, "a place lies outside its list")
}
