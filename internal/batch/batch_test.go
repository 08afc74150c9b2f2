package batch_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

func batchLoop(t testing.TB, config string) *batch.Loop {
	t.Helper()
	loop, problems := batch.Parse([]byte(config))
	if loop == nil {
		t.Fatal(problems)
	}
	return loop
}

// lookup is a turn of one call that differs by its query.
func lookup(query string) []specialist.ToolCall {
	args, _ := json.Marshal(map[string]string{"q": query})
	return []specialist.ToolCall{{Name: "lookup", Args: args}}
}

// TestBatchLoopHooks plays scripts. A line is a hook and what it must do:
// "a continue" is a turn that looks up a; "- noop" a turn without calls; "model"
// and "agent" are the other hooks. A count, the sizes of window and warned and
// "pending" may follow.
func TestBatchLoopHooks(t *testing.T) {
	for _, c := range []struct {
		name, config, script string
	}{
		{"the defaults warn at three and stop at five", `{}`, `
			a continue count=1
			a continue count=2
			a warn_scheduled count=3 pending
			model inject
			a continue count=4
			a end count=5 window=5 warned=1`},
		{"the defaults look back twenty batches", `{}`, `
			a continue
			b continue; c continue; d continue; e continue; f continue; g continue; h continue
			i continue; j continue; k continue; l continue; m continue; n continue; o continue
			p continue; q continue; r continue; s continue
			a continue count=2 window=20
			a continue count=2 window=20`},
		{"others in between do not matter", `{"warnThreshold":2,"hardLimit":3,"windowSize":5}`, `
			a continue
			b continue
			a warn_scheduled count=2
			b warn_scheduled count=2
			a end count=3`},
		{"a cycle longer than the window is not seen", `{"warnThreshold":2,"hardLimit":2,"windowSize":2}`, `
			a continue; b continue; c continue; a continue; b continue; c continue window=2`},
		{"turns without calls change nothing", `{"warnThreshold":2,"hardLimit":3}`, `
			- noop window=0
			a continue window=1
			- noop window=1
			a warn_scheduled window=2 pending
			- noop window=2 warned=1 pending
			a end`},
		{"a newer warning replaces one nobody heard", `{"warnThreshold":2,"hardLimit":9}`, `
			a continue; b continue
			a warn_scheduled pending=a
			b warn_scheduled pending=b
			model inject
			model noop`},
		{"one warning until every copy has left the window", `{"warnThreshold":2,"hardLimit":4,"windowSize":4}`, `
			a continue
			a warn_scheduled count=2 warned=1
			model inject
			a continue count=3
			b continue; c continue; d continue warned=1
			e continue warned=0
			a continue count=1
			a warn_scheduled count=2`},
		{"a stop leaves no warning behind", `{"warnThreshold":2,"hardLimit":2}`, `
			a continue
			a end count=2 warned=1
			model noop`},
		{"a stop clears the warning of another batch too", `{"warnThreshold":2,"hardLimit":3}`, `
			a continue; a warn_scheduled; model inject
			b continue; b warn_scheduled pending=b
			a end
			model noop`},
		{"a stop keeps the window, so the next run stops at once", `{"warnThreshold":2,"hardLimit":2,"windowSize":3}`, `
			a continue; a end window=2
			agent noop window=2
			a end count=3 window=3
			b continue
			a end count=2`},
		{"a limit of one stops the first turn", `{"hardLimit":1}`, `
			a end count=1`},
		{"error changes nothing at all", `{"warnThreshold":2,"hardLimit":3,"onLoop":"error"}`, `
			a continue
			a warn_scheduled pending warned=1
			a error count=3 window=2 pending warned=1
			a error count=3 window=2 pending
			model inject
			b continue window=3`},
		{"error before a warning leaves none", `{"warnThreshold":2,"hardLimit":2,"onLoop":"error"}`, `
			a continue
			a error count=2 window=1 warned=0
			model noop`},
		{"continue never stops", `{"warnThreshold":1,"hardLimit":2,"windowSize":3,"onLoop":"continue"}`, `
			a warn_scheduled count=1 pending
			a continue count=2 pending
			a continue count=3
			a continue count=3 window=3`},
		{"continue still warns at the hard limit", `{"warnThreshold":2,"hardLimit":2,"onLoop":"continue"}`, `
			a continue
			a warn_scheduled pending`},
		{"a ladder goes up rung by rung", `{"ladder":{"observe":2,"steer":3,"block":5,"escalate":7,"stop":9}}`, `
			a continue
			a observe count=2
			a warn_scheduled count=3 pending
			model inject
			a continue count=4
			a block count=5
			a escalate count=6
			a escalate count=7
			a end count=8`},
		{"a blocked batch counts once more when it returns", `{"ladder":{"block":2,"stop":4}}`, `
			a continue
			a block count=2
			b continue
			a end count=3`},
		{"a block is forgotten with the window", `{"windowSize":4,"ladder":{"block":2,"stop":4}}`, `
			a continue; a block
			b continue; c continue; d continue; e continue
			a continue; a block count=2`},
		{"a stop by ladder leaves no warning", `{"ladder":{"steer":2,"stop":3}}`, `
			a continue; a warn_scheduled pending; a end count=3
			model noop`},
	} {
		t.Run(c.name, func(t *testing.T) {
			loop := batchLoop(t, c.config)
			var s batch.State
			for line := range strings.FieldsFuncSeq(c.script, func(r rune) bool { return r == '\n' || r == ';' }) {
				if words := strings.Fields(line); len(words) > 0 {
					s = playHook(t, loop, s, words)
				}
			}
		})
	}
}

