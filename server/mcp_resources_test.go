package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/control"
)

// TestResources: what can be read is what the operations answer, to who may.
func TestResources(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	c := d.overHTTP(localKey, clientOptions{})
	for uri, same := range map[string]string{
		"dialai://machines/claims":                     "/v1/machines/claims",
		"dialai://sessions/" + s.SessionID:             "/v1/sessions/" + s.SessionID,
		"dialai://sessions/" + s.SessionID + "/events": "/v1/sessions/" + s.SessionID + "/events?after=0",
		"dialai://inbox":                               "/v1/inbox",
	} {
		r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		if got := r.Contents[0].Text; !sameJSON(t, []byte(got), d.want(200, "GET", same, "").body) || r.TTLMs != 0 || r.CacheScope != "private" {
			t.Errorf("%s is %s, to be kept for %d ms by %s", uri, got, r.TTLMs, r.CacheScope)
		}
	}
	for uri, says := range map[string]string{"dialai://schema/machine": `"$schema"`, "dialai://docs/machine-file": "# "} {
		if r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || !strings.Contains(r.Contents[0].Text, says) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	viewer := d.overHTTP(d.key(control.Grant{Role: control.Admin, Machines: []string{"other"}}), clientOptions{})
	for _, uri := range []string{"dialai://sessions/x", "dialai://sessions/..", "dialai://machines/%2e%2e", "dialai://nothing", "file:///etc/passwd"} {
		if r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s is %+v", uri, r.Contents[0])
		}
	}
	if _, err := viewer.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "dialai://sessions/" + s.SessionID}); err == nil {
		t.Error("a session of another machine is shown")
	}
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 3 {
		t.Errorf("templates: %+v, %v", templates, err)
	}
	resources, err := c.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 3 {
		t.Errorf("resources: %+v, %v", resources, err)
	}
}

// TestResourceUpdates: who follows a session or the inbox is told that there is something new, in
// both eras; who may not read it follows nothing.
func TestResourceUpdates(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	updates := make(chan string, 100)
	options := func(era string) clientOptions {
		return clientOptions{era: era, options: mcp.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updates <- r.Params.URI }}}
	}
	uri := "dialai://sessions/" + s.SessionID
	older := d.overStreams(options(eras[0]))
	for _, uri := range []string{uri, "dialai://inbox"} {
		if err := older.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	if err := older.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "dialai://sessions/x"}); err == nil {
		t.Error("a session that is none is followed")
	}
	d.want(201, "POST", "/v1/sessions/"+s.SessionID+"/proposals", `{"specialistId":"rob","transitionName":"pay"}`)
	got := map[string]bool{}
	for len(got) < 2 {
		got[<-updates] = true
	}
	if !got[uri] || !got["dialai://inbox"] {
		t.Errorf("told of %v", got)
	}
}

// TestListening: a client of the newer protocol over HTTP follows by a stream of its own.
func TestListening(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(reviewed)
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["dialai://sessions/` + s.SessionID + `"]},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(t.Context(), "POST", d.listen()+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen", "Authorization": "Bearer " + localKey} {
		req.Header.Set(name, value)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	next := dataLines(t, r)
	var first, second struct{ Method string }
	if err := json.Unmarshal(next(), &first); err != nil || first.Method != "notifications/subscriptions/acknowledged" {
		t.Fatalf("the stream begins with %+v, %v", first, err)
	}
	d.want(201, "POST", "/v1/sessions/"+s.SessionID+"/proposals", `{"specialistId":"rob","transitionName":"pay"}`)
	if err := json.Unmarshal(next(), &second); err != nil || second.Method != "notifications/resources/updated" {
		t.Errorf("the stream goes on with %+v, %v", second, err)
	}
}

// TestPrompts: what a model begins with has what an operation answers.
func TestPrompts(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	s := d.start(withheld)
	c := d.overHTTP(localKey, clientOptions{})
	for _, p := range []struct {
		name, says string
		in         map[string]string
	}{
		{"write_machine", "lend books", map[string]string{"task": "lend books"}},
		{"explain_decision", "first available", map[string]string{"sessionId": d.start(reviewed).SessionID}},
		{"prepare_question", s.Question.RoundID, map[string]string{"sessionId": s.SessionID}},
	} {
		r, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: p.name, Arguments: p.in})
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		if text := r.Messages[0].Content.(*mcp.TextContent).Text; !strings.Contains(text, p.says) || p.name == "prepare_question" && strings.Contains(text, "first available") {
			t.Errorf("%s is %s", p.name, text)
		}
		if _, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: p.name}); err == nil {
			t.Errorf("%s needs nothing", p.name)
		}
	}
}
