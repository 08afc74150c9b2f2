package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/telemetry/spans"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
)

// eras are the versions of the protocol that clients speak: the newest with a handshake, and the
// one without.
var eras = []string{"2025-11-25", "2026-07-28"}

// A keyed transport sends a key with each request.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// A toolClient is a client of the tools.
type toolClient struct {
	*testing.T
	*mcp.ClientSession
}

type clientOptions struct {
	era     string
	options mcp.ClientOptions
}

// overHTTP connects a client with a key over HTTP.
func (d *desk) overHTTP(key string, o clientOptions) *toolClient {
	d.Helper()
	hs := httptest.NewServer(d.handler)
	d.Cleanup(hs.Close)
	return d.connect(&mcp.StreamableClientTransport{Endpoint: hs.URL + "/mcp", HTTPClient: &http.Client{Transport: keyed(key)}, DisableStandaloneSSE: true}, o)
}

// overStreams connects a client over a pair of streams.
func (d *desk) overStreams(o clientOptions) *toolClient {
	d.Helper()
	return d.overStreamsAs(localKey, o)
}

func (d *desk) overStreamsAs(key string, o clientOptions) *toolClient {
	d.Helper()
	in, out := io.Pipe()
	back, answers := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- d.server.RunMCP(d.Context(), key, in, answers) }()
	c := d.connect(&mcp.IOTransport{Reader: back, Writer: out}, o)
	d.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c
}

func (d *desk) connect(transport mcp.Transport, o clientOptions) *toolClient {
	d.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &o.options).Connect(d.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: o.era})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = c.Close() })
	return &toolClient{d.T, c}
}

// A toolReply is what a tool has answered.
type toolReply struct {
	failed bool
	text   string          // of the first content
	more   string          // of the second
	body   json.RawMessage // the structured content
}

func (c *toolClient) call(name string, arguments any) toolReply {
	c.Helper()
	r, err := c.CallTool(c.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		c.Fatalf("%s: %v", name, err)
	}
	return c.reply(r)
}

func (c *toolClient) reply(r *mcp.CallToolResult) (out toolReply) {
	c.Helper()
	out.failed = r.IsError
	for i, item := range r.Content {
		text, ok := item.(*mcp.TextContent)
		if !ok {
			c.Fatalf("content %d is %T", i, item)
		}
		if i == 0 {
			out.text = text.Text
		} else {
			out.more += text.Text
		}
	}
	if r.StructuredContent != nil {
		var err error
		if out.body, err = json.Marshal(r.StructuredContent); err != nil {
			c.Fatal(err)
		}
	}
	return out
}

// asked reads the answer of a tool that puts something to a human.
func (r *toolReply) asked(t *testing.T) (a struct {
	Executed  bool
	Code, URL string
	Question  *api.Question
	Session   json.RawMessage
}) {
	t.Helper()
	if r.failed {
		t.Fatalf("refused: %s %s", r.text, r.more)
	}
	if err := json.Unmarshal(r.body, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// code returns the code of a refusal.
func (r *toolReply) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal([]byte(r.more), &p) // what is none has none
	return p.Code
}

// TestTools: every tool answers with what its operation answers, as one text of JSON and the same
// as structured content, which its output schema allows, in both eras of the protocol.
func TestTools(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			d := newDesk(t, deskOptions{drives: true})
			c := d.overHTTP(localKey, clientOptions{era: era})
			d.tryTools(c)
		})
	}
	t.Run("streams", func(t *testing.T) {
		d := newDesk(t, deskOptions{drives: true})
		d.tryTools(d.overStreams(clientOptions{}))
	})
}

