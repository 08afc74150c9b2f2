package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// prompted is reviewed with another prompt: another version of it.
func prompted(prompt string) string { return strings.Replace(reviewed, `"Pay?"`, `"`+prompt+`"`, 1) }

// TestPublish: a definition is published over the one that was seen; sessions are started of
// the newest version, or of the one that is named, and keep theirs.
func TestPublish(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	const path = "/v1/machines/claims"
	if r := d.want(428, "PUT", path, reviewed); r.code() != "precondition_required" {
		t.Errorf("without a precondition: %s", r.body)
	}
	d.want(428, "PUT", path, reviewed, "If-Match", "*", "If-None-Match", "*")
	d.want(412, "PUT", path, reviewed, "If-Match", `"abc"`)
	first := d.want(201, "PUT", path, reviewed, "If-None-Match", "*")
	var v1, v2 api.Machine
	if first.into(t, &v1); v1.Version != 1 || v1.MachineName != "claims" || first.header.Get("ETag") != `"`+v1.MachineDigest+`"` || v1.PublishedBy != "local" || v1.Problems == nil {
		t.Errorf("published: %v %s", first.header, first.body)
	}
	if again := d.want(200, "PUT", path, reviewed, "If-None-Match", "*"); !bytes.Contains(again.body, []byte(`"version":1,`)) {
		t.Errorf("what is the newest already is published again: %s", again.body)
	}
	if r := d.want(412, "PUT", path, prompted("Now?"), "If-None-Match", "*"); r.code() != "stale_machine" {
		t.Errorf("over a name that is taken: %s", r.body)
	}
	d.want(201, "PUT", path, prompted("Now?"), "If-Match", first.header.Get("ETag")).into(t, &v2)
	d.want(412, "PUT", path, prompted("Then?"), "If-Match", first.header.Get("ETag"))
	for body, code := range map[string]string{`{"machineName":"claims"}`: "invalid_machine", strings.Replace(reviewed, "claims", "other", 1): "bad_request", `{"machineName":"claims","guards":"/etc/passwd"}`: "invalid_machine"} {
		if r := d.want(400, "PUT", path, body, "If-Match", "*"); r.code() != code {
			t.Errorf("%.40s: %s, want %s", body, r.body, code)
		}
	}
	for of, digest := range map[string]string{`"machineName":"claims"`: v2.MachineDigest, `"machineName":"claims","machineDigest":"` + v1.MachineDigest + `"`: v1.MachineDigest} {
		var got api.Settled
		if d.want(201, "POST", "/v1/sessions", "{"+of+"}").into(t, &got); got.Session.MachineDigest != digest {
			t.Errorf("{%s} starts a session of %s, want %s", of, got.Session.MachineDigest, digest)
		}
	}
	d.want(404, "POST", "/v1/sessions", `{"machineName":"claims","machineDigest":"abc"}`)
	var of1, moved api.Settled
	d.want(201, "POST", "/v1/sessions?wait=10s", `{"machineName":"claims","machineDigest":"`+v1.MachineDigest+`"}`).into(t, &of1)
	move := "/v1/sessions/" + of1.Session.SessionID + "/move"
	for body, status := range map[string]int{`"machineDigest":"abc"`: 404, `"machineDigest":"` + v2.MachineDigest + `","definition":` + reviewed: 400, `"dryRun":true`: 400} {
		d.want(status, "POST", move, `{"note":"x",`+body+`}`)
	}
	if d.want(200, "POST", move, `{"note":"x","machineDigest":"`+v2.MachineDigest+`"}`).into(t, &moved); moved.Session.MachineDigest != v2.MachineDigest {
		t.Errorf("a session is moved to a version by its digest, and is of %s", moved.Session.MachineDigest)
	}
	for _, name := range []string{"none", "..%2F..", "a%2Fb"} {
		d.want(404, "GET", "/v1/machines/"+name, "")
		d.want(404, "GET", "/v1/machines/"+name+"/versions", "")
		d.want(404, "GET", "/v1/machines/"+name+"/graph", "")
	}
	var newest api.Machine
	seen := d.want(200, "GET", path, "")
	if seen.into(t, &newest); newest.MachineDigest != v2.MachineDigest || newest.Version != 2 || *newest.LiveSessions != 3 || !bytes.Contains(newest.Definition, []byte("Now?")) {
		t.Errorf("the newest is %s", seen.body)
	}
	d.want(304, "GET", path, "", "If-None-Match", seen.header.Get("ETag"))
	var old api.Machine
	if d.want(200, "GET", path+"/versions/"+v1.MachineDigest, "").into(t, &old); old.Version != 1 || !bytes.Contains(old.Definition, []byte("Pay?")) {
		t.Errorf("version 1 is %+v", old)
	}
	d.want(404, "GET", path+"/versions/abc", "")
}

