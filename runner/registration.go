package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Specialists that a program adds to a machine while it is in use, and switching
// specialists off and on. Both are events of the machine's own log, so every session of
// that machine sees them, and both go through changeRoster: read the roster, check
// against it, append one event if the log has not grown since; if it has, begin again,
// at most maxRaces times.
//
// A specialist is checked before it is recorded (planning.CheckRegistration), by the rules of a machine file: it is
// put into a definition of one state and compiled. Only an inline expression is not
// held to its transitions, since it is not known yet which states it will serve. Then
// whatever it names (a strategy, a model, a service) must exist here.

// Register adds a specialist to a machine name: DIAL's registerProposer and
// registerArbiter. It takes part in every session of that name, present and
// future, after the declared ones, unless a definition declares the same id.
// The stored record is returned. by is who adds it, nil if that is not said.
func (r *Runner) Register(ctx context.Context, machineName string, s machine.Specialist, by *session.Actor) (session.Registered, error) {
	if err := checkActor(by); err != nil {
		return session.Registered{}, err
	}
	if s.MachineName != "" && s.MachineName != machineName {
		return session.Registered{}, refuse(ErrIllegal, "wrong_machine", "specialist %q belongs to machine %q, not %q", s.SpecialistID, s.MachineName, machineName)
	}
	s.MachineName = machineName
	var stored session.Registered
	err := r.changeRoster(ctx, machineName, func(roster *session.Roster) (session.RosterEvent, error) {
		if roster.Registered(s.SpecialistID) != nil {
			return session.RosterEvent{}, refuse(session.ErrExists, "specialist_exists", "Specialist already exists: %s", s.SpecialistID)
		}
		if err := planning.CheckRegistration(r.surroundings(), Checks(), machineName, &s); err != nil {
			return session.RosterEvent{}, err
		}
		e := session.RosterEvent{At: r.now(), Kind: session.KindRegistered, ID: s.SpecialistID, Specialist: &s, Actor: by.Clone()}
		stored = session.Registered{Specialist: s, At: e.At}
		return e, nil
	})
	return stored, err
}

// A Switching says to what a specialist is switched, and who does it.
type Switching struct {
	On bool
	// Reason is recorded, unless it is empty.
	Reason string
	// Actor is recorded. It may be left out ([session.Actor]{}) by a program that switches on its
	// own account; one with a subject has a method, and the other way round.
	Actor session.Actor
}

// Enable is [Runner.Switch] on, by nobody in particular.
func (r *Runner) Enable(ctx context.Context, machineName string, id machine.SpecialistID) error {
	return r.Switch(ctx, machineName, id, Switching{On: true})
}

// Disable is [Runner.Switch] off, by nobody in particular.
func (r *Runner) Disable(ctx context.Context, machineName string, id machine.SpecialistID) error {
	return r.Switch(ctx, machineName, id, Switching{})
}

// Switch switches a specialist of a machine on or off. One that is off is not asked, not
// counted and does not decide; its alignment is kept. It returns [session.ErrNotFound] if nobody
// has that id, and [ErrIllegal] for an actor of which only a half is said.
func (r *Runner) Switch(ctx context.Context, machineName string, id machine.SpecialistID, to Switching) error {
	e := session.RosterEvent{Kind: session.KindDisabled, ID: string(id), Reason: to.Reason}
	if to.On {
		e.Kind = session.KindEnabled
	}
	if to.Actor.Subject != "" || to.Actor.Method != "" {
		e.Actor = to.Actor.Clone()
	}
	if err := checkActor(e.Actor); err != nil {
		return err
	}
	declared, err := r.declares(ctx, machineName, id)
	if err != nil {
		return err
	}
	return r.changeRoster(ctx, machineName, func(roster *session.Roster) (session.RosterEvent, error) {
		if !declared && roster.Registered(string(id)) == nil {
			return session.RosterEvent{}, &session.NotFoundError{What: "Specialist", ID: string(id)}
		}
		e.At = r.now()
		return e, nil
	})
}

// declares reports whether a definition of the machine declares the id.
func (r *Runner) declares(ctx context.Context, machineName string, id machine.SpecialistID) (bool, error) {
	definitions, err := r.store.Definitions(ctx, machineName)
	if err != nil {
		return false, err
	}
	for _, d := range definitions {
		m, err := machine.Parse(machineName+".json", d, session.StoredChecks())
		if err != nil {
			return false, &session.CorruptError{What: "a definition of machine " + machineName, Problem: err.Error()}
		}
		lists := [][]machine.Specialist{m.Specialists()}
		for i := range m.States() {
			lists = append(lists, m.States()[i].Roster)
		}
		for _, list := range lists {
			if slices.ContainsFunc(list, func(s machine.Specialist) bool { return s.SpecialistID == string(id) }) {
				return true, nil
			}
		}
	}
	return false, nil
}

// changeRoster appends one event to a machine's log, made anew whenever somebody
// else was faster.
func (r *Runner) changeRoster(ctx context.Context, machineName string, change func(*session.Roster) (session.RosterEvent, error)) error {
	for range maxRaces {
		roster, err := r.store.Roster(ctx, machineName)
		if err != nil {
			return err
		}
		e, err := change(roster)
		if err != nil || e.Kind == "" {
			return err
		}
		if err = r.store.Register(ctx, machineName, roster.Sequence, e); !errors.Is(err, session.ErrStale) {
			return err
		}
	}
	return fmt.Errorf("machine %q: %w", machineName, session.ErrStale)
}

// maxRaces bounds how often something is tried again because somebody else was
// faster.
const maxRaces = 100
