package webhook_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/webhook"
)

const callbackToken = "callback-secret-0123456789"

// planted returns all that a service is sent and no error may show, in every
// form that it is likely to come back in.
func planted() (list []string) {
	pair := base64.StdEncoding.EncodeToString([]byte("document-review:" + token))
	// The last is for proposers only.
	for _, s := range []string{token, pair, secret, strings.TrimPrefix(secret, "whsec_"), "key=planted", callbackToken} {
		inJSON, _ := json.Marshal(s)
		list = append(list, s, strings.Trim(string(inJSON), `"`), url.QueryEscape(s), url.PathEscape(s), strings.Trim(strconv.Quote(s), `"`))
	}
	return list
}

// wantNoSecret looks for secrets in an error and in all that it wraps.
func wantNoSecret(t *testing.T, err error, secrets []string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
	}
	for ; err != nil; err = unwrap(err) {
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, err)} {
			for _, s := range secrets {
				if strings.Contains(text, s) {
					t.Errorf("error shows %q: %s", s, text)
				}
			}
		}
	}
}

func unwrap(err error) error {
	if w, ok := err.(interface{ Unwrap() error }); ok {
		return w.Unwrap()
	}
	return nil
}

// wantNoEcho asks in all three ways, signing with a secret of its own, and
// expects that each fails without telling.
func wantNoEcho(t *testing.T, url string) {
	t.Helper()
	m, c := parse(t, machineText), client(t)
	h := hook(url)
	h.WebhookSecretName = "MY_WEBHOOK_SECRET"
	p, err1 := c.Proposer(m, h, nil)
	a, err2 := c.Arbiter(m, h)
	g, err3 := c.Context(m, h)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	_, err1 = p.Propose(bounded(t), question(m))
	_, err2 = a.Decide(bounded(t), round(m))
	_, err3 = g.Gather(bounded(t), question(m))
	all := planted()
	for i, err := range []error{err1, err2, err3} {
		wantNoSecret(t, err, all)
		if i == 0 {
			all = all[:len(all)-5] // the others were not sent the callback's token
		}
	}
}

// A service may send back whatever it was sent, wherever it can.
func TestEchoes(t *testing.T) {
	all := strings.Join(planted(), " ")
	inJSON, _ := json.Marshal(planted())
	quoted, _ := json.Marshal(token)
	for name, handle := range map[string]http.HandlerFunc{
		"headers as text": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			_ = r.Header.Write(w)
		},
		"headers as JSON": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			_ = json.NewEncoder(w).Encode(r.Header)
		},
		"URL and user": func(w http.ResponseWriter, r *http.Request) {
			_, pass, _ := r.BasicAuth()
			http.Error(w, fmt.Sprintf("no %q for %s at %s", pass, pass, r.URL), http.StatusNotFound)
		},
		"everything":         func(w http.ResponseWriter, _ *http.Request) { http.Error(w, all, http.StatusUnprocessableEntity) },
		"everything as JSON": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(422); _, _ = w.Write(inJSON) },
		"without a break": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Join(planted(), ""), http.StatusUnprocessableEntity)
		},
		"at the cut": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 2040)+token, http.StatusUnprocessableEntity)
		},
		"before the cut": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat(secret, 100), http.StatusUnprocessableEntity)
		},
		"a duplicate member": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{%s:1,%s:2}`, quoted, quoted) },
		"an unknown winner": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"consensusReached":true,"winningProposalId":%s}`, quoted)
		},
		"a bad redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/"+r.URL.RawQuery+callbackToken)
			w.WriteHeader(307)
		},
		"a redirect elsewhere": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://127.0.0.2/"+url.PathEscape(token))
			w.WriteHeader(307)
		},
	} {
		s := server(t, handle)
		t.Run(name, func(t *testing.T) { wantNoEcho(t, s.URL+"/?key=planted") })
	}
}

// Nor may what is no HTTP, or a server that is not there, bring one up.
func TestEchoesBelowHTTP(t *testing.T) {
	for _, text := range []string{"HTTP/1.1 " + callbackToken + "\r\n\r\n", callbackToken + " " + secret + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: " + callbackToken + "\r\n\r\n"} {
		s := rawServer(t, func(_ int, c *net.TCPConn) {
			if readRequest(c) {
				_, _ = io.WriteString(c, text)
			}
		})
		wantNoEcho(t, s.url()+"/?key=planted")
		s.Close()
		wantNoEcho(t, s.url()+"/?key=planted")
	}
}

