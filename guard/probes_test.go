package guard_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/guard"
)

func TestBuiltInProbes(t *testing.T) {
	c := guard.Candidate{Prompt: "Which?", Answer: "red green"}
	for _, p := range []struct {
		name    string
		probe   func(guard.ProbeKit) guard.Probe
		replies []string
		want    float64
		purpose string // first letters of the purposes, in order
	}{
		{"consistency, all agree", guard.ProbeKit.Consistency, []string{"green red", "Red Green", "red, green"}, 0, "sss"},
		{"consistency, none agree", guard.ProbeKit.Consistency, []string{"a", "b", "c"}, 1, "sss"},
		// Six pairs: the two that are alike are at 0, each of the other five at 1.
		{"consistency, one agrees", guard.ProbeKit.Consistency, []string{"red green", "b", "c"}, 0.833333333333, "sss"},
		{"consistency counts pairs of samples too", guard.ProbeKit.Consistency, []string{"b", "b", "b"}, 0.5, "sss"},
		{"sensitivity, both change", guard.ProbeKit.Sensitivity, []string{"w", "blue", "w", "white"}, 1, "rara"},
		{"sensitivity, one changes", guard.ProbeKit.Sensitivity, []string{"w", "red green", "w", "white"}, 0.5, "rara"},
		{"adherence, both stay", guard.ProbeKit.Adherence, []string{"w", "green red", "w", "red green"}, 1, "rara"},
		{"adherence, one drifts", guard.ProbeKit.Adherence, []string{"w", "red green", "w", "red blue white"}, 0.625, "rara"},
	} {
		t.Run(p.name, func(t *testing.T) {
			script := guard.NewScript(p.replies...)
			m, err := p.probe(guard.ProbeKit{Completer: script}).Measure(t.Context(), c)
			if err != nil || !(math.Abs(m.Value-p.want) <= 1e-9) {
				t.Errorf("Measure = %v, %v; want %v", m.Value, err, p.want)
			}
			var purposes string
			seen := map[[2]any]bool{}
			for _, r := range script.Requests() {
				purposes += string(r.Purpose)[:1]
				if r.Temperature <= 0 || r.Seed <= 0 || seen[[2]any{r.Purpose, r.Seed}] {
					t.Errorf("request %+v cannot differ from others", r)
				}
				seen[[2]any{r.Purpose, r.Seed}] = true
			}
			if purposes != p.purpose {
				t.Errorf("purposes %s, want %s", purposes, p.purpose)
			}
		})
	}
}