// TestPublishPermissions: who may not see a machine is not told that there is one.
func TestPublishPermissions(t *testing.T) {
	d := newDesk(t, deskOptions{})
	d.want(201, "PUT", "/v1/machines/claims", reviewed, "If-None-Match", "*")
	for who, c := range map[*control.Grant][2]int{
		{Role: control.Operator}:                              {200, 200},
		{Role: control.Viewer}:                                {200, 403},
		{Role: control.Human, Humans: []string{"carol"}}:      {200, 403},
		{Role: control.Operator, Machines: []string{"other"}}: {404, 404},
	} {
		key := d.key(*who)
		if r := d.do(key, "GET", "/v1/machines/claims", ""); r.status != c[0] {
			t.Errorf("%+v reads: %d", who, r.status)
		}
		if r := d.do(key, "PUT", "/v1/machines/claims", reviewed, "If-Match", "*"); r.status != c[1] {
			t.Errorf("%+v publishes: %d", who, r.status)
		}
		var list api.List[api.Machine]
		if d.wantAs(key, 200, "GET", "/v1/machines", "").into(t, &list); len(list.Items) != map[int]int{200: 1, 404: 0}[c[0]] {
			t.Errorf("%+v is listed %+v", who, list.Items)
		}
	}
}

// TestMachinePages: every machine and version is on one page, whatever is published meanwhile,
// and a cursor is good for its own list only.
func TestMachinePages(t *testing.T) {
	d := newDesk(t, deskOptions{})
	for i := range 5 {
		name := fmt.Sprintf("m/%d", i)
		d.want(201, "PUT", "/v1/machines/"+url.PathEscape(name), strings.Replace(reviewed, `"claims"`, fmt.Sprintf("%q", name), 1), "If-None-Match", "*")
		d.want(201, "PUT", "/v1/machines/m%2F0", strings.Replace(prompted(fmt.Sprint("Version ", i+2)), `"claims"`, `"m/0"`, 1), "If-Match", "*")
	}
	read := func(path, of string) (seen []string) {
		for cursor := ""; ; {
			var page api.List[api.Machine]
			d.want(200, "GET", path+"?limit=2&cursor="+cursor, "").into(t, &page)
			for _, m := range page.Items {
				seen = append(seen, fmt.Sprint(m.MachineName, " ", m.Version))
				if len(m.Definition) > 0 {
					t.Errorf("%s lists definitions", path)
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				return seen
			}
			if r := d.want(400, "GET", of+"?cursor="+cursor, ""); r.code() != "bad_cursor" {
				t.Errorf("a cursor of %s for %s: %s", path, of, r.body)
			}
		}
	}
	if got, want := fmt.Sprint(read("/v1/machines", "/v1/machines/m%2F0/versions")), "[m/0 6 m/1 1 m/2 1 m/3 1 m/4 1]"; got != want {
		t.Errorf("the machines are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(read("/v1/machines/m%2F0/versions", "/v1/machines")), "[m/0 1 m/0 2 m/0 3 m/0 4 m/0 5 m/0 6]"; got != want {
		t.Errorf("the versions are %s, want %s", got, want)
	}
	d.want(400, "GET", "/v1/machines?cursor=garbage", "")
}

// TestDraw: the pictures are those of dialai graph, and run nothing.
func TestDraw(t *testing.T) {
	d := newDesk(t, deskOptions{drives: true})
	d.start(reviewed) // which nobody has published
	m, err := machine.Parse("m.json", []byte(reviewed), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	for format, media := range map[string]string{"": "image/svg+xml", "?format=svg": "image/svg+xml", "?format=mermaid": "text/vnd.mermaid", "?format=dot": "text/vnd.graphviz", "?format=layout": "application/json"} {
		r := d.want(200, "GET", "/v1/machines/claims/graph"+format, "")
		name := strings.TrimPrefix(format, "?format=")
		if name == "" {
			name = "svg"
		}
		if r.header.Get("Content-Type") != media || !bytes.Equal(r.body, graph.Draw(m, graph.View{}, name)) || !strings.Contains(r.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v %.100s", format, r.header, r.body)
		}
	}
	d.want(400, "GET", "/v1/machines/claims/graph?format=png", "")
	d.want(404, "GET", "/v1/machines/claims/graph?digest=abc", "")
	var list api.List[api.Machine]
	if d.want(200, "GET", "/v1/machines/claims/versions", "").into(t, &list); len(list.Items) != 0 {
		t.Errorf("what nobody has published has the versions %+v", list.Items)
	}
	var one map[string]json.RawMessage
	if d.want(200, "GET", "/v1/machines/claims", "").into(t, &one); one["version"] != nil || one["publishedAt"] != nil || one["definition"] == nil {
		t.Errorf("what nobody has published is %v", one)
	}
}