func playHook(t *testing.T, loop *batch.Loop, s batch.State, words []string) batch.State {
	t.Helper()
	next, r, err := s, batch.Result{}, error(nil)
	switch words[0] {
	case "agent":
		next, r = loop.BeforeAgent(s)
	case "model":
		next, r = loop.BeforeModel(s)
	case "-":
		next, r, err = loop.AfterModel(s, nil)
	default:
		next, r, err = loop.AfterModel(s, lookup(words[0]))
	}
	if string(r.Outcome) != words[1] {
		t.Fatalf("%q: outcome %s", words, r.Outcome)
	}
	if err != nil || r.Outcome == batch.Failed && !reflect.DeepEqual(next, s) {
		t.Fatalf("%q: error %v, %+v after %+v", words, err, next, s)
	}
	for _, want := range words[2:] {
		if got := describe(next, r); !slices.Contains(got, want) {
			t.Fatalf("%q: %q is missing in %q", words, want, got)
		}
	}
	return next
}

func describe(s batch.State, r batch.Result) []string {
	facts := []string{fmt.Sprintf("count=%d", r.Count), fmt.Sprintf("window=%d", len(s.Window)), fmt.Sprintf("warned=%d", len(s.Warned))}
	if s.Pending != nil {
		facts = append(facts, "pending")
		for _, q := range []string{"a", "b"} {
			batch, _ := (&batch.Loop{}).Batch(lookup(q))
			if batch.Hash == s.Pending.Hash {
				facts = append(facts, "pending="+q)
			}
		}
	}
	return facts
}

func TestBatchLoopBeforeAgentPrunes(t *testing.T) {
	loop := batchLoop(t, `{"hardLimit":3,"windowSize":3}`)
	pending := &batch.Pending{Hash: "gone", Message: "m", Count: 3, Tools: []string{"t"}}
	s, r := loop.BeforeAgent(batch.State{
		Window: []string{"gone", "v", "w", "v", "x"}, Warned: []string{"v", "gone", "x", "v"}, Pending: pending,
	})
	want := batch.State{Window: []string{"w", "v", "x"}, Warned: []string{"v", "x"}, Pending: pending}
	if !reflect.DeepEqual(s, want) || r.Outcome != batch.Noop {
		t.Errorf("BeforeAgent = %+v, %+v; want %+v", s, r, want)
	}
}

