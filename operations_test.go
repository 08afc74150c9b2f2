package dialai_test

import (
	"bufio"
	"context"
	"debug/elf"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/telemetry/prom"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// TestOperationsNamesMetrics: every metric that docs/operations.md names is one of the server's,
// with the labels that it is said to have, and there is none that it does not name.
func TestOperationsNamesMetrics(t *testing.T) {
	m, err := prom.New(prom.Config{
		Live: func(context.Context) ([]session.LiveCount, error) {
			return []session.LiveCount{{MachineName: "m", Status: session.NeedsHuman, Sessions: 1}}, nil
		},
		Driver:  func() ([]prom.Load, bool) { return []prom.Load{{Tenant: "default", Ready: 1, Busy: 1}}, true },
		Backlog: func() int64 { return 1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	use(t, m)
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	known := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (dialai_\w+) `).FindAllStringSubmatch(w.Body.String(), -1) {
		known[line[1]] = true
	}
	text, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`dialai_\w+`).FindAllString(string(text), -1) {
		if name = strings.TrimSuffix(name, "_bucket"); !known[name] {
			t.Errorf("docs/operations.md names %s, which there is not", name)
		}
		named[name] = true
	}
	for name := range known {
		if !named[name] {
			t.Errorf("docs/operations.md does not name %s", name)
		}
	}
	for _, use := range regexp.MustCompile(`(dialai_\w+?)(_bucket)?\{(\w+)=`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(use[1] + `\{[^}]*\b` + use[3] + `="`).MatchString(w.Body.String()) {
			t.Errorf("%s has no label %s", use[1], use[3])
		}
	}
}

// use has everything counted once.
func use(t *testing.T, m *prom.Metrics) {
	t.Helper()
	ctx := t.Context()
	m.Request(ctx)("/v1", "GET", 200, false, 0)
	m.CaughtUp(ctx, "all")
	m.Delivered("dead")
	m.AuthFailed(ctx, true)
	m.RateLimited(ctx, "read")
	m.Callback(ctx, "accepted")
	m.Replayed(ctx, "/v1/sessions")
	m.Stream(ctx, "session")(true)
	m.Tool(ctx, "tools/call", "tick", "ok")
	m.Stepped("default", "m", runner.TickAdvanced, nil, 0, 0)
	m.Stepped("default", "m", "", context.Canceled, 0, 0)
	m.Transaction(1, 0, nil)
	m.Transaction(1, 0, context.Canceled)
	commit(t, m)
}

// commit has a session committed in which everything happens that is counted.
func commit(t *testing.T, m *prom.Metrics) {
	t.Helper()
	answers := specialist.ProposerFunc(func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: "on", Usage: specialist.Usage{CostUSD: 1, LatencyMsec: 5, NumInputTokens: 1, NumOutputTokens: 1,
			Given: specialist.CostGiven | specialist.LatencyGiven | specialist.InputGiven | specialist.OutputGiven}}, nil
	})
	r, err := runner.New(runner.Config{Store: store.NewMemory(), Observer: m.Committed, Resolver: strategies.Registry{}.WithProposer("answers", answers)})
	if err != nil {
		t.Fatal(err)
	}
	def, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"done","states":{"a":{"transitions":{"on":"b"}},"b":{"transitions":{"on":"done"}},"done":{}},
		"specialists":[{"role":"proposer","specialistId":"p","strategyFn":"answers"},{"role":"proposer","specialistId":"carol","isHuman":true},{"role":"arbiter","specialistId":"x","strategyFnName":"firstProposal"}]}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Start(t.Context(), def, runner.StartOptions{})
	if err == nil {
		_, err = r.Step(t.Context(), s.ID)
	}
	if err == nil {
		_, err = r.Decide(t.Context(), runner.Ruling{SessionID: s.ID, SpecialistID: "carol", RoundID: runner.CurrentRound, TransitionName: "on", Reasoning: "seen"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// instructions returns the instructions of the Containerfile, each whole: its word and the rest.
func instructions(t *testing.T) (list [][2]string) {
	t.Helper()
	text, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			word, rest, _ := strings.Cut(line, " ")
			list = append(list, [2]string{word, rest})
		}
	}
	return list
}

// TestContainerfile: the image has a static binary, a user who is not root, and a health check
// that a server answers which is started as the image starts it. No builder is needed: the
// steps are done here.
func TestContainerfile(t *testing.T) {
	t.Parallel()
	last := map[string]string{}
	build := ""
	for _, in := range instructions(t) {
		word, rest := in[0], in[1]
		if !slices.Contains([]string{"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}, word) || rest == "" {
			t.Errorf("%s is no instruction, or has nothing behind it", word)
		}
		if word == "COPY" && !strings.Contains(rest, "--from=") {
			for _, name := range strings.Fields(rest)[:len(strings.Fields(rest))-1] {
				if _, err := os.Stat(name); err != nil {
					t.Errorf("COPY %s: %v", rest, err)
				}
			}
		}
		if word == "RUN" && strings.Contains(rest, "go build") {
			build = rest
		}
		last[word] = rest
	}
	if user, _, _ := strings.Cut(last["USER"], ":"); user == "" || user == "0" || user == "root" {
		t.Errorf("the image runs as %q", user)
	}
	if testing.Short() {
		t.Skip("building the binary of the image takes long")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "dialai")
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(build, "/dialai ", binary+" "))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	checkStatic(t, binary)
	var args []string
	if err := json.Unmarshal([]byte(last["CMD"]), &args); err != nil {
		t.Fatalf("CMD %s: %v", last["CMD"], err)
	}
	for i := range args {
		args[i] = strings.NewReplacer("/data/", dir+"/", "0.0.0.0:8420", "127.0.0.1:0").Replace(args[i])
	}
	address := serveAsImage(t, binary, append(args, "--json"))
	_, path, _ := strings.Cut(last["HEALTHCHECK"], "127.0.0.1:8420")
	if !strings.Contains(textAt(t, address+path), "ok") {
		t.Errorf("%s%s does not answer ok", address, path)
	}
}

// checkStatic fails unless a binary needs nothing else.
func checkStatic(t *testing.T, binary string) {
	t.Helper()
	f, err := elf.Open(binary)
	if err != nil {
		t.Skip("binaries are no ELF here, which the image's is: " + err.Error())
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the binary needs %v (%v)", libraries, err)
	}
}

// serveAsImage starts a server and returns its address.
func serveAsImage(t *testing.T, binary string, args []string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(append(os.Environ(), "DIALAI_API_TOKEN=a-secret-that-is-long-enough", "HOME="+t.TempDir()), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var serving struct{ URLs []string }
	if err != nil || json.Unmarshal(line, &serving) != nil || len(serving.URLs) != 1 {
		t.Fatalf("serve says %s (%v)", line, err)
	}
	return serving.URLs[0]
}

// textAt returns what is at an address.
func textAt(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", url, resp.StatusCode, err)
	}
	return string(text)
}
