package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// From a human's ruling to what it comes to where others have to rule before anything is
// executed: because the transition takes their approval, or because a second human was
// drawn.
//
//  1. A ruling for a transition that takes approvals waits until they are complete. Else the
//     first of a round draws whether others are needed (holdForSecond); what was drawn
//     stays drawn, whatever is ruled then.
//  2. The ruling is put beside those that wait. If enough of them agree
//     (PendingRulings.Agree, session/rulings.go), the choice is executed as that of all who
//     made it (join).
//  3. If they differ for good, or somebody is still to rule, the ruling is recorded and the
//     session waits for a human (PendingRulings.WaitsFor). Who counts, and who is left to
//     rule, the roster says whenever that is asked.
//
// A ruling that waits may be taken back or given again; one that stands since another
// human has ruled may not. Only who ruled without sight of the others counts as blind.

// rule executes a human's choice, or records it if others have to rule too.
func (w *engine) rule(ctx context.Context, in Ruling, d decision) (Arbitration, error) {
	if held, err := w.holdForSecond(ctx, &d); err != nil {
		return Arbitration{}, err
	} else if !held {
		return w.executeForced(ctx, in, d)
	}
	p := w.showContested(string(in.SpecialistID))
	if r := p.SamePerson(d.by, d.actor); r != nil {
		return in.refusedHuman(w.before, refuse(ErrForbidden, session.CodeNotEligible, "%s may not rule beside %s in this round: both are %s, and different humans have to", d.by, r.SpecialistID, d.actor.Subject))
	}
	d.blind = d.blind && !p.Shown()
	word := &session.Ruled{SpecialistID: d.by, Transition: d.transition, MetaJSON: d.meta, Reasoning: specialist.Clip(in.Reasoning, maxReasoning), QuestionDigest: in.QuestionDigest, Blind: d.blind, Direct: d.how == session.Direct, Draws: d.draws, Actor: d.actor, Manner: d.manner}
	next := p.With(word)
	counted := next.Agree(d.by, w.counts)
	if p.Settled(d.by) && (counted == nil || !p.By(d.by).Equals(word)) {
		return in.refusedHuman(w.before, refuse(ErrForbidden, "already_ruled", rulingStands))
	}
	if counted == nil {
		return w.record(ctx, in, next, w.waitsFor(next))
	}
	w.join(&d, next, counted)
	return w.executeForced(ctx, in, d)
}

// showContested returns the pending rulings, shown if that of a human would stand and those
// that count contradict each other while nobody is left who could settle it: who was to be
// asked was switched off.
func (w *engine) showContested(id string) *session.PendingRulings {
	if p := w.open.Rulings; p.Settled(id) {
		if why := w.waitsFor(p); why.Code == session.CodeContested {
			w.emit(why)
		}
	}
	return w.open.Rulings
}

// counts reports whether a ruling that waits still counts: its author may rule, and choose
// its transition.
func (t *assessment) counts(r *session.Ruled) bool {
	return t.mayRule(r.SpecialistID) && t.now.NotEligible(r.Transition, r.SpecialistID) == ""
}

// waitsFor says what a session waits for because of rulings.
func (w *engine) waitsFor(p *session.PendingRulings) *session.AwaitsHuman {
	code, reason := p.WaitsFor(w.counts, w.yetToRule(p))
	return &session.AwaitsHuman{Code: code, Reason: reason}
}

// rulingStands refuses a second word of somebody whose first cannot be changed.
const rulingStands = "You have ruled on this round, and so has another human: your ruling stands until they agree or everything is shown"

// holdForSecond reports whether a ruling waits for others. The first of a round draws
// that; what was drawn stays drawn, whatever is ruled then. A transition that takes
// approvals draws nobody.
func (t *assessment) holdForSecond(ctx context.Context, d *decision) (bool, error) {
	s, p := t.here.State.SecondHuman, t.open.Rulings
	switch {
	case d.transition.Approvals != nil, p.Drawn() && (t.open.Pending() || len(t.here.HumansOn()) > 1):
		return true, nil
	case s == nil || s.When != machine.Before:
		return false, nil
	}
	var err error
	d.draws, err = t.drawSecond(ctx, *d)
	return d.draws != nil && d.draws.Second, err
}

// yetToRule returns how many humans may rule who have not.
func (t *round) yetToRule(p *session.PendingRulings) (n int) {
	for _, id := range t.here.HumansOn() {
		if p.By(id) == nil {
			n++
		}
	}
	return n
}

