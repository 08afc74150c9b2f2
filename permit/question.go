package permit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// What an agent asks its user has questions, and a question may have options. A ruling is held
// to them twice. The session of a question pins a machine of its own, whose transition answer
// has the schema of exactly these answers, so that whoever rules is told at once what there is
// to choose from. And an answer is delivered by the questions and labels as the agent wrote
// them; the session knows them with secrets masked.

// A question is one that an agent asks its user.
type question struct {
	Text    string   `json:"question"`
	Options []option `json:"options"`
	Several bool     `json:"multiSelect"` // labels, joined by ", "
}

type option struct {
	Label string `json:"label"`
}

// questionsOf reads the questions of an input; nil if it has none that are read whole.
func questionsOf(input json.RawMessage) []question {
	var in struct {
		Questions []question `json:"questions"`
	}
	if jsontext.Unmarshal(input, &in) != nil {
		return nil
	}
	for i, q := range in.Questions {
		if q.Text == "" || slices.ContainsFunc(q.Options, func(o option) bool { return o.Label == "" }) || slices.ContainsFunc(in.Questions[:i], func(p question) bool { return p.Text == q.Text }) {
			return nil
		}
	}
	return in.Questions
}

// labels returns those of a question's options.
func (q question) labels() (list []string) {
	for _, o := range q.Options {
		list = append(list, o.Label)
	}
	return list
}

// schema is that of the answer to a question.
func (q question) schema() map[string]any {
	switch {
	case len(q.Options) == 0:
		return map[string]any{"type": "string", "minLength": 1}
	case q.Several:
		var list []string
		for _, l := range q.labels() {
			list = append(list, regexp.QuoteMeta(l))
		}
		one := "(" + strings.Join(list, "|") + ")"
		return map[string]any{"type": "string", "pattern": "^" + one + "(, " + one + ")*$"}
	}
	return map[string]any{"type": "string", "enum": q.labels()}
}

// text says what there is to answer with.
func (q question) text() string {
	switch labels := strings.Join(q.labels(), " | "); {
	case labels == "":
		return q.Text + " any text"
	case q.Several:
		return q.Text + " " + labels + ` (one or more, joined by ", ")`
	default:
		return q.Text + " " + labels
	}
}

// answering returns a machine whose transitions named answer take answers to the questions and
// nothing else; m itself if that cannot be.
func answering(m *machine.Machine, questions []question) *machine.Machine {
	var names, texts []string
	properties := map[string]any{}
	for _, q := range questions {
		names, texts, properties[q.Text] = append(names, q.Text), append(texts, q.text()), q.schema()
	}
	if len(names) == 0 {
		return m
	}
	answer := map[string]any{
		"type": "object", "required": []string{"answers"},
		"properties": map[string]any{"answers": map[string]any{"type": "object", "required": names, "propertyNames": map[string]any{"enum": names}, "properties": properties}},
	}
	var def map[string]any
	if jsontext.Unmarshal(m.JSON(), &def) != nil {
		return m
	}
	states, _ := def["states"].(map[string]any)
	for _, s := range states {
		state, _ := s.(map[string]any)
		transitions, _ := state["transitions"].(map[string]any)
		if t, ok := transitions["answer"].(map[string]any); ok {
			t["parameters"], t["description"] = answer, strings.Join(texts, "; ")
		}
	}
	text, err := jsontext.Marshal(def)
	if err != nil {
		return m
	}
	narrow, err := machine.Parse("permission.json", text, runner.Checks())
	if err != nil {
		return m // the answers are still looked at when they are delivered
	}
	return narrow
}

// delivered returns what was answered to masked questions as answers to those that were asked.
func delivered(given any, masked, asked []question) (json.RawMessage, error) {
	answers, ok := given.(map[string]any)
	if !ok || len(masked) != len(asked) {
		return nil, fmt.Errorf("the answers are no object of answers by question")
	}
	out := map[string]string{}
	for text, answer := range answers {
		i := slices.IndexFunc(masked, func(q question) bool { return q.Text == text })
		if i < 0 {
			return nil, fmt.Errorf("there is no question %q; there are %q", text, texts(masked))
		}
		label, err := masked[i].chosen(answer, asked[i])
		if err != nil {
			return nil, err
		}
		out[asked[i].Text] = label
	}
	return jsontext.Marshal(out)
}

func texts(questions []question) (list []string) {
	for _, q := range questions {
		list = append(list, q.Text)
	}
	return list
}

// chosen returns an answer as the agent's own labels.
func (q question) chosen(answer any, asked question) (string, error) {
	text, ok := answer.(string)
	wrong := fmt.Errorf("%q has no option %q; there are %q", q.Text, fmt.Sprint(answer), q.labels())
	switch {
	case !ok || len(q.Options) != len(asked.Options):
		return "", wrong
	case len(q.Options) == 0:
		return text, nil
	}
	var own []string
	for rest := text; ; {
		i := q.longest(rest)
		if i < 0 {
			return "", wrong
		}
		own = append(own, asked.Options[i].Label)
		after := rest[len(q.Options[i].Label):]
		if after == "" {
			return strings.Join(own, ", "), nil
		}
		if rest, ok = strings.CutPrefix(after, ", "); !ok || !q.Several {
			return "", wrong
		}
	}
}

// longest returns the option with the longest label that a text is or that ", " follows in it,
// -1 if there is none.
func (q question) longest(text string) (at int) {
	at = -1
	for i, o := range q.Options {
		after, begins := strings.CutPrefix(text, o.Label)
		if begins && (after == "" || q.Several && strings.HasPrefix(after, ", ")) && (at < 0 || len(o.Label) > len(q.Options[at].Label)) {
			at = i
		}
	}
	return at
}
