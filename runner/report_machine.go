package runner

import (
	"context"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// A Deciding says how a machine decides now: by one definition of it, by everybody who
// is registered or switched off, and by all that is recorded so far. Reports are made
// of it. It does not follow what happens later, and may be used concurrently.
type Deciding struct {
	Machine *machine.Machine
	Ledger  *trust.Ledger   // must not be added to: Clone it for that
	States  []StateDeciding // by the index of the state

	runner *Runner
	plan   *plan
}

// A StateDeciding is a Deciding of one state.
type StateDeciding struct {
	planning.StateCast
	of *Deciding
}

// Deciding returns how the machine of a program decides. Nobody is asked, so nobody's
// code has to be there.
func (r *Runner) Deciding(ctx context.Context, program *session.Program) (*Deciding, error) {
	p, err := r.planPartial(ctx, program)
	if err != nil {
		return nil, err
	}
	l, err := r.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	d := &Deciding{Machine: p.Program.Machine, Ledger: l, States: make([]StateDeciding, len(p.States)), runner: r, plan: p}
	for i, c := range p.Casts() {
		d.States[i] = StateDeciding{c, d}
	}
	return d, nil
}

// Newest returns the program of the definition of a machine that was stored last. It
// returns ErrNotFound for a machine that was never run.
func (r *Runner) Newest(ctx context.Context, machineName string) (*session.Program, error) {
	definitions, err := r.store.Definitions(ctx, machineName)
	if err != nil {
		return nil, err
	}
	if len(definitions) == 0 || machineName == "" {
		return nil, &session.NotFoundError{What: "Machine", ID: machineName}
	}
	m, err := machine.Parse(machineName+".json", definitions[0], session.StoredChecks())
	if err != nil {
		return nil, &session.CorruptError{What: "the definition of machine " + machineName, Problem: err.Error()}
	}
	return r.programs.Of(m)
}

// newest returns the plan of the definition of a machine that was stored last.
func (r *Runner) newest(ctx context.Context, machineName string) (*plan, error) {
	program, err := r.Newest(ctx, machineName)
	if err != nil {
		return nil, err
	}
	return r.planPartial(ctx, program)
}

// lookIn returns an assessment of a state in no session: of a round in which nothing has
// happened.
func (r *Runner) lookIn(p *plan, s *machine.State) *assessment {
	now := r.now()
	return r.look(p, &session.Session{Program: p.Program, State: s, Round: 1, CreatedAt: now, UpdatedAt: now, OpenedAt: now})
}

// Saving says what asking in waves saves in the state, as the engine goes by it:
// replayed whenever the outcomes of the machine reach a multiple of
// trust.SavingsEvery. It is zero for other arbiters than bayes and as long as nothing
// is established.
func (s *StateDeciding) Saving() Saving { return s.look().saving(s.of.Ledger) }

// Stage returns where the state stands on the way that it declares, since when and why.
// It is zero for a state that declares none.
func (s *StateDeciding) Stage() session.Collapse { return s.of.plan.Roster.Collapse[s.State.Name] }

// Collapse says how far the state has come, and whether it declares a collapse at all
// that bayes can work with.
func (s *StateDeciding) Collapse(ctx context.Context) (c StateCollapse, declared bool, err error) {
	t := s.look()
	now, declared := t.collapse()
	if !declared {
		return c, false, nil
	}
	v, err := t.view(ctx, now)
	if err != nil {
		return c, true, err
	}
	return t.report(v), true, nil
}

func (s *StateDeciding) look() *assessment { return s.of.runner.lookIn(s.of.plan, s.State) }
