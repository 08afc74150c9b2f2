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
		u := a.Remote.Expected()
		if !guardsOwn(a.SpecialistID) { // whose questions may be free
			u = o.called(a.Index, u)
		}
		if u != (specialist.Usage{}) {
			chargeFor(s, o, a.SpecialistID, u, "")
		}
	}
}

// called returns what is charged for what came of an ask. One that left this process
// is a call, whatever is known of its cost, unless it says that nothing was sent. Who
// asks a model says how often it did.
func (o *openRound) called(ask int32, u specialist.Usage) specialist.Usage {
	if u != (specialist.Usage{}) || ask == 0 {
		return u
	}
	if a := o.at(ask); a != nil && a.Remote != nil && a.Source != specialist.Model {
		u.Given = specialist.CostGiven
	}
	return u
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
