package guard_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/verdict"
)

// randomSection returns guards that often have something to say.
func randomSection(rng *rand.Rand, profile guard.Profile) string {
	return fmt.Sprintf(`{"profile": %q, "limits": {"max_steps": %d, "max_total_tokens": %d, "output_max": %d},
		"tool_calls": {"blast_radius": {"a": %d}, "sequence": [{"tool": "b", "requires_prev": "a"}]},
		"cost": {"max_dollars_per_task": %d, "prices": {"m": {"input_per_1m": 1000000, "output_per_1m": 2000000}}},
		"loop_detection": {"max_state_visits": %d}, "store": {"history_limit": %d}}`,
		profile, 2+rng.IntN(8), 20+rng.IntN(100), 10+rng.IntN(40), 1+rng.IntN(4), 20+rng.IntN(60), 1+rng.IntN(4), 1+rng.IntN(9))
}

func randomInput(rng *rand.Rand) guard.CheckInput {
	in := guard.CheckInput{TaskID: fmt.Sprint("t", rng.IntN(3)), Attempt: int64(rng.IntN(2)), TokensIn: int64(rng.IntN(8)), TokensOut: int64(rng.IntN(8))}
	if rng.IntN(2) == 0 {
		in.State = string(rune('p' + rng.IntN(3)))
	}
	if rng.IntN(2) == 0 {
		in.Model = []string{"m", "n"}[rng.IntN(2)]
	}
	if rng.IntN(2) == 0 {
		said := []string{"", "one two three four five six", "one two three four five seven and more words than that", "ok"}[rng.IntN(4)]
		in.Output = &said
	}
	for range rng.IntN(3) {
		in.ToolCalls = append(in.ToolCalls, verdict.ToolCall{Name: string(rune('a' + rng.IntN(2))), Args: fmt.Appendf(nil, `{"x":%d,"y":1}`, rng.IntN(2))})
	}
	return in
}

// logged returns the line of a log about a step, read back from its JSON.
func logged(t *testing.T, in guard.CheckInput, v verdict.Verdict, digest bool) guard.LogRecord {
	t.Helper()
	input := &guard.LogInput{
		Step: in.Step, State: in.State, Output: in.Output, Model: in.Model, TokensIn: in.TokensIn, TokensOut: in.TokensOut, Attempt: in.Attempt,
	}
	for _, c := range in.ToolCalls {
		input.ToolCalls = append(input.ToolCalls, guard.LogCall{Name: c.Name, Args: c.Args})
	}
	rec := guard.LogRecord{V: 1, TaskID: in.TaskID, Type: guard.LogCheck, Verdict: v.Status.String(), Payload: guard.PayloadFull, Input: input, Meta: &guard.LogMeta{}}
	if digest {
		rec.Payload, rec.Input = guard.PayloadDigest, input.Digested()
	}
	for _, r := range v.Reasons {
		rec.Meta.Reasons = append(rec.Meta.Reasons, guard.LogReason{Code: r.Code, Guard: r.Guard, Class: r.Class.String()})
	}
	line, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	read, err := guard.ParseLog(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return read
}

// TestOwnLogReplaysEqual: a log that is judged again by the configuration it was
// judged by has no difference. Digests leave less to judge and change nothing of
// what is left.
func TestOwnLogReplaysEqual(t *testing.T) {
	decided := [2]int{}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		profile := []guard.Profile{guard.Compat, guard.Strict}[seed%2]
		section := randomSection(rng, profile)
		c, problems := guard.Parse([]byte(section), false)
		if len(problems) > 0 {
			t.Fatalf("seed %d: %v", seed, problems)
		}
		g, err := guard.New(c)
		if err != nil {
			t.Fatal(err)
		}
		replayers := [2]*guard.Replayer{guard.NewReplayer(c, nil), guard.NewReplayer(c, nil)}
		for i := range 25 {
			in := randomInput(rng)
			v, _, err := g.Check(in)
			if err != nil {
				t.Fatal(err)
			}
			for j, r := range replayers {
				got, ok := r.Next(logged(t, in, v, j == 1))
				switch {
				case !ok:
					t.Fatalf("seed %d, step %d: no step", seed, i)
				case got.Differs:
					t.Fatalf("seed %d, step %d, digest %v: %v %v, recorded %v %v\n%s", seed, i, j == 1, got.Verdict.Status, got.Verdict.Codes(), v.Status, v.Codes(), section)
				case got.Undecidable == "":
					decided[j]++
				case j == 0:
					t.Fatalf("seed %d, step %d: undecidable: %s", seed, i, got.Undecidable)
				}
			}
		}
	}
	if decided[0] != 300*25 || decided[1] == 0 || decided[1] >= decided[0] {
		t.Errorf("decided %d of %d in full and %d by digests", decided[0], 300*25, decided[1])
	}
}

