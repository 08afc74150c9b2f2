package cli

import (
	"context"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/session"
)

// gates judges every step of the sessions of a machine by the guards of a file;
// nil without one. The course stays as it was: a step that was executed counts as
// executed.
func (a *app) gates(ctx context.Context, e *engine, machineName, path string) (*guardlog.GatesAgain, error) {
	if path == "" {
		return nil, nil
	}
	c, states, err := guards.LoadAnyGuards(a.App, path)
	if err != nil {
		return nil, command.Fail(command.ExitUsage, err)
	}
	g := &guardlog.GatesAgain{}
	for sum, err := range session.Each(ctx, e.Sessions, session.ListQuery{MachineName: machineName}) {
		if err != nil {
			return nil, err
		}
		s, err := e.Session(ctx, sum.SessionID)
		if err != nil {
			return nil, err
		}
		if err := g.Judge(s, e.Store.Records(ctx, s.ID, 1), guard.NewReplayer(c, states)); err != nil {
			return nil, err
		}
	}
	return g, nil
}
