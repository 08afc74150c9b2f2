package permit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dialai/dialai/permit"
)

func asked(questions string) permit.Prompt {
	return permit.Prompt{Agent: "claude", AgentSession: "s1", Tool: "AskUserQuestion", Input: json.RawMessage(`{"questions":` + questions + `}`), Cwd: "/work"}
}

// TestAnswersAreHeldToTheQuestions: a ruling whose answers name another question, or an option
// that a question does not have, is refused with what there is; one that fits is delivered.
func TestAnswersAreHeldToTheQuestions(t *testing.T) {
	for _, c := range []struct{ questions, answers, refused string }{
		{`[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]`, `{"Which?":"a"}`, ""},
		{`[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]`, `{"Which?":"c"}`, "c does not equal any of: [a b]"},
		{`[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]`, `{"Which?":"a, b"}`, "a, b does not equal any of: [a b]"},
		{`[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]`, `{"Who?":"a"}`, "Who? does not equal any of: [Which?]"},
		{`[{"question":"Which?","options":[{"label":"a"}]},{"question":"Why?"}]`, `{"Which?":"a"}`, `["Why?"]`},
		{`[{"question":"Which?","options":[{"label":"a"}]},{"question":"Why?"}]`, `{"Which?":"a","Why?":"so"}`, ""},
		{`[{"question":"Which?","options":[{"label":"a"}]}]`, `{"Which?":["a"]}`, "type"},
		{`[{"question":"Which?","multiSelect":true,"options":[{"label":"a.c"},{"label":"a.c, d"},{"label":"e"}]}]`, `{"Which?":"a.c, d, e"}`, ""},
		{`[{"question":"Which?","multiSelect":true,"options":[{"label":"a.c"},{"label":"e"}]}]`, `{"Which?":"e, abc"}`, `"e, abc" does not match`},
		{`[{"question":"Which?","multiSelect":true,"options":[{"label":"a"}]}]`, `{"Which?":"a,a"}`, `"a,a" does not match`},
		{`[{"question":"Use ghp_0123456789abcdefghijklmnopqrstuvwxyz?","options":[{"label":"ghp_0123456789abcdefghijklmnopqrstuvwxyz"}]}]`, `{"Use [redacted:github_token]?":"[redacted:github_token]"}`, ""},
	} {
		d := newDesk(t)
		p := asked(c.questions)
		err := d.rule(d.ask(p).Session, "answer", `{"answers":`+c.answers+`}`)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s answered %s: %v, want it refused: %s", c.questions, c.answers, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s answered %s: %v", c.questions, c.answers, err)
			continue
		}
		want := strings.ReplaceAll(c.answers, "[redacted:github_token]", "ghp_0123456789abcdefghijklmnopqrstuvwxyz")
		if a := d.ask(p); a.Behavior != permit.Allow || string(a.Answers) != want {
			t.Errorf("%s: delivered is %q %s (%s), want %s", c.questions, a.Behavior, a.Answers, a.Message, want)
		}
	}
}

// TestAnswersOfAnotherMachine: where a question cannot be held to when it is ruled, what does
// not answer it is not delivered.
func TestAnswersOfAnotherMachine(t *testing.T) {
	d := newDesk(t)
	for _, questions := range []string{`[{"question":"Which?"},{"question":"Which?"}]`, `[{"question":""}]`, `"which?"`, `[]`} {
		p := asked(questions)
		d.rules(d.ask(p).Session, "answer", `{"answers":{"Which?":"a"}}`)
		if a, err := d.Ask(d.ctx, p); err == nil || a.Behavior != "" || !strings.Contains(err.Error(), `there is no question "Which?"`) {
			t.Errorf("%s: delivered is %q %s, %v", questions, a.Behavior, a.Answers, err)
		}
	}
}
