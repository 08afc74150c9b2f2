package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dialai/dialai/api"
)

var writeExamples = flag.Bool("write-examples", false, "write server/examples.json anew; go generate ./server then puts it into the document")

// withoutExample are operations that answer with JSON and have none, and why.
var withoutExample = map[string]string{
	"answer-callback": "docs/webhooks.md has one", "adopt-policy": "takes a policy that a job has found", "create-job": "needs jobs", "get-job": "needs jobs", "list-jobs": "needs jobs", "cancel-job": "needs jobs",
	"promote-state": "takes weeks of rulings", "demote-state": "takes weeks of rulings", "freeze-state": "takes weeks of rulings", "release-state": "takes weeks of rulings", "get-collapse": "takes weeks of rulings", "get-trust": "takes weeks of rulings",
	"raise-limits": "takes a session that its limits have stopped", "review": "takes an audit that was drawn", "reveal-review": "takes an audit that was drawn", "redeliver": "takes a delivery",
}

// An exampled is a request to an operation and its answer.
type exampled struct {
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer,omitempty"`
}

// secrets are what is shown once: an example has none that could be used.
var secrets = regexp.MustCompile(`(dk_[a-z0-9]+_|whsec_)[A-Za-z0-9+/=_-]+`)

// play makes a request to operations one after the other, and returns what was answered.
func (d *desk) play() map[string]exampled {
	d.Helper()
	out := map[string]exampled{}
	do := func(status int, operation, method, path, body string, header ...string) *reply {
		d.Helper()
		r := d.want(status, method, path, body, header...)
		e := exampled{Path: method + " " + path, Status: status}
		if body != "" {
			e.Body = secrets.ReplaceAll([]byte(body), []byte("$1…"))
		}
		if len(r.body) > 0 && strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
			e.Answer = secrets.ReplaceAll(bytes.TrimSpace(r.body), []byte("$1…"))
		}
		out[operation] = e
		return r
	}
	const m = "/v1/machines/claims"
	do(200, "about", "GET", "/v1", "")
	do(201, "publish-machine", "PUT", m, reviewed, "If-None-Match", "*")
	do(200, "get-machine", "GET", m, "")
	do(200, "validate-machine", "POST", "/v1/machines/validate", `{"machineName":"claims","initialState":"open","states":{"open":{"transitions":{"go":"don"}},"done":{}}}`)
	do(200, "draw-machine", "GET", m+"/graph?format=layout", "")
	do(200, "draw-file", "POST", "/v1/graph", `{"name":"claims.yaml","text":"machineName: claims\ninitialState: open\ngoalState: paid\nstates:\n  open:\n    transitions:\n      pay: paid\n  paid: {}\n"}`)
	do(200, "check-steps", "POST", "/v1/check", `{"config":{},"steps":[{"task_id":"t","output":"Paid."}]}`)
	do(200, "dry-run", "POST", "/v1/dry-runs", `{"definition":`+strings.Replace(reviewed, `"specialistId":"bot","strategyFnName":"firstAvailable"`, `"specialistId":"bot","contextFn":"sessionContext","modelId":"gpt-4o"`, 1)+`,"answers":[{"specialistId":"bot","transitionName":"pay","reasoning":"The receipt is there."},{"specialistId":"carol","transitionName":"refuse"}],"seed":1}`)
	begin := func(operation, machine string) (s api.Session, at string) {
		d.Helper()
		var started api.Settled
		do(201, operation, "POST", "/v1/sessions?wait=10s", `{"machine":`+machine+`,"metaJson":{"amount":120}}`).into(d.T, &started)
		return started.Session, "/v1/sessions/" + started.Session.SessionID
	}
	s, at := begin("start-session", reviewed)
	do(201, "register-specialist", "POST", m+"/specialists", `{"specialistId":"late","role":"proposer","strategyFnName":"lastAvailable"}`)
	do(200, "switch-specialist", "PATCH", m+"/specialists/late", `{"enabled":false}`)
	do(201, "propose", "POST", at+"/proposals", `{"specialistId":"rob","transitionName":"refuse","reasoning":"There is no receipt."}`)
	do(200, "step-session", "POST", at+"/step", "")
	do(200, "run-session", "POST", at+"/run", "")
	do(200, "get-session", "GET", at, "").into(d.T, &s)
	question := "/v1/inbox/" + s.Question.QuestionID
	do(200, "list-inbox", "GET", "/v1/inbox", "")
	do(200, "get-question", "GET", question, "")
	do(200, "claim-question", "PUT", question+"/claim", `{"specialistId":"carol"}`)
	do(204, "unclaim-question", "DELETE", question+"/claim", "")
	do(200, "reveal-question", "POST", question+"/reveal", `{"specialistId":"carol"}`)
	do(200, "evaluate", "POST", at+"/evaluation", "")
	do(200, "arbitrate", "POST", at+"/arbitration", "")
	do(200, "get-session", "GET", at, "").into(d.T, &s)
	do(200, "decide", "POST", at+"/decisions", ruling(s, "pay", "carol"))
	do(200, "await-session", "GET", at+"/settled", "")
	do(200, "list-sessions", "GET", "/v1/sessions", "")
	for operation, path := range map[string]string{
		"list-session-decisions": "/decisions", "get-driver": "/driver", "list-events": "/events?kinds=executed,ended", "explain-round": "/explain", "get-guard-log": "/log?format=guard", "list-model-calls": "/audit", "list-agent-events": "/agent-log",
	} {
		do(200, operation, "GET", at+path, "")
	}
	do(201, "fork-session", "POST", at+"/fork", `{"sequence":2}`)
	do(200, "retract-ruling", "POST", at+"/retractions", `{"roundId":"`+s.Question.RoundID+`","note":"the wrong one","specialistId":"carol"}`)
	for operation, path := range map[string]string{
		"list-alignment": "/alignment", "list-collapse": "/collapse", "list-decisions": "/decisions", "evaluate-specialist": "/evaluations/bot", "list-exemplars": "/exemplars",
		"list-humans": "/humans?state=review", "list-machine-events": "/log", "get-metrics": "/metrics", "get-risk": "/risk", "list-trust-history": "/trust-history?specialist=bot", "get-calibration": "/calibration", "list-spend": "/spend?by=total", "list-specialists": "/specialists", "list-trust": "/trust", "list-versions": "/versions",
		"get-version": "/versions/" + s.MachineDigest,
	} {
		do(200, operation, "GET", m+path, "")
	}
	do(200, "list-machines", "GET", "/v1/machines", "")
	do(200, "list-reviews", "GET", "/v1/reviews", "")
	do(200, "get-store", "GET", "/v1/store", "")
	two := strings.Replace(signed, `"claims"`, `"signed"`, 1) // of which nobody has learned anything
	s, at = begin("", two)
	do(200, "execute", "POST", at+"/executions", strings.Replace(ruling(s, "pay", "carol"), "{", `{"toState":"paid",`, 1))
	do(200, "withdraw-ruling", "DELETE", at+"/decisions/"+s.Question.RoundID+"?human=carol", "")
	do(200, "move-session", "POST", at+"/move", `{"definition":`+strings.Replace(two, "Pay?", "Pay now?", 1)+`,"note":"a clearer question","dryRun":true}`)
	do(200, "cancel-session", "POST", at+"/cancel", `{"note":"sent twice"}`)
	do(200, "resume-session", "POST", at+"/resume", `{"note":"it was not"}`)
	var key api.MadeKey
	do(201, "create-key", "POST", "/v1/keys", `{"name":"ci","grants":[{"role":"operator","machines":["claims*"]}]}`).into(d.T, &key)
	do(200, "list-keys", "GET", "/v1/keys", "")
	do(200, "get-key", "GET", "/v1/keys/"+key.KeyID, "")
	do(201, "rotate-key", "POST", "/v1/keys/"+key.KeyID+"/rotate", `{"overlap":"24h"}`)
	do(200, "revoke-key", "DELETE", "/v1/keys/"+key.KeyID, "")
	var hook api.MadeWebhook
	do(201, "create-webhook", "POST", "/v1/webhooks", `{"url":"https://example.com/hook","types":["session.needs_human"]}`).into(d.T, &hook)
	hooked := "/v1/webhooks/" + hook.WebhookID
	do(200, "list-webhooks", "GET", "/v1/webhooks", "")
	do(200, "get-webhook", "GET", hooked, "")
	do(200, "change-webhook", "PATCH", hooked, `{"types":["*"]}`)
	do(202, "test-webhook", "POST", hooked+"/test", "")
	do(200, "list-deliveries", "GET", hooked+"/deliveries", "")
	do(200, "replay-webhook", "POST", hooked+"/replay", `{"after":0}`)
	do(200, "rotate-webhook", "POST", hooked+"/rotate", "")
	do(204, "delete-webhook", "DELETE", hooked, "")
	do(201, "create-ticket", "POST", "/v1/tickets", `{"for":"desk"}`)
	do(200, "list-audit", "GET", "/v1/audit?limit=2", "")
	delete(out, "")
	return out
}

