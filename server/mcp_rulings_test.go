package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/server"
	mcptools "github.com/dialai/dialai/server/mcp"
)

// A model never rules. These tests are about clients that do what a client may: show a form or a
// page, or say yes to everything.

// forms are the capabilities of a client that shows forms, pages those of one that opens pages.
var (
	forms = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	pages = &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}
)

// answering is a client whose user answers so what it is asked.
func answering(can *mcp.ElicitationCapabilities, answer func(*mcp.ElicitParams) *mcp.ElicitResult) clientOptions {
	return clientOptions{options: mcp.ClientOptions{
		Capabilities:       &mcp.ClientCapabilities{Elicitation: can},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return answer(r.Params), nil },
	}}
}

func accept(content map[string]any) func(*mcp.ElicitParams) *mcp.ElicitResult {
	return func(*mcp.ElicitParams) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: content}
	}
}

func (d *desk) status(s api.Session) (out struct {
	Status       string
	CurrentState string
}) {
	d.Helper()
	d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").into(d.T, &out)
	return out
}

// TestToolsNeverRule: whatever a client says, without a human who types their decision into a form
// that the server believes, nothing is decided; and nothing of the session has changed.
func TestToolsNeverRule(t *testing.T) {
	yes := accept(nil)
	first := func(p *mcp.ElicitParams) *mcp.ElicitResult { // a client that fills in whatever is there
		if p.Mode == "url" {
			return &mcp.ElicitResult{Action: "accept"}
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": "pay", "confirm": "yes"}}
	}
	for _, one := range []struct {
		name   string
		config mcptools.Config
		client clientOptions
		code   string
	}{
		{"a client that asks nobody", mcptools.Config{Form: true, Desk: "http://desk.example"}, clientOptions{}, "needs_confirmation"},
		{"forms, which the server does not believe", mcptools.Config{}, answering(forms, accept(map[string]any{"choice": "pay", "confirm": "pay"})), "needs_confirmation"},
		{"accepts all forms", mcptools.Config{Form: true}, answering(forms, yes), "not_confirmed"},
		{"fills in what it can", mcptools.Config{Form: true}, answering(forms, first), "not_confirmed"},
		{"declines", mcptools.Config{Form: true}, answering(forms, func(*mcp.ElicitParams) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "decline"} }), "declined"},
		{"cancels", mcptools.Config{Form: true}, answering(forms, func(*mcp.ElicitParams) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "cancel"} }), "cancelled"},
	} {
		t.Run(one.name, func(t *testing.T) {
			d := newDesk(t, deskOptions{drives: true, config: server.Config{MCP: one.config}})
			s := d.start(reviewed)
			before := d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").header.Get("ETag")
			for _, c := range []*toolClient{d.overHTTP(localKey, one.client), d.overStreams(one.client), d.overHTTP(localKey, clientOptions{era: eras[0], options: one.client.options})} {
				code := one.code
				if c.InitializeResult().ProtocolVersion == eras[0] { // over HTTP nobody sees what it can
					code = "needs_confirmation"
				}
				for tool, in := range map[string]map[string]any{
					"ask_human":          {"sessionId": s.SessionID, "specialistId": "carol"},
					"execute_transition": {"sessionId": s.SessionID, "transitionName": "pay", "toState": "paid", "specialistId": "carol"},
					"submit_arbitration": {"sessionId": s.SessionID, "transitionName": "pay", "specialistId": "carol"},
					"submit_proposal":    {"sessionId": s.SessionID, "transitionName": "pay", "specialistId": "carol"},
				} {
					got := c.call(tool, in)
					if a := got.asked(t); a.Executed || a.Code != code {
						t.Errorf("%s: %s", tool, got.text)
					} else if code == "needs_confirmation" && (a.Question == nil || a.Question.Digest != s.Question.Digest || (a.URL == "") != (one.config.Desk == "")) {
						t.Errorf("%s does not say what is to be decided: %s", tool, got.text)
					}
				}
			}
			if after := d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").header.Get("ETag"); after != before {
				t.Errorf("the session has changed: event %s, then %s", before, after)
			}
		})
	}
}

