package permit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/packs"
)

// secretSize is the length of the secret, in bytes.
const secretSize = 32

// inputDigest says which prompt an allow is for: the HMAC-SHA-256, in hex, of the tool, the
// folder and the input as they are, each in the form of RFC 8785. It has a key, so that
// nobody finds a masked secret out by trying. An input that is no JSON counts byte by byte.
func inputDigest(secret []byte, tool, cwd string, input json.RawMessage) string {
	form := "json"
	canonical, err := jsontext.Canonical(input)
	if err != nil {
		form, canonical = "bytes", jsontext.AppendString(nil, hex.EncodeToString(input))
	}
	var b []byte
	b = append(b, `{"cwd":`...)
	b = jsontext.AppendString(b, cwd)
	b = append(b, `,"form":"`+form+`","input":`...)
	b = append(b, canonical...)
	b = append(b, `,"tool":`...)
	b = append(jsontext.AppendString(b, tool), '}')
	mac := hmac.New(sha256.New, secret)
	mac.Write(b)
	return hex.EncodeToString(mac.Sum(nil))
}

// masked returns the input with what looks like a secret or like personal data replaced, as
// in logs (see [packs.Redact]). A member's name tells too: a value after "password" is looked
// at with it. Texts of a shell tool are lines. What is no JSON is null.
func masked(input json.RawMessage, shell bool) json.RawMessage {
	tidy, err := jsontext.Tidy(input)
	if err != nil {
		return json.RawMessage("null")
	}
	return maskValue(nil, &jsontext.Cursor{B: tidy}, "", shell)
}

func maskValue(dst []byte, c *jsontext.Cursor, name string, shell bool) []byte {
	first := true
	next := func(dst []byte) []byte {
		if first {
			first = false
			return dst
		}
		return append(dst, ',')
	}
	switch c.Peek() {
	case '{':
		dst = append(dst, '{')
		c.Members(func(quoted []byte) {
			var member string
			_ = json.Unmarshal(slices.Concat([]byte{'"'}, quoted, []byte{'"'}), &member)
			dst = append(jsontext.AppendString(next(dst), packs.Redact(member)), ':')
			dst = maskValue(dst, c, member, shell)
		})
		return append(dst, '}')
	case '[':
		value := c.Raw()
		if shell {
			if list, ok := maskArguments(value); ok {
				text, _ := jsontext.Marshal(list) // texts only
				return append(dst, text...)
			}
		}
		dst = append(dst, '[')
		inner := &jsontext.Cursor{B: value}
		inner.Elements(func() { dst = maskValue(next(dst), inner, name, shell) })
		return append(dst, ']')
	case '"':
		var s string
		_ = json.Unmarshal(c.Raw(), &s)
		return jsontext.AppendString(dst, maskText(name, s, shell))
	}
	if raw := c.Raw(); raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || !isSecretMember(name) {
		return append(dst, raw...)
	}
	return jsontext.AppendString(dst, redacted)
}

// maskText masks a text that is the value of a member.
func maskText(name, s string, shell bool) string {
	if isSecretMember(name) && s != "" {
		return redacted
	}
	if alone := packs.Redact(s); alone == s && packs.HoldsSecret(name+`="`+s+`"`) {
		return "[redacted:named_secret]"
	}
	if shell {
		s = maskLine(s)
	}
	return packs.Redact(hidePasswords(s))
}

// eachText calls f with every text of a JSON value, names of members among them.
func eachText(value json.RawMessage, f func(s string)) {
	dec := json.NewDecoder(bytes.NewReader(value))
	for {
		t, err := dec.Token()
		if err != nil {
			return
		}
		if s, ok := t.(string); ok {
			f(s)
		}
	}
}
