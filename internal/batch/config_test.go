package batch_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/machine"
)

func TestParseBatchLoop(t *testing.T) {
	for _, c := range []struct {
		name, config string
		want         []string // parts of the error; none: it is accepted
	}{
		{"empty", `{}`, nil},
		{"null stands for empty", ` null `, nil},
		{"all options", `{"hardLimit":4,"warnThreshold":2,"windowSize":9,"onLoop":"error","warningMessage":"w","hardStopMessage":"s"}`, nil},
		{"whole numbers may have a fraction of nothing", `{"hardLimit":5.0,"windowSize":2e1}`, nil},
		{"the ends of the range", `{"hardLimit":50,"warnThreshold":50,"windowSize":50}`, nil},
		{"the other end", `{"hardLimit":1,"warnThreshold":1,"windowSize":1}`, nil},
		{"a low hard limit lowers the warning", `{"hardLimit":1}`, nil},
		{"a high hard limit widens the window", `{"hardLimit":40}`, nil},
		{"warning as late as the stop", `{"warnThreshold":5}`, nil},
		{"window as long as the limit", `{"windowSize":5}`, nil},
		{"zero", `{"hardLimit":0}`, []string{`"hardLimit"`, "is 0", "from 1 to 50"}},
		{"too much", `{"warnThreshold":51,"hardLimit":50}`, []string{`"warnThreshold"`, "is 51"}},
		{"fraction", `{"windowSize":20.5}`, []string{`"windowSize"`, "20.5", "whole number"}},
		{"number as text", `{"hardLimit":"5"}`, []string{`"hardLimit"`, `"5"`}},
		{"null as a number", `{"hardLimit":null}`, []string{`"hardLimit"`, "null"}},
		{"unknown mode", `{"onLoop":"End"}`, []string{`"onLoop"`, `"End"`, `"continue" "end" "error"`}},
		{"blank message", `{"warningMessage":" \t\ufeff"}`, []string{`"warningMessage"`, "not be empty"}},
		{"no text", `{"hardStopMessage":7}`, []string{`"hardStopMessage"`, "a text"}},
		{"misspelt", `{"hardlimit":5}`, []string{`"hardlimit"`, "is 5", `did you mean "hardLimit"?`}},
		{"extension names are unknown too", `{"x-note":1}`, []string{`"x-note"`, "no such option"}},
		{"twice", `{"hardLimit":5,"hardLimit":5}`, []string{`"hardLimit"`, "duplicate"}},
		{"two mistakes", `{"hardLimit":0,"onLoop":1}`, []string{`"hardLimit"`, `"onLoop"`}},
		{"removed: enabled", `{"enabled":true}`, []string{`"enabled"`, "removed"}},
		{"removed: maxRepeatedCalls", `{"maxRepeatedCalls":1}`, []string{"removed"}},
		{"removed: maxRepeatedFailures", `{"maxRepeatedFailures":1}`, []string{"removed"}},
		{"removed: detectSameResult", `{"detectSameResult":true}`, []string{"removed"}},
		{"removed: userMessage", `{"userMessage":"m"}`, []string{"removed"}},
		{"removed: toolMessage", `{"toolMessage":"m"}`, []string{"removed"}},
		{"removed: debugState", `{"debugState":true}`, []string{"removed"}},
		{"the hard limit stays when the warning moves", `{"warnThreshold":6}`, []string{`"hardLimit"`, "is 5", "warnThreshold, which is 6"}},
		{"the hard limit stays when the window moves", `{"windowSize":3,"warnThreshold":3}`, []string{`"windowSize"`, "is 3", "hardLimit, which is 5"}},
		{"the window one too short", `{"windowSize":4}`, []string{`"windowSize"`, "is 4"}},
		{"the limit one too low", `{"hardLimit":3,"warnThreshold":4}`, []string{`"hardLimit"`, "is 3"}},
		{"a list", `[]`, []string{"must be a JSON object"}},
		{"no JSON", `{"hardLimit":5`, []string{"batch_loop is not one JSON value"}},
		{"more after it", `{} {}`, []string{"batch_loop is not one JSON value"}},
		{"nothing", ``, []string{"batch_loop is not one JSON value"}},
		{"a ladder", `{"ladder":{"observe":2,"steer":3,"block":4,"escalate":6,"stop":8}}`, nil},
		{"a ladder of one rung", `{"ladder":{"stop":50}}`, nil},
		{"an empty ladder", `{"ladder":{}}`, []string{`"ladder"`, "no rung"}},
		{"a ladder downwards", `{"ladder":{"steer":4,"stop":4}}`, []string{`"ladder.stop"`, "is 4", "steer, which is 4"}},
		{"a rung above the window", `{"windowSize":5,"ladder":{"stop":6}}`, []string{`"ladder.stop"`, "is 6", "windowSize is 5"}},
		{"a rung that block jumps over", `{"ladder":{"block":4,"escalate":5,"stop":6}}`, []string{`"ladder.escalate"`, "no number of repetitions"}},
		{"a misspelt rung", `{"ladder":{"ster":3}}`, []string{`"ladder.ster"`, `did you mean "steer"?`}},
		{"a ladder and limits", `{"hardLimit":5,"onLoop":"end","ladder":{"stop":6}}`, []string{`"hardLimit"`, `"onLoop"`, "beside a ladder"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			loop, problems := batch.Parse([]byte(c.config))
			if (loop == nil) != (problems != nil) || (problems != nil) != (c.want != nil) {
				t.Fatalf("ParseBatchLoop(%s) = %v, %v", c.config, loop, problems)
			}
			for _, part := range c.want {
				if !strings.Contains(textOf(problems), part) {
					t.Errorf("the error is %q, without %q", textOf(problems), part)
				}
			}
		})
	}
}

// textOf returns what problems say, with their hints.
func textOf(problems []machine.Problem) string {
	var text strings.Builder
	for _, p := range problems {
		text.WriteString(p.Message + "; " + p.Hint + "\n")
	}
	return text.String()
}

func TestOptionErrorsAreShort(t *testing.T) {
	_, problems := batch.Parse([]byte(`{"onLoop":"` + strings.Repeat("ä", 5000) + `"}`))
	if problems == nil || len(textOf(problems)) > 300 {
		t.Errorf("the error has %d bytes", len(textOf(problems)))
	}
}

// Only one of two comparisons is reported: the window says nothing as long as the
// limits contradict each other.
func TestBatchLoopComparesLimitsBeforeWindow(t *testing.T) {
	_, problems := batch.Parse([]byte(`{"warnThreshold":9,"windowSize":2}`))
	if text := textOf(problems); !strings.Contains(text, "warnThreshold") || strings.Contains(text, "windowSize") {
		t.Errorf("the error is %v", problems)
	}
}
