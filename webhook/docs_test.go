package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/webhook"
)

//go:generate go test -run ^TestDocs$ -write-examples .

var writeExamples = flag.Bool("write-examples", false, "write the requests into docs/webhooks.md")

const docsPath = "../docs/webhooks.md"

// A handbook is docs/webhooks.md with its examples: the blocks of JSON and of
// headers, by the comment before them.
type handbook struct {
	*testing.T
	text string
	used map[string]bool
}

var labelled = regexp.MustCompile("(?ms)^<!-- ([a-z ]+) -->\n```(?:json|http)\n(.*?)^```$")

func readHandbook(t *testing.T) *handbook {
	t.Helper()
	text, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	return &handbook{t, string(text), map[string]bool{}}
}

// example returns the block of that label.
func (h *handbook) example(label string) string {
	h.Helper()
	for _, m := range labelled.FindAllStringSubmatch(h.text, -1) {
		if m[1] == label {
			h.used[label] = true
			return m[2]
		}
	}
	h.Fatalf("%s has no example %q", docsPath, label)
	return ""
}

// sent compares an example with what was really sent, or writes it.
func (h *handbook) sent(label, want string) {
	h.Helper()
	old := h.example(label)
	switch {
	case old == want:
	case *writeExamples:
		h.text = strings.Replace(h.text, "<!-- "+label+" -->\n```"+language(label)+"\n"+old, "<!-- "+label+" -->\n```"+language(label)+"\n"+want, 1)
	default:
		h.Errorf("the example %q is not what is sent: go generate ./webhook writes it\n%s", label, want)
	}
}

func language(label string) string {
	if label == "headers" {
		return "http"
	}
	return "json"
}

// sentJSON is sent for JSON, which is broken into lines to be read.
func (h *handbook) sentJSON(label string, body []byte) {
	h.Helper()
	var lines bytes.Buffer
	if err := json.Indent(&lines, body, "", "  "); err != nil {
		h.Fatal(err)
	}
	h.sent(label, lines.String()+"\n")
}

// set writes a value into an example that is an answer.
func (h *handbook) set(label, member, value string) {
	old := h.example(label)
	changed := regexp.MustCompile(`("`+member+`": )"[^"]*"`).ReplaceAllString(old, `$1"`+value+`"`)
	h.sent(label, changed)
}

const docsToken = "secret"

// An office is the world of the examples: the machine of the page, its service,
// and a runner on a store in memory whose clock stands still.
type office struct {
	*handbook
	r       *runner.Runner
	m       *machine.Machine
	service *httptest.Server

	mu      sync.Mutex
	answers map[string]string // by path; "" is answered with 202
	last    map[string]*http.Request
	bodies  map[string][]byte
}

func newOffice(h *handbook, publicURL string) *office {
	h.Helper()
	o := &office{handbook: h, answers: map[string]string{}, last: map[string]*http.Request{}, bodies: map[string][]byte{}}
	o.service = httptest.NewServer(o)
	h.Cleanup(o.service.Close)
	text := strings.ReplaceAll(h.example("machine"), "https://claims.example.com", o.service.URL)
	var err error
	if o.m, err = machine.Parse("claims.json", []byte(text), runner.Checks()); err != nil {
		h.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	hooks := config(h, "127.0.0.1")
	hooks.Now = now
	hooks.Lookup = func(name string) (string, bool) { return docsToken, name == "CLAIMS_WEBHOOK_TOKEN" }
	ids := byte(0)
	o.r, err = runner.New(runner.Config{Store: store.NewMemory(), Resolver: webhook.New(hooks), PublicURL: publicURL, Now: now,
		NewID: func() specialist.SessionID {
			ids++
			return specialist.SessionID{0x0b, 0x9c, 0x1d, 0x3e, 0x5f, 0x6a, 0x47, 0xb8, 0x89, 0xc0, 0xd1, 0xe2, 0xf3, 0xa4, 0xb5, ids}
		},
		Random: strings.NewReader(strings.Repeat("a callback is secret until used. ", 100))})
	if err != nil {
		h.Fatal(err)
	}
	return o
}

// ServeHTTP is the service.
func (o *office) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last[req.URL.Path], o.bodies[req.URL.Path] = req, body
	if o.answers[req.URL.Path] == "" {
		w.WriteHeader(http.StatusAccepted)
	}
	_, _ = io.WriteString(w, o.answers[req.URL.Path])
}

