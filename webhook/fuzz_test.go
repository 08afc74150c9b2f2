package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// wantRefusal reports whether a body was refused in the right way.
func wantRefusal(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*webhook.AnswerError](err); !ok {
		t.Fatalf("refused with %T: %v", err, err)
	}
}

// plain reads an accepted body with the standard library: it must agree on what
// the members are.
func plain(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&members); err != nil || !utf8.Valid(body) {
		t.Fatalf("accepted, but it is no JSON object in UTF-8: %v", err)
	}
	return members
}

// legalJSON reports whether a passed-on value is one tidy JSON value or nothing.
func legalJSON(raw json.RawMessage) bool {
	if raw == nil {
		return true
	}
	tidy, err := jsontext.Tidy(raw)
	return err == nil && bytes.Equal(tidy, raw) && string(raw) != "null"
}

func addMalformed(f *testing.F) {
	for _, body := range malformed {
		if len(body) < 1000 { // the others only slow it down
			f.Add([]byte(body))
		}
	}
}

// nested returns an object with one more member, which nobody knows and which is
// no plain value: it must be read to the same effect. It returns nil for what has
// no member to begin with.
func nested(body []byte) []byte {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(body), []byte("{"))
	if rest = bytes.TrimSpace(rest); !ok || len(rest) == 0 || rest[0] != '"' || bytes.Contains(body, []byte("nested")) || bytes.Contains(body, []byte("\\u")) {
		return nil
	}
	return append([]byte(`{"nested":[{}],`), rest...)
}

// wantAlike compares what is made of a body and of the nested one.
func wantAlike(t *testing.T, body []byte, a specialist.Answer, err error) {
	t.Helper()
	other := nested(body)
	if other == nil {
		return
	}
	b, err2 := webhook.ReadAnswer(other)
	if fmt.Sprint(err) != fmt.Sprint(err2) && (err == nil || err2 == nil || !strings.Contains(err.Error(), "not one JSON value")) || !reflect.DeepEqual(a, b) {
		t.Fatalf("%s:\n%+v, %v\nwith another member\n%+v, %v", body, a, err, b, err2)
	}
}

// Answers with and without values inside values are read in different ways.
func TestPlainAndNestedAnswers(t *testing.T) {
	many := good[1:]
	for i := range 40 {
		many = fmt.Sprintf(`"m%d":%d,`, i, i) + many
	}
	for _, body := range []string{
		good, "{" + many, "{ \"transitionName\" :\t\"a,}:]{\"\r\n, \"costUSD\": 0.10 ,\"x\":null , \"metaJson\":\"text\" } ", `{"transitionName":"ä ","metaJson":-1.50e2}`,
		`{"transitionName":"a","metaJson":true,"toState":null,"toolCalls":null}`, `{"":"","transitionName":"a"}`, `{"transitionName":"a","reasoning":"say \"b\"\n"}`,
		`{"transitionName":"a","x":1,"x":1}`, `{"transitionName":"a","transitionName":null}`, `{"transitionName":1}`, `{"transitionName":"a","costUSD":-1}`, `{"transitionName":"a",}`, "{" + many + "x", `{"x":01}`,
	} {
		a, err := webhook.ReadAnswer([]byte(body))
		wantAlike(t, []byte(body), a, err)
	}
	if _, err := webhook.ReadAnswer([]byte("{" + many)); err != nil {
		t.Error(err)
	}
	for _, empty := range []string{"{}", "{ }", " {\n} "} {
		wantProblem(t, third(webhook.ReadAnswer([]byte(empty))), empty, "transitionName is missing")
	}
}

