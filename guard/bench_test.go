package guard

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
)

// referenceConfig is the published reference configuration, with limits raised
// so that every step is ok.
const referenceConfig = `{
	"limits": {"max_steps": 1000000000, "max_tokens_per_step": 4000, "max_total_tokens": 1000000000000, "output_min": 1, "output_max": 100000},
	"forbidden_patterns": ["as an ai language model", "lorem ipsum"],
	"tool_calls": {
		"allowed": ["search", "read_file", "write_file", "run_tests", "deploy"],
		"blast_radius": {"write_file": 1000000000, "deploy": 1},
		"mutex": [["deploy", "run_tests"]],
		"sequence": [{"tool": "deploy", "requires_prev": "run_tests"}]},
	"cost": {"prices": {
		"gpt-4o": {"input_per_1m": 2.5, "output_per_1m": 10}, "gpt-4o-mini": {"input_per_1m": 0.15, "output_per_1m": 0.6},
		"claude-sonnet-4-6": {"input_per_1m": 3, "output_per_1m": 15}, "claude-haiku-4-5": {"input_per_1m": 1, "output_per_1m": 5}},
		"max_dollars_per_task": 1000000},
	"loop_detection": {"ngram_size": 5, "max_repeats": 2, "detect_identical_tool_calls": true, "max_state_visits": 3%s},
	"retry": {"max_attempts": 2},
	"store": {"ttl_ms": 600000, "history_limit": 50}}`

func benchGuard(tb testing.TB, profile Profile, more string) *Guard {
	c, problems := ParseAs(fmt.Appendf(nil, referenceConfig, more), profile)
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	g, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// benchSteps are steps as input a has them: prose of 2 KB, three calls of about
// 330 bytes, each step other words.
func benchSteps(n int) []CheckInput {
	steps := make([]CheckInput, n)
	for i := range steps {
		output := proseFrom(uint64(i), 2048)
		steps[i] = CheckInput{TaskID: "t", State: fmt.Sprintf("s%d", i%40), Output: &output, Model: "gpt-4o", TokensIn: 900, TokensOut: 500}
		for k, tool := range []string{"search", "read_file", "write_file"} {
			args, _ := json.Marshal(map[string]any{"path": fmt.Sprintf("internal/server/handler_%d_test.go", i*3+k), "offset": 120, "limit": 80, "recursive": false, "tags": []string{"go", "test"}, "query": proseFrom(uint64(i*7+k+1000), 200)})
			steps[i].ToolCalls = append(steps[i].ToolCalls, ToolCall{Name: tool, Args: args})
		}
	}
	return steps
}

// BenchmarkCheck measures a whole check with a full history. "x-base" is the
// ratio to lower-casing the output and hashing it with SHA-256 in the same run.
func BenchmarkCheck(b *testing.B) {
	steps := benchSteps(200)
	for _, c := range []struct {
		name    string
		profile Profile
		more    string
	}{{"strict", Strict, ""}, {"strict-off", Strict, `,"mode":"off"`}, {"compat-off", Compat, `,"mode":"off"`}} {
		b.Run(c.name, func(b *testing.B) {
			g := benchGuard(b, c.profile, c.more)
			for i := range 100 {
				if v, _, err := g.Check(steps[i]); err != nil || !v.Passed() {
					b.Fatal(v.Codes(), err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				v, _, err := g.Check(steps[i%len(steps)])
				if err != nil || !v.Passed() {
					b.Fatal(v.Codes(), err)
				}
				i++
			}
		})
	}
	b.Run("base", func(b *testing.B) {
		var x text
		sum := byte(0)
		i := 0
		for b.Loop() {
			x.read(*steps[i%len(steps)].Output, false)
			s := sha256.Sum256(x.lower)
			sum ^= s[0]
			i++
		}
		_ = sum
	})
}

// TestCheckAllocatesNothing holds a check that is ok to what it promises.
func TestCheckAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes pools forget, so that they allocate")
	}
	steps := benchSteps(120)
	for _, profile := range []Profile{Strict, Compat} {
		g := benchGuard(t, profile, `,"mode":"overlap"`)
		i := 0
		check := func() {
			if v, _, err := g.Check(steps[i%len(steps)]); err != nil || !v.Passed() {
				t.Fatal(v.Codes(), err)
			}
			i++
		}
		for range 60 { // until the history is full
			check()
		}
		if n := testing.AllocsPerRun(50, check); n != 0 {
			t.Errorf("%s: %.1f allocations a check", profile, n)
		}
	}
}

// BenchmarkPacks measures what the packs add to a check of 2 KB of prose and a
// few arguments in which there is nothing to find.
func BenchmarkPacks(b *testing.B) {
	steps := benchSteps(200)
	for _, packs := range []string{`{}`, `{"packs":{"secrets":{}}}`, `{"packs":{"pii":{}}}`, `{"packs":{"prompt_injection":{}}}`} {
		b.Run(packs, func(b *testing.B) {
			c, problems := ParseAs([]byte(packs), Compat)
			if len(problems) > 0 {
				b.Fatal(problems)
			}
			c.Loop.Mode = "off"
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if v := c.Check(State{}, steps[i%len(steps)].step(c)); !v.Passed() || len(v.Reasons) > 0 {
					b.Fatal(v.Reasons)
				}
				i++
			}
		})
	}
}

// BenchmarkStream measures 2 KB in chunks of four bytes.
func BenchmarkStream(b *testing.B) {
	g := benchGuard(b, Strict, "")
	output := proseFrom(1, 2048)
	b.ReportAllocs()
	for b.Loop() {
		s := g.Stream("t")
		for at := 0; at < len(output); at += 4 {
			if v := s.Add(output[at:min(at+4, len(output))]); !v.Passed() {
				b.Fatal(v.Reasons)
			}
		}
	}
}
