package e2e_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Programs that others make of docs/openapi.json, and their clients of streams and of MCP.

// driven is what a client of the API has met: it started a session of the machine asking, was
// refused with an old digest, and ruled.
type driven struct {
	Choices                []string
	Refused, Status, State string
	Executed               bool
}

var wellDriven = driven{[]string{"pay", "refuse"}, "stale_question", "completed", "paid", true}

// into is a directory of modules with some files of ours.
func (d *desk) into(from string, names ...string) string {
	d.Helper()
	dir := d.TempDir()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		d.must(err)
		d.must(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir
}

// TestOpenAPITypeScript: the types that openapi-typescript makes of the document let a program
// through tsc, which drives a session from its start to a ruling.
func TestOpenAPITypeScript(t *testing.T) {
	d := newDesk(t)
	dir := d.into("strangers", "rest.ts", "tsconfig.json")
	d.must(os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600))
	modules := filepath.Join("strangers", "node_modules")
	d.node(filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), filepath.Join("..", "docs", "openapi.json"), "-o", filepath.Join(dir, "api.ts"))
	d.node(filepath.Join(modules, "typescript", "bin", "tsc"), "-p", dir)
	s := d.serve()
	given, err := json.Marshal(map[string]any{"url": s.url, "key": s.key, "machine": json.RawMessage(asking), "transition": "pay"})
	d.must(err)
	var got driven
	if d.must(json.Unmarshal(d.node(filepath.Join(dir, "rest.js"), string(given)), &got)); !reflect.DeepEqual(got, wellDriven) {
		t.Errorf("it met %+v", got)
	}
}

// TestOpenAPIGo: so does the client that oapi-codegen makes of it. The generator is in a module
// of its own, and nothing is downloaded here.
func TestOpenAPIGo(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles 60,000 lines")
	}
	d := newDesk(t)
	dir := d.into(filepath.Join("testdata", "oapi"), "go.mod", "go.sum", "main.go", "generate.yaml")
	document, err := filepath.Abs(filepath.Join("..", "docs", "openapi.json"))
	d.must(err)
	goes := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil && strings.Contains(string(out), "GOPROXY=off") && os.Getenv("CI") == "":
			t.Skipf("needs go -C e2e/testdata/oapi mod download: %s", out)
		case err != nil:
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
		return out
	}
	goes("tool", "oapi-codegen", "-config", "generate.yaml", document)
	s := d.serve()
	var got driven
	if d.must(json.Unmarshal(goes("run", ".", s.url, s.key, asking, "pay"), &got)); !reflect.DeepEqual(got, wellDriven) {
		t.Errorf("it met %+v", got)
	}
}

