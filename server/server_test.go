package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// reviewed is a machine in which a service proposes and humans decide.
const reviewed = `{"machineName":"claims","initialState":"review","goalState":"paid",
	"states":{"review":{"prompt":"Pay?","transitions":{"pay":"paid","refuse":"refused"}},"paid":{},"refused":{"final":true}},
	"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true},
		{"role":"arbiter","specialistId":"x","strategyFnName":"alignmentMargin"}]}`

// withheld is reviewed, with what is proposed withheld until the ruling.
var withheld = strings.NewReplacer(`"prompt":"Pay?",`, `"prompt":"Pay?","audit":{"mode":"before","rate":1,"newcomerRate":1},`, `{"role":"proposer","specialistId":"rob","strategyFnName":"lastAvailable"},`, "").Replace(reviewed)

const localKey = "a-key-of-32-bytes-that-nobody-has"

// A desk is a server in a test, with its store, and those who call it.
type desk struct {
	*testing.T
	runner  *runner.Runner
	of      map[string]*runner.Runner // by tenant
	control control.Store
	handler http.Handler
	server  *server.Server
	from    string // the address of who calls; "" is that of httptest
	rest    func() // lets what is driven end, and drives no more
}

type deskOptions struct {
	config    server.Config
	control   control.Store
	store     session.Store // nil is one in memory
	drives    bool
	shared    bool // other processes write to the store, too
	configure func(*runner.Config)
	tenants   []string // with a store in memory each; nil is one, default
	maySend   func(variable, host string) error
}

func newDesk(t *testing.T, o deskOptions) *desk {
	t.Helper()
	d := &desk{T: t, control: o.control}
	if d.control == nil {
		d.control = control.NewMemory()
	}
	if o.store == nil {
		o.store = store.NewMemory()
	}
	carry := driver.New(driver.Config{Stepped: func(s driver.Stepped) {
		o.config.Metrics.Stepped(s.Tenant, s.MachineName, s.Status, s.Err, s.Delay, s.Took)
	}})
	c := o.config
	c.Checks, c.Control = runner.Checks(), d.control
	var driven []driver.Tenant
	d.of = map[string]*runner.Runner{}
	if o.tenants == nil {
		o.tenants = []string{"default"}
	}
	for _, name := range o.tenants {
		kept := o.store
		if len(o.tenants) > 1 {
			kept = store.NewMemory()
		}
		engine := runner.Config{Store: kept, PublicURL: "https://dialai.example/t/" + name, Observer: func(c session.Change) {
			o.config.Metrics.Committed(c)
			carry.Observer(name)(c)
			d.server.Observer(name)(c)
		}}
		if o.configure != nil {
			o.configure(&engine)
		}
		r, err := runner.New(engine)
		if err != nil {
			t.Fatal(err)
		}
		d.runner, d.of[name] = r, r
		c.Tenants = append(c.Tenants, server.Tenant{Name: name, Runner: r, Shared: o.shared, MaySend: o.maySend})
		driven = append(driven, driver.Tenant{Name: name, Runner: r})
	}
	if c.Webhooks == nil {
		c.Webhooks = &notify.Maker{Seal: seal.NewKey()}
	}
	who := []server.Authenticator{server.Keys(d.control, nil), server.Local(localKey)}
	if c.Who != nil {
		who = append(who, c.Who)
	}
	c.Who = server.Any(who...)
	if o.drives {
		c.Driver = carry
	}
	d.server = server.New(c)
	d.handler = d.server.Handler()
	if o.drives {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- carry.Run(ctx, driven...) }()
		d.rest = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(d.rest)
	}
	return d
}

// key makes a key with a grant, and returns its credential.
func (d *desk) key(g control.Grant) string {
	d.Helper()
	return d.keyOf("", g)
}

// keyOf makes a key of a tenant.
func (d *desk) keyOf(tenant string, g control.Grant) string {
	d.Helper()
	if g.Machines == nil {
		g.Machines = []string{"*"}
	}
	id, credential := control.NewCredential(rand.Reader)
	if err := d.control.Commit(d.Context(), control.Changes{Keys: []control.Key{{ID: id, Tenant: tenant, Hash: control.HashOf(credential), Grants: []control.Grant{g}, CreatedBy: "test", CreatedAt: 1}}}); err != nil {
		d.Fatal(err)
	}
	return credential
}

// A reply is what was answered.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// into reads the body.
func (r *reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
}

// code returns the code of a problem, "" if it is none.
func (r *reply) code() string {
	var p api.Error
	if r.status < 400 || json.Unmarshal(r.body, &p) != nil {
		return ""
	}
	return p.Code
}

