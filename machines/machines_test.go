package machines_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
	"github.com/dialai/dialai/webhook"
)

// load reads a sample and replaces texts in it: pairs of old and new.
func load(t testing.TB, name string, replace ...string) *machine.Machine {
	t.Helper()
	file, text, ok := machines.Read(name)
	if !ok {
		t.Fatalf("there is no sample %q", name)
	}
	m, err := machine.Parse(file, []byte(strings.NewReplacer(replace...).Replace(string(text))), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// everything is all files of this package but the Go ones.
func everything(t testing.TB) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.json", "*.yaml", "*.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return names
}

// TestListIsComplete: every file is listed once, under its own name, with a line
// about it.
func TestListIsComplete(t *testing.T) {
	files := []string{machines.Starter}
	for _, s := range machines.List() {
		files = append(files, s.File)
		if name := strings.TrimSuffix(s.File, filepath.Ext(s.File)); s.Name != name {
			t.Errorf("%s is listed as %q", s.File, s.Name)
		}
		if len(s.About) < 20 || len(s.About) > 80 || strings.ContainsAny(s.About, "\n\t") || strings.HasSuffix(s.About, ".") {
			t.Errorf("%s is described as %q", s.File, s.About)
		}
		if m := load(t, s.Name); m.Name() != s.Name {
			t.Errorf("%s holds the machine %q", s.File, m.Name())
		}
		byName, one, _ := machines.Read(s.Name)
		byFile, two, _ := machines.Read(s.File)
		disk, err := os.ReadFile(s.File)
		if err != nil || byName != s.File || byFile != s.File || string(one) != string(disk) || string(two) != string(disk) {
			t.Errorf("Read(%q) gives %s and Read(%q) %s (%v)", s.Name, byName, s.File, byFile, err)
		}
	}
	slices.Sort(files)
	if want := everything(t); !slices.Equal(files, want) {
		t.Errorf("listed are %v, want %v", files, want)
	}
	machines.List()[0].Name = "spoilt"
	if machines.List()[0].Name != "document-review" {
		t.Error("callers share the list")
	}
	for _, name := range []string{"", ".", "..", "nothing", "../go.mod", "machines.go", "./starter.yaml", `..\go.mod`, "document-review.yaml"} {
		if file, _, ok := machines.Read(name); ok {
			t.Errorf("Read(%q) gives %s", name, file)
		}
	}
}

// TestSamplesAreClean: no sample warns of anything, but the smallest: it is the
// file with which everybody begins, and one of its ends is meant to be a dead one.
func TestSamplesAreClean(t *testing.T) {
	for _, file := range everything(t) {
		var warnings []string
		for _, p := range load(t, file).Lint(machine.LintOptions{Priced: func(model string) bool { return llm.Checked(model) != "" }}) {
			warnings = append(warnings, p.Code+" "+p.Path)
		}
		want := []string(nil)
		if file == "document-review.json" {
			want = []string{"dead-end /states/rejected"}
		}
		if !slices.Equal(warnings, want) {
			t.Errorf("%s: %q, want %q", file, warnings, want)
		}
	}
}

// A run is one session of a sample, from start to end.
type run struct {
	as      string // who starts it
	meta    string
	rulings []string // "who transition", for each time a human is needed
	want    string   // the transitions, and then the end
}

// steps runs a session and returns what became of it: the transitions taken, the
// status, its code and the state.
func (r run) steps(t testing.TB, m *machine.Machine, c runner.Config) string {
	t.Helper()
	c.Store = store.NewMemory()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.Now = func() time.Time { return now }
	engine, err := runner.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	ctx := t.Context()
	o := runner.StartOptions{Seed: 7}
	if r.as != "" {
		o.Actor = &session.Actor{Subject: "test", Method: "test", Humans: []string{r.as}}
	}
	if r.meta != "" {
		o.Meta = json.RawMessage(r.meta)
	}
	s, err := engine.Start(ctx, m, o)
	if err != nil {
		t.Fatal(err)
	}
	carry := func() (result runner.Result) { // over all waits
		for err == nil {
			if result, err = engine.Run(ctx, s.ID, runner.RunOptions{MaxSteps: 100}); result.Code != session.CodeTimer || result.Status != runner.WaitingStatus {
				return result
			}
			now = result.Session.WakeAt().Time()
		}
		return result
	}
	result := carry()
	for _, ruling := range r.rulings {
		if ruling == "time" { // passes until something is due
			now = result.Session.DueAt().Time()
			result = carry()
			continue
		}
		if err != nil || result.Status != "needs_human" {
			t.Fatalf("before %q the session is %s (%v)", ruling, result.Status, err)
		}
		who, transition, _ := strings.Cut(ruling, " ")
		a, err := engine.Decide(ctx, runner.Ruling{SessionID: s.ID, RoundID: result.Session.Key().ID(), SpecialistID: machine.SpecialistID(who), TransitionName: transition})
		if err != nil || !a.Executed && !a.Recorded {
			t.Fatalf("%q: %s (%v)", ruling, a.GuardReason, err)
		}
		if result = carry(); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var path []string
	for _, e := range result.Session.History() {
		path = append(path, e.Transition.Name)
	}
	return fmt.Sprintf("%s = %s %s in %s", strings.Join(path, " "), result.Status, result.Code, result.Session.State.Name)
}

// TestSamplesRun runs every sample to each of its ends.
func TestSamplesRun(t *testing.T) {
	runs := map[string][]run{
		"document-review": {{want: "approve = completed goal in approved"}},
		"support-triage": {
			{meta: `{"topic":"invoice","urgent":false,"plan":"team"}`, want: "to_billing answer = completed goal in answered"},
			{meta: `{"topic":"bug","urgent":true}`, want: "to_technical page = completed final in escalated"},
			{meta: `{"topic":"bug"}`, want: "to_technical answer = completed goal in answered"},
			{meta: `{"topic":"idea","plan":"free"}`, want: "to_success answer = completed goal in answered"},
			{meta: `{"topic":"refund","urgent":true,"plan":"free"}`, want: " = needs_human no_consensus in new"}, // all three differ
			{meta: `{"topic":"refund","urgent":true,"plan":"free"}`, rulings: []string{"support-lead to_billing"}, want: "to_billing answer = completed goal in answered"},
		},
		"expense-approval": {
			{as: "ann", meta: `{"amount":250,"receipt":true}`, want: "accept approve pay = completed goal in paid"},
			{as: "ann", meta: `{"amount":250.01,"receipt":true}`, rulings: []string{"bob approve"}, want: "accept ask approve pay = completed goal in paid"},
			{as: "ann", meta: `{"amount":800,"receipt":true}`, rulings: []string{"ann reject"}, want: "accept ask reject = completed final in rejected"},
			{as: "ann", meta: `{"amount":1000.01,"receipt":true}`, rulings: []string{"cyd approve_large"}, want: "accept ask = needs_human approvals in finance"},
			{as: "ann", meta: `{"amount":4200,"receipt":true}`, rulings: []string{"cyd approve_large", "bob approve_large"}, want: "accept ask approve_large pay = completed goal in paid"},
			{as: "ann", meta: `{"amount":4200,"receipt":true}`, rulings: []string{"cyd approve_large", "time"}, want: "accept ask escalate = needs_human no_proposals in director"},
			{as: "ann", meta: `{"amount":4200,"receipt":true}`, rulings: []string{"time", "dora approve"}, want: "accept ask escalate approve pay = completed goal in paid"},
			{as: "eve", meta: `{"amount":4200,"receipt":true}`, rulings: []string{"ann approve_large", "bob approve_large"}, want: "accept ask approve_large pay = completed goal in paid"},
			{as: "ann", meta: `{"amount":80}`, want: "return = completed final in returned"},
			{as: "ann", want: "return = completed final in returned"},
		},
		"content-moderation": {
			{meta: `{"toxicity":0.1,"spam":0.1,"reports":0}`, want: "publish = completed goal in published"},
			{meta: `{"toxicity":0.6,"spam":0.1,"reports":1}`, want: "publish = completed goal in published"},
			{meta: `{"toxicity":0.6,"spam":0.95,"reports":1}`, rulings: []string{"moderator age_gate"}, want: "age_gate = completed goal in published"},
			{meta: `{"toxicity":0.9,"spam":0.1,"reports":12}`, rulings: []string{"moderator uphold"}, want: "remove uphold = completed final in closed"},
			{meta: `{"toxicity":0.9,"spam":0.95,"reports":0}`, rulings: []string{"moderator restore"}, want: "remove restore = completed goal in published"},
		},
		"data-labelling": { // nobody is trusted yet
			{meta: `{"text":"where is it?"}`, want: " = needs_human cold_start in unlabelled"},
			{meta: `{"text":"where is it?"}`, rulings: []string{"annotator question"}, want: "question store = completed goal in done"},
		},
		"refund-desk": { // nothing is known yet
			{meta: `{"amount":20,"reason":"damaged","orders":9}`, want: " = needs_human cold_start in claimed"},
			{meta: `{"amount":20,"reason":"damaged","orders":9}`, rulings: []string{"clerk refund"}, want: "refund = completed goal in closed"},
			{meta: `{"amount":240,"reason":"late"}`, rulings: []string{"clerk partly"}, want: "partly = completed goal in closed"},
		},
		"tool-approval": {
			{meta: `{"tool":"read_file","args":{},"digest":"d","reasons":[]}`, want: " = needs_human cold_start in asked"},
			{meta: `{"tool":"read_file","args":{},"digest":"d","reasons":[]}`, rulings: []string{"operator deny"}, want: "deny = completed goal in decided"},
			{meta: `{"tool":"write_file","args":{},"digest":"d","reasons":[]}`, rulings: []string{"operator allow"}, want: "allow = completed goal in decided"},
		},
		"permission": { // without its model; nothing is known yet
			{meta: prompted("shell", "", "true"), want: "shell = needs_human cold_start in shell"},
			{meta: prompted("shell", "", "true"), rulings: []string{"owner allow"}, want: "shell allow = completed goal in allowed"},
			{meta: prompted("shell", "allow", "false"), want: "allow = completed goal in allowed"},
			{meta: prompted("network", "deny", "false"), want: "deny = completed final in denied"},
			{meta: prompted("dangerous", "allow", "true"), want: "dangerous = needs_human no_proposals in dangerous"},
			{meta: prompted("dangerous", "allow", "true"), rulings: []string{"owner deny"}, want: "dangerous deny = completed final in denied"},
			{meta: prompted("question", "", "false"), want: "question = needs_human no_proposals in question"},
		},
		"undertaking": { // whoever drives agents plays the rest: package undertaking
			{meta: `{"task":"t","cwd":"/work"}`, want: " = waiting  in briefing"},
		},
		"undertaking-solo": { // likewise
			{meta: `{"task":"t","cwd":"/work"}`, want: " = waiting  in working"},
		},
		"incident-response": {
			{meta: `{"attemptsNeeded":1}`, want: "acknowledge bad_deploy applied check holds close = completed goal in resolved"},
			{meta: `{"attemptsNeeded":2}`, want: "acknowledge bad_deploy applied check still_failing bad_deploy applied check holds close = completed goal in resolved"},
			// The state is left six times without news, and then it is enough.
			{meta: `{"attemptsNeeded":9}`, want: "acknowledge " + strings.Repeat("bad_deploy applied check still_failing ", 5) + "bad_deploy applied check = stopped loop_state_cycle in verifying"},
		},
		"runaway-loop": {
			{want: "again again again = stopped batch_repeat in working"},
		},
		"release-pipeline": {
			{meta: `{"tests":"passed","risk":"low"}`, want: "build pass scan low canary promote finish = completed goal in released"},
			{meta: `{"tests":"passed","risk":"high"}`, rulings: []string{"release-manager go"}, want: "build pass scan high go canary promote finish = completed goal in released"},
			{meta: `{"tests":"passed","risk":"high"}`, rulings: []string{"release-manager no_go"}, want: "build pass scan high no_go = completed final in failed"},
			{meta: `{"tests":"red","risk":"low"}`, want: "build fail = completed final in failed"},
		},
		"custom-arbiter": {
			{want: " = needs_human no_consensus in draft"},
			{rulings: []string{"publisher publish"}, want: "publish = completed goal in published"},
			{rulings: []string{"publisher revise"}, want: "revise publish = completed goal in published"}, // then the sceptic agrees
		},
		machines.Starter: {
			{want: "publish = completed goal in published"},
			{meta: `{"words":100}`, want: "publish = completed goal in published"},
			{meta: `{"words":99}`, want: " = needs_human no_consensus in draft"},
			{meta: `{"words":99}`, rulings: []string{"editor publish"}, want: "publish = completed goal in published"},
			{meta: `{"words":99}`, rulings: []string{"editor revise", "editor discard"}, want: "revise discard = completed final in discarded"},
		},
	}
	config := runner.Config{Resolver: strategies.Registry{}.WithArbiter("countBased", arbiter.Func(countBased)).WithArbiter("seats", undertaking.Seats{}),
		Agents: func(*machine.Machine, *machine.Specialist) error { return nil }}
	for name, list := range runs {
		m := load(t, name, judge, "")
		for _, r := range list {
			if got := r.steps(t, m, config); got != r.want {
				t.Errorf("%s with %s and %q:\n%s, want\n%s", name, r.meta, r.rulings, got, r.want)
			}
		}
	}
	for _, s := range machines.List() {
		if _, covered := runs[s.Name]; !covered && s.Name != "code-review" && s.Name != "webhook-arbiter" && s.Name != "shared-budget" && modelSamples[s.Name].want == "" {
			t.Errorf("%s is not run", s.Name)
		}
	}
}

// judge is the model of the sample permission.
const judge = "      - { role: proposer, specialistId: judge, contextFn: sessionContext, modelId: anthropic/claude-haiku-4-5 }\n"

// prompted is the input of the sample permission.
func prompted(kind, listed, inside string) string {
	return fmt.Sprintf(`{"agent":"claude","agentSession":"s","tool":"Bash","kind":%q,"listed":%q,"input":{"command":"make"},"inputDigest":"d","cwd":"/work","inside":%s,"readOnly":false,"askedAt":"2026-11-27T08:00:00Z"}`, kind, listed, inside)
}

// countBased is the arbiter that custom-arbiter names: two ahead, or alone.
func countBased(_ context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	count := map[string]int{}
	best := map[string]int{}
	for i, v := range r.Votes {
		if count[v.Transition.Name]++; count[v.Transition.Name] == 1 {
			best[v.Transition.Name] = i
		}
	}
	for name, n := range count {
		ahead := true
		for other, m := range count {
			ahead = ahead && (other == name || n-m >= 2)
		}
		if ahead {
			return arbiter.Elect(best[name], "ahead"), nil
		}
	}
	return arbiter.None("nobody is ahead"), nil
}

// serve answers the webhooks of a sample on the loopback address. It returns the
// address, and a configuration that may call it.
func serve(t *testing.T, variable string, answer func(path string, asked map[string]any) string) (address string, c runner.Config) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked map[string]any
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Errorf("%s was sent %s", r.URL.Path, body)
		}
		if _, token, ok := r.BasicAuth(); !ok || token != "the token" {
			t.Errorf("%s was sent the token %q", r.URL.Path, token)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer(r.URL.Path, asked))
	}))
	t.Cleanup(server.Close)
	policy, err := webhook.ParsePolicy("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client := webhook.New(webhook.Config{Policy: policy, Lookup: func(name string) (string, bool) { return "the token", name == variable }})
	return strings.TrimPrefix(server.URL, "http://"), runner.Config{Resolver: client}
}