func TestBatchLoopTexts(t *testing.T) {
	calls := []specialist.ToolCall{{Name: "b"}, {Name: "a", Args: json.RawMessage(`{"secret":"hush"}`)}, {Name: "b"}}
	for _, c := range []struct {
		name, config string
		status       verdict.Status
		parts        []string
	}{
		{"warning", `{"warnThreshold":2}`, verdict.Warn, []string{"Loop guard warning", "(a, b)", "2 times", "Answer", "blocks", "different"}},
		{"own warning", `{"warnThreshold":2,"warningMessage":" Look up. "}`, verdict.Warn, []string{"Loop guard warning", "(a, b)", "2 times. Look up."}},
		{"stop", `{"hardLimit":2}`, verdict.Abort, []string{"Stopped because", "(a, b)", "2 times"}},
		{"own stop", `{"hardLimit":2,"hardStopMessage":"Enough."}`, verdict.Abort, []string{"Stopped because", "2 times. Enough."}},
		{"error", `{"hardLimit":2,"windowSize":7,"onLoop":"error"}`, verdict.Abort, []string{"mode error", "(a, b)", "2 times", "window of 7"}},
		{"block", `{"ladder":{"block":2}}`, verdict.Retry, []string{"Loop guard warning", "(a, b)", "2 times"}},
		{"escalate", `{"ladder":{"escalate":2}}`, verdict.Escalate, []string{"(a, b)", "2 times"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			loop := batchLoop(t, c.config)
			s, _, err := loop.AfterModel(batch.State{}, calls)
			if err != nil {
				t.Fatal(err)
			}
			_, r, err := loop.AfterModel(s, calls)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range c.parts {
				if !strings.Contains(r.Message, part) {
					t.Errorf("%q is missing in %q", part, r.Message)
				}
			}
			if strings.Contains(r.Message, "hush") {
				t.Errorf("the message %q shows arguments", r.Message)
			}
			v := r.Verdict()
			if v.Reasons[0].Limit != "2" || v.Reasons[0].Seen != "2" {
				t.Errorf("the reason is %+v", v.Reasons[0])
			}
			if v.Status != c.status || !slices.Equal(v.Codes(), []string{"batch_repeat"}) {
				t.Errorf("the verdict is %+v", v)
			}
			if r.Outcome == batch.Failed && (!strings.Contains(r.Message, "in mode error") || r.Count != 2 || r.Hash != s.Window[0] || !slices.Equal(r.Tools, []string{"a", "b"})) {
				t.Errorf("the result is %+v", r)
			}
		})
	}
}

