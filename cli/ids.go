package cli

import (
	"context"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// id returns the id of a session as a person writes it.
func (e *engine) id(ctx context.Context, text string) (specialist.SessionID, error) {
	return command.FindID(ctx, e.Sessions, text)
}

// session returns a session by its id as a person writes it.
func (e *engine) session(ctx context.Context, text string) (*session.Session, error) {
	id, err := e.id(ctx, text)
	if err != nil {
		return nil, err
	}
	return e.Session(ctx, id)
}
