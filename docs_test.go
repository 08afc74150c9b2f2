package dialai_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

//go:generate go test -run ^(TestPicture|TestTutorials)$ -update .

var update = flag.Bool("update", false, "write what is generated")

// fences returns the fenced blocks of a Markdown file that are in a language.
func fences(t *testing.T, path, language string) (blocks []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no %s block", path, language)
	}
	return blocks
}

// A shell runs the console blocks of a document: one shell after the other in one
// environment, with a store of its own.
type shell struct {
	*testing.T
	dir    string
	env    []string
	folder string            // in which commands run; "" is the folder of the test
	ids    map[string]string // what the document calls an id, and what it really was

	address, machine string // of the example service, and of the machine that asks it
}

// TestReadme runs every command of README's console blocks and compares what it
// prints with what README says it prints. Ids and times differ; an id that
// README shows stands for the one that was printed in its place.
func TestReadme(t *testing.T) {
	s := newShell(t)
	s.serve()
	for _, block := range fences(t, "README.md", "console") {
		s.block(block)
	}
}

// TestNotifications does the same with docs/notifications.md, whose secret and webhook are cut short.
func TestNotifications(t *testing.T) {
	s := newShell(t)
	made := regexp.MustCompile(`(whsec_|wh_)[0-9A-Za-z+/=]+`)
	for _, block := range fences(t, "docs/notifications.md", "console") {
		line, want, _ := strings.Cut(strings.TrimPrefix(block, "$ "), "\n")
		if got := made.ReplaceAllString(s.run(line), "$1…"); got != want {
			t.Errorf("$ %s\nprints\n%s\nthe guide says\n%s", line, got, want)
		}
	}
}

// built returns the path of the program, which is built once.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "dialai")
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/dialai").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// programs is the folder of what is built, which goes when all tests are over.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "dialai"); err != nil {
		panic(err)
	}
	code := pgtest.Main(m)
	os.RemoveAll(programs)
	os.Exit(code)
}

// newShell builds the program and returns a shell that finds it.
func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{T: t, dir: t.TempDir(), ids: map[string]string{}}
	program, err := built()
	if err == nil {
		err = os.Symlink(program, filepath.Join(s.dir, "dialai"))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "PATH="+s.dir+string(os.PathListSeparator)+os.Getenv("PATH"), "XDG_DATA_HOME="+filepath.Join(s.dir, "data"), "NO_COLOR=1")
	return s
}

func (s *shell) must(name string, args ...string) {
	s.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		s.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// readmeAddress is where README has its example service.
const readmeAddress = "127.0.0.1:8787"

// serve starts the example service that README says to start, at an address that
// is free, and makes a copy of the machine that asks it there.
func (s *shell) serve() {
	s.Helper()
	service := filepath.Join(s.dir, "service")
	s.must("go", "build", "-o", service, "./examples/webhook-proposer")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.address = free.Addr().String()
	free.Close()
	text, err := os.ReadFile("machines/code-review.json")
	if err != nil {
		s.Fatal(err)
	}
	s.machine = filepath.Join(s.dir, "code-review.json")
	if err := os.WriteFile(s.machine, []byte(strings.ReplaceAll(string(text), readmeAddress, s.address)), 0o600); err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(service, "-addr", s.address)
	cmd.Env = append(os.Environ(), "REVIEW_WEBHOOK_TOKEN=secret")
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 64)); err != nil { // "listening on …"
		s.Fatal(err)
	}
}

var (
	idPattern    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{12}\b|\b[0-9a-f]{8}\b`) // of sessions whole and as they are printed, and of questions as commands state them
	agePattern   = regexp.MustCompile(`  \d+[sm]  +`)
	clockPattern = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `) // of lines that tell what happens
	timePattern  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
)

// block runs one console block.
func (s *shell) block(block string) {
	s.Helper()
	for _, part := range regexp.MustCompile(`(?m)^\$ `).Split(block, -1)[1:] {
		line, want, _ := strings.Cut(part, "\n")
		line = strings.NewReplacer(readmeAddress, s.address, "machines/code-review.json", s.machine).Replace(line)
		if assignments, ok := strings.CutPrefix(line, "export "); ok {
			s.env = append(s.env, strings.Fields(assignments)...)
			continue
		}
		out := s.run(s.real(line))
		s.learn(want, out)
		if got, want := plain(out), plain(want); got != want {
			s.Errorf("$ %s\nprints\n%s\nREADME says\n%s", line, got, want)
		}
	}
}

