package dialai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whatever leaves the program goes through the transport of package webhook,
// which keeps it away from private addresses. So nobody else may make a client
// or a connection.

// outboundHome is the folder that may.
const outboundHome = "webhook"

// outboundCallers are the folders that make clients of their own, and why.
var outboundCallers = map[string]string{
	"client":          "calls the one server that a program names, and nobody else: its tests hold that",
	"desk/desktest":   "calls the server that a test has started",
	"internal/issuer": "asks an issuer for its keys, and for who has logged in, through the client of package webhook that it is given",
	"internal/proxy":  "puts a token before the client of package webhook that it is given",
}

// outboundServers are the folders that may import net/http, to serve, and why.
var outboundServers = map[string]string{
	"server":                    "is what serves",
	"desk":                      "serves the files of a page",
	"internal/telemetry/prom":   "writes what a server shows",
	"internal/telemetry/spans":  "reads which trace a request belongs to",
	"server/mcp":                "is what serves",
	"examples/chat-notifier":    "is the other side of a webhook",
	"examples/webhook-arbiter":  "is the other side of a webhook",
	"agent/agenttest":           "is the other side of an agent's provider",
	"llm/llmtest":               "is the other side of a model's API",
	"examples/webhook-proposer": "is the other side of a webhook",
}

// outboundNames are the names that make a connection or a client, by import
// path. An import of which every name does is listed with "*".
var outboundNames = map[string][]string{
	"net/http": {
		"Client", "Transport", "DefaultClient", "DefaultTransport", "RoundTripper", "NewFileTransport", "NewFileTransportFS", "ProxyFromEnvironment",
		"Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext", "ClientConn",
	},
	"net": {
		"Dial", "DialIP", "DialTCP", "DialTimeout", "DialUDP", "Dialer", "FileConn", "FilePacketConn", "ListenUDP", "ListenPacket", "ListenIP", "ListenMulticastUDP", "ListenUnixgram", "Resolver", "DefaultResolver",
		"LookupAddr", "LookupCNAME", "LookupHost", "LookupIP", "LookupMX", "LookupNS", "LookupPort", "LookupSRV", "LookupTXT", "ResolveIPAddr", "ResolveTCPAddr", "ResolveUDPAddr",
	},
	"crypto/tls":        {"Client", "Dial", "DialWithDialer", "Dialer"},
	"syscall":           {"Connect", "Socket", "Sendto"},
	"net/http/httptest": {"*"},
	"net/http/httputil": {"*"},
	"net/textproto":     {"Dial"},
	"net/rpc":           {"*"},
	"net/rpc/jsonrpc":   {"*"},
	"net/smtp":          {"*"},
	"log/syslog":        {"*"},
	"golang.org/x/net":  {"*"}, // and all below it, but for what only bounds a listener
	"golang.org/x/sys":  {"*"},

	"golang.org/x/net/netutil": {},
}

func TestOneOutboundClient(t *testing.T) {
	uses := map[string]bool{} // of net/http, by folder
	for _, s := range sources(t) {
		uses[s.pkg] = uses[s.pkg] || slices.Contains(importsOf(s.file), "net/http")
		if s.pkg == outboundHome || outboundCallers[s.pkg] != "" {
			continue
		}
		for _, problem := range outbound(s.fset, s.file, outboundServers[s.pkg] != "") {
			t.Error(problem)
		}
	}
	for folder := range outboundServers {
		if !uses[folder] {
			t.Errorf("%s is listed as a server and is none", folder)
		}
	}
	for folder := range outboundCallers {
		if !uses[folder] {
			t.Errorf("%s is listed as a client and is none", folder)
		}
	}
	if !uses[outboundHome] {
		t.Errorf("%s does not import net/http: the client must be somewhere else", outboundHome)
	}
}

// outbound returns what in a file makes a client or a connection.
func outbound(files *token.FileSet, f *ast.File, serves bool) (problems []string) {
	report := func(at token.Pos, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: ", files.Position(at))+fmt.Sprintf(format, args...)+"; outbound calls belong to package webhook")
	}
	imported := map[string]string{} // path by the name it has in the file
	for _, spec := range f.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		names := outboundNames[path]
		for root := range outboundNames {
			if names == nil && strings.HasPrefix(path, root+"/") && slices.Equal(outboundNames[root], []string{"*"}) {
				names = outboundNames[root]
			}
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		switch {
		case names == nil:
		case slices.Contains(names, "*"):
			report(spec.Pos(), "imports %s", path)
		case path == "net/http" && !serves:
			report(spec.Pos(), "imports %s and is not listed as a server", path)
		case name == ".":
			report(spec.Pos(), "imports the names of %s", path)
		default:
			imported[name] = path
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains(outboundNames[imported[x.Name]], s.Sel.Name) {
			report(s.Pos(), "uses %s.%s", imported[x.Name], s.Sel.Name)
		}
		return true
	})
	return problems
}

