package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

// The environment is read in this file only.

func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// defaultStore returns the path of the store that is used when none is named.
func (a *app) defaultStore() (string, error) {
	dir := a.env("XDG_DATA_HOME")
	if dir == "" || !filepath.IsAbs(dir) {
		home := a.env("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return "", errors.New("neither XDG_DATA_HOME nor HOME is set, so there is no default store; name one with --store")
			}
		}
		dir = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(dir, "dialai", "dialai.db"), nil
}

// storePath returns the path of the SQLite file that --store names, "" for the
// memory store.
func (a *app) storePath() (string, error) {
	name := a.flags.store
	if name == "env" {
		if name = a.env("DATABASE_URL"); name == "" {
			return "", usage("--store env, but the DATABASE_URL environment variable is not set")
		}
	}
	return a.parseStore(name)
}

func (a *app) parseStore(name string) (string, error) {
	switch {
	case name == "":
		return a.defaultStore()
	case name == "memory:":
		return "", nil
	case strings.HasPrefix(name, "postgres://"), strings.HasPrefix(name, "postgresql://"):
		return "", usage("Postgres is not part of this version; use a SQLite file")
	case strings.HasPrefix(name, "sqlite:"):
		name = strings.TrimPrefix(strings.TrimPrefix(name, "sqlite:"), "//")
		if name == "" {
			return "", usage("--store sqlite: needs a path behind it")
		}
	}
	return name, nil
}

// A closableStore is any of the stores.
type closableStore interface {
	runner.Store
	io.Closer
}

func (a *app) openStore(ctx context.Context) (closableStore, error) {
	path, err := a.storePath()
	if err != nil {
		return nil, err
	}
	if path == "" {
		return store.NewMemory(), nil
	}
	s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
	if err != nil {
		return nil, a.storeHint(err)
	}
	return s, nil
}

// storeHint adds to an error of opening what can be done about it.
func (a *app) storeHint(err error) error {
	if errors.Is(err, store.ErrReadOnly) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w\n    hint: name a store that can be written with --store PATH, or run with --store memory: and keep nothing", err)
	}
	return err
}

// An engine is a runner with its store.
type engine struct {
	*runner.Runner
	store closableStore
}

// Close closes both.
func (e *engine) Close() error { return errors.Join(e.Runner.Close(), e.store.Close()) }

// engine builds the runner that the environment and the flags describe.
func (a *app) engine(ctx context.Context, observer func(runner.Record)) (*engine, error) {
	policy, err := webhook.ParsePolicy(a.env("DIALAI_WEBHOOK_ALLOW"))
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	hooks := webhook.Config{Policy: policy, Lookup: a.lookup}
	if names := strings.Fields(strings.ReplaceAll(a.env("DIALAI_WEBHOOK_TOKEN_NAMES"), ",", " ")); len(names) > 0 {
		hooks.TokenNames = names
	}
	s, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{
		Store: s, Registry: a.registry, Remote: webhook.New(hooks), Observer: observer,
		PublicURL: strings.TrimRight(a.env("DIALAI_PUBLIC_URL"), "/"), AllowOperator: true,
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &engine{r, s}, nil
}

// loadMachine reads a machine file; "-" is stdin.
func (a *app) loadMachine(path string) (*machine.Machine, error) {
	data, err := a.readFile(path)
	if err != nil {
		return nil, err
	}
	checks := runner.Checks()
	checks.Include = func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return os.ReadFile(name)
	}
	return machine.Parse(path, data, checks)
}

// maxInput bounds what is read of a file: one byte more than any machine may
// have, so that the loader can say that it is too large.
const maxInput = 1<<20 + 1

func (a *app) readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.in, maxInput))
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage("Cannot find file: %s%s", path, a.suggest(path))
	}
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, usage("%s is a directory, not a machine file", path)
	}
	return io.ReadAll(io.LimitReader(f, maxInput))
}

// suggest helps those who meant a command.
func (a *app) suggest(word string) string {
	var names []string
	for _, c := range a.root().Commands() {
		names = append(names, c.Name())
	}
	if hint := machine.DidYouMean(word, names); hint != "" {
		return "\n    hint: " + hint + " (a command)"
	}
	return ""
}
