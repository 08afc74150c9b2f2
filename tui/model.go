package tui

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// The model is all that is shown follows from: what was handed over, what was typed, and how large
// the terminal is. Update does no I/O; what keys ask for are commands that run beside it.

type model struct {
	c             Config
	style         style
	width, height int
	now           Now
	lines         []undertaking.Line
	entry         entry
	deliver       agent.Delivery
	asked         screen // by the human; "" is that of the state
	at            *anchor
	filter        string // of the log
	said          string // what came of the last key
	problem       error
	chooser       *chooser
	quitAt        time.Time // when leaving was asked for
	left          bool      // the human has left
	ended         bool      // the undertaking has, or cannot go on
	begun         bool      // Begin was called
	kept          []string  // typed before there was anybody to hear it
	rang          string    // the round for which the bell rang
}

func newModel(c Config) *model {
	return &model{c: c, style: style{ascii: c.ASCII}, deliver: agent.Steer, width: 80, height: 24}
}

// maxLines is how many lines of the log are kept.
const maxLines = 5000

type ticked time.Time

// Init implements [tea.Model]. The time is known from the beginning.
func (m *model) Init() tea.Cmd { return func() tea.Msg { return ticked(time.Now()) } }

// tick has the time be shown: once a second, which is all that moves by itself.
func tick() tea.Cmd { return tea.Tick(time.Second, func(at time.Time) tea.Msg { return ticked(at) }) }

// A told is what came of what keys asked for.
type told struct {
	text  string
	err   error
	typed string // what was asked for by it; it is there again if that was not done
	begin bool   // it was to begin an undertaking
}

// A broken is a panic in what a key asked for, and where it was.
type broken string

// act makes a command of what a key asks for. A panic in it becomes one of Update: of that the
// terminal is given back before it is told. Others may be told on the screen that goes, or by a
// goroutine for which nobody waits.
func act(do func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if p := recover(); p != nil {
				msg = broken(fmt.Sprintf("%v\n\n%s", p, debug.Stack()))
			}
		}()
		return do()
	}
}

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case ticked:
		if m.now.At.IsZero() && !m.quitAt.IsZero() { // leaving was asked for before there was a time
			m.quitAt = time.Time(msg)
		}
		if m.now.At = time.Time(msg); m.ended {
			return m, nil
		}
		return m, tick()
	case news:
		m.lines = append(m.lines, msg.lines...)
		m.lines = m.lines[max(0, len(m.lines)-maxLines):]
		if msg.now != nil {
			return m, m.shown(*msg.now)
		}
	case ended:
		m.ended, m.problem, m.asked, m.chooser = true, msg.problem, "", nil
	case told:
		m.happened(msg)
	case broken:
		panic(string(msg))
	case tea.PasteMsg:
		m.pasted(msg.Content)
	case tea.KeyPressMsg:
		return m, m.pressed(msg)
	}
	return m, nil
}

// happened takes what came of what keys asked for. What was typed for nothing can be changed, and
// tried again.
func (m *model) happened(of told) {
	if m.said = of.text; of.err == nil {
		return
	}
	m.said = "not done: " + of.err.Error()
	if of.begin {
		m.begun = false
		of.typed = strings.Join(append([]string{of.typed}, m.kept...), "\n")
		m.kept = nil
	}
	if len(m.entry.text) == 0 {
		m.entry.insert(of.typed)
	}
}

// shown takes what is now, and rings when it becomes the human's move.
func (m *model) shown(n Now) tea.Cmd {
	m.now = n
	var commands []tea.Cmd
	if n.Session != nil && len(m.kept) > 0 && m.c.Say != nil {
		for _, text := range m.kept {
			commands = append(commands, m.sayCommand(text))
		}
		m.kept = nil
	}
	if move := movesNow(n); move != "" && move != m.rang && !m.c.Watch {
		commands = append(commands, tea.Raw("\a\x1b]9;dialai: your move\a"))
		m.rang = move
	} else if move == "" {
		m.rang = ""
	}
	return tea.Sequence(commands...)
}

// movesNow names the human's move that is waited for; "" if none is.
func movesNow(n Now) string {
	switch {
	case len(n.Prompts) > 0:
		return n.Prompts[0].Session
	case n.Session != nil && n.Session.Status == session.NeedsHuman:
		return n.Session.Key().ID()
	}
	return ""
}

// screen returns the screen that is shown.
func (m *model) screen() screen {
	switch {
	case !m.quitAt.IsZero():
		return leaving
	case m.ended:
		return over
	case m.asked != "":
		return m.asked
	}
	return screenOf(m.now)
}

// pasted takes what was pasted, where it would be typed.
func (m *model) pasted(s string) {
	switch c := m.chooser; {
	case c == nil:
		m.typed(s)
	case c.writing:
		c.entry.insert(lines(s))
	default:
		c.strayed(m)
	}
}

// lines has lines end as we have them.
func lines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (m *model) typed(s string) {
	if !m.c.Watch && !m.ended {
		m.entry.insert(lines(s))
	}
}

// deliveries are what Tab goes through, and their signs.
var deliveries = []agent.Delivery{agent.Steer, agent.After, agent.Now}

func sign(d agent.Delivery) string {
	return map[agent.Delivery]string{agent.Steer: ">", agent.After: ">>", agent.Now: "!>"}[d]
}
