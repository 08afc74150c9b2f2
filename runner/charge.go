package runner

import (
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// chargeOpen charges the asks that are still out when their round is over, at
// their estimates: a late answer corrects that.
func chargeOpen(s *Session, o *openRound) {
	for i := range o.asks {
		a := &o.asks[i]
		if a.status != askOpen {
			continue
		}
		a.status = askCancelled
		if u := a.Remote.Expected(); u != (specialist.Usage{}) {
			chargeFor(s, o, a.SpecialistID, u, "")
		}
	}
}

// chargeLost charges what a lost process had asked, at its estimate, before it is
// asked again.
func chargeLost(s *Session, o *openRound, again *Ask) {
	if again.Remote == nil || !again.Remote.Lost {
		return
	}
	if a := o.at(again.Index); a != nil && a.status == askOpen {
		chargeFor(s, o, a.SpecialistID, a.Remote.Expected(), "")
	}
}

func charge(s *Session, o *openRound, u specialist.Usage, model string) {
	chargeFor(s, o, "", u, model)
}

// chargeFor charges an answer of somebody, or of the guards' own questions.
func chargeFor(s *Session, o *openRound, id string, u specialist.Usage, model string) {
	if u == (specialist.Usage{}) && model == "" {
		return // nothing was said of any cost
	}
	next := guard.State{}
	if s.guard != nil {
		next = *s.guard
	}
	if guardsOwn(id) {
		next = next.ChargeProbe(u, model)
	} else {
		next = next.Charge(u, model)
	}
	s.guard = &next
	o.cost = o.cost.Add(u.CostUSD)
}

// chargeArbiter charges an arbiter's ask that is still out when the proposals
// change: nobody waits for its answer any more.
func (o *openRound) chargeArbiter(s *Session) {
	for i := range o.asks {
		if a := &o.asks[i]; a.status == askOpen && a.Role == machine.Arbiter {
			if u := a.Remote.Expected(); u != (specialist.Usage{}) {
				charge(s, o, u, "")
			}
		}
	}
}
