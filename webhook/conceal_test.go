package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/webhook"
)

// TestConceal: a secret is found in every disguise that servers put on it, and what
// stands beside it is left.
func TestConceal(t *testing.T) {
	const key = "sk-Key/4711+x"
	b64 := base64.StdEncoding.EncodeToString
	for text, want := range map[string]string{
		`no secret: \u0073k-Key \/ 100 % %zz`: `no secret: \u0073k-Key \/ 100 % %zz`,
		key + key:                             `[REDACTED][REDACTED]`,
		`"\u0073k-Key/4711+x"`:                `"[REDACTED]"`,
		`"sk\u002DKey\/4711\u002bx"`:          `"[REDACTED]"`,
		`"\\u0073k-Key\\/4711+x", \\\\u0073k-Key\\\\\\/4711+x`:     `"[REDACTED]", [REDACTED]`,
		`\x73k\x2dKey/4711+x \U00000073k-Key/4711+x`:               `[REDACTED] [REDACTED]`,
		`?key=sk-Key%2F4711%2Bx&a=1`:                               `?key=[REDACTED]&a=1`,
		`?key=%73%6b%2dKey%2f4711%2Bx`:                             `?key=[REDACTED]`,
		`?next=%3Fkey%3Dsk-Key%252F4711%252Bx.`:                    `?next=%3Fkey%3D[REDACTED].`,
		`%5Cu0073k-Key%5C/4711+x`:                                  `[REDACTED]`,
		`\u0025\u0037\u0033k-Key\u00252F4711+x`:                    `[REDACTED]`,
		`Basic ` + b64([]byte(key)):                                `Basic [REDACTED]==`,
		`Basic ` + b64([]byte(":"+key)) + `.`:                      `Basic O[REDACTED]=.`,
		`{"a":"` + strings.ReplaceAll(b64([]byte(key)), "/", `\/`): `{"a":"[REDACTED]==`,
		`a=` + url.QueryEscape(b64([]byte("u:"+key+":"))):          `a=dT[REDACTED]Og%3D%3D`,
		strings.Repeat(`\`, 100) + `u0073k-Key/4711+x`:             strings.Repeat(`\`, 92) + `[REDACTED]`,
		strings.Repeat(`\`, 7) + key:                               strings.Repeat(`\`, 7) + `[REDACTED]`,
		"sk-Key/4711+":                                             "sk-Key/4711+",
		`\u0073k-Key/4711+`:                                        `\u0073k-Key/4711+`,
		`\u007`:                                                    `\u007`,
		``:                                                         ``,
	} {
		if got := webhook.Redact(text, "", key); got != want {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
	}
}

// disguise is one way in which a server may write a secret.
type disguise func(r *rand.Rand, s string) string

// each puts some of the characters of a text under an escape.
func each(escape func(c byte) string) disguise {
	return func(r *rand.Rand, s string) string {
		var b strings.Builder
		for i := range len(s) {
			if r.IntN(3) == 0 {
				b.WriteString(escape(s[i]))
			} else {
				b.WriteByte(s[i])
			}
		}
		return b.String()
	}
}

// TestConcealEverything: whatever a secret is, whatever it is hidden under, once or
// twice, none is left that could be had back.
func TestConcealEverything(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 5))
	random := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(b)
	}
	inBase64 := func(e *base64.Encoding) disguise {
		return func(r *rand.Rand, s string) string {
			return e.EncodeToString([]byte(random("xyz:", r.IntN(5)) + s + random("xyz:", r.IntN(5))))
		}
	}
	once := []disguise{
		each(func(c byte) string { return fmt.Sprintf(`\u%04x`, c) }), each(func(c byte) string { return fmt.Sprintf(`\u%04X`, c) }),
		each(func(c byte) string { return fmt.Sprintf(`%%%02x`, c) }), each(func(c byte) string { return fmt.Sprintf(`%%%02X`, c) }),
		each(func(c byte) string { return fmt.Sprintf(`\x%02x`, c) }),
		each(func(c byte) string { return fmt.Sprintf(`&#%d;`, c) }), each(func(c byte) string { return fmt.Sprintf(`&#x%X;`, c) }),
		func(_ *rand.Rand, s string) string { return html.EscapeString(strings.ReplaceAll(s, "/", "&")) },
		each(func(c byte) string { return string(c) + "\r\n" }), each(func(c byte) string { return string(c) + " \\\n\t" }),
		each(func(c byte) string { return string(c) + "=\n" }), each(func(c byte) string { return string(c) + "\u00ad" }),
		each(func(c byte) string { return strings.ToUpper(string(c)) }), func(_ *rand.Rand, s string) string { return strings.ToLower(s) },
		func(_ *rand.Rand, s string) string { return fmt.Sprintf("%X", s) },
		func(r *rand.Rand, s string) string { // as PEM and MIME have it, however wide
			text, width := base64.StdEncoding.EncodeToString([]byte(s)), 2+r.IntN(76)
			for at := width; at < len(text); at += width + 2 {
				text = text[:at] + "\r\n" + text[at:]
			}
			return text
		},
		each(func(c byte) string { return fmt.Sprintf("&#x%X\r\n\t%X;", c>>4, c&15) }),
		inBase64(base64.StdEncoding), inBase64(base64.RawStdEncoding), inBase64(base64.URLEncoding), inBase64(base64.RawURLEncoding),
	}
	around := []disguise{
		func(_ *rand.Rand, s string) string { return s },
		func(_ *rand.Rand, s string) string { j, _ := json.Marshal(s); return string(j) },
		func(_ *rand.Rand, s string) string { return url.QueryEscape(s) },
		func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	}
	const htmlEscapes = 7 // the place in once of what html.EscapeString writes
	for range 20_000 {
		secret := random("abcXYZ0189_-+/=.~", 6+r.IntN(40))
		one, other := r.IntN(len(once)), r.IntN(len(around))
		if one == htmlEscapes {
			secret = strings.ReplaceAll(secret, "/", "&")
		}
		text := "<" + around[other](r, once[one](r, secret)) + ">"
		got := webhook.Redact(text, secret)
		if !strings.Contains(got, "[REDACTED]") || len(got) > len("[REDACTED]")+24 || got[0] != '<' || got[len(got)-1] != '>' {
			t.Fatalf("seed %d: %q in disguise %d in %d, %s, is shown as %s", seed, secret, one, other, text, got)
		}
	}
}

// TestConcealDecoded: a signing secret that is base64 is found as the bytes it stands
// for, which are the key, however those are written.
func TestConcealDecoded(t *testing.T) {
	for _, key := range []string{"a key of plain text, 4711", "\x00\xff\x8fKey\xc3\x28\n of bytes \xf0", "ключ подписи"} {
		for _, prefix := range []string{"whsec_", ""} {
			secret := prefix + base64.StdEncoding.EncodeToString([]byte(key))
			latin1 := make([]rune, len(key))
			for i := range len(key) {
				latin1[i] = rune(key[i])
			}
			for _, written := range []string{
				secret, strings.TrimPrefix(secret, "whsec_"), key, fmt.Sprintf("%x", key), fmt.Sprintf("%X", key), strconv.Quote(key),
				base64.URLEncoding.EncodeToString([]byte(key)), base64.StdEncoding.EncodeToString([]byte("x" + key)),
				base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(key), string(latin1), secret[:9] + "\n  " + secret[9:],
			} {
				got := webhook.Redact("<"+written+">", secret)
				if rest := strings.ReplaceAll(got, "[REDACTED]", ""); rest == got || len(rest) > 8 {
					t.Errorf("%q, written %q, is shown as %q", secret, written, got)
				}
			}
		}
	}
	for _, other := range []string{"a key of plain text", "whsec", "4711", "a\nkey", "6b6579"} {
		if got := webhook.Redact(other, "whsec_"+base64.StdEncoding.EncodeToString([]byte("a key of plain text, 4711"))); got != other {
			t.Errorf("%q is shown as %q", other, got)
		}
	}
}

// TestConcealLines: a secret is found across lines, with what says that a line goes on
// and what indents the next, and a secret of several lines in any other form; what
// stands beside it is left as it was.
func TestConcealLines(t *testing.T) {
	for text, want := range map[string]string{
		"a sk-Key-\n    4711 b":              "a [REDACTED] b",
		"a sk-\\\n  Key-\r\n4711\nb":         "a [REDACTED]\nb",
		`{"a":"sk-Key\n-4711\n"}`:            `{"a":"[REDACTED]\n"}`,
		`{"a":"SK-KEY-4711"}`:                `{"a":"[REDACTED]"}`,
		"sk-Key=\n-4711=\n":                  "[REDACTED]=\n",
		"sk-&#75;ey&hyphen;4711 &lt;b&gt;":   "sk-&#75;ey&hyphen;4711 &lt;b&gt;",
		"sk&#45Key&#0000045;4711":            "[REDACTED]",
		`sk\u0026#45;Key-4711`:               `[REDACTED]`,
		"sk&#4\n5;Key&#x\r\n  2D;4711":       "[REDACTED]",
		"sk&#=\n45;Key&\u00ad#45\u200b;4711": "[REDACTED]",
		`sk-K&#\n101;y-4711`:                 "[REDACTED]",
		"sk&#4 5;Key-4711":                   "sk&#4 5;Key-4711",
		"sk-Key- 4711":                       "sk-Key- 4711",
		"sk-Key-\\4711":                      "sk-Key-\\4711",
	} {
		if got := webhook.Redact(text, "sk-Key-4711"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := webhook.Redact("<sk&am\np;&qu=\r\n\tot;Key-4711>", `sk&"Key-4711`); got != "<[REDACTED]>" {
		t.Errorf("line breaks within references: %q", got)
	}
	pem := "-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END KEY-----\n"
	for _, text := range []string{pem, strings.ReplaceAll(pem, "\n", "\r\n"), strings.ReplaceAll(pem, "\n", ""), strings.ReplaceAll(pem, "\n", "\n  "), strings.ReplaceAll(pem, "\n", `\n`)} {
		if got := webhook.Redact("<"+text+">", pem); !strings.HasPrefix(got, "<[REDACTED]") || strings.Contains(got, "KEY") {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// TestConcealLongTexts: a text that looks like nothing but the begin of escapes costs
// little more than its length.
func TestConcealLongTexts(t *testing.T) {
	c := webhook.Conceal("sk-Key-4711", "another-key-4712", "webhook-token-4713")
	for _, part := range []string{`\`, `\u`, `\u0073`, `%`, `%5C`, `%25`, `%255C`, `\u005c`, `s`, `sk-Key-471`, `\x`, `x\/`, `&`, "&\n", "&#1\n", "&=\n&", `&#`, `&#x73;`, `&amp;`, "\n", "s\n", "s \n ", "s=\n", `s\n`, "s\u00ad"} {
		text := strings.Repeat(part, webhook.MaxAnswer/len(part))
		start := time.Now()
		if got := c.Hide(text); got != text {
			t.Errorf("%s: %.100s", part, got)
		}
		if took := time.Since(start); took > 30*time.Second { // a hundredth of that is usual; the square of the length would take hours
			t.Errorf("%s: it takes %s", part, took)
		} else {
			t.Logf("%s: %s", part, took)
		}
	}
}

func BenchmarkConceal(b *testing.B) {
	text := strings.Repeat(`{"text":"so gro\u00df wie m\u00f6glich, 100 % sicher","n":1.5}`, 20)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	c := webhook.Conceal("sk-or-v1-0123456789abcdef0123456789abcdef")
	for b.Loop() {
		c.Hide(text)
	}
}

// FuzzConceal: in no text is a secret left, and a text without escapes in which none is
// stays as it is.
func FuzzConceal(f *testing.F) {
	f.Add(`{"a":"\u0073ecret-1"}`, "secret-1")
	f.Add(`%73ecret%2d1 c2VjcmV0LTE=`, "secret-1")
	f.Add(`\\\\\\\\\\u0073ecret`, "secret")
	f.Add("aaaaaaaaaa", "aaaaaa")
	f.Fuzz(func(t *testing.T, text, secret string) {
		if len(secret) < webhook.MinSecret || strings.ContainsAny(secret, "[]") {
			t.Skip("too short to be looked for everywhere, or a part of what takes its place")
		}
		got := webhook.Redact(text, secret)
		if strings.Contains(got, secret) && !strings.Contains("[REDACTED]", secret) {
			t.Errorf("%q in %q is shown: %q", secret, text, got)
		}
		if !strings.Contains(got, "[REDACTED]") && got != text {
			t.Errorf("%q has become %q", text, got)
		}
	})
}

// TestEchoesInDisguise: a token that a service sends back under escapes, in percent or in
// base64 is in no error and in no answer.
func TestEchoesInDisguise(t *testing.T) {
	for written, tell := range map[string]string{
		fmt.Sprintf(`\u%04x`, token[0]) + token[1:]:                                  token[1:],
		fmt.Sprintf(`%%%02X`, token[0]) + token[1:]:                                  token[1:],
		base64.StdEncoding.EncodeToString([]byte("someone:" + token + ":else")):      base64.StdEncoding.EncodeToString([]byte("someone:" + token + ":else"))[12:20],
		base64.RawURLEncoding.EncodeToString([]byte("a:" + callbackToken + ":else")): base64.RawURLEncoding.EncodeToString([]byte("a:" + callbackToken + ":else"))[4:12],
	} {
		inText, _ := json.Marshal(written)
		for status, body := range map[int]string{422: written, 200: fmt.Sprintf(`{"transitionName":"approve","reasoning":%s,"metaJson":{%s:[%s]}}`, inText, inText, inText)} {
			s := answering(t, status, body)
			m := parse(t, machineText)
			p, err := client(t).Proposer(m, hook(s.URL), nil)
			if err != nil {
				t.Fatal(err)
			}
			a, err := p.Propose(bounded(t), question(m))
			if all := fmt.Sprint(a.Reasoning, string(a.MetaJSON), err); strings.Contains(all, tell) || !strings.Contains(all, "[REDACTED]") || (err == nil) != (status == 200) {
				t.Errorf("%s with %d: %s", written, status, all)
			}
		}
	}
}
