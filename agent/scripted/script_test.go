package scripted_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent/scripted"
)

// TestBadScript: an error says where, what and what to do.
func TestBadScript(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"{}\n\n{\"used\": -5}", `s.jsonl:3:10: used: -5: must be a whole number from 0 to 1000000000: the tokens in use, such as 120000`},
		{`{"text": ""}`, `s.jsonl:1:10: text: "": must be a text that is not empty: say something, or leave it out`},
		{`{"as": 5}`, `s.jsonl:1:8: as: 5: must be a text that is not empty: name a specialist, such as "orchestrator", or leave it out for any`},
		{`{"as": null}`, `s.jsonl:1:8: as: null: must be`},
		{`{"as":"é", "foo": 1}`, `s.jsonl:1:19: foo: 1: there is no such field: use as, text, tools,`},
		{`{"text":"a","text":"b"}`, `s.jsonl:1:20: text: "b": is there twice: leave one out`},
		{`{"window": 0}`, `s.jsonl:1:12: window: 0: must be a whole number from 1 to`},
		{`{"used": 1.5}`, `used: 1.5: must be a whole number`},
		{`{"cost_usd": -1}`, `s.jsonl:1:14: cost_usd: -1: must be a number from 0 to 1000000: US dollars, such as 0.25`},
		{`{"cost_usd": 1e400}`, `cost_usd: 1e400: must be a number`},
		{`{"cost_usd": "1"}`, `cost_usd: "1": must be a number`},
		{`{"wait_ms": 86400001}`, `wait_ms: 86400001: must be a whole number from 0 to 86400000: milliseconds, such as 250`},
		{`{"submit": {"message": "x"}}`, `s.jsonl:1:12: submit: {"message": "x"}: has no transition: add one, such as {"transition": "report", "message": "…"}`},
		{`{"submit": {"transition": ""}}`, `s.jsonl:1:27: submit.transition: "": must be a text that is not empty: name the move, such as "report"`},
		{`{"submit": []}`, `s.jsonl:1:12: submit: []: must be an object {…}`},
		{`{"end": "stop"}`, `s.jsonl:1:9: end: "stop": must be "crash", "hang" or "full": leave it out for a turn that ends`},
		{`{"tools": {}}`, `s.jsonl:1:11: tools: {}: must be a list [{"tool": …, "input": {…}}]`},
		{`{"tools": null}`, `tools: null: must be a list`},
		{`{"tools": [{"tool": "Bash"}, {"input": {}}]}`, `s.jsonl:1:30: tools[1]: {"input": {}}: has no tool: add one, such as "tool": "Bash"`},
		{`{"tools": [{"tool": "Bash", "input": "ls"}]}`, `s.jsonl:1:38: tools[0].input: "ls": must be an object {…}`},
		{`{"tools": [{"tool": "Bash", "name": "ls"}]}`, `s.jsonl:1:37: tools[0].name: "ls": there is no such field: use tool and input`},
		{`{"tools": [{"tool": "Task", "input": {"tools": [{"tool": 1}]}}]}`, `s.jsonl:1:58: tools[0].input.tools[0].tool: 1: must be a text`},
		{`["text"]`, `s.jsonl:1:1: a line: ["text"]: must be an object {…}`},
		{`{"text": "a"} {"text": "b"}`, `s.jsonl:1:14: {"text": "b"}: more after the object: one turn a line`},
		{`{"text": "a`, `s.jsonl:1:`},
		{"{}\n{\"text\" \"a\"}", `s.jsonl:2:`},
		{"{\"text\": \"\xff\"}", `s.jsonl:1:1: not UTF-8: save the file as UTF-8`},
		{`{"foo": "` + strings.Repeat("x", 100) + `"}`, `foo: "` + strings.Repeat("x", 59) + `…: there is no such field`},
	} {
		_, err := scripted.New("s.jsonl", []byte(c.script))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.script, err, c.want)
		}
	}
}

// FuzzScript: reading never panics, and an error is short and says where.
func FuzzScript(f *testing.F) {
	for _, seed := range []string{
		"\uFEFF{\"as\":\"a\",\"text\":\"b\"}\r\n\r\n{}",
		`{"tools":[{"tool":"Task","input":{"description":"d","tools":[{"tool":"Read","input":{"file_path":"x"}}]}}],"used":1,"window":2,"cost_usd":0.1,"wait_ms":3,"submit":{"transition":"t"},"end":"hang"}`,
		`{"tools": [ { "tool" : 1 } ]}`, `{"text": "a`, `[`, `{"submit": {"transition": {"a": [1, {}]}}} x`,
	} {
		f.Add([]byte(seed))
	}
	where := regexp.MustCompile(`^s\.jsonl:[0-9]+:[0-9]+: `)
	f.Fuzz(func(t *testing.T, script []byte) {
		_, err := scripted.New("s.jsonl", script)
		if err != nil && (!where.MatchString(err.Error()) || len(err.Error()) > 1000+2*len(script)) {
			t.Errorf("%q: %v", script, err)
		}
	})
}
