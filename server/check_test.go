package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/strategies"
)

// times are how long something took, which differs from run to run.
var times = regexp.MustCompile(`("(?:elapsed|task_age)_ms"):\d+`)

// TestCheck: steps are judged as dialai check --stateful judges them, and nothing is kept.
func TestCheck(t *testing.T) {
	d := newDesk(t, deskOptions{})
	const config = `{"limits":{"max_steps":2}}`
	steps := []string{`{"task_id":"t","output":"a"}`, `{"task_id":"t","output":"b","tokens_in":7}`, `{"task_id":"t","output":"c"}`}
	body := `{"config":` + config + `,"steps":[` + strings.Join(steps, ",") + `]}`
	dir := t.TempDir()
	for name, text := range map[string]string{"guards.json": config, "steps": strings.Join(steps, "\n") + "\n", "out": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := os.Open(filepath.Join(dir, "steps"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdin, stdout := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = in, out
	code := cli.Main(t.Context(), strategies.Registry{}, []string{"check", "--guards", filepath.Join(dir, "guards.json"), "--stateful"})
	os.Stdin, os.Stdout = stdin, stdout
	text, err := os.ReadFile(out.Name())
	if err != nil || code == 3 {
		t.Fatal(code, err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	for range 2 { // the second time as the first
		var got api.Checked
		d.want(200, "POST", "/v1/check", body).into(t, &got)
		if len(got.Verdicts) != len(want) {
			t.Fatalf("%d verdicts, want %d", len(got.Verdicts), len(want))
		}
		for i, v := range got.Verdicts {
			if got, want := times.ReplaceAllString(string(v), "$1:0"), times.ReplaceAllString(want[i], "$1:0"); got != want {
				t.Errorf("step %d is answered %s, dialai check prints %s", i, got, want)
			}
		}
		if !strings.Contains(string(got.Verdicts[2]), "abort") && !strings.Contains(string(got.Verdicts[2]), "escalate") {
			t.Errorf("a third step of two is judged %s", got.Verdicts[2])
		}
	}
	for body, says := range map[string]string{
		`{"config":{"limits":{"max_step":2}},"steps":[{}]}`:      "max_step",
		`{"config":"guards.json","steps":[{}]}`:                  "",
		`{"config":{},"steps":[]}`:                               "steps",
		`{"config":{},"steps":[{"task_id":"t","output":1}]}`:     "/steps/0",
		`{"config":{},"steps":[{}],"profile":"lax"}`:             "profile",
		`{"config":{},"steps":[{"task_id":"t","output":"a"},7]}`: "/steps/1",
	} {
		if r := d.do(localKey, "POST", "/v1/check", body); r.status != 400 || !strings.Contains(string(r.body), says) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
}

// TestCheckByName: steps are judged by guards that the server knows, as by the same that come along.
func TestCheckByName(t *testing.T) {
	strict, problems := guard.ParseAs([]byte(`{"limits":{"max_steps":1}}`), guard.Strict)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := newDesk(t, deskOptions{config: server.Config{Guards: map[string]*guard.Config{"strict": strict}}})
	const steps = `"steps":[{"task_id":"t","output":"a"},{"task_id":"t","output":"b"}]`
	var known, sent api.Checked
	d.want(200, "POST", "/v1/check", `{"guard":"strict",`+steps+`}`).into(t, &known)
	d.want(200, "POST", "/v1/check", `{"config":{"limits":{"max_steps":1}},"profile":"strict",`+steps+`}`).into(t, &sent)
	for i := range sent.Verdicts {
		if got, want := times.ReplaceAllString(string(known.Verdicts[i]), ""), times.ReplaceAllString(string(sent.Verdicts[i]), ""); got != want || (i == 1) != strings.Contains(got, "max_steps") {
			t.Errorf("step %d is judged\n%s, want\n%s", i, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"guard":"none",` + steps + `}`:                      "404 not_found",
		`{` + steps + `}`:                                     "400 bad_request",
		`{"guard":"strict","config":{},` + steps + `}`:        "400 bad_request",
		`{"guard":"strict","profile":"compat",` + steps + `}`: "400 bad_request",
	} {
		if r := d.do(localKey, "POST", "/v1/check", body); fmt.Sprint(r.status, " ", r.code()) != want {
			t.Errorf("%s: %d %s, want %s", body, r.status, r.body, want)
		}
	}
}