// TestEventSourceOverRestarts: the EventSource of others follows a server that is killed and one
// that ends well, and has every event of every session once, in its order.
func TestEventSourceOverRestarts(t *testing.T) {
	d := newDesk(t)
	s := d.serve()
	at := strings.TrimPrefix(s.url, "http://")
	kinds := "session_created,specialist_registered,asked,proposed,judged,executed,ended,needs_human"
	follows := d.script(filepath.Join("strangers", "events.mjs"), s.url+"/v1/events?after=0", s.key, kinds)
	out, err := follows.StdoutPipe()
	d.must(err)
	d.must(follows.Start())
	t.Cleanup(func() {
		follows.Process.Kill()
		follows.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	got, seen, opened := map[string][]int64{}, map[string]bool{}, 0
	next := func() (kind string, data struct {
		SessionID string
		Seq       int64
	}) {
		t.Helper()
		var event struct {
			Kind, ID string
			Data     json.RawMessage
		}
		if !lines.Scan() {
			t.Fatalf("it has ended: %v", lines.Err())
		}
		d.must(json.Unmarshal(lines.Bytes(), &event))
		switch event.Kind {
		case "open":
			opened++
			return event.Kind, data
		case "reset":
			t.Fatal("it has to begin anew")
		}
		d.must(json.Unmarshal(event.Data, &data))
		if seen[event.ID] {
			t.Errorf("the event %s comes twice", event.ID)
		}
		seen[event.ID] = true
		if data.SessionID != "" {
			got[data.SessionID] = append(got[data.SessionID], data.Seq)
		}
		return event.Kind, data
	}
	until := func(id, kind string) {
		t.Helper()
		for {
			if k, data := next(); k == kind && data.SessionID == id {
				return
			}
		}
	}
	for k, _ := next(); k != "open"; k, _ = next() {
	}
	var ids []string
	for i, signal := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM, nil} {
		one := s.waits("a" + string(rune('0'+i)))
		two := s.waits("b" + string(rune('0'+i)))
		ids = append(ids, one.Session.SessionID, two.Session.SessionID)
		until(one.Session.SessionID, "session_created")
		s.rules(200, one, nil) // what comes of it may be on its way when the server ends
		if signal != nil {
			s.end(signal, 0)
			d.run(0, "decide", two.Session.SessionID, "on", "--quiet") // while nobody serves
			s = d.serve("--listen", at)
			continue
		}
		s.rules(200, two, nil)
	}
	until(ids[len(ids)-1], "ended")
	for _, id := range ids {
		var list struct{ Items []struct{ Seq int64 } }
		s.call(200, "GET", "/v1/sessions/"+id+"/events?after=0&kinds="+kinds, nil, &list)
		var want []int64
		for _, e := range list.Items {
			want = append(want, e.Seq)
		}
		if !slices.Equal(got[id], want) || len(want) < 3 {
			t.Errorf("of %s it has the events %v, and there are %v", id, got[id], want)
		}
	}
	if opened < 3 {
		t.Errorf("it connected %d times", opened)
	}
	s.end(syscall.SIGTERM, 0)
}

// TestMCPInspector: the inspector of the protocol's authors lists, calls and reads.
func TestMCPInspector(t *testing.T) {
	d := newDesk(t)
	s := d.serve()
	inspect := func(into any, args ...string) {
		t.Helper()
		script := filepath.Join("strangers", "node_modules", "@modelcontextprotocol", "inspector-cli", "build", "index.js")
		out := d.node(append([]string{script, s.url + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + s.key, "--method"}, args...)...)
		d.must(json.Unmarshal(out, into))
	}
	waiting := s.waits("inspected")
	var tools struct{ Tools []struct{ Name string } }
	if inspect(&tools, "tools/list"); len(tools.Tools) != 29 {
		t.Errorf("it lists %d tools", len(tools.Tools))
	}
	var called struct {
		StructuredContent struct{ Status string }
		IsError           bool
	}
	if inspect(&called, "tools/call", "--tool-name", "get_session", "--tool-arg", "sessionId="+waiting.Session.SessionID); called.IsError || called.StructuredContent.Status != "needs_human" {
		t.Errorf("it calls %+v", called)
	}
	if inspect(&called, "tools/call", "--tool-name", "get_session", "--tool-arg", "sessionId=none"); !called.IsError {
		t.Errorf("of a session that does not exist it is told %+v", called)
	}
	var read struct{ Contents []struct{ Text string } }
	if inspect(&read, "resources/read", "--uri", "dialai://inbox"); len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, waiting.Session.SessionID) {
		t.Errorf("it reads %+v", read)
	}
}

// TestMCPConformance: of the conformance suite of the protocol's authors all passes that is not
// for a server written for it; strangers/conformance.yaml says what is.
func TestMCPConformance(t *testing.T) {
	d := newDesk(t)
	s := d.serve("--auth", "none", "--rate-read", "0", "--rate-write", "0") // it has no key
	out := d.node(filepath.Join("strangers", "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", s.url+"/mcp", "--expected-failures", filepath.Join("strangers", "conformance.yaml"))
	for _, scenario := range []string{"server-initialize: 1", "ping: 1", "tools-list: 1", "resources-list: 1", "prompts-list: 1", "dns-rebinding-protection: 2"} {
		if !strings.Contains(string(out), scenario+" passed, 0 failed") {
			t.Errorf("%s has not passed:\n%s", scenario, out)
		}
	}
}
