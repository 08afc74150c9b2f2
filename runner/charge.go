package runner

import (
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// chargeOpen charges the asks that are still out when their round, in state st, is
// over: a late answer corrects that.
func chargeOpen(s *Session, o *openRound, st *machine.State) {
	for i := range o.asks {
		a := &o.asks[i]
		if a.status != askOpen {
			continue
		}
		a.status = askCancelled
		if c := s.Program.Guards(st); !guardsOwn(a.SpecialistID) || c != nil && c.DebitsProbes() {
			a.chargeOut(s, o)
		}
	}
}

// chargeOut charges an ask that nobody waits for any more: as estimated, and if
// there is no estimate as a call, for it was sent.
func (a *askState) chargeOut(s *Session, o *openRound) {
	if a.Remote == nil {
		return
	}
	if a.charged = a.Remote.Expected(); a.charged == (specialist.Usage{}) {
		a.charged.Given = specialist.CostGiven
	}
	chargeFor(s, o, a.SpecialistID, a.charged, "")
}

// chargeAnswered charges an ask that was answered by a proposal from outside. Where
// somebody waits for another answer to it, that will say what it cost; else the
// proposal has.
func (a *askState) chargeAnswered(s *Session, o *openRound, d *Proposed) {
	switch {
	case a.Remote == nil || a.Index == d.Ask:
	case !a.Remote.Accepted:
		a.chargeOut(s, o)
	case d.Usage == specialist.Usage{}:
		charge(s, o, o.called(a.Index, d.Usage), "")
	}
}

// uncorrected returns what a failed ask was charged that nobody knows the cost of.
// An answer may still come, for another process may be waiting for it.
func uncorrected(d *AskFailed, charged specialist.Usage) (u specialist.Usage) {
	if (d.Code == CodeCancelled || d.Code == CodeTimeout) && (d.Usage == specialist.Usage{} || d.Usage.Estimated) {
		return charged
	}
	return u
}

// correct notes in an answer that comes when nobody waits for it what the session
// was charged for it before, as far as the answer knows better.
func (d *Discarded) correct(charged specialist.Usage) {
	u := d.Usage
	if u.Has(specialist.CostGiven) || u.Made() == 0 {
		d.Charged, d.ChargedIn, d.ChargedOut = charged.CostUSD, charged.NumInputTokens, charged.NumOutputTokens
		return
	}
	if u.Has(specialist.InputGiven) {
		d.ChargedIn = charged.NumInputTokens
	}
	if u.Has(specialist.OutputGiven) {
		d.ChargedOut = charged.NumOutputTokens
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
			a.chargeOut(s, o)
		}
	}
}