// TestExamples: every operation of the document of the last release that answers with JSON has a
// recorded example, and what is recorded, like what is answered now, is what the document says.
func TestExamples(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	played := d.play()
	if *writeExamples {
		text, err := json.MarshalIndent(played, "", " ")
		if err == nil {
			err = os.WriteFile("examples.json", append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := d.server.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	now := parsedJSON(t, text)
	schemas := in(now, "components", "schemas")
	valid := func(what string, schema any, value json.RawMessage) {
		t.Helper()
		if schema == nil {
			t.Errorf("%s has no schema", what)
			return
		}
		names, leadsTo := map[string]bool{}, object{} // all schemas of the document, each time anew, would take a minute
		refs(schemas, schema, names)
		for name := range names {
			leadsTo[name] = schemas[name]
		}
		root, err := json.Marshal(object{"allOf": []any{schema}, "$defs": leadsTo})
		if err != nil {
			t.Fatal(err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(bytes.ReplaceAll(root, []byte("#/components/schemas/"), []byte("#/$defs/")), &s); err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var v any
		if err := json.Unmarshal(value, &v); err != nil {
			t.Fatalf("%s: %v in %s", what, err, value)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%s is not what the document says: %v\n%.400s", what, err, value)
		}
	}
	kept, err := os.ReadFile("examples.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]exampled
	if err := json.Unmarshal(kept, &recorded); err != nil {
		t.Fatal(err)
	}
	if secrets.Match(kept) {
		t.Errorf("an example has a secret: %s", secrets.Find(kept))
	}
	released := map[string]bool{}
	for _, item := range in(frozen(t), "paths") {
		for _, op := range item.(object) {
			released[fmt.Sprint(op.(object)["operationId"])] = true
		}
	}
	for path, item := range in(now, "paths") {
		for method, op := range item.(object) {
			op := op.(object)
			id, what := fmt.Sprint(op["operationId"]), method+" "+path
			e, ok := recorded[id]
			if !ok {
				if answer := in(op, "responses", "200", "content", "application/json"); answer != nil && released[id] && withoutExample[id] == "" {
					t.Errorf("%s (%s) has no example: go test ./server -run '^TestExamples$' -write-examples", what, id)
				}
				continue
			}
			content := in(op, "responses", strconv.Itoa(e.Status), "content", "application/json")
			for _, e := range []exampled{e, played[id]} {
				if e.Body != nil {
					valid("the request of "+what, in(op, "requestBody", "content", "application/json")["schema"], e.Body)
				}
				if e.Answer != nil {
					valid("the answer of "+what, content["schema"], e.Answer)
				}
			}
			if !*writeExamples && e.Answer != nil && content["example"] == nil {
				t.Errorf("the document does not show the example of %s", what)
			}
		}
	}
}