// record makes the newest ruling durable, and why the session waits for others.
func (w *engine) record(ctx context.Context, in Ruling, p *session.PendingRulings, why *session.AwaitsHuman) (Arbitration, error) {
	d := p.By(string(in.SpecialistID))
	w.emit(d)
	w.emit(why)
	result := in.refused(w.before, why.Reason)
	result.IsHuman, result.Recorded, result.TransitionName, result.ToState = true, true, d.Transition.Name, d.Transition.Target
	result.Reasoning, result.MetaJSON = d.Reasoning, d.MetaJSON
	var err error
	result.Session, err = w.write(ctx)
	return result, err
}

// join makes a choice that of all who agreed. Whose ruling was to teach nothing makes
// the choice one that teaches nothing.
func (t *round) join(d *decision, p *session.PendingRulings, counted []*session.Ruled) {
	for _, r := range counted {
		if len(counted) == 1 {
			break // whose choice it was alone
		}
		d.authors = append(d.authors, r.SpecialistID)
		d.blind = d.blind && r.Blind
		if r.Direct {
			d.how = session.Direct
		}
	}
	d.draws, d.second = p.Draws, t.lookOf(d, p)
}

// lookOf returns what the first two humans made of the round without sight of each
// other; nil where there was nothing to choose between, and where one of them has given an
// approval, which others may have seen. A disagreement of theirs is
// settled if a third human has chosen what is executed.
func (t *round) lookOf(d *decision, p *session.PendingRulings) *trust.SecondLook {
	q := t.asked()
	approves := func(r *session.Ruled) bool { return r.Transition.Approvals != nil }
	if len(q.Options) < 2 || len(p.First) < 2 || d.transition.Approvals != nil || slices.ContainsFunc(p.First, approves) {
		return nil
	}
	a, b := p.First[0], p.First[1]
	look := &trust.SecondLook{Machine: q.Machine, State: q.State, Options: len(q.Options),
		FirstHuman: a.SpecialistID, First: a.Transition.Name, SecondHuman: b.SpecialistID, Second: b.Transition.Name}
	if a.Transition != b.Transition && d.by != a.SpecialistID && d.by != b.SpecialistID {
		look.Settled = d.transition.Name
	}
	return look
}

// author returns who is answered for the decision first.
func (d *decision) author() string {
	if len(d.authors) > 0 {
		return d.authors[0]
	}
	return d.by
}

// looksAfter reports whether another human is to look at the executed transition.
func (d *decision) looksAfter(s *machine.State) bool {
	return d.draws != nil && d.draws.Second && s.SecondHuman.When == machine.After
}

// withdraw takes back the ruling of a human that waits for others.
func (r *Runner) withdraw(ctx context.Context, s *session.Session, in Ruling) (Arbitration, error) {
	if in.TransitionName != "" {
		return Arbitration{Session: s}, refuse(ErrIllegal, "transition_given", "a ruling is taken back, or another one given: not both")
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return Arbitration{}, err
	}
	if !w.mayRule(string(in.SpecialistID)) {
		return w.notAllowed(in)
	}
	p := w.showContested(string(in.SpecialistID))
	switch {
	case p.Index(string(in.SpecialistID)) < 0:
		return in.refusedHuman(s, refuse(ErrIllegal, "nothing_to_withdraw", "%s has no ruling in this round that waits for others", in.SpecialistID))
	case p.Settled(string(in.SpecialistID)):
		return in.refusedHuman(s, refuse(ErrForbidden, "already_ruled", rulingStands))
	}
	w.emit(&session.Ruled{SpecialistID: string(in.SpecialistID), Reasoning: specialist.Clip(in.Reasoning, maxReasoning), Actor: in.Actor.Clone(), Manner: in.Manner})
	if p := w.open.Rulings; len(p.List) > 0 {
		w.emit(w.waitsFor(p))
	}
	result := in.refused(s, fmt.Sprintf("The ruling of %s is taken back", in.SpecialistID))
	result.IsHuman, result.Recorded = true, true
	result.Session, err = w.write(ctx)
	return result, err
}

// refusedHuman refuses the ruling of somebody who may rule.
func (in Ruling) refusedHuman(s *session.Session, why *Error) (Arbitration, error) {
	result := in.refused(s, why.Message)
	result.IsHuman = true
	return result, why
}