// run starts a session and runs it.
func (o *office) run() runner.Result {
	o.Helper()
	s, err := o.r.Start(o.Context(), o.m, runner.StartOptions{Meta: []byte(`{"claim":"C-17","amount":120}`)})
	if err != nil {
		o.Fatal(err)
	}
	result, err := o.r.Run(bounded(o), s.ID, runner.RunOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return result
}

// headers returns the head of a request as the page shows it.
func (o *office) headers(req *http.Request) string {
	lines := []string{req.Method + " " + req.URL.Path + " HTTP/1.1", "Host: claims.example.com"}
	for _, name := range []string{"Content-Type", "Accept", "User-Agent", "Authorization", "Idempotency-Key", "Webhook-Id", "Webhook-Timestamp",
		"Webhook-Signature", "Dialai-Round-Id", "Dialai-Callback-Url", "Dialai-Callback-Token"} {
		lines = append(lines, name+": "+req.Header.Get(name))
	}
	if n := len(lines) - 2 + 1; n != len(req.Header) { // and Content-Length
		o.Errorf("the page shows %d headers, %d were sent: %v", n, len(req.Header), req.Header)
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestDocs plays the examples of docs/webhooks.md: what they say is sent is what
// was sent, and what they say is answered was understood.
func TestDocs(t *testing.T) {
	h := readHandbook(t)
	o := newOffice(h, "https://dialai.example.com")
	o.answers["/propose"] = h.example("answer")
	o.answers["/arbitrate"] = h.example("no consensus")

	// Two sessions of the same beginning: in the first a human decides.
	first := o.run()
	if first.Status != "needs_human" || first.Reason != "rule says pay, fraud-check says ask" {
		t.Fatalf("without consensus: %s, %s", first.Status, first.Reason)
	}
	h.sentJSON("question", o.bodies["/propose"])
	h.sent("headers", o.headers(o.last["/propose"]))
	h.sentJSON("round", o.bodies["/arbitrate"])
	o.everythingRead(h.example("answer"))
	o.python()
	if a, err := o.r.Decide(t.Context(), runner.Ruling{SessionID: first.Session.ID, RoundID: first.Session.Key().ID(), SpecialistID: "clerk", TransitionName: "pay", Reasoning: "known customer"}); err != nil || !a.Executed {
		t.Fatal(err, a.GuardReason)
	}

	o.answers["/propose"] = h.example("short answer")
	if second := o.run(); second.Status != "needs_human" || second.Session.Proposals()[1].Transition.Name != "pay" {
		t.Errorf("the short answer: %s, %s", second.Status, second.Reason)
	}
	var question struct{ Exemplars []json.RawMessage }
	if err := json.Unmarshal(o.bodies["/propose"], &question); err != nil || len(question.Exemplars) != 1 {
		t.Fatal(err, question)
	}
	h.sentJSON("exemplar", question.Exemplars[0])

	// In another world the first session has a winner.
	o = newOffice(h, "https://dialai.example.com")
	o.answers["/propose"] = h.example("answer")
	var round struct{ Proposals []struct{ ProposalID string } }
	if err := json.Unmarshal([]byte(h.example("round")), &round); err != nil {
		t.Fatal(err)
	}
	h.set("consensus", "winningProposalId", round.Proposals[1].ProposalID)
	o.answers["/arbitrate"] = h.example("consensus")
	if r := o.run(); r.Session.State.Name != "waiting" || r.Session.Last().SpecialistID != "fraud-check" {
		t.Errorf("with consensus: %s in %s, %s", r.Status, r.Session.State.Name, r.Reason)
	}

	if text, err := webhook.ReadContext([]byte(h.example("context"))); err != nil || text == "" {
		t.Errorf("context %q, %v", text, err)
	}
	for _, m := range regexp.MustCompile("(?m)^(.*)\n```(json|http)$").FindAllStringSubmatch(h.text, -1) {
		if label := strings.TrimSuffix(strings.TrimPrefix(m[1], "<!-- "), " -->"); !h.used[label] {
			t.Errorf("nobody checks the example after %q", m[1])
		}
	}
	if *writeExamples {
		if err := os.WriteFile(docsPath, []byte(h.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// everythingRead checks that each member of the full answer came to the arbiter.
func (o *office) everythingRead(answer string) {
	o.Helper()
	var given map[string]json.RawMessage
	var round struct{ Proposals []map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &given); err != nil {
		o.Fatal(err)
	}
	if err := json.Unmarshal(o.bodies["/arbitrate"], &round); err != nil {
		o.Fatal(err)
	}
	for name, value := range given {
		var tidy bytes.Buffer
		_ = json.Compact(&tidy, value)
		if got := round.Proposals[1][name]; !bytes.Equal(got, tidy.Bytes()) {
			o.Errorf("of the answer's %s, %s, came to the arbiter %s", name, &tidy, got)
		}
	}
	if read := slices.Sorted(maps.Keys(given)); len(read) != 10 {
		o.Errorf("the full answer has %q", read)
	}
}

// python has the page's Python verify the request, and some that are not it.
func (o *office) python() {
	o.Helper()
	program, err := exec.LookPath("python3")
	if err != nil || exec.Command(program, "-c", "").Run() != nil {
		o.Log("there is no python3 here")
		return
	}
	req := o.last["/propose"]
	headers := map[string]string{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		headers[name] = req.Header.Get(name)
	}
	given, _ := json.Marshal(headers)
	script := o.block("python") + fmt.Sprintf(`
import json, sys
headers, body, at = json.loads(%q), sys.stdin.buffer.read(), 1767323045
def tell(key, now, **other):
    time.time = lambda: now
    print(verify(key, headers | other, other.pop("body", body)))
tell(b"secret", at)
tell(b"secret", at + 299)
tell(b"secret", at, **{"webhook-signature": "v1,AAAA " + headers["webhook-signature"]})
tell(b"other", at)
tell(b"secret", at + 301)
tell(b"secret", at - 301)
tell(b"secret", at, **{"webhook-id": "x"})
tell(b"secret", at, **{"webhook-timestamp": "x"})
tell(b"secret", at, body=body + b" ")
`, given)
	command := exec.CommandContext(o.Context(), program, "-c", script)
	command.Stdin = bytes.NewReader(o.bodies["/propose"])
	out, err := command.CombinedOutput()
	want := strings.Repeat("True\n", 3) + strings.Repeat("False\n", 6)
	if err != nil || string(out) != want {
		o.Errorf("the page's Python says %v\n%s", err, out)
	}
}

// block returns the first block in a language.
func (h *handbook) block(language string) string {
	h.Helper()
	m := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindStringSubmatch(h.text)
	if m == nil {
		h.Fatalf("%s has no %s", docsPath, language)
	}
	return m[1]
}

// callbacks serves POST /v1/callbacks/{id}.
func callbacks(r *runner.Runner) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, webhook.MaxAnswer))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		answer, err := webhook.ReadAnswer(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		switch _, _, err := r.Callback(req.Context(), req.PathValue("id"), token, answer); {
		case errors.Is(err, runner.ErrStaleRound):
			http.Error(w, err.Error(), http.StatusConflict)
		case err != nil:
			http.Error(w, err.Error(), http.StatusForbidden)
		}
	}
}

// TestDocsLater answers later, in both ways of the page.
func TestDocsLater(t *testing.T) {
	h := readHandbook(t)
	var now http.HandlerFunc
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { now(w, req) }))
	defer public.Close()
	o := newOffice(h, public.URL)
	o.answers["/arbitrate"] = h.example("no consensus")
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/callbacks/{id}", callbacks(o.r))
	now = mux.ServeHTTP

	late := o.run()
	if late.Status != "waiting" {
		t.Fatalf("after 202 the session is %s, %s", late.Status, late.Reason)
	}
	asked := o.last["/propose"].Header
	answers := func(body, token string, want int) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, asked.Get("Dialai-Callback-Url"), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := public.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s with the token %s: %d, want %d", body, token, resp.StatusCode, want)
		}
	}
	answers(h.example("answer"), "wrong", 403)
	answers(`{"transitionName":1}`, asked.Get("Dialai-Callback-Token"), 400)
	answers(h.example("answer"), asked.Get("Dialai-Callback-Token"), 200)
	answers(h.example("answer"), asked.Get("Dialai-Callback-Token"), 403)
	if result, err := o.r.Run(bounded(t), late.Session.ID, runner.RunOptions{}); err != nil || result.Status != "needs_human" || len(result.Session.Proposals()) != 2 {
		t.Errorf("after the callback: %+v, %v", result, err)
	}

	other := o.run()
	var question struct{ SessionID string }
	if err := json.Unmarshal(o.bodies["/propose"], &question); err != nil || question.SessionID != other.Session.ID.String() {
		t.Errorf("the body names session %q, %v", question.SessionID, err)
	}
	p, _, err := o.r.Propose(t.Context(), runner.Submission{SessionID: other.Session.ID, SpecialistID: "fraud-check", RoundID: o.last["/propose"].Header.Get("Dialai-Round-Id"), TransitionName: "ask",
		MetaJSON: []byte(`{"missing":"invoice number"}`)})
	if err != nil || p.Transition.Name != "ask" {
		t.Errorf("the proposal %+v, %v", p, err)
	}

	cancelled := o.run().Session
	asked = o.last["/propose"].Header
	if _, err := o.r.Stop(t.Context(), cancelled.ID, runner.Stopping{Actor: session.LocalActor("carol"), Note: "withdrawn"}); err != nil {
		t.Fatal(err)
	}
	answers(h.example("answer"), asked.Get("Dialai-Callback-Token"), 409)
	if after, err := o.r.Session(t.Context(), cancelled.ID); err != nil || after.Spent().Money.String() != "0.0021" {
		t.Errorf("the late answer is charged %+v, %v", after.Spent(), err)
	}
}

