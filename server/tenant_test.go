package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/webhook"
)

// acmes stands in the texts of what acme has, and in no request of others.
const acmes = "of-acme-alone"

// acmeMachine is reviewed, by another name and with another question.
var acmeMachine = strings.NewReplacer(`"machineName":"claims"`, `"machineName":"refunds-x"`, "Pay?", "Pay "+acmes+"?").Replace(reviewed)

// twoTenants returns a server with the tenants acme and beta. acme has something of everything, and
// known are its ids, by what paths and bodies call them.
func twoTenants(t *testing.T, o deskOptions) (d *desk, known map[string][]string) {
	t.Helper()
	o.tenants, o.drives = []string{"acme", "beta"}, true
	d = newDesk(t, o)
	inAcme := []string{"Dialai-Tenant", "acme"}
	const name = "refunds-x"
	var m api.Machine
	d.want(201, "PUT", "/v1/machines/"+name, acmeMachine, append(inAcme, "If-None-Match", "*")...).into(t, &m)
	d.want(201, "POST", "/v1/machines/"+name+"/specialists", `{"role":"proposer","specialistId":"late","strategyFnName":"firstAvailable"}`, inAcme...)
	var s api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machineName":"`+name+`","metaJson":{"amount":120,"note":"`+acmes+`"}}`, inAcme...).into(t, &s)
	if s.Session.Question == nil {
		t.Fatalf("the session of acme waits for nobody: %+v", s)
	}
	q := s.Session.Question
	var hook api.MadeWebhook
	d.want(201, "POST", "/v1/webhooks", `{"url":"https://example.com/`+acmes+`","types":["*"]}`, inAcme...).into(t, &hook)
	var told api.Delivery
	d.want(202, "POST", "/v1/webhooks/"+hook.WebhookID+"/test", "", inAcme...).into(t, &told)
	var key api.MadeKey
	d.want(201, "POST", "/v1/keys", `{"name":"`+acmes+`","grants":[{"role":"viewer","machines":["*"]}]}`, inAcme...).into(t, &key)
	d.want(200, "PUT", "/v1/inbox/"+q.QuestionID+"/claim", `{"specialistId":"carol"}`, inAcme...)
	var job api.Job
	d.want(202, "POST", "/v1/jobs", `{"kind":"backtest","machineName":"`+name+`","arbiter":"firstProposal"}`, inAcme...).into(t, &job)
	return d, map[string][]string{
		"id": {s.Session.SessionID}, "session": {s.Session.SessionID}, "sessionId": {s.Session.SessionID}, "question": {q.QuestionID}, "questionDigest": {q.Digest},
		"machine": {name}, "machineName": {name}, "digest": {m.MachineDigest}, "machineDigest": {m.MachineDigest}, "round": {s.Session.CurrentRoundID}, "roundId": {s.Session.CurrentRoundID},
		"webhook": {hook.WebhookID}, "delivery": {told.DeliveryID}, "key": {key.KeyID}, "job": {job.JobID}, "specialist": {"late", "bot"}, "specialistId": {"carol", "late"}, "transitionName": {"pay"}, "state": {"review"},
		"human": {"carol"}, "note": {"why"}, "wait": {"0s"}, "definition": {reviewed}, "url": {"https://example.com"}, "types": {"*"}, "role": {"viewer"}, "machines": {"*"}, "limit": {"5"},
	}
}