// tryTools calls every tool of a server.
func (d *desk) tryTools(c *toolClient) {
	d.Helper()
	s := d.start(reviewed)
	at, of := "/v1/sessions/"+s.SessionID, "/v1/machines/claims"
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	type args = map[string]any
	cases := []struct {
		tool string
		in   args
		same string // the GET that answers the same; "" if none does
		says string // what is in the answer
	}{
		{"create_session", args{"machine": raw(reviewed), "metaJson": args{"amount": 1}}, "", `"amount": 1`},
		{"get_session", args{"sessionId": s.SessionID}, at, `"needs_human"`},
		{"get_sessions", args{"machineName": "claims", "limit": 200}, "/v1/sessions?machine=claims&limit=200", s.SessionID},
		{"register_proposer", args{"specialistId": "late", "machineName": "claims", "strategyFnName": "lastAvailable"}, "", `"specialistId": "late"`},
		{"register_arbiter", args{"specialistId": "judge", "machineName": "claims", "strategyFnName": "alignmentMargin", "threshold": 0.7}, "", `"specialistId": "judge"`},
		{"get_specialists", args{"machineName": "claims"}, of + "/specialists", `"late"`},
		{"disable_specialist", args{"machineName": "claims", "specialistId": "late"}, "", `"disabled": true`},
		{"enable_specialist", args{"machineName": "claims", "specialistId": "late"}, "", `"disabled": false`},
		{"submit_proposal", args{"sessionId": s.SessionID, "specialistId": "bot", "transitionName": "refuse", "reasoning": "no"}, "", `"transitionName": "refuse"`},
		{"evaluate_consensus", args{"sessionId": s.SessionID}, "", `"consensusReached": false`},
		{"submit_arbitration", args{"sessionId": s.SessionID}, "", `"executed": false`},
		{"execute_transition", args{"sessionId": s.SessionID, "transitionName": "pay", "toState": "paid"}, "", `"needs_confirmation"`},
		{"ask_human", args{"sessionId": s.SessionID}, "", `"needs_confirmation"`},
		{"run_session", args{"machine": raw(alone), "waitSeconds": 10}, "", `"settled": true`},
		{"run_session", args{"machine": raw(`{"machineName":"nobody","initialState":"a","goalState":"c","states":{"a":{"transitions":{"go":"c"}},"c":{}}}`), "waitSeconds": 10}, "", `"status": "completed"`},
		{"get_collapse_metrics", args{"machineName": "claims"}, of + "/metrics", ""},
		{"get_decision_log", args{"machineName": "alone"}, "/v1/machines/alone/decisions?limit=100", `"transitionName": "go"`},
		{"step_session", args{"sessionId": s.SessionID}, "", `"tick"`},
		{"tick", args{"limit": 5}, "", `"items"`},
		{"resume_session", args{"sessionId": s.SessionID, "note": "again"}, "", `"settled"`},
		{"list_inbox", args{"machineName": "claims"}, "/v1/inbox?machine=claims", s.SessionID},
		{"validate_machine", args{"machine": args{"machineName": "x"}}, "", `"problems"`},
		{"get_alignment", args{"machineName": "claims"}, of + "/alignment", ""},
		{"get_exemplars", args{"machineName": "claims"}, of + "/exemplars", ""},
		{"evaluate_specialist", args{"machineName": "claims", "specialistId": "bot"}, of + "/evaluations/bot", ""},
		{"get_llm_audit", args{"sessionId": s.SessionID}, at + "/audit", ""},
		{"get_events", args{"sessionId": s.SessionID, "after": "0"}, at + "/events?after=0&limit=200", "session_created"},
		{"explain_round", args{"sessionId": s.SessionID}, at + "/explain", ""},
		{"get_risk", args{"machineName": "claims"}, of + "/risk", ""},
		{"check_step", args{"config": args{}, "steps": []any{args{"task_id": "t", "output": "a"}}}, "", `"verdicts"`},
	}
	schemas := map[string]*jsonschema.Resolved{}
	for tool, err := range c.Tools(d.Context(), nil) {
		if err != nil {
			d.Fatal(err)
		}
		schemas[tool.Name] = d.resolved(tool.OutputSchema)
		d.resolved(tool.InputSchema)
		if tool.Description == "" || tool.Annotations == nil {
			d.Errorf("%s says nothing of itself", tool.Name)
		}
		if !slices.ContainsFunc(cases, func(c struct {
			tool string
			in   args
			same string
			says string
		}) bool {
			return c.tool == tool.Name
		}) {
			d.Errorf("no test calls %s", tool.Name)
		}
	}
	for _, one := range cases {
		got := c.call(one.tool, one.in)
		if got.failed || !strings.Contains(got.text, one.says) {
			d.Errorf("%s: %s %s", one.tool, got.text, got.more)
			continue
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, []byte(got.text), "", "  "); err != nil || indented.String() != got.text || got.more != "" {
			d.Errorf("%s: not one text of JSON with two spaces: %v %s %s", one.tool, err, got.text, got.more)
		}
		if !sameJSON(d.T, []byte(got.text), got.body) {
			d.Errorf("%s: the text says %s, the structured content %s", one.tool, got.text, got.body)
		}
		if one.same != "" {
			if want := d.want(200, "GET", one.same, ""); !sameJSON(d.T, want.body, got.body) {
				d.Errorf("%s answers %s, GET %s %s", one.tool, got.body, one.same, want.body)
			}
		}
		var value any
		if err := json.Unmarshal(got.body, &value); err != nil {
			d.Fatal(err)
		}
		if err := schemas[one.tool].Validate(value); err != nil {
			d.Errorf("%s: its output schema does not allow %s: %v", one.tool, got.body, err)
		}
	}
}

