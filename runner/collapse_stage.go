package runner

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/collapse"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Progressive collapse, as far as it is of a session: which stage the present state has, and
// a change of it as an event of the machine's log. Package collapse says which comes next.

// whyHuman returns why a human has to decide. Where rulings are to be blind it
// does not say what was proposed.
func (t *round) whyHuman(v *session.Judged) string {
	hidden := t.now.State.Withheld()
	if (hidden || t.now.State.Audit.Mode == machine.Before) && v.Decision.Rule == arbiter.NoQuorum {
		return v.Decision.Short() // without a name
	}
	if hidden {
		return "Human input required: " + strings.TrimSuffix(v.Decision.Short(), ", human input required")
	}
	return v.Decision.Reasoning()
}

// collapse returns the standing of the present state, and whether it declares one
// that bayes can work with.
func (t *round) collapse() (session.Collapse, bool) {
	if t.here.State.Collapse == nil || t.here.Arbiter == nil || !t.here.Arbiter.ByBayes() {
		return session.Collapse{}, false
	}
	return t.plan.Roster.Collapse[t.here.State.Name], true
}

// reachStage brings the present state to the stage that the evidence calls for, or else
// finds who is champion in this round. It reports whether the roster has changed: then
// who takes part is to be read again.
func (w *engine) reachStage(ctx context.Context) (changed bool, err error) {
	c, declared := w.collapse()
	if !declared || w.championship.known {
		return false, nil
	}
	w.championship.known = true
	v, err := w.view(ctx, c)
	if err != nil {
		return false, err
	}
	if next, changed := v.Next(); changed {
		return w.changeStage(ctx, next)
	}
	switch {
	case c.Held:
		w.championship.held = true
	case c.StageOf() == trust.Championed && c.Since < w.now.EnteredAt() && !w.failed(c.Certificate.SpecialistID) && w.mode() != machine.Eager:
		w.championship.champion, w.championship.alone, w.championship.seen = c.Certificate.SpecialistID, true, v.Champion
		w.championship.shadow = v.Shadow(w.now.Key(), w.assessment.asked())
	case c.StageOf() == trust.Consensus && w.now.State.Collapse.Prune:
		w.championship.pruned = v.Uninformative()
	}
	return false, nil
}

// changeStage writes a change of stage. If somebody else has changed the roster, that is
// a change too.
func (w *engine) changeStage(ctx context.Context, next session.Collapse) (changed bool, err error) {
	e := session.RosterEvent{At: w.at, Kind: session.KindStage, State: w.now.State.Name, Stage: &next, By: next.By, Reason: next.Reason}
	if next.Certificate != nil {
		e.ID = next.Certificate.SpecialistID
	}
	err = w.r.store.Register(ctx, w.now.Machine().Name(), w.plan.Roster.Sequence, e)
	if err == nil || errors.Is(err, session.ErrStale) {
		return true, nil
	}
	return false, err
}

// view returns all that the next stage of the present state depends on.
func (t *assessment) view(ctx context.Context, c session.Collapse) (*collapse.View, error) {
	e, err := t.evidence(ctx)
	if err != nil {
		return nil, err
	}
	near := func(ctx context.Context, rounds []string) (bool, error) {
		return t.r.amongLatest(ctx, t.here.Question.Machine, machine.StateName(t.here.State.Name), rounds)
	}
	return collapse.New(ctx, collapse.Sources{Store: t.r.store, Lessons: t.r.lessons, Near: near}, t.here, e, c, t.at)
}

// overruleWindow is the number of automatic decisions within which two overrulings
// demote a champion.
const overruleWindow = 20

// amongLatest reports whether all of these rounds are among the latest automatic
// decisions of a state.
func (r *Runner) amongLatest(ctx context.Context, machineName string, state machine.StateName, rounds []string) (bool, error) {
	found, looked := 0, 0
	for d, err := range r.NewestDecisions(ctx, machineName, state) {
		if err != nil {
			return false, err
		}
		if d.IsHuman || d.Timed() {
			continue
		}
		if slices.Contains(rounds, d.RoundID) {
			found++
		}
		if looked++; looked == overruleWindow {
			break
		}
	}
	return found == len(rounds), nil
}