// TestDocsGo compares the page's Go with the files it was taken from.
func TestDocsGo(t *testing.T) {
	h := readHandbook(t)
	var sources strings.Builder
	for _, path := range []string{"docs_test.go", "../examples/webhook-arbiter/main.go"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(text)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(h.text, -1)
	for _, m := range blocks {
		if !strings.Contains(sources.String(), m[1]) {
			t.Errorf("this Go is in none of the tested files:\n%s", m[1])
		}
	}
	if len(blocks) != 2 {
		t.Errorf("%d blocks of Go", len(blocks))
	}
}

// TestDocsNumbers compares the numbers of the page with those in force.
func TestDocsNumbers(t *testing.T) {
	h := readHandbook(t)
	text := strings.Join(strings.Fields(h.text), " ")
	rule := webhook.DefaultRetry()
	for _, phrase := range []string{
		fmt.Sprintf("an answer | %d MiB,", webhook.MaxAnswer>>20),
		fmt.Sprintf("a request | %d MiB:", specialist.MaxContext>>20),
		fmt.Sprintf("a context | %d KiB |", webhook.MaxContext>>10),
		fmt.Sprintf("context above %d KiB", specialist.MaxExemplarContext>>10),
		fmt.Sprintf("a signature's age | %.0f minutes,", webhook.Tolerance.Minutes()),
		fmt.Sprintf("at most %d attempts, the last one begun within %.0f s of the first, after a random wait of up to %d ms, then %.0f s.", rule.Attempts, rule.Within.Seconds(), rule.Base.Milliseconds(), (2 * rule.Base).Seconds()),
		fmt.Sprintf("is obeyed up to %.0f s.", rule.MaxAfter.Seconds()),
		fmt.Sprintf("all attempts together | %.0f s;", machine.DefaultWebhookTimeout.Seconds()),
		"`" + webhook.DefaultTokenNames + "` if it is not set",
		fmt.Sprintf("the newest, at most %d,%03d and", session.MaxExemplars/1000, session.MaxExemplars%1000),
	} {
		if !strings.Contains(text, phrase) {
			t.Errorf("the page does not say %q", phrase)
		}
	}
	solicit := parse(t, machineText).Initial().Solicit
	if time.Duration(solicit.RoundTimeout) != 5*time.Minute || time.Duration(solicit.AsyncTimeout) != 24*time.Hour {
		t.Errorf("solicit is %+v", solicit)
	}
}

// TestDocsStatuses answers with every status and counts the attempts.
func TestDocsStatuses(t *testing.T) {
	h := readHandbook(t)
	m := regexp.MustCompile(`(?m)^\| ([0-9, ]+) \| tries again \|$`).FindStringSubmatch(h.text)
	if m == nil {
		t.Fatal("the page has no list of statuses")
	}
	var retried []string
	var mu sync.Mutex
	status, attempts := 203, 0
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		attempts++
		w.WriteHeader(status)
	})
	c := client(t)
	for ; status < 600; status++ {
		_, err := propose(t, c, s.URL)
		if text := fmt.Sprintf("Webhook error (%d): ", status); err == nil || status > 299 && err.Error() != text {
			t.Errorf("%d: %v, want %s", status, err, text)
		}
		mu.Lock()
		if attempts > 1 {
			retried = append(retried, fmt.Sprint(status))
		}
		attempts = 0
		mu.Unlock()
	}
	if got := strings.Join(retried, ", "); got != m[1] {
		t.Errorf("tried again: %s; the page says %s", got, m[1])
	}
}

