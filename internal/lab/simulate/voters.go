package simulate

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// stream returns a generator of its own for one purpose: what is drawn for one is
// the same whatever was drawn for others.
func stream(seed uint64, purpose string, numbers ...int) *rand.Rand {
	sum := sha256.Sum256(fmt.Append(nil, seed, purpose, numbers))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

// A ballot is what everybody will say in one round, drawn before anyone is asked:
// so it does not depend on who is.
type ballot struct {
	truth int
	votes []int // class by voter; -1 if it fails
}

// A draw is one uniform number and one wrong class.
type draw struct {
	u     float64
	wrong int // which of the classes but the truth
}

func drawFrom(rng *rand.Rand, classes int) draw {
	d := draw{u: rng.Float64()}
	if classes > 1 {
		d.wrong = rng.IntN(classes - 1)
	}
	return d
}

// pick returns the class in which u lies, of probabilities that add up to 1.
func pick(p []float64, u float64) int {
	for i, q := range p {
		if u -= q; u < 0 {
			return i
		}
	}
	return len(p) - 1
}

// draw draws a round in a state: the truth, and what everybody says of it.
func (p *Panel) draw(seed uint64, number int, s *State) ballot {
	rng := stream(seed, "round", number)
	k := len(s.Classes)
	b := ballot{truth: pick(s.Priors, rng.Float64()), votes: make([]int, len(p.Voters))}
	groups := map[string]draw{}
	against := drawFrom(rng, k).wrong // of one mind
	for i := range p.Voters {
		v := &p.Voters[i]
		own := drawFrom(rng, k)
		copies, fails := rng.Float64() < v.Copy, rng.Float64() < v.Failure
		if v.Group != "" {
			if _, known := groups[v.Group]; !known {
				groups[v.Group] = drawFrom(stream(seed, "group "+v.Group, number), k)
			}
			if copies {
				own = groups[v.Group]
			}
		}
		if v.Adversary {
			own.wrong = against
		}
		b.votes[i] = v.say(s, b.truth, own, p.drifted(v.ID, number))
		if fails {
			b.votes[i] = -1
		}
	}
	return b
}

// say returns what a voter proposes.
func (v *Voter) say(s *State, truth int, d draw, drift *Drift) int {
	wrong := d.wrong
	if wrong >= truth {
		wrong++
	}
	if rows := v.Confusion[s.Name]; rows != nil && drift == nil {
		row := s.row(rows, truth)
		if d.u < row[truth] {
			return truth
		}
		u := d.u - row[truth]
		for c, q := range row {
			if c == truth {
				continue
			}
			if u -= q; u < 0 {
				return c
			}
		}
		return truth
	}
	if d.u < v.right(s, drift) || len(s.Classes) < 2 {
		return truth
	}
	return wrong
}

// drifted returns the newest change of a voter as of a round, nil if there is none.
func (p *Panel) drifted(id string, number int) (newest *Drift) {
	for i := range p.Drift {
		if f := &p.Drift[i]; f.Voter == id && f.Round <= number {
			newest = f
		}
	}
	return newest
}

// right returns how often a voter is right in a state.
func (v *Voter) right(s *State, drift *Drift) float64 {
	if rows := v.Confusion[s.Name]; rows != nil && drift == nil {
		right := 0.
		for c, prior := range s.Priors {
			right += prior * s.row(rows, c)[c]
		}
		return right
	}
	p := v.P
	if own, ok := v.ByState[s.Name]; ok {
		p = own
	}
	if drift != nil {
		p = drift.P
	}
	if v.Adversary {
		p = 1 - p
	}
	return p
}

// human returns what a human decides of a round.
func (p *Panel) human(seed uint64, number, look int, truth, classes int) int {
	rng := stream(seed, "human", number, look)
	if classes < 2 || rng.Float64() >= p.Human.Error {
		return truth
	}
	wrong := rng.IntN(classes - 1)
	if wrong >= truth {
		wrong++
	}
	return wrong
}
