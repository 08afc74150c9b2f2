package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// The least size in which the frame is drawn.
const (
	minWidth  = 60
	minHeight = 16
)

// View implements [tea.Model].
func (m *model) View() tea.View {
	content, x, y := m.draw()
	v := tea.NewView(content)
	v.AltScreen = true
	v.WindowTitle = m.title()
	if x >= 0 {
		v.Cursor = tea.NewCursor(x, y)
	}
	return v
}

// title is the window's.
func (m *model) title() string {
	if m.now.Session == nil {
		return "dialai"
	}
	title := "dialai: " + flat(input(m.now.Session, "task"))
	if movesNow(m.now) != "" {
		title = "! " + title
	}
	return title
}

// inner returns how many columns and lines a body has.
func (m *model) inner() (width, height int) {
	footer, _, _ := m.footer(m.width - 4)
	height = m.height - 3 - len(footer) // three rules of the frame
	if titles[m.screen()] != "" {
		height -= 2 // and the title with its own
	}
	return m.width - 4, max(1, height)
}

// draw returns the whole screen, and where the cursor is; x is -1 if it is nowhere.
func (m *model) draw() (content string, x, y int) {
	if m.width < minWidth || m.height < minHeight {
		line := fmt.Sprintf("%d×%d needed, %d×%d here: too small; the work goes on", minWidth, minHeight, m.width, m.height)
		return pad(line, max(0, m.width)), -1, 0
	}
	of := m.screen()
	width, height := m.inner()
	body := m.body(of)
	at := m.at
	if at == nil && of == weaving { // what is newest is at the top, and what is active is seen
		at = m.keepActive(body, width, height)
	}
	if at == nil && !follows(of) {
		at = &anchor{}
	}
	footer, x, row := m.footer(width)
	var parts [][]string
	if titles[of] != "" {
		parts = append(parts, []string{m.style.bold(titles[of])})
	}
	if of == opening { // in the middle
		for range (height - len(body)) / 2 {
			body = append([]para{blank}, body...)
		}
	}
	shown, below := window(body, width, height, at)
	note := ""
	if below {
		note = " more: PgDn "
	}
	parts = append(parts, shown, footer)
	content = framed(m.style.border(), m.width, note, parts...)
	if x >= 0 {
		x, y = x+2, m.height-1-len(footer)+row
	}
	return content, x, y
}

// follows reports whether what is newest is at the end of a screen, and is followed.
func follows(of screen) bool { return of == oracle || of == counsel || of == logged }

// keepActive keeps the task that is active in view.
func (m *model) keepActive(body []para, width, height int) *anchor {
	i := activeTask(m.now, body)
	if i < 0 {
		return &anchor{}
	}
	lines := 0
	for _, p := range body[:i+1] {
		lines += len(p(width))
	}
	if lines <= height {
		return &anchor{}
	}
	return &anchor{para: i - height/2}
}

// footer returns the lines below the body: an overlay, or the voice and what is typed; and the
// status, always. row is the line of the cursor, whose column is x, -1 if it is nowhere.
func (m *model) footer(width int) (lines []string, x, row int) {
	x = -1
	if m.chooser != nil {
		of, column := m.chooser.lines(m.style, width, max(3, m.height-9))
		if column >= 0 {
			x, row = column, len(of)-1
		}
		lines = of
	} else {
		lines = append(lines, m.voice(width))
		if line, column := m.entryLine(width); line != "" {
			x, row = column, len(lines)
			lines = append(lines, line)
		}
	}
	if m.said != "" {
		lines = append(lines, m.style.bold(flat(m.said)))
	}
	return append(lines, statusLine(m.now, m.style, width)), x, row
}

// voice is the voice's line and the fact beside it.
func (m *model) voice(int) string {
	if m.screen() == opening && m.now.Session == nil {
		return m.style.faint("Say what is to be done. Enter begins, F1 helps.")
	}
	line, fact := say(m.now)
	if line == "" && m.now.Session != nil && m.screen() != decision {
		fact = m.now.Session.State.Prompt
	}
	return strings.TrimSpace(line + " " + flat(fact))
}

// entryLine is the line in which is typed; "" where nobody can type, or nothing is typed and
// nothing asked.
func (m *model) entryLine(width int) (line string, column int) {
	waits := movesNow(m.now) != "" || m.now.Session == nil
	if m.c.Watch || m.ended || !waits && len(m.entry.text) == 0 {
		return "", -1
	}
	mark := sign(m.deliver) + " "
	if movesNow(m.now) != "" { // it is a move, whenever it is heard
		mark = "> "
	}
	text, at := m.entry.shown(width - len(mark))
	return mark + text, at + len(mark)
}
