package planning

import (
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Decides reports whether a human is one of those who alone may rule in the state.
func (p *State) Decides(id string) bool {
	return p.State.Deciders == nil || slices.Contains(p.State.Deciders, id)
}

// DeclaresHuman reports whether a human belongs to the state, be it one who is
// switched off.
func (p *State) DeclaresHuman() bool {
	isHuman := func(m Member) bool { return m.IsHuman }
	return slices.ContainsFunc(p.Members, isHuman) || slices.ContainsFunc(p.Humans, isHuman)
}

// HumansOn returns the ids of the humans who may rule and are not switched off, in roster
// order.
func (p *State) HumansOn() (ids []string) {
	for _, list := range [][]Member{p.Members, p.Humans} {
		for i := range list {
			if m := &list[i]; m.IsHuman && !m.Off && p.Decides(m.SpecialistID) {
				ids = append(ids, m.SpecialistID)
			}
		}
	}
	return ids
}

// Withheld returns why what was proposed and decided in a round is withheld from whoever
// reviews it; "" if it is not.
func (p *State) Withheld(v *session.Review, viewer machine.SpecialistID) string {
	if v.LookedAt(viewer) || viewer != "" && v.Seen(viewer) || p.Contested(v) {
		return ""
	}
	return "whoever reviews a round is to do so without sight of what was proposed and decided in it"
}

// Reviewers returns who may answer a review.
func (p *State) Reviewers(v *session.Review) (ids []string) {
	return slices.DeleteFunc(p.HumansOn(), func(id string) bool { return v.Seen(machine.SpecialistID(id)) })
}

// Contested reports whether two humans disagree about a round and no other is left who
// could review it: nothing of it is kept from anybody, and either of them may join the other.
func (p *State) Contested(v *session.Review) bool {
	return v.Kind == session.Adjudication && len(p.Reviewers(v)) == 0
}
