package trust

import "github.com/dialai/dialai/exact"

// A Change is a vote that would have made a difference.
type Change struct {
	SpecialistID string           `json:"specialist"`
	Transition   string           `json:"transition,omitempty"` // proposed instead; "" if it had not spoken
	Pick         string           `json:"pick,omitempty"`       // that would have followed,
	P            exact.Billionths `json:"p"`                    // with this probability
	Code         Code             `json:"code"`
}

// WhatIf returns every single vote that would have changed the pick or the code
// of a question's judgement, had it been another or none: by vote, none first,
// then by option.
func (l *Ledger) WhatIf(q Question) []Change {
	was := l.Judge(q)
	votes := q.Votes
	var list []Change
	try := func(i int, transition string, changed []Vote) {
		q.Votes = changed
		j := l.Judge(q)
		if j.Pick == was.Pick && j.Code == was.Code {
			return
		}
		c := Change{SpecialistID: votes[i].SpecialistID, Transition: transition, Pick: j.Pick, Code: j.Code}
		if j.Best >= 0 {
			c.P = j.P[j.Best]
		}
		list = append(list, c)
	}
	for i := range votes {
		try(i, "", append(votes[:i:i], votes[i+1:]...))
		for t, name := range q.Options {
			if t != votes[i].Option {
				other := append([]Vote{}, votes...)
				other[i].Option = t
				try(i, name, other)
			}
		}
	}
	return list
}
