package trust

import (
	"cmp"
	"slices"

	"github.com/dialai/dialai/exact"
)

// An Origin is one record that a specialist's trust is pooled from: what is known
// of it in one state of one machine.
type Origin struct {
	Machine string           `json:"machine"`
	State   string           `json:"state"`
	K       exact.Billionths `json:"k"` // agreements; fractions are what a version has of its predecessor
	N       exact.Billionths `json:"n"` // comparisons, above 0
}

// Origins returns the records of a version of a specialist, or what one that was
// never seen has of its predecessor: by machine, then by state, in byte order.
func (l *Ledger) Origins(specialistID, version string) []Origin {
	u, known := l.units.index[unitKey{specialistID, version}]
	counted := (*cell).counted
	if !known {
		if u, known = l.units.latest[specialistID]; !known {
			return nil
		}
		share := l.units.list[u].inheritance()
		counted = func(c *cell) counts { return c.left(share) }
	}
	var list []Origin
	for _, machine := range l.Machines() {
		list = append(list, l.pools[machine].origins(machine, u, counted)...)
	}
	return list
}

func (m *pool) origins(machine string, u int32, counted func(*cell) counts) (list []Origin) {
	i, known := m.members[u]
	if !known {
		return nil
	}
	for _, s := range m.states {
		if c := s.cell(i); c != nil {
			if n := counted(c); n.n > 0 {
				list = append(list, Origin{machine, s.name, exact.Billionths(n.k * 1_000_000), exact.Billionths(n.n * 1_000_000)})
			}
		}
	}
	slices.SortFunc(list, func(a, b Origin) int { return cmp.Compare(a.State, b.State) })
	return list
}

// counted returns what is known of a member in a state, in thousandths.
func (c *cell) counted() counts {
	return c.tally.inThousandths().plus(c.prior)
}
