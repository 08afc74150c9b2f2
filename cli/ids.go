package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// id returns the id of a session as a person writes it.
func (e *engine) id(ctx context.Context, text string) (specialist.SessionID, error) {
	id, err := command.FindID(ctx, e.Sessions, text)
	if s, ok := e.stored().(interface {
		Archived(ctx context.Context, prefix string) error
	}); ok && errors.Is(err, session.ErrNotFound) && text != "" {
		err = cmp.Or(s.Archived(ctx, strings.ToLower(text)), err)
	}
	return id, err
}

// stored returns the store that is here, nil at a server.
func (e *engine) stored() session.Store {
	if e.far != nil {
		return nil
	}
	return e.Store
}

// session returns a session by its id as a person writes it.
func (e *engine) session(ctx context.Context, text string) (*session.Session, error) {
	id, err := e.id(ctx, text)
	if err != nil {
		return nil, err
	}
	return e.Session(ctx, id)
}