func TestCodeReviewRuns(t *testing.T) {
	var tests, review string
	address, config := serve(t, "REVIEW_WEBHOOK_TOKEN", func(path string, _ map[string]any) string {
		name := map[string]string{"/tests": tests, "/review": review}[path]
		return `{"transitionName":"` + name + `","reasoning":"as ` + path + ` says"}`
	})
	m := load(t, "code-review", "127.0.0.1:8787", address)
	for _, c := range []struct {
		tests, review string
		run
	}{
		{"merge", "merge", run{want: "merge = completed goal in merged"}},
		{"close", "close", run{want: "close = completed final in closed"}},
		{"merge", "request_changes", run{want: " = needs_human no_consensus in open"}},
		{"merge", "request_changes", run{rulings: []string{"maintainer merge"}, want: "merge = completed goal in merged"}},
		{"merge", "close", run{rulings: []string{"maintainer request_changes", "maintainer pushed", "maintainer close"}, want: "request_changes pushed close = completed final in closed"}},
		{"request_changes", "request_changes", run{rulings: []string{"maintainer abandon"}, want: "request_changes abandon = completed final in closed"}},
	} {
		tests, review = c.tests, c.review
		if got := c.steps(t, m, config); got != c.want {
			t.Errorf("tests say %s, the review says %s, with %q: %s, want %s", c.tests, c.review, c.rulings, got, c.want)
		}
	}
}