// do sends a request. header are names and values, one after the other.
func (d *desk) do(key, method, path, body string, header ...string) *reply {
	d.Helper()
	req := httptest.NewRequestWithContext(d.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if d.from != "" {
		req.RemoteAddr = d.from + ":1"
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, req)
	return &reply{w.Code, w.Result().Header, w.Body.Bytes()}
}

// want sends a request as the local user, and fails unless it is answered so.
func (d *desk) want(status int, method, path, body string, header ...string) *reply {
	d.Helper()
	return d.wantAs(localKey, status, method, path, body, header...)
}

func (d *desk) wantAs(key string, status int, method, path, body string, header ...string) *reply {
	d.Helper()
	r := d.do(key, method, path, body, header...)
	if r.status != status {
		d.Fatalf("%s %s: %d, want %d: %s", method, path, r.status, status, r.body)
	}
	return r
}

// start starts a session and has it come to its question.
func (d *desk) start(machine string) api.Session {
	d.Helper()
	var got api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+machine+`,"metaJson":{"amount":120}}`).into(d.T, &got)
	if !got.Settled || got.Session.Question == nil {
		d.Fatalf("the session does not wait for a human: %+v", got)
	}
	return got.Session
}

// ruling is the body of a ruling on the question of a session.
func ruling(s api.Session, transition, who string) string {
	return fmt.Sprintf(`{"transitionName":%q,"roundId":%q,"questionDigest":%q,"specialistId":%q,"reasoning":"seen"}`, transition, s.Question.RoundID, s.Question.Digest, who)
}

// TestSessionOverHTTP is the way of a session: started, asked about, decided, done.
func TestSessionOverHTTP(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	if string(s.Question.Facts.Input) != `{"amount":120}` {
		t.Errorf("the question is about %s", s.Question.Facts.Input)
	}
	var inbox api.List[runner.Question]
	d.want(200, "GET", "/v1/inbox?human=carol", "").into(t, &inbox)
	if len(inbox.Items) != 1 || inbox.Items[0].Digest != s.Question.Digest {
		t.Fatalf("the inbox has %+v", inbox.Items)
	}
	var one runner.Question
	d.want(200, "GET", "/v1/inbox/"+inbox.Items[0].QuestionID+"?human=carol", "").into(t, &one)
	if one.Digest != s.Question.Digest {
		t.Errorf("the question is %s, in the inbox %s", one.Digest, s.Question.Digest)
	}
	var ruled api.Ruled
	d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions?wait=10s", ruling(s, "pay", "carol")).into(t, &ruled)
	if !ruled.Arbitration.Executed || !ruled.Settled.Settled || ruled.Session.Status != session.Completed || ruled.Session.CurrentState != "paid" {
		t.Errorf("after the ruling: %+v", ruled)
	}
	var sessions api.List[api.Summary]
	d.want(200, "GET", "/v1/sessions?status=completed&machine=claims", "").into(t, &sessions)
	if len(sessions.Items) != 1 || sessions.Items[0].SessionID.String() != s.SessionID {
		t.Errorf("the list has %+v", sessions.Items)
	}
	var events api.List[api.Event]
	d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?kinds=executed", "").into(t, &events)
	if len(events.Items) != 1 || !bytes.Contains(events.Items[0].Data, []byte(`"subject":"local","method":"local"`)) || !bytes.Contains(events.Items[0].Data, []byte(`"questionDigest":"`+s.Question.Digest+`"`)) {
		t.Errorf("the log says %+v", events.Items)
	}
	d.want(404, "GET", "/v1/inbox/"+one.QuestionID, "")
}

// routes are all operations of the document, with something in place of what a path names.
func (d *desk) routes() (list [][2]string) {
	d.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	text, err := d.server.OpenAPI()
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		d.Fatal(err)
	}
	for path, methods := range document.Paths {
		path = strings.NewReplacer("{id}", "0b9c1d3e-0000-4000-8000-000000000000", "{question}", "0b9c1d3e-0000-4000-8000-000000000000.x", "{machine}", "claims", "{round}", "r", "{specialist}", "bot", "{digest}", "d", "{state}", "review", "{key}", "k").Replace(path)
		for method := range methods {
			list = append(list, [2]string{strings.ToUpper(method), path})
		}
	}
	if slices.SortFunc(list, func(a, b [2]string) int { return strings.Compare(a[1]+a[0], b[1]+b[0]) }); len(list) < 20 {
		d.Fatalf("the document has only %d operations", len(list))
	}
	return list
}

