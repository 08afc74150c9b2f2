package session

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/specialist"
)

// Rulings that wait for others.
//
// Where a definition has another human decide before anything is executed, the first
// ruling of a round draws whether that one is asked. If so, the ruling is recorded
// (Ruled) and stays in the open round until others have ruled without having seen it:
// two that are equal are executed. What the rulings of a round come to is worked out
// here, from them, from who may still rule and from how many have not ruled yet.
//
// Where a transition takes the approvals of several humans, a ruling that does not complete
// them is recorded in the same way, but nobody's is kept from anybody: each may be replaced
// and taken back until they are complete (approvals.go).
//
// While one is pending, the session waits for a human, whatever else happens in it:
// the fold keeps what the session would be without them beside them (under), so that
// no proposal, no resume and no verdict can move it, and taking the last one back
// leaves it where it stood.

// PendingRulings are the rulings of an open round. They never change: every event
// makes new ones.
type PendingRulings struct {
	List      []*Ruled // the newest of each human, by when they first ruled
	Draws     *Draws   // why others are asked; it stays drawn if all are taken back
	contested bool     // everybody has been shown everything
	First     []*Ruled // the first two, as they were given without sight of each other
	waits     *Outcome // what the session waits for because of them
	under     standingStatus
}

// A standingStatus is what a session is, and why.
type standingStatus struct {
	status  Status
	outcome *Outcome
}

// RulingsPending refuses to execute what nobody chose who has ruled.
const RulingsPending = "A human's ruling waits for another's: nothing else is executed in this round"

// Pending reports whether a ruling of the round waits for others.
func (o *OpenRound) Pending() bool { return o.Rulings != nil && len(o.Rulings.List) > 0 }

// By returns the ruling of a human, or nil.
func (p *PendingRulings) By(id string) *Ruled {
	if i := p.Index(id); i >= 0 {
		return p.List[i]
	}
	return nil
}

// Index returns the place of a human's ruling, -1 if there is none.
func (p *PendingRulings) Index(id string) int {
	if p == nil {
		return -1
	}
	return slices.IndexFunc(p.List, func(r *Ruled) bool { return r.SpecialistID == id })
}

// With returns the rulings after another event.
func (p *PendingRulings) With(d *Ruled) *PendingRulings {
	next := &PendingRulings{}
	if p != nil {
		*next = *p
	}
	next.List = slices.Clone(next.List)
	switch i := p.Index(d.SpecialistID); {
	case i >= 0 && d.Transition == nil:
		next.List = slices.Delete(next.List, i, i+1)
	case i >= 0:
		next.List[i] = d
	case d.Transition != nil:
		next.List = append(next.List, d)
	}
	if d.Draws != nil {
		next.Draws = d.Draws
	}
	if next.Conceals() && len(next.List) <= 2 {
		next.First = next.List
	}
	return next
}

// Settled reports whether a human's ruling can be neither replaced nor taken back:
// another's is there, and not everything has been shown.
func (p *PendingRulings) Settled(id string) bool {
	return p.Index(id) >= 0 && len(p.List) > 1 && p.Conceals()
}

// SamePerson returns the ruling that the person who acts has given under another id; nil
// if there is none, or nobody can tell.
func (p *PendingRulings) SamePerson(id string, by *Actor) *Ruled {
	if p == nil {
		return nil
	}
	for _, r := range p.List {
		if r.SpecialistID != id && r.Actor.same(by) {
			return r
		}
	}
	return nil
}

// Drawn reports whether the rulings of the round are to be given without sight of each
// other, or were until everything was shown.
func (p *PendingRulings) Drawn() bool { return p != nil && p.Draws != nil && p.Draws.Second }

// Conceals reports whether rulings are kept from everybody but their authors.
func (p *PendingRulings) Conceals() bool { return p.Drawn() && !p.contested }

// Agree returns the rulings that are executed once that of id has come: it, and those that
// equal it, by when their authors first ruled; nil while others have to rule. may reports
// whether a ruling counts: its author may still make it.
func (p *PendingRulings) Agree(id string, may func(*Ruled) bool) []*Ruled {
	newest := p.By(id)
	counted := p.agreeing(newest, func(r *Ruled) bool { return r == newest || may(r) })
	rule := newest.Transition.Approvals
	if rule != nil && complete(rule, counted) || rule == nil && (len(counted) > 1 || !p.Drawn()) {
		return counted
	}
	return nil
}

// WaitsFor returns what a session waits for because of the rulings that count: the
// approval of more humans, another human, or, where those who have ruled contradict each
// other and nobody else is to be asked, that two of them choose the same. left is how many
// humans may rule who have not.
func (p *PendingRulings) WaitsFor(may func(*Ruled) bool, left int) (code, reason string) {
	different := p.choices(may)
	switch {
	case !p.Drawn():
		return CodeApprovals, p.Given(may)
	case different > 2 || different == 2 && (p.contested || left == 0):
		return CodeContested, p.ContestedBy(may, left)
	case p.contested:
		return CodeSecondHuman, p.ContestedBy(may, left)
	}
	return CodeSecondHuman, p.AsksAnother(may)
}

// choices counts the different choices of those who still may make them.
func (p *PendingRulings) choices(may func(*Ruled) bool) int {
	var different []*Ruled
	for _, r := range p.List {
		if may(r) && !slices.ContainsFunc(different, r.Equals) {
			different = append(different, r)
		}
	}
	return len(different)
}

