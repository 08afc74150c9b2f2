package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// How problems are told. They are sorted by their place, made unique, concealed where
// they quote what looks like a secret, and cut at 100. The first line of an error is
// prescribed where DIAL has a message for it: of the problems that DIAL knows, the one
// that its checks would meet first (rank); else the first by place.

// A Problem is one thing wrong with a machine file, or, from [Machine.Lint],
// one thing worth a warning.
type Problem struct {
	File    string // as given to Parse; "" for a Definition built in Go
	Line    int    // from 1; 0 if there is no text to point into
	Column  int    // from 1, in Unicode code points
	Path    string // JSON pointer into the definition
	Code    string // stable, such as "unknown-target"
	Message string
	Hint    string // what to do about it; may be empty
	Info    bool   // of a lint finding: worth knowing, but no warning

	rank int // place of the DIAL message in its order, 0 if it is none of them
}

// String returns "file:line:column: error[code]: message" and the hint on a
// line of its own.
func (p Problem) String() string { return p.render("error") }

// Warning is String for a lint finding.
func (p Problem) Warning() string { return p.render(p.Level()) }

// Level returns what a lint finding is: warning or info.
func (p Problem) Level() string {
	if p.Info {
		return "info"
	}
	return "warning"
}

func (p Problem) render(level string) string {
	var b strings.Builder
	switch {
	case p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	case p.File != "":
		fmt.Fprintf(&b, "%s: ", p.File)
	}
	fmt.Fprintf(&b, "%s[%s]: %s", level, p.Code, p.Message)
	if p.Line == 0 && p.Path != "" {
		fmt.Fprintf(&b, " (at %s)", p.Path)
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, "\n    hint: %s", p.Hint)
	}
	return b.String()
}

// An Error lists everything that is wrong with one definition.
type Error struct {
	Problems []Problem // never empty, by position

	section bool   // of a file that holds one section, not a definition
	file    string // that holds the definition; "" if no other can be the one that is wrong
}

const (
	invalid        = "Invalid machine definition: "
	invalidSection = "Invalid file: "
	invalidGuards  = "Invalid guards file %s: %s" // which a definition names
)

// Summary returns the first line of Error: the first DIAL message that applies,
// or else the first problem, with the name of the guards file if it is one with that.
func (e *Error) Summary() string {
	first := e.Problems[firstRanked(e.Problems)]
	switch {
	case e.file != "" && first.File != e.file:
		return fmt.Sprintf(invalidGuards, first.File, first.Message)
	case first.Code == codeSyntax:
		return first.Message
	case e.section:
		return invalidSection + first.Message
	}
	return invalid + first.Message
}

// FirstProblem returns the first thing that is wrong with a machine, in one line
// with its hint: what is left to say where err has no place in a file, because the
// machine was made by a program. Other errors are returned as they are written.
func FirstProblem(err error) string {
	var wrong *Error
	if !errors.As(err, &wrong) || len(wrong.Problems) == 0 {
		return err.Error()
	}
	p := wrong.Problems[0]
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + " (" + p.Hint + ")"
}

// Error returns the summary and then every problem.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Summary())
	for _, p := range e.Problems {
		b.WriteByte('\n')
		b.WriteString(p.String())
	}
	return b.String()
}

// codeSyntax marks a text that is no JSON or YAML at all.
const codeSyntax = "syntax"

// maxProblems bounds what one error lists.
const maxProblems = 100

// newError makes the error of these problems and more that were not kept. None shows what
// looks like a secret; nil finds none.
func newError(problems []Problem, more int, secret func(text string) bool) *Error {
	if secret != nil {
		for i := range problems {
			problems[i].conceal(secret)
		}
	}
	sortByPlace(problems)
	problems = slices.Compact(problems)
	if len(problems) > maxProblems {
		problems = cut(problems, more)
	}
	return &Error{Problems: problems}
}

func sortByPlace(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// cut returns the first of many problems and, last, how many more there are.
// The one that the summary names is always among them.
func cut(problems []Problem, more int) []Problem {
	named := firstRanked(problems)
	kept := slices.Clone(problems[:maxProblems])
	if named >= maxProblems {
		kept[maxProblems-1] = problems[named]
	}
	last := kept[maxProblems-1]
	return append(kept, Problem{
		File: last.File, Line: last.Line, Column: last.Column, Code: "too-many",
		Message: fmt.Sprintf("%d more problems are not listed", len(problems)-maxProblems+more),
		Hint:    "fix the ones above first",
	})
}

// firstRanked returns the index of the problem that comes first in DIAL's
// order, or 0 if none has a place there.
func firstRanked(problems []Problem) (first int) {
	for i, p := range problems {
		if p.rank > 0 && (problems[first].rank == 0 || p.rank < problems[first].rank) {
			first = i
		}
	}
	return first
}

// didYouMean returns the hint for a name nobody knows, or "".
func didYouMean(name string, known []string) string {
	best, bestDistance := "", 3
	for _, k := range known {
		if d := editDistance(name, k); d < bestDistance && alike(d, name, k) {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// alike reports whether words that are d apart look alike: of three letters with two
// wrong nothing is left but one, unless they only changed places.
func alike(d int, a, b string) bool {
	n := max(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
	return d <= n/2 && (d < 2 || n > 3) || n == 3 && letters(a) == letters(b)
}

// letters returns the letters of a word in order of their code points.
func letters(word string) string {
	r := []rune(word)
	slices.Sort(r)
	return string(r)
}

// editDistance is the Levenshtein distance of a and b in code points, or 3 if
// it is greater than 2.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if d := len(s) - len(t); d > 2 || d < -2 {
		return 3
	}
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range s {
		previous := row[0]
		row[0] = i + 1
		least := row[0]
		for j, y := range t {
			cost := previous
			if x != y {
				cost++
			}
			previous = row[j+1]
			row[j+1] = min(cost, row[j]+1, previous+1)
			least = min(least, row[j+1])
		}
		if least > 2 {
			return 3
		}
	}
	return min(row[len(t)], 3)
}

// DidYouMean returns the hint "did you mean …?" for a name nobody knows, or ""
// if nothing known is close to it.
func DidYouMean(name string, known []string) string { return didYouMean(name, known) }

// Codes of fields that nobody knows: of one, and of a file that has no other.
const (
	codeUnknown = "unknown-field"
	codeForeign = "foreign-file"
)

// Foreign returns the problem of a file that is something else than what was meant: it
// holds an object whose members have these names, and none is known, nor all like a known
// one (see [DidYouMean]). It may be one of secrets: of its names those alone are to be
// shown that are like a known one. Extensions (x-) and $schema are in every file.
func Foreign(what string, names, known []string) (p Problem, foreign bool) {
	for _, name := range names {
		if slices.Contains(known, name) {
			return p, false
		}
		foreign = foreign || !isExtension(name) && name != "$schema" && didYouMean(name, known) == ""
	}
	return Problem{Code: codeForeign, Message: "none of its fields is a field of " + what, Hint: "is it the right file? Nothing else of it is shown"}, foreign
}

// EscapePointer escapes one reference token of a JSON pointer (RFC 6901).
func EscapePointer(part string) string { return pointerEscape.Replace(part) }
