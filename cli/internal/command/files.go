package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
)

// How the command line reads files. What is read is bounded by its kind and can be interrupted,
// also on stdin; what a machine file names has to be below its folder unless --allow-outside
// says otherwise; and a file that is not there is answered with what was probably meant: a
// file of a like name, a sample, a command.

// LoadMachine reads a machine file; "-" is stdin.
func (a *App) LoadMachine(path string) (*machine.Machine, error) {
	data, err := a.ReadFile(path, files.Machine)
	if err != nil {
		return nil, err
	}
	return a.ParseMachine(path, data)
}

// ParseMachine reads the text of a machine file.
func (a *App) ParseMachine(path string, data []byte) (*machine.Machine, error) {
	checks := runner.Checks()
	checks.Model, checks.Secret = llm.CheckModel, packs.HoldsSecret
	checks.Include = func(name string) ([]byte, error) { return a.readNamed(filepath.Dir(path), name) }
	return machine.Parse(path, data, checks)
}

// readNamed reads a file that a machine file in a folder names. It is below that folder,
// unless --allow-outside says that it may be anywhere.
func (a *App) readNamed(dir, name string) ([]byte, error) {
	if a.Flags.AllowOutside {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return files.ReadRegular(name, files.Guards)
	}
	outside := fmt.Errorf("%s leads out of the folder of the machine file; --allow-outside reads it all the same", name)
	inside, ok := below(dir, name)
	if !ok {
		return nil, outside
	}
	data, err := files.ReadInside(dir, inside, files.Guards)
	if err != nil && strings.Contains(err.Error(), "escapes") {
		return nil, outside
	}
	return data, err
}

// below returns a name as one in a folder; ok is false if it is absolute and leads
// elsewhere, links resolved. Whether a file outside is there, it does not tell.
func below(dir, name string) (inside string, ok bool) {
	if !filepath.IsAbs(name) {
		return name, true
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	inside, err = filepath.Rel(resolved(dir), resolved(name))
	return inside, err == nil && filepath.IsLocal(inside)
}

// resolved returns a path without links, as far as it leads anywhere.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	switch above := filepath.Dir(path); {
	case err == nil:
		return real
	case above == path:
		return path
	default:
		return filepath.Join(resolved(above), filepath.Base(path))
	}
}

// ReadFile reads a file of a kind; "-" is stdin. An interrupt ends the wait for a terminal
// or a pipe that says nothing.
func (a *App) ReadFile(path string, k files.Kind) ([]byte, error) {
	return UntilInterrupted(a, func() ([]byte, error) { return a.readAll(path, k) })
}

// ReadKind reads a file of a kind that a person named, until an interrupt.
func (a *App) ReadKind(path string, k files.Kind) ([]byte, error) {
	return UntilInterrupted(a, func() ([]byte, error) { return files.Read(path, k) })
}

// UntilInterrupted returns what work does, which cannot be interrupted; if the program
// is, it goes on in the background, and the process ends soon.
func UntilInterrupted[T any](a *App, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := work()
		done <- result{value, err}
	}()
	var interrupted <-chan struct{}
	if a.Ctx != nil {
		interrupted = a.Ctx.Done()
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-interrupted:
		var none T
		return none, context.Canceled
	}
}

func (a *App) readAll(path string, k files.Kind) ([]byte, error) {
	if path == "-" {
		data, err := k.Read("-", a.In)
		return data, unreadable(path, k, err)
	}
	data, err := files.Read(path, k)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Hinted(Usage("Cannot find file: %s", path), "%s", a.SuggestFile(path))
	case err != nil:
		return nil, unreadable(path, k, err)
	}
	return data, nil
}

// unreadable says of a file that is no file, or too large for one, what other errors of a
// machine file say: where, what, and what to do.
func unreadable(path string, k files.Kind, err error) error {
	p := machine.Problem{File: path, Line: 1, Column: 1, Message: fmt.Sprint(Underlying(err))}
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, files.ErrTooLarge):
		if p.Code, hint = "too-large", "is it the right file?"; k == files.Machine {
			hint += " What proposers have to read belongs into files of their own"
		}
	case errors.Is(err, files.ErrNotRegular):
		p.Code, hint = "not-a-file", "name a file in JSON or YAML"
	default:
		return Fail(ExitUsage, err)
	}
	return Hinted(Fail(ExitUsage, &unreadableError{p, err}), "%s", hint)
}

// An unreadableError is a problem with a file as a whole.
type unreadableError struct {
	machine.Problem
	err error
}

func (e *unreadableError) Error() string { return e.Problem.String() }

// Unwrap returns what the reader of files said.
func (e *unreadableError) Unwrap() error { return e.err }

// SuggestFile helps those who meant another file, a command, or a sample.
func (a *App) SuggestFile(path string) string {
	dir, base := filepath.Split(path)
	if hint := a.SuggestCommand(path); hint != "" {
		return hint
	}
	entries, _ := os.ReadDir(filepath.Dir(path)) // if there is nothing to read, there is no hint
	var names []string
	for _, e := range entries {
		names = append(names, dir+e.Name())
	}
	if hint := machine.DidYouMean(path, names); hint != "" {
		return hint
	}
	for _, s := range machines.List() {
		if s.Name == strings.TrimSuffix(base, filepath.Ext(base)) {
			return fmt.Sprintf("dialai init --sample %s writes that sample", s.Name)
		}
	}
	return ""
}

// Underlying returns why a file cannot be opened, without its name.
func Underlying(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
