package server_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
)

// TestDryRunOverHTTP: a definition runs with everybody outside scripted, whoever may publish
// machines may have it run, and nothing of it is kept.
func TestDryRunOverHTTP(t *testing.T) {
	d := newDesk(t, deskOptions{})
	operator := d.key(control.Grant{Role: control.Operator})
	far := strings.Replace(reviewed, `"specialistId":"bot","strategyFnName":"firstAvailable"`, `"specialistId":"bot","strategyWebhookUrl":"https://nowhere.invalid/x","webhookTokenName":"NO_SUCH"`, 1)
	run := func(body string) (r api.DryRun) {
		t.Helper()
		d.wantAs(operator, 200, "POST", "/v1/dry-runs", body).into(t, &r)
		return r
	}
	body := `{"definition":` + far + `,"metaJson":{"amount":1},"seed":3,"answers":[{"specialistId":"bot","transitionName":"pay","reasoning":"seen"}`
	r := run(body + `]}`)
	if len(r.Rounds) != 1 || r.Status != "needs_human" || r.CurrentState != "review" || r.Rounds[0].Human == nil || fmt.Sprint(r.Rounds[0].Human.Humans) != "[carol dave]" || len(r.Rounds[0].Proposals) != 2 || r.Rounds[0].Verdicts[0].Reasoning == "" {
		t.Errorf("it runs %+v", r)
	}
	if r = run(body + `,{"specialistId":"dave","transitionName":"refuse"}]}`); r.Status != "completed" || r.Code != "final" || r.Rounds[0].Executed == nil || r.Rounds[0].Executed.SpecialistID != "dave" {
		t.Errorf("with a human it runs %+v", r)
	}
	if again := run(body + `,{"specialistId":"dave","transitionName":"refuse"}]}`); !reflect.DeepEqual(again, r) {
		t.Errorf("again it runs %+v, it was %+v", again, r)
	}
	if r = run(`{"definition":{"name":"m.yaml","text":"machineName: m\ninitialState: a\ngoalState: b\nstates:\n  a:\n    transitions: { go: b }\n  b: {}\nspecialists:\n  - { role: proposer, specialistId: carol, isHuman: true }\n  - { role: arbiter, specialistId: x, strategyFnName: firstProposal }\n"},"answers":[{"specialistId":"carol","transitionName":"go"}]}`); r.MachineName != "m" || r.Status != "completed" {
		t.Errorf("a file runs %+v", r)
	}
	for name, c := range map[string]struct {
		status     int
		code, body string
	}{
		"no definition":     {400, "bad_request", `{}`},
		"null":              {400, "invalid_machine", `{"definition":null}`},
		"a bad one":         {400, "invalid_machine", `{"definition":{"machineName":"m"}}`},
		"no arbiter":        {422, "cannot_start", `{"definition":{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"go":"b"}},"b":{}}}}`},
		"nobody":            {422, "bad_script", `{"definition":` + far + `,"answers":[{"specialistId":"nobody","transitionName":"pay"}]}`},
		"a file":            {400, "invalid_machine", `{"definition":` + strings.Replace(far, `"strategyWebhookUrl":"https://nowhere.invalid/x"`, `"strategyWebhookUrl":"file:///etc/passwd"`, 1) + `}`},
		"a negative seed":   {400, "bad_request", `{"definition":` + far + `,"seed":-1}`},
		"what is not known": {400, "bad_request", `{"definition":` + far + `,"store":"x"}`},
	} {
		if r := d.wantAs(operator, c.status, "POST", "/v1/dry-runs", c.body); r.code() != c.code {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	for _, role := range []control.Role{control.Viewer, control.Auditor} {
		d.wantAs(d.key(control.Grant{Role: role}), 403, "POST", "/v1/dry-runs", body+`]}`)
	}
	var sessions api.List[json.RawMessage]
	if d.want(200, "GET", "/v1/sessions", "").into(t, &sessions); len(sessions.Items) != 0 {
		t.Errorf("sessions are kept: %s", sessions.Items)
	}
}

// TestDryRunsAtOnce: two go on at a time; others wait a second, and are asked to come again.
func TestDryRunsAtOnce(t *testing.T) {
	d := newDesk(t, deskOptions{})
	loop := `{"definition":{"machineName":"loop","initialState":"a","goalState":"z","states":{"a":{"transitions":{"on":"a","out":"z"}},"z":{}},"specialists":[
		{"role":"proposer","specialistId":"s","strategyWebhookUrl":"https://s.example.com/x","webhookTokenName":"T"},{"role":"arbiter","specialistId":"j","strategyFnName":"firstProposal"}]},"answers":[{"specialistId":"s","transitionName":"on"}]}`
	var work sync.WaitGroup
	began := time.Now()
	for range 8 {
		work.Go(func() {
			switch r := d.do(localKey, "POST", "/v1/dry-runs", loop); {
			case r.status == 200 && strings.Contains(string(r.body), `"code":"step_limit"`):
			case r.status == 503 && r.code() == "overloaded" && r.header.Get("Retry-After") != "":
			default:
				t.Errorf("%d %.300s", r.status, r.body)
			}
		})
	}
	work.Wait()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("eight at once take %s", took)
	}
}
