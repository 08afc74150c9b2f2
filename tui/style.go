package tui

// A style is how things look: with colours or without, with the marks of Unicode or of ASCII.
type style struct{ ascii bool }

// Colours are the terminal's own; a terminal without them, or NO_COLOR, gets none, which is up to
// the renderer.
func (s style) sgr(code, text string) string {
	if text == "" {
		return ""
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

func (s style) bold(text string) string   { return s.sgr("1", text) }
func (s style) faint(text string) string  { return s.sgr("2", text) }
func (s style) yellow(text string) string { return s.sgr("33", text) }
func (s style) red(text string) string    { return s.sgr("31", text) }
func (s style) invert(text string) string { return s.sgr("7", text) }

func (s style) border() border {
	if s.ascii {
		return plain
	}
	return doubled
}

// mark says how a task stands.
func (s style) mark(status string) string {
	marks := map[string][2]string{"done": {"✓", "x"}, "verified": {"✓", "x"}, "active": {"◆", "*"}}
	m, known := marks[status]
	if !known {
		m = [2]string{"○", "o"}
	}
	if s.ascii {
		return m[1]
	}
	return m[0]
}

// cells draws a share of ten cells: full ones are a tenth each, rounded half up; none if pct is
// not known (below 0).
func (s style) cells(pct int) string {
	full, empty := "█", "░"
	if s.ascii {
		full, empty = "#", "."
	}
	n := min(10, max(0, (pct+5)/10))
	if pct < 0 {
		n = 0
	}
	out := ""
	for i := range 10 {
		if i < n {
			out += full
		} else {
			out += empty
		}
	}
	return out
}

// branch leads to what belongs to the line above.
func (s style) branch() string {
	if s.ascii {
		return "`- "
	}
	return "└─ "
}

// dot is between two things of a line.
func (s style) dot() string {
	if s.ascii {
		return " - "
	}
	return " · "
}
