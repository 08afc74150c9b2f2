package trust

import (
	"cmp"
	"slices"

	"github.com/dialai/dialai/exact"
)

// A Correlation says for whose sake a vote is discounted.
type Correlation struct {
	SpecialistID string           `json:"specialist"` // the discounted one
	With         string           `json:"with"`       // one with the same vote that counts before it
	Rho          exact.Billionths `json:"rho"`        // estimated correlation of their errors, above 0
	N            int64            `json:"n"`          // outcomes that both voted in
	SameModel    bool             `json:"sameModel,omitempty"`
	Copy         exact.Billionths `json:"copy,omitempty"` // how far it is a copy: so much of the vote counts with nobody
}

// Correlated returns what the discounts of a judgement of q are made of, by
// specialist: a discount is 1 / (1 + the sum of Rho), less where one is a copy (copies.go).
func (l *Ledger) Correlated(q Question) []Correlation {
	b := l.openIn(l.pools[q.Machine], nil, &q)
	if b.pool == nil {
		return nil
	}
	b.mu = b.mean()
	for i := range b.voters {
		b.weigh(&b.voters[i])
	}
	var list []Correlation
	for i := range b.voters {
		for j := range b.voters {
			v, w := &b.voters[i], &b.voters[j]
			if i == j || v.option != w.option || v.human > 0 || w.human > 0 || !w.before(v) {
				continue
			}
			if rho := billionths(b.pool.pairs.rho(v, w, b.bar)); rho > 0 {
				_, n := b.pool.pairs.common(v, w)
				list = append(list, Correlation{v.id, w.id, rho, int64(n), sameModel(v.model, w.model), billionths(b.copied(v, w))})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Correlation) int {
		return cmp.Or(cmp.Compare(a.SpecialistID, b.SpecialistID), -cmp.Compare(a.Rho, b.Rho))
	})
	return list
}
