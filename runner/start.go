package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Before a session exists, all that can be found wrong with it is: functions, variables and
// addresses that the machine names and this program lacks (the plan finds them, all at once),
// models without a price, metaJson that is not what the machine's input wants. Then data,
// subject and the conditions of the first round are worked out (cases.Open) and recorded with
// what the session was started with, so that reading its log needs none of that again. Under
// a tenant's quota it has to be let in before it is stored.

// maxSessionMeta is the largest metaJson of a session, in bytes.
const maxSessionMeta = 256 << 10

// StartOptions say how a session is started. The zero value starts it plainly.
type StartOptions struct {
	Meta []byte // metaJson: one JSON value, or nil; null means that there is none
	Seed uint64 // of the random choices; 0: other ones for each session
	Mode machine.Mode
	// Defaults lets firstAvailable propose and firstProposal arbitrate where
	// the machine has nobody, as DIAL's runSession does.
	Defaults bool
	// Arbitrated refuses a machine that nobody arbitrates, as what is missing is: a driver would
	// try its sessions in vain.
	Arbitrated bool
	// Actor is who starts the session; nil if that is not said. Its Humans are excluded
	// where approvals exclude who has started.
	Actor *session.Actor
	// ID is the id of the session, such as one that follows from a request, so that the
	// request starts one session however often it is made; the zero ID is one that the engine
	// makes (Config.NewID).
	ID specialist.SessionID
	// AllowMissing are specialists without whom the session may start: those of them who
	// cannot be asked here are as if they were switched off, as long as it goes on, and its
	// log says so.
	AllowMissing []machine.SpecialistID
	// Driver says who carries the session on by itself; the zero value is any process that carries on
	// those of its store. With session.DriverNone it stands until it is stepped or run by name.
	Driver session.Driver
}

// Start begins a session of a machine: DIAL's createSession. Everything that the
// machine names must be there: functions, variables, addresses; if not, the
// error is a *StartError with all that is missing. It wraps [session.ErrExists] if there is a
// session of that id.
func (r *Runner) Start(ctx context.Context, m *machine.Machine, o StartOptions) (*session.Session, error) {
	if m == nil {
		return nil, refuse(ErrIllegal, "no_machine", "there is no machine to start: machine.Parse makes one")
	}
	program, err := r.programs.Of(m)
	if err != nil {
		return nil, err
	}
	plan, err := r.planWithout(ctx, program, o.AllowMissing)
	if err != nil {
		return nil, planning.Placed(m, err)
	}
	program = plan.Program
	if err := r.drives(m, plan); err != nil {
		return nil, err
	}
	if err := r.unpricedModels(m, plan); err != nil {
		return nil, err
	}
	if err := checkDriver(o.Driver); err != nil {
		return nil, err
	}
	options := session.Options{Seed: o.Seed, Mode: o.Mode, Prices: r.pricesOf(m), Missing: program.Missing(), Driver: o.Driver}
	switch o.Mode {
	case "", machine.All, machine.Eager, machine.Sequential:
	default:
		return nil, refuse(ErrIllegal, "bad_mode", "mode is %q, it may be all, eager or sequential", o.Mode)
	}
	if o.Meta != nil {
		if len(o.Meta) > maxSessionMeta {
			return nil, refuse(ErrIllegal, "too_large", "metaJson is larger than %d bytes", maxSessionMeta)
		}
		if options.Meta, err = jsontext.Tidy(o.Meta); err != nil {
			return nil, refuse(ErrIllegal, "bad_meta", "metaJson is not one JSON value: %v", err)
		}
		if string(options.Meta) == "null" {
			options.Meta = nil
		}
	}
	if err := planning.Fitting(m, options.Meta); err != nil {
		return nil, err
	}
	if err := checkActor(o.Actor); err != nil {
		return nil, err
	}
	if options.Actor, err = planning.Starter(m, o.Actor); err != nil {
		return nil, err
	}
	switch proposer, arbiter := plan.Lacking(); {
	case o.Defaults:
		options.DefaultProposer, options.DefaultArbiter = proposer, arbiter
	case o.Arbitrated && arbiter:
		return nil, &planning.StartError{Problems: []error{noArbiter(m)}}
	}
	now := r.now()
	plan.Cases.Open(ctx, program, &options, now)
	if o.ID == (specialist.SessionID{}) {
		o.ID = r.config.NewID()
	} else if err := r.unknown(ctx, o.ID); err != nil {
		return nil, err
	}
	s := session.New(o.ID, program, options, now)
	if r.quota == nil {
		return r.create(ctx, s)
	}
	if err := r.admitted(ctx, s); err != nil {
		return nil, err
	}
	started, err := r.create(ctx, s)
	if err != nil && !errors.Is(err, session.ErrExists) || err == nil && !started.Status.Live() {
		r.quota.Refuse(r.scope(s))
	}
	return started, err
}

