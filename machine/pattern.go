package machine

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"sort"
)

// PatternError says where a regular expression is wrong that regexp or
// regexp/syntax refused with err: an error that names what is wrong, the offset in
// bytes, and what stands there. Errors of another kind come back as they are.
func PatternError(source string, err error) error {
	bad, ok := errors.AsType[*syntax.Error](err)
	if !ok {
		return err
	}
	at := patternOffset(source, bad)
	if at < 0 {
		return errors.New(bad.Code.String())
	}
	wrong := bad.Expr
	if wrong == source {
		wrong = source[at:]
	}
	return fmt.Errorf("%s at offset %d: `%.40s`", bad.Code, at, wrong)
}

// patternOffset returns where in the pattern an error is, or -1 if it is about the
// pattern as a whole. A parser reads from left to right, so the first part of the
// pattern that fails in the same way ends where the error does.
func patternOffset(source string, bad *syntax.Error) int {
	switch bad.Code {
	case syntax.ErrMissingParen:
		return unclosed(source)
	case syntax.ErrUnexpectedParen:
		return fails(source, func(e *syntax.Error) bool { return e.Code == bad.Code }) - 1
	case syntax.ErrLarge, syntax.ErrNestingDepth, syntax.ErrInternalError:
		return -1
	}
	end := fails(source, func(e *syntax.Error) bool { return e.Code == bad.Code && e.Expr == bad.Expr })
	if end > len(source) || bad.Expr == "" {
		return -1
	}
	return end - len(bad.Expr)
}

// fails returns the length of the shortest beginning of source that fails so; one
// more than its own if none does.
func fails(source string, so func(*syntax.Error) bool) int {
	return sort.Search(len(source)+1, func(n int) bool {
		_, err := syntax.Parse(source[:n], syntax.Perl)
		bad, ok := errors.AsType[*syntax.Error](err)
		return ok && so(bad)
	})
}

// unclosed returns the offset of the last group that is opened and not closed, -1
// if there is none.
func unclosed(source string) int {
	open := []int{-1}
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '\\':
			i++
		case '[':
			i = classEnd(source, i)
		case '(':
			open = append(open, i)
		case ')':
			open = open[:max(len(open)-1, 1)]
		}
	}
	return open[len(open)-1]
}

// classEnd returns the offset of the bracket that closes the character class which
// begins at i.
func classEnd(source string, i int) int {
	i++
	if i < len(source) && source[i] == '^' {
		i++
	}
	if i < len(source) && source[i] == ']' {
		i++ // at the beginning it stands for itself
	}
	for ; i < len(source) && source[i] != ']'; i++ {
		switch {
		case source[i] == '\\':
			i++
		case source[i] == '[' && i+1 < len(source) && source[i+1] == ':': // [:alpha:]
			for i += 2; i+1 < len(source) && source[i:i+2] != ":]"; i++ {
			}
			i++
		}
	}
	return i
}