// The test above sees what it is to see.
func TestOutboundIsSeen(t *testing.T) {
	for _, c := range []struct {
		serves  bool
		source  string
		problem string // "" for none
	}{
		{true, `import "net/http"; var _ = http.Server{}; func f(w http.ResponseWriter, r *http.Request) { http.Error(w, "", http.StatusOK) }`, ""},
		{false, `import "net/http"; var _ = http.StatusOK`, "imports net/http and is not listed as a server"},
		{true, `import "net/http"; var c = &http.Client{}`, "uses net/http.Client"},
		{true, `import "net/http"; var c http.Client`, "uses net/http.Client"},
		{true, `import web "net/http"; func f() { web.Get("x") }`, "uses net/http.Get"},
		{true, `import . "net/http"; func f() { Get("x") }`, "imports the names of net/http"},
		{true, `import "net/http"; var get = http.DefaultClient.Do`, "uses net/http.DefaultClient"},
		{true, `import "net/http"; var t = http.DefaultTransport`, "uses net/http.DefaultTransport"},
		{true, `import "net/http"; type t struct { http.Transport }`, "uses net/http.Transport"},
		{true, `import "net/http"; func f() { http.PostForm("x", nil) }`, "uses net/http.PostForm"},
		{false, `import "net"; var l, _ = net.Listen("tcp", ":0"); var ip = net.ParseIP("::1")`, ""},
		{false, `import "net"; func f() { net.Dial("tcp", "x:1") }`, "uses net.Dial"},
		{false, `import n "net"; var d n.Dialer`, "uses net.Dialer"},
		{false, `import "net"; func f() { net.DialUnix("unix", nil, nil) }`, ""}, // a socket of this machine is no way out of it
		{false, `import "net"; func f() { net.LookupHost("x") }`, "uses net.LookupHost"},
		{false, `import "crypto/tls"; func f() { tls.Dial("tcp", "x:1", nil) }`, "uses crypto/tls.Dial"},
		{false, `import "syscall"; func f() { syscall.Connect(1, nil) }`, "uses syscall.Connect"},
		{false, `import "net/rpc"`, "imports net/rpc"},
		{true, `import _ "net/http/httputil"`, "imports net/http/httputil"},
		{false, `import "golang.org/x/net/websocket"`, "imports golang.org/x/net/websocket"},
		{false, `import "net/url"; import "net/netip"; var Client, Dial = url.Parse, netip.ParseAddr`, ""},
		{false, `type web struct{}; func (web) Get() {}; func f(http web) { http.Get() }`, ""},
	} {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, "x.go", "package x; "+c.source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		problems := strings.Join(outbound(files, f, c.serves), "\n")
		if c.problem == "" && problems != "" || !strings.Contains(problems, c.problem) {
			t.Errorf("%s\n%q, want %q", c.source, problems, c.problem)
		}
	}
}

// outboundTypes are the types whose methods and fields make calls or change how
// they are made, by import path. Whoever has got such a value from somewhere does
// not need to import its package.
var outboundTypes = map[string][]string{
	"net/http": {"Client", "Transport", "ClientConn"},
	"net":      {"Dialer", "Resolver"},
}

// outboundBuilders are where in package webhook each of them is made: once.
var outboundBuilders = map[string]string{
	"net/http.Transport": "webhook/policy.go",
	"net/http.Client":    "webhook/outbound.go",
	"net.Dialer":         "webhook/policy.go",
}

// A listed package is one of "go list".
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// list returns all packages that the module is made of, built as they are now.
func list(t *testing.T) (all []listed) {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,Module", "./...")
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

// compiled returns what imports packages as they were built.
func compiled(files *token.FileSet, all []listed) types.Importer {
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("it does not compile")
		}
		return os.Open(exports[path])
	})
}

// TestOneOutboundClientByType asks the compiler what every name in the module
// is, so that no alias, embedding, shadowing or value from elsewhere hides a
// call.
func TestOneOutboundClientByType(t *testing.T) {
	all := list(t)
	built, seen := map[string][]string{}, 0
	for _, p := range all {
		if p.Module == nil || !p.Module.Main || len(p.GoFiles) == 0 || outboundCallers[strings.TrimPrefix(p.ImportPath, module+"/")] != "" {
			continue
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, f)
		}
		uses, err := outboundByType(files, p.ImportPath, parsed, compiled(files, all))
		if err != nil {
			t.Errorf("%s: %v: nothing is known of a package that does not compile", p.ImportPath, err)
			continue
		}
		seen++
		for _, u := range uses {
			if p.ImportPath != module+"/"+outboundHome {
				t.Errorf("%s uses %s; outbound calls belong to package webhook", u.at, u.name)
			} else if u.builds {
				name, _ := filepath.Rel(filepath.Dir(p.Dir), u.at.Filename)
				built[u.name] = append(built[u.name], filepath.ToSlash(name))
			}
		}
	}
	if seen < 15 {
		t.Fatalf("only %d packages found: the test does not see the module", seen)
	}
	for name, places := range built {
		if len(places) != 1 || places[0] != outboundBuilders[name] {
			t.Errorf("%s is made in %v, want once, in %q", name, places, outboundBuilders[name])
		}
	}
	for name := range outboundBuilders {
		if built[name] == nil {
			t.Errorf("%s is listed and made nowhere", name)
		}
	}
}

