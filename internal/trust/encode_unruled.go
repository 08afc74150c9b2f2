package trust

import (
	"cmp"
	"slices"

	"github.com/dialai/dialai/internal/wire"
)

// Rounds without a human's word are written apart from all else: a ledger that knows none is
// written as ledgers were before there were any.

// HasUnruled reports whether l has anything that [Ledger.CodeUnruled] writes.
func (l *Ledger) HasUnruled() bool {
	for _, m := range l.pools {
		if m.unruled.seen > 0 {
			return true
		}
	}
	return false
}

// CodeUnruled writes what l knows of rounds without a human's word, or fills it in. The rest, by
// [Ledger.Code], comes before it.
func (l *Ledger) CodeUnruled(c *wire.Coder) {
	names := make([]string, 0, len(l.pools))
	for name, m := range l.pools {
		if m.unruled.seen > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	before := ""
	wire.Slice(c, &names, func(name *string) {
		wire.Text(c, name)
		m := l.pools[*name]
		c.Check(m != nil && before < *name, "rounds without a human's word are of no machine")
		if before = *name; c.Err() == nil {
			m.codeUnruled(c)
		}
	})
}

func (m *pool) codeUnruled(c *wire.Coder) {
	count(c, &m.unruled.seen)
	wire.Slice(c, &m.unruled.rounds, func(r **unruledRound) {
		wire.Shared(c, r, func(r *unruledRound) { r.code(c) })
		c.Check(*r != nil, "there is no round")
	})
	c.Check(m.unruled.seen > 0 && int64(len(m.unruled.rounds)) <= min(m.unruled.seen, UnruledWindow), "there are more rounds than ever")
	f := *m.fit.read()
	wire.Pointer(c, &f.unruled, func(u *unruledFit) { u.code(c) })
	for e := iO; e < experts; e++ {
		c.Float(&f.g[e])
		c.Float(&f.loss[e])
		c.Bool(&f.bySize[e])
	}
	if c.Reading() {
		m.fit = fitted(f)
	}
}

func (r *unruledRound) code(c *wire.Coder) {
	wire.Text(c, &r.round)
	wire.Text(c, &r.state)
	wire.Slice(c, &r.options, func(name *string) { wire.Text(c, name) })
	wire.Slice(c, &r.votes, func(v *Vote) {
		wire.Text(c, &v.SpecialistID)
		wire.Text(c, &v.Version)
		wire.Text(c, &v.Model)
		wire.Text(c, &v.OptionOrder)
		place(c, &v.Option, len(r.options))
	})
	c.Check(len(r.options) > 1, "a round has nothing to choose")
}

func (u *unruledFit) code(c *wire.Coder) {
	count(c, &u.seen)
	wire.TextMap(c, &u.states, func(s **softState) {
		if c.Reading() {
			*s = &softState{}
		}
		wire.Slice(c, &(*s).classes, func(name *string) { wire.Text(c, name) })
		wire.Slice(c, &(*s).truths, c.Float)
		c.Check(len((*s).truths) == len((*s).classes), "an option is not expected")
	})
	wire.Map(c, &u.voters, func(a, b unitKey) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.version, b.version))
	}, func(key *unitKey, v **softVoter) {
		wire.Text(c, &key.id)
		wire.Text(c, &key.version)
		if c.Reading() {
			*v = &softVoter{}
		}
		c.Float(&(*v).k)
		c.Float(&(*v).n)
		wire.Map(c, &(*v).cells, cmp.Compare[string], func(state *string, cell *[]float64) {
			wire.Text(c, state)
			wire.Slice(c, cell, c.Float)
			s := u.states[*state]
			c.Check(s != nil && len(*cell) == len(s.classes)*len(s.classes), "a matrix is of no state")
		})
	})
}
