package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// How what a server remembers is copied with a store, from a file or a database to either. It is read before the store is,
// into a file that is thrown away, so that no cursor in it is ahead of the copy; and it is put in its place once the store is copied.

// A controlCopy is what a server remembers, while the store that it belongs to is copied.
type controlCopy struct {
	folder string // of the file that is thrown away
	put    func(ctx context.Context) (where string, err error)
}

// close throws the file away.
func (c *controlCopy) close() error {
	if c.folder == "" {
		return nil
	}
	return os.RemoveAll(c.folder)
}

// copyControl reads what a server remembers of a store. Of one of which nothing is remembered, and of a file that is copied to where it
// is remembered already, nothing is put. Where a store is there already, which is not copied over, copying it says why.
func (a *app) copyControl(ctx context.Context, c storeCopying, there bool) (copied controlCopy, err error) {
	copied.put = func(context.Context) (string, error) { return "", nil }
	from, fromAddress, err := a.PlaceOf(c.from)
	if err != nil {
		return copied, err
	}
	to, toAddress, err := a.PlaceOf(c.to)
	if err != nil {
		return copied, err
	}
	if c.control != "" {
		if from, fromAddress, err = a.PlaceOf(c.control); err != nil {
			return copied, err
		}
	} else if from != "" {
		from = store.ControlPath(from)
	}
	if to != "" {
		to = store.ControlPath(to)
	}
	if to == from && toAddress == fromAddress {
		return copied, nil
	}
	if _, err := os.Lstat(to); to != "" && err == nil && !c.resume && !there {
		return copied, command.Hinted(fmt.Errorf("%s is there already, and is not written over", to), "name another file, or remove it")
	}
	if copied.folder, err = os.MkdirTemp("", "dialai-copy-"); err != nil {
		return copied, err
	}
	held := filepath.Join(copied.folder, "control")
	found, err := a.holdControl(ctx, from, fromAddress, held)
	switch {
	case err != nil || !found:
		return copied, err
	case toAddress != "" && !c.resume:
		err = nothingThere(ctx, toAddress)
	}
	copied.put = func(ctx context.Context) (where string, err error) {
		_, err = a.withControl(ctx, held, func(control *store.Control) (err error) {
			if toAddress == "" {
				where = to
				if _, err := os.Lstat(to); err != nil {
					return control.Backup(ctx, to, nil)
				}
				into, err := store.OpenControl(ctx, to, store.SQLiteOptions{}) // of the run before
				if err != nil {
					return err
				}
				return errors.Join(store.CopyControl(ctx, control, into), into.Close())
			}
			into, err := postgres.OpenControl(ctx, toAddress, postgres.Options{})
			if err != nil {
				return err
			}
			where = into.Address()
			return errors.Join(store.CopyControl(ctx, control, into), into.Close())
		})
		return where, err
	}
	return copied, err
}

// holdControl copies what is remembered in a file, or at an address, to a file. It reports whether there is any of that.
func (a *app) holdControl(ctx context.Context, path, address, held string) (found bool, err error) {
	if address == "" {
		return a.withControl(ctx, path, func(control *store.Control) error { return control.Backup(ctx, held, nil) })
	}
	from, err := postgres.OpenControl(ctx, address, postgres.Options{Existing: true})
	if errors.Is(err, postgres.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if empty, err := store.ControlEmpty(ctx, from); err != nil || empty {
		return false, err
	}
	into, err := store.OpenControl(ctx, held, store.SQLiteOptions{})
	if err != nil {
		return false, err
	}
	return true, errors.Join(store.CopyControl(ctx, from, into), into.Close())
}

// nothingThere returns an error if servers remember something at an address.
func nothingThere(ctx context.Context, address string) error {
	there, err := postgres.OpenControl(ctx, address, postgres.Options{Existing: true})
	if errors.Is(err, postgres.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	empty, err := store.ControlEmpty(ctx, there)
	if err == nil && !empty {
		err = command.Hinted(fmt.Errorf("%s: servers remember something there already, and it is not written over", there.Address()), "name an empty database; what --resume finds there it replaces")
	}
	return cmp.Or(err, there.Close())
}
