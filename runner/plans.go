package runner

import (
	"context"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/session"
)

// A plan is who takes part in each state (planning.Plan), with the gates through which its
// transitions are executed. It is kept by program, and made again when the roster has
// changed or something was missing. Whoever is going to ask takes plan, which fails then;
// whoever only rules or looks takes planPartial.
type plan struct {
	*planning.Plan
	gates [][]gate // by index of the state and of the transition
}

func newPlan(c *planning.Plan) *plan {
	p := &plan{c, make([][]gate, len(c.States))}
	for i := range c.States {
		transitions := c.States[i].State.Transitions
		p.gates[i] = make([]gate, len(transitions))
		for j, t := range transitions {
			p.gates[i][j].init(t)
		}
	}
	return p
}

// surroundings returns what this program has for specialists.
func (r *Runner) surroundings() planning.Surroundings {
	return planning.Surroundings{Resolver: r.config.Resolver, Asker: r.asker}
}

// plan returns the plan of a program under the present roster. Everybody in it
// can be asked.
func (r *Runner) plan(ctx context.Context, p *session.Program) (*plan, error) {
	made, err := r.planFor(ctx, p, false)
	if err == nil {
		err = made.Missing
	}
	return made, err
}

// planPartial is plan where nobody will be asked: what asking takes may be missing.
func (r *Runner) planPartial(ctx context.Context, p *session.Program) (*plan, error) {
	return r.planFor(ctx, p, true)
}

// planFor makes a plan, or returns the one that it made. Unless partial will do, it
// looks again for what was missing.
func (r *Runner) planFor(ctx context.Context, p *session.Program, partial bool) (*plan, error) {
	p = p.Base // limits that were raised for one session change nobody's part
	roster, err := r.store.Roster(ctx, p.Machine.Name())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	known, _ := r.plans.Get(p)
	r.mu.Unlock()
	if known != nil && known.Roster == roster && (partial || known.Missing == nil) {
		return known, nil
	}
	made := newPlan(planning.Make(r.surroundings(), p, roster))
	r.mu.Lock()
	r.plans.Put(p, made)
	r.mu.Unlock()
	return made, nil
}
