package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Keeps secrets out of texts in whatever dress they come. For each secret the forms in
// which it would stand there are made beforehand: as it is, quoted for JSON and Go,
// escaped for addresses, in hexadecimal digits, and in both alphabets of base64. There
// a secret can begin at three places of a group: cores has for each what stays the same
// whatever stands around it, and the characters beside it are taken along. A secret
// that is base64 itself is looked for decoded too.
//
// Forms are looked for plainly, and under escapes, in other case and across lines by
// escape.go. What overlaps is replaced once. Secrets of less than four bytes are
// replaced only where they stand alone.

// A Concealer finds secrets in texts: as they are, quoted, under escapes of JSON, of
// addresses and of HTML, one inside of the other too, broken into lines, in other case,
// in hexadecimal digits, and in base64, alone or as a part of what was encoded. A secret
// that is base64 itself, with whsec_ before it or without, is also found decoded. The
// zero Concealer finds nothing. It never changes, so it may be used concurrently.
type Concealer struct {
	forms []string // as secrets stand in a text
	words []core   // looked for under escapes and across lines too
	short []string // looked for where they stand alone
}

// A core is a secret, or what is always the same of it in base64, wherever it begins in
// what is encoded.
type core struct {
	text          string // without line breaks; with fold in lower case
	fold          bool   // the case of ASCII letters does not count
	before, after int    // characters beside it that hold a part of the secret
}

// Conceal returns a Concealer of secrets. Empty ones are left out, and those of less than
// four bytes are found only where no letter or digit is beside them.
func Conceal(secrets ...string) *Concealer { return conceal(secrets, minSecret, true) }

// conceal returns a Concealer of secrets. Forms of fewer bytes than least are looked for
// where they stand alone, or, with alone not set, not at all.
func conceal(secrets []string, least int, alone bool) *Concealer {
	c := &Concealer{}
	for _, s := range decoded(secrets) {
		for _, f := range secretForms(s) {
			if len(f) >= least {
				c.forms = add(c.forms, f)
			} else if alone {
				c.short = add(c.short, f)
			}
		}
		if len(s) < least {
			continue
		}
		if c.words = add(c.words, written(s)); len(s) >= MinSecret {
			c.words = add(c.words, written(hex.EncodeToString([]byte(s))))
			c.words = add(c.words, cores(s)...)
		}
	}
	return c
}

// decoded returns secrets, and those that are base64 decoded too: their bytes, and those
// as a text of one character each.
func decoded(secrets []string) []string {
	all := slices.Clone(secrets)
	for _, s := range secrets {
		key, err := Key(s)
		if err != nil || len(key) < MinSecret {
			continue
		}
		all = add(all, strings.TrimPrefix(s, secretPrefix), string(key))
		if strings.ContainsFunc(string(key), func(r rune) bool { return r >= utf8.RuneSelf }) {
			characters := make([]rune, len(key))
			for i, b := range key {
				characters[i] = rune(b)
			}
			all = add(all, string(characters))
		}
	}
	return all
}

// written returns a secret as it is looked for: breaks of its lines do not count, nor,
// unless it is short, does the case of letters.
func written(s string) core {
	one := core{text: strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, s), fold: len(s) >= MinSecret}
	if !utf8.ValidString(s) || one.text == "" {
		one.text = s
	}
	if one.fold {
		one.text = string(lowerASCII([]byte(one.text)))
	}
	return one
}

func lowerASCII(b []byte) []byte {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return b
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
		found = everywhere(found, text, f)
	}
	return inDisguise(found, text, c.words)
}

// everywhere adds where a form stands in a text.
func everywhere(found []stretch, text, form string) []stretch {
	for at := 0; ; at++ {
		n := strings.Index(text[at:], form)
		if n < 0 {
			return found
		}
		at += n
		found = append(found, stretch{at, at + len(form)})
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
