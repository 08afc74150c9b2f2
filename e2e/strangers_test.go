package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients that others have written, in strangers: npm ci --prefix e2e/strangers installs them.

// stranger runs a script of one, which prints JSON.
func (d *desk) stranger(into any, script string, args ...string) {
	d.Helper()
	out := d.node(append([]string{filepath.Join("strangers", script)}, args...)...)
	if err := json.Unmarshal(out, into); err != nil {
		d.Fatalf("%s prints no JSON: %v\n%s", script, err, out)
	}
}

// node runs a script that ends well, and returns what it prints.
func (d *desk) node(args ...string) []byte {
	d.Helper()
	cmd := d.script(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		d.Fatalf("%s: %v\n%s%s", args[0], err, out.Bytes(), errs.Bytes())
	}
	return out.Bytes()
}

// script returns a script that can be run. Without Node.js, or where what others have written is
// not installed, the test is skipped; where CI is set it fails.
func (d *desk) script(args ...string) *exec.Cmd {
	d.Helper()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join("strangers", "node_modules"))
	}
	if err != nil {
		d.needsStrangers(err)
	}
	return exec.CommandContext(d.Context(), node, args...)
}

// needsStrangers skips a test that what others have written cannot be run for.
func (d *desk) needsStrangers(why error) {
	d.Helper()
	if os.Getenv("CI") != "" {
		d.Fatalf("CI runs what others have written: %v", why)
	}
	d.Skipf("what others have written needs Node.js and npm ci --prefix e2e/strangers: %v", why)
}

const asking = `{"machineName":"claims","initialState":"review","goalState":"paid",
	"states":{"review":{"prompt":"Pay?","transitions":{"pay":"paid","refuse":"refused"}},"paid":{},"refused":{"final":true}},
	"specialists":[{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"alignmentMargin"}]}`

// TestStrangersOfMCP: the SDKs of the protocol's own authors list, call and read over HTTP and as
// the parent of dialai mcp, in each era; whatever they say yes to, they rule nothing.
func TestStrangersOfMCP(t *testing.T) {
	d := newDesk(t)
	s := d.serve()
	started := d.command("mcp", "--elicit", "form")
	over := map[string]map[string]any{
		"HTTP":  {"url": s.url + "/mcp", "key": s.key},
		"stdio": {"command": started.Path, "args": started.Args[1:], "env": environment(started.Env)},
	}
	for _, client := range []struct {
		name string
		sdk  int
		mode any
	}{{"sdk 1", 1, nil}, {"client 2, legacy", 2, "legacy"}, {"client 2, auto", 2, "auto"}, {"client 2, pinned", 2, map[string]string{"pin": "2026-07-28"}}} {
		for transport, options := range over {
			t.Run(client.name+" over "+transport, func(t *testing.T) {
				given := map[string]any{"sdk": client.sdk, "mode": client.mode, "machine": json.RawMessage(asking), "transition": "pay", "target": "paid", "human": "carol"}
				for name, value := range options {
					given[name] = value
				}
				text, err := json.Marshal(given)
				if err != nil {
					t.Fatal(err)
				}
				var got struct {
					Server, Status, After string
					Tools, Prompts        []string
					Forms, Inbox          int
					Sessions              int
					Asked                 struct {
						Executed bool
						Code     string
					}
					Refused struct {
						IsError bool
						Content []struct{ Text string }
					}
				}
				own := *d
				own.T = t
				own.stranger(&got, "mcp.mjs", string(text))
				switch {
				case len(got.Tools) != 29 || !slices.IsSorted(got.Tools) || len(got.Prompts) != 3:
					t.Errorf("offered %v, %v", got.Tools, got.Prompts)
				case got.Status != "needs_human" || got.After != "review" || got.Asked.Executed || got.Inbox == 0 || got.Sessions == 0:
					t.Errorf("the session: %+v", got)
				case !got.Refused.IsError || len(got.Refused.Content) != 2:
					t.Errorf("refused with %+v", got.Refused)
				}
				if want := map[bool]string{true: "not_confirmed", false: "needs_confirmation"}[got.Forms > 0]; got.Asked.Code != want || transport == "stdio" && got.Forms != 1 {
					t.Errorf("%d forms, and %+v", got.Forms, got.Asked)
				}
			})
		}
	}
}

// environment returns variables as Node.js has them.
func environment(list []string) map[string]string {
	out := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		out[name] = value
	}
	return out
}

// fenced are the examples of a guide: a language, and a text.
var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// TestMCPSettings: what docs/mcp.md has to paste is read by a parser of its kind, and starts a
// program, or names an address of a server, that offers the tools.
func TestMCPSettings(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "docs", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Command, URL, Type string
		Args               []string
		Headers            map[string]string
	}
	var entries []entry
	for _, block := range fenced.FindAllSubmatch(guide, -1) {
		var settings struct{ MCPServers, Servers map[string]entry }
		switch string(block[1]) {
		case "json":
			if err := json.Unmarshal(block[2], &settings); err != nil {
				t.Errorf("%v in %s", err, block[2])
			}
		case "toml":
			var one entry
			for _, line := range strings.Split(string(block[2]), "\n") {
				name, value, _ := strings.Cut(line, " = ")
				into := map[string]any{"command": &one.Command, "args": &one.Args, "url": &one.URL}[name]
				if into != nil && json.Unmarshal([]byte(value), into) != nil {
					t.Errorf("%q", line)
				}
			}
			if one.URL != "" {
				one.Headers = map[string]string{"Authorization": "Bearer " + "${DIALAI_KEY}"}
			}
			settings.Servers = map[string]entry{"dialai": one}
		default:
			continue
		}
		for name, e := range settings.MCPServers {
			entries = append(entries, e)
			settings.Servers = map[string]entry{name: e}
		}
		if settings.MCPServers == nil {
			for _, e := range settings.Servers {
				entries = append(entries, e)
			}
		}
		if _, ok := settings.Servers["dialai"]; !ok {
			t.Errorf("no server is named dialai: %s", block[2])
		}
	}
	if len(entries) < 8 {
		t.Fatalf("the guide has %d settings", len(entries))
	}
	d := newDesk(t)
	served := d.serve()
	for _, e := range entries {
		var transport mcp.Transport
		switch {
		case e.Command == "dialai":
			cmd := d.command(e.Args...)
			transport = &mcp.CommandTransport{Command: cmd}
		case e.URL == "http://127.0.0.1:8420/mcp" && strings.HasPrefix(e.Headers["Authorization"], "Bearer ${"):
			transport = &mcp.StreamableClientTransport{Endpoint: strings.Replace(e.URL, "http://127.0.0.1:8420", served.url, 1), HTTPClient: &http.Client{Transport: bearer(served.key)}}
		default:
			t.Errorf("the guide has %+v", e)
			continue
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), transport, nil)
		if err != nil {
			t.Errorf("%+v: %v", e, err)
			continue
		}
		if list, err := session.ListTools(t.Context(), nil); err != nil || len(list.Tools) < 12 {
			t.Errorf("%+v offers %+v, %v", e, list, err)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// A bearer sends a key with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
