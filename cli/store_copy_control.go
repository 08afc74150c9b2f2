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
// into a file that is thrown away, so that no cursor in it is ahead of the copy. For good it is read once more when nobody can
// write to the store any more, and then nobody can write to it either. It is put in its place before anybody can open the copy.

// A controlPlace is where what a server remembers is: a file, or a schema at an address.
type controlPlace struct{ path, address string }

// A remembering is what a server remembers, opened.
type remembering interface {
	store.Remembering
	Close() error
}

// controlPlace returns where what servers remember of a store is; control names it where it is not beside the store.
func (a *app) controlPlace(of, control string) (p controlPlace, err error) {
	if p.path, p.address, err = a.PlaceOf(cmp.Or(control, of)); control == "" && p.path != "" {
		p.path = store.ControlPath(p.path)
	}
	return p, err
}

// with does something with what is remembered in a place; nothing where there is none, unless it is made.
func (p controlPlace) with(ctx context.Context, made bool, do func(remembering) error) error {
	c, err := p.open(ctx, made)
	if err != nil || c == nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}

// open opens a place; nil if nothing is there, and it is not made.
func (p controlPlace) open(ctx context.Context, made bool) (remembering, error) {
	if p.address != "" {
		c, err := postgres.OpenControl(ctx, p.address, postgres.Options{Existing: !made, Standby: !made})
		switch {
		case errors.Is(err, postgres.ErrNone):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return c, nil
	}
	if _, err := os.Stat(p.path); !made && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	c, err := store.OpenControl(ctx, p.path, store.SQLiteOptions{})
	if errors.Is(err, store.ErrReadOnly) {
		c, err = store.OpenControl(ctx, p.path, store.SQLiteOptions{ReadOnly: true})
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// A controlCopy is what a server remembers, while the store that it belongs to is copied.
type controlCopy struct {
	from, to controlPlace
	resume   bool
	folder   string // of what is thrown away
	held     string // the file that has it; "" if nothing is remembered
	where    string // it was copied to; "" if it was not
}

// copyControl reads what a server remembers of a store. there says that the store that it is copied to is a file that is there already,
// which is not copied over: copying it says why.
func (a *app) copyControl(ctx context.Context, s storeCopying, there bool) (c *controlCopy, err error) {
	c = &controlCopy{resume: s.resume}
	if c.from, err = a.controlPlace(s.from, s.control); err != nil {
		return c, err
	}
	if c.to, err = a.controlPlace(s.to, ""); err != nil || c.from == c.to {
		return c, err
	}
	if _, err := os.Lstat(c.to.path); c.to.path != "" && err == nil && !c.resume && !there {
		return c, command.Hinted(fmt.Errorf("%s is there already, and is not written over", c.to.path), "name another file, or remove it")
	}
	if c.folder, err = os.MkdirTemp("", "dialai-copy-"); err != nil {
		return c, err
	}
	return c, c.hold(ctx)
}

// close throws away what was read.
func (c *controlCopy) close() error {
	if c.folder == "" {
		return nil
	}
	return os.RemoveAll(c.folder)
}

// hold reads what is remembered, as it is now.
func (c *controlCopy) hold(ctx context.Context) error {
	folder, err := os.MkdirTemp(c.folder, "read-")
	if err != nil {
		return err
	}
	err = c.from.with(ctx, false, func(from remembering) error {
		if empty, err := store.ControlEmpty(ctx, from); err != nil || empty {
			return err
		}
		c.held = filepath.Join(folder, "control")
		if file, is := from.(*store.Control); is {
			return file.Backup(ctx, c.held, nil)
		}
		return controlPlace{path: c.held}.with(ctx, true, func(into remembering) error { return store.CopyControl(ctx, from, into) })
	})
	if err != nil || c.held == "" || c.to.address == "" || c.resume {
		return err
	}
	return c.to.with(ctx, false, func(there remembering) error {
		empty, err := store.ControlEmpty(ctx, there)
		if err == nil && !empty {
			err = command.Hinted(fmt.Errorf("%s: servers remember something there already, and it is not written over", there.(*postgres.Control).Address()), "name an empty database; what --resume finds there it replaces")
		}
		return err
	})
}

// freeze has nobody write to what is remembered any more, also where nothing is yet, since its store was copied to another one for good, and
// reads it once more.
func (c *controlCopy) freeze(ctx context.Context, to string) error {
	if c.from == c.to {
		return nil
	}
	if err := c.from.with(ctx, true, func(from remembering) error { return from.Freeze(ctx, to) }); err != nil {
		return err
	}
	return c.hold(ctx)
}

// put puts what was read in its place.
func (c *controlCopy) put(ctx context.Context) error {
	if c.held == "" {
		return nil
	}
	return controlPlace{path: c.held}.with(ctx, false, func(from remembering) error {
		return c.to.with(ctx, true, func(into remembering) error {
			switch into := into.(type) {
			case *store.Control:
				c.where = into.Path()
			case *postgres.Control:
				c.where = into.Address()
			}
			return store.CopyControl(ctx, from, into)
		})
	})
}
