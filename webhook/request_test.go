package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A recorder answers requests and keeps them.
type recorder struct {
	mu       sync.Mutex
	requests []*http.Request // with their bodies in memory
	bodies   []string
	statuses []int // answered in this order, then 200
	answer   string
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.requests = append(rec.requests, r)
	rec.bodies = append(rec.bodies, string(body))
	if n := len(rec.requests); n <= len(rec.statuses) {
		w.WriteHeader(rec.statuses[n-1])
	}
	_, _ = io.WriteString(w, rec.answer)
}

func TestProposerRequest(t *testing.T) {
	rec := &recorder{answer: good}
	s := server(t, rec.ServeHTTP)
	c := config(t, "127.0.0.1")
	c.Now = func() time.Time { return time.Unix(1767323045, 999) }
	before := time.Unix(1767323045, 0)

	a, err := propose(t, webhook.New(c), s.URL+"/hook?for=dialai")
	if err != nil || a.TransitionName != "10" || a.ToState != "rejected" || a.Reasoning != "no" {
		t.Fatalf("answer %+v, error %v", a, err)
	}
	r := rec.requests[0]
	if r.Method != "POST" || r.RequestURI != "/hook?for=dialai" {
		t.Errorf("%s %s", r.Method, r.RequestURI)
	}
	wantHeaders(t, r, rec.bodies[0], map[string]string{
		"Authorization":         "Basic " + base64.StdEncoding.EncodeToString([]byte("document-review:"+token)),
		"Idempotency-Key":       key.AskID(3),
		"Webhook-Id":            key.AskID(3),
		"Webhook-Timestamp":     "1767323045",
		"Webhook-Signature":     signature([]byte(token), key.AskID(3), "1767323045", rec.bodies[0]),
		"Dialai-Callback-Url":   "https://dialai.example/v1/callbacks/s.a",
		"Dialai-Callback-Token": "callback-secret-0123456789",
	})
	if user, pass, ok := r.BasicAuth(); !ok || user != "document-review" || pass != token {
		t.Errorf("Basic auth is %q, %q", user, pass)
	}
	if err := webhook.Verify([]byte(token), r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature"), []byte(rec.bodies[0]), before); err != nil {
		t.Error(err)
	}
}

// wantHeaders compares all headers of a request; those that are always alike
// need not be named.
func wantHeaders(t *testing.T, r *http.Request, body string, want map[string]string) {
	t.Helper()
	always := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "dialai",
		"Dialai-Round-Id": key.ID(), "Content-Length": strconv.Itoa(len(body)),
	}
	maps.Copy(always, want)
	got := map[string]string{}
	for name, values := range r.Header {
		got[name] = strings.Join(values, "|")
	}
	if !maps.Equal(got, always) {
		t.Errorf("headers\n%v\nwant\n%v", got, always)
	}
}

