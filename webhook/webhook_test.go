package webhook_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// Everything here runs against real servers on loopback. Names that end in .test
// are resolved by a name server of this process, so no test leaves the machine,
// and a name can change what it resolves to. A proxy that nobody may call is in
// the environment from the start: it is read only once.

var (
	names nameServer
	proxy counter
)

func TestMain(m *testing.M) {
	names.start()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		os.Setenv(name, "http://"+proxy.listen())
	}
	os.Unsetenv("NO_PROXY")
	os.Unsetenv("no_proxy")
	os.Exit(m.Run())
}

// A nameServer answers for names like a DNS server.
type nameServer struct {
	mu        sync.Mutex
	addresses map[string][]net.IP // by name without the last dot
}

func (s *nameServer) start() {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	go func() {
		query := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(s.answer(query[:n]), from)
		}
	}()
}

// set says what a name resolves to from now on.
func (s *nameServer) set(name string, addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addresses == nil {
		s.addresses = map[string][]net.IP{}
	}
	s.addresses[name] = nil
	for _, a := range addresses {
		s.addresses[name] = append(s.addresses[name], net.ParseIP(a))
	}
}

// answer returns the response to one question: all addresses of the asked
// family, or that the name does not exist.
func (s *nameServer) answer(query []byte) []byte {
	end, labels := 12, []string(nil)
	for query[end] != 0 {
		labels = append(labels, string(query[end+1:end+1+int(query[end])]))
		end += 1 + int(query[end])
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	out := append([]byte(nil), query[:end+5]...)
	s.mu.Lock()
	ips, known := s.addresses[strings.ToLower(strings.Join(labels, "."))]
	s.mu.Unlock()
	out[2], out[3] = 0x84, 0x00 // a response, with authority
	if !known {
		out[3] = 3 // no such name
	}
	count := 0
	for _, ip := range ips {
		data := []byte(ip.To4())
		if kind == 28 { // AAAA
			if data = ip.To16(); ip.To4() != nil {
				continue
			}
		}
		if data == nil || kind != 1 && kind != 28 {
			continue
		}
		out = append(out, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
		out = append(out, data...)
		count++
	}
	copy(out[4:12], []byte{0, 1, 0, byte(count), 0, 0, 0, 0})
	return out
}

// A counter is a listener that counts who comes and lets nobody in.
type counter struct {
	mu    sync.Mutex
	count int
}

func (c *counter) listen() (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.add(1)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func (c *counter) add(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count += n
	return c.count
}

func (c *counter) n() int { return c.add(0) }

// The machine, the question and the round that everybody is asked.

const machineText = `{"machineName": "document-review", "initialState": "pending", "goalState": "approved", "states": {
	"pending": {"prompt": "Review “it”?", "transitions": {
		"zz approve": {"target": "approved", "description": "fine", "parameters": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number"}}}},
		"10": "rejected", "2": {"target": "pending", "irreversible": true}}},
	"approved": {}, "rejected": {}}}`

var parsed sync.Map // of *machine.Machine by text

func parse(t testing.TB, text string) *machine.Machine {
	t.Helper()
	if m, ok := parsed.Load(text); ok {
		return m.(*machine.Machine)
	}
	m, err := machine.Parse("m.json", []byte(text), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	parsed.Store(text, m)
	return m
}

type past struct{}

func (past) Steps() int                { return 1 }
func (past) Visits(*machine.State) int { return 1 }
func (past) Last() *machine.Transition { return nil }
func (past) History() []specialist.TransitionRecord {
	return []specialist.TransitionRecord{{TransitionName: "2", Reasoning: "again", ExecutionTimestamp: 1767323045000, MetaJSON: json.RawMessage(`{"n":1.10}`)}}
}
func (past) Exemplars() []specialist.Exemplar {
	return []specialist.Exemplar{{ExemplarID: "e1", MachineName: "document-review", State: "pending", Context: json.RawMessage(`{"x":1}`),
		HumanTransitionName: "10", HumanToState: "rejected", Proposals: json.RawMessage(`[]`)}}
}

var key = specialist.RoundKey{Session: specialist.SessionID{1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16}, Round: 2, Attempt: 1}

func question(m *machine.Machine) specialist.Question {
	return specialist.Question{Key: key, Machine: m, State: m.Initial(), Past: past{}, Meta: json.RawMessage(`{"amount":12.50}`), Self: "remote", Seed: 7,
		Ask: &specialist.Ask{ID: key.AskID(3), CallbackURL: "https://dialai.example/v1/callbacks/s.a", CallbackToken: "callback-secret-0123456789"}}
}

// round returns a round with two proposals, of a human and of an AI.
func round(m *machine.Machine) *arbiter.Round {
	s := m.Initial()
	half := &machine.Threshold{Given: 0.5, Weight: exact.One / 2}
	return &arbiter.Round{Key: key, Machine: m, State: s, Past: past{}, Threshold: half, Meta: json.RawMessage(`{"amount":12.50}`), Ask: &specialist.Ask{ID: key.AskID(4)},
		Votes: []arbiter.Vote{
			{Proposal: &specialist.Proposal{SpecialistID: "ann", Transition: s.Transition("10"), Reasoning: "no", Arrival: 2, IsHuman: true}, Weight: exact.One},
			{Proposal: &specialist.Proposal{SpecialistID: "bot", Transition: s.Transition("zz approve"), Reasoning: "yes", Arrival: 1, Mode: specialist.Webhook}, Weight: 206543291},
		}}
}

// The secrets that tests plant, and what is derived from them.
const (
	token  = "tok&n \"of\\ the/webhook<1>"
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

func environment(name string) (string, bool) {
	v, ok := map[string]string{
		"MY_WEBHOOK_TOKEN": token, "MY_WEBHOOK_SECRET": secret, "BAD_WEBHOOK_SECRET": "whsec_%%%", "EMPTY_WEBHOOK_TOKEN": "",
		"DATABASE_URL": "db-secret", "OPENROUTER_API_TOKEN": "llm-secret", "OPENAI_API_KEY": "llm-secret", "ANTHROPIC_API_KEY": "llm-secret",
		"GEMINI_API_KEY": "llm-secret", "OLLAMA_HOST": "llm-secret", "DIALAI_API_TOKEN": "api-secret", "OTHER": "other",
	}[name]
	return v, ok
}

// quiet is for servers that expect to be left.
var quiet = log.New(io.Discard, "", 0)

// quick retries without waiting.
var quick = webhook.Retry{Base: 1, Cap: 1, MaxAfter: 1}

func config(t testing.TB, allow string) webhook.Config {
	t.Helper()
	p, err := webhook.ParsePolicy(allow)
	if err != nil {
		t.Fatal(err)
	}
	return webhook.Config{Policy: p, Lookup: environment, Retry: quick}
}

// client returns a Client that may call servers on 127.0.0.1.
func client(t testing.TB) *webhook.Client {
	t.Helper()
	return webhook.New(config(t, "127.0.0.1"))
}

func hook(url string) *machine.Specialist {
	return &machine.Specialist{SpecialistID: "remote", StrategyWebhookURL: url, ContextWebhookURL: url, WebhookTokenName: "MY_WEBHOOK_TOKEN"}
}

// server starts a server on loopback whose handler ends with the test. It reads
// the request's body first, as every server does that keeps its connections.
func server(t testing.TB, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// answering starts a server that always answers the same.
func answering(t testing.TB, status int, body string) *httptest.Server {
	t.Helper()
	return server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

const good = `{"transitionName":"10","toState":"rejected","reasoning":"no"}`

// bounded returns a context that ends long after anything here should have.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// propose asks a proposer behind url.
func propose(t testing.TB, c *webhook.Client, url string) (specialist.Answer, error) {
	t.Helper()
	m := parse(t, machineText)
	p, err := c.Proposer(m, hook(url), nil)
	if err != nil {
		return specialist.Answer{}, err
	}
	return p.Propose(bounded(t), question(m))
}

// decide asks an arbiter behind url.
func decide(t testing.TB, c *webhook.Client, url string) (arbiter.Decision, error) {
	t.Helper()
	m := parse(t, machineText)
	a, err := c.Arbiter(m, hook(url))
	if err != nil {
		return arbiter.Decision{}, err
	}
	return a.Decide(bounded(t), round(m))
}

// gather asks a context behind url.
func gather(t testing.TB, c *webhook.Client, url string) (string, error) {
	t.Helper()
	m := parse(t, machineText)
	g, err := c.Context(m, hook(url))
	if err != nil {
		return "", err
	}
	return g.Gather(bounded(t), question(m))
}

func wantError(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || err.Error() != text {
		t.Errorf("error %q, want %q", err, text)
	}
}

// wantKind reports whether err is a policy's refusal for that reason.
func wantKind(t testing.TB, err error, kind string) {
	t.Helper()
	refused, ok := errors.AsType[*webhook.PolicyError](err)
	if !ok || refused.Kind != kind {
		t.Errorf("error %v, want a refusal because of %q", err, kind)
	}
}