// Equals reports whether two rulings choose the same: transition and payload.
func (d *Ruled) Equals(other *Ruled) bool {
	return d.Transition == other.Transition && SamePayload(d.MetaJSON, other.MetaJSON)
}

// AsksAnother is what a session waits for while others are to rule. It says nothing of
// what was chosen. may reports whether a ruling counts.
func (p *PendingRulings) AsksAnother(may func(*Ruled) bool) string {
	n := 0
	for _, r := range p.List {
		if may(r) {
			n++
		}
	}
	switch {
	case n == 0:
		return "Two humans have to choose the same, neither having seen what the other has chosen"
	case n == 1:
		return "A human has ruled: another has to, without having seen how"
	case p.choices(may) == 1: // one of them was switched off when the other ruled
		return fmt.Sprintf("%d humans have ruled the same: it is executed once one of them does so again, or another does", n)
	}
	return fmt.Sprintf("%d humans have ruled and differ: another has to, without having seen how", n)
}

// ContestedBy says what humans have chosen of whom two have to choose the same, where that
// is shown. left is how many humans may rule who have not; may reports whether a ruling counts.
func (p *PendingRulings) ContestedBy(may func(*Ruled) bool, left int) string {
	reason, n := "Two humans have to choose the same", 0
	for _, r := range p.List {
		if !may(r) {
			continue
		}
		reason += fmt.Sprintf("%s%s chose %s", [2]string{": ", ", "}[min(n, 1)], r.SpecialistID, r.Transition.Name)
		if n++; r.MetaJSON != nil {
			reason += " with " + clipPayload(r.MetaJSON)
		}
	}
	switch {
	case left > 0:
	case n < 2:
		reason += "; no other human is left who may rule"
	case n == 2:
		reason += "; no third human is left who may rule, so one of them takes the other's choice"
	}
	return reason
}

// shownOnceRuled is why a session waits in which humans contradict each other who have not
// seen how, and nobody is left who could settle it: who was to be asked was switched off.
const shownOnceRuled = "Humans have ruled and differ, and no other is left who may rule: once one of them rules again, or takes the ruling back, they are shown what each chose"

func clipPayload(metaJSON []byte) string { return specialist.Clip(string(metaJSON), 120) }

// applyRuled enters a ruling, or takes one back.
func applyRuled(s *Session, o *OpenRound, d *Ruled, at specialist.Time) {
	waited := o.Pending() && s.Status == NeedsHuman
	next := o.Rulings.With(d)
	if !waited {
		next.under = standingStatus{s.Status, s.outcome}
	}
	o.Rulings = next
	if len(next.List) == 0 {
		next.waits = nil
		s.Status, s.outcome = next.under.status, next.under.outcome
		return
	}
	if next.waits == nil {
		next.waits = &Outcome{Code: CodeSecondHuman, Since: at}
	}
	s.Status, s.outcome = NeedsHuman, next.waits
}

// rulingCodes are why a session waits because of rulings that are pending.
var rulingCodes = []string{CodeApprovals, CodeSecondHuman, CodeContested}

// applyAwaits enters that a session waits for a human.
func applyAwaits(s *Session, o *OpenRound, d *AwaitsHuman, at specialist.Time) {
	s.Status, s.outcome = NeedsHuman, &Outcome{d.Code, d.Reason, at}
	if d.Timer {
		s.timerFailed(true)
	} else if d.Code == CodeSetFailed {
		o.SetFailed = d.Reason
	}
	if !o.Pending() {
		o.Draws = d.Draws
		return
	}
	if !slices.Contains(rulingCodes, d.Code) {
		return // once that is settled, the rulings are waited for as before
	}
	next := *o.Rulings
	next.waits, next.contested = s.outcome, next.contested || d.Code == CodeContested
	o.Rulings = &next
}

// goesOn enters that a session has no more reason to wait, but for rulings that are
// pending.
func (o *OpenRound) goesOn(s *Session) {
	s.Status, s.outcome = Running, nil
	if o.Pending() {
		next := *o.Rulings
		next.under = standingStatus{status: Running}
		o.Rulings = &next
		s.Status, s.outcome = NeedsHuman, next.waits
	}
}

// HumanAsked reports whether the session waits for a human, or did when the first of the
// pending rulings came.
func (o *OpenRound) HumanAsked(s *Session) bool {
	if o.Pending() && s.Status == NeedsHuman {
		return o.Rulings.under.status == NeedsHuman
	}
	return s.Status == NeedsHuman
}

// PendingRulings returns the rulings of the present round that wait for others, by
// when their authors first ruled. They are kept from everybody but their authors if
// concealed is true. The caller must not change them.
func (s *Session) PendingRulings() (list []*Ruled, concealed bool) {
	o := s.round()
	if o.Rulings != nil {
		list = o.Rulings.List
	}
	return list, o.Pending() && o.Rulings.Conceals()
}

// Shown reports whether everybody has been shown what was ruled.
func (p *PendingRulings) Shown() bool { return p != nil && p.contested }

// CodeContested is the code of a WhatIf in which a champion must not decide alone:
// everybody would be asked.
const CodeContested = "contested"
