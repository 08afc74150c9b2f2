package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Concealer finds secrets in texts: as they are, quoted, under escapes of JSON and
// of addresses, one inside of the other too, and in base64, alone or as a part of what
// was encoded. The zero Concealer finds nothing. It never changes, so it may be used
// concurrently.
type Concealer struct {
	forms []string // as secrets stand in a text
	words []core   // looked for under escapes too
	short []string // looked for where they stand alone
}

// A core is a secret, or what is always the same of it in base64, wherever it begins in
// what is encoded.
type core struct {
	text          string
	before, after int // characters beside it that hold a part of the secret
}

// Conceal returns a Concealer of secrets. Empty ones are left out, and those of less than
// four bytes are found only where no letter or digit is beside them.
func Conceal(secrets ...string) *Concealer { return conceal(secrets, minSecret, true) }

// conceal returns a Concealer of secrets. Forms of fewer bytes than least are looked for
// where they stand alone, or, with alone not set, not at all.
func conceal(secrets []string, least int, alone bool) *Concealer {
	c := &Concealer{}
	for _, s := range secrets {
		for _, f := range secretForms(s) {
			if len(f) >= least {
				c.forms = add(c.forms, f)
			} else if alone {
				c.short = add(c.short, f)
			}
		}
		if len(s) >= least {
			c.words = add(c.words, core{text: s})
		}
		if len(s) >= MinSecret {
			c.words = add(c.words, cores(s)...)
		}
	}
	return c
}

func add[T comparable](list []T, more ...T) []T {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// secretForms returns a secret as it is, and as it looks when it is quoted; nothing of
// an empty one.
func secretForms(s string) []string {
	if s == "" {
		return nil
	}
	inJSON, _ := json.Marshal(s) // cannot fail for a string
	return []string{s, inner(string(inJSON)), inner(strconv.Quote(s)), url.QueryEscape(s), url.PathEscape(s)}
}

// inner returns s without its quotes.
func inner(s string) string { return s[1 : len(s)-1] }

// cores returns the cores of a secret in both alphabets of base64.
func cores(s string) (list []core) {
	for skip := range 3 {
		one := core{before: min(skip, 1), after: min((skip+len(s))%3, 1)}
		plain := append(make([]byte, skip, skip+len(s)), s...)
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := alphabet.EncodeToString(plain)
			one.text = text[skip+one.before : len(text)-one.after]
			list = add(list, one)
		}
	}
	return list
}

// A stretch is a part of a text.
type stretch struct{ start, end int }

// Hide returns text with [REDACTED] in the place of what is found in it.
func (c *Concealer) Hide(text string) string {
	if found := c.find(text); len(found) > 0 {
		text = replaceAll(text, found)
	}
	for _, f := range c.short {
		text = redactAlone(text, f)
	}
	return text
}

// replaceAll puts redacted in the place of what was found, once for what overlaps.
func replaceAll(text string, found []stretch) string {
	slices.SortFunc(found, func(a, b stretch) int { return cmp.Compare(a.start, b.start) })
	var b strings.Builder
	at := 0
	for _, f := range found {
		if f.start >= at {
			b.WriteString(text[at:f.start] + redacted)
		}
		at = max(at, f.end)
	}
	b.WriteString(text[at:])
	return b.String()
}

func (c *Concealer) find(text string) (found []stretch) {
	for _, f := range c.forms {
		found = everywhere(found, text, core{text: f})
	}
	for _, w := range c.words {
		found = everywhere(found, text, w)
	}
	if escapes(text) {
		found = underEscapes(found, text, c.words)
	}
	return found
}

// everywhere adds where a core stands in a text.
func everywhere(found []stretch, text string, f core) []stretch {
	for at := 0; ; at++ {
		n := strings.Index(text[at:], f.text)
		if n < 0 {
			return found
		}
		at += n
		found = append(found, f.around(text, at, at+len(f.text)))
	}
}

// around returns a place of the core with the characters beside it that belong to it.
func (f *core) around(text string, start, end int) stretch {
	if f.before > 0 && start > 0 && isBase64(text[start-1]) {
		start--
	}
	if f.after > 0 && end < len(text) && isBase64(text[end]) {
		end++
	}
	return stretch{start, end}
}

func isBase64(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("+/-_", b) >= 0
}