// resolved reads a schema of a tool.
func (d *desk) resolved(schema any) *jsonschema.Resolved {
	d.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		d.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		d.Fatal(err)
	}
	if s.Type != "object" {
		d.Errorf("a schema is no object: %s", text)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		d.Fatalf("%v in %s", err, text)
	}
	return r
}

// TestToolHints: the tools say of themselves what they do.
func TestToolHints(t *testing.T) {
	want := map[string]string{
		"create_session": "", "get_session": "R", "get_sessions": "R", "register_proposer": "", "register_arbiter": "", "submit_proposal": "O", "evaluate_consensus": "RO",
		"submit_arbitration": "DO", "execute_transition": "D", "run_session": "O", "get_collapse_metrics": "R", "get_decision_log": "R", "step_session": "O", "tick": "O",
		"resume_session": "O", "list_inbox": "R", "validate_machine": "R", "get_specialists": "R", "get_alignment": "R", "get_exemplars": "R", "evaluate_specialist": "R",
		"get_llm_audit": "R", "get_events": "R", "enable_specialist": "I", "disable_specialist": "I", "ask_human": "O", "explain_round": "R", "get_risk": "R", "check_step": "R",
	}
	c := newDesk(t, deskOptions{}).overHTTP(localKey, clientOptions{})
	seen := 0
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		a, got := tool.Annotations, ""
		for _, h := range []struct {
			is   bool
			name string
		}{{a.ReadOnlyHint, "R"}, {a.IdempotentHint, "I"}, {*a.DestructiveHint, "D"}, {*a.OpenWorldHint, "O"}} {
			if h.is {
				got += h.name
			}
		}
		if hint, known := want[tool.Name]; !known || hint != got {
			t.Errorf("%s: hints %q, want %q", tool.Name, got, hint)
		}
	}
	if seen != len(want) {
		t.Errorf("%d tools, want %d", seen, len(want))
	}
}

// TestToolRefusals: what is refused says why, as a result; what is no call of a tool is an error
// of the protocol.
func TestToolRefusals(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	c := d.overHTTP(localKey, clientOptions{})
	for _, bad := range []struct {
		tool, code, says string
		in               any
	}{
		{"get_session", "not_found", "Session", map[string]any{"sessionId": "0b9c1d3e-0000-4000-8000-000000000000"}},
		{"get_session", "not_found", "Session", map[string]any{"sessionId": "../keys"}},
		{"get_session", "bad_request", "needs sessionId", map[string]any{}},
		{"get_session", "bad_request", "needs sessionId", map[string]any{"sessionId": nil}},
		{"get_session", "bad_request", "the name of nothing", map[string]any{"sessionId": ".."}},
		{"get_session", "bad_request", `no argument "sesionId"`, map[string]any{"sessionId": s.SessionID, "sesionId": "x"}},
		{"get_session", "bad_request", "no text", map[string]any{"sessionId": []string{"x"}}},
		{"create_session", "bad_request", "machineName", map[string]any{}},
		{"create_session", "invalid_machine", "", map[string]any{"machine": map[string]any{"machineName": "x"}}},
		{"run_session", "invalid_machine", "", map[string]any{"machine": map[string]any{}}},
		{"submit_proposal", "illegal_answer", "fly", map[string]any{"sessionId": s.SessionID, "specialistId": "bot", "transitionName": "fly"}},
		{"execute_transition", "illegal_transition", "fly", map[string]any{"sessionId": s.SessionID, "transitionName": "fly", "toState": "paid"}},
		{"submit_arbitration", "stale_round", "", map[string]any{"sessionId": s.SessionID, "transitionName": "pay", "roundId": "another"}},
		{"get_sessions", "bad_cursor", "", map[string]any{"cursor": "x"}},
		{"submit_proposal", "bad_request", "no argument", map[string]any{"sessionId": s.SessionID, "specialistId": "carol", "transitionName": "pay", "questionDigest": s.Question.Digest}},
	} {
		got := c.call(bad.tool, bad.in)
		if !got.failed || got.code() != bad.code || !strings.HasPrefix(got.text, "Error: ") || !strings.Contains(got.text, bad.says) || got.body != nil {
			t.Errorf("%s %v: %q %s %s", bad.tool, bad.in, got.text, got.more, got.body)
		}
	}
	_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "rule"})
	if err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("an unknown tool: %v", err)
	}
}

