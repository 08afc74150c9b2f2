package serving

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The keys of a server that runs, which makes them and records who has it do so.

// Distant returns the server that --server names, and what turns its errors into those of
// commands.
type Distant func() (*client.Client, func(error) error, error)

// timeOf writes a moment as requests have it; 0 is none.
func timeOf(at specialist.Time) string {
	if at == 0 {
		return ""
	}
	return at.Time().UTC().Format(time.RFC3339Nano)
}

// createAt has a server make a key.
func (k *keys) createAt(ctx context.Context, key control.Key) error {
	c, told, err := k.distant()
	if err != nil {
		return err
	}
	made, err := c.CreateKey(ctx, api.NewKey{Name: key.Name, Grants: key.Grants, ExpiresAt: timeOf(key.ExpiresAt)}, client.Write{})
	if err != nil {
		return told(err)
	}
	return k.MadeKey(k.Out, made)
}

// listAt lists the keys of a server.
func (k *keys) listAt(ctx context.Context, all bool) error {
	c, told, err := k.distant()
	if err != nil {
		return err
	}
	shown := []api.Key{}
	for key, err := range c.Keys(ctx, all) {
		if err != nil {
			return told(err)
		}
		shown = append(shown, key)
	}
	return k.Keys(k.Out, shown, command.Now())
}

// revokeAt has a server refuse a key.
func (k *keys) revokeAt(ctx context.Context, id string) error {
	c, told, err := k.distant()
	if err != nil {
		return err
	}
	key, err := c.RevokeKey(ctx, id)
	if err != nil {
		return unknown(id, told(err))
	}
	return k.Revoked(k.Out, key, command.Now())
}

// rotateAt has a server make a key in the place of another.
func (k *keys) rotateAt(ctx context.Context, id string, overlap time.Duration, expires specialist.Time) error {
	c, told, err := k.distant()
	if err != nil {
		return err
	}
	made, err := c.RotateKey(ctx, id, api.Rotation{Overlap: overlap.String(), ExpiresAt: timeOf(expires)}, client.Write{})
	if err != nil {
		return unknown(id, told(err))
	}
	return k.MadeKey(k.Out, made)
}

// unknown says of a key that is not found what its id would be. Other errors stay as they are.
func unknown(id string, err error) error {
	switch {
	case !errors.Is(err, session.ErrNotFound):
		return err
	case strings.HasPrefix(id, "dk_"):
		return command.Hinted(command.Usage("that is a key, and not the id of one"), "its id is what stands between its first two _")
	}
	return command.Hinted(&session.NotFoundError{What: "Key", ID: id}, "dialai keys list --all lists them")
}