// planWithout is plan, without those of the allowed who cannot be asked.
func (r *Runner) planWithout(ctx context.Context, program *session.Program, allowed []machine.SpecialistID) (*plan, error) {
	p, err := r.plan(ctx, program)
	if p == nil || len(allowed) == 0 {
		return p, err
	}
	for _, id := range allowed {
		if !p.Knows(string(id)) {
			return nil, refuse(ErrIllegal, "unknown_specialist", "machine %q has no specialist %q who could be missing", program.Machine.Name(), id)
		}
	}
	var without []string
	for _, id := range p.Absent {
		if slices.Contains(allowed, machine.SpecialistID(id)) {
			without = append(without, id)
		}
	}
	if err == nil || without == nil {
		return p, err
	}
	slices.Sort(without)
	return r.plan(ctx, program.Without(slices.Compact(without)))
}

// unknown returns an error unless there is no session of that id. Who starts one at the
// same moment is told by the store.
func (r *Runner) unknown(ctx context.Context, id specialist.SessionID) error {
	switch _, err := r.load(ctx, id); {
	case err == nil:
		return fmt.Errorf("starting session %s: %w", id, session.ErrExists)
	case !errors.Is(err, session.ErrNotFound):
		return err
	}
	return nil
}

// checkActor refuses an actor of whom only a half is said; nil is one that nobody named.
func checkActor(a *session.Actor) error {
	if a == nil || a.Known() {
		return nil
	}
	return refuse(ErrIllegal, "actor", "an actor has a subject and a method, not %q and %q", a.Subject, a.Method)
}

// checkManner refuses how no word can have been given, and has nobody look longer than MaxLooked.
func checkManner(m *session.Manner) error {
	switch {
	case m.Looked < 0:
		return refuse(ErrIllegal, session.CodeIllegal, "looked is %d milliseconds: it must not be negative", m.Looked)
	case len(m.Note) > maxReasoning:
		return refuse(ErrIllegal, session.CodeIllegal, "note is larger than %d bytes", maxReasoning)
	}
	m.Looked = min(m.Looked, session.MaxLooked)
	return nil
}

// holds asks the condition of an act, if it has one, of the session that the act is about
// to change.
func holds(condition func(*session.Session) error, s *session.Session) error {
	if condition == nil {
		return nil
	}
	return condition(s)
}

// create commits the first record of a session.
func (r *Runner) create(ctx context.Context, s *session.Session) (*session.Session, error) {
	o := session.NewOpening(s)
	defer o.Release()
	c := &o.Change
	if err := r.commitTraced(ctx, c); err != nil {
		return nil, fmt.Errorf("starting session %s: %w", s.ID, err)
	}
	r.announce(c)
	return c.After, nil
}

// Session returns a session as last committed.
func (r *Runner) Session(ctx context.Context, id specialist.SessionID) (*session.Session, error) {
	return r.load(ctx, id)
}

// drives returns a [*StartError] unless this program drives every coding agent that takes
// part.
func (r *Runner) drives(m *machine.Machine, p *plan) error {
	var problems []error
	known := map[string]bool{}
	for i := range p.States {
		for _, s := range p.States[i].Members {
			if s.Off || s.Source != specialist.Agent || known[s.SpecialistID] {
				continue
			}
			known[s.SpecialistID] = true
			if r.config.Agents == nil {
				problems = append(problems, fmt.Errorf("specialist %q is the coding agent %q, and this program drives none: dialai undertake does", s.SpecialistID, s.Agent))
			} else if err := r.config.Agents(m, s.Specialist); err != nil {
				problems = append(problems, fmt.Errorf("specialist %q: %w", s.SpecialistID, err))
			}
		}
	}
	if problems == nil {
		return nil
	}
	return planning.Placed(m, &planning.StartError{Problems: problems})
}