// TestCredentials: no operation answers whom it does not know, whatever they send, and none
// that changes something whoever may only read.
func TestCredentials(t *testing.T) {
	d := newDesk(t, deskOptions{})
	viewer := d.key(control.Grant{Role: control.Viewer})
	_, foreign := control.NewCredential(rand.Reader)
	revoked := d.key(control.Grant{Role: control.Admin})
	id, err := control.CredentialID(revoked)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.control.Commit(t.Context(), control.Changes{Revoked: []control.KeyTime{{ID: id, At: 2}}}); err != nil {
		t.Fatal(err)
	}
	for i, route := range d.routes() {
		d.from = fmt.Sprintf("192.0.2.%d", i)
		status, code := 401, "unauthenticated"
		if route[1] == "/v1/callbacks/{callback}" {
			status, code = 403, "bad_callback" // it takes another credential than a key
		}
		for name, key := range map[string]string{"none": "", "another": "secret", "a foreign one": foreign, "one that is revoked": revoked, "one cut short": viewer[:len(viewer)-1]} {
			r := d.do(key, route[0], route[1], `{}`)
			if r.status != status || r.code() != code || status == 401 && r.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with the key %s: %d %s", route[0], route[1], name, r.status, r.body)
			}
		}
		if r := d.do(viewer, route[0], route[1], `{}`); route[0] != "GET" && route[1] != "/v1/machines/validate" && r.status != 403 && r.status != 400 {
			t.Errorf("%s %s by a viewer: %d %s", route[0], route[1], r.status, r.body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/machine.schema.json", "/problems/stale_round"} {
		if r := d.do("", "GET", path, ""); r.status != 200 {
			t.Errorf("%s needs a key: %d %s", path, r.status, r.body)
		}
	}
}

// TestPermissions: what each role may, on a session that waits for a human.
func TestPermissions(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	path := "/v1/sessions/" + s.SessionID
	keys := map[string]string{
		"viewer":   d.key(control.Grant{Role: control.Viewer}),
		"operator": d.key(control.Grant{Role: control.Operator}),
		"carol":    d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}}),
		"erin":     d.key(control.Grant{Role: control.Human, Humans: []string{"erin"}}),
		"bot":      d.key(control.Grant{Role: control.Specialist, Specialists: []string{"bot"}}),
		"auditor":  d.key(control.Grant{Role: control.Auditor}),
		"admin":    d.key(control.Grant{Role: control.Admin}),
		"other":    d.key(control.Grant{Role: control.Admin, Machines: []string{"other*"}, Humans: []string{"carol"}}),
	}
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		code                    string
	}{
		{"viewer", "GET", path, "", 200, ""},
		{"other", "GET", path, "", 404, "not_found"},
		{"other", "GET", "/v1/machines/claims", "", 404, "not_found"},
		{"other", "POST", path + "/decisions", ruling(s, "pay", "carol"), 404, "not_found"},
		{"viewer", "GET", path + "/events?payload=full", "", 403, "forbidden"},
		{"viewer", "GET", "/v1/inbox/" + s.Question.QuestionID, "", 403, "forbidden"},
		{"viewer", "POST", path + "/cancel", `{"note":"x"}`, 403, "forbidden"},
		{"auditor", "GET", path + "/events?payload=full", "", 200, ""},
		{"auditor", "POST", path + "/step", "", 403, "forbidden"},
		{"carol", "POST", path + "/cancel", `{"note":"x"}`, 403, "forbidden"},
		{"operator", "POST", path + "/decisions", ruling(s, "pay", "carol"), 403, "forbidden"},
		{"bot", "POST", path + "/decisions", ruling(s, "pay", "bot"), 403, "forbidden"},
		{"admin", "POST", path + "/decisions", ruling(s, "pay", "carol"), 403, "not_bound"},
		{"admin", "POST", path + "/decisions", ruling(s, "pay", ""), 403, "not_a_decider"},
		{"erin", "POST", path + "/decisions", ruling(s, "pay", "erin"), 403, "not_a_decider"},
		{"erin", "POST", path + "/decisions", ruling(s, "pay", "carol"), 403, "not_bound"},
		{"carol", "POST", path + "/decisions", ruling(s, "pay", "dave"), 403, "not_bound"},
		{"bot", "POST", path + "/proposals", `{"specialistId":"carol","transitionName":"pay"}`, 403, "not_bound"},
		{"carol", "POST", path + "/proposals", `{"transitionName":"pay"}`, 428, "precondition_required"},
		{"carol", "POST", path + "/executions", `{"transitionName":"pay"}`, 428, "precondition_required"},
		{"carol", "POST", path + "/raise", `{"raise":[{"limit":"limits.max_steps","to":5}],"note":"x","specialistId":"dave"}`, 403, "not_bound"},
		{"carol", "POST", path + "/decisions", strings.Replace(ruling(s, "pay", ""), s.Question.Digest, strings.Repeat("0", 64), 1), 409, "stale_question"},
		{"carol", "POST", path + "/decisions", ruling(s, "fly", ""), 422, "illegal_answer"},
		{"carol", "POST", path + "/decisions", ruling(s, "pay", ""), 200, ""},
		{"carol", "POST", path + "/decisions", ruling(s, "refuse", ""), 409, "not_running"},
	} {
		r := d.do(keys[c.who], c.method, c.path, c.body)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%s %s by %s: %d %q, want %d %q: %s", c.method, c.path, c.who, r.status, r.code(), c.status, c.code, r.body)
		}
	}
	var log api.List[api.Event]
	d.want(200, "GET", path+"/events?kinds=executed", "").into(t, &log)
	if len(log.Items) != 1 || !bytes.Contains(log.Items[0].Data, []byte(`"specialistId":"carol"`)) || !bytes.Contains(log.Items[0].Data, []byte(`"method":"key"`)) {
		t.Errorf("the log says %+v", log.Items)
	}
}

