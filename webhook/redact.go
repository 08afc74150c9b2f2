package webhook

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redacted stands where a secret was.
const redacted = "[REDACTED]"

// minSecret is the length, in bytes, from which a secret is taken out of words
// too. A shorter one is in too many of them, and is taken out where it stands
// alone.
const minSecret = 4

// redact takes the secrets of a call out of the text of an error.
func (c *call) redact(text string) string {
	return Redact(text, append([]string{c.ask.CallbackToken}, c.secrets...)...)
}

// Redact takes secrets out of a text as a [Concealer] of them does.
func Redact(text string, secrets ...string) string { return Conceal(secrets...).Hide(text) }

// redactAlone takes a secret out of a text where no letter or digit is beside it.
func redactAlone(text, secret string) string {
	var b strings.Builder
	from := 0
	for at := 0; ; {
		n := strings.Index(text[at:], secret)
		if n < 0 {
			return b.String() + text[from:]
		}
		at += n
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(secret):])
		if isWord(before) || isWord(after) {
			at++
			continue
		}
		b.WriteString(text[from:at] + redacted)
		at += len(secret)
		from = at
	}
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

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
	clean := cut(c.redact(text), maxErrorText)
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
