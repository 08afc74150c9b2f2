package server_test

import (
	"strings"
	"testing"
)

// TestBadInput is what programs may get wrong about a definition or its data.
func TestBadInput(t *testing.T) {
	d := newDesk(t, deskOptions{})
	nested := func(n int) string { // of the whole body
		return `{"machine":` + reviewed + `,"metaJson":{"a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}}`
	}
	with := func(old, new string) string { return `{"machine":` + strings.Replace(reviewed, old, new, 1) + `}` }
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
		says   []string
	}{
		"64 deep":              {nested(64), 201, "", nil},
		"65 deep":              {nested(65), 400, "bad_request", nil},
		"a NUL":                {"{\"machineName\":\"a\x00\"}", 400, "bad_request", nil},
		"2^64":                 {`{"machine":` + reviewed + `,"seed":"18446744073709551616"}`, 400, "bad_request", []string{"seed"}},
		"a misspelt member":    {with(`"transitions"`, `"transiton"`), 400, "invalid_machine", []string{"/states/review", "transiton", "did you mean"}},
		"a misspelt reference": {with(`"goalState":"paid"`, `"goalState":"payed"`), 400, "invalid_machine", []string{"/goalState", "paid"}},
		"an unknown function":  {with(`"strategyFnName":"lastAvailable"`, `"strategyFn":"none"`), 422, "", []string{"none"}},
		"an unset variable":    {with(`"strategyFnName":"lastAvailable"`, `"strategyWebhookUrl":"https://example.com","webhookTokenName":"NOT_SET"`), 422, "cannot_start", nil},
		"data of 256 KiB":      {`{"machine":` + reviewed + `,"metaJson":"` + strings.Repeat("x", 256<<10-2) + `"}`, 201, "", nil},
		"data of a byte more":  {`{"machine":` + reviewed + `,"metaJson":"` + strings.Repeat("x", 256<<10-1) + `"}`, 422, "too_large", []string{"metaJson"}},
	} {
		r := d.do(localKey, "POST", "/v1/sessions", c.body)
		if r.status != c.status || c.code != "" && r.code() != c.code {
			t.Errorf("%s: %d %.500s", name, r.status, r.body)
		}
		for _, want := range c.says {
			if !strings.Contains(string(r.body), want) {
				t.Errorf("%s: %.700s does not say %s", name, r.body, want)
			}
		}
	}
	if list := d.want(200, "GET", "/v1/sessions", ""); strings.Count(string(list.body), `"sessionId"`) != 2 {
		t.Errorf("what was refused is there: %s", list.body)
	}
}
