package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// A line is one turn. Its number is that of the line in the file, from 1.
type line struct {
	number int

	As      string
	Text    string
	Tools   []use
	Used    *int64
	Window  int64
	CostUSD *float64
	Wait    time.Duration
	Submit  json.RawMessage // nil: no move
	End     ending
}

// A use is that of a tool.
type use struct {
	Tool  string
	Input json.RawMessage // an object
}

// An ending says how a turn ends, "" that it is done.
type ending string

const (
	crash ending = "crash"
	hang  ending = "hang"
	full  ending = "full"
)

const (
	longestWait = 24 * time.Hour
	// mostTokens and mostUSD are what a line may say that one turn used: far more than any does,
	// and little enough that sums of them stay numbers.
	mostTokens = 1_000_000_000
	mostUSD    = 1_000_000
)

// parse reads a script. Empty lines are skipped.
func parse(name string, script []byte) (lines []line, err error) {
	for i, text := range bytes.Split(script, []byte("\n")) {
		if i == 0 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		l, wrong := parseLine(text)
		if wrong != nil {
			return nil, fmt.Errorf("%s:%d:%d: %s", name, i+1, column(text, wrong.at), wrong.says)
		}
		l.number = i + 1
		lines = append(lines, l)
	}
	return lines, nil
}

// A mistake is what is wrong with a line, and at which of its bytes.
type mistake struct {
	at   int
	says string
}

// wrongf says what is wrong with a value, which it shows, and what to do.
func wrongf(f field, format string, args ...any) *mistake {
	return &mistake{f.at, fmt.Sprintf("%s: %s: ", f.path, shown(f.value)) + fmt.Sprintf(format, args...)}
}

// shown is a value as an error shows it: its beginning.
func shown(value []byte) string {
	const most = 60
	if s := []rune(strings.ToValidUTF8(string(value), "�")); len(s) > most {
		return string(s[:most]) + "…"
	}
	return strings.ToValidUTF8(string(value), "�")
}

func column(text []byte, at int) int { return utf8.RuneCount(text[:min(at, len(text))]) + 1 }

// A field is a member of an object, and where its value stands in the line.
type field struct {
	path  string
	value json.RawMessage
	at    int
}

// fields reads an object, whose members keep their order.
func fields(of field) ([]field, *mistake) {
	d := json.NewDecoder(bytes.NewReader(of.value))
	syntax := func(err error) *mistake {
		return &mistake{of.at + int(d.InputOffset()), prefix(of.path) + "not JSON: " + err.Error()}
	}
	if t, err := d.Token(); err != nil {
		return nil, syntax(err)
	} else if t != json.Delim('{') {
		return nil, wrongf(of, "must be an object {…}")
	}
	var found []field
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, syntax(err)
		}
		f := field{path: join(of.path, key.(string))}
		if err := d.Decode(&f.value); err != nil {
			return nil, syntax(err)
		}
		f.at = of.at + int(d.InputOffset()) - len(f.value)
		if seen[f.path] {
			return nil, wrongf(f, "is there twice: leave one out")
		}
		seen[f.path] = true
		found = append(found, f)
	}
	if _, err := d.Token(); err != nil {
		return nil, syntax(err)
	}
	if rest := of.value[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return nil, &mistake{of.at + int(d.InputOffset()), fmt.Sprintf("%s: more after the object: one turn a line", shown(bytes.TrimSpace(rest)))}
	}
	return found, nil
}

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func parseLine(text []byte) (l line, wrong *mistake) {
	if !utf8.Valid(text) {
		return l, &mistake{0, "not UTF-8: save the file as UTF-8"}
	}
	found, wrong := fields(field{path: "", value: text})
	if wrong != nil {
		if strings.HasPrefix(wrong.says, ": ") { // the line itself has no name
			wrong.says = "a line" + wrong.says
		}
		return l, wrong
	}
	for _, f := range found {
		if wrong := l.set(f); wrong != nil {
			return l, wrong
		}
	}
	return l, nil
}

