package server_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// written is a machine file with a comment, and mistaken the same with a state that is not there.
const (
	written = `# who pays what
machineName: claims
initialState: open
goalState: paid
states:
  open:
    transitions:
      pay: paid   # at once
  paid: {}
`
	mistaken = "machineName: claims\ninitialState: open\ngoalState: paid\nstates:\n  open:\n    transitions:\n      pay: pad\n  paid: {}\n"
)

// asFile is a body with a machine file in the place of a definition, and further members.
func asFile(t *testing.T, name, text string, more ...string) string {
	t.Helper()
	in := map[string]string{"name": name, "text": text}
	for i := 0; i+1 < len(more); i += 2 {
		in[more[i]] = more[i+1]
	}
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestDrawFile: a machine file is drawn as dialai graph draws it, whatever it is written in, and
// nothing of it is kept.
func TestDrawFile(t *testing.T) {
	d := newDesk(t, deskOptions{})
	m, err := machine.Parse("claims.yaml", []byte(written), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	viewer := d.key(control.Grant{Role: control.Viewer})
	for _, c := range []struct{ name, text, format, media string }{
		{"claims.yaml", written, "", "application/json"}, {"claims.json", string(m.JSON()), "layout", "application/json"}, {"claims", written, "", "application/json"},
		{"claims.YML", written, "svg", "image/svg+xml"}, {"claims", string(m.JSON()), "mermaid", "text/vnd.mermaid"}, {"", written, "dot", "text/vnd.graphviz"}, {"", written, "text", "text/plain; charset=utf-8"},
	} {
		more, format := []string{}, "layout"
		if c.format != "" {
			more, format = []string{"format", c.format}, c.format
		}
		body := asFile(t, c.name, c.text, more...)
		for range 2 { // with the same key it is drawn again
			r := d.wantAs(viewer, 200, "POST", "/v1/graph", body, "Idempotency-Key", "k"+c.name+c.format)
			if r.header.Get("Content-Type") != c.media || !bytes.Equal(r.body, graph.Draw(m, graph.View{}, format)) || !strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%q as %q: %v %.200s", c.name, c.format, r.header, r.body)
			}
		}
	}
	var bad api.Error
	if d.want(400, "POST", "/v1/graph", asFile(t, "claims.yaml", mistaken)).into(t, &bad); bad.Code != "invalid_machine" || len(bad.Problems) == 0 || bad.Problems[0].Line != 7 || bad.Problems[0].Column != 12 || bad.Problems[0].Pointer != "/states/open/transitions/pay" {
		t.Errorf("a state that is not there: %+v", bad)
	}
	if d.want(400, "POST", "/v1/graph", asFile(t, "claims.json", "{\n \"machineName\": ")).into(t, &bad); bad.Code != "invalid_machine" || len(bad.Problems) != 1 || bad.Problems[0].Line != 2 {
		t.Errorf("half a file: %+v", bad)
	}
	if r := d.want(400, "POST", "/v1/graph", asFile(t, "claims.json", written)); r.code() != "invalid_machine" { // which was read under another name before
		t.Errorf("YAML under the name of JSON: %s", r.body)
	}
	for _, body := range []string{asFile(t, "claims.yaml", written, "format", "png"), asFile(t, "claims.yaml", written, "formt", "svg"), `{"name":"claims.yaml"}`, `{"name":"claims.yaml","text":7}`, asFile(t, strings.Repeat("x", 300), written)} {
		if r := d.want(400, "POST", "/v1/graph", body); r.code() != "bad_request" {
			t.Errorf("%.100s: %s", body, r.body)
		}
	}
	if r := d.want(413, "POST", "/v1/graph", asFile(t, "claims.yaml", strings.Repeat("# x\n", 2<<20/4))); r.code() != "too_large" {
		t.Errorf("2 MiB: %s", r.body)
	}
	var list api.List[api.Machine]
	if d.want(200, "GET", "/v1/machines", "").into(t, &list); len(list.Items) != 0 {
		t.Errorf("what was drawn is kept: %+v", list.Items)
	}
}

// TestMachineFiles: a machine file is checked and published as the definition that it is, with
// the places of problems as it is written.
func TestMachineFiles(t *testing.T) {
	d := newDesk(t, deskOptions{})
	const validate, path = "/v1/machines/validate", "/v1/machines/claims"
	m, err := machine.Parse("claims.yaml", []byte(written), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		MachineName, MachineDigest string
		Problems                   []api.Problem
	}
	if d.want(200, "POST", validate, asFile(t, "claims.yaml", written)).into(t, &said); said.MachineName != "claims" || said.MachineDigest != m.Digest() {
		t.Errorf("validate: %+v", said)
	}
	if d.want(200, "POST", validate, asFile(t, "claims.yaml", mistaken)).into(t, &said); len(said.Problems) == 0 || said.Problems[0].Line != 7 || said.Problems[0].Column != 12 {
		t.Errorf("a state that is not there: %+v", said.Problems)
	}
	var bad api.Error
	if d.want(400, "PUT", path, asFile(t, "claims.yaml", mistaken), "If-None-Match", "*").into(t, &bad); bad.Code != "invalid_machine" || bad.Problems[0].Line != 7 || bad.Problems[0].Column != 12 {
		t.Errorf("a state that is not there: %+v", bad)
	}
	var first api.Machine
	made := d.want(201, "PUT", path, asFile(t, "claims.yaml", written), "If-None-Match", "*")
	if made.into(t, &first); first.MachineDigest != m.Digest() {
		t.Errorf("published: %+v", first)
	}
	d.want(200, "PUT", path, string(m.JSON()), "If-Match", made.header.Get("ETag")) // it is the newest already
	if d.want(200, "GET", path, "").into(t, &first); !bytes.Equal(first.Definition, m.JSON()) {
		t.Errorf("the definition is %s, want %s", first.Definition, m.JSON())
	}
	if r := d.want(400, "PUT", path, asFile(t, "other.yaml", strings.Replace(written, "claims", "other", 1)), "If-Match", "*"); r.code() != "bad_request" {
		t.Errorf("another machine: %s", r.body)
	}
	for body, code := range map[string]string{`{"name":"a.yaml","text":7}`: "bad_request", `{"name":null,"text":""}`: "bad_request", `{"name":"a.yaml"}`: "invalid_machine", asFile(t, "a.yaml", written, "more", ""): "invalid_machine"} {
		if r := d.want(400, "PUT", path, body, "If-Match", "*"); r.code() != code {
			t.Errorf("%.60s: %s, want %s", body, r.body, code)
		}
	}
	d.want(400, "POST", validate, `{"name":"a.yaml","text":7}`)
	if r := d.want(413, "POST", validate, asFile(t, "claims.yaml", strings.Repeat("# x\n", 2<<20/4))); r.code() != "too_large" {
		t.Errorf("2 MiB: %s", r.body)
	}
}

// TestSuccession: who is about to publish learns which tests of promises begin anew, and the
// definition that a machine file comes to.
func TestSuccession(t *testing.T) {
	d := newDesk(t, deskOptions{})
	const promising = `{"machineName":"claims","initialState":"open","goalState":"paid",
		"states":{"open":{"risk":{"maxError":0.1},"prompt":"Pay?","transitions":{"check":"checked"}},"checked":{"transitions":{"pay":"paid","open":"open"}},"paid":{}},
		"specialists":[{"role":"proposer","specialistId":"bot","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"bayes"}]}`
	const validate = "/v1/machines/validate?tests=true"
	becomes := func(key, text string) string {
		t.Helper()
		var said struct {
			Tests []struct {
				Becomes string
				States  []string
			}
		}
		d.wantAs(key, 200, "POST", validate, text).into(t, &said)
		out := ""
		for _, s := range said.Tests {
			out += s.Becomes + " " + strings.Join(s.States, "+") + ";"
		}
		return out
	}
	viewer := d.key(control.Grant{Role: control.Viewer})
	if got := becomes(viewer, promising); got != "" {
		t.Errorf("of a name that there is not: %q", got)
	}
	d.want(201, "PUT", "/v1/machines/claims", promising, "If-None-Match", "*")
	for _, c := range []struct{ old, new, want string }{
		{`"goalState"`, `"subject":"= \"claim\"","goalState"`, "same open;same checked;"},
		{`"checked":{`, `"checked":{"prompt":"Really?",`, "same open;anew checked;"},
		{"0.1", "0.05", "anew open;anew checked;"},
		{`"risk":{"maxError":0.1}`, `"consensusThreshold":0.8`, "anew checked;gone open;"},
	} {
		if got := becomes(viewer, strings.Replace(promising, c.old, c.new, 1)); got != c.want {
			t.Errorf("%s in the place of %s: %q, want %q", c.new, c.old, got, c.want)
		}
	}
	if got := becomes(d.key(control.Grant{Role: control.Viewer, Machines: []string{"other"}}), promising); got != "" {
		t.Errorf("whoever may not see the machine is told %q", got)
	}
	var said struct{ Definition json.RawMessage }
	if d.want(200, "POST", "/v1/machines/validate?definition=true", asFile(t, "claims.yaml", written)).into(t, &said); !strings.HasPrefix(string(said.Definition), `{"machineName":"claims",`) {
		t.Errorf("the definition is %.100s", said.Definition)
	}
}