// TestViewerSeesNoPayload: who may only read is shown nothing that was written or said in a
// session.
func TestViewerSeesNoPayload(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	secret := "xyzzy-plugh"
	machine := strings.Replace(reviewed, `{"machineName":`, `{"subject":"= data.who","machineName":`, 1)
	var got api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+machine+`,"metaJson":{"who":"`+secret+`"}}`).into(t, &got)
	s := got.Session
	path := "/v1/sessions/" + s.SessionID
	viewer := d.key(control.Grant{Role: control.Viewer})
	for _, at := range []string{path, "/v1/sessions", path + "/events", "/v1/inbox", "/v1/reviews"} {
		if r := d.wantAs(viewer, 200, "GET", at, ""); bytes.Contains(r.body, []byte(secret)) || bytes.Contains(r.body, []byte("seen")) {
			t.Errorf("%s shows a viewer %s", at, r.body)
		}
		if r := d.want(200, "GET", at, ""); at != "/v1/reviews" && !bytes.Contains(r.body, []byte(secret)) {
			t.Errorf("%s shows nobody %s", at, secret)
		}
	}
	d.want(200, "POST", path+"/decisions", strings.Replace(ruling(s, "pay", "carol"), "seen", secret, 1))
	if r := d.wantAs(viewer, 200, "GET", path, ""); bytes.Contains(r.body, []byte(secret)) {
		t.Errorf("a viewer is shown %s", r.body)
	}
}

// TestEscaped: no answer holds a character that hides or changes what others show, in a
// resource, a problem, a page or a stream; what they say is what was given.
func TestEscaped(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	const disguised = "a\u009b31m\u202eb\x7f\u200b\U000e0041"
	given, _ := json.Marshal(map[string]string{"note": disguised})
	var started api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", fmt.Sprintf(`{"machine":%s,"metaJson":%s}`, reviewed, given)).into(t, &started)
	var about struct{ Note string }
	if err := json.Unmarshal(started.Session.MetaJSON, &about); err != nil || about.Note != disguised {
		t.Errorf("the session is about %q: %v", about.Note, err)
	}
	session := "/v1/sessions/" + started.Session.SessionID
	for path, status := range map[string]int{
		session: 200, session + "/events": 200, "/v1/inbox": 200, session + "/explain": 200,
		"/v1/sessions/" + url.PathEscape(disguised): 404,
	} {
		if body := string(d.want(status, "GET", path, "").body); strings.ContainsFunc(body, func(r rune) bool { return r >= 0x7F && text.Disguises(r) }) {
			t.Errorf("%s answers %q", path, body)
		}
	}
}

// TestHosts: a page whose own name leads here gets nothing.
func TestHosts(t *testing.T) {
	d := newDesk(t, deskOptions{config: server.Config{Hosts: []string{"localhost", "127.0.0.1", "::1"}}})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8420": 200, "127.0.0.1:8420": 200, "[::1]:8420": 200, "LOCALHOST": 200,
		"attacker.example": 421, "localhost.attacker.example": 421, "127.0.0.1.attacker.example:8420": 421, "": 421, "127.0.0.2": 421,
	} {
		r := d.do(localKey, "GET", "/v1", "", "Host", host)
		if r.status != status {
			t.Errorf("a request for %q: %d, want %d: %s", host, r.status, status, r.body)
		}
	}
	d.wantAs("", 200, "GET", "/readyz", "", "Host", "10.0.0.1")
}

// TestOrigins: a page elsewhere changes nothing, with whatever it sends, and reads only if
// its origin is let in.
func TestOrigins(t *testing.T) {
	d := newDesk(t, deskOptions{config: server.Config{Origins: []string{"https://desk.example"}}})
	body := `{"machine":` + reviewed + `}`
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Origin", "https://attacker.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Origin", "https://attacker.example"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Origin", "https://desk.example", "Sec-Fetch-Site", "cross-site"}, 201},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 201},
		{nil, 201}, // no browser
	} {
		r := d.do(localKey, "POST", "/v1/sessions", body, c.header...)
		if r.status != c.status {
			t.Errorf("with %q: %d, want %d: %s", c.header, r.status, c.status, r.body)
		}
		if allowed := r.header.Get("Access-Control-Allow-Origin"); allowed != "" && allowed != "https://desk.example" {
			t.Errorf("with %q: %s may read the answer", c.header, allowed)
		}
	}
	asks := d.do("", "OPTIONS", "/v1/sessions", "", "Origin", "https://desk.example", "Access-Control-Request-Method", "POST")
	if asks.status != 204 || asks.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("a browser that asks is told %d %v", asks.status, asks.header)
	}
	if r := d.do("", "OPTIONS", "/v1/sessions", "", "Origin", "https://attacker.example", "Access-Control-Request-Method", "POST"); r.status < 400 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a browser that asks for a foreign page is told %d %v", r.status, r.header)
	}
}