// TestToolPermissions: a list has what the caller may do, in a fixed order; a call is refused as
// over HTTP.
func TestToolPermissions(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	names := func(c *toolClient) (list []string) {
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, tool.Name)
		}
		return list
	}
	all := names(d.overHTTP(localKey, clientOptions{}))
	viewer := d.overHTTP(d.key(control.Grant{Role: control.Viewer}), clientOptions{})
	operator := d.overHTTP(d.key(control.Grant{Role: control.Operator}), clientOptions{})
	if got := names(viewer); slices.Contains(got, "create_session") || slices.Contains(got, "execute_transition") || !slices.Contains(got, "get_session") || !slices.IsSorted(got) {
		t.Errorf("a viewer is offered %v", got)
	}
	if got := names(operator); !slices.Equal(got, slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "submit_proposal" })) {
		t.Errorf("an operator is offered %v", got)
	}
	for name, in := range map[string]map[string]any{
		"step_session":    {"sessionId": s.SessionID},
		"create_session":  {"machine": json.RawMessage(alone)},
		"submit_proposal": {"sessionId": s.SessionID, "specialistId": "bot", "transitionName": "pay"},
		"get_llm_audit":   {"sessionId": s.SessionID},
	} {
		if got := viewer.call(name, in); !got.failed || got.code() != "forbidden" {
			t.Errorf("%s by a viewer: %s %s", name, got.text, got.more)
		}
	}
	other := d.overHTTP(d.key(control.Grant{Role: control.Admin, Machines: []string{"other"}}), clientOptions{})
	if got := other.call("get_session", map[string]any{"sessionId": s.SessionID}); !got.failed || got.code() != "not_found" {
		t.Errorf("a session of another machine: %s %s", got.text, got.more)
	}
	if got := operator.call("register_proposer", map[string]any{"machineName": "claims", "specialistId": "me", "isHuman": true}); got.asked(t).Code != "needs_confirmation" {
		t.Errorf("a human is registered: %s", got.text)
	}
}

// TestArbiterAfterwards: a client of tools may start a session before it registers who
// arbitrates, as those of DIAL do; then the session goes on.
func TestArbiterAfterwards(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	c := d.overHTTP(d.key(control.Grant{Role: control.Operator}), clientOptions{})
	unjudged := strings.Replace(alone, `,{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}`, "", 1)
	created := c.call("create_session", map[string]any{"machine": json.RawMessage(unjudged)})
	if created.failed {
		t.Fatalf("a session without an arbiter is refused: %s %s", created.text, created.more)
	}
	if got := c.call("register_arbiter", map[string]any{"machineName": "alone", "specialistId": "y", "strategyFnName": "firstProposal"}); got.failed {
		t.Fatalf("registering the arbiter: %s %s", got.text, got.more)
	}
	var now api.Settled
	if err := json.Unmarshal([]byte(created.text), &now); err != nil || now.Session.SessionID == "" {
		t.Fatalf("created is %s (%v)", created.text, err)
	}
	for !now.Settled {
		d.want(200, "GET", "/v1/sessions/"+now.Session.SessionID+"/settled?wait=10s", "").into(t, &now)
	}
	if now.Session.Status.String() != "completed" {
		t.Errorf("with its arbiter the session is %s", now.Session.Status)
	}
}