// standing says all that a tenant has.
func (d *desk) standing(tenant string) string {
	d.Helper()
	kept := d.of[tenant].Store()
	place, err := kept.Place(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	rosters, err := kept.RosterPlace(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	text := fmt.Sprint(place, rosters)
	q := control.Query{Tenant: tenant}
	hooks, err := d.control.Webhooks(d.Context(), q)
	if err != nil {
		d.Fatal(err)
	}
	keys, err := d.control.Keys(d.Context(), q)
	if err != nil {
		d.Fatal(err)
	}
	machines, err := d.control.Machines(d.Context(), q)
	if err != nil {
		d.Fatal(err)
	}
	return text + fmt.Sprint(hooks, keys, machines)
}

// ownID is in the routes of what has an id that nothing else has, of whatever tenant.
var ownID = regexp.MustCompile(`\{(id|session|question|webhook|delivery|key|job)\}`)

var requestIDs = regexp.MustCompile(`"requestId":"[^"]*"`)

// TestNothingOfOthers sends every operation the ids of another tenant, as who may do everything in
// their own: no answer has anything of that tenant, each is the same as with ids that nobody has (404
// for who may do everything, but where the request itself is wrong), every write is in the audit log, and nothing of it changes.
func TestNothingOfOthers(t *testing.T) {
	seed := cmp.Or(*guessSeed, rand.Uint64())
	t.Logf("-guess-seed %d makes these requests again", seed)
	d, known := twoTenants(t, deskOptions{})
	doc := d.document()
	g := &guesser{rand.New(rand.NewPCG(seed, 2)), doc.Components.Schemas, known}
	beta := []string{
		d.keyOf("beta", control.Grant{Role: control.Admin, Humans: []string{"carol"}}), d.keyOf("beta", control.Grant{Role: control.Operator}), d.keyOf("beta", control.Grant{Role: control.Auditor}),
		d.keyOf("beta", control.Grant{Role: control.Human, Humans: []string{"carol"}}), d.keyOf("beta", control.Grant{Role: control.Specialist, Specialists: []string{"late"}}), localKey,
	}
	nobodys := strings.NewReplacer(
		known["id"][0], "0b9c1d3e-0000-4000-8000-000000000000", known["machine"][0], "unknown", known["webhook"][0], "wh_"+strings.Repeat("0", 24),
		known["delivery"][0], "msg_0b9c1d3e-0000-8000-8000-000000000000", known["key"][0], "000000000000", known["job"][0], "0b9c1d3e-0000-4000-8000-000000000000", known["digest"][0], strings.Repeat("0", 64),
	)
	// What a caller has sent themselves may come back, and numbers that grow with what they do.
	plain := func(r *reply) string {
		text := requestIDs.ReplaceAllString(string(r.body), "")
		for _, sent := range []string{"id", "machine", "webhook", "delivery", "key", "job", "digest"} {
			text = strings.ReplaceAll(strings.ReplaceAll(text, known[sent][0], "ID"), nobodys.Replace(known[sent][0]), "ID")
		}
		return text
	}
	var routes [][2]string
	for path, methods := range doc.Paths {
		for method := range methods {
			routes = append(routes, [2]string{strings.ToUpper(method), path})
		}
	}
	slices.SortFunc(routes, func(a, b [2]string) int { return strings.Compare(a[1]+a[0], b[1]+b[0]) })
	before := d.standing("acme")
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	refused := 0
	for range rounds {
		for _, route := range routes {
			op := doc.Paths[route[1]][strings.ToLower(route[0])]
			path, body := g.request(route[1], op, false)
			key := beta[g.IntN(len(beta))]
			header := []string{}
			if key == localKey {
				header = append(header, "Dialai-Tenant", "beta")
			}
			if g.IntN(2) == 0 && route[0] != "GET" {
				header = append(header, "If-Match", "*")
			}
			d.from = fmt.Sprintf("2001:db8::%x", g.IntN(1<<16))
			written := d.audited()
			r := d.do(key, route[0], path, body, header...)
			proposes := strings.HasSuffix(route[1], "/proposals") && r.status == 403 // which nobody may by being an administrator
			if ownID.MatchString(route[1]) && (r.status < 400 || key == beta[0] && r.status != 404 && r.status != 400 && !proposes) {
				t.Errorf("%s %s %s: what is another tenant's is answered %d %s", route[0], path, body, r.status, r.body)
			}
			if route[0] != "GET" && !strings.Contains(route[1], "/callbacks/") && d.audited() < written+2 {
				t.Errorf("%s %s %s: %d, and the audit log has nothing of it", route[0], path, body, r.status)
			}
			if strings.Contains(string(r.body), acmes) {
				t.Errorf("%s %s %s: %d with something of another tenant: %s", route[0], path, body, r.status, r.body)
			}
			if !strings.Contains(route[1], "{") || r.status < 400 || nobodys.Replace(path) == path {
				continue
			}
			refused++
			twin := d.do(key, route[0], nobodys.Replace(path), nobodys.Replace(body), header...)
			if r.status != twin.status || plain(r) != plain(twin) {
				t.Errorf("%s %s %s: %d %s, and with an id of nobody %d %s", route[0], path, body, r.status, r.body, twin.status, twin.body)
			}
		}
	}
	if refused < 30*rounds {
		t.Errorf("only %d requests with ids of another tenant were refused", refused)
	}
	if after := d.standing("acme"); after != before {
		t.Errorf("something of acme has changed:\n%s\n%s", before, after)
	}
}

// TestWhoseRequest: a credential is of one tenant; who administers the installation names one.
func TestWhoseRequest(t *testing.T) {
	d, known := twoTenants(t, deskOptions{})
	ofSession := "/v1/sessions/" + known["id"][0]
	acme, beta := d.keyOf("acme", control.Grant{Role: control.Viewer}), d.keyOf("beta", control.Grant{Role: control.Admin})
	everybody, lost := d.key(control.Grant{Role: control.Admin}), d.key(control.Grant{Role: control.Viewer})
	for _, c := range []struct {
		key, tenant string
		status      int
		code        string
	}{
		{acme, "", 200, ""}, {acme, "acme", 200, ""}, {beta, "", 404, "not_found"}, {beta, "beta", 404, "not_found"},
		{acme, "beta", 403, "forbidden"}, {beta, "acme", 403, "forbidden"}, {beta, "unknown", 403, "forbidden"},
		{everybody, "acme", 200, ""}, {everybody, "beta", 404, "not_found"}, {everybody, "", 400, "tenant_required"}, {everybody, "unknown", 404, "not_found"},
		{localKey, "acme", 200, ""}, {localKey, "", 400, "tenant_required"},
		{lost, "", 403, "forbidden"}, {lost, "acme", 403, "forbidden"}, // a key of no tenant is of default, which is none here
	} {
		header := []string{}
		if c.tenant != "" {
			header = append(header, "Dialai-Tenant", c.tenant)
		}
		if r := d.do(c.key, "GET", ofSession, "", header...); r.status != c.status || r.code() != c.code {
			t.Errorf("with %q as %q: %d %s", c.key, c.tenant, r.status, r.body)
		}
	}
	foreign := d.do(beta, "GET", ofSession, "", "Dialai-Tenant", "acme")
	unknown := d.do(beta, "GET", ofSession, "", "Dialai-Tenant", "unknown")
	if a, b := requestIDs.ReplaceAllString(string(foreign.body), ""), requestIDs.ReplaceAllString(string(unknown.body), ""); a != b {
		t.Errorf("a tenant that there is is told apart from one that there is not: %s and %s", a, b)
	}
	if n := len(d.logged("GET /v1/sessions/{id}")); n == 0 {
		t.Error("the audit log has nothing of who named another tenant")
	}
	// Keys of the installation are nothing to who administers a tenant.
	id, _ := control.CredentialID(everybody)
	d.wantAs(beta, 404, "GET", "/v1/keys/"+id, "")
	d.wantAs(beta, 404, "DELETE", "/v1/keys/"+id, "")
	d.want(200, "GET", "/v1/keys/"+id, "", "Dialai-Tenant", "beta")
	var about api.About
	d.wantAs(everybody, 200, "GET", "/v1", "", "Dialai-Tenant", "beta").into(t, &about)
	if about.Caller.Tenant != "beta" {
		t.Errorf("the caller is %+v", about.Caller)
	}
	// One key is kept by tenant: the same request in two of them is two requests.
	ids := map[string]bool{}
	for _, tenant := range []string{"acme", "beta", "acme"} {
		var s api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+alone+`}`, "Idempotency-Key", "same", "Dialai-Tenant", tenant).into(t, &s)
		ids[s.Session.SessionID] = true
	}
	if len(ids) != 2 {
		t.Errorf("the sessions are %v", ids)
	}
	// The audit log of all is for who administers all.
	var all, one api.List[api.AuditRecord]
	d.want(200, "GET", "/v1/audit?limit=200", "").into(t, &all)
	d.want(200, "GET", "/v1/audit?limit=200", "", "Dialai-Tenant", "beta").into(t, &one)
	tenants := func(l api.List[api.AuditRecord]) (names []string) {
		for _, r := range l.Items {
			names = append(names, r.Tenant)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	if got := tenants(one); !slices.Equal(got, []string{"beta"}) {
		t.Errorf("the audit log of beta is of %v", got)
	}
	if got := tenants(all); !slices.Contains(got, "acme") || !slices.Contains(got, "beta") {
		t.Errorf("the audit log of all is of %v", got)
	}
}

// TestMetricsOfAll: the metrics name the machines of all tenants, and are shown to who administers
// all.
func TestMetricsOfAll(t *testing.T) {
	o := counted(t, false)
	o.want(200, "GET", "/metrics", "")
	d, _ := twoTenants(t, deskOptions{config: server.Config{Metrics: newCounts(t)}})
	d.want(200, "GET", "/metrics", "")
	d.wantAs(d.keyOf("beta", control.Grant{Role: control.Admin}), 403, "GET", "/metrics", "")
}

// TestStreamsOfOneTenant: a stream tells of its tenant's commits and of no others.
func TestStreamsOfOneTenant(t *testing.T) {
	d, known := twoTenants(t, deskOptions{})
	at := d.reached()
	beta := d.keyOf("beta", control.Grant{Role: control.Admin, Humans: []string{"carol"}})
	all, inbox := d.hear(at, beta, "/v1/events?after=0", ""), d.hear(at, beta, "/v1/inbox/events?after=0", "")
	d.want(201, "POST", "/v1/sessions/"+known["id"][0]+"/proposals", `{"specialistId":"rob","transitionName":"pay"}`, "Dialai-Tenant", "acme")
	var s api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+reviewed+`}`, "Dialai-Tenant", "beta").into(t, &s)
	for _, l := range []*listener{all, inbox} {
		if e := l.next(); !strings.Contains(e.data, s.Session.SessionID) {
			t.Errorf("the first event is %+v", e)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", at.URL+"/v1/sessions/"+known["id"][0]+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+beta)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 404 {
		t.Errorf("the stream of another tenant's session is %d", resp.StatusCode)
	}
	// A cursor of one tenant's stream is none of another's.
	var first told
	theirs := d.hear(at, d.keyOf("acme", control.Grant{Role: control.Admin}), "/v1/events?after=0", "")
	first = theirs.next()
	again := d.hear(at, beta, "/v1/events", first.id)
	if e := again.next(); e.kind != "reset" {
		t.Errorf("a cursor of another tenant is followed by %+v", e)
	}
}

// TestToolsOfOneTenant: tools work with the caller's tenant, and who follows the inbox is told of
// their own.
func TestToolsOfOneTenant(t *testing.T) {
	d, known := twoTenants(t, deskOptions{})
	updates := map[string]chan string{"acme": make(chan string, 100), "beta": make(chan string, 100)}
	follows := func(tenant string) *toolClient {
		c := d.overStreamsAs(d.keyOf(tenant, control.Grant{Role: control.Admin, Humans: []string{"carol"}}), clientOptions{era: eras[0], options: mcp.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates[tenant] <- r.Params.URI }}})
		if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "dialai://inbox"}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	beta := follows("beta")
	follows("acme")
	for range 3 {
		d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+reviewed+`}`, "Dialai-Tenant", "acme")
		<-updates["acme"]
		if err := beta.Ping(t.Context(), nil); err != nil { // what beta was told before has come
			t.Fatal(err)
		}
	}
	if n := len(updates["beta"]); n > 0 {
		t.Errorf("beta is told %d times of what happens in acme", n)
	}
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+reviewed+`}`, "Dialai-Tenant", "beta")
	<-updates["beta"]
	if err := d.server.RunMCP(t.Context(), localKey, nil, nil); err == nil {
		t.Error("a client of no tenant in particular is served")
	}
	r, err := beta.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_session", Arguments: map[string]any{"sessionId": known["id"][0]}})
	if err != nil || !r.IsError {
		t.Errorf("the session of another tenant is %+v (%v)", r, err)
	}
	if r, err := beta.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_sessions", Arguments: map[string]any{}}); err != nil || r.IsError {
		t.Errorf("the sessions are %+v (%v)", r, err)
	} else if text, _ := json.Marshal(r.StructuredContent); strings.Contains(string(text), acmes) {
		t.Errorf("the sessions are %s", text)
	}
	if r, err := beta.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "dialai://sessions/" + known["id"][0]}); err == nil {
		t.Errorf("the session of another tenant is %+v", r.Contents[0])
	}
}

