package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// A chooser is the overlay in which a move is chosen: first which, then, if it takes one, with
// which message.
type chooser struct {
	list    []choice
	at      int
	writing bool
	entry   entry
	stray   bool // a text was typed: Enter is the end of that, and no choice
}

// strayed says that what is typed is not said here.
func (c *chooser) strayed(m *model) {
	c.stray = true
	m.said = "a move is chosen here; Esc goes back to what you say"
}

// choose opens the overlay, if there is something to choose.
func (m *model) choose() {
	list := choicesOf(m.now)
	if len(list) == 0 || m.c.Rule == nil {
		m.said = "there is nothing to decide"
		return
	}
	m.chooser, m.asked = &chooser{list: list}, ""
}

// choosing is what keys do while the overlay is open.
func (m *model) choosing(k tea.KeyPressMsg) tea.Cmd {
	c, name := m.chooser, k.String()
	if c.writing {
		return m.writing(k, name)
	}
	switch name {
	case "esc":
		m.chooser = nil
	case "up":
		c.at, c.stray = (c.at+len(c.list)-1)%len(c.list), false
	case "down", "tab":
		c.at, c.stray = (c.at+1)%len(c.list), false
	case "enter":
		if !c.stray {
			return m.chosen()
		}
		c.strayed(m)
	default:
		switch n := len(name); {
		case !c.stray && n == 1 && name >= "1" && name <= "9" && int(name[0]-'1') < len(c.list):
			c.at = int(name[0] - '1')
			return m.chosen()
		case k.Key().Text != "":
			c.strayed(m)
		}
	}
	return nil
}

// chosen asks for the message of a move that takes one, or makes the move.
func (m *model) chosen() tea.Cmd {
	c := m.chooser
	if c.list[c.at].message {
		c.writing = true
		return nil
	}
	m.chooser = nil
	return m.rule(c.list[c.at].ruling)
}

// writing is what keys do in the message of a move.
func (m *model) writing(k tea.KeyPressMsg, name string) tea.Cmd {
	c := m.chooser
	switch name {
	case "esc":
		c.writing = false
	case "enter":
		of := c.list[c.at]
		text := strings.TrimSpace(string(c.entry.text))
		if text == "" && of.needed {
			m.said = of.ruling.Transition + " needs a message"
			return nil
		}
		m.chooser = nil
		of.ruling.Message = text
		return m.rule(of.ruling)
	case "alt+enter", "shift+enter":
		c.entry.insert("\n")
	case "backspace":
		c.entry.backspace()
	case "delete":
		c.entry.delete()
	case "left":
		c.entry.move(-1)
	case "right":
		c.entry.move(1)
	default:
		c.entry.insert(k.Key().Text)
	}
	return nil
}

// lines draws the overlay, with at most so many choices: those around the one that is marked.
func (c *chooser) lines(look style, width, most int) (lines []string, cursor int) {
	if c.writing {
		of := c.list[c.at]
		line, column := c.entry.shown(width - 2)
		what := "with which message? Enter makes the move, Esc goes back"
		if !of.needed {
			what = "with a message, if you like. Enter makes the move, Esc goes back"
		}
		return []string{look.bold(of.ruling.Transition) + ", " + what, "> " + line}, column + 2
	}
	lines = append(lines, look.bold("Which move? Up, Down, 1 to 9, Enter; Esc goes back"))
	from := min(max(0, c.at-most/2), max(0, len(c.list)-most))
	for i, one := range c.list {
		if i < from || i >= from+most {
			continue
		}
		text := pad(one.text(i, look), width)
		if i == c.at {
			text = look.invert(text)
		}
		lines = append(lines, text)
	}
	return lines, -1
}
