package undertaking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/agent"
)

// The tools by which an agent tells the loop something. They propose, and never rule. submit
// is checked at once; the last that was good is the turn's move, and is handed in when the turn
// ends, so that an agent may change its mind until then.

// hostTools returns the tools that the loop serves to an agent.
func hostTools(as string) []agent.Tool {
	ops, do := "list", "op: list."
	if as == orchestrator {
		ops, do = `list","add","set`, "op: list, add (text), set (id, status: pending, active, done)."
	}
	return []agent.Tool{
		{Name: "submit", Description: "Name the move with which this turn ends. Call it last; the newest counts.", InputSchema: submitSchema(as)},
		{Name: "note", Description: "Write a remark into the log. Nobody answers.", InputSchema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`)},
		{Name: "tasks", Description: "The list of tasks that people see. " + do, InputSchema: json.RawMessage(`{"type":"object","required":["op"],"properties":{"op":{"enum":["` + ops + `"]},"id":{"type":"integer"},"text":{"type":"string"},"status":{"enum":["pending","active","done"]}}}`)},
		{Name: "moves", Description: "The state, the moves that you may make now, and how full your context is.", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
}

const (
	aText       = `{"type":"string"}`
	aList       = `{"type":"array","items":{"type":"string"}}`
	aQuestions  = `{"type":"array","items":{"type":"object","required":["text"],"properties":{"text":{"type":"string"},"options":{"type":"array","items":{"type":"string"}}}}}`
	aFindings   = `{"type":"array","items":{"type":"object","required":["text","evidence"],"properties":{"text":{"type":"string"},"evidence":{"type":"string"}}}}`
	aContinuity = `{"type":"object","properties":{"intent":{"type":"string"},"decisions":{"type":"array","items":{"type":"string"}},"open_questions":{"type":"array","items":{"type":"string"}}}}`
)

// submitMembers are the members of what each agent submits, beside transition and message.
var submitMembers = map[string][][2]string{
	manager: {{"questions", aQuestions}, {"understanding", aText}, {"deliverables", aList}, {"out_of_scope", aList}, {"done_when", aList}, {"check", aText}, {"continuity", aContinuity}},
	orchestrator: {
		{"questions", aQuestions}, {"understanding", aText}, {"approach", aText}, {"tasks", aList},
		{"accomplished", aList}, {"remaining", aList}, {"context", aText}, {"files", aList}, {"commits", aList}, {"open_risks", aList},
	},
	verifierA: {{"findings", aFindings}},
	verifierB: {{"findings", aFindings}},
}

func submitSchema(as string) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","required":["transition","message"],"properties":{"transition":{"type":"string"},"message":{"type":"string"}`)
	for _, m := range submitMembers[as] {
		fmt.Fprintf(&b, ",%q:%s", m[0], m[1])
	}
	b.WriteString("}}")
	return json.RawMessage(b.String())
}

// called answers a use of one of our tools, and reports whether the session may have to be
// stepped.
func (l *Loop) called(ctx context.Context, v *live, c agent.ToolCall) bool {
	l.batchedOurs(ctx, v, c)
	content, err := l.use(ctx, v, c)
	r := agent.Reply{To: c.ID, Content: content, IsError: err != nil}
	if err != nil {
		r.Content = err.Error()
	}
	if w := l.state.agent(v.who); w.Notice != "" && c.Parent == "" { // an agent without hooks hears it here
		r.Notice = w.Notice
		l.note(v.who, kindNoticed, nil)
	}
	l.answer(ctx, v, r)
	return false
}

func (l *Loop) use(ctx context.Context, v *live, c agent.ToolCall) (string, error) {
	w := l.state.agent(v.who)
	if c.Parent != "" {
		return "", errors.New("a subagent makes no move: tell the one that started you")
	}
	switch c.Tool {
	case "submit":
		return l.submit(ctx, w, c.Input)
	case "note":
		text := read[struct{ Text string }](c.Input).Text
		if strings.TrimSpace(text) == "" {
			return "", errors.New("text is missing")
		}
		l.note(v.who, kindNote, map[string]string{"text": clip(text, maxLogged)})
		l.tell(v.who, "notes: %s", firstLine(text))
		return "noted", nil
	case "tasks":
		return l.useTasks(v.who, c.Input)
	case "moves":
		return fmt.Sprintf("State %s. Legal moves: %s. Your context is %s full.", l.s.State.Name, strings.Join(moves[l.s.State.Name][v.who.As], ", "), percent(w.Usage)), nil
	}
	return "", fmt.Errorf("there is no tool %q", clip(c.Tool, 64))
}

// submit takes the move of a turn.
func (l *Loop) submit(ctx context.Context, w *Worker, input json.RawMessage) (string, error) {
	m, err := checkMove(l.s.State.Name, w.As, input)
	if err != nil {
		return "", err
	}
	if given := read[struct{ Continuity json.RawMessage }](m.Payload).Continuity; w.As == manager && (given != nil || w.Level != "" && w.Continuity == nil) {
		if err := checkContinuity(given); err != nil {
			return "", err
		}
	}
	m.Round = l.s.Key().Round
	if err := l.commit(ctx, w.who(), kindSubmitted, m); err != nil {
		l.fail(err)
		return "", errors.New("it could not be recorded")
	}
	return m.Transition + " is the move of this turn. End the turn now.", nil
}

func percent(u agent.Usage) string {
	if pct := u.Percent(agent.Ceiling); pct >= 0 {
		return itoa(pct) + " %"
	}
	return "an unknown part"
}

// maxTask is how long a task may be, in bytes.
const maxTask = 500

// maxTasks is how many tasks an undertaking may list.
const maxTasks = 200

// useTasks lists, adds or sets tasks. A task is owned by the undertaking, not by a worker: a
// successor finds the list as it was. Verified is said by a check only.
func (l *Loop) useTasks(about who, input json.RawMessage) (string, error) {
	in := read[struct {
		Op, Text, Status string
		ID               int
	}](input)
	if about.As != orchestrator && in.Op != "list" {
		return "", errors.New("the list is the workers': op may be list")
	}
	switch in.Op {
	case "list":
		return taskList(l.state.Tasks), nil
	case "add":
		if strings.TrimSpace(in.Text) == "" {
			return "", errors.New("text is missing")
		}
		if len(l.state.Tasks) >= maxTasks {
			return "", fmt.Errorf("there are %d tasks, and not more are kept", maxTasks)
		}
		t := Task{ID: len(l.state.Tasks) + 1, Text: clip(in.Text, maxTask), Status: "pending"}
		l.note(about, kindTask, t)
		return fmt.Sprintf("task %d", t.ID), nil
	case "set":
		if in.Status != "pending" && in.Status != "active" && in.Status != "done" {
			return "", fmt.Errorf("status is %q, it may be pending, active or done", clip(in.Status, 64))
		}
		for _, t := range l.state.Tasks {
			if t.ID == in.ID {
				t.Status = in.Status
				l.note(about, kindTask, t)
				l.tell(about, "task %d %s: %s", t.ID, t.Status, firstLine(t.Text))
				return fmt.Sprintf("task %d is %s", t.ID, t.Status), nil
			}
		}
		return "", fmt.Errorf("there is no task %d", in.ID)
	}
	return "", fmt.Errorf("op is %q, it may be list, add or set", clip(in.Op, 64))
}

func taskList(tasks []Task) string {
	if len(tasks) == 0 {
		return "There are no tasks."
	}
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%d %s: %s\n", t.ID, t.Status, t.Text)
	}
	return b.String()
}