// TestCallbackOfOneTenant: an answer goes to the tenant that has asked, and to no other.
func TestCallbackOfOneTenant(t *testing.T) {
	l := &later{}
	policy, err := webhook.ParsePolicy("127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	hooks := webhook.New(webhook.Config{Policy: policy, Transport: l, Lookup: func(string) (string, bool) { return "a-token", true }})
	d := newDesk(t, deskOptions{tenants: []string{"beta", "acme"}, configure: func(c *runner.Config) { c.Resolver = hooks }})
	d.late("") // in acme
	h := l.asked[0]
	path, ok := strings.CutPrefix(h.Get("Dialai-Callback-Url"), "https://dialai.example")
	if !ok || !strings.HasPrefix(path, "/t/acme/v1/callbacks/") {
		t.Fatalf("the address is %s", h.Get("Dialai-Callback-Url"))
	}
	token, answer := h.Get("Dialai-Callback-Token"), `{"transitionName":"go"}`
	for _, other := range []string{strings.Replace(path, "/t/acme", "/t/beta", 1), strings.Replace(path, "/t/acme", "/t/unknown", 1), strings.TrimPrefix(path, "/t/acme")} {
		d.callback(403, "bad_callback", other, token, answer)
	}
	if r := d.callback(200, "", path, token, answer); !strings.Contains(string(r.body), "proposalId") {
		t.Errorf("the answer is %s", r.body)
	}
}

// TestWebhooksOfOneTenant: a webhook is told of its tenant's sessions and of no others.
func TestWebhooksOfOneTenant(t *testing.T) {
	key := seal.NewKey()
	d := newDesk(t, deskOptions{tenants: []string{"acme", "beta"}, config: server.Config{Webhooks: &notify.Maker{Seal: key}}})
	for _, tenant := range []string{"acme", "beta"} {
		d.want(201, "POST", "/v1/webhooks", `{"url":"https://`+tenant+`.example.com/","types":["session.started"]}`, "Dialai-Tenant", tenant)
	}
	ids := map[string]string{}
	for _, tenant := range []string{"acme", "beta", "acme"} {
		var s api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+alone+`}`, "Dialai-Tenant", tenant).into(t, &s)
		ids[s.Session.SessionID] = tenant
	}
	type post struct{ address, body string }
	posts := make(chan post, 10)
	n := notify.New(notify.Config{Control: d.control, Seal: key, Post: func(_ context.Context, address string, _ []webhook.Header, body []byte) (webhook.Reply, error) {
		posts <- post{address, string(body)}
		return webhook.Reply{Status: 200}, nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- n.Run(ctx, notify.Tenant{Name: "acme", Runner: d.of["acme"]}, notify.Tenant{Name: "beta", Runner: d.of["beta"]})
	}()
	for range 3 {
		p := <-posts
		var m api.Message
		if err := json.Unmarshal([]byte(p.body), &m); err != nil {
			t.Fatal(err)
		}
		tenant := ids[m.Data.SessionID]
		if p.address != "https://"+tenant+".example.com/" || m.Data.Tenant != tenant {
			t.Errorf("%s is told %s", p.address, p.body)
		}
		delete(ids, m.Data.SessionID)
	}
	cancel()
	if err := <-done; err != nil || len(ids) > 0 {
		t.Errorf("nobody was told of %v (%v)", ids, err)
	}
}

// sends is a machine that has a token sent to a host.
const sends = `{"machineName":"sends","initialState":"a","goalState":"b","states":{"a":{"prompt":"Go?","transitions":{"go":"b"}},"b":{}},
	"specialists":[{"role":"proposer","specialistId":"away","strategyWebhookUrl":"https://%s/hook","webhookTokenName":"A_WEBHOOK_TOKEN"},
		{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`

// TestTokensGoWhereTheyMay: whoever may publish machines cannot have a token sent to a host of
// theirs, by no operation that takes a definition or a specialist.
func TestTokensGoWhereTheyMay(t *testing.T) {
	bound := func(variable, host string) error {
		if variable == "A_WEBHOOK_TOKEN" && host == "good.example.com" {
			return nil
		}
		return &webhook.BoundError{Variable: variable, Host: host, Bound: []string{"good.example.com"}}
	}
	sent := 0
	hooks := webhook.New(webhook.Config{Bound: bound, Lookup: func(string) (string, bool) { return "a-token", true }, Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
		sent++
		return nil, fmt.Errorf("nobody is at %s", r.URL.Host)
	})})
	d := newDesk(t, deskOptions{maySend: bound, configure: func(c *runner.Config) { c.Resolver = hooks }})
	operator := d.key(control.Grant{Role: control.Operator})
	good, evil := fmt.Sprintf(sends, "good.example.com"), fmt.Sprintf(sends, "evil.example.com")
	d.wantAs(operator, 201, "PUT", "/v1/machines/sends", good, "If-None-Match", "*")
	var s api.Settled
	d.wantAs(operator, 201, "POST", "/v1/sessions", `{"machineName":"sends","drive":false}`).into(t, &s)
	at := "/v1/sessions/" + s.Session.SessionID
	told := strings.Replace(good, `"strategyWebhookUrl":"https://good.example.com/hook"`, `"modelId":"openai/x","contextWebhookUrl":"https://evil.example.com/c"`, 1)
	classified := strings.Replace(good, `"specialists"`, `"guards":{"classifier":{"url":"https://evil.example.com/x","token_name":"A_WEBHOOK_TOKEN","on_error":"open"}},"specialists"`, 1)
	deeper := strings.Replace(good, `"prompt":"Go?",`, `"prompt":"Go?","specialists":[{"role":"proposer","specialistId":"mine","strategyWebhookUrl":"https://evil.example.com/","webhookTokenName":"A_WEBHOOK_TOKEN"}],`, 1)
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/v1/machines/sends", evil},
		{"PUT", "/v1/machines/sends", told},
		{"PUT", "/v1/machines/sends", classified},
		{"PUT", "/v1/machines/sends", deeper},
		{"POST", "/v1/sessions", `{"machine":` + classified + `}`},
		{"POST", "/v1/sessions", `{"machine":` + deeper + `}`},
		{"PUT", "/v1/machines/sends", strings.Replace(good, `"webhookTokenName":"A_WEBHOOK_TOKEN"`, `"webhookTokenName":"B_WEBHOOK_TOKEN"`, 1)},
		{"PUT", "/v1/machines/sends", strings.Replace(good, `"webhookTokenName"`, `"webhookSecretName":"B_WEBHOOK_SECRET","webhookTokenName"`, 1)},
		{"PUT", "/v1/machines/sends", strings.Replace(good, "https://good.example.com/", "https://good.example.com:8443/", 1)},
		{"POST", "/v1/sessions", `{"machine":` + evil + `}`},
		{"POST", at + "/move", `{"definition":` + evil + `,"note":"why"}`},
		{"POST", "/v1/machines/sends/specialists", `{"role":"proposer","specialistId":"mine","strategyWebhookUrl":"https://evil.example.com/","webhookTokenName":"A_WEBHOOK_TOKEN"}`},
	} {
		r := d.do(operator, c.method, c.path, c.body, "If-Match", "*")
		if text := string(r.body); r.status < 400 || r.status >= 500 || !strings.Contains(text, "may not be sent to ") || !strings.Contains(text, "good.example.com") || !strings.Contains(text, "tokens: [{name: ") {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, r.status, text)
		}
	}
	if sent > 0 {
		t.Errorf("something was sent %d times", sent)
	}
	if page, err := d.runner.Sessions(t.Context(), session.ListQuery{Limit: 10}); err != nil || len(page) != 1 {
		t.Errorf("the sessions are %v (%v)", page, err)
	}
}

// roundTrips is a function that is an http.RoundTripper.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
