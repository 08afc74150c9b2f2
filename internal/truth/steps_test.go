package truth_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/truth"
)

func TestSplitSteps(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		want         []string
	}{
		{"nothing", "", nil},
		{"blank", " \n\n\t\n", nil},
		{"one", "just this\nand that", []string{"just this\nand that"}},
		{"blank lines", "a\nb\n\nc\n \t\n\nd", []string{"a\nb", "c", "d"}},
		{"blank lines with carriage returns", "a\r\n\r\nb\r\n", []string{"a", "b"}},
		{"numbers", "1. a\n2. b\n\nstill b\n10) c", []string{"1. a", "2. b\n\nstill b", "10) c"}},
		{"steps", "Step 1: a\n\nb\nSTEP 2\nc\n  step 3 - d", []string{"Step 1: a\n\nb", "STEP 2\nc", "step 3 - d"}},
		{"marked up", "## Step 1\na\n**Step 2:** b\n> 3. c", []string{"## Step 1\na", "**Step 2:** b", "> 3. c"}},
		{"what comes first is a step", "Well.\n1. a", []string{"Well.", "1. a"}},
		{"decimals are no numbers of steps", "3.14 is\n\n2.7 is not", []string{"3.14 is", "2.7 is not"}},
		{"years are none either", "1984.\n\n2001. x", []string{"1984.", "2001. x"}},
		{"steps in the middle of a line", "in step 2 we\n\nstop", []string{"in step 2 we", "stop"}},
		{"words like steps", "Stepping 1\n\nsteps 2", []string{"Stepping 1", "steps 2"}},
	} {
		var got []string
		for _, s := range truth.SplitSteps(c.answer) {
			if s = strings.TrimSpace(s); s != "" {
				got = append(got, s)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// critic returns a script of critiques that end in these scores; "" has none.
func critic(scores ...string) *truth.Script {
	for i, s := range scores {
		if scores[i] = "no"; s != "" {
			scores[i] = "Thought.\nSCORE: " + s
		}
	}
	return truth.NewScript(scores...)
}

func TestStepVerifier(t *testing.T) {
	for _, c := range []struct {
		name    string
		options truth.StepOptions
		steps   int
		scores  []string
		want    float64
		calls   int
		total   int
		seen    int
	}{
		{"the weakest step", truth.StepOptions{}, 3, []string{"0.9", "0.3", "0.8"}, 0.7, 3, 3, 3},
		{"the mean", truth.StepOptions{Aggregator: truth.AggregateMean}, 3, []string{"1", "0.25", "0.25"}, 0.5, 3, 3, 3},
		{"the last", truth.StepOptions{Aggregator: truth.AggregateLast}, 3, []string{"0", "0", "0.75"}, 0.25, 3, 3, 3},
		{"no steps", truth.StepOptions{Aggregator: truth.AggregateMean}, 0, nil, 1, 0, 0, 0},
		{"no score", truth.StepOptions{}, 2, []string{"1", ""}, 1, 2, 2, 2},
		{"no score, neutral", truth.StepOptions{ParseFailureScore: 0.5}, 2, []string{"1", ""}, 0.5, 2, 2, 2},
		{"sixteen steps", truth.StepOptions{}, 20, slices.Repeat([]string{"0.5"}, 16), 0.5, 16, 20, 16},
		{"two steps", truth.StepOptions{MaxSteps: 2}, 3, []string{"0.5", "0.75"}, 0.5, 2, 3, 2},
		{"the rest in the last critique", truth.StepOptions{MaxSteps: 2, MergeTail: true}, 4, []string{"1", "0.25"}, 0.75, 2, 4, 4},
		{"nothing to merge", truth.StepOptions{MaxSteps: 4, MergeTail: true}, 4, slices.Repeat([]string{"1"}, 4), 0, 4, 4, 4},
		{"a broken line later", truth.StepOptions{}, 1, []string{"0.75\nSCORE: 1 or 2"}, 0.25, 1, 1, 1},
		{"a broken line later, strict", truth.StepOptions{StrictScore: true}, 1, []string{"0.75\nSCORE: 1 or 2"}, 1, 1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answer strings.Builder
			for i := range c.steps {
				fmt.Fprintf(&answer, "%d. step\n", i+1)
			}
			script := critic(c.scores...)
			v := truth.StepVerifier{Kit: truth.ProbeKit{Completer: script}, Options: c.options}
			m, err := v.Measure(t.Context(), truth.Candidate{Answer: answer.String()})
			if err != nil {
				t.Fatal(err)
			}
			if want := (truth.Measurement{Value: c.want, StepsTotal: c.total, StepsVerified: c.seen}); m != want {
				t.Errorf("Measure = %+v, want %+v", m, want)
			}
			if n := len(script.Requests()); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
		})
	}
}

// A tail of steps must not be a place to hide in: merged steps are cut one by one,
// not as a whole.
func TestMergedTailShowsEveryStep(t *testing.T) {
	script := critic("1", "1")
	v := truth.StepVerifier{Kit: truth.ProbeKit{Completer: script}, Options: truth.StepOptions{MaxSteps: 2, MaxStepChars: 5, MergeTail: true}}
	if _, err := v.Measure(t.Context(), truth.Candidate{Answer: "1. aaaaaaa\n2. bbbbbbb\n3. ccccccc"}); err != nil {
		t.Fatal(err)
	}
	if p := script.Requests()[1].Prompt; !strings.Contains(p, "\n2. bb\n\n3. cc\n") {
		t.Errorf("the last critique is %q", p)
	}
}

func TestCritiquePrompt(t *testing.T) {
	script := critic("1", "1")
	kit := truth.ProbeKit{Completer: script, Delimiter: func() string { return "FENCE" }}
	v := truth.StepVerifier{Kit: kit, Options: truth.StepOptions{MaxStepChars: 4}}
	if _, err := v.Measure(t.Context(), truth.Candidate{Prompt: "QUESTION", Answer: "ääääbbbb\n\nccccddddeeee"}); err != nil {
		t.Fatal(err)
	}
	for i, step := range []string{"ääää", "cccc"} {
		r := script.Requests()[i]
		for _, part := range []string{"\nQUESTION\n", "<<FENCE\nääääbbbb\n\nccccdd\nFENCE>>", fmt.Sprintf("Step %d of 2:\n<<FENCE\n%s\nFENCE>>", i+1, step), "SCORE: "} {
			if !strings.Contains(r.Prompt, part) || r.Purpose != truth.PurposeCritique {
				t.Errorf("call %d: %q is missing in %q", i, part, r.Prompt)
			}
		}
	}
}

func TestStepVerifierFails(t *testing.T) {
	boom := errors.New("boom")
	kit := truth.ProbeKit{Completer: &truth.Script{Replies: []truth.ScriptReply{{Completion: truth.Completion{Text: "SCORE: 1"}}, {Err: boom}}}}
	if _, err := (truth.StepVerifier{Kit: kit}).Measure(t.Context(), truth.Candidate{Answer: "a\n\nb"}); !errors.Is(err, boom) {
		t.Errorf("a failing critique: %v", err)
	}
	for _, o := range []truth.StepOptions{{Aggregator: "median"}, {MaxSteps: -1}, {MaxStepChars: -1}, {ParseFailureScore: 1.5}, {ParseFailureScore: math.NaN()}} {
		_, err := truth.StepVerifier{Options: o}.Measure(t.Context(), truth.Candidate{})
		if err == nil || !strings.Contains(err.Error(), `option "prm_options.`) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestParseStepOptions(t *testing.T) {
	parse := func(config string, defaults truth.Section) (truth.StepOptions, string) {
		section, problems := truth.Parse([]byte(`{"prm_options":`+config+`}`), defaults)
		if section == nil {
			section = &truth.Section{}
		}
		return section.Steps.Options(), listed(problems)
	}
	o, problems := parse(`{"aggregator":"last","max_steps":3,"max_step_chars":9,"parse_failure_score":0.5,
		"step_splitter":";","critique_template":"{{number}}/{{total}} {{question}} {{answer}} {{step}}"}`, truth.StrictDefaults())
	if problems != "" || o.Aggregator != truth.AggregateLast || o.MaxSteps != 3 || o.MaxStepChars != 9 || o.ParseFailureScore != 0.5 || !o.MergeTail || !o.StrictScore {
		t.Fatalf("%+v, %v", o, problems)
	}
	if got := o.Split("a;b"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Split = %q", got)
	}
	// A text that looks like a placeholder stays what it is.
	if got := o.Template(truth.Critique{Question: "{{step}}", Answer: "A", Step: "S", Number: 1, Total: 2}); got != "1/2 {{step}} A S" {
		t.Errorf("Template = %q", got)
	}
	if o, problems = parse(`{"merge_tail":false}`, truth.StrictDefaults()); problems != "" || o.MergeTail || !o.StrictScore {
		t.Errorf("%+v, %v", o, problems)
	}
	for config, want := range map[string]string{
		`{"aggregator":"max"}`:               `/prm_options/aggregator bad-value aggregator is "max"`,
		`{"max_steps":0}`:                    `/prm_options/max_steps out-of-range max_steps is 0`,
		`{"max_step_chars":-3}`:              `is -3`,
		`{"parse_failure_score":1.01}`:       `from 0 to 1`,
		`{"step_splitter":"("}`:              `does not compile`,
		`{"step_splitter":"(?=x)"}`:          `does not compile`,
		`{"critique_template":"{{answer}}"}`: `{{step}}`,
		`{"critique_template":""}`:           `critique_template is ""`,
		`{"merge_tail":1}`:                   `true or false`,
		`{"max_step":1}`:                     `did you mean "max_steps"?`,
	} {
		if _, problems := parse(config, truth.Defaults()); !strings.Contains(problems, want) {
			t.Errorf("%s: %v, want %s", config, problems, want)
		}
	}
}
