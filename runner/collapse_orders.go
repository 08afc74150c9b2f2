package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/internal/collapse"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// What humans may do to the stage of a state that declares a collapse: demote it,
// freeze it, and promote a specialist to champion. Each of the three is an order, and
// an order takes the same way:
//
//  1. It assesses the state of the newest definition, in no session.
//  2. It is refused where the state declares no collapse under bayes, and from anybody
//     who may not rule there: a human who takes part, or the operator where no human is
//     declared. So no specialist can promote itself.
//  3. From what is known of the state (a collapseView) it makes one roster event.
//  4. The event is appended to the machine's log, if that has not grown since it was
//     read; else all of this is done again, at most maxRaces times.
//
// A promotion needs a promise that is established and a state that is not frozen, as
// one that the engine makes does. Its certificate names the human.

// A StateCollapse shows how far a state has come, and what is missing for more.
type StateCollapse struct {
	MachineName string `json:"machineName"`
	State       string `json:"state"`
	session.Collapse
	Tau        bool              `json:"tau"`      // a probability that decides is established
	Outcomes   int64             `json:"outcomes"` // of the state, since evidence was last archived
	Champion   *trust.Champion   `json:"champion,omitempty"`
	Candidates []trust.Candidate `json:"candidates"`
	Pruned     []string          `json:"pruned"`         // who tells next to nothing for its money
	Saving     Saving            `json:"savings"`        // of asking one after the other
	Next       string            `json:"next,omitempty"` // the stage that the next step will find
}

// inState returns an assessment of a state of the newest definition of a
// machine, in no session.
func (r *Runner) inState(ctx context.Context, machineName string, state machine.StateName) (*assessment, error) {
	p, err := r.newest(ctx, machineName)
	if err != nil {
		return nil, err
	}
	s := p.Program.Machine.State(string(state))
	if s == nil {
		return nil, &session.NotFoundError{What: "State", ID: string(state)}
	}
	return r.lookIn(p, s), nil
}

func (t *assessment) report(v *collapse.View) StateCollapse {
	q := &t.here.Question
	s := StateCollapse{MachineName: q.Machine, State: q.State, Collapse: v.Now, Tau: v.Tau, Outcomes: v.Outcomes.N(q.Machine),
		Candidates: append([]trust.Candidate{}, v.Candidates()...), Pruned: []string{}}
	s.Stage = v.Now.StageOf()
	if v.Now.Certificate != nil {
		s.Champion = &v.Champion
	}
	panel := t.here.Panel()
	for _, i := range v.All.Uninformative(panel) {
		s.Pruned = append(s.Pruned, panel.Roster[i].SpecialistID)
	}
	s.Saving = t.saving(v.All)
	if next, changed := v.Next(); changed {
		s.Next = string(next.Stage)
	}
	return s
}

// An Order is what a human has the engine do with a state.
type Order struct {
	MachineName  string
	State        machine.StateName
	SpecialistID machine.SpecialistID // the human
	Reason       string
	Actor        *session.Actor // who gives it, for the record; nil if that is not said
}

// Demote sends a state back, at once: a champion is no longer asked alone, and
// from consensus the state goes back to humans until its cool-down is over.
func (r *Runner) Demote(ctx context.Context, o Order) error {
	return r.order(ctx, o, func(v *collapse.View) (session.RosterEvent, error) {
		to := trust.Calibrating
		if v.Now.StageOf() == trust.Championed {
			to = trust.Demoted
		}
		next := v.Enter(to, cmp.Or(o.Reason, "demoted_by_human"), string(o.SpecialistID), nil)
		next.Held = to == trust.Calibrating
		return session.RosterEvent{Kind: session.KindStage, Stage: &next}, nil
	})
}

