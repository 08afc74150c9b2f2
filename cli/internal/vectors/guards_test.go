package vectors_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dialai/dialai/cli/internal/vectors"
)

// runVectors returns what is printed of some cases. No command of the program is run.
func runVectors(t *testing.T, cases string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := vectors.Run(t.Context(), &out, []byte(cases), nil)
	return out.String(), err
}

func TestGuardVectors(t *testing.T) {
	for _, c := range []struct{ name, suite, config, inputs, want string }{
		{"loop", "loop-guard", `{"warnThreshold":2,"hardLimit":3,"onLoop":"error"}`, `{"op":"create"},
			{"op":"after_model","tool_calls":[{"name":"f","args":{"a":1}},{"name":"e"}]},
			{"op":"after_model_text"},
			{"op":"after_model","tool_calls":[{"name":"e"},{"name":"f","args":{"a":1.0}}]},
			{"op":"after_model","tool_calls":[{"name":"e"},{"name":"f","args":{"a":1.0}}]},
			{"op":"before_model"},
			{"op":"before_agent","state":{"window":["x"],"warned":["y","x"]}}`, `
			{"status":"ok","reasons":[],"pending":false,"window":0,"warned":0}
			{"status":"continue","reasons":[],"count":1,"tools":["e","f"],"pending":false,"window":1,"warned":0}
			{"status":"noop","reasons":[],"pending":false,"window":1,"warned":0}
			{"status":"warn_scheduled","reasons":["batch_repeat"],"count":2,"tools":["e","f"],"pending":true,"window":2,"warned":1}
			{"status":"error","reasons":["batch_repeat"],"count":3,"tools":["e","f"],"pending":true,"window":2,"warned":1}
			{"status":"inject","reasons":[],"count":2,"tools":["e","f"],"pending":false,"window":2,"warned":1}
			{"status":"noop","reasons":[],"pending":false,"window":1,"warned":1}`},
		{"loop misconfigured", "loop-guard", `{"hardLimit":0}`, `{"op":"create"}`, `
			{"status":"config_error","reasons":[]}`},
		{"gate", "gate", `{"ledger":{"hard_limit_calls":2,"soft_limit_tokens":8}}`, `
			{"scores":{"uncertainty":0.6,"sensitivity":0.5,"adherence":0.5},"prompt":"abc","answer":""},
			{"scores":{"uncertainty":"NaN","sensitivity":0.5,"adherence":0.5},"tokens":{"input":1,"output":0}},
			{"scores":{"uncertainty":0.1,"sensitivity":0.5,"adherence":0.5},"tokens":{"input":1,"output":0}}`, `
			{"status":"pass","reasons":[],"llm_calls":0,"probes_run":["uncertainty","sensitivity","adherence"],"soft_warns":1,"uncertainty":0.6,"ledger":{"tokens":9,"calls":1}}
			{"status":"escalate","reasons":["internal_error"],"llm_calls":0,"probes_run":["uncertainty","sensitivity","adherence"],"soft_warns":0,"ledger":{"tokens":10,"calls":2}}
			{"status":"budget_exceed","reasons":[],"llm_calls":0,"probes_run":[],"soft_warns":0,"ledger":{"tokens":11,"calls":3}}`},
		{"gate with a verifier", "gate", `{"estimator":"process_reward_verifier"}`, `
			{"scores":{"uncertainty":null,"sensitivity":1,"adherence":1},"step_scores":[0.9,0.7],"tokens":{"input":1,"output":1}}`, `
			{"status":"pass","reasons":[],"llm_calls":2,"probes_run":["uncertainty","sensitivity","adherence"],"soft_warns":0,"uncertainty":0.3}`},
		{"gate with others", "gate", `{"budget":{"hard_limit_tokens":10}}`, `
			{"scores":{"uncertainty":0.1,"sensitivity":1,"adherence":1},"tokens":{"input":1,"output":1},"external_debit_after":{"stage":"sensitivity","tokens":9}}`, `
			{"status":"budget_exceed","reasons":[],"llm_calls":0,"probes_run":["uncertainty","sensitivity"],"soft_warns":0,"uncertainty":0.1,"ledger":{"tokens":11,"calls":2}}`},
		{"gate with a fault", "gate", `{}`, `
			{"scores":{"uncertainty":0.1,"sensitivity":1,"adherence":1},"fault":{"stage":"sensitivity"}}`, `
			{"status":"escalate","reasons":["internal_error"],"llm_calls":0,"probes_run":["uncertainty","sensitivity"],"soft_warns":0,"uncertainty":0.1}`},
		{"gate without a model", "gate", `{"completion":null}`, `{"scores":{"uncertainty":0.1,"sensitivity":1,"adherence":1}}`, `
			{"status":"escalate","reasons":["internal_error"],"llm_calls":0,"probes_run":[],"soft_warns":0}`},
		{"gate with both books", "gate", `{"budget":{},"ledger":{}}`, `{"scores":{"uncertainty":0.1,"sensitivity":1,"adherence":1},"tokens":{"input":1,"output":1}}`, `
			{"status":"escalate","reasons":["internal_error"],"llm_calls":0,"probes_run":[],"soft_warns":0,"ledger":{"tokens":2,"calls":1}}`},
		{"gate with a failing sink", "gate", `{"on_event":"throws"}`, `{"scores":{"uncertainty":0.1,"sensitivity":1,"adherence":1}}`, `
			{"status":"escalate","reasons":["internal_error"],"llm_calls":0,"probes_run":[],"soft_warns":0}`},
		{"gate with a failing callback", "gate", `{"on_soft_warn":"throws","ledger":{"soft_limit_tokens":0}}`, `{"scores":{"uncertainty":0.1,"sensitivity":1,"adherence":1},"tokens":{"input":1,"output":1}}`, `
			{"status":"escalate","reasons":["internal_error"],"llm_calls":0,"probes_run":[],"soft_warns":1,"ledger":{"tokens":2,"calls":1}}`},
		{"score", "prm-parse", `{"parse_failure_score":0.5}`, "{\"critique\":\"SCORE: 0.25\"},\n{\"critique\":\"SCORE: 85\"}", `
			{"status":"parsed","reasons":[],"score":0.25}
			{"status":"unparsed","reasons":[],"score":0.5}`},
		{"steps", "prm-aggregate", `{"aggregator":"mean","max_step_chars":3}`, `{"steps":["abcd","ef"],"step_scores":[0.5,null]}`, `
			{"status":"value","reasons":[],"value":0.75,"llm_calls":2,"embedded_step_chars_max":3,"embedded_answer_chars_max":8}`},
		{"words", "jaccard", `{}`, `{"a":"x y","b":"Y"}`, `
			{"status":"value","reasons":[],"distance":0.5}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := runVectors(t, `[{"name":"n","suite":"`+c.suite+`","config":`+c.config+`,"steps":[{"input":`+
				strings.ReplaceAll(c.inputs, "},\n", "}},\n{\"input\":")+`}]}]`)
			if err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			for i, line := range strings.Split(strings.TrimSpace(c.want), "\n") {
				want.WriteString(`{"name":"n","step":` + string(rune('0'+i)) + `,"result":` + strings.TrimSpace(line) + "}\n")
			}
			if got != want.String() {
				t.Errorf("printed\n%swant\n%s", got, want.String())
			}
		})
	}
}

// What a case expects must not matter.
func TestGuardVectorsIgnoreExpectations(t *testing.T) {
	const one = `[{"name":"n","suite":"jaccard","steps":[{"input":{"a":"x","b":"x"},"expect":%}]}]`
	a, _ := runVectors(t, strings.ReplaceAll(one, "%", `{"distance":1}`))
	b, _ := runVectors(t, strings.ReplaceAll(one, "%", `[]`))
	if a != b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
}

func TestGuardVectorsRefuse(t *testing.T) {
	for _, cases := range []string{
		`[{"name":"n","suite":"none","steps":[]}]`,
		`[{"name":"n","suite":"loop-guard","steps":[{"input":{"op":"jump"}}]}]`,
		`[{"name":"n","suite":"loop-guard","steps":[{"input":[]}]}]`,
		`[{"name":"n","suite":"gate","config":[],"steps":[]}]`,
		`[{"name":"n","suite":"jaccard","steps":7}]`,
	} {
		if out, err := runVectors(t, cases); err == nil || !strings.Contains(err.Error(), "case 0 (n)") && !strings.Contains(err.Error(), "case 0:") {
			t.Errorf("%s: %q, %v", cases, out, err)
		}
	}
}