// TestProblems: what is wrong with a request is said with its place, as a problem.
func TestProblems(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	path := "/v1/sessions/" + s.SessionID
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, c := range []struct {
		method, path, body string
		status             int
		code, says         string
	}{
		{"POST", "/v1/sessions", "", 400, "bad_request", "body"},
		{"POST", "/v1/sessions", "{", 400, "bad_request", ""},
		{"POST", "/v1/sessions", `{"machineName":"a"} {}`, 400, "bad_request", ""},
		{"POST", "/v1/sessions", `{"machineName":"a","machineName":"b"}`, 400, "bad_request", "machineName"},
		{"POST", "/v1/sessions", `{"machineNam":"a"}`, 400, "bad_request", `"hint":"did you mean \"machineName\"?"`},
		{"POST", path + "/raise", `{"note":"x","raise":[{"limt":"limits.max_steps","to":5}]}`, 400, "bad_request", `"pointer":"/raise/0/limt","message":"unexpected property","hint":"did you mean \"limit\"?"`},
		{"POST", "/v1/sessions", `{"machineName":"none","MachineName":"x"}`, 400, "bad_request", `"pointer":"/MachineName"`},
		{"POST", path + "/run", `{"maxSteps":1e3}`, 400, "bad_request", `"detail":"/maxSteps: number 1e3 is`},
		{"POST", "/v1/sessions", `{"machineName":5}`, 400, "bad_request", `"pointer":"/machineName","message":"expected string"}`},
		{"POST", "/v1/sessions", "{\"machineName\":\"\xff\"}", 400, "bad_request", ""},
		{"POST", "/v1/sessions", `{"machine":` + reviewed + `,"metaJson":` + deep + `}`, 400, "bad_request", ""},
		{"POST", "/v1/sessions", `{"machine":{"machineName":"a"}}`, 400, "invalid_machine", ""},
		{"POST", "/v1/sessions", `{"machine":{"machineName":"a","guards":"/etc/passwd"}}`, 400, "invalid_machine", ""},
		{"POST", "/v1/sessions", `{"machineName":"claims","machine":` + reviewed + `}`, 400, "bad_request", "one of them"},
		{"POST", "/v1/sessions", `{"machineName":"none"}`, 404, "not_found", "none"},
		{"POST", "/v1/sessions", `{"machineName":"claims","seed":"-1"}`, 400, "bad_request", "seed"},
		{"POST", "/v1/sessions", `{"machineName":"claims","mode":"fast"}`, 400, "bad_request", "/mode"},
		{"POST", "/v1/sessions?wait=soon", `{"machineName":"claims"}`, 400, "bad_request", "wait"},
		{"GET", "/v1/sessions?statu=running", "", 400, "bad_request", `"hint":"did you mean \"status\"?"`},
		{"GET", path + "/events?limt=5", "", 400, "bad_request", `"hint":"did you mean \"limit\"?"`},
		{"GET", "/v1/sessions?status=runing", "", 400, "bad_request", "runing"},
		{"GET", "/v1/sessions?limit=201", "", 400, "bad_request", "limit"},
		{"GET", "/v1/sessions?limit=0", "", 400, "bad_request", "limit"},
		{"GET", "/v1/inbox?limit=-1", "", 400, "bad_request", "limit"},
		{"GET", path + "/events?limit=0", "", 400, "bad_request", "limit"},
		{"GET", "/v1/sessions?cursor=garbage", "", 400, "bad_cursor", ""},
		{"GET", "/v1/sessions/nonsense", "", 404, "not_found", ""},
		{"GET", "/v1/sessions/0b9c1d3e-0000-4000-8000-000000000000", "", 404, "not_found", ""},
		{"GET", path + "/events?after=x", "", 400, "bad_cursor", ""},
		{"POST", path + "/decisions", `{"roundId":"r","questionDigest":"d"}`, 400, "bad_request", "transitionName"},
		{"POST", path + "/cancel", `{"note":""}`, 400, "bad_request", "note"},
		{"POST", path + "/fork", `{"sequence":99}`, 422, "", ""},
		{"PUT", "/v1/sessions", "", 405, "", ""},
		{"GET", "/v1/nowhere", "", 404, "not_found", ""},
	} {
		r := d.do(localKey, c.method, c.path, c.body)
		var p api.Error
		if r.into(t, &p); r.status != c.status || c.code != "" && p.Code != c.code || !strings.Contains(string(r.body), c.says) {
			t.Errorf("%s %s %.60s: %d %s", c.method, c.path, c.body, r.status, r.body)
		}
		if r.header.Get("Content-Type") != "application/problem+json" || p.Status != r.status || p.Type != "/problems/"+p.Code || p.RequestID == "" || p.RequestID != r.header.Get("Dialai-Request-Id") || p.ExitCode == 0 {
			t.Errorf("%s %s: no problem: %v %s", c.method, c.path, r.header, r.body)
		}
	}
	if r := d.do(localKey, "POST", "/v1/sessions", `{"metaJson":"`+strings.Repeat("x", 1<<20)+`"}`); r.status != 413 {
		t.Errorf("a body of more than 1 MiB: %d %s", r.status, r.body)
	}
	if r := d.do(localKey, "POST", "/v1/sessions", `machineName: x`, "Content-Type", "application/yaml"); r.status != 415 {
		t.Errorf("YAML: %d %s", r.status, r.body)
	}
	if r := d.do(localKey, "GET", "/v1/sessions?subject="+strings.Repeat("x", 9000), ""); r.status != 414 {
		t.Errorf("an address of more than 8 KiB: %d %s", r.status, r.body)
	}
}

