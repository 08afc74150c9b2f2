package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// Sessions lists sessions in the order in which they were created, or the other way round:
// all that a query selects, or a page of them. [session.Each] reads page after page. The
// codes and reasons of those that need a human are those of [Runner.Outcome], and the query
// goes by them: as the roster is now.
func (r *Runner) Sessions(ctx context.Context, q session.ListQuery) ([]session.Summary, error) {
	list := []session.Summary{}
	stored, err := r.storedQuery(ctx, q)
	if err != nil {
		return nil, err
	}
	machines := map[string]*machine.Machine{}
	for sum, err := range session.Each(ctx, r.store.List, stored) {
		if err != nil {
			return nil, err
		}
		r.summarizeNow(ctx, &sum, machines)
		if q.Code != "" && sum.Code != q.Code {
			continue
		}
		if list = append(list, sum); len(list) == q.Limit {
			break
		}
	}
	return list, nil
}

// listed lists what a query selects for who loads each of the sessions anyway, codes and
// reasons as they are stored.
func (r *Runner) listed(ctx context.Context, q session.ListQuery) ([]session.Summary, error) {
	if q.Code != "" {
		return r.Sessions(ctx, q)
	}
	stored, err := r.storedQuery(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.store.List(ctx, stored)
}

// storedQuery returns the query of a store among whose sessions are those of q, and only so
// many others as the roster may have brought to its code, or away from it.
func (r *Runner) storedQuery(ctx context.Context, q session.ListQuery) (stored session.ListQuery, err error) {
	stored = q
	if q.Decider != "" && q.Places == nil {
		if stored.Places, err = r.placesWhere(ctx, q.MachineName, func(here *planning.State) bool { return slices.Contains(here.HumansOn(), string(q.Decider)) }); err != nil {
			return stored, err
		}
	}
	if q.Code == "" {
		return stored, nil
	}
	stored.Limit = 0
	switch q.Code {
	case session.CodeTooFew, session.CodeSecondHuman, session.CodeContested:
		places, err := r.placesWhere(ctx, q.MachineName, func(here *planning.State) bool { return byRoster(here.State) })
		if err != nil {
			return stored, err
		}
		if stored.Places != nil {
			places = slices.DeleteFunc(places, func(p session.Place) bool { return !slices.Contains(stored.Places, p) })
		}
		if len(q.Statuses) > 0 && !slices.Contains(q.Statuses, session.NeedsHuman) {
			places = places[:0]
		}
		stored.Code, stored.Statuses, stored.Places = "", []session.Status{session.NeedsHuman}, places
	}
	if q.After == "" {
		return stored, nil
	}
	id, at, err := q.Begin()
	stored.After = stored.CursorAfter(id, at)
	return stored, err
}

// summarizeNow brings why a session needs a human to what the roster makes of it now, where
// that can make a difference. A session that cannot be read stays as it is stored. machines
// are by their digests, as far as they have been seen.
func (r *Runner) summarizeNow(ctx context.Context, sum *session.Summary, machines map[string]*machine.Machine) {
	if sum.Status != session.NeedsHuman {
		return
	}
	if m := machines[sum.MachineDigest]; m != nil {
		if here := m.State(sum.CurrentState); here != nil && !byRoster(here) {
			return
		}
	}
	s, err := r.load(ctx, sum.SessionID)
	if err != nil {
		return
	}
	machines[s.Machine().Digest()] = s.Machine()
	if s.Sequence != sum.Sequence {
		return
	}
	if o, err := r.outcomeNow(ctx, s); err == nil {
		sum.Code, sum.Reason = o.Code, o.Reason
	}
}

// byRoster reports whether why a session waits in a state may depend on who is switched off.
func byRoster(s *machine.State) bool { return s.RuledBySome() || s.SecondBefore() }

// placesWhere returns the states of the definitions of a store for which is reports true.
func (r *Runner) placesWhere(ctx context.Context, machineName string, is func(*planning.State) bool) ([]session.Place, error) {
	definitions, err := r.store.Definitions(ctx, machineName)
	if err != nil {
		return nil, err
	}
	places := []session.Place{}
	for _, d := range definitions {
		sum := sha256.Sum256(d)
		program, err := r.programs.Parse(hex.EncodeToString(sum[:]), d)
		if err != nil {
			continue // nor can its sessions be read
		}
		p, err := r.planPartial(ctx, program)
		if err != nil {
			return nil, err
		}
		for i := range p.States {
			if is(&p.States[i]) {
				places = append(places, session.Place{MachineDigest: program.Machine.Digest(), State: program.Machine.States()[i].Name})
			}
		}
	}
	return places, nil
}