// TestSharedBudgetRuns: never are more asked at once than the budget could pay.
func TestSharedBudgetRuns(t *testing.T) {
	var mu sync.Mutex
	var choice string
	asked := 0
	address, config := serve(t, "REVIEW_WEBHOOK_TOKEN", func(string, map[string]any) string {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return `{"transitionName":"` + choice + `","reasoning":"as I see it","costUSD":0.012}`
	})
	m := load(t, "shared-budget", "127.0.0.1:8787", address)
	for _, c := range []struct {
		choice, want string
		asked        int
	}{
		{"merge", "merge = completed goal in merged", 3},
		{"request_changes", "request_changes pushed = stopped budget_usd in open", 3},
	} {
		choice, asked = c.choice, 0
		if got := (run{}).steps(t, m, config); got != c.want || asked != c.asked {
			t.Errorf("%s: %s, %d were asked; want %s, %d", c.choice, got, asked, c.want, c.asked)
		}
	}
}

func TestWebhookArbiterRuns(t *testing.T) {
	address, config := serve(t, "ARBITER_WEBHOOK_TOKEN", func(path string, asked map[string]any) string {
		proposals, _ := asked["proposals"].([]any)
		names := map[string]string{}
		for _, p := range proposals {
			p := p.(map[string]any)
			names[p["transitionName"].(string)] = p["proposalId"].(string)
		}
		if path != "/arbitrate" || len(proposals) != 2 {
			t.Errorf("%s was asked about %v", path, asked)
		}
		if len(names) > 1 {
			return `{"consensusReached":false,"reasoning":"they differ"}`
		}
		return `{"consensusReached":true,"winningProposalId":"` + names["grant"] + `","reasoning":"they agree"}`
	})
	m := load(t, "webhook-arbiter", "127.0.0.1:8790", address)
	for _, r := range []run{
		{meta: `{"purpose":"research"}`, want: "grant = completed goal in granted"},
		{meta: `{"purpose":"sales"}`, want: " = needs_human no_consensus in requested"},
		{rulings: []string{"data-steward deny"}, want: "deny = completed final in denied"},
	} {
		if got := r.steps(t, m, config); got != r.want {
			t.Errorf("%s: %s, want %s", r.meta, got, r.want)
		}
	}
}

