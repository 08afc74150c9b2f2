package trust

import (
	"math"

	"github.com/dialai/dialai/exact"
)

// The levels of the hierarchy of trust, nearest first.
const (
	LevelState   = "state"
	LevelMachine = "machine" // other states of the machine
	LevelGlobal  = "global"  // other machines
	LevelPrior   = "prior"   // nothing known but the mean of the machine
	LevelHuman   = "human"
)

var levelNames = [3]string{LevelState, LevelMachine, LevelGlobal}

// report fills in why: votes, prior and the number of effective voters.
func (b *ballot) report(l *Ledger, j *Judgement, q *Question) {
	if b.k < 1 {
		return
	}
	j.Prior = allBillionths(b.prior)
	j.NEff = b.effective()
	j.Votes = make([]VoteShare, len(b.voters))
	for i := range b.voters {
		j.Votes[i] = b.voters[i].share(l, q)
	}
}

// Word returns what the first vote of a question counts for by itself, as [Ledger.Judge] would
// say of it without the others. There has to be one, and an option that it names.
func (l *Ledger) Word(q Question) VoteShare {
	q.Votes = q.Votes[:1]
	b := l.openIn(l.pools[q.Machine], nil, &q)
	b.score()
	return b.voters[0].share(l, &q)
}

func (v *voter) share(l *Ledger, q *Question) VoteShare {
	s := VoteShare{
		SpecialistID: v.id, Transition: q.Options[v.option], Human: v.human > 0,
		Trust: billionths(v.p4), Weight: exact.Billionths(math.Round(v.w4 * 1e9)), Discount: billionths(v.d), Level: LevelPrior,
	}
	if s.Human {
		s.Level = LevelHuman
		s.K, s.N = l.Human(v.id)
		return s
	}
	for i, c := range v.levels {
		if c.n == 0 {
			continue
		}
		s.Pooled = append(s.Pooled, LevelCount{levelNames[i], exact.Billionths(c.k * 1_000_000), exact.Billionths(c.n * 1_000_000)})
		if len(s.Pooled) == 1 {
			s.Level, s.K, s.N = levelNames[i], c.k/1000, c.n/1000
		}
	}
	return s
}

// Correlations assumed for the number of effective voters.
const (
	likeSameSame  = .66 // same model, same option order
	likeSame      = .18 // same model
	likeOrder     = .33 // same option order
	likeNothing   = .11
	likeHuman     = .13
	nobodyMatters = 1e-9
)

// effective returns how many independent voters the votes are worth:
// (sum u)^2 / sum u_i u_j r_ij.
func (b *ballot) effective() exact.Billionths {
	sum, cross := 0., 0.
	for i := range b.voters {
		v := &b.voters[i]
		u := math.Abs(v.w4)
		sum += u
		cross += float64(u * u)
		for k := range i {
			w := &b.voters[k]
			cross += 2 * float64(float64(u*math.Abs(w.w4))*b.likeness(v, w))
		}
	}
	if cross < nobodyMatters {
		return 0
	}
	return exact.Billionths(math.Round(float64(sum*sum) / cross * 1e9))
}

// likeness returns the correlation of two voters' errors, in 0..1.
func (b *ballot) likeness(v, w *voter) float64 {
	prior := likeNothing
	switch same, order := sameModel(v.model, w.model), v.order == w.order; {
	case v.human > 0 || w.human > 0:
		prior = likeHuman
	case same && order:
		prior = likeSameSame
	case same:
		prior = likeSame
	case order:
		prior = likeOrder
	}
	phi, n := 0., 0.
	if b.pool != nil {
		phi, n = b.pool.pairs.common(v, w)
	}
	return min(1, max(0, (float64(n*phi)+float64(pairPrior*prior))/(n+pairPrior)))
}
