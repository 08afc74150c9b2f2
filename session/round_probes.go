package session

import (
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The ids under which the guards' own asks are in the log. No specialist can
// have them.
const (
	TruthID      = "__truth"
	ClassifierID = "__classifier"
)

// GuardRole is the role of the guards' own asks. No specialist has it.
const GuardRole machine.Role = "guard"

// guardsOwn reports whether an ask of this id is one of the guards' own.
func guardsOwn(id string) bool { return id == TruthID || id == ClassifierID }

// OfGuards reports whether it is a question that guards ask themselves, and not
// one to a specialist.
func (a Ask) OfGuards() bool { return a.Role == GuardRole }

// Lost reports whether a question of the guards was asked in the round by a process
// that has not said what came of it.
func (o *OpenRound) Lost(guard string) bool {
	return slices.ContainsFunc(o.Asks, func(a AskState) bool {
		return a.Role == GuardRole && a.SpecialistID == guard && (a.Status.Pending() || a.Status == AskStatusLost)
	})
}

// Measured returns the record of a measurement, or nil.
func (o *OpenRound) Measured(stage string, value float64) *Probed {
	for _, p := range o.Probes {
		if p.Guard == TruthID && p.Stage == stage && p.Value != nil && *p.Value == value {
			return p
		}
	}
	return nil
}

// Known returns the answer to a question of the guards' own that the round has
// already, or nil.
func (o *OpenRound) Known(guard, digest string) *Probed {
	for _, p := range o.Probes {
		if p.Guard == guard && p.Question == digest && p.Code == "" {
			return p
		}
	}
	return nil
}

// Expected returns what an ask is expected to cost, and is charged if nobody ever
// says; the zero Usage if nothing is known. r may be nil.
func (r *RemoteAsk) Expected() specialist.Usage {
	if r == nil || r.Estimate == 0 && r.TokensIn == 0 && r.TokensOut == 0 {
		return specialist.Usage{}
	}
	u := specialist.Usage{NumInputTokens: r.TokensIn, NumOutputTokens: r.TokensOut, Estimated: true}
	if r.Estimate != 0 {
		u = u.WithCost(r.Estimate)
	}
	if r.TokensIn != 0 || r.TokensOut != 0 {
		u.Given |= specialist.InputGiven | specialist.OutputGiven
	}
	return u
}