// TestAccept: who takes nothing that is answered is refused before anything is done.
func TestAccept(t *testing.T) {
	d := newDesk(t, deskOptions{})
	for accept, status := range map[string]int{
		"":                             200,
		"*/*":                          200,
		"application/*":                200,
		"application/json":             200,
		"application/JSON; q=0.1":      200,
		"application/problem+json":     200,
		"text/html, */*;q=0.8":         200,
		"text/csv, application/*;q=.5": 200,
		"?":                            200,
		"json":                         200,
		"text/csv":                     406,
		"text/*":                       406,
		"application/jso":              406,
		"text/csv, */*;q=0":            406,
		"text/csv, application/*;q=0":  406,
		"application/json;q=0, application/problem+json;q=0, */*": 406,
	} {
		if r := d.do(localKey, "GET", "/v1/sessions", "", "Accept", accept); r.status != status || status == 406 && r.code() != "not_acceptable" {
			t.Errorf("Accept: %s is answered %d %s", accept, r.status, r.body)
		}
	}
	d.want(406, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`, "Accept", "text/csv")
	if list := d.want(200, "GET", "/v1/sessions", ""); strings.Contains(string(list.body), "sessionId") {
		t.Errorf("what was refused is done: %s", list.body)
	}
	d.want(201, "PUT", "/v1/machines/claims", reviewed, "If-None-Match", "*")
	d.want(200, "GET", "/v1/machines/claims/graph?format=svg", "", "Accept", "image/*")
}

// TestIdempotency: a request with a key is done once.
func TestIdempotency(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	body := `{"machine":` + reviewed + `}`
	first := d.want(201, "POST", "/v1/sessions", body, "Idempotency-Key", "one")
	again := d.want(201, "POST", "/v1/sessions", body, "Idempotency-Key", "one")
	if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") || again.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("sent again, the request is answered %v %s", again.header, again.body)
	}
	if r := d.want(422, "POST", "/v1/sessions", `{"machineName":"claims"}`, "Idempotency-Key", "one"); r.code() != "key_reused" {
		t.Errorf("with another body: %s", r.body)
	}
	other := d.key(control.Grant{Role: control.Operator})
	if r := d.wantAs(other, 201, "POST", "/v1/sessions", body, "Idempotency-Key", "one"); r.header.Get("Location") == first.header.Get("Location") {
		t.Errorf("the key of one is that of another: %v", r.header)
	}
	d.want(400, "POST", "/v1/sessions", body, "Idempotency-Key", "no good")
	var list api.List[api.Summary]
	if d.want(200, "GET", "/v1/sessions", "").into(t, &list); len(list.Items) != 2 {
		t.Errorf("%d sessions were started, want 2", len(list.Items))
	}
}

// refusing is a store that refuses to start sessions as long as it has a reason.
type refusing struct {
	session.Store
	reason error
}

func (r *refusing) Commit(ctx context.Context, c *session.Change) error {
	if r.reason != nil {
		return r.reason
	}
	return r.Store.Commit(ctx, c)
}

// TestIdempotencyOfWhatPasses: of a request that is refused for now nothing is kept, and with
// the same key it gets through later.
func TestIdempotencyOfWhatPasses(t *testing.T) {
	for code, reason := range map[string]error{"quota_exceeded": runner.ErrQuota, "conflict": session.ErrStale, "store_busy": session.ErrBusy} {
		kept := &refusing{store.NewMemory(), fmt.Errorf("for now: %w", reason)}
		d := newDesk(t, deskOptions{store: kept})
		body := `{"machine":` + reviewed + `}`
		if r := d.do(localKey, "POST", "/v1/sessions", body, "Idempotency-Key", "one"); r.code() != code || !bytes.Contains(r.body, []byte(`"retryable":true`)) {
			t.Errorf("%s: refused, it is answered %d %s", code, r.status, r.body)
		}
		kept.reason = nil
		if r := d.do(localKey, "POST", "/v1/sessions", body, "Idempotency-Key", "one"); r.status != 201 || r.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s: sent again, it is answered %d %v %s", code, r.status, r.header, r.body)
		}
		if r := d.do(localKey, "POST", "/v1/sessions", body, "Idempotency-Key", "one"); r.status != 201 || r.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: sent once more, it is answered %d %v %s", code, r.status, r.header, r.body)
		}
	}
	d := newDesk(t, deskOptions{})
	for _, replayed := range []string{"", "true"} {
		if r := d.do(localKey, "POST", "/v1/sessions", `{"machineName":"nobody"}`, "Idempotency-Key", "one"); r.status != 404 || r.header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("what is refused for good is answered %d %v", r.status, r.header)
		}
	}
}

// forgetful is a control store that cannot write what came of the first request.
type forgetful struct {
	control.Store
	failed bool
}

func (f *forgetful) Commit(ctx context.Context, c control.Changes) error {
	if c.End != nil && !f.failed {
		f.failed = true
		gone, cancel := context.WithCancel(ctx)
		cancel()
		ctx = gone
	}
	return f.Store.Commit(ctx, c)
}

// TestIdempotencyOfTheLost: a request of which only the effect is known is taken up when it
// is sent again, and starts no second session.
func TestIdempotencyOfTheLost(t *testing.T) {
	d := newDesk(t, deskOptions{control: &forgetful{Store: control.NewMemory()}})
	body := `{"machine":` + reviewed + `}`
	first := d.want(201, "POST", "/v1/sessions", body, "Idempotency-Key", "lost")
	again := d.want(201, "POST", "/v1/sessions", body, "Idempotency-Key", "lost")
	if again.header.Get("Location") != first.header.Get("Location") || again.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("taken up, the request is answered %v, want %v", again.header, first.header)
	}
	third := d.want(201, "POST", "/v1/sessions", body, "Idempotency-Key", "lost")
	if third.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("once its end is known, it is not repeated: %v", third.header)
	}
	list, err := d.runner.Sessions(t.Context(), session.ListQuery{})
	if err != nil || len(list) != 1 {
		t.Errorf("%d sessions were started, want 1: %v", len(list), err)
	}
}

// TestPreconditions: who names the version that they saw changes nothing newer.
func TestPreconditions(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	path := "/v1/sessions/" + s.SessionID
	seen := d.want(200, "GET", path, "")
	d.want(304, "GET", path, "", "If-None-Match", seen.header.Get("ETag"))
	if r := d.want(412, "POST", path+"/decisions", ruling(s, "pay", "carol"), "If-Match", `"1"`); r.code() != "stale_sequence" {
		t.Errorf("with an old ETag: %s", r.body)
	}
	if r := d.want(200, "GET", path, ""); r.header.Get("ETag") != seen.header.Get("ETag") {
		t.Errorf("what was refused has changed the session: %s", r.body)
	}
	d.want(200, "POST", path+"/decisions", ruling(s, "pay", "carol"), "If-Match", seen.header.Get("ETag"))
}

// failing is a control store that writes nothing.
type failing struct{ control.Store }

func (failing) Begin(context.Context, control.Receipt, control.Entry) (control.Begun, error) {
	return control.Begun{}, store.ErrFull
}

func (failing) Commit(context.Context, control.Changes) error { return store.ErrFull }

// TestAudit: what may change something is in the audit log before it does, and its result
// after; what cannot be recorded is not done.
func TestAudit(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	key := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	d.wantAs(key, 200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", ""))
	records, err := d.control.Audit(t.Context(), control.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var found []control.Entry
	for _, r := range records {
		e, err := r.Entry()
		if err != nil {
			t.Fatal(err)
		}
		if e.Operation == "POST /v1/sessions/{id}/decisions" {
			found = append(found, e)
		}
	}
	if len(found) != 2 || found[0].Result != "" || found[1].Result != "OK" {
		t.Fatalf("of the ruling the log says %+v", found)
	}
	for _, e := range found {
		if !strings.HasPrefix(e.Subject, "key:") || e.KeyID == "" || e.Method != "key" || e.RoundID != s.Question.RoundID || e.Digest != s.Question.Digest || e.RequestID == "" || e.Tenant != "default" || e.Target != "/v1/sessions/"+s.SessionID+"/decisions" {
			t.Errorf("the log says %+v", e)
		}
	}
	broken := newDesk(t, deskOptions{control: failing{control.NewMemory()}})
	for _, header := range [][]string{nil, {"Idempotency-Key", "k"}} {
		if r := broken.want(507, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`, header...); r.code() != "store_full" || r.header.Get("Retry-After") != "1" {
			t.Errorf("what cannot be recorded is answered %s", r.body)
		}
	}
	if list, err := broken.runner.Sessions(t.Context(), session.ListQuery{}); len(list) != 0 || err != nil {
		t.Errorf("what could not be recorded was done: %v %v", list, err)
	}
}

