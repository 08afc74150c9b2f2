package guard

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dialai/dialai/verdict"
)

// referenceConfig is the published reference configuration, with limits raised
// so that every step is ok.
const referenceConfig = `{
	"limits": {"max_steps": 1000000000, "max_tokens_per_step": 4000, "max_total_tokens": 1000000000000, "output_min": 1, "output_max": 100000},
	"forbidden_patterns": %s,
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

// The patterns of the reference configuration, and twenty, the last of which has
// no text that every match contains.
const (
	twoPatterns    = `["as an ai language model", "lorem ipsum"]`
	twentyPatterns = `["as an ai language model", "lorem ipsum", "i cannot help with", "as a large language model", "i'm sorry, but",
		"begin rsa private key", "drop table", "rm -rf", "password\\s*[:=]", "api[_-]?key", "todo: implement", "lorem\\s+dolor",
		"ignore (all )?previous instructions", "system prompt", "confidential", "internal use only", "do not distribute",
		"insert credit card", "xoxb-[0-9]+", "[0-9]{3}-[0-9]{2}-[0-9]{4}"]`
)

// benchGuard returns a guard with the reference configuration; more are further
// members of loop_detection.
func benchGuard(tb testing.TB, profile Profile, patterns, more string) *Guard {
	return guardOf(tb, profile, fmt.Appendf(nil, referenceConfig, patterns, more))
}

func guardOf(tb testing.TB, profile Profile, config []byte) *Guard {
	c, problems := ParseAs(config, profile)
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	g, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// argSchemas are JSON Schemas for the arguments of the three tools of the steps.
const argSchemas = `, "arg_schemas": {"search": %[1]s, "read_file": %[1]s, "write_file": %[1]s}`

const argSchema = `{"type": "object", "required": ["path", "query"], "additionalProperties": false, "properties": {
	"path": {"type": "string", "minLength": 1, "maxLength": 200}, "query": {"type": "string", "maxLength": 500},
	"offset": {"type": "integer", "minimum": 0}, "limit": {"type": "integer", "minimum": 1, "maximum": 500},
	"recursive": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10}}}`

// schemaGuard is a benchGuard that holds arguments to schemas.
func schemaGuard(tb testing.TB, profile Profile, more string) *Guard {
	config := fmt.Sprintf(referenceConfig, twoPatterns, more)
	config = strings.Replace(config, `"requires_prev": "run_tests"}]`, `"requires_prev": "run_tests"}]`+fmt.Sprintf(argSchemas, argSchema), 1)
	return guardOf(tb, profile, []byte(config))
}

// benchSteps are steps with prose of the given length and three calls of about
// 330 bytes, each step other words.
func benchSteps(n, length int) []CheckInput {
	return benchStepsOf(n, func(i int) string { return proseFrom(uint64(i), length) })
}

func benchStepsOf(n int, say func(i int) string) []CheckInput {
	steps := make([]CheckInput, n)
	for i := range steps {
		output := say(i)
		steps[i] = CheckInput{TaskID: "t", State: fmt.Sprintf("s%d", i%40), Output: &output, Model: "gpt-4o", TokensIn: 900, TokensOut: 500}
		for k, tool := range []string{"search", "read_file", "write_file"} {
			args, _ := json.Marshal(map[string]any{"path": fmt.Sprintf("internal/server/handler_%d_test.go", i*3+k), "offset": 120, "limit": 80, "recursive": false, "tags": []string{"go", "test"}, "query": proseFrom(uint64(i*7+k+1000), 200)})
			steps[i].ToolCalls = append(steps[i].ToolCalls, verdict.ToolCall{Name: tool, Args: args})
		}
	}
	return steps
}

// singleToken is an output of one word; no two are alike.
func singleToken(i int) string { return fmt.Sprintf("%s%04d", strings.Repeat("a", 2044), i) }

// inputsFile lets other programs measure the same steps (bench/js).
var inputsFile = flag.String("inputs", "", "a file that BenchmarkCheck writes the steps of input b to, as JSON")

func writeInputs(tb testing.TB, file string, steps []CheckInput) {
	list := make([]map[string]any, len(steps))
	for i, s := range steps {
		var calls []map[string]any
		for _, c := range s.ToolCalls {
			calls = append(calls, map[string]any{"name": c.Name, "args": c.Args})
		}
		list[i] = map[string]any{"state": s.State, "output": s.Output, "model": s.Model, "tokens_in": s.TokensIn, "tokens_out": s.TokensOut, "tool_calls": calls}
	}
	data, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
