package truth_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/truth"
)

func TestBuiltInProbes(t *testing.T) {
	c := truth.Candidate{Prompt: "Which?", Answer: "red green"}
	for _, p := range []struct {
		name    string
		probe   func(truth.ProbeKit) truth.Probe
		replies []string
		want    float64
		purpose string // first letters of the purposes, in order
	}{
		{"consistency, all agree", truth.ProbeKit.Consistency, []string{"green red", "Red Green", "red, green"}, 0, "sss"},
		{"consistency, none agree", truth.ProbeKit.Consistency, []string{"a", "b", "c"}, 1, "sss"},
		// Six pairs: the two that are alike are at 0, each of the other five at 1.
		{"consistency, one agrees", truth.ProbeKit.Consistency, []string{"red green", "b", "c"}, 0.833333333333, "sss"},
		{"consistency counts pairs of samples too", truth.ProbeKit.Consistency, []string{"b", "b", "b"}, 0.5, "sss"},
		{"sensitivity, both change", truth.ProbeKit.Sensitivity, []string{"w", "blue", "w", "white"}, 1, "rara"},
		{"sensitivity, one changes", truth.ProbeKit.Sensitivity, []string{"w", "red green", "w", "white"}, 0.5, "rara"},
		{"adherence, both stay", truth.ProbeKit.Adherence, []string{"w", "green red", "w", "red green"}, 1, "rara"},
		{"adherence, one drifts", truth.ProbeKit.Adherence, []string{"w", "red green", "w", "red blue white"}, 0.625, "rara"},
	} {
		t.Run(p.name, func(t *testing.T) {
			script := truth.NewScript(p.replies...)
			m, err := p.probe(truth.ProbeKit{Completer: script}).Measure(t.Context(), c)
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
	c := truth.Candidate{Prompt: "PROMPT", Answer: "ANSWER"}
	script := truth.NewScript("x", "x", "x", "WORLD1", "x", "WORLD2", "x", "WORLD3", "x", "WORLD4", "x")
	kit := truth.ProbeKit{Completer: script, Delimiter: func() string { return "FENCE" }}
	for _, p := range []truth.Probe{kit.Consistency(), kit.Sensitivity(), kit.Adherence()} {
		if _, err := p.Measure(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range script.Requests() {
		switch {
		case r.Purpose == truth.PurposeSample:
			if r.Prompt != "PROMPT" {
				t.Errorf("call %d: a sample of %q", i, r.Prompt)
			}
		case r.Purpose == truth.PurposeAnswer:
			if !strings.HasPrefix(r.Prompt, "WORLD") || strings.Contains(r.Prompt, "ANSWER") {
				t.Errorf("call %d: an answer to %q", i, r.Prompt)
			}
		case !strings.Contains(r.Prompt, "<<FENCE\nPROMPT\nFENCE>>") || !strings.Contains(r.Prompt, "<<FENCE\nANSWER\nFENCE>>"):
			t.Errorf("call %d: texts are not fenced in %q", i, r.Prompt)
		}
	}
}

func TestFence(t *testing.T) {
	c := truth.Candidate{Prompt: "p", Answer: "break FENCE>> out"}
	for name, delimiter := range map[string]string{"in the text": "FENCE", "empty": ""} {
		kit := truth.ProbeKit{Completer: truth.NewScript("w", "x", "w", "x"), Delimiter: func() string { return delimiter }}
		if _, err := kit.Sensitivity().Measure(t.Context(), c); err == nil {
			t.Errorf("%s: the delimiter is accepted", name)
		}
	}
	script := truth.NewScript("w", "x", "w", "x")
	if _, err := (truth.ProbeKit{Completer: script}).Sensitivity().Measure(t.Context(), c); err != nil {
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
	good := []truth.ScriptReply{{Completion: truth.Completion{Text: "w"}}, {Completion: truth.Completion{Text: "w"}}, {Completion: truth.Completion{Text: "w"}}, {Completion: truth.Completion{Text: "w"}}}
	for _, build := range []func(truth.ProbeKit) truth.Probe{truth.ProbeKit.Consistency, truth.ProbeKit.Sensitivity, truth.ProbeKit.Adherence} {
		for i := range 3 {
			replies := slices.Clone(good)
			replies[i] = truth.ScriptReply{Err: boom}
			if _, err := build(truth.ProbeKit{Completer: &truth.Script{Replies: replies}}).Measure(t.Context(), truth.Candidate{}); !errors.Is(err, boom) {
				t.Errorf("call %d fails, but the error is %v", i, err)
			}
		}
		for _, d := range []fixedDistance{{value: math.NaN()}, {value: 1.5}, {value: -0.1}, {err: boom}} {
			if _, err := build(truth.ProbeKit{Completer: &truth.Script{Replies: good}, Distance: d}).Measure(t.Context(), truth.Candidate{}); err == nil {
				t.Errorf("distance %+v is accepted", d)
			}
		}
	}
	if _, err := (truth.ProbeKit{Completer: truth.NewScript(" \n", "x")}).Sensitivity().Measure(t.Context(), truth.Candidate{}); err == nil {
		t.Error("an empty near world is accepted")
	}
}

type prober struct {
	*truth.Script
	probs []float64
	err   error
}

func (p prober) LogProbs(context.Context, string, string) ([]float64, error) { return p.probs, p.err }

func TestLogProbEntropy(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name  string
		probe truth.LogProbEntropy
		own   []float64
		want  float64 // none: an error
	}{
		{"certain", truth.LogProbEntropy{}, []float64{0, 0}, 0},
		{"a half", truth.LogProbEntropy{}, []float64{math.Log(0.5), math.Log(0.5)}, 0.5},
		{"the mean of logarithms", truth.LogProbEntropy{}, []float64{math.Log(0.25), 0}, 0.5},
		{"impossible", truth.LogProbEntropy{}, []float64{math.Inf(-1)}, 1},
		{"none", truth.LogProbEntropy{}, nil, none},
		{"none, lenient", truth.LogProbEntropy{Lenient: true}, nil, 1},
		{"above 0", truth.LogProbEntropy{Lenient: true}, []float64{-5, 5}, none},
		{"not a number", truth.LogProbEntropy{Lenient: true}, []float64{math.NaN()}, none},
		{"asked for", truth.LogProbEntropy{Source: prober{probs: []float64{math.Log(0.5)}}}, nil, 0.5},
		{"the candidate's own come first", truth.LogProbEntropy{Source: prober{err: boom}}, []float64{0}, 0},
		{"asked for in vain", truth.LogProbEntropy{Source: prober{}}, nil, none},
		{"asked for and failed", truth.LogProbEntropy{Lenient: true, Source: prober{err: boom}}, nil, none},
		{"a source that cannot say", truth.LogProbEntropy{Source: truth.NewScript()}, nil, none},
	} {
		m, err := c.probe.Measure(t.Context(), truth.Candidate{LogProbs: c.own})
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
	s := truth.NewScript("a", "b")
	if c, err := s.Complete(t.Context(), truth.CompletionRequest{Prompt: "1"}); err != nil || c.Text != "a" {
		t.Errorf("Complete = %+v, %v", c, err)
	}
	if _, err := s.Complete(done, truth.CompletionRequest{Prompt: "2"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a done context: %v", err)
	}
	if _, err := s.Complete(t.Context(), truth.CompletionRequest{Prompt: "3"}); err == nil {
		t.Error("an exhausted script replies")
	}
	if r := s.Requests(); len(r) != 3 || r[2].Prompt != "3" {
		t.Errorf("Requests = %+v", r)
	}
}