// TestWithheld: what is withheld from whoever may rule is in no answer, whoever asks, until
// somebody looks on the record; then their ruling is not blind.
func TestWithheld(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(withheld)
	if s.Question.Withheld == nil {
		t.Fatal("nothing is withheld in this machine")
	}
	path := "/v1/sessions/" + s.SessionID
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	for _, key := range []string{localKey, carol, d.key(control.Grant{Role: control.Operator}), d.key(control.Grant{Role: control.Auditor})} {
		for _, at := range []string{path, path + "/events", path + "/events?payload=full", "/v1/inbox", "/v1/inbox/" + s.Question.QuestionID, "/v1/sessions"} {
			r := d.wantAs(key, 200, "GET", at, "")
			if bytes.Contains(r.body, []byte(`"specialistId":"bot","role"`)) || bytes.Contains(r.body, []byte("firstAvailable: pay")) || bytes.Contains(r.body, []byte(`"transitionName":"pay"`)) {
				t.Errorf("%s tells what was proposed: %s", at, r.body)
			}
		}
	}
	d.want(403, "POST", path+"/evaluation", "")
	var shown runner.Question
	d.wantAs(carol, 200, "POST", "/v1/inbox/"+s.Question.QuestionID+"/reveal", "").into(t, &shown)
	if len(shown.Proposals) != 1 || shown.Withheld != nil {
		t.Errorf("who looks on the record is shown %+v", shown)
	}
	var after api.Session
	d.wantAs(carol, 200, "GET", path, "").into(t, &after)
	if len(after.Proposals) != 1 {
		t.Errorf("who has looked is shown %+v", after.Proposals)
	}
	d.wantAs(carol, 200, "POST", path+"/decisions", ruling(after, "pay", ""))
	at, err := d.runner.Session(t.Context(), mustID(t, s.SessionID))
	if err != nil || at.Status != session.Completed {
		t.Fatal(at, err)
	}
}

