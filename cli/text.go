package cli

import (
	"strings"
	"unicode"
)

// clean returns text from outside fit for one line of a terminal: control
// characters, line breaks and characters that change the direction of writing
// are replaced.
func clean(s string) string { return strings.Map(printable, s) }

// cleanLines is clean but keeps line feeds.
func cleanLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return printable(r)
	}, s)
}

func printable(r rune) rune {
	switch {
	case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069,
		r == 0x200E, r == 0x200F, r == 0x061C, r == 0x2028, r == 0x2029, r == 0xFEFF:
		return unicode.ReplacementChar
	}
	return r
}

// quote returns s as one word for a shell.
func quote(s string) string {
	plain := s != ""
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// A command is one that is printed for people to use.
type command struct {
	words []string // the flags and what they take
	args  []string
}

// String returns the command, quoted for a shell. "--" keeps arguments that
// begin with a dash from being taken for flags.
func (c command) String() string {
	dashed := false
	for _, a := range c.args {
		dashed = dashed || strings.HasPrefix(a, "-")
	}
	words := append([]string{}, c.words[:2]...)
	if dashed {
		words = append(append(append(words, c.words[2:]...), "--"), c.args...)
	} else {
		words = append(append(words, c.args...), c.words[2:]...)
	}
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}