// real returns a command with the ids of the document replaced by those that were
// printed in their place.
func (s *shell) real(line string) string {
	s.Helper()
	return idPattern.ReplaceAllStringFunc(line, func(id string) string {
		if s.ids[id] == "" {
			s.Fatalf("the document uses the id %s before it shows it", id)
		}
		return s.ids[id]
	})
}

// run returns what a command prints, whatever its exit code.
func (s *shell) run(command string) string {
	s.Helper()
	if m := curl.FindStringSubmatch(command); m != nil {
		return s.post(m[1], m[2], m[3], m[4])
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = s.folder, s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Run()
	return out.String()
}

// curl is the one form in which README uses curl; the test does the same itself,
// so that it needs nothing but Go.
var curl = regexp.MustCompile(`^curl -s -u (\w[\w-]*):(\w+) -d '([^']*)' (http://\S+)$`)

func (s *shell) post(user, password, body, url string) string {
	s.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(answer)
}

// learn pairs the ids of the document with those that were printed.
func (s *shell) learn(want, got string) {
	shown, real := idPattern.FindAllString(want, -1), idPattern.FindAllString(got, -1)
	for i := range min(len(shown), len(real)) {
		if known := s.ids[shown[i]]; known != "" && known != real[i] {
			s.Errorf("the document shows %s for two different ids", shown[i])
		}
		s.ids[shown[i]] = real[i]
		if len(shown[i]) > 8 && len(real[i]) > 8 {
			s.ids[shown[i][:8]] = real[i][:8]
		}
	}
}

// keyedPattern is a digest under the secret of a store.
var keyedPattern = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// madePattern is a folder that mktemp has made.
var madePattern = regexp.MustCompile(`(/var/folders|/tmp)/\S+`)

func plain(s string) string {
	s = madePattern.ReplaceAllString(s, "FOLDER")
	s = keyedPattern.ReplaceAllString(s, "DIGEST")
	s = clockPattern.ReplaceAllString(s, lineClock)
	s = timePattern.ReplaceAllString(idPattern.ReplaceAllString(s, "ID"), "TIME")
	return agePattern.ReplaceAllString(s, "  AGE  ")
}

// TestReadmeGo compares README's Go with the example it was taken from, byte for
// byte.
func TestReadmeGo(t *testing.T) {
	source, err := os.ReadFile("examples/embed/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range fences(t, "README.md", "go") {
		if !strings.Contains(string(source), block) {
			t.Errorf("README's block is not in examples/embed/main.go:\n%s", block)
		}
	}
}

// TestReadmeTestCommand checks that CI runs the very command that README gives.
func TestReadmeTestCommand(t *testing.T) {
	ci, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	command := strings.TrimSpace(fences(t, "README.md", "sh")[0])
	if !strings.Contains(string(ci), "\n"+command+"\n") {
		t.Errorf(".ci/run does not call README's %q", command)
	}
}

// TestContributing checks that the commands it names exist and that CI runs them.
func TestContributing(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(fences(t, "CONTRIBUTING.md", "sh")[0]) {
		command, _, _ := strings.Cut(line, "#")
		target := strings.TrimPrefix(strings.TrimSpace(command), "make ")
		if !regexp.MustCompile(`(?m)^` + target + `:.*## `).Match(makefile) {
			t.Errorf("CONTRIBUTING names %q, which the Makefile does not have", target)
		}
	}
}

// TestLinks checks that every file a document links to exists.
func TestLinks(t *testing.T) {
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	documents = append(documents, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
	for _, path := range documents {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
		}
	}
}

// TestArchitecture checks that every file and name that ARCHITECTURE quotes
// exists, each name in the file that is quoted beside it or somewhere in the tree.
func TestArchitecture(t *testing.T) {
	data, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, s := range sources(t) {
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	quoted := 0
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(data), -1) {
		name := m[1]
		switch {
		case strings.Contains(name, "/") || strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".md"):
			if _, err := os.Stat(strings.Split(name, " ")[0]); err != nil && !strings.HasPrefix(name, "dialai ") {
				t.Errorf("ARCHITECTURE quotes %s: %v", name, err)
			}
		case regexp.MustCompile(`^[A-Za-z]+(\.[A-Za-z]+)?$`).MatchString(name):
			last := name[strings.LastIndexByte(name, '.')+1:]
			if !regexp.MustCompile(`\b` + last + `\b`).MatchString(code.String()) {
				t.Errorf("ARCHITECTURE quotes %s, which no file mentions", name)
			}
			quoted++
		}
	}
	if quoted < 20 {
		t.Errorf("only %d names quoted: the test does not see them", quoted)
	}
}