// TestEventsResume: whoever begins again behind the last event they saw gets each once.
func TestEventsResume(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- d.server.Serve(ctx, server.Listening{Listeners: []net.Listener{listener}, Grace: 5 * time.Second})
	}()
	s := d.start(reviewed)
	open := func(after string) (*bufio.Reader, func()) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+listener.Addr().String()+"/v1/sessions/"+s.SessionID+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+localKey)
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Last-Event-ID", after)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("the stream begins with %d %v", resp.StatusCode, resp.Header)
		}
		return bufio.NewReader(resp.Body), func() { resp.Body.Close() }
	}
	// next reads one event.
	next := func(r *bufio.Reader) (id, event, data string, err error) {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return "", "", "", err
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "id":
				id = value
			case "event":
				event = value
			case "data":
				data = value
			case "":
				if event != "" {
					return id, event, data, nil
				}
			}
		}
	}
	stream, closes := open("0")
	var seen []string
	for range 2 {
		id, _, _, err := next(stream)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, id)
	}
	closes()
	stream, closes = open(seen[len(seen)-1])
	defer closes()
	ruled := false
	for {
		id, event, data, err := next(stream)
		if err != nil {
			t.Fatalf("after %v: %v", seen, err)
		}
		if event == "end" {
			break
		}
		seen = append(seen, id)
		var e api.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Kind != event || fmt.Sprint(e.Seq) != id {
			t.Errorf("%s %s has the data %s: %v", id, event, data, err)
		}
		if event == "needs_human" && !ruled {
			ruled = true
			d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "carol"))
		}
	}
	var all api.List[api.Event]
	d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events", "").into(t, &all)
	for i, e := range all.Items {
		if i >= len(seen) || seen[i] != fmt.Sprint(e.Seq) {
			t.Fatalf("the streams had %v, the log has %d events", seen, len(all.Items))
		}
	}
	if len(seen) != len(all.Items) {
		t.Errorf("the streams had %v, the log has %d events", seen, len(all.Items))
	}
	d.want(204, "GET", "/v1/sessions/"+s.SessionID+"/events", "", "Accept", "text/event-stream", "Last-Event-ID", seen[len(seen)-1])
	other := d.start(strings.Replace(reviewed, "claims", "others", 1))
	s = other
	stream, closes = open("")
	defer closes()
	cancel()
	if _, event, _, err := next(stream); event != "bye" || err != nil {
		t.Errorf("when the server ends the stream says %q: %v", event, err)
	}
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the stream does not end well: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDocument: the document is what the operations are, and says of each what it may answer.
func TestDocument(t *testing.T) {
	d := newDesk(t, deskOptions{})
	text, err := d.server.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Summary     string
			Security    []any
			Responses   map[string]any
		}
		Components struct {
			Schemas map[string]struct{ AdditionalProperties any }
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for path, methods := range document.Paths {
		for method, o := range methods {
			if o.OperationID == "" || ids[o.OperationID] || o.Summary == "" || len(o.Security) == 0 || o.Responses["401"] == nil {
				t.Errorf("%s %s is described as %+v", method, path, o)
			}
			ids[o.OperationID] = true
		}
	}
	if document.Components.Schemas["Ruling"].AdditionalProperties != false || document.Components.Schemas["Session"].AdditionalProperties != true {
		t.Errorf("requests are to be closed and answers open: Ruling %v, Session %v", document.Components.Schemas["Ruling"], document.Components.Schemas["Session"])
	}
}

// TestListsByStart: sessions are listed by who has started them and when, questions by when they
// began to wait.
func TestListsByStart(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	first := d.start(reviewed)
	var other api.Settled
	d.wantAs(d.key(control.Grant{Role: control.Operator}), 201, "POST", "/v1/sessions?wait=10s", `{"machine":`+reviewed+`}`).into(t, &other)
	later := first.CreatedAt.Time().Add(-time.Millisecond).UTC().Format(time.RFC3339Nano)
	for query, want := range map[string]int{
		"": 2, "startedBy=local": 1, "startedBy=nobody": 0, "createdAfter=" + url.QueryEscape(later): 2, "createdAfter=2999-01-01T00:00:00Z": 0,
		"startedBy=local&createdAfter=" + url.QueryEscape(later): 1,
	} {
		var list api.List[api.Summary]
		if d.want(200, "GET", "/v1/sessions?"+query, "").into(t, &list); len(list.Items) != want {
			t.Errorf("%s lists %d sessions, want %d", query, len(list.Items), want)
		}
	}
	d.want(400, "GET", "/v1/sessions?createdAfter=soon", "")
	for since, want := range map[string]int{"2020-01-01T00:00:00Z": 2, "2999-01-01T00:00:00Z": 0, other.Session.Question.Since.Time().UTC().Format(time.RFC3339Nano): 0} {
		var inbox api.List[api.Item]
		if d.want(200, "GET", "/v1/inbox?since="+url.QueryEscape(since), "").into(t, &inbox); len(inbox.Items) != want {
			t.Errorf("since %s %d questions wait, want %d", since, len(inbox.Items), want)
		}
	}
	d.want(400, "GET", "/v1/inbox?since=soon", "")
}