// TestRulingByForm: a human who types their decision into a form has ruled, on the question that
// was shown, by a method of its own, and never blind.
func TestRulingByForm(t *testing.T) {
	var shown *mcp.ElicitParams
	typed := func(p *mcp.ElicitParams) *mcp.ElicitResult {
		shown = p
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": "pay", "confirm": "pay", "reasoning": "I say so"}}
	}
	d := newDesk(t, deskOptions{drives: true, config: server.Config{MCP: mcptools.Config{}}})
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}, Elicit: control.ElicitForm})
	for _, machine := range []string{reviewed, withheld} {
		s := d.start(machine)
		c := d.overHTTP(carol, answering(forms, typed))
		got := c.call("ask_human", map[string]any{"sessionId": s.SessionID})
		if a := got.asked(t); !a.Executed || d.status(s).CurrentState != "paid" {
			t.Fatalf("the form did not rule: %s", got.text)
		}
		if hidden := machine == withheld; strings.Contains(shown.Message, "first available") == hidden || !strings.Contains(shown.Message, "Pay?") {
			t.Errorf("the form shows %s", shown.Message)
		}
		schema, err := json.Marshal(shown.RequestedSchema)
		if err != nil || bytes.Contains(schema, []byte(`"default"`)) || !bytes.Contains(schema, []byte(`"required":["choice","confirm"]`)) {
			t.Errorf("the form is %s, %v", schema, err)
		}
		var log api.List[api.Event]
		d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?after=0&payload=full&kinds=executed", "").into(t, &log)
		for _, part := range []string{`"method":"elicitation"`, `"subject":"key:`, `"specialistId":"carol"`, `"questionDigest":"` + s.Question.Digest, "I say so"} {
			if !bytes.Contains(log.Items[0].Data, []byte(part)) {
				t.Errorf("the log does not say %s: %s", part, log.Items[0].Data)
			}
		}
		d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?after=0&payload=full&kinds=learned", "").into(t, &log)
		if len(log.Items) != 1 || !bytes.Contains(log.Items[0].Data, []byte(`"humanId":"carol"`)) || bytes.Contains(log.Items[0].Data, []byte(`"blind":true`)) {
			t.Errorf("the ruling is blind: %+v", log.Items)
		}
	}
}

// payable is reviewed, whose payment says how much; nested is payable, whose refusal says what no
// form can ask.
var (
	payable = strings.Replace(reviewed, `"pay":"paid"`, `"pay":{"target":"paid","parameters":{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer","description":"in euros"},"way":{"type":"string","enum":["bank","cash"]}}}}`, 1)
	nested  = strings.Replace(payable, `"refuse":"refused"`, `"refuse":{"target":"refused","parameters":{"type":"object","required":["told"],"properties":{"told":{"type":"array","items":{"type":"string"}}}}}`, 1)
)

// TestFormWithParameters: what a choice has to say is in the form, and is checked as over HTTP.
// Where a choice has to say what no form can ask there is no form.
func TestFormWithParameters(t *testing.T) {
	for _, one := range []struct {
		name    string
		machine string
		content map[string]any
		payload string // that is recorded; "" where the ruling is refused
	}{
		{"all that is needed", payable, map[string]any{"choice": "pay", "confirm": "pay", "pay.amount": 5, "pay.way": "cash"}, `"metaJson":{"amount":5,"way":"cash"}`},
		{"what is needed is missing", payable, map[string]any{"choice": "pay", "confirm": "pay", "pay.way": "cash"}, ""},
		{"a value of another kind", payable, map[string]any{"choice": "pay", "confirm": "pay", "pay.amount": 5.5}, ""},
		{"what no form can ask", nested, map[string]any{"choice": "pay", "confirm": "pay", "pay.amount": 5}, ""},
	} {
		t.Run(one.name, func(t *testing.T) {
			var shown []byte
			filled := func(p *mcp.ElicitParams) *mcp.ElicitResult {
				shown, _ = json.Marshal(p.RequestedSchema)
				return &mcp.ElicitResult{Action: "accept", Content: one.content}
			}
			d := newDesk(t, deskOptions{drives: true, config: server.Config{MCP: mcptools.Config{Form: true}}})
			s := d.start(one.machine)
			o := answering(forms, filled)
			r, err := d.overHTTP(localKey, o).CallTool(t.Context(), &mcp.CallToolParams{Name: "ask_human", Arguments: map[string]any{"sessionId": s.SessionID, "specialistId": "carol"}})
			for _, part := range []string{`"pay.amount":{"description":"in euros","title":"amount (for pay)","type":"integer"}`, `"enum":["bank","cash"]`, `"enum":["pay","refuse"]`} {
				if bytes.Contains(shown, []byte(part)) != (one.machine == payable) {
					t.Errorf("the form is %s", shown)
				}
			}
			if done := d.status(s).CurrentState == "paid"; done != (one.payload != "") {
				t.Fatalf("the session is at %s: %+v, %v", d.status(s).CurrentState, r, err)
			}
			if one.payload == "" {
				return
			}
			var log api.List[api.Event]
			if d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?after=0&payload=full&kinds=executed", "").into(t, &log); !bytes.Contains(log.Items[0].Data, []byte(one.payload)) {
				t.Errorf("the log says %s", log.Items[0].Data)
			}
		})
	}
}