// TestReplayFlipsAVerdict: each number that a log carries decides something.
func TestReplayFlipsAVerdict(t *testing.T) {
	config := func(section string) *guard.Config {
		c, problems := guard.Parse([]byte(section), false)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return c
	}
	check := `{"session":"s","type":"check","verdict":"ok","input":{"state":"x","charged":true}}`
	for _, c := range []struct{ name, section, record, code string }{
		{"tokens", `{"limits": {"max_total_tokens": 10}}`, `{"session":"s","type":"record","tokens":{"input":5,"output":6}}`, "max_tokens_total"},
		{"dollars", `{"limits": {"max_steps": 9}, "cost": {"max_dollars_per_task": 1}}`, `{"session":"s","type":"record","usd":1.000000000001}`, "cost_cap"},
		{"prices", `{"limits": {"max_steps": 9}, "cost": {"max_dollars_per_task": 1, "prices": {"m": {"input_per_1m": 2, "output_per_1m": 0}}}}`, `{"session":"s","type":"record","tokens":{"input":1000000,"output":0},"meta":{"model":"m"}}`, "cost_cap"},
		{"steps", `{"limits": {"max_steps": 1}}`, check, "max_steps"},
	} {
		for _, with := range []bool{false, true} {
			r := guard.NewReplayer(config(c.section), nil)
			lines := []string{check}
			if with {
				lines = []string{c.record, check}
			}
			var last guard.ReplayResult
			for _, line := range lines {
				rec, err := guard.ParseLog([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				last, _ = r.Next(rec)
			}
			if last.Differs != with || with && last.Verdict.Reasons[0].Code != c.code {
				t.Errorf("%s, with the record %v: %+v", c.name, with, last)
			}
		}
	}
	// A correction takes back what was charged too much.
	r := guard.NewReplayer(config(`{"limits": {"max_steps": 9}, "cost": {"max_dollars_per_task": 1}}`), nil)
	for _, line := range []string{`{"session":"s","type":"record","usd":3}`, `{"session":"s","type":"record","usd":-2.5,"meta":{"calls":0}}`,
		`{"session":"s","type":"record","usd":1,"tokens":{"input":1000,"output":500}}`, `{"session":"s","type":"record","usd":-1,"tokens":{"input":-993,"output":-497},"meta":{"calls":0}}`,
		`{"session":"s","type":"record","usd":2}`, `{"session":"s","type":"record","usd":-2,"meta":{"calls":-1,"correction":true}}`,
		`{"session":"s","type":"record","usd":2}`, `{"session":"s","type":"record","usd":-1.75,"tokens":{"input":-1,"output":2},"meta":{"correction":true}}`} {
		rec, err := guard.ParseLog([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		r.Next(rec)
	}
	if spent := r.Spent(); spent.Calls != 4 || spent.TokensIn != 6 || spent.TokensOut != 5 || spent.Money.String() != "0.75" {
		t.Errorf("spent %+v after a correction", spent)
	}
}

func TestParseLogRefuses(t *testing.T) {
	for _, line := range []string{
		``, `{`, `7`, `[]`, `null`, `{} {}`, `{}`, `{"type":7}`, `{"type":"parade"}`, `{"type":"record","type":"check"}`,
		`{"type":"record","tokens":{"input":-1}}`, `{"type":"record","tokens":{"input":1.5}}`, `{"type":"record","usd":-1}`,
		`{"type":"probe","value":0.5}`, `{"type":"probe","stage":"x","value":2}`, `{"type":"verdict"}`, `{"type":"verdict","verdict":"perhaps"}`,
		`{"type":"check","input":{"tokens_in":-1}}`, `{"type":"check","input":{"tool_calls":[{}]}}`, `{"type":"record","meta":{"calls":-1}}`,
	} {
		if rec, err := guard.ParseLog([]byte(line)); err == nil {
			t.Errorf("%s: read as %+v", line, rec)
		}
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add([]byte(`{"v":1,"ts":"2026-01-02T03:04:05.000Z","type":"check","verdict":"ok","payload":"full","input":{"output":"x","tool_calls":[{"name":"a","args":{"b":[1]}}],"meta_json":{"c":1}}}`))
	f.Add([]byte(`{"type":"record","tokens":{"input":9223372036854775807,"output":1},"usd":0.5,"meta":{"model":"m","unpriced":1}}`))
	f.Add([]byte(`{"type":"check","verdict":"warn","input":{"output_digest":"00","tool_calls":[{"name":"a","args_digest":"\u0000"}]}}`))
	c, problems := guard.Parse([]byte(`{"limits": {"output_max": 5}, "tool_calls": {"allowed": ["a"]}, "forbidden_patterns": ["x"]}`), false)
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		rec, err := guard.ParseLog(line)
		if err != nil {
			return
		}
		rec.Time()
		r := guard.NewReplayer(c, nil)
		for range 3 {
			r.Next(rec)
		}
		if rec.Input != nil {
			rec.Input = rec.Input.Digested()
			r.Next(rec)
		}
		if b, err := json.Marshal(rec); err != nil {
			t.Errorf("a record that was read cannot be written: %v\n%s", err, b)
		}
	})
}

// TestReplayOfPacks: what packs found can be looked for again, unless the log has
// only digests.
func TestReplayOfPacks(t *testing.T) {
	c, problems := guard.Parse([]byte(`{"packs":{"pii":{"action":"abort"}}}`), false)
	if problems != nil {
		t.Fatal(problems)
	}
	step := verdict.Step{Task: "t", State: "a", Output: "ask a@acme.io", HasOutput: true}
	in := guard.LogInputOf(step)
	in.Charged = true
	rec := guard.LogRecord{TaskID: "t", Type: guard.LogCheck, Verdict: "abort", Payload: guard.PayloadFull, Input: in,
		Meta: &guard.LogMeta{Reasons: []guard.LogReason{{Code: "pii_found", Guard: "packs", Class: "abort"}}}}
	if result, ok := guard.NewReplayer(c, nil).Next(rec); !ok || result.Undecidable != "" || result.Differs {
		t.Errorf("judged again: %+v", result)
	}
	if result, _ := guard.NewReplayer(nil, nil).Next(rec); !result.Differs {
		t.Errorf("judged by nobody: %+v", result)
	}
	rec.Payload, rec.Input = guard.PayloadDigest, in.Digested()
	if result, _ := guard.NewReplayer(c, nil).Next(rec); result.Undecidable == "" {
		t.Errorf("judged by a digest: %+v", result)
	}
}
