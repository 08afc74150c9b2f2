package trust

import (
	"maps"
	"slices"
)

// What was learned is a fold. An outcome (a round that a human decided) adds whole numbers to
// the counters of its machine's pool, of everybody who proposed (units, by specialist,
// version and state) and of the human; estimates are worked out of these when somebody asks.
// A new version of a specialist inherits part of the earlier one's record (inherit).
//
// A store keeps one ledger and gives clones to readers. A clone costs no copy: the parts carry
// their owner, and whoever changes a part that is not its own copies that part first.

// A Ledger is what human decisions have taught: the fold of [Outcome] records in
// the order in which they were made. All its counters are whole numbers, and the
// same outcomes in the same order make the same ledger, so it can be thrown away
// and rebuilt. Nothing but outcomes and the records named by its methods changes
// it, least of all a decision of the engine.
//
// The zero Ledger is not valid; use [New]. A Ledger may be read concurrently as
// long as nobody adds to it; [Ledger.Clone] makes one to add to.
type Ledger struct {
	own     *owner
	units   *units
	humans  *humans
	pools   map[string]*pool // by machine; belongs to poolsOf
	poolsOf *owner
}

// An owner marks the parts of a ledger that it alone may change; others are
// shared with clones and copied before they are changed.
type owner struct{ _ byte }

// New returns an empty ledger.
func New() *Ledger {
	o := new(owner)
	return &Ledger{
		own: o, pools: map[string]*pool{}, poolsOf: o,
		units:  &units{owner: o, index: map[unitKey]int32{}, latest: map[string]int32{}},
		humans: &humans{owner: o, tally: map[string]counts{}, machines: map[string]humanPairs{}},
	}
}

// Clone returns a ledger with the same content. It copies nothing but what one of
// the two changes later, machine by machine: both may be added to. Clone must not
// run while l is added to; it may run while l is read.
func (l *Ledger) Clone() *Ledger {
	c := *l
	l.own, c.own = new(owner), new(owner)
	return &c
}

// Add counts an outcome. It returns an error wrapping [ErrOutcome], and changes
// nothing, if [Outcome.Check] refuses it. Temperatures and weights of the experts
// are fitted again after each of a machine's first ten outcomes, and then
// whenever their number has grown by a fifth; the fit is made when it is needed (fitting.go).
func (l *Ledger) Add(o Outcome) error {
	if err := o.Check(); err != nil {
		return err
	}
	m := l.pool(o.Machine)
	l.ownUnits()
	m.add(l, &o)
	if m.dueForRefit() {
		m.refit(l)
	}
	return nil
}

// Refit fits temperatures and weights of a machine's experts to what is known
// now, whatever the schedule says.
func (l *Ledger) Refit(machine string) {
	if l.pools[machine] == nil {
		return
	}
	l.pool(machine).refit(l)
}

// N returns the number of outcomes of a machine.
func (l *Ledger) N(machine string) int64 {
	if m := l.pools[machine]; m != nil {
		return m.n
	}
	return 0
}

// Machines returns the names of the machines with outcomes, in byte order.
func (l *Ledger) Machines() []string { return slices.Sorted(maps.Keys(l.pools)) }

// pool returns the machine's part of the ledger, fit to be changed.
func (l *Ledger) pool(machine string) *pool {
	if l.poolsOf != l.own {
		l.pools, l.poolsOf = maps.Clone(l.pools), l.own
	}
	m := l.pools[machine]
	switch {
	case m == nil:
		m = newPool(l.own)
	case m.owner != l.own:
		m = m.clone(l.own)
	}
	l.pools[machine] = m
	return m
}

func (l *Ledger) ownUnits() {
	if l.units.owner != l.own {
		l.units = l.units.clone(l.own)
	}
}

// A unitKey names one version of a specialist: what trust belongs to.
type unitKey struct{ id, version string }

// A unit is one version of a specialist, over all machines.
type unit struct {
	unitKey
	model  string
	tally  counts
	prior  counts // from its earlier version; part of no tally
	failed int64
}

// counts are agreements and comparisons. Those of a prior are in thousandths.
type counts struct{ k, n int64 }

// compared counts one comparison, which may have shown agreement.
func compared(agrees bool) counts {
	if agrees {
		return counts{1, 1}
	}
	return counts{0, 1}
}

func (c counts) plus(d counts) counts { return counts{c.k + d.k, c.n + d.n} }

func (c counts) times(n int64) counts { return counts{n * c.k, n * c.n} }

func (c counts) minus(d counts) counts { return counts{c.k - d.k, c.n - d.n} }

// units are the versions of all specialists, in order of their first outcome.
type units struct {
	owner  *owner
	index  map[unitKey]int32
	list   []unit
	latest map[string]int32 // by specialist, the version whose first outcome is the latest
}

func (u *units) clone(o *owner) *units {
	return &units{o, maps.Clone(u.index), slices.Clone(u.list), maps.Clone(u.latest)}
}

// unit returns the index of the proposal's author, who is entered, with the
// prior counts of its earlier version, when it is new.
func (l *Ledger) unit(p *OutcomeProposal) int32 {
	key := unitKey{p.SpecialistID, p.Version}
	if i, known := l.units.index[key]; known {
		if p.Model != "" {
			l.units.list[i].model = p.Model
		}
		return i
	}
	i := int32(len(l.units.list))
	l.units.list = append(l.units.list, unit{unitKey: key, model: p.Model})
	l.units.index[key] = i
	if earlier, any := l.units.latest[p.SpecialistID]; any {
		l.inherit(i, earlier)
	}
	l.units.latest[p.SpecialistID] = i
	return i
}

// What a new version inherits: a fifth of its predecessor's counts, but no more
// than twenty comparisons in all.
const (
	inherited    = .2
	inheritedMax = 20
)

// inheritance returns the share of its counts that a version leaves to the next.
func (u *unit) inheritance() float64 {
	n := float64(u.tally.n) + float64(u.prior.n)/1000
	if n <= 0 {
		return 0
	}
	return min(inherited, inheritedMax/n)
}

// inherit gives a new version the prior counts of the earlier one, state by state.
func (l *Ledger) inherit(heir, earlier int32) {
	share := l.units.list[earlier].inheritance()
	for _, name := range l.Machines() {
		from, known := l.pools[name].members[earlier]
		if !known {
			continue
		}
		m := l.pool(name)
		to := m.member(heir)
		for s := range m.states {
			c := m.states[s].cell(from)
			if c == nil {
				continue
			}
			prior := c.left(share)
			m.ownCell(int32(s), to).prior = prior
			m.list[to].prior = m.list[to].prior.plus(prior)
			l.units.list[heir].prior = l.units.list[heir].prior.plus(prior)
		}
	}
}
