package webhook

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// redactor returns what takes the secrets of a call out of a text: as they are,
// and as they look when they are quoted.
func (c *call) redactor() *strings.Replacer {
	return redactor(append([]string{c.ask.CallbackToken}, c.secrets...))
}

func redactor(secrets []string) *strings.Replacer {
	var forms []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		inJSON, _ := json.Marshal(s) // cannot fail for a string
		forms = append(forms, s, inner(string(inJSON)), inner(strconv.Quote(s)), url.QueryEscape(s), url.PathEscape(s))
	}
	// The longest wins, so that no end of a secret is left behind.
	slices.SortStableFunc(forms, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, "[REDACTED]")
	}
	return strings.NewReplacer(pairs...)
}

// inner returns s without its quotes.
func inner(s string) string { return s[1 : len(s)-1] }

// maxErrorText is the longest text, in bytes, of an error into which a service
// may have written.
const maxErrorText = 2 * maxErrorLen

// clean keeps the secrets of a call out of an error: a service may send back
// what it was sent. It bounds the error's text too.
func (c *call) clean(err error) error {
	if _, done := errors.AsType[*StatusError](err); done || err == nil {
		return err
	}
	text := err.Error()
	clean := cut(c.redactor().Replace(text), maxErrorText)
	if clean == text {
		return err
	}
	return &cleanError{clean, func(target error) bool { return errors.Is(err, target) }}
}

// A cleanError stands for an error whose text was not fit to be shown. That can
// still be compared with, but no longer be had.
type cleanError struct {
	text string
	is   func(target error) bool
}

func (e *cleanError) Error() string { return e.text }

// Is lets errors.Is see what the error was made from.
func (e *cleanError) Is(target error) bool { return e.is(target) }