// TestPicture draws README's picture, a round in progress, and compares it with
// the committed one.
func TestPicture(t *testing.T) {
	picture := drawRound(t)
	const path = "docs/round.svg"
	if *update {
		if err := os.WriteFile(path, picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, picture) {
		t.Errorf("%s is not what the program draws; run go generate", path)
	}
}

// drawRound runs the sample that sorts posts until its panel has earned some
// trust and disagrees.
func drawRound(t *testing.T) []byte {
	t.Helper()
	ctx := context.Background()
	m, err := machine.Parse("picture.json", []byte(`{ "machineName": "content-moderation", "initialState": "posted", "goalState": "published", "consensusThreshold": 0.5,
		"states": {
			"posted": { "prompt": "May this post stay up?", "transitions": { "publish": "published", "age_gate": "published", "remove": "removed" } },
			"removed": { "prompt": "The author may appeal.", "transitions": { "restore": "published", "uphold": "closed" }, "specialists": [ { "role": "proposer", "specialistId": "moderator" } ] },
			"closed": { "final": true }, "published": {} },
		"specialists": [
			{ "role": "proposer", "specialistId": "toxicity", "strategyFn": "= metaJson.toxicity > 0.8 ? \"remove\" : \"publish\"" },
			{ "role": "proposer", "specialistId": "spam", "strategyFn": "= metaJson.spam > 0.9 ? \"remove\" : \"publish\"" },
			{ "role": "proposer", "specialistId": "reports", "strategyFn": "= metaJson.reports >= 10.0 ? \"age_gate\" : \"publish\"" },
			{ "role": "proposer", "specialistId": "moderator", "isHuman": true },
			{ "role": "arbiter", "specialistId": "weighted", "strategyFnName": "alignmentMargin" } ] }`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{Store: store.NewMemory()})
	if err != nil {
		t.Fatal(err)
	}
	run := func(meta string) *session.Session {
		s, err := r.Start(ctx, m, runner.StartOptions{Meta: []byte(meta)})
		if err != nil {
			t.Fatal(err)
		}
		tick, err := r.Step(ctx, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		return tick.Session
	}
	for i := range 9 { // a moderator settles some posts, and the panel learns
		transition := []string{"publish", "remove", "publish"}[i%3]
		s, err := r.Start(ctx, m, runner.StartOptions{Meta: []byte(fmt.Sprintf(`{"toxicity":%d,"spam":%d,"reports":%d}`, i%3%2, i%3%2, 20*(i%4/3)))})
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"toxicity", "spam", "reports"} {
			if _, _, err := r.Propose(ctx, runner.Submission{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: machine.SpecialistID(who)}); err != nil {
				t.Fatal(err)
			}
		}
		if a, err := r.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: runner.CurrentRound, SpecialistID: "moderator", TransitionName: transition}); err != nil || !a.Executed {
			t.Fatal(err, a.GuardReason)
		}
	}
	s := run(`{"toxicity":0.2,"spam":0.95,"reports":12}`)
	if s.Status != session.NeedsHuman {
		t.Fatalf("the panel agrees: %s", s.Status)
	}
	weights, err := r.Weights(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	v := graph.View{State: s.State.Name, Status: s.Status.String(), Round: &graph.Round{Number: 1, Prompt: s.State.Prompt, Verdict: s.Outcome().Reason}}
	for _, p := range s.Proposals() {
		v.Round.Proposals = append(v.Round.Proposals, graph.Proposal{Specialist: p.SpecialistID, Human: p.IsHuman, Transition: p.Transition.Name, Weight: weights[p.SpecialistID]})
	}
	return graph.SVG(m, v)
}
