package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dialai/dialai/internal/text"
)

// Clean returns text from outside fit for one line of a terminal: line breaks and tabs
// become blanks, and what prose in a machine file may not hold (see
// [machine.HiddenInProse]) is replaced.
func Clean(s string) string { return strings.Map(printable, s) }

func printable(r rune) rune {
	switch {
	case r >= ' ' && r < 0x7F:
		return r
	case r == '\n', r == '\r', r == '\t':
		return ' '
	}
	if text.Disguises(r) {
		return unicode.ReplacementChar
	}
	return r
}

// When returns text where it is to be shown, and else nothing.
func When(shown bool, text string) string {
	if shown {
		return text
	}
	return ""
}

// Either returns the first of two texts where it holds, and else the second.
func Either(holds bool, first, second string) string {
	if holds {
		return first
	}
	return second
}

// Plural returns a number with its noun: "1 session", "2 sessions".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Quote returns s as one word for a shell, fit to be shown.
func Quote(s string) string {
	plain := s != "" && s[0] != '=' // which zsh would look up
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)) {
			plain = false
		}
	}
	switch {
	case plain:
		return s
	case Clean(s) != s:
		return escape(s)
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// escape returns s as a word that every POSIX shell turns back into s, and that
// shows what cannot be shown as it is. $(…) drops line feeds at the end: words that end in
// one are written as POSIX.1-2024 has them, $'…', which not every older shell knows.
func escape(s string) string {
	head, tail, percent := `"$(printf '`, `')"`, "%%"
	if strings.HasSuffix(s, "\n") {
		head, tail, percent = "$'", "'", "%"
	}
	var b strings.Builder
	b.WriteString(head)
	for i, r := range s {
		switch {
		case r == '%':
			b.WriteString(percent)
		case r == '\\':
			b.WriteString(`\\`)
		case r == '-' && i == 0, r == '\'', r == '!', r == unicode.ReplacementChar, printable(r) != r: // a dash in front is an option of printf
			_, size := utf8.DecodeRuneInString(s[i:])
			for _, c := range []byte(s[i : i+size]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + tail
}

// A Command is one that is printed for people to use.
type Command struct {
	Path  []string // the program and its command
	Args  []string
	words []string // the flags and what they take
}

// String returns the command, quoted for a shell. "--" keeps arguments that
// begin with a dash from being taken for flags.
func (c Command) String() string {
	words := slices.Concat(c.Path, c.Args, c.words)
	if slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		words = slices.Concat(c.Path, c.words, []string{"--"}, c.Args)
	}
	for i, w := range words {
		words[i] = Quote(w)
	}
	return strings.Join(words, " ")
}

// Prompt prints what a state asks, line by line, the first after head; nothing if it
// asks nothing.
func Prompt(out io.Writer, head, prompt string) {
	for line := range strings.Lines(strings.TrimSpace(prompt)) {
		fmt.Fprintf(out, "%s%s\n", head, Clean(strings.TrimRight(line, "\r\n")))
		head = strings.Repeat(" ", len(head))
	}
}

// Whose returns who executed a transition: the humans who agreed about it, if there was
// more than one, else whoever it is by.
func Whose(authors []string, id string, human bool) string {
	if len(authors) > 1 {
		return strings.Join(authors, " and ") + " (humans)"
	}
	return Who(id, human)
}

// Who returns the id of a specialist, and that it is a human.
func Who(id string, human bool) string {
	return id + When(human, " (human)")
}