// set reads one member of a line.
func (l *line) set(f field) (wrong *mistake) {
	switch f.path {
	case "as":
		l.As, wrong = text(f, "name a specialist, such as \"orchestrator\", or leave it out for any")
	case "text":
		l.Text, wrong = text(f, "say something, or leave it out")
	case "tools":
		l.Tools, wrong = uses(f)
	case "used":
		var n int64
		n, wrong = count(f, 0, mostTokens, "the tokens in use, such as 120000")
		l.Used = &n
	case "window":
		l.Window, wrong = count(f, 1, mostTokens, "the tokens of the window, such as 200000")
	case "cost_usd":
		l.CostUSD, wrong = dollars(f)
	case "wait_ms":
		var n int64
		n, wrong = count(f, 0, longestWait.Milliseconds(), "milliseconds, such as 250")
		l.Wait = time.Duration(n) * time.Millisecond
	case "submit":
		l.Submit, wrong = move(f)
	case "end":
		l.End, wrong = end(f)
	default:
		return wrongf(f, "there is no such field: use as, text, tools, used, window, cost_usd, wait_ms, submit or end")
	}
	return wrong
}

func text(f field, advice string) (s string, wrong *mistake) {
	if json.Unmarshal(f.value, &s) != nil || f.value[0] != '"' || s == "" {
		return "", wrongf(f, "must be a text that is not empty: %s", advice)
	}
	return s, nil
}

func count(f field, least, most int64, what string) (n int64, wrong *mistake) {
	if json.Unmarshal(f.value, &n) != nil || f.value[0] == 'n' || n < least || n > most {
		return 0, wrongf(f, "must be a whole number from %d to %d: %s", least, most, what)
	}
	return n, nil
}

func dollars(f field) (*float64, *mistake) {
	var n float64
	if json.Unmarshal(f.value, &n) != nil || f.value[0] == 'n' || math.Signbit(n) || n > mostUSD {
		return nil, wrongf(f, "must be a number from 0 to %d: US dollars, such as 0.25", mostUSD)
	}
	return &n, nil
}

func move(f field) (json.RawMessage, *mistake) {
	found, wrong := fields(f)
	if wrong != nil {
		return nil, wrong
	}
	for _, m := range found {
		if m.path == join(f.path, "transition") {
			_, wrong := text(m, "name the move, such as \"report\"")
			return f.value, wrong
		}
	}
	return nil, wrongf(f, "has no transition: add one, such as {\"transition\": \"report\", \"message\": \"…\"}")
}

func end(f field) (ending, *mistake) {
	var s string
	if json.Unmarshal(f.value, &s) == nil {
		switch e := ending(s); e {
		case crash, hang, full:
			return e, nil
		}
	}
	return "", wrongf(f, "must be \"crash\", \"hang\" or \"full\": leave it out for a turn that ends")
}

// uses reads a list of uses of tools.
func uses(f field) ([]use, *mistake) {
	var raw []json.RawMessage
	if json.Unmarshal(f.value, &raw) != nil || f.value[0] == 'n' {
		return nil, wrongf(f, "must be a list [{\"tool\": …, \"input\": {…}}]")
	}
	var list []use
	d := json.NewDecoder(bytes.NewReader(f.value))
	_, _ = d.Token() // the bracket: it was read above
	for i := range raw {
		item := field{path: fmt.Sprintf("%s[%d]", f.path, i)}
		if err := d.Decode(&item.value); err != nil {
			return nil, wrongf(f, "%v", err)
		}
		item.at = f.at + int(d.InputOffset()) - len(item.value)
		u, wrong := parseUse(item)
		if wrong != nil {
			return nil, wrong
		}
		list = append(list, u)
	}
	return list, nil
}

func parseUse(item field) (u use, wrong *mistake) {
	input := field{path: join(item.path, "input"), value: json.RawMessage("{}")}
	found, wrong := fields(item)
	if wrong != nil {
		return u, wrong
	}
	for _, f := range found {
		switch f.path {
		case join(item.path, "tool"):
			u.Tool, wrong = text(f, "name one, such as \"Bash\"")
		case input.path:
			input = f
			_, wrong = fields(f)
		default:
			wrong = wrongf(f, "there is no such field: use tool and input")
		}
		if wrong != nil {
			return u, wrong
		}
	}
	if u.Tool == "" {
		return u, wrongf(item, "has no tool: add one, such as \"tool\": \"Bash\"")
	}
	u.Input = input.value
	if isSpawn(u.Tool) {
		_, wrong = spawned(input)
	}
	return u, wrong
}

// isSpawn reports whether a tool starts a subagent, by either of the names that it has.
func isSpawn(tool string) bool { return tool == "Task" || tool == "Agent" }

// spawned reads what a subagent does: the tools in the input of the use that starts it.
func spawned(input field) ([]use, *mistake) {
	found, wrong := fields(input)
	if wrong != nil {
		return nil, wrong
	}
	for _, f := range found {
		if f.path == join(input.path, "tools") {
			return uses(f)
		}
	}
	return nil, nil
}