// Freeze keeps anybody from being promoted in a state, or lets them again.
func (r *Runner) Freeze(ctx context.Context, o Order, on bool) error {
	kind := session.KindReleased
	if on {
		kind = session.KindFrozen
	}
	return r.order(ctx, o, func(v *collapse.View) (session.RosterEvent, error) {
		if v.Now.Frozen == on {
			return session.RosterEvent{}, nil
		}
		return session.RosterEvent{Kind: kind}, nil
	})
}

// Promote makes a specialist champion of a state because a human says so. Its
// certificate holds what evidence there is, and the name of the human. It returns
// ErrIllegal in a state that is frozen or whose promise is not established.
func (r *Runner) Promote(ctx context.Context, o Order, id machine.SpecialistID) (*trust.Certificate, error) {
	var made *trust.Certificate
	err := r.order(ctx, o, func(v *collapse.View) (session.RosterEvent, error) {
		m := v.State.Find(string(id))
		switch {
		case m == nil || m.Off || m.IsHuman:
			return session.RosterEvent{}, &session.NotFoundError{What: "Specialist that may be asked", ID: string(id)}
		case v.Now.Frozen:
			return session.RosterEvent{}, refuse(ErrIllegal, "frozen", "nobody can be promoted in state %q: it is frozen; release it first", o.State)
		case !v.Tau:
			return session.RosterEvent{}, refuse(ErrIllegal, "not_established", "nobody can be promoted in state %q: its promise is not established yet", o.State)
		}
		c := trust.Candidate{SpecialistID: m.SpecialistID, Version: m.Version, Machine: o.MachineName, State: string(o.State)}
		for _, known := range v.Candidates() {
			if known.SpecialistID == m.SpecialistID && known.Version == m.Version {
				c = known
			}
		}
		made = v.Sign(v.Certificate(c, string(o.SpecialistID)))
		next := v.Enter(trust.Championed, cmp.Or(o.Reason, "promoted_by_human"), string(o.SpecialistID), made)
		return session.RosterEvent{Kind: session.KindStage, Stage: &next, ID: m.SpecialistID}, nil
	})
	return made, err
}

// order has a human's order written to the machine's log. Whoever is not a human
// that takes part in the state is refused: no specialist can promote itself.
func (r *Runner) order(ctx context.Context, o Order, make func(*collapse.View) (session.RosterEvent, error)) error {
	if err := checkActor(o.Actor); err != nil {
		return err
	}
	for range maxRaces {
		t, err := r.inState(ctx, o.MachineName, o.State)
		if err != nil {
			return err
		}
		c, declared := t.collapse()
		if !declared {
			return refuse(ErrIllegal, "no_collapse", "state %q of machine %q declares no collapse under bayes: there is nothing to promote or demote", o.State, o.MachineName)
		}
		if !t.mayRule(string(o.SpecialistID)) {
			return refuse(ErrForbidden, "not_human", "only humans who take part in state %q can do that, and %q is none", o.State, o.SpecialistID)
		}
		v, err := t.view(ctx, c)
		if err != nil {
			return err
		}
		e, err := make(v)
		if err != nil || e.Kind == "" {
			return err
		}
		e.At, e.State, e.By, e.Reason = t.at, string(o.State), string(o.SpecialistID), o.Reason
		e.Actor = o.Actor.Clone()
		if e.Stage != nil {
			e.Reason = e.Stage.Reason
		}
		if err = r.store.Register(ctx, o.MachineName, t.plan.Roster.Sequence, e); !errors.Is(err, session.ErrStale) {
			return err
		}
	}
	return fmt.Errorf("machine %q: %w", o.MachineName, session.ErrStale)
}

// HumansIn returns the ids of the humans who may give orders in a state, and
// whether any are declared for it: if not, the operator may.
func (r *Runner) HumansIn(ctx context.Context, machineName string, state machine.StateName) (ids []string, declared bool, err error) {
	t, err := r.inState(ctx, machineName, state)
	if err != nil {
		return nil, false, err
	}
	return t.here.Reviewers(&session.Review{Outcome: &trust.Outcome{}}), t.here.DeclaresHuman(), nil
}