// TestRulingByFormOverStreams: a client of the older protocol is asked while its call waits.
func TestRulingByFormOverStreams(t *testing.T) {
	for _, era := range eras {
		d := newDesk(t, deskOptions{drives: true, config: server.Config{MCP: mcptools.Config{Form: true}}})
		s := d.start(reviewed)
		o := answering(forms, accept(map[string]any{"choice": "refuse", "confirm": " refuse "}))
		o.era = era
		got := d.overStreams(o).call("execute_transition", map[string]any{"sessionId": s.SessionID, "transitionName": "pay", "toState": "paid", "specialistId": "carol"})
		if a := got.asked(t); !a.Executed || d.status(s).CurrentState != "refused" {
			t.Errorf("%s: %s", era, got.text)
		}
	}
}

// TestRulingOnAPage: a client that opens pages is given that of the question, and told what came
// of it there.
func TestRulingOnAPage(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true, config: server.Config{MCP: mcptools.Config{Desk: "https://desk.example", Form: true}}})
	s := d.start(reviewed)
	var url string
	c := d.overHTTP(localKey, answering(pages, func(p *mcp.ElicitParams) *mcp.ElicitResult {
		url = p.URL
		d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "carol"))
		return &mcp.ElicitResult{Action: "accept"}
	}))
	got := c.call("ask_human", map[string]any{"sessionId": s.SessionID})
	if a := got.asked(t); !a.Executed || url != "https://desk.example/desk/q/"+s.Question.QuestionID {
		t.Errorf("%s: %s", url, got.text)
	}
}

// TestAskHumanWaits: without a form and a page, the word of the human is waited for.
func TestAskHumanWaits(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	c := d.overStreams(clientOptions{})
	done := make(chan toolReply, 1)
	go func() { done <- c.call("ask_human", map[string]any{"sessionId": s.SessionID, "waitSeconds": 30}) }()
	d.want(200, "POST", "/v1/sessions/"+s.SessionID+"/decisions", ruling(s, "pay", "carol"))
	got := <-done
	if a := got.asked(t); !a.Executed && a.Code != "no_question" { // it may have come too late
		t.Error(got.text)
	}
	if a := c.call("ask_human", map[string]any{"sessionId": s.SessionID}); a.asked(t).Code != "no_question" {
		t.Errorf("a session that has ended: %s", a.text)
	}
}

// final is reviewed, with a transition that cannot be undone and one that needs two humans.
var final = strings.NewReplacer(`"pay":"paid"`, `"pay":{"target":"paid","irreversible":true}`, `"refuse":"refused"`, `"refuse":{"target":"refused","approvals":{"count":2}}`).Replace(reviewed)

// TestArgumentsRule: only where the server was told so do arguments count as a human's word: of
// one whom the caller is bound to, and never for what cannot be undone or needs several.
func TestArgumentsRule(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true, config: server.Config{MCP: mcptools.Config{ArgumentsRule: true}}})
	carol := d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}})
	operator := d.key(control.Grant{Role: control.Operator})
	for _, one := range []struct {
		name, key, machine, transition, who string
		rules                               bool
	}{
		{"a bound key", carol, reviewed, "pay", "", true},
		{"an unbound key", operator, reviewed, "pay", "carol", false},
		{"whoever is at the computer, for a declared human", localKey, reviewed, "pay", "carol", true},
		{"for nobody", localKey, reviewed, "pay", "", false},
		{"for one who is not declared", localKey, reviewed, "pay", "mallory", false},
		{"for the operator", localKey, reviewed, "pay", "__operator", false},
		{"what cannot be undone", carol, final, "pay", "", false},
		{"what needs two", carol, final, "refuse", "", false},
	} {
		s := d.start(one.machine)
		in := map[string]any{"sessionId": s.SessionID, "transitionName": one.transition, "toState": s.Question.Transitions[0].Target}
		if in["toState"] = "paid"; one.transition == "refuse" {
			in["toState"] = "refused"
		}
		if one.who != "" {
			in["specialistId"] = one.who
		}
		got := d.overHTTP(one.key, clientOptions{}).call("execute_transition", in)
		if got.failed {
			t.Errorf("%s: %s %s", one.name, got.text, got.more)
			continue
		}
		if a := got.asked(t); a.Executed != one.rules || !one.rules && a.Code != "needs_confirmation" || (d.status(s).Status == "completed") != one.rules {
			t.Errorf("%s: %s", one.name, got.text)
		}
		if one.rules {
			var log api.List[api.Event]
			d.want(200, "GET", "/v1/sessions/"+s.SessionID+"/events?after=0&kinds=executed", "").into(t, &log)
			if !bytes.Contains(log.Items[0].Data, []byte(`"method":"tool"`)) {
				t.Errorf("%s: the log says %s", one.name, log.Items[0].Data)
			}
		}
	}
}

