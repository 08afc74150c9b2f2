package cli

import (
	"bufio"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/serving"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What commands do with sessions, whether these are in a store or at a server that --server
// names.

// operations are what commands do with sessions that a server offers, too: a Runner has them,
// and so has a server.
type operations interface {
	Session(ctx context.Context, id specialist.SessionID) (*session.Session, error)
	Sessions(ctx context.Context, q session.ListQuery) ([]session.Summary, error)
	Inbox(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) ([]runner.Question, session.Cursor, error)
	Question(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (runner.Question, error)
	Reveal(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID, by *session.Actor) (runner.Question, *session.Session, error)
	Humans(ctx context.Context, s *session.Session) (ids []string, declared bool, err error)
	Outcome(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (session.Outcome, error)
	Start(ctx context.Context, m *machine.Machine, o runner.StartOptions) (*session.Session, error)
	Run(ctx context.Context, id specialist.SessionID, o runner.RunOptions) (runner.Result, error)
	Resume(ctx context.Context, id specialist.SessionID, o runner.ResumeOptions) (*session.Session, error)
	Decide(ctx context.Context, in runner.Ruling) (runner.Arbitration, error)
	Propose(ctx context.Context, in runner.Submission) (*specialist.Proposal, *session.Session, error)
	Stop(ctx context.Context, id specialist.SessionID, why runner.Stopping) (*session.Session, error)
	Fork(ctx context.Context, id specialist.SessionID, o runner.Forking) (*session.Session, error)
	Move(ctx context.Context, id specialist.SessionID, m *machine.Machine, o runner.Moving) (*session.Session, error)
	Retract(ctx context.Context, in runner.Retracting) (*session.Session, error)
	Reviews(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) ([]runner.ReviewItem, session.Cursor, error)
	RevealReview(ctx context.Context, id specialist.SessionID, roundID string, viewer machine.SpecialistID, by *session.Actor) (*session.Session, error)
	HumansIn(ctx context.Context, machineName string, state machine.StateName) (ids []string, declared bool, err error)
	Promote(ctx context.Context, o runner.Order, id machine.SpecialistID) (*trust.Certificate, error)
	Demote(ctx context.Context, o runner.Order) error
	Freeze(ctx context.Context, o runner.Order, on bool) error
	Switch(ctx context.Context, machineName string, id machine.SpecialistID, to runner.Switching) error
}

// hooks returns what the server that --server names does with webhooks.
func (a *app) hooks(ctx context.Context) (serving.Hooks, error) {
	far, err := remote.Open(ctx, a.App, nil)
	if err != nil {
		return nil, err
	}
	return far.Client, nil
}

// here is the Runner of an engine. Its methods are beneath the operations, which are the
// same ones but at a server.
type here struct{ *command.Engine }

// An engine is a runner with its store, or a server.
type engine struct {
	operations
	here
	far *remote.Server // nil but at a server, where there is neither a Runner nor a store
}

// knows returns an error if no session of a machine is in the store: what it is asked
// about is more likely misspelt than new.
func (e *engine) knows(ctx context.Context, machineName string) error {
	if e.far != nil {
		return e.far.Knows(ctx, machineName)
	}
	definitions, err := e.Store.Definitions(ctx, machineName)
	if err == nil && (len(definitions) == 0 || machineName == "") {
		err = &session.NotFoundError{What: "Machine", ID: machineName}
	}
	return err
}

// Close closes what is here; a server goes on.
func (e *engine) Close() error {
	if e.far != nil {
		return nil
	}
	return e.Engine.Close()
}

// with runs f with an engine that is closed afterwards.
func (a *app) with(ctx context.Context, does command.Access, f func(e *engine, out *bufio.Writer) error) error {
	e, err := a.engine(ctx, does, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	out := bufio.NewWriter(a.Out)
	return errors.Join(f(e, out), out.Flush())
}

// on is what a command runs that does nothing but with an engine.
func (a *app) on(does interface{ Access() command.Access }, do func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), does.Access(), func(e *engine, out *bufio.Writer) error { return do(cmd.Context(), e, out, args) })
	}
}

// distantClient returns the server that --server names, and what its errors mean here.
func (a *app) distantClient() (*client.Client, func(error) error, error) {
	far, err := remote.Open(a.Ctx, a.App, nil)
	if err != nil {
		return nil, nil, err
	}
	return far.Client, far.Told, nil
}

// judgeAt judges steps at the server that --server names.
func (a *app) judgeAt(ctx context.Context, in api.Checking) (api.Checked, error) {
	far, err := remote.Open(ctx, a.App, nil)
	if err != nil {
		return api.Checked{}, err
	}
	out, err := far.Check(ctx, in)
	return out, far.Told(err)
}

// engine builds the runner that the environment and the flags describe.
func (a *app) engine(ctx context.Context, does command.Access, p *printer) (*engine, error) {
	if a.Flags.Server != "" {
		var shows remote.Shows
		if p != nil {
			shows = p
		}
		far, err := remote.Open(ctx, a.App, shows)
		if err != nil {
			return nil, err
		}
		if p != nil {
			p.far = far
		}
		return &engine{operations: far, far: far}, nil
	}
	var observer func(session.Change)
	if p != nil {
		observer = p.observe
	}
	e, err := a.EngineFor(ctx, does, observer, true)
	if err != nil {
		return nil, err
	}
	return &engine{operations: e.Runner, here: here{e}}, nil
}
