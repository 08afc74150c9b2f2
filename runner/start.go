package runner

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

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
}

// Start begins a session of a machine: DIAL's createSession. Everything that the
// machine names must be there: functions, variables, addresses; if not, the
// error is a *StartError with all that is missing.
func (r *Runner) Start(ctx context.Context, m *machine.Machine, o StartOptions) (*session.Session, error) {
	if m == nil {
		return nil, refuse(ErrIllegal, "no_machine", "there is no machine to start: machine.Parse makes one")
	}
	program, err := r.programs.Of(m)
	if err != nil {
		return nil, err
	}
	plan, err := r.plan(ctx, program)
	if err != nil {
		return nil, placed(m, err)
	}
	if err := r.unpricedModels(m, plan); err != nil {
		return nil, err
	}
	options := session.Options{Seed: o.Seed, Mode: o.Mode, Prices: r.pricesOf(m)}
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
	if o.Defaults {
		options.DefaultProposer, options.DefaultArbiter = plan.lacking()
	}
	s := session.New(r.config.NewID(), program, options, r.now())
	if r.quota == nil {
		return r.create(ctx, s)
	}
	if err := r.admitted(ctx, s); err != nil {
		return nil, err
	}
	started, err := r.create(ctx, s)
	if err != nil || !started.Status.Live() {
		_ = r.quota.Close(r.scope(s)) // it has no calls yet
	}
	return started, err
}

// create commits the first record of a session.
func (r *Runner) create(ctx context.Context, s *session.Session) (*session.Session, error) {
	o := session.NewOpening(s)
	defer o.Release()
	c := &o.Change
	if err := r.store.Commit(ctx, c); err != nil {
		return nil, fmt.Errorf("starting session %s: %w", s.ID, err)
	}
	r.announce(c)
	return c.After, nil
}

// lacking reports whether nobody at all proposes, and whether nobody arbitrates.
// Who is switched off is not lacking: switching somebody off must not let
// anybody else in.
func (p *plan) lacking() (proposer, arbiter bool) {
	proposer, arbiter = true, true
	for i := range p.states {
		if len(p.states[i].members) > 0 {
			proposer = false
		}
		if p.states[i].judged {
			arbiter = false
		}
	}
	return proposer, arbiter
}

// Session returns a session as last committed.
func (r *Runner) Session(ctx context.Context, id specialist.SessionID) (*session.Session, error) {
	return r.load(ctx, id)
}

// Sessions lists sessions in the order in which they were created.
func (r *Runner) Sessions(ctx context.Context, q session.ListQuery) ([]session.Summary, error) {
	return r.store.List(ctx, q)
}
