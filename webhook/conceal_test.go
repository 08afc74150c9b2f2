package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
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
		inBase64(base64.StdEncoding), inBase64(base64.RawStdEncoding), inBase64(base64.URLEncoding), inBase64(base64.RawURLEncoding),
	}
	around := []disguise{
		func(_ *rand.Rand, s string) string { return s },
		func(_ *rand.Rand, s string) string { j, _ := json.Marshal(s); return string(j) },
		func(_ *rand.Rand, s string) string { return url.QueryEscape(s) },
		func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "/", `\/`) },
	}
	for range 20_000 {
		secret := random("abcXYZ0189_-+/=.~", 6+r.IntN(40))
		one, other := r.IntN(len(once)), r.IntN(len(around))
		text := "<" + around[other](r, once[one](r, secret)) + ">"
		got := webhook.Redact(text, secret)
		if !strings.Contains(got, "[REDACTED]") || len(got) > len("[REDACTED]")+24 || got[0] != '<' || got[len(got)-1] != '>' {
			t.Fatalf("seed %d: %q in disguise %d in %d, %s, is shown as %s", seed, secret, one, other, text, got)
		}
	}
}

// TestConcealLongTexts: a text that looks like nothing but the begin of escapes costs
// little more than its length.
func TestConcealLongTexts(t *testing.T) {
	c := webhook.Conceal("sk-Key-4711", "another-key-4712", "webhook-token-4713")
	for _, part := range []string{`\`, `\u`, `\u0073`, `%`, `%5C`, `%25`, `%255C`, `\u005c`, `s`, `sk-Key-471`, `\x`, `x\/`} {
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
			p, err := client(t).Proposer(m, hook(s.URL))
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
