package runner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A panel is asked so that its members check each other. If some of them fail, the
// others must not decide as if they had been the whole panel: so a round is decided
// without a human only if its quorum is reached and everybody who is required has
// answered.
//
// Counted is who was asked in the round or proposed, or is to be asked if the round
// goes on, without humans and shadows; an ask that a budget refused counts, one that
// was cancelled counts for a member who would be asked again. So whoever proposes before
// anybody is asked is one of the panel, and not the whole of it, and neither is whoever is
// left when the asks that failed are to be repeated. The count is a floor under every
// verdict (recordVerdict), and nothing stops a round early while it is not reached: an
// answer that is still out could be a failure, and in the order in which that comes
// first the round is not decided.

// toAsk reports whether a member is asked if the round goes on: in the modes that ask
// everybody, everybody; in mode sequential those whom the present wave is yet to ask,
// those who were asked before and are to be asked again, and everybody as long as there
// was no wave.
func (t *round) toAsk(m *planning.Member) bool {
	if t.mode() == machine.Sequential && t.championship.champion == "" && t.open.Solicited() && t.open.Ask(m.SpecialistID, machine.Proposer) == nil {
		return slices.Contains(t.unasked, m)
	}
	return t.asks(m)
}

// quorum counts the panel of the present round. by is who arbitrates.
func (t *round) quorum(by *planning.Member) *arbiter.Quorum { return t.quorumWith(by, t.toAsk) }

// quorumWith counts those who were asked or proposed, and also some others.
func (t *round) quorumWith(by *planning.Member, also func(*planning.Member) bool) *arbiter.Quorum {
	q, have, members := &arbiter.Quorum{}, t.open.Finder(), t.members()
	for i := range members {
		m := &members[i]
		if m.IsHuman || t.shadows(m.SpecialistID) {
			continue
		}
		answered := have.Proposal(m.SpecialistID) != nil
		if a := have.Ask(m.SpecialistID); answered || a != nil && !a.Status.Dropped() || also(m) {
			q.Counted++
		}
		switch {
		case answered:
			q.Answered++
		case m.Required:
			q.Missing = append(q.Missing, m.SpecialistID)
		}
	}
	for _, p := range t.open.Proposals { // of those who have left since
		if !p.IsHuman && !slices.ContainsFunc(members, func(m planning.Member) bool { return m.SpecialistID == p.SpecialistID }) {
			q.Counted, q.Answered = q.Counted+1, q.Answered+1
		}
	}
	q.Needed = t.quorumRule(by).Needed(q.Counted)
	return q
}

// quorumRule returns the quorum in force in the present round.
func (t *round) quorumRule(by *planning.Member) machine.Quorum {
	if q := t.now.State.Quorum; q != nil {
		return *q
	}
	alone := t.championship.champion != "" && t.open.Proposal(t.championship.champion) != nil
	return planning.DefaultQuorum(by.StrategyFnName, t.mode(), alone)
}

// tooFewAlone reports whether a declared quorum asks for more answers than a
// champion, and those who are asked beside it, have given. Then the others are asked.
func (t *round) tooFewAlone() bool {
	declared := t.now.State.Quorum
	if declared == nil || t.championship.champion == "" {
		return false
	}
	counted, answered, members := 0, 0, t.members()
	for i := range members {
		if m := &members[i]; t.asks(m) && !t.shadows(m.SpecialistID) {
			counted++
			if t.open.Proposal(m.SpecialistID) != nil {
				answered++
			}
		}
	}
	return answered < declared.Needed(counted)
}

// counted returns the quorum of the round for a verdict, with words for who has not
// answered.
func (t *round) counted(by *planning.Member) *arbiter.Quorum {
	q := t.quorum(by)
	if !q.Reached() {
		q.Failures = t.failures()
	}
	return q
}

// stands reports whether the verdict of the round still holds. Failures change no
// proposal, so nobody is asked again about them; but a verdict that was given before
// them may be below the quorum now, and is then recorded once more as such. One that
// was below it and is not any more is asked for again.
func (w *engine) stands(by *planning.Member) bool {
	v := w.open.Verdict
	if v == nil || v.Decision.Quorum == nil { // of an older log
		return v != nil
	}
	q, below := w.counted(by), v.Decision.Rule == arbiter.NoQuorum
	switch {
	case q.Reached():
		return !below
	case len(v.Order) == 0, v.Decision.Consensus() && w.open.ElectedHuman(v):
		return true
	case !v.Decision.Consensus() && v.Evidence != nil && v.Evidence.Stop != "":
		return true
	}
	low := v.Decision.Below(q)
	if below && low.Text == v.Decision.Text {
		return true
	}
	again := *v
	again.Index, again.Ask, again.Usage, again.Model = w.open.Verdicts+1, 0, specialist.Usage{}, ""
	again.Decision = low
	w.emit(&again)
	return true
}

// quorate reports whether the quorum of the round was reached when it was judged,
// or else is now.
func (t *round) quorate() bool {
	if v := t.open.Verdict; v != nil {
		return v.Decision.Quorum.Reached()
	}
	by, err := t.arbiter()
	if err != nil {
		by = planning.NoArbiter()
	}
	return t.quorum(by).Reached()
}

// maxFailures is how many failures a reason lists.
const maxFailures = 5

// failures says in words why proposers of the round have not answered: those who are
// required first, and of each the newest ask.
func (t *round) failures() string {
	var required, list []string
	members := t.members()
	for i := range members {
		m := &members[i]
		if m.IsHuman || t.shadows(m.SpecialistID) || t.open.Proposal(m.SpecialistID) != nil {
			continue
		}
		a := t.open.Ask(m.SpecialistID, machine.Proposer)
		switch {
		case m.Required && m.Off:
			required = append(required, m.SpecialistID+" is switched off")
		case a == nil || a.Status.Dropped():
			if m.Required {
				required = append(required, m.SpecialistID+" was not asked")
			}
		case m.Required:
			required = append(required, a.Failure())
		default:
			list = append(list, a.Failure())
		}
	}
	list = append(required, list...)
	if more := len(list) - maxFailures; more > 0 {
		list = append(list[:maxFailures], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