// An outboundUse is a name that stands for a way out.
type outboundUse struct {
	at     token.Position
	name   string
	builds bool // a value of a type, by a literal or new
}

// outboundByType checks the files of a package and returns its ways out.
func outboundByType(files *token.FileSet, path string, parsed []*ast.File, from types.Importer) (uses []outboundUse, err error) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := (&types.Config{Importer: from}).Check(path, files, parsed, info); err != nil {
		return nil, err
	}
	add := func(at ast.Node, name string, builds bool) {
		uses = append(uses, outboundUse{files.Position(at.Pos()), name, builds})
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				o := info.Uses[n]
				if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
					return true
				}
				if slices.Contains(outboundNames[o.Pkg().Path()], o.Name()) {
					add(n, o.Pkg().Path()+"."+o.Name(), false)
				}
			case *ast.SelectorExpr:
				if s := info.Selections[n]; s != nil {
					for _, of := range []types.Type{s.Recv(), holder(s)} {
						if name := outboundType(of); name != "" {
							add(n, name, false)
							break
						}
					}
				}
			case *ast.CompositeLit:
				if name := outboundType(info.TypeOf(n)); name != "" {
					add(n, name, true)
				}
			case *ast.ValueSpec: // var d net.Dialer
				if name := outboundType(info.TypeOf(n.Type)); n.Type != nil && name != "" && len(n.Values) == 0 && !pointer(info.TypeOf(n.Type)) {
					add(n, name, true)
				}
			case *ast.CallExpr:
				if b, ok := info.Uses[calledName(n)].(*types.Builtin); ok && b.Name() == "new" {
					if name := outboundType(info.TypeOf(n)); name != "" {
						add(n, name, true)
					}
				}
			}
			return true
		})
	}
	return uses, nil
}

func calledName(c *ast.CallExpr) *ast.Ident {
	name, _ := c.Fun.(*ast.Ident)
	return name
}

// holder returns the type that a selected method belongs to, which may be
// embedded in the one that it is selected from.
func holder(s *types.Selection) types.Type {
	if f, ok := s.Obj().(*types.Func); ok && f.Signature().Recv() != nil {
		return f.Signature().Recv().Type()
	}
	return nil
}

func pointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// outboundType returns the full name of a type that makes calls, or "".
func outboundType(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if t == nil || !ok || named.Obj().Pkg() == nil {
		return ""
	}
	path, name := named.Obj().Pkg().Path(), named.Obj().Name()
	if !slices.Contains(outboundTypes[path], name) {
		return ""
	}
	return path + "." + name
}

// The test by type sees what the one by name cannot.
func TestOutboundTypesAreSeen(t *testing.T) {
	all := list(t)
	for source, want := range map[string]string{
		`import "net/http"; func f(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }`:                           "",
		`import "net/http"; func f(m *http.ServeMux) { m.Handle("/", nil); _ = http.Server{} }`:                       "",
		`import "net"; func f() (net.Listener, error) { return net.Listen("tcp", ":0") }`:                             "",
		`type d struct{}; func (d) Get(string) {}; func f() { http := d{}; http.Get("x") }`:                           "",
		`import . "net/http"; func f() { Get("x") }`:                                                                  "net/http.Get",
		`import "net/http"; func f() { get := http.Get; get("x") }`:                                                   "net/http.Get",
		`import "net/http"; type c = http.Client; func f() { new(c).Get("x") }`:                                       "net/http.Client builds",
		`import "net/http"; type c struct{ *http.Client }; func f(x c) { x.Get("x") }`:                                "net/http.Client",
		`import "net/http"; var c = []http.Client{{}}`:                                                                "net/http.Client builds",
		`import "net/http"; var c http.Client`:                                                                        "net/http.Client builds",
		`import "net"; func f() { var d net.Dialer; d.Dial("tcp", "x:1") }`:                                           "net.Dialer builds",
		`import "net"; func f() { (&net.Resolver{}).LookupHost(nil, "x") }`:                                           "net.Resolver builds",
		`import "` + module + `/webhook"; func f() { webhook.NewTransport(webhook.Policy{}).DialContext = nil }`:      "net/http.Transport",
		`import "` + module + `/webhook"; func f() { t := webhook.NewTransport(webhook.Policy{}); t.RoundTrip(nil) }`: "net/http.Transport",
	} {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, "x.go", "package x; "+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		uses, err := outboundByType(files, "x", []*ast.File{f}, compiled(files, all))
		if err != nil {
			t.Errorf("%s\n%v", source, err)
			continue
		}
		var got []string
		for _, u := range uses {
			text := u.name
			if u.builds {
				text += " builds"
			}
			got = append(got, text)
		}
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%s\n%q, want %q", source, got, want)
		}
	}
}