// signature signs as https://www.standardwebhooks.com describes it.
func signature(key []byte, id, timestamp, body string) string {
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, strings.Join([]string{id, timestamp, body}, "."))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func TestProposerBody(t *testing.T) {
	rec := &recorder{answer: good}
	s := server(t, rec.ServeHTTP)
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := question(m)
	const (
		members = `{"sessionId":"01020304-0506-4708-890a-0b0c0d0e0f10","currentState":"pending","prompt":"Review “it”?",` +
			`"transitions":{"zz approve":{"target":"approved","description":"fine","parameters":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}}}},` +
			`"10":{"target":"rejected"},"2":{"target":"pending","irreversible":true}},` +
			`"history":[{"transitionName":"2","reasoning":"again","executionTimestamp":"2026-01-02T03:04:05.000Z","metaJson":{"n":1.10}}],` +
			`"metaJson":{"amount":12.50},"exemplars":[{"exemplarId":"e1","machineName":"document-review","state":"pending","context":{"x":1},` +
			`"humanTransitionName":"10","humanToState":"rejected","proposals":[],"createdAt":"1970-01-01T00:00:00.000Z"}]`
		notices = `,"notices":["slow \"down\""]`
	)
	warned := q
	warned.Notices = []string{`slow "down"`}
	unmeant := q
	unmeant.Meta = nil
	made := q
	made.Encoded = []byte(`{"made":"before"}`)
	for name, c := range map[string]struct {
		q    specialist.Question
		want string
	}{
		"plain":           {q, members + "}"},
		"after a warning": {warned, members + notices + "}"},
		"no metaJson":     {unmeant, strings.Replace(members, `"metaJson":{"amount":12.50},`, "", 1) + "}"},
		"encoded before":  {made, `{"made":"before"}`},
	} {
		if _, err := p.Propose(bounded(t), c.q); err != nil {
			t.Fatal(err)
		}
		if got := rec.bodies[len(rec.bodies)-1]; got != c.want {
			t.Errorf("%s: body\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestArbiterRequest(t *testing.T) {
	rec := &recorder{answer: `{"consensusReached":false,"reasoning":"unsure"}`}
	s := server(t, rec.ServeHTTP)
	m := parse(t, machineText)
	h := hook(s.URL)
	h.WebhookSecretName = "MY_WEBHOOK_SECRET"
	c := config(t, "127.0.0.1")
	c.Now = func() time.Time { return time.Unix(5, 0) }
	a, err := webhook.New(c).Arbiter(m, h)
	if err != nil {
		t.Fatal(err)
	}
	r := round(m)
	r.Ask.CallbackURL, r.Ask.CallbackToken = "https://dialai.example/cb", "callback" // an arbiter must answer at once
	d, err := a.Decide(bounded(t), r)
	if err != nil || d.Consensus() || d.Reasoning() != "unsure" {
		t.Errorf("decision %+v, error %v", d, err)
	}
	bytes, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	wantHeaders(t, rec.requests[0], rec.bodies[0], map[string]string{
		"Authorization":   "Basic " + base64.StdEncoding.EncodeToString([]byte("document-review:"+token)),
		"Idempotency-Key": key.AskID(4), "Webhook-Id": key.AskID(4), "Webhook-Timestamp": "5",
		"Webhook-Signature": signature(bytes, key.AskID(4), "5", rec.bodies[0]),
	})
	proposal := func(arrival, id, human, transition, target, reasoning, mode string) string {
		n, _ := strconv.Atoi(arrival)
		return `{"proposalId":"` + key.ProposalID(int32(n)) + `","sessionId":"01020304-0506-4708-890a-0b0c0d0e0f10","roundId":"` + key.ID() + `","specialistId":"` + id +
			`","isHuman":` + human + `,"transitionName":"` + transition + `","toState":"` + target + `","reasoning":"` + reasoning +
			`","createdAt":"1970-01-01T00:00:00.000Z","arrival":` + arrival + `,"mode":"` + mode + `"}`
	}
	want := `{"sessionId":"01020304-0506-4708-890a-0b0c0d0e0f10","roundId":"` + key.ID() + `","currentState":"pending","prompt":"Review “it”?","machineName":"document-review",` +
		`"proposals":[` + proposal("2", "ann", "true", "10", "rejected", "no", "submitted") + `,` + proposal("1", "bot", "false", "zz approve", "approved", "yes", "webhook") + `],` +
		`"alignmentScores":{"ann":1,"bot":0.206543291},` +
		`"history":[{"transitionName":"2","reasoning":"again","executionTimestamp":"2026-01-02T03:04:05.000Z","metaJson":{"n":1.10}}],"threshold":0.5,"metaJson":{"amount":12.50}}`
	if rec.bodies[0] != want {
		t.Errorf("body\n%s\nwant\n%s", rec.bodies[0], want)
	}
}

func TestContextRequest(t *testing.T) {
	rec := &recorder{answer: `{"context":"all there is"}`}
	s := server(t, rec.ServeHTTP)
	text, err := gather(t, client(t), s.URL)
	if err != nil || text != "all there is" {
		t.Fatalf("%q, %v", text, err)
	}
	r := rec.requests[0]
	if r.Header.Get("Dialai-Callback-Url") != "" || r.Header.Get("Dialai-Callback-Token") != "" {
		t.Errorf("a context, which must be given at once, was told where to send an answer later: %v", r.Header)
	}
	if r.Header.Get("Idempotency-Key") != key.AskID(3) || !json.Valid([]byte(rec.bodies[0])) {
		t.Errorf("headers %v, body %s", r.Header, rec.bodies[0])
	}
}

// An ask that has no id of its own still has the same one each time.
func TestRequestWithoutAsk(t *testing.T) {
	rec := &recorder{answer: good}
	s := server(t, rec.ServeHTTP)
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := question(m)
	q.Ask = nil
	for range 2 {
		if _, err := p.Propose(bounded(t), q); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rec.requests {
		if r.Header.Get("Idempotency-Key") != key.AskID(0) || r.Header["Dialai-Callback-Url"] != nil {
			t.Errorf("headers %v", r.Header)
		}
	}
}

// All attempts of one ask are the same request to the service, freshly signed.
func TestAttemptsShareTheirID(t *testing.T) {
	rec := &recorder{statuses: []int{503, 500}, answer: good}
	s := server(t, rec.ServeHTTP)
	c := config(t, "127.0.0.1")
	now := int64(1000)
	c.Now = func() time.Time { now += 60; return time.Unix(now, 0) } // one ask at a time
	if _, err := propose(t, webhook.New(c), s.URL); err != nil {
		t.Fatal(err)
	}
	var times []string
	for i, r := range rec.requests {
		h := r.Header
		if h.Get("Idempotency-Key") != key.AskID(3) || h.Get("webhook-id") != key.AskID(3) || rec.bodies[i] != rec.bodies[0] {
			t.Errorf("attempt %d: headers %v, body %s", i, h, rec.bodies[i])
		}
		stamp := h.Get("webhook-timestamp")
		times = append(times, stamp)
		if want := signature([]byte(token), key.AskID(3), stamp, rec.bodies[i]); h.Get("webhook-signature") != want {
			t.Errorf("attempt %d: signature %s, want %s", i, h.Get("webhook-signature"), want)
		}
	}
	slices.Sort(times)
	if len(slices.Compact(times)) != 3 {
		t.Errorf("timestamps %v, want 3 different ones", times)
	}
}

func TestSignPublishedVector(t *testing.T) {
	k, err := webhook.Key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := webhook.Sign(k, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestKey(t *testing.T) {
	for secret, want := range map[string]string{
		"aGVsbG8=": "hello", "whsec_aGVsbG8=": "hello", "aGVsbG8": "", "whsec_": "", "": "", "whsec_whsec_aGVsbG8=": "", "not base64!": "",
	} {
		k, err := webhook.Key(secret)
		if string(k) != want || (err == nil) != (want != "") {
			t.Errorf("Key(%q) = %q, %v", secret, k, err)
		}
		if err != nil && len(secret) > 6 && strings.Contains(err.Error(), secret) {
			t.Errorf("Key(%q) shows the secret: %v", secret, err)
		}
	}
}

func TestVerify(t *testing.T) {
	k, body := []byte("key"), []byte("body")
	now := time.Unix(1_000_000, 0)
	sign := func(at int64) string { return signature(k, "id", strconv.FormatInt(at, 10), "body") }
	good := sign(1_000_000)
	for name, c := range map[string]struct {
		key                      []byte
		id, timestamp, signature string
		body                     []byte
		ok                       bool
	}{
		"as signed":            {k, "id", "1000000", good, body, true},
		"oldest":               {k, "id", "999700", sign(999700), body, true},
		"too old":              {k, "id", "999699", sign(999699), body, false},
		"earliest":             {k, "id", "1000300", sign(1000300), body, true},
		"too early":            {k, "id", "1000301", sign(1000301), body, false},
		"one of several":       {k, "id", "1000000", "v1,AAAA v1a,xyz " + good + " v1,BBBB", body, true},
		"none of several":      {k, "id", "1000000", "v1,AAAA v1,BBBB", body, false},
		"no signature":         {k, "id", "1000000", "", body, false},
		"other version":        {k, "id", "1000000", "v2" + good[2:], body, false},
		"without version":      {k, "id", "1000000", good[3:], body, false},
		"cut":                  {k, "id", "1000000", good[:len(good)-1], body, false},
		"other key":            {[]byte("kez"), "id", "1000000", good, body, false},
		"other id":             {k, "ie", "1000000", good, body, false},
		"other body":           {k, "id", "1000000", good, []byte("bodz"), false},
		"other time":           {k, "id", "1000001", good, body, false},
		"time in other words":  {k, "id", "+1000000", good, body, false},
		"no time":              {k, "id", "", good, body, false},
		"time with a fraction": {k, "id", "1000000.0", good, body, false},
		"huge time":            {k, "id", "9223372036854775807", sign(9223372036854775807), body, false},
		"least time":           {k, "id", "-9223372036854775808", sign(-9223372036854775808), body, false},
	} {
		err := webhook.Verify(c.key, c.id, c.timestamp, c.signature, c.body, now)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), good) {
			t.Errorf("%s: the error tells the right signature: %v", name, err)
		}
	}
}

func TestVariables(t *testing.T) {
	m := parse(t, machineText)
	const may = " may not be sent to a webhook: only names that match "
	for name, c := range map[string]struct {
		globs         []string
		token, secret string
		want          string // of the error; "" for none
	}{
		"default":             {nil, "MY_WEBHOOK_TOKEN", "", ""},
		"with secret":         {nil, "MY_WEBHOOK_TOKEN", "MY_WEBHOOK_SECRET", ""},
		"foreign":             {nil, "OTHER", "", "variable OTHER" + may + "*WEBHOOK* may (see DIALAI_WEBHOOK_TOKEN_NAMES)"},
		"foreign secret":      {nil, "MY_WEBHOOK_TOKEN", "OTHER", "variable OTHER" + may + "*WEBHOOK* may (see DIALAI_WEBHOOK_TOKEN_NAMES)"},
		"database":            {nil, "DATABASE_URL", "", "variable DATABASE_URL is never sent to a webhook, whatever DIALAI_WEBHOOK_TOKEN_NAMES says: use another one"},
		"own glob":            {[]string{"X_*", "OTH?R"}, "OTHER", "", ""},
		"own glob, other":     {[]string{"X_*", "OTH?R"}, "MY_WEBHOOK_TOKEN", "", "variable MY_WEBHOOK_TOKEN" + may + "X_*, OTH?R may (see DIALAI_WEBHOOK_TOKEN_NAMES)"},
		"glob is the whole":   {[]string{"OTHE"}, "OTHER", "", "variable OTHER" + may + "OTHE may (see DIALAI_WEBHOOK_TOKEN_NAMES)"},
		"broken glob":         {[]string{"[", "OTHER"}, "OTHER", "", ""},
		"only a broken glob":  {[]string{"["}, "OTHER", "", "variable OTHER" + may + "[ may (see DIALAI_WEBHOOK_TOKEN_NAMES)"},
		"case counts":         {nil, "my_webhook_token", "", "variable my_webhook_token" + may + "*WEBHOOK* may (see DIALAI_WEBHOOK_TOKEN_NAMES)"},
		"unset":               {nil, "NO_WEBHOOK_TOKEN", "", "Webhook token variable NO_WEBHOOK_TOKEN is not set"},
		"empty":               {nil, "EMPTY_WEBHOOK_TOKEN", "", "Webhook token variable EMPTY_WEBHOOK_TOKEN is not set"},
		"unnamed":             {[]string{"*"}, "", "", "Webhook token variable  is not set"},
		"unset secret":        {nil, "MY_WEBHOOK_TOKEN", "NO_WEBHOOK_SECRET", "Webhook secret variable NO_WEBHOOK_SECRET is not set"},
		"secret is no base64": {nil, "MY_WEBHOOK_TOKEN", "BAD_WEBHOOK_SECRET", "variable BAD_WEBHOOK_SECRET: a webhook secret is base64, optionally with whsec_ before it"},
	} {
		conf := config(t, "127.0.0.1")
		conf.TokenNames = c.globs
		h := hook("http://127.0.0.1:1/")
		h.WebhookTokenName, h.WebhookSecretName = c.token, c.secret
		_, err := webhook.New(conf).Proposer(m, h, nil)
		_, err2 := webhook.New(conf).Arbiter(m, h)
		_, err3 := webhook.New(conf).Context(m, h)
		for _, err := range []error{err, err2, err3} {
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("%s: error %v, want %q", name, err, c.want)
			}
		}
	}
}

func TestProtectedVariables(t *testing.T) {
	m := parse(t, machineText)
	const never = " is never sent to a webhook, whatever DIALAI_WEBHOOK_TOKEN_NAMES says: use another one"
	conf := config(t, "127.0.0.1")
	conf.TokenNames = []string{"*"}
	read := map[string]bool{}
	conf.Lookup = func(name string) (string, bool) { read[name] = true; return "secret", true }
	for _, name := range []string{"OPENROUTER_API_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_HOST", "DIALAI_API_TOKEN", "DATABASE_URL", "database_url", "Database_Url"} {
		h := hook("http://127.0.0.1:1/")
		h.WebhookTokenName = name
		_, err := webhook.New(conf).Proposer(m, h, nil)
		wantError(t, err, "variable "+name+never)
		h.WebhookTokenName, h.WebhookSecretName = "FINE", name
		_, err = webhook.New(conf).Context(m, h)
		wantError(t, err, "variable "+name+never)
		if read[name] {
			t.Errorf("%s was read", name)
		}
	}
}

// The caller's Config is copied, and without a Lookup there is no variable.
func TestNewCopies(t *testing.T) {
	m := parse(t, machineText)
	conf := config(t, "127.0.0.1")
	conf.TokenNames = []string{"MY_*"}
	c := webhook.New(conf)
	conf.TokenNames[0] = "X"
	if _, err := c.Proposer(m, hook("http://127.0.0.1:1/"), nil); err != nil {
		t.Error(err)
	}
	_, err := webhook.New(webhook.Config{}).Proposer(m, hook("https://dialai.example/"), nil)
	wantError(t, err, "Webhook token variable MY_WEBHOOK_TOKEN is not set")
}

func TestColonInMachineName(t *testing.T) {
	m := parse(t, strings.Replace(machineText, "document-review", "a:b", 1))
	_, err := client(t).Proposer(m, hook("http://127.0.0.1:1/"), nil)
	wantError(t, err, `machineName "a:b" contains a colon, which Basic authentication of webhooks cannot carry`)
}

func TestNotAURL(t *testing.T) {
	m := parse(t, machineText)
	for _, url := range []string{"http://%zz/?key=planted", "https://1.2.3.4:port/?key=planted", "https://%31%32%37.0.0.1/?key=planted"} {
		_, err := client(t).Proposer(m, hook(url), nil)
		wantError(t, err, "the address of the webhook is not a URL")
	}
	if p, err := client(t).Proposer(m, hook(""), nil); p != nil || err != nil {
		t.Errorf("no address: %v, %v", p, err)
	}
	for _, url := range []string{"/path?key=planted", "//127.0.0.1/", "ftp://127.0.0.1/?key=planted", "file:///etc/passwd", "https:127.0.0.1", "https:///path?key=planted", "https://:443/"} {
		_, err := client(t).Proposer(m, hook(url), nil)
		wantKind(t, err, "not the URL of a host, by http or https")
		if err != nil && strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestAccepted(t *testing.T) {
	s := answering(t, http.StatusAccepted, "later")
	c := client(t)
	if a, err := propose(t, c, s.URL); err != specialist.ErrAccepted || a.TransitionName != "" {
		t.Errorf("answer %+v, error %v; want ErrAccepted", a, err)
	}
	m := parse(t, machineText)
	p, err := c.Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []*specialist.Ask{nil, {ID: "x"}} {
		q := question(m)
		q.Ask = ask
		_, err := p.Propose(bounded(t), q)
		wantError(t, err, "Webhook returned 202 Accepted but DIALAI_PUBLIC_URL is not set")
	}
	_, err = decide(t, c, s.URL)
	wantError(t, err, "Webhook returned 202 Accepted: an answer is needed at once")
	_, err = gather(t, c, s.URL)
	wantError(t, err, "Webhook returned 202 Accepted: an answer is needed at once")
}

func TestLargeBody(t *testing.T) {
	rec := &recorder{answer: good}
	s := server(t, rec.ServeHTTP)
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := question(m)
	q.Encoded = bytes.Repeat([]byte("0123456789"), 100_000)
	kept := bytes.Clone(q.Encoded)
	if _, err := p.Propose(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(q.Encoded, kept) || rec.bodies[0] != string(kept) {
		t.Error("the body changed on its way")
	}
}

// One client asks about many rounds, and each ask names its own.
func TestRoundIDs(t *testing.T) {
	var wrong atomic.Int32
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Dialai-Round-Id") != r.Header.Get("Idempotency-Key") { // which the test sets alike
			wrong.Add(1)
		}
		_, _ = io.WriteString(w, good)
	})
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	var asks sync.WaitGroup
	for i := range 8 {
		asks.Go(func() {
			q := question(m)
			for j := range 20 {
				q.Key.Round, q.Key.Attempt, q.Key.Session[0] = int32(1+j%3), int32(j%2), byte(i%2)
				q.Ask = &specialist.Ask{ID: q.Key.ID()}
				if _, err := p.Propose(bounded(t), q); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asks.Wait()
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d asks named another round", n)
	}
}
