package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A stub answers what a test says and notes what it was asked.
type stub struct {
	mu     sync.Mutex
	asked  []guard.Classification
	answer func(ctx context.Context, q guard.Classification) (guard.ClassifierAnswer, error)
}

func (s *stub) Classify(ctx context.Context, q guard.Classification) (guard.ClassifierAnswer, error) {
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.mu.Unlock()
	return s.answer(ctx, q)
}

// says answers with a verdict, and with an error if there is none.
func says(verdict verdict.Status, err error) *stub {
	return &stub{answer: func(context.Context, guard.Classification) (guard.ClassifierAnswer, error) {
		return guard.ClassifierAnswer{Verdict: verdict, Score: 0.5, Code: "S1"}, err
	}}
}

// classified returns a Guard with a section classifier and others.
func classified(t *testing.T, section string, c guard.Classifier, now func() time.Time) *guard.Guard {
	t.Helper()
	config, problems := guard.ParseAs([]byte(section), guard.Strict)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g, err := guard.New(config, guard.WithClassifier(c), guard.WithClock(now))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func in(output string) guard.CheckInput { return guard.CheckInput{TaskID: "t", Output: &output} }

// TestClassifier: what follows from each answer, and when nobody is asked.
func TestClassifier(t *testing.T) {
	broken := errors.New("quotes the text")
	const open, closed = `{"classifier":{"on_error":"open"}}`, `{"classifier":{"on_error":"closed"}}`
	for _, x := range []struct {
		section string
		c       *stub
		want    string
		asked   int
	}{
		{open, says(verdict.OK, nil), "ok", 1},
		{open, says(verdict.Warn, nil), "warn [classifier_flagged]", 1},
		{open, says(verdict.Retry, nil), "retry [classifier_flagged]", 1},
		{open, says(verdict.Escalate, nil), "escalate [classifier_flagged]", 1},
		{open, says(verdict.Abort, nil), "abort [classifier_flagged]", 1},
		{open, says(verdict.Abort, broken), "warn [classifier_error]", 1},
		{closed, says(verdict.OK, broken), "escalate [classifier_error]", 1},
		{closed, says(9, nil), "escalate [classifier_error]", 1},
		{closed, &stub{answer: func(context.Context, guard.Classification) (guard.ClassifierAnswer, error) { panic("x") }}, "escalate [classifier_error]", 1},
		{closed, &stub{answer: func(context.Context, guard.Classification) (guard.ClassifierAnswer, error) {
			return guard.ClassifierAnswer{Score: math.NaN()}, nil
		}}, "escalate [classifier_error]", 1},
		{`{"classifier":{"on_error":"closed","timeout_ms":5}}`, &stub{answer: func(ctx context.Context, _ guard.Classification) (guard.ClassifierAnswer, error) {
			<-ctx.Done()
			return guard.ClassifierAnswer{}, nil // too late
		}}, "escalate [classifier_error]", 1},
		{`{"classifier":{"on_error":"open"},"forbidden_patterns":["text"]}`, says(verdict.Abort, nil), "retry [forbidden_pattern]", 0},
		{`{"classifier":{"on_error":"open"},"packs":{"pii":{"action":"warn"}}}`, says(verdict.Retry, nil), "retry [classifier_flagged pii_found]", 1},
	} {
		g := classified(t, x.section, x.c, time.Now)
		v, m, err := g.CheckContext(t.Context(), in("a text of a@acme.io"))
		if codes(v) != x.want || err != nil || len(x.c.asked) != x.asked || m.Steps != map[bool]int64{true: 1}[v.Passed()] {
			t.Errorf("%s: %s (%v), asked %d times, %d steps; want %s", x.section, codes(v), err, len(x.c.asked), m.Steps, x.want)
		}
		if text := fmt.Sprint(v); strings.Contains(text, "quotes") || strings.Contains(text, "acme") {
			t.Errorf("%s: the verdict shows too much: %s", x.section, text)
		}
	}
	quiet := says(verdict.Abort, nil)
	g := classified(t, open, quiet, time.Now)
	if v, _, err := g.Check(in("x")); codes(v) != "ok" || err != nil || len(quiet.asked) > 0 {
		t.Errorf("Check does no I/O: %s (%v)", codes(v), err)
	}
	if v, err := g.CheckStep(t.Context(), verdict.Step{Task: "t", Output: "y", HasOutput: true, Human: true}, specialist.Usage{}); codes(v) != "ok" || err != nil || len(quiet.asked) > 0 {
		t.Errorf("a human's ruling: %s (%v)", codes(v), err)
	}
}

// TestClassifierQuestions: what it is asked, and that it is shown earlier
// outputs that count.
func TestClassifierQuestions(t *testing.T) {
	c := says(verdict.OK, nil)
	g := classified(t, `{"classifier":{"on_error":"open","model":"m","context_turns":2},"forbidden_patterns":["bad"]}`, c, time.Now)
	for _, text := range []string{"one", "bad", "two", "three", "four"} {
		step := in(text)
		if step.State = "s"; text == "four" {
			step.ToolCalls = []verdict.ToolCall{{Name: "none"}, {Name: "tool", Args: []byte(`{"a":1}`)}}
		}
		if _, _, err := g.CheckContext(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(tool string, turns ...string) guard.ClassifierMeta {
		return guard.ClassifierMeta{Task: "t", State: "s", Tool: tool, Model: "m", Turns: turns}
	}
	want := []guard.Classification{{Stage: "output", Text: "one", Meta: meta("")}, {Stage: "output", Text: "two", Meta: meta("", "one")}, {Stage: "output", Text: "three", Meta: meta("", "one", "two")},
		{Stage: "output", Text: "four", Meta: meta("", "two", "three")}, {Stage: "args", Text: `{"a":1}`, Meta: meta("tool", "two", "three")}}
	if !reflect.DeepEqual(c.asked, want) {
		t.Errorf("it was asked\n%+v, want\n%+v", c.asked, want)
	}
}

// TestClassifierBreaker: after so many failures it is left alone, then one
// question tries.
func TestClassifierBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	fails := true
	c := &stub{answer: func(context.Context, guard.Classification) (a guard.ClassifierAnswer, err error) {
		if fails {
			err = errors.New("down")
		}
		return a, err
	}}
	g := classified(t, `{"classifier":{"on_error":"closed","breaker":{"failures":2,"pause_ms":1000},"cache":0}}`, c, func() time.Time { return now })
	for i, x := range []struct {
		wait  time.Duration
		fails bool
		want  string
		asked int
	}{
		{0, true, "escalate [classifier_error]", 1}, {0, true, "escalate [classifier_error]", 2}, // and it opens
		{999 * time.Millisecond, false, "escalate [classifier_error]", 2}, {time.Millisecond, true, "escalate [classifier_error]", 3},
		{0, false, "escalate [classifier_error]", 3}, {time.Second, false, "ok", 4}, {0, true, "escalate [classifier_error]", 5}, {0, false, "ok", 6},
	} {
		now, fails = now.Add(x.wait), x.fails
		v, _, err := g.CheckContext(t.Context(), in("x"))
		if codes(v) != x.want || err != nil || len(c.asked) != x.asked {
			t.Errorf("question %d: %s (%v), asked %d times, want %s, %d", i, codes(v), err, len(c.asked), x.want, x.asked)
		}
	}
}

// TestClassifierTriesOnce: after the pause one question tries, and while it waits
// for its answer nobody else asks.
func TestClassifierTriesOnce(t *testing.T) {
	now := time.Unix(0, 0)
	var g *guard.Guard
	deep := 0
	c := &stub{}
	c.answer = func(context.Context, guard.Classification) (guard.ClassifierAnswer, error) {
		if deep++; deep == 2 {
			other := in("other")
			other.TaskID = "u"
			if v, _, err := g.CheckContext(t.Context(), other); codes(v) != "warn [classifier_error]" || err != nil || len(c.asked) != 2 {
				t.Errorf("beside the one that tries: %s (%v), asked %d times", codes(v), err, len(c.asked))
			}
		}
		return guard.ClassifierAnswer{}, errors.New("down")
	}
	g = classified(t, `{"classifier":{"on_error":"open","breaker":{"failures":1,"pause_ms":1000}}}`, c, func() time.Time { return now })
	for range 2 {
		if _, _, err := g.CheckContext(t.Context(), in("x")); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	if deep != 2 {
		t.Errorf("it was asked %d times", deep)
	}
}

// TestClassifierComesLast: it is not asked about what was refused already, by a
// guard of the program's own or by a stream.
func TestClassifierComesLast(t *testing.T) {
	c := says(verdict.OK, nil)
	config, _ := guard.ParseAs([]byte(`{"classifier":{"on_error":"open"}}`), guard.Strict)
	g, err := guard.New(config, guard.WithClassifier(c), guard.WithCheckers(guard.Func(func(_ context.Context, s verdict.Step) verdict.Verdict {
		if s.Output == "no" {
			return verdict.Reject(verdict.Retry, "mine", "no")
		}
		return verdict.Verdict{}
	})))
	if err != nil {
		t.Fatal(err)
	}
	if v, _, err := g.CheckContext(t.Context(), in("no")); codes(v) != "retry [mine]" || err != nil || len(c.asked) != 0 {
		t.Errorf("%s (%v), asked %d times", codes(v), err, len(c.asked))
	}
	step := in(`{"a":1}`)
	step.ToolCalls = []verdict.ToolCall{{Name: "x", Args: []byte(`{"a":1}`)}}
	if v, _, err := g.CheckContext(t.Context(), step); codes(v) != "ok" || err != nil || len(c.asked) != 2 {
		t.Errorf("the same text in two places: %s (%v), asked %d times", codes(v), err, len(c.asked))
	}
	s := g.Stream("s")
	s.Add("yes")
	if v, _, err := s.Close(t.Context(), guard.CheckInput{}); codes(v) != "ok" || err != nil || len(c.asked) != 3 {
		t.Errorf("a stream: %s (%v), asked %d times", codes(v), err, len(c.asked))
	}
}

// TestClassifierCache: an answer is kept, an error is not, and what was asked is
// paid once.
func TestClassifierCache(t *testing.T) {
	var err error
	c := &stub{answer: func(_ context.Context, q guard.Classification) (guard.ClassifierAnswer, error) {
		a := guard.ClassifierAnswer{Usage: dollars(1)}
		if q.Text == "bad" {
			a.Verdict = verdict.Retry
		}
		return a, err
	}}
	g := classified(t, `{"classifier":{"on_error":"open","cache":2},"loop_detection":{"mode":"off","max_output_repeats":null}}`, c, time.Now)
	ask := func(text, want string, asked int) {
		t.Helper()
		v, _, err := g.CheckContext(t.Context(), in(text))
		if codes(v) != want || err != nil || len(c.asked) != asked || g.State("t").Spent.Money.String() != fmt.Sprint(asked) {
			t.Errorf("%s: %s (%v), asked %d times for $%s, want %s, %d", text, codes(v), err, len(c.asked), g.State("t").Spent.Money, want, asked)
		}
	}
	err = errors.New("down")
	ask("a", "warn [classifier_error]", 1)
	err = nil
	ask("a", "ok", 2)
	ask("bad", "retry [classifier_flagged]", 3)
	ask("a", "ok", 3)
	ask("bad", "retry [classifier_flagged]", 3)
	ask("c", "ok", 4) // a goes
	ask("bad", "retry [classifier_flagged]", 4)
	ask("a", "ok", 5)
}

// TestClassifierReason: a code that is no plain word is not shown: it may be the
// text.
func TestClassifierReason(t *testing.T) {
	for code, want := range map[string]string{"S1": "the classifier objects to the output (S1)", "": "the classifier objects to the output", "my secret text": "the classifier objects to the output", strings.Repeat("a", 65): "the classifier objects to the output"} {
		c := &stub{answer: func(context.Context, guard.Classification) (guard.ClassifierAnswer, error) {
			return guard.ClassifierAnswer{Verdict: verdict.Retry, Score: 0.97, Code: code}, nil
		}}
		v, _, _ := classified(t, `{"classifier":{"on_error":"open"}}`, c, time.Now).CheckContext(t.Context(), in("x"))
		if r := v.Reasons[0]; r.Message != want || r.Seen != "0.97" || len(want) > 40 && r.Meta()["category"] != "S1" {
			t.Errorf("%q: %+v", code, r)
		}
	}
}

func TestClassifierProblems(t *testing.T) {
	for section, want := range map[string]string{
		`{"classifier":{}}`:                                                     `error[missing-field]: "on_error" is missing (at /classifier)`,
		`{"classifier":{"on_error":"maybe"}}`:                                   "error[bad-value]: on_error is \"maybe\" (at /classifier/on_error)\n    hint: it may be [\"open\" \"closed\"]",
		`{"classifier":{"on_error":"open","url":"https://a.example"}}`:          "error[missing-field]: \"token_name\" is missing (at /classifier)\n    hint: name the variable that holds the token of the service",
		`{"classifier":{"on_error":"open","token_name":"T","url":"me:pw@h:1"}}`: "error[bad-url]: url \"…@h:1\" is not an http or https address (at /classifier/url)\n    hint: write the whole address, such as https://example.com/classify",
		`{"classifier":{"on_error":"open","timeout_ms":0}}`:                     "error[out-of-range]: timeout_ms is 0, not a whole number from 1 (at /classifier/timeout_ms)",
		`{"classifier":{"on_error":"open","token":"x"}}`:                        "error[unknown-field]: classifier has no field \"token\" (at /classifier/token)",
		`{"classifier":{"on_error":"open","breaker":{"failures":0}}}`:           "error[out-of-range]: failures is 0, not a whole number from 1 (at /classifier/breaker/failures)",
		`{"classifier":{"on_error":"open","context_turns":101}}`:                "error[out-of-range]: context_turns is 101, more than 100 (at /classifier/context_turns)",
		`{"classifier":{"on_error":"open","cache":-1}}`:                         "error[out-of-range]: cache is -1, not a whole number from 0 (at /classifier/cache)",
	} {
		_, problems := guard.ParseAs([]byte(section), guard.Compat)
		if len(problems) != 1 || problems[0].String() != want && !strings.HasPrefix(problems[0].String(), want+"\n") {
			t.Errorf("%s: %v, want %q", section, problems, want)
		}
	}
	c, _ := guard.ParseAs([]byte(`{"classifier":{"on_error":"closed"}}`), guard.Compat)
	if want := (guard.ClassifierConfig{Timeout: 2 * time.Second, Closed: true, Failures: 5, Pause: 30 * time.Second, Cache: 1024}); *c.Classifier != want {
		t.Errorf("the defaults are %+v", c.Classifier)
	}
	if _, err := guard.New(c); err == nil || err.Error() != "the section has a classifier, and none was given: use WithClassifier" {
		t.Errorf("nobody to ask: %v", err)
	}
	if _, err := guard.New(nil, guard.WithClassifier(says(0, nil))); err == nil {
		t.Error("a classifier without a section was taken")
	}
}

// TestClassifierConcurrently: many tasks share one classifier.
func TestClassifierConcurrently(t *testing.T) {
	c := says(verdict.OK, nil)
	g := classified(t, `{"classifier":{"on_error":"open","context_turns":3,"cache":5}}`, c, time.Now)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 20 {
				step := in(fmt.Sprint("text ", k%7))
				step.TaskID = fmt.Sprint(i)
				if _, _, err := g.CheckContext(t.Context(), step); err != nil {
					t.Error(err)
				}
				if k%5 == 0 {
					g.Reset(step.TaskID)
				}
			}
		})
	}
	wg.Wait()
}