// An answer is stored, shown and told to others, so it must not bring a secret up
// either: not in a text, not as a name, not under an escape.
func TestEchoesInAnswers(t *testing.T) {
	for _, planted := range planted() {
		word, _ := json.Marshal("x" + planted + "y")
		hidden := `"\u00` + fmt.Sprintf("%02x", planted[0]) + strings.TrimSuffix(strings.TrimPrefix(string(word), `"x`+inJSON(planted[:1])), `y"`) + `"`
		s := answering(t, 200, fmt.Sprintf(`{"transitionName":%[1]s,"toState":%[1]s,"reasoning":%[2]s,"model":%[1]s,"metaJson":{%[1]s:[%[2]s,{"a":%[1]s}],"n":1.0},
			"toolCalls":[{"name":%[1]s,"id":%[2]s,"args":{"a":%[1]s},"result":[%[2]s]}],"costUSD":0.5}`, word, hidden))
		m := parse(t, machineText)
		h := hook(s.URL + "/?key=planted")
		h.WebhookSecretName = "MY_WEBHOOK_SECRET"
		p, err := client(t).Proposer(m, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Propose(bounded(t), question(m))
		if err != nil || a.Usage.CostUSD == 0 || !json.Valid(a.MetaJSON) || !json.Valid(a.ToolCalls[0].Args) {
			t.Errorf("%s: %+v, %v", hidden, a, err)
		}
		const gone, in = "x[REDACTED]y", `"x[REDACTED]y"`
		if want := `{` + in + `:["[REDACTED]",{"a":` + in + `}],"n":1.0}`; string(a.MetaJSON) != want {
			t.Errorf("metaJson %s, want %s", a.MetaJSON, want)
		}
		if c := a.ToolCalls[0]; c.Name != gone || c.ID != "[REDACTED]" || string(c.Args) != `{"a":`+in+`}` || string(c.Result) != `["[REDACTED]"]` {
			t.Errorf("call %+v", c)
		}
		if a.TransitionName != gone || a.ToState != gone || a.Reasoning != "[REDACTED]" || a.Model != gone {
			t.Errorf("answer %+v", a)
		}
	}
}

func inJSON(s string) string {
	b, _ := json.Marshal(s)
	return strings.Trim(string(b), `"`)
}

// Verdicts and contexts are answers too.
func TestEchoesInVerdicts(t *testing.T) {
	quoted, _ := json.Marshal("no: " + token)
	d, err := decide(t, client(t), answering(t, 200, `{"consensusReached":false,"reasoning":`+string(quoted)+`}`).URL)
	if err != nil || d.Reasoning() != "no: [REDACTED]" {
		t.Errorf("%+v, %v", d, err)
	}
	g, err := client(t).Context(parse(t, machineText), hook(answering(t, 200, `{"context":`+string(quoted)+`}`).URL))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := g.Gather(bounded(t), question(parse(t, machineText))); err != nil || text != "no: [REDACTED]" {
		t.Errorf("%q, %v", text, err)
	}
}

// What a machine calls its transitions is no secret, and short words are none.
func TestNoEcho(t *testing.T) {
	for _, value := range []string{"zz approve", "yes", "done?"} {
		c := config(t, "127.0.0.1")
		c.Lookup = func(string) (string, bool) { return value, true }
		a, err := propose(t, webhook.New(c), answering(t, 200, `{"transitionName":"zz approve","reasoning":"yes, done?","metaJson":{"k":"yes"}}`).URL)
		if err != nil || a.TransitionName != "zz approve" || a.Reasoning != "yes, done?" || string(a.MetaJSON) != `{"k":"yes"}` {
			t.Errorf("%s: %+v, %v", value, a, err)
		}
	}
}

// Whatever JSON comes back stays JSON, without the token, and as it was where there
// is none.
func TestEchoesInAnyJSON(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	pieces := []string{token, "\"", "\\", "a", "ä", "\u2028", "\x01", "tok&n", "<", ""}
	text := func() (s string) {
		for range rng.IntN(4) {
			s += pieces[rng.IntN(len(pieces))]
		}
		return s
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch rng.IntN(4 + depth) {
		case 0:
			return []any{value(depth + 1), value(depth + 1)}
		case 1:
			return map[string]any{text(): value(depth + 1), "k": nil}
		case 2:
			return rng.IntN(100)
		}
		return text()
	}
	var body []byte
	s := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
	c, inText := client(t), inJSON(token)
	for range 300 {
		meta, _ := json.Marshal(value(0))
		body = []byte(`{"transitionName":"10","metaJson":` + string(meta) + `}`)
		a, err := propose(t, c, s.URL)
		if err != nil || !json.Valid(a.MetaJSON) && string(meta) != "null" {
			t.Fatalf("seed %d: %s: %s, %v", seed, meta, a.MetaJSON, err)
		}
		var want, got any
		again, _ := json.Marshal(json.RawMessage(meta)) // as inJSON writes it
		_ = json.Unmarshal([]byte(strings.ReplaceAll(string(again), inText, "[REDACTED]")), &want)
		_ = json.Unmarshal(a.MetaJSON, &got)
		if !reflect.DeepEqual(got, want) && len(a.MetaJSON) > 0 {
			t.Fatalf("seed %d: %s became %s", seed, meta, a.MetaJSON)
		}
	}
}

// What is left of an error can still be told apart, and read.
func TestRedactedText(t *testing.T) {
	s := answering(t, 403, `bad token "`+callbackToken+`", not "other"`)
	wantError(t, third(propose(t, client(t), s.URL)), `Webhook error (403): bad token "[REDACTED]", not "other"`)
	s = answering(t, 200, `{"consensusReached":true,"winningProposalId":"the `+strings.ReplaceAll(strings.ReplaceAll(token, `\`, `\\`), `"`, `\"`)+`"}`)
	wantError(t, third(decide(t, client(t), s.URL)), `Winning proposal not found: the [REDACTED]`)
	s = answering(t, 403, `bad token "callback", not "other"`)
	wantError(t, third(propose(t, client(t), s.URL)), `Webhook error (403): bad token "callback", not "other"`)
}

// A short secret must not spoil the words that it is part of: neither ours nor
// those that say what was wrong.
func TestShortSecret(t *testing.T) {
	for _, c := range []struct{ token, body, want string }{
		{"E", "token E refused, EDE too", "token [REDACTED] refused, EDE too"},
		{"EDE", "EDE, E-EDE or EDED", "[REDACTED], E-[REDACTED] or EDED"},
		{"e", `{"token":"e","é":"ee e"}`, `{"token":"[REDACTED]","é":"ee [REDACTED]"}`},
		{"ä", "ä äh %C3%A4", "[REDACTED] äh [REDACTED]"},
		{":", "a: b : c", "a: b [REDACTED] c"},
		{"long", "belongs", "be[REDACTED]s"},
	} {
		settings := config(t, "127.0.0.1")
		settings.Lookup = func(string) (string, bool) { return c.token, true }
		_, err := propose(t, webhook.New(settings), answering(t, 403, c.body).URL)
		wantError(t, err, "Webhook error (403): "+c.want)
	}
}

func TestShortSecretLeavesOurWords(t *testing.T) {
	settings := config(t, "127.0.0.1")
	settings.Lookup = func(string) (string, bool) { return "e", true }
	_, err := propose(t, webhook.New(settings), answering(t, 200, `{"e":1,"e":2}`).URL)
	wantError(t, err, `webhook answer: it is not one JSON value: duplicate member "[REDACTED]"`)
}

// Errors from before a call show none either.
func TestNoSecretAtStart(t *testing.T) {
	m := parse(t, machineText)
	for _, address := range []string{"http://%zz/?key=planted", "https://127.0.0.2/?key=planted", "http://a.example/?key=planted", "ftp://a.example/?key=planted", "https://user:key=planted@127.0.0.2/"} {
		_, err := client(t).Proposer(m, hook(address), nil)
		wantNoSecret(t, err, planted())
	}
}

// TestShortSecrets: a token of which a machine's answers could not be freed is named,
// by its variable.
func TestShortSecrets(t *testing.T) {
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"x":"b"},"specialists":[
			{"role":"proposer","specialistId":"c","strategyWebhookUrl":"https://x.example","webhookTokenName":"LONG","webhookSecretName":"SHORT"}]},"b":{}},
		"specialists":[{"role":"proposer","specialistId":"a","strategyWebhookUrl":"https://x.example","webhookTokenName":"SHORT"},
			{"role":"proposer","specialistId":"b","contextWebhookUrl":"https://x.example","modelId":"m","webhookTokenName":"TINY"},
			{"role":"proposer","specialistId":"d","strategyWebhookUrl":"https://x.example","webhookTokenName":"UNSET"}]}`), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"SHORT": "12345", "TINY": "1", "LONG": "123456", "UNSET": "", "OTHER": "1"}
	got := webhook.ShortSecrets(m, func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	if strings.Join(got, " ") != "SHORT TINY" {
		t.Errorf("%q", got)
	}
}
