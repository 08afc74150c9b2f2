package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/cli"
	"github.com/dialai/dialai/explain"
)

const contested = `{"machineName": "contested", "initialState": "a", "goalState": "c",
  "states": {"a": {"transitions": {"again": "a", "on": "c"}}, "c": {}}, "specialists": [
  {"role": "proposer", "specialistId": "first", "strategyFnName": "firstAvailable"},
  {"role": "proposer", "specialistId": "last", "strategyFnName": "lastAvailable"},
  {"role": "proposer", "specialistId": "broken", "strategyFn": "= 1 / 0 == 1 ? \"on\" : \"on\""},
  {"role": "proposer", "specialistId": "carol", "isHuman": true},
  {"role": "arbiter", "specialistId": "arb", "strategyFnName": "STRATEGY", "threshold": 0.6}]}`

// TestExplainTextIsOfTheData renders what --json prints and compares it with what
// the command prints without: the text knows nothing else.
func TestExplainTextIsOfTheData(t *testing.T) {
	h := newHome(t)
	checked := 0
	for _, strategy := range []string{"alignmentMargin", "bayes", "firstProposal"} {
		h.file("contested.json", strings.ReplaceAll(strings.ReplaceAll(contested, "contested", strategy), "STRATEGY", strategy))
		out, _ := anyCode(h, "contested.json", "--max-steps", "2")
		id := first(t, `Session ID:    (\S+)`, out)
		for range 3 {
			anyCode(h, "decide", id, "again", "--as", "carol", "--reasoning", "so it is", "--max-steps", "1")
		}
		for round := 1; round <= 4; round++ {
			args := []string{"explain", id, fmt.Sprint(round)}
			text, _ := anyCode(h, args...)
			data, _ := anyCode(h, append(args, "--json")...)
			if text == "" {
				continue // there was no such round
			}
			var e explain.Explanation
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			var again bytes.Buffer
			if err := cli.ExplainText(&again, &e); err != nil {
				t.Fatal(err)
			}
			if again.String() != text {
				t.Errorf("%s, round %d: the text is\n%s\nof the data it is\n%s", strategy, round, text, again.String())
			}
			checked++
		}
	}
	if checked < 8 {
		t.Errorf("only %d rounds were explained", checked)
	}
}

// TestExplainNeedsNoMore renders explanations that lack whatever may be left out.
func TestExplainNeedsNoMore(t *testing.T) {
	for _, data := range []string{`{}`, `{"verdict":{}}`, `{"verdict":{"judgement":{}},"votes":[{"specialist":"a"}]}`, `{"ruling":{},"changes":{},"gates":[{}],"votes":[{}]}`,
		`{"changes":{"reproduced":true,"distance":{},"whatIfs":[{},{"changed":true}]},"human":{},"draws":{},"reviews":[{}]}`,
		`{"verdict":{"judgement":{"options":["a","b"],"experts":[{"name":"V"}],"votes":[{"specialist":"a","human":true}],"risk":{}}},"votes":[{"specialist":"a","correlated":[{}]}]}`} {
		var e explain.Explanation
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := cli.ExplainText(&text, &e); err != nil || !strings.HasPrefix(text.String(), "Session ID:") {
			t.Errorf("%s is rendered as %q, %v", data, text.String(), err)
		}
	}
}

// anyCode runs the program to its end, whatever its exit code.
func anyCode(h *home, args ...string) (stdout, stderr string) {
	h.Helper()
	var out, problems bytes.Buffer
	cmd := h.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	exitOf(h.T, cmd.Run())
	return out.String(), problems.String()
}
