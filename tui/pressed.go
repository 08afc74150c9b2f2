package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// What keys do. While an overlay is open it has them all but Ctrl-C.

// leaveTime is within what time Ctrl-C must come again.
const leaveTime = 3 * time.Second

func (m *model) pressed(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return m.leave()
	}
	if !m.quitAt.IsZero() {
		m.quitAt = time.Time{}
		return nil
	}
	if m.ended {
		return tea.Quit
	}
	if m.said = ""; m.chooser != nil {
		return m.choosing(k)
	}
	switch name {
	case "ctrl+z":
		return tea.Suspend
	case "f1":
		m.toggle(helping)
	case "f2":
		m.choose()
	case "f3":
		return m.hold()
	case "f4":
		m.toggle(tasks)
	case "f5":
		m.toggle(record)
	case "f6":
		m.toggle(logged)
	case "esc":
		m.asked, m.at, m.filter = "", nil, ""
	case "pgup", "pgdown", "home", "end":
		m.scroll(name)
	default:
		return m.editing(k, name)
	}
	return nil
}

// leave leaves at the second time.
func (m *model) leave() tea.Cmd {
	if m.ended || m.c.Watch || !m.quitAt.IsZero() && m.now.At.Sub(m.quitAt) <= leaveTime {
		m.left = !m.ended
		return tea.Quit
	}
	m.quitAt, m.chooser = m.now.At, nil
	if m.quitAt.IsZero() { // nothing has been shown yet
		m.quitAt = time.Unix(0, 1)
	}
	return nil
}

func (m *model) toggle(s screen) {
	if m.at = nil; m.asked == s {
		m.asked = ""
		return
	}
	m.asked = s
}

func (m *model) scroll(name string) {
	width, height := m.inner()
	of := m.screen()
	body, at := m.body(of), m.at
	if at == nil && !follows(of) {
		at = &anchor{}
	}
	page := map[string]int{"pgup": -max(1, height-1), "pgdown": max(1, height-1), "home": -1 << 30, "end": 1 << 30}[name]
	if m.at = scroll(body, width, height, at, page); m.at == nil && !follows(of) {
		m.at = &anchor{para: len(body)} // the end
	}
}

// editing is what keys do in the line.
func (m *model) editing(k tea.KeyPressMsg, name string) tea.Cmd {
	switch name {
	case "enter":
		return m.entered()
	case "alt+enter", "ctrl+j", "shift+enter":
		m.typed("\n")
	case "tab":
		for i, d := range deliveries {
			if d == m.deliver {
				m.deliver = deliveries[(i+1)%len(deliveries)]
				break
			}
		}
	case "backspace":
		m.entry.backspace()
	case "delete":
		m.entry.delete()
	case "left":
		m.entry.move(-1)
	case "right":
		m.entry.move(1)
	case "ctrl+u":
		m.entry = entry{}
	default:
		m.typed(k.Key().Text)
	}
	return nil
}

// entered is what was typed.
func (m *model) entered() tea.Cmd {
	text := strings.TrimSpace(m.entry.take())
	switch {
	case text == "" || m.c.Watch:
		return nil
	case strings.HasPrefix(text, "/"):
		return m.command(text)
	case m.now.Session == nil && m.c.Begin != nil && !m.begun:
		m.begun = true
		begin := m.c.Begin
		return act(func() tea.Msg {
			said, err := begin(text)
			return told{said, err, text, true}
		})
	case m.now.Session == nil: // kept until somebody hears it
		m.kept = append(m.kept, text)
		m.said = "kept until the manager is there"
		return nil
	}
	return m.sayCommand(text)
}

func (m *model) sayCommand(text string) tea.Cmd {
	say, deliver := m.c.Say, m.deliver
	return act(func() tea.Msg {
		said, err := say(text, deliver)
		return told{said, err, text, false}
	})
}

// command does what begins with a slash.
func (m *model) command(text string) tea.Cmd {
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "/help":
		m.asked = helping
	case "/decide":
		m.choose()
	case "/hold":
		return m.hold()
	case "/tasks":
		m.asked = tasks
	case "/record":
		m.asked = record
	case "/log":
		m.asked, m.filter = logged, strings.TrimSpace(rest)
	case "/assent":
		return m.assent()
	case "/resume":
		return m.resume()
	case "/quit":
		return m.leave()
	default:
		m.said = "there is no " + verb + ": F1 lists what there is"
	}
	m.at = nil
	return nil
}

func (m *model) hold() tea.Cmd {
	if m.c.Hold == nil || m.now.Session == nil {
		return nil
	}
	m.said = "held: say something or /resume to go on"
	hold := m.c.Hold
	return act(func() tea.Msg { hold(); return nil })
}

func (m *model) resume() tea.Cmd {
	if m.c.Resume == nil || m.now.Session == nil {
		return nil
	}
	resume := m.c.Resume
	return act(func() tea.Msg {
		said, err := resume()
		return told{text: said, err: err}
	})
}

// assent agrees to the plan that is shown.
func (m *model) assent() tea.Cmd {
	for _, c := range choicesOf(Now{Session: m.now.Session}) {
		if c.ruling.Transition == "assent" {
			return m.rule(c.ruling)
		}
	}
	m.said = "there is no plan to agree to"
	return nil
}

func (m *model) rule(r Ruling) tea.Cmd {
	if m.c.Rule == nil {
		return nil
	}
	rule := m.c.Rule
	return act(func() tea.Msg {
		said, err := rule(r)
		return told{text: said, err: err}
	})
}