// TestRequestState: what a client sends back with a human's answer counts for the call that it was
// given to, for ten minutes, and once.
func TestRequestState(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	key := seal.NewKey()
	d := newDesk(t, deskOptions{drives: true, config: server.Config{MCP: mcptools.Config{Form: true, Key: key, Now: func() time.Time { return now }}}})
	s := d.start(reviewed)
	o := answering(forms, accept(nil))
	o.options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	c, other := d.overHTTP(localKey, o), d.overHTTP(d.key(control.Grant{Role: control.Human, Humans: []string{"carol"}, Elicit: control.ElicitForm}), o)
	in := map[string]any{"sessionId": s.SessionID, "specialistId": "carol"}
	asked, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask_human", Arguments: in})
	if err != nil || asked.RequestState == "" {
		t.Fatalf("nothing is asked: %+v, %v", asked, err)
	}
	state := asked.RequestState
	answer := mcp.InputResponseMap{"answer": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"choice": "pay", "confirm": "pay"}}}
	again := func(c *toolClient, tool string, in map[string]any, state string) toolReply {
		t.Helper()
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in, RequestState: state, InputResponses: answer})
		if err != nil {
			t.Fatal(err)
		}
		return c.reply(r)
	}
	forged := seal.NewKey().Seal("mcp requestState", []byte(`{"s":"default/local","t":"ask_human"}`))
	for name, try := range map[string]func() toolReply{
		"forged":                   func() toolReply { return again(c, "ask_human", in, forged) },
		"no text that was sealed":  func() toolReply { return again(c, "ask_human", in, "x") },
		"sealed for another thing": func() toolReply { return again(c, "ask_human", in, key.Seal("webhook", []byte(`{}`))) },
		"of another caller":        func() toolReply { return again(other, "ask_human", in, state) },
		"of another tool": func() toolReply {
			return again(c, "execute_transition", map[string]any{"sessionId": s.SessionID, "specialistId": "carol", "transitionName": "pay", "toState": "paid"}, state)
		},
		"of other arguments": func() toolReply {
			return again(c, "ask_human", map[string]any{"sessionId": s.SessionID, "specialistId": "dave"}, state)
		},
		"expired": func() toolReply {
			now = now.Add(10 * time.Minute)
			defer func() { now = now.Add(-10 * time.Minute) }()
			return again(c, "ask_human", in, state)
		},
	} {
		if got := try(); !got.failed || got.code() != "bad_request_state" {
			t.Errorf("%s: %s %s", name, got.text, got.more)
		}
	}
	if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask_human", Arguments: in, InputResponses: answer}); err != nil || r.RequestState == "" {
		t.Errorf("an answer to nothing counts: %+v, %v", r, err)
	}
	if at := d.status(s); at.Status != "needs_human" {
		t.Fatalf("the session is %+v", at)
	}
	d.want(201, "POST", "/v1/sessions/"+s.SessionID+"/proposals", `{"specialistId":"rob","transitionName":"pay"}`)
	if got := again(c, "ask_human", in, state); !got.failed || got.code() != "stale_question" {
		t.Errorf("a question that has changed: %s %s", got.text, got.more)
	}
	if asked, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask_human", Arguments: in}); err != nil {
		t.Fatal(err)
	}
	if got := again(c, "ask_human", in, asked.RequestState); !got.asked(t).Executed {
		t.Errorf("the human's answer: %s %s", got.text, got.more)
	}
	before := d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").header.Get("ETag")
	again(c, "ask_human", in, asked.RequestState)
	if after := d.want(200, "GET", "/v1/sessions/"+s.SessionID, "").header.Get("ETag"); after != before {
		t.Errorf("an answer counts twice: event %s, then %s", before, after)
	}
}