// TestToolsAreRecorded: a call is in the audit log as the request that it is.
func TestToolsAreRecorded(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	c := d.overHTTP(d.key(control.Grant{Role: control.Operator}), clientOptions{})
	if got := c.call("step_session", map[string]any{"sessionId": s.SessionID}); got.failed {
		t.Fatal(got.text)
	}
	records, err := d.control.Audit(t.Context(), control.Query{Desc: true, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := records[0].Entry(); err != nil || e.Operation != "POST /v1/sessions/{id}/step" || !strings.HasPrefix(e.Subject, "key:") || e.Result != "OK" || e.Address != "127.0.0.1" || e.RequestID == "" {
		t.Errorf("the audit log says %+v", e)
	}
}

// TestToolsWithhold: no tool shows what is withheld until a human has ruled.
func TestToolsWithhold(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(withheld)
	for _, c := range []*toolClient{d.overHTTP(localKey, clientOptions{}), d.overStreams(clientOptions{}), d.overHTTP(d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}}), clientOptions{})} {
		for name, in := range map[string]map[string]any{
			"get_session": {"sessionId": s.SessionID}, "list_inbox": {}, "get_sessions": {}, "ask_human": {"sessionId": s.SessionID}, "get_events": {"sessionId": s.SessionID, "after": "0"},
			"explain_round": {"sessionId": s.SessionID}, "evaluate_consensus": {"sessionId": s.SessionID}, "get_llm_audit": {"sessionId": s.SessionID}, "get_decision_log": {"machineName": "claims"},
		} {
			if got := c.call(name, in); strings.Contains(got.text+got.more, "first available") {
				t.Errorf("%s shows %s %s", name, got.text, got.more)
			}
		}
	}
}

// TestMCPOverHTTP: what is no request of the protocol is refused, with the server's own checks
// before it.
func TestMCPOverHTTP(t *testing.T) {
	d := newDesk(t, deskOptions{})
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	accept := []string{"Accept", "application/json, text/event-stream"}
	for _, one := range []struct {
		name, key, method, body string
		header                  []string
		status                  int
	}{
		{"a list", localKey, "POST", list, accept, 200},
		{"no key", "", "POST", list, accept, 401},
		{"GET", localKey, "GET", "", accept, 405},
		{"DELETE", localKey, "DELETE", "", accept, 405},
		{"another origin", localKey, "POST", list, append([]string{"Origin", "https://evil.example"}, accept...), 403},
		{"too large", localKey, "POST", `"` + strings.Repeat("x", 1<<20) + `"`, accept, 413},
		{"compressed", localKey, "POST", list, append([]string{"Content-Encoding", "gzip"}, accept...), 415},
		{"no JSON", localKey, "POST", "{", accept, 400},
	} {
		d.from = "192.0.2.1"
		if r := d.do(one.key, one.method, "/mcp", one.body, one.header...); r.status != one.status {
			t.Errorf("%s: %d, want %d: %s", one.name, r.status, one.status, r.body)
		}
	}
}

// listen serves over HTTP, and returns where.
func (d *desk) listen() string {
	d.Helper()
	hs := httptest.NewServer(d.handler)
	d.Cleanup(hs.Close)
	return hs.URL
}

