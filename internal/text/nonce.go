package text

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// What of a call's arguments differs although the call is the same. Names of members
// tell (NonceOf): request ids, trace ids and times name the call; nonces, salts and
// cache busters are there to differ. And values tell: UUIDs, moments, long runs of
// digits or hexadecimal digits, long words with letters and digits mixed. A string that
// holds an object or a list as JSON is read as that: many tools take their arguments so.
//
// normalValue does on decoded values what JSONHasher does on bytes: the two must agree,
// or SameJSON would contradict the hashes that it confirms.

// normalValue returns a decoded JSON value without what disguises a loop, as
// HashNormal reads it.
func normalValue(v any, depth int) any {
	switch v := v.(type) {
	case string:
		seen := AppendSeen(nil, []byte(v))
		if inner, ok := within(seen); ok {
			return embedded{inner}
		}
		return string(seen)
	case []any:
		for i := range v {
			v[i] = normalValue(v[i], depth+1)
		}
	case map[string]any:
		return normalObject(v, depth)
	}
	return v
}

// embedded is the value that a string holds as JSON.
type embedded struct{ value any }

// within returns the value that a text holds as JSON, if that is an object or a list.
func within(text []byte) (any, bool) {
	if !mayHold(text) {
		return nil, false
	}
	if _, err := new(JSONHasher).HashNormal(text); err != nil {
		return nil, false
	}
	v, err := decoded(text)
	return normalValue(v, 0), err == nil
}

// mayHold reports whether a text begins as an object or a list does.
func mayHold(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 1 && (text[0] == '{' || text[0] == '[')
}

func normalObject(members map[string]any, depth int) map[string]any {
	kept, aside := map[string]any{}, map[string]any{}
	for name, member := range members {
		seen := string(AppendSeen(nil, []byte(name)))
		switch member = normalValue(member, depth+1); NonceOf([]byte(seen)) {
		case NoNonce:
			kept[seen] = member
		case callNonce:
			aside[seen] = member
		}
	}
	if len(kept) == 0 && depth == 0 {
		return aside
	}
	return kept
}

// A nonceKind says what a member of arguments is by its name.
type nonceKind byte

// The kinds: a value like any other, and two that are made anew for every call.
const (
	NoNonce   nonceKind = iota
	callNonce           // names the call, unless it is all the arguments there are
	pureNonce           // is there to differ
)

// NonceOf returns what a member is. The case of ASCII letters, underscores, hyphens,
// dots and blanks of its name do not count.
func NonceOf(name []byte) nonceKind {
	var room [20]byte
	short := room[:0]
	for _, c := range name {
		switch {
		case c == '_' || c == '-' || c == '.' || c == ' ':
			continue
		case len(short) == len(room):
			return NoNonce
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		short = append(short, c)
	}
	switch string(short) {
	case "nonce", "salt", "seed", "rand", "rnd", "random", "randomseed", "entropy", "cachebuster", "cachebust", "cachebreaker", "nocache", "bust", "buster", "cb":
		return pureNonce
	case "requestid", "reqid", "xrequestid", "clientrequestid", "traceid", "traceparent", "tracestate", "spanid", "correlationid",
		"xcorrelationid", "idempotencykey", "idempotencytoken", "invocationid", "callid", "toolcallid", "attemptid",
		"timestamp", "ts", "timestampms", "unixtime", "requesttime", "requestedat", "sentat", "calledat", "now", "currenttime":
		return callNonce
	}
	return NoNonce
}

// appendLasting appends s without the words in it that look as if made up for one
// occasion: UUIDs, moments as RFC 3339 has them, long runs of hexadecimal or other
// digits, and long words of letters and digits. dst may be s[:0].
func appendLasting(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		if n := max(inShape(s[i:], uuidShape), momentAt(s[i:])); n > 0 {
			i += n
			continue
		}
		n := 0
		for i+n < len(s) && WordByte[s[i+n]] {
			n++
		}
		if n == 0 {
			n = 1
		} else if madeUp(s[i : i+n]) {
			i += n
			continue
		}
		dst = append(dst, s[i:i+n]...)
		i += n
	}
	return dst
}

// blank reports whether there is no word in s.
func blank(s []byte) bool {
	return !slices.ContainsFunc(s, func(c byte) bool { return WordByte[c] })
}

// madeUp reports whether a word looks random: at least eight hexadecimal digits with
// letters and digits among them, ten digits, or twenty letters and digits mixed.
func madeUp(word []byte) bool {
	digits, hex := 0, 0
	for _, c := range word {
		switch {
		case c >= utf8.RuneSelf:
			return false
		case c-'0' <= 9:
			digits++
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			hex++
		}
	}
	letters := len(word) - digits
	switch {
	case letters == 0:
		return digits >= 10
	case letters == hex:
		return digits > 0 && len(word) >= 8
	}
	return len(word) >= 20 && digits >= 3
}

// shapes of what [inShape] finds: 'x' is a hexadecimal digit, '0' a decimal one.
const (
	uuidShape   = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	momentShape = "0000-00-00T00:00:00"
)

// momentAt returns how long the moment is that s begins with, 0 if there is none.
func momentAt(s []byte) int {
	n := inShape(s, momentShape)
	for n > 0 && n < len(s) && (s[n]-'0' <= 9 || s[n] == '.' || s[n] == ':' || s[n] == '+' || s[n] == '-' || s[n] == 'Z') {
		n++
	}
	return n
}

// inShape returns the length of shape if s begins with it, else 0.
func inShape(s []byte, shape string) int {
	if len(s) < len(shape) {
		return 0
	}
	for i := range len(shape) {
		c := s[i]
		digit := c-'0' <= 9
		switch shape[i] {
		case 'x':
			if !digit && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		case '0':
			if !digit {
				return 0
			}
		default:
			if c != shape[i] {
				return 0
			}
		}
	}
	return len(shape)
}
