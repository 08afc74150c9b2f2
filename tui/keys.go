package tui

import (
	"fmt"
	"strings"
)

// A key is one of the interface: what it is called, what it can be typed as, and what it does.
type key struct{ name, command, does string }

// keys lists them, as help and the documentation do.
var keys = []key{
	{"Enter", "", "says what is typed; before anything has begun, begins it"},
	{"Alt+Enter", "", "a new line"},
	{"Tab", "", "when it is heard: > in the running turn, >> after it, !> at once"},
	{"F1", "/help", "these keys"},
	{"F2", "/decide", "chooses a move: Up, Down, 1 to 9, Enter, Esc"},
	{"F3", "/hold", "ends all turns, until you say something or /resume"},
	{"F4", "/tasks", "the tasks, and who judges them"},
	{"F5", "/record", "the newest hand-off record"},
	{"F6", "/log", "what has happened; /log TEXT filters"},
	{"", "/assent", "agrees to the plan"},
	{"", "/resume", "asks again whose ask has ended"},
	{"PgUp, PgDn, Home, End", "", "scroll"},
	{"Esc", "", "back"},
	{"Ctrl-C", "/quit", "leaves, at the second time within three seconds"},
	{"Ctrl-Z", "", "suspends the view; the work goes on until the process is stopped"},
}

func helpBody(look style) (body []para) {
	for _, k := range keys {
		name := strings.TrimSpace(k.name + "  " + k.command)
		body = append(body, func(width int) []string {
			lines := wrap(k.does, width-24)
			for i := range lines {
				head := ""
				if i == 0 {
					head = name
				}
				lines[i] = look.bold(fmt.Sprintf("%-22s", head)) + "  " + lines[i]
			}
			return lines
		})
	}
	return body
}
