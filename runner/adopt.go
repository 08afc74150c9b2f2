package runner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Adopting a policy that was back-tested is a human's act. Policies that were tried
// are kept in the machine's log, since picking the best of many is not free. The
// adoption itself is an event of a session, so that it has a place among the lessons:
// of the session that holds the newest decision, which is where the rounds end that
// the policy was tried on.

// RecordTrial records that a policy was back-tested, unless that is known already. It
// returns how many policies, this one included, were tried on rounds some of which t
// is about. by is who tried it, nil if that is not said. It returns ErrNotFound for a
// machine that was never run.
func (r *Runner) RecordTrial(ctx context.Context, machineName string, t session.Trial, by *session.Actor) (tried int64, err error) {
	if err := checkActor(by); err != nil {
		return 0, err
	}
	if _, err := r.newest(ctx, machineName); err != nil {
		return 0, err
	}
	err = r.changeRoster(ctx, machineName, func(roster *session.Roster) (session.RosterEvent, error) {
		policies, known := map[string]bool{t.Policy: true}, false
		for _, u := range roster.Trials {
			known = known || t.Within(u)
			if t.Overlaps(u) {
				policies[u.Policy] = true
			}
		}
		if tried = int64(len(policies)); known {
			return session.RosterEvent{}, nil
		}
		return session.RosterEvent{At: r.now(), Kind: session.KindTried, Trial: &t, Actor: by.Clone()}, nil
	})
	return tried, err
}

// An Adopting is what a human adopts.
type Adopting struct {
	Adoption     trust.Adoption       // Tried is not looked at: the engine counts; nor is ID
	Trial        session.Trial        // of its policy
	SpecialistID machine.SpecialistID // the human
	Reason       string
	Actor        *session.Actor // who adopts it, for the record; nil if that is not said
	// ID names the request, so that it adopts once however often it is made; "" adopts each time.
	// A request may adopt for several promises: they share the ID.
	ID string
}

// Adopt has the test of a promise begin with what a back-test found, once the policy
// that was tried is in force, at a confidence that is divided by the number of
// policies tried on the same rounds. It returns what was recorded, by an earlier call if the
// log has the adoption of in.ID already.
//
// Errors: ErrForbidden unless a human adopts who takes part in a state that the
// promise covers, ErrIllegal without pairs, ErrNotFound if the machine has decided
// nothing yet, [session.ErrExists] if in.ID has adopted something else for that promise,
// [trust.ErrAdoption], and a store that fails.
func (r *Runner) Adopt(ctx context.Context, in Adopting) (trust.Adoption, error) {
	a := in.Adoption
	a.ID = in.ID
	if err := r.mayAdopt(ctx, in); err != nil {
		return a, err
	}
	if len(a.Pairs) == 0 {
		return a, refuse(ErrIllegal, "nothing_to_adopt", "no recorded round of machine %q counts for this policy: there is nothing to adopt", a.Machine)
	}
	var err error
	if a.Tried, err = r.RecordTrial(ctx, a.Machine, in.Trial, in.Actor); err != nil {
		return a, err
	}
	d := &session.Adopted{SpecialistID: string(in.SpecialistID), Reason: specialist.Clip(in.Reason, maxReasoning), Lesson: &trust.Lesson{Adoption: &a}, Actor: in.Actor.Clone()}
	if err := d.Lesson.Check(); err != nil {
		return a, err
	}
	for range maxRaces {
		if err = r.adoptOnce(ctx, a.Machine, d); !errors.Is(err, session.ErrStale) {
			return a, err
		}
	}
	return a, fmt.Errorf("machine %q: %w", a.Machine, session.ErrStale)
}

// mayAdopt returns an error unless a human adopts who takes part in a state that the
// promise covers.
func (r *Runner) mayAdopt(ctx context.Context, in Adopting) error {
	a := &in.Adoption
	who, err := r.Adopters(ctx, a.Machine, machine.StateName(a.State))
	switch {
	case err != nil:
		return err
	case slices.Contains(who, string(in.SpecialistID)) && (in.SpecialistID != Operator || r.config.AllowOperator):
		return nil
	}
	return refuse(ErrForbidden, "not_human", "only humans who take part in machine %q can adopt a policy, and %q is none", a.Machine, in.SpecialistID)
}

// Adopters returns who may adopt a policy for the promise of a state, or of a machine
// if state is "": the humans who take part in what it covers, in roster order, or
// else, if none is declared there, the operator alone.
func (r *Runner) Adopters(ctx context.Context, machineName string, state machine.StateName) (ids []string, err error) {
	p, err := r.newest(ctx, machineName)
	if err != nil {
		return nil, err
	}
	if state != "" && p.Program.Machine.State(string(state)) == nil {
		return nil, &session.NotFoundError{What: "State", ID: string(state)}
	}
	declared := false
	for i := range p.States {
		s := &p.States[i]
		if len(s.State.Transitions) == 0 || state != "" && s.State.Name != string(state) {
			continue
		}
		declared = declared || s.DeclaresHuman()
		for _, id := range s.Reviewers(&session.Review{Outcome: &trust.Outcome{}}) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if !declared {
		ids = []string{Operator}
	}
	return ids, nil
}

// adoptOnce commits an adoption to the session that holds the newest decision, unless the log
// has it: then it becomes that of d.
func (r *Runner) adoptOnce(ctx context.Context, machineName string, d *session.Adopted) error {
	id, err := r.newestDecided(ctx, machineName)
	if err != nil {
		return err
	}
	s, err := r.load(ctx, id)
	if err != nil {
		return err
	}
	if known, err := r.adopted(ctx, d.Lesson.Adoption); known || err != nil {
		return err
	}
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return err
	}
	w.emit(d)
	_, err = w.write(ctx)
	return err
}

// adopted reports whether the log has an adoption, by its ID, and makes a that one. It returns
// [session.ErrExists] if the one of the ID is of something else.
func (r *Runner) adopted(ctx context.Context, a *trust.Adoption) (bool, error) {
	if a.ID == "" {
		return false, nil
	}
	for lesson, err := range r.store.Lessons(ctx, 0) {
		if err != nil {
			return false, err
		}
		known := lesson.Adoption
		if known == nil || known.ID != a.ID || known.Machine != a.Machine || known.State != a.State {
			continue
		}
		if a.Tried = known.Tried; !reflect.DeepEqual(a, known) {
			return false, fmt.Errorf("adoption %s: %w", a.ID, session.ErrExists)
		}
		return true, nil
	}
	return false, nil
}

func (r *Runner) newestDecided(ctx context.Context, machineName string) (specialist.SessionID, error) {
	for ref, err := range r.store.Decided(ctx, machineName) {
		return ref.Session, err
	}
	return specialist.SessionID{}, &session.NotFoundError{What: "Decisions of machine", ID: machineName}
}