var command = regexp.MustCompile(`(?m)^#\s+dialai (\S+\.yaml)((?: --as \S+)?)((?: --meta \S+)*)$`)

// TestCommandsInComments runs the commands that the files themselves suggest.
func TestCommandsInComments(t *testing.T) {
	want := map[string]string{
		"expense-approval.yaml --as ann --meta amount=80 --meta receipt=true":           "accept approve pay = completed goal in paid",
		"expense-approval.yaml --as ann --meta amount=800 --meta receipt=true":          "accept ask = needs_human no_proposals in finance",
		"expense-approval.yaml --as ann --meta amount=4200 --meta receipt=true":         "accept ask = needs_human no_proposals in finance",
		"incident-response.yaml --meta attemptsNeeded=2":                                "acknowledge bad_deploy applied check still_failing bad_deploy applied check holds close = completed goal in resolved",
		"release-pipeline.yaml --meta tests=passed --meta risk=low":                     "build pass scan low canary promote finish = completed goal in released",
		"release-pipeline.yaml --meta tests=passed --meta risk=high":                    "build pass scan high = needs_human no_proposals in approval",
		"support-triage.yaml --meta topic=invoice --meta urgent=false --meta plan=team": "to_billing answer = completed goal in answered",
		"runaway-loop.yaml": "again again again = stopped batch_repeat in working",
		"shared-budget.yaml --meta tests=passed --meta lines=40":  "merge = completed goal in merged",
		"shared-budget.yaml --meta tests=passed --meta lines=900": "request_changes pushed = stopped budget_usd in open",
		"starter.yaml":                  "publish = completed goal in published",
		"starter.yaml --meta words=800": "publish = completed goal in published",
		"refund-desk.yaml --meta order=A-17 --meta amount=20 --meta reason=late":          " = needs_human cold_start in claimed",
		"refund-desk.yaml --meta order=A-18 --meta amount=240 --meta reason=wrong_colour": " = needs_human cold_start in claimed",
	}
	address, config := serve(t, "REVIEW_WEBHOOK_TOKEN", func(_ string, asked map[string]any) string { // as examples/webhook-proposer
		name := "request_changes"
		if meta, _ := asked["metaJson"].(map[string]any); meta["lines"].(float64) <= 200 {
			name = "merge"
		}
		return `{"transitionName":"` + name + `","reasoning":"by its size","costUSD":0.012}`
	})
	for _, file := range everything(t) {
		_, text, _ := machines.Read(file)
		if modelSamples[strings.TrimSuffix(file, ".yaml")].want != "" {
			continue // those are replayed
		}
		for _, c := range command.FindAllStringSubmatch(string(text), -1) {
			meta := map[string]any{}
			for _, pair := range strings.Split(c[3], " --meta ")[1:] {
				name, value, _ := strings.Cut(pair, "=")
				var v any = value
				_ = json.Unmarshal([]byte(value), &v) // what is no JSON is text
				meta[name] = v
			}
			data, err := json.Marshal(meta)
			if err != nil {
				t.Fatal(err)
			}
			if c[1] != file {
				t.Errorf("%s suggests to run %s", file, c[1])
			}
			got := run{as: strings.TrimPrefix(c[2], " --as "), meta: string(data)}.steps(t, load(t, file, "127.0.0.1:8787", address), config)
			if got != want[c[1]+c[2]+c[3]] {
				t.Errorf("%s: %s, want %s", c[1]+c[2]+c[3], got, want[c[1]+c[2]+c[3]])
			}
			delete(want, c[1]+c[2]+c[3])
		}
	}
	if len(want) > 0 {
		t.Errorf("no file suggests any more %v", want)
	}
}