func FuzzReadAnswer(f *testing.F) {
	addMalformed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := webhook.ReadAnswer(body)
		wantAlike(t, body, a, err)
		u := a.Usage
		if u.CostUSD < 0 || u.LatencyMsec < 0 || u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.Estimated || u.Given > allGiven {
			t.Fatalf("usage %+v", u)
		}
		if u.Given&^allGiven != 0 || !u.Has(specialist.CostGiven) && u.CostUSD != 0 || !u.Has(specialist.InputGiven) && u.NumInputTokens != 0 {
			t.Fatalf("usage %+v", u)
		}
		if err != nil {
			wantRefusal(t, err)
			return
		}
		members := plain(t, body)
		if a.TransitionName == "" || members["transitionName"] != a.TransitionName {
			t.Fatalf("transitionName %q of %v", a.TransitionName, members)
		}
		for name, got := range map[string]string{"toState": a.ToState, "reasoning": a.Reasoning, "model": a.Model} {
			if want, _ := members[name].(string); got != want || !utf8.ValidString(got) {
				t.Fatalf("%s %q of %v", name, got, members)
			}
		}
		if !legalJSON(a.MetaJSON) || (a.MetaJSON == nil) != (members["metaJson"] == nil) {
			t.Fatalf("metaJson %s", a.MetaJSON)
		}
		for _, c := range a.ToolCalls {
			if c.Name == "" || !legalJSON(c.Args) || !utf8.ValidString(c.Name+c.ID) {
				t.Fatalf("tool call %+v", c)
			}
		}
	})
}

func FuzzReadConsensus(f *testing.F) {
	addMalformed(f)
	f.Add([]byte(`{"consensusReached":true,"winningProposalId":"` + key.ProposalID(1) + `","reasoning":"ok","margin":0.5}`))
	r := round(parse(f, machineText))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := webhook.ReadConsensus(body, r)
		if err != nil {
			if d.Consensus() {
				t.Fatalf("refused, and yet %+v", d)
			}
			if !strings.HasPrefix(err.Error(), "Winning proposal not found: ") {
				wantRefusal(t, err)
			}
			return
		}
		members := plain(t, body)
		if d.Consensus() != (members["consensusReached"] == true) || d.Check(r) != nil {
			t.Fatalf("decision %+v of %v", d, members)
		}
		if d.Consensus() && key.ProposalID(r.Votes[d.Winner].Arrival) != members["winningProposalId"] {
			t.Fatalf("winner %d of %v", d.Winner, members)
		}
		if d.Margin > exact.One || d.Margin < -exact.One || d.HasMargin != (members["margin"] != nil) || !utf8.ValidString(d.Text) {
			t.Fatalf("decision %+v of %v", d, members)
		}
	})
}

func FuzzReadContext(f *testing.F) {
	addMalformed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := webhook.ReadContext(body)
		if err != nil {
			wantRefusal(t, err)
			return
		}
		if plain(t, body)["context"] != text || len(text) > webhook.MaxContext {
			t.Fatalf("context %q", text)
		}
	})
}

// Whatever the list, http is spoken only with whom it names, and addresses that
// are not public are called only if it has entries.
func FuzzParsePolicy(f *testing.F) {
	for _, list := range []string{"", "a.example,b.example:80 10.0.0.0/8", "[::1]:80", "::1 fc00::/7", "a.example:"} {
		f.Add(list, "http://a.example/")
		f.Add(list, "https://[::ffff:10.0.0.1]:80/")
	}
	f.Fuzz(func(t *testing.T, list, address string) {
		p, err := webhook.ParsePolicy(list)
		if err != nil {
			if p.CheckURL(&url.URL{Scheme: "https", Host: "127.0.0.1"}) == nil {
				t.Fatalf("%q was refused, and yet it allows", list)
			}
			return
		}
		if again, err := webhook.ParsePolicy(strings.ToUpper(list)); err == nil {
			checkAlike(t, p, again, address)
		}
		u, err := url.Parse(address)
		if err != nil || p.CheckURL(u) != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			t.Fatalf("%q allows %q", list, address)
		}
		ip := net.ParseIP(u.Hostname())
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if u.Scheme == "http" && ip == nil && net.ParseIP(host) == nil && !strings.Contains(host, "%") && !strings.Contains(strings.ToLower(list), host) {
			t.Fatalf("%q allows %q", list, address)
		}
		if ip != nil && (!ip.IsGlobalUnicast() || ip.IsPrivate()) && strings.Trim(list, ", \t\n\r\v\f\u0085\u00a0") == "" {
			t.Fatalf("%q allows %q", list, address)
		}
	})
}

// checkAlike compares two policies that should be the same.
func checkAlike(t *testing.T, p, q webhook.Policy, address string) {
	t.Helper()
	if u, err := url.Parse(address); err == nil && (p.CheckURL(u) == nil) != (q.CheckURL(u) == nil) {
		for _, r := range u.Host {
			if r >= utf8.RuneSelf {
				return // case is not so simple there
			}
		}
		t.Fatalf("case counts for %q", address)
	}
}