// TestLadderTellsWhatCounts: a message says how often a batch came, as a person counts,
// and how many of these were blocked; both together are what a rung is reached by.
func TestLadderTellsWhatCounts(t *testing.T) {
	loop := batchLoop(t, `{"ladder":{"block":3,"escalate":5,"stop":7}}`)
	var s batch.State
	for i, want := range []struct{ part, limit, seen string }{
		{"", "", ""}, {"", "", ""}, {"(a) came 3 times. ", "3", "3"}, {"(a) came 4 times, 1 of them blocked. ", "5", "5"},
		{"(a) came 5 times, 1 of them blocked. ", "5", "6"}, {"(a) came 6 times, 1 of them blocked. ", "7", "7"},
	} {
		var r batch.Result
		var err error
		if s, r, err = loop.AfterModel(s, []specialist.ToolCall{{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		if want.part == "" {
			if r.Outcome != batch.Continue {
				t.Errorf("batch %d: %+v", i+1, r)
			}
			continue
		}
		if reason := r.Verdict().Reasons[0]; !strings.Contains(r.Message, want.part) || reason.Limit != want.limit || reason.Seen != want.seen {
			t.Errorf("batch %d: %+v", i+1, reason)
		}
	}
}

func TestBatchInjectIsANotice(t *testing.T) {
	v := batch.Result{Outcome: batch.Inject, Message: "m"}.Verdict()
	if v.Status != verdict.OK || !slices.Equal(v.Notices, []string{"m"}) {
		t.Errorf("the verdict is %+v", v)
	}
	for _, o := range []batch.Outcome{batch.Noop, batch.Continue, batch.Observe} {
		if v := (batch.Result{Outcome: o}).Verdict(); !reflect.DeepEqual(v, verdict.Verdict{}) {
			t.Errorf("the verdict of %s is %+v", o, v)
		}
	}
}

// A slowLoop is a second version of the limits that keeps every batch and counts
// anew each time.
type slowLoop struct {
	warnAt, hard, window int
	mode                 string
	all                  []string
	warned               map[string]bool
	pending              string
}

func (l *slowLoop) turn(q string) (outcome string, count int) {
	all := append(slices.Clone(l.all), q)
	recent := all[max(0, len(all)-l.window):]
	for _, x := range recent {
		if x == q {
			count++
		}
	}
	if l.mode == "error" && count >= l.hard {
		return "error", count
	}
	l.all = all
	for w := range l.warned {
		if !slices.Contains(recent, w) {
			delete(l.warned, w)
		}
	}
	outcome = "continue"
	if count >= l.warnAt && !l.warned[q] {
		outcome, l.warned[q], l.pending = "warn_scheduled", true, q
	}
	if l.mode == "end" && count >= l.hard {
		outcome, l.pending = "end", ""
	}
	return outcome, count
}

// TestBatchLoopAgainstSlowVersion also stores the state after each hook, so that
// nothing outside of its JSON matters, and checks that old states never change.
func TestBatchLoopAgainstSlowVersion(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 400 {
		window := 1 + rng.IntN(8)
		hard := 1 + rng.IntN(window)
		slow := &slowLoop{warnAt: 1 + rng.IntN(hard), hard: hard, window: window, mode: []string{"end", "error", "continue"}[rng.IntN(3)], warned: map[string]bool{}}
		loop := batchLoop(t, fmt.Sprintf(`{"hardLimit":%d,"warnThreshold":%d,"windowSize":%d,"onLoop":%q}`, hard, slow.warnAt, window, slow.mode))
		var s batch.State
		for step := range 40 {
			before, _ := json.Marshal(s)
			var next batch.State
			if rng.IntN(4) == 0 {
				var r batch.Result
				next, r = loop.BeforeModel(s)
				if (r.Outcome == batch.Inject) != (slow.pending != "") {
					t.Fatalf("seed %d, step %d: %s, but pending is %q", seed, step, r.Outcome, slow.pending)
				}
				slow.pending = ""
			} else {
				q := string(rune('a' + rng.IntN(4)))
				outcome, count := slow.turn(q)
				var r batch.Result
				next, r, _ = loop.AfterModel(s, lookup(q))
				if string(r.Outcome) != outcome || r.Count != count {
					t.Fatalf("seed %d, step %d: %s %d, want %s %d", seed, step, r.Outcome, r.Count, outcome, count)
				}
			}
			if after, _ := json.Marshal(s); string(after) != string(before) {
				t.Fatalf("seed %d, step %d: a hook changed %s to %s", seed, step, before, after)
			}
			stored, _ := json.Marshal(next)
			s = batch.State{}
			if err := json.Unmarshal(stored, &s); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Two hooks may work on one state at the same time, so what lies behind the end of
// its lists is not theirs to write to.
func TestBatchHooksLeaveSpareRoomAlone(t *testing.T) {
	turn, err := (&batch.Loop{}).Batch(lookup("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range []string{`{"warnThreshold":2,"hardLimit":9}`, `{"ladder":{"block":2,"stop":9}}`} {
		room := func() []string { return append(make([]string, 0, 8), turn.Hash) }
		s := batch.State{Window: room(), Warned: room()[:0], Blocked: room()[:0]}
		batchLoop(t, config).AfterBatch(s, turn)
		for _, list := range [][]string{s.Window[1:8], s.Warned[1:8], s.Blocked[1:8]} {
			if strings.Join(list, "") != "" {
				t.Errorf("%s: the room behind a list holds %q", config, list)
			}
		}
	}
}

// TestBatchStateFolds checks that a log of batches gives the same state again.
func TestBatchStateFolds(t *testing.T) {
	loop := batchLoop(t, `{"warnThreshold":2,"hardLimit":4,"windowSize":6}`)
	var live, folded batch.State
	var log []string
	for _, q := range strings.Split("abacabaabbcaab", "") {
		live, _, _ = loop.AfterModel(live, lookup(q))
		batch, err := loop.Batch(lookup(q))
		if err != nil {
			t.Fatal(err)
		}
		line, _ := json.Marshal(batch)
		log = append(log, string(line))
	}
	for _, line := range log {
		var batch batch.Batch
		if err := json.Unmarshal([]byte(line), &batch); err != nil {
			t.Fatal(err)
		}
		folded, _ = loop.AfterBatch(folded, batch)
	}
	if !reflect.DeepEqual(live, folded) {
		t.Errorf("live %+v, folded %+v", live, folded)
	}
}

func TestStepBatch(t *testing.T) {
	loop := batchLoop(t, `{}`)
	step := verdict.Step{Transition: "ship", State: "shipped", MetaJSON: json.RawMessage(`{"to":"x"}`), ToolCalls: lookup("a")}
	hash := func(s verdict.Step) string {
		batch, err := loop.Batch(batch.CallsOf(s))
		if err != nil {
			t.Fatal(err)
		}
		return batch.Hash
	}
	for _, change := range []func(*verdict.Step){
		func(s *verdict.Step) { s.Transition = "hold" },
		func(s *verdict.Step) { s.State = "held" },
		func(s *verdict.Step) { s.MetaJSON = json.RawMessage(`{"to":"y"}`) },
		func(s *verdict.Step) { s.MetaJSON = nil },
		func(s *verdict.Step) { s.ToolCalls = lookup("b") },
		func(s *verdict.Step) { s.ToolCalls = nil },
	} {
		other := step
		change(&other)
		if hash(other) == hash(step) {
			t.Errorf("%+v has the hash of %+v", other, step)
		}
	}
	other := step
	other.Output, other.Task, other.Model = "other", "other", "other"
	if hash(other) != hash(step) {
		t.Error("what is no call changes the hash")
	}
}