// TestStarterTellsTheTruth holds the comments of the starter to the program.
func TestStarterTellsTheTruth(t *testing.T) {
	_, text, _ := machines.Read(machines.Starter)
	says := func(sentence string) {
		t.Helper()
		plain := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "#", " ")), " ")
		if !strings.Contains(plain, sentence) {
			t.Errorf("the starter no longer says %q, which this test checks", sentence)
		}
	}
	says("A built-in strategy: firstAvailable, lastAvailable or random.")
	if got := fmt.Sprint(strategies.Names(machine.Proposer)); got != "[firstAvailable lastAvailable random]" {
		t.Errorf("the built-in strategies are %s", got)
	}
	says("Other ways: strategyFnName: alignmentMargin (weights by earned trust, with a threshold), firstProposal, or bayes (probabilities learned from human decisions).")
	if got := fmt.Sprint(strategies.Names(machine.Arbiter)); got != "[alignmentMargin firstProposal bayes]" {
		t.Errorf("the built-in arbiters are %s", got)
	}
	says("An expression over state, data, metaJson, visits, steps and last.")
	if err := strategies.CheckExpression(machine.Proposer, `= state == last && data == metaJson && visits == steps ? "a" : "b"`, []string{"a", "b"}); err != nil {
		t.Error(err)
	}
	says("firstAvailable proposes the first.")
	m := load(t, machines.Starter)
	if m.Input() == nil {
		t.Error("the starter does not say what its sessions start with (input)")
	}
	if answer, _ := strategies.FirstAvailable.Propose(t.Context(), specialist.Question{State: m.Initial()}); answer.TransitionName != "publish" {
		t.Errorf("firstAvailable proposes %s", answer.TransitionName)
	}
	says("A human is never asked by the engine, but may propose and decide.")
	says("dialai decide SESSION publish") // TestSamplesRun does

	// The example that is commented out works once it no longer is.
	says("A service of yours.")
	lines := strings.Split(string(text), "\n")
	uncommented := 0
	for i, line := range lines {
		if trimmed := strings.TrimPrefix(line, "  # "); trimmed != line && (strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "  ")) {
			lines[i] = "  " + trimmed
			uncommented++
		}
	}
	if uncommented != 4 {
		t.Fatalf("%d lines were uncommented, want 4", uncommented)
	}
	full, err := machine.Parse("starter.yaml", []byte(strings.Join(lines, "\n")), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	if problems := full.Lint(machine.LintOptions{}); len(problems) > 0 {
		t.Error(problems)
	}
	address, config := serve(t, "MY_WEBHOOK_TOKEN", func(string, map[string]any) string { return `{"transitionName":"publish","reasoning":"yes"}` })
	own := load(t, machines.Starter, string(text), strings.ReplaceAll(strings.Join(lines, "\n"), "https://example.com", "http://"+address))
	if got := (run{meta: `{"words":5}`}).steps(t, own, config); got != "publish = completed goal in published" {
		t.Errorf("with a service that agrees with the optimist: %s", got)
	}
}

// TestIncidentsAreBounded: the guards that the sample speaks of are in force.
func TestIncidentsAreBounded(t *testing.T) {
	c, problems := guard.Parse(load(t, "incident-response").Definition().Guards, false)
	if len(problems) > 0 || c.Limits.MaxSteps == nil || c.Cost.MaxDollars == nil || c.Loop.MaxStateVisits <= 1 {
		t.Errorf("the guards are %+v %v", c, problems)
	}
	if n := len(load(t, "release-pipeline").States()); n != 10 {
		t.Errorf("the release pipeline has %d states, and says ten", n)
	}
}

func ExampleList() {
	for _, s := range machines.List()[:3] {
		fmt.Println(s.File, "-", s.About)
	}
	// Output:
	// document-review.json - one proposer, one arbiter: the smallest machine
	// support-triage.yaml - rules route tickets, a majority decides, a human settles the rest
	// expense-approval.yaml - above a limit finance approves, two of them, or a timer goes on
}

func ExampleRead() {
	file, text, ok := machines.Read("document-review")
	m, err := machine.Parse(file, text, runner.Checks())
	fmt.Println(ok, err, m.Name(), "goes from", m.Initial().Name, "to", m.Goal().Name)
	// Output: true <nil> document-review goes from pending to approved
}
