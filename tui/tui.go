// Package tui shows an undertaking in a terminal, and turns keys into calls: what it shows is a
// fold of the undertaking's logs, and it decides nothing by itself.
//
// [New] makes a [Screen]; whoever drives or follows the undertaking hands it what is now
// ([Screen.Show]) and what happens ([Screen.Line]); [Screen.Run] shows that until the human leaves
// or the undertaking has ended. What the keys ask for are calls of [Acts].
//
// The view is a pure function of what was handed over and typed: it reads no clock and does no
// I/O, so that a test draws every screen without a terminal.
package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// Acts are what keys ask for. Each is called on a goroutine of its own, and returns what people
// are told of it. A screen that only watches has none of them but Quit.
type Acts struct {
	// Begin starts an undertaking about what is typed, if none is shown yet.
	Begin func(text string) (string, error)
	// Say says something to the undertaking.
	Say func(text string, deliver agent.Delivery) (string, error)
	// Rule makes a move in the place of whoever is asked.
	Rule func(Ruling) (string, error)
	// Hold has all turns end, and Resume asks again whose asks have ended.
	Hold   func()
	Resume func() (string, error)
}

// A Ruling is a move that a human has chosen, in the round that was shown.
type Ruling struct {
	Session    string // of the undertaking, or of a permission
	Round      string // its id
	Transition string
	Message    string // "" if the move takes none
}

// A Config is what a screen is made of.
type Config struct {
	Acts
	In    io.Reader
	Out   io.Writer
	Env   []string // for the terminal's abilities; NO_COLOR among them
	Watch bool     // nobody acts
	ASCII bool     // draw with ASCII only
}

// A Prompt is a permission that waits for the human.
type Prompt struct {
	Session, Round string
	Agent, Tool    string
	Input          string // what the tool would do, in lines
	Why            string
	Kind           string // dangerous, shell …
	Since          time.Time
	Parked         bool // the agent does other work meanwhile
}

// Permission returns what a status says of it.
func (p *Prompt) Permission() undertaking.Permission {
	return undertaking.Permission{Session: p.Session, Tool: p.Tool, Since: p.Since, Parked: p.Parked}
}

// A Now is what there is to show.
type Now struct {
	Session *session.Session // nil: no undertaking has begun
	State   undertaking.State
	Prompts []Prompt // the oldest first
	Gone    bool     // no living process drives it
	At      time.Time
}

// ErrLeft says that the human has left, and the undertaking goes on without them.
var ErrLeft = errors.New("the human has left")

// ErrBroken says that a panic has ended the screen. Where it was stands on stderr.
var ErrBroken = errors.New("the screen has failed by a fault of this program, which stands above")

// A Screen is one program on a terminal. Its methods but Run may be called by anybody, while Run
// runs and before; after it they do nothing.
type Screen struct {
	program *tea.Program
	pending *throttle
}

// New returns a Screen. ctx ends it.
func New(ctx context.Context, c Config) *Screen {
	s := &Screen{}
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(c.In), tea.WithOutput(c.Out), tea.WithoutSignalHandler(), tea.WithFPS(60)}
	if c.Env != nil {
		options = append(options, tea.WithEnvironment(c.Env))
	}
	s.program = tea.NewProgram(newModel(c), options...)
	s.pending = newThrottle(func(n news) { s.program.Send(n) })
	return s
}

// Show shows what is now. What is handed over faster than it can be seen is passed over.
func (s *Screen) Show(n Now) { s.pending.put(func(to *news) { to.now = &n }) }

// Line notes what has happened.
func (s *Screen) Line(l undertaking.Line) {
	s.pending.put(func(to *news) { to.lines = append(to.lines, l) })
}

// End says that the undertaking has ended or cannot go on, and with what problem.
func (s *Screen) End(n Now, problem error) {
	last := s.pending.stop()
	last.now = &n
	s.program.Send(last)
	s.program.Send(ended{problem})
}

type ended struct{ problem error }

// Run shows the screen until it ends: nil after the undertaking has, ErrLeft when the human leaves
// before, ErrBroken after a panic. Whatever ends it, the terminal is as it was.
func (s *Screen) Run() error {
	m, err := s.program.Run()
	s.pending.stop()
	if errors.Is(err, tea.ErrProgramPanic) {
		return ErrBroken
	}
	if m, ok := m.(*model); ok && err == nil && m.left {
		return ErrLeft
	}
	return err
}

// Kill ends the screen, as soon as it runs; the terminal is as it was when it returns.
func (s *Screen) Kill() {
	s.pending.stop()
	s.program.Quit() // which waits for Run to be there: there is nothing to give back before
	s.program.Wait()
}