// The samples are asked what the candidate was asked; near worlds are answered
// without a word about the original answer.
func TestProbePrompts(t *testing.T) {
	c := guard.Candidate{Prompt: "PROMPT", Answer: "ANSWER"}
	script := guard.NewScript("x", "x", "x", "WORLD1", "x", "WORLD2", "x", "WORLD3", "x", "WORLD4", "x")
	kit := guard.ProbeKit{Completer: script, Delimiter: func() string { return "FENCE" }}
	for _, p := range []guard.Probe{kit.Consistency(), kit.Sensitivity(), kit.Adherence()} {
		if _, err := p.Measure(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range script.Requests() {
		switch {
		case r.Purpose == guard.PurposeSample:
			if r.Prompt != "PROMPT" {
				t.Errorf("call %d: a sample of %q", i, r.Prompt)
			}
		case r.Purpose == guard.PurposeAnswer:
			if !strings.HasPrefix(r.Prompt, "WORLD") || strings.Contains(r.Prompt, "ANSWER") {
				t.Errorf("call %d: an answer to %q", i, r.Prompt)
			}
		case !strings.Contains(r.Prompt, "<<FENCE\nPROMPT\nFENCE>>") || !strings.Contains(r.Prompt, "<<FENCE\nANSWER\nFENCE>>"):
			t.Errorf("call %d: texts are not fenced in %q", i, r.Prompt)
		}
	}
}

func TestFence(t *testing.T) {
	c := guard.Candidate{Prompt: "p", Answer: "break FENCE>> out"}
	for name, delimiter := range map[string]string{"in the text": "FENCE", "empty": ""} {
		kit := guard.ProbeKit{Completer: guard.NewScript("w", "x", "w", "x"), Delimiter: func() string { return delimiter }}
		if _, err := kit.Sensitivity().Measure(t.Context(), c); err == nil {
			t.Errorf("%s: the delimiter is accepted", name)
		}
	}
	script := guard.NewScript("w", "x", "w", "x")
	if _, err := (guard.ProbeKit{Completer: script}).Sensitivity().Measure(t.Context(), c); err != nil {
		t.Errorf("without a delimiter of its own: %v", err)
	}
	_, after, _ := strings.Cut(script.Requests()[0].Prompt, "<<")
	if mark, _, _ := strings.Cut(after, "\n"); len(mark) != 32 {
		t.Errorf("the delimiter is %q", mark)
	}
}

type fixedDistance struct {
	value float64
	err   error
}

func (d fixedDistance) Distance(context.Context, string, string) (float64, error) {
	return d.value, d.err
}

func TestProbesFail(t *testing.T) {
	boom := errors.New("boom")
	good := []guard.ScriptReply{{Completion: guard.Completion{Text: "w"}}, {Completion: guard.Completion{Text: "w"}}, {Completion: guard.Completion{Text: "w"}}, {Completion: guard.Completion{Text: "w"}}}
	for _, build := range []func(guard.ProbeKit) guard.Probe{guard.ProbeKit.Consistency, guard.ProbeKit.Sensitivity, guard.ProbeKit.Adherence} {
		for i := range 3 {
			replies := slices.Clone(good)
			replies[i] = guard.ScriptReply{Err: boom}
			if _, err := build(guard.ProbeKit{Completer: &guard.Script{Replies: replies}}).Measure(t.Context(), guard.Candidate{}); !errors.Is(err, boom) {
				t.Errorf("call %d fails, but the error is %v", i, err)
			}
		}
		for _, d := range []fixedDistance{{value: math.NaN()}, {value: 1.5}, {value: -0.1}, {err: boom}} {
			if _, err := build(guard.ProbeKit{Completer: &guard.Script{Replies: good}, Distance: d}).Measure(t.Context(), guard.Candidate{}); err == nil {
				t.Errorf("distance %+v is accepted", d)
			}
		}
	}
	if _, err := (guard.ProbeKit{Completer: guard.NewScript(" \n", "x")}).Sensitivity().Measure(t.Context(), guard.Candidate{}); err == nil {
		t.Error("an empty near world is accepted")
	}
}

type prober struct {
	*guard.Script
	probs []float64
	err   error
}

func (p prober) LogProbs(context.Context, string, string) ([]float64, error) { return p.probs, p.err }

func TestLogProbEntropy(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name  string
		probe guard.LogProbEntropy
		own   []float64
		want  float64 // none: an error
	}{
		{"certain", guard.LogProbEntropy{}, []float64{0, 0}, 0},
		{"a half", guard.LogProbEntropy{}, []float64{math.Log(0.5), math.Log(0.5)}, 0.5},
		{"the mean of logarithms", guard.LogProbEntropy{}, []float64{math.Log(0.25), 0}, 0.5},
		{"impossible", guard.LogProbEntropy{}, []float64{math.Inf(-1)}, 1},
		{"none", guard.LogProbEntropy{}, nil, none},
		{"none, lenient", guard.LogProbEntropy{Lenient: true}, nil, 1},
		{"above 0", guard.LogProbEntropy{Lenient: true}, []float64{-5, 5}, none},
		{"not a number", guard.LogProbEntropy{Lenient: true}, []float64{math.NaN()}, none},
		{"asked for", guard.LogProbEntropy{Source: prober{probs: []float64{math.Log(0.5)}}}, nil, 0.5},
		{"the candidate's own come first", guard.LogProbEntropy{Source: prober{err: boom}}, []float64{0}, 0},
		{"asked for in vain", guard.LogProbEntropy{Source: prober{}}, nil, none},
		{"asked for and failed", guard.LogProbEntropy{Lenient: true, Source: prober{err: boom}}, nil, none},
		{"a source that cannot say", guard.LogProbEntropy{Source: guard.NewScript()}, nil, none},
	} {
		m, err := c.probe.Measure(t.Context(), guard.Candidate{LogProbs: c.own})
		if err != nil {
			m.Value = none
		}
		if !(math.Abs(m.Value-c.want) <= 1e-12) {
			t.Errorf("%s: %v, %v; want %v", c.name, m.Value, err, c.want)
		}
	}
}

func TestScript(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	s := guard.NewScript("a", "b")
	if c, err := s.Complete(t.Context(), guard.CompletionRequest{Prompt: "1"}); err != nil || c.Text != "a" {
		t.Errorf("Complete = %+v, %v", c, err)
	}
	if _, err := s.Complete(done, guard.CompletionRequest{Prompt: "2"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a done context: %v", err)
	}
	if _, err := s.Complete(t.Context(), guard.CompletionRequest{Prompt: "3"}); err == nil {
		t.Error("an exhausted script replies")
	}
	if r := s.Requests(); len(r) != 3 || r[2].Prompt != "3" {
		t.Errorf("Requests = %+v", r)
	}
}