// TestDocsAddresses holds the page to what a policy does with its list.
func TestDocsAddresses(t *testing.T) {
	h := readHandbook(t)
	m := regexp.MustCompile(`(?m)^export DIALAI_WEBHOOK_ALLOW="(.*)"$`).FindStringSubmatch(h.text)
	if m == nil {
		t.Fatal("the page has no list of addresses")
	}
	policy, err := webhook.ParsePolicy(m[1])
	if err != nil {
		t.Fatal(err)
	}
	for address, allowed := range map[string]bool{
		"https://claims.example.com/x": true, "http://claims.example.com/x": false, "http://rules.internal:99/": true, "https://rules.internal/": true,
		"http://127.0.0.1:8787/": true, "http://127.0.0.1:8788/": false, "https://127.0.0.1/": false,
		"https://10.20.3.4/": true, "http://10.20.3.4/": true, "https://10.21.3.4/": false, "https://169.254.169.254/": false, "https://100.64.0.1/": false, "https://224.0.0.1/": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := policy.CheckURL(u); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestDocsMessages has every message that the page quotes come about.
func TestDocsMessages(t *testing.T) {
	h := readHandbook(t)
	text := strings.Join(strings.Fields(h.text), " ")
	m := parse(t, machineText)
	unset := hook("https://claims.example.com")
	unset.WebhookTokenName = "CLAIMS_WEBHOOK_TOKEN"
	accepting := answering(t, http.StatusAccepted, "")
	p, err := client(t).Proposer(m, hook(accepting.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := question(m)
	q.Ask.CallbackURL = "" // nobody has said where answers may come
	_, noPlace := p.Propose(bounded(t), q)
	_, noTime := decide(t, client(t), accepting.URL)
	_, noToken := client(t).Proposer(m, unset, nil)
	_, inside := webhook.New(config(t, "")).Proposer(m, hook("https://127.0.0.1/"), nil)
	for _, err := range []error{noPlace, noTime, noToken, inside} {
		if err == nil {
			t.Error("nothing was refused")
			continue
		}
		short, _, _ := strings.Cut(err.Error(), "; see ")
		if !strings.Contains(text, "`"+short+"`") {
			t.Errorf("the page does not quote %q", short)
		}
	}
}
