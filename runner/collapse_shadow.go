package runner

import (
	"context"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/collapse"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// shadows reports whether somebody is asked in this round only to learn from.
func (t *round) shadows(id string) bool {
	return t.championship.alone && t.championship.shadow != "" && t.championship.shadow == id
}

// contested reports whether the champion must not decide this round alone.
func (t *round) contested(j *trust.Judgement) bool {
	return collapse.Contested(t.open.Proposal(t.championship.champion), j)
}

// alone returns the champion's decision of the present round; ok is false, and the
// champion is not asked alone any more in this round, if it must not decide alone.
func (w *engine) alone(ctx context.Context) (d arbiter.Decision, round *arbiter.Round, ok bool, err error) {
	votes, err := w.standings(ctx, w.by)
	if err != nil {
		return d, nil, false, err
	}
	if round, err = w.arbiterRound(ctx, votes, w.by); err != nil {
		return d, nil, false, err
	}
	j := round.Evidence.Ledger.Judge(round.Evidence.Ask(round))
	if w.contested(&j) || w.tooFewAlone() || w.lacksPayload(w.championship.champion) {
		w.championship.champion, w.championship.alone, w.championship.shadow = "", false, ""
		return d, round, false, nil
	}
	i := slices.IndexFunc(votes, func(v arbiter.Vote) bool { return v.SpecialistID == w.championship.champion })
	return arbiter.Decision{Winner: i, Rule: arbiter.ByChampion, Subject: w.championship.champion, Judgement: &j}, round, true, nil
}

// noteChampion has the champion's failures written with this commit, and that it
// answered again.
func (w *engine) noteChampion() {
	c, declared := w.collapse0()
	if !declared || c.Certificate == nil || c.StageOf() != trust.Championed {
		return
	}
	id := c.Certificate.SpecialistID
	for i := range w.events {
		switch d := w.events[i].Data.(type) {
		case *session.AskFailed:
			if d.SpecialistID == id && d.Role == machine.Proposer && d.Code != session.CodeCancelled {
				w.roster = append(w.roster, session.RosterEvent{At: w.at, Kind: session.KindChampionFailed, State: w.before.State.Name, ID: id, Reason: d.Code})
			}
		case *session.Proposed:
			if d.SpecialistID == id && c.Failures > 0 {
				w.roster = append(w.roster, session.RosterEvent{At: w.at, Kind: session.KindChampionAnswered, State: w.before.State.Name, ID: id})
			}
		}
	}
}

// collapse0 is collapse of the state in which the commit began.
func (w *engine) collapse0() (session.Collapse, bool) {
	if w.before == nil || w.before.State.Collapse == nil {
		return session.Collapse{}, false
	}
	c, known := w.plan.Roster.Collapse[w.before.State.Name]
	return c, known
}