// dataLines returns what reads the next data of a stream of events.
func dataLines(t *testing.T, r *http.Response) func() []byte {
	t.Helper()
	if r.StatusCode != 200 {
		text, _ := io.ReadAll(r.Body)
		t.Fatalf("%d %s", r.StatusCode, text)
	}
	lines := bufio.NewScanner(r.Body)
	return func() []byte {
		for lines.Scan() {
			if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok && len(data) > 0 {
				return bytes.Clone(data)
			}
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return nil
	}
}

// TestEscapedTools: as over HTTP, no tool, resource, prompt or refusal holds a character that hides
// or changes what others show, in either era or in JSON-RPC.
func TestEscapedTools(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	const disguised = "a\u009b31m\u202eb\x7f\u200b"
	given, _ := json.Marshal(map[string]string{"note": disguised})
	var started api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machine":`+reviewed+`,"metaJson":`+string(given)+`}`).into(t, &started)
	id := started.Session.SessionID
	clean := func(what string, said any) {
		t.Helper()
		shown, _ := said.(string)
		if shown == "" {
			text, err := json.Marshal(said)
			if err != nil {
				t.Fatal(err)
			}
			shown = string(text)
		}
		if !strings.Contains(shown, "a") || strings.ContainsFunc(shown, func(r rune) bool { return r >= 0x7F && text.Disguises(r) }) {
			t.Errorf("%s says %q", what, shown)
		}
	}
	for _, era := range eras {
		c := d.overHTTP(localKey, clientOptions{era: era})
		for _, call := range []struct {
			tool string
			in   map[string]any
		}{
			{"get_session", map[string]any{"sessionId": id}}, {"get_session", map[string]any{"sessionId": disguised}}, {"list_inbox", nil},
			{"ask_human", map[string]any{"sessionId": id}}, {"create_session", map[string]any{"machineName": disguised}}, {"get_events", map[string]any{"sessionId": id}},
		} {
			r := c.call(call.tool, call.in)
			if clean(call.tool, r.text); r.failed {
				clean(call.tool, r.more)
			}
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "dialai://sessions/" + id})
		if err != nil {
			t.Fatal(err)
		}
		clean("the resource", read.Contents[0].Text)
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "dialai://sessions/" + url.PathEscape(disguised)}); err == nil {
			t.Error("a session of no id is read")
		} else {
			clean("what is not read", err.Error())
		}
		prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "prepare_question", Arguments: map[string]string{"sessionId": id}})
		if err != nil {
			t.Fatal(err)
		}
		clean("the prompt", prompt.Messages[0].Content.(*mcp.TextContent).Text)
		if _, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "prepare_question", Arguments: map[string]string{"sessionId": disguised}}); err == nil {
			t.Error("there is a prompt about no session")
		} else {
			clean("the prompt about nothing", err.Error())
		}
	}
	for _, in := range []map[string]any{
		{"name": "get_session", "arguments": map[string]any{"sessionId": id}}, {"name": "get_session", "arguments": map[string]any{"sessionId": disguised}}, {"name": disguised},
	} {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": in})
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Result struct{ Content []struct{ Text string } }
			Error  struct{ Message string }
		}
		d.want(200, "POST", "/", string(body)).into(t, &said)
		for _, c := range said.Result.Content {
			clean("JSON-RPC", c.Text)
		}
		clean("JSON-RPC", "a"+said.Error.Message)
	}
}

// TestTraceOfATool: a request of the protocol is of the trace that its _meta names, and so is what
// it commits; one that names none is of the trace of its HTTP request.
func TestTraceOfATool(t *testing.T) {
	recorder, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	traced := spans.New()
	d := newDesk(t, deskOptions{configure: func(c *runner.Config) { c.Trace = traced.Part }, config: server.Config{Spans: traced}})
	c := d.overHTTP(localKey, clientOptions{})
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, meta := range []mcp.Meta{{"traceparent": "00-" + traceID + "-00f067aa0ba902b7-01"}, {"traceparent": 1}, nil} {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Meta: meta, Name: "create_session", Arguments: map[string]any{"machine": json.RawMessage(reviewed)}})
		if err != nil || r.IsError {
			t.Fatalf("%v %+v", err, r)
		}
	}
	of := map[string][]string{}
	for _, span := range recorder.Ended() {
		if name := span.Name(); name == "tools/call create_session" || name == runner.PartCommit {
			of[name] = append(of[name], span.SpanContext().TraceID().String())
		}
	}
	for _, name := range []string{"tools/call create_session", runner.PartCommit} {
		ids := of[name]
		slices.Sort(ids)
		if len(slices.Compact(slices.Clone(ids))) != 3 || !slices.Contains(ids, traceID) {
			t.Errorf("%s is of %v, want one of %s and others of other traces", name, ids, traceID)
		}
	}
}
