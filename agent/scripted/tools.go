package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dialai/dialai/agent"
)

func (t *turn) work() {
	for _, u := range t.Tools {
		t.fold()
		if t.ctx.Err() != nil {
			return
		}
		t.use(u, "")
	}
}

// use uses a tool: one that the host serves by asking it, one of the agent's own as a program
// does, with the host's hooks before and after. parent is the use that started the subagent
// that uses it.
func (t *turn) use(u use, parent string) {
	id := t.newID("use")
	if slices.ContainsFunc(t.spec.Tools, func(h agent.Tool) bool { return h.Name == u.Tool }) {
		t.ask(id, agent.ToolCall{ID: id, Tool: u.Tool, Input: u.Input, Parent: parent})
		return
	}
	t.tell(agent.ToolUse{ID: id, Tool: u.Tool, Input: u.Input, MessageID: t.messageID(), Parent: parent})
	began := time.Now()
	output, err := t.own(u, id, parent)
	if err != nil {
		output = err.Error()
	}
	t.tell(agent.ToolDone{ID: id, OK: err == nil, Millis: time.Since(began).Milliseconds(), Output: output})
	hook := agent.Hook{ID: t.newID("hook"), Point: agent.AfterTool, Tool: u.Tool, Input: u.Input, Parent: parent}
	if t.ctx.Err() == nil {
		t.ask(hook.ID, hook)
	}
}

func (t *turn) newID(kind string) string {
	t.asked++
	return fmt.Sprintf("%s-%d", kind, t.asked)
}

// ask tells what waits for an answer, and waits; without one the turn was cut off.
func (t *turn) ask(id string, question agent.Body) (r agent.Reply, answered bool) {
	reply := make(chan agent.Reply, 1)
	t.mu.Lock()
	t.replies[id] = reply
	t.mu.Unlock()
	t.tell(question)
	for {
		select {
		case r = <-reply:
			return r, true
		case <-t.woken:
			t.sort()
		case <-t.ctx.Done():
			return t.unasked(id, question)
		}
	}
}

// unasked takes a question back, unless it has just been answered.
func (t *turn) unasked(id string, question agent.Body) (agent.Reply, bool) {
	t.mu.Lock()
	reply := t.replies[id]
	delete(t.replies, id)
	t.mu.Unlock()
	if _, ok := question.(agent.Permission); ok && reply != nil {
		t.tell(agent.Withdrawn{ID: id})
	}
	return agent.Reply{}, false
}

// own uses a tool of the agent's own: if it has it, and the host's hook lets it.
func (t *turn) own(u use, id, parent string) (output string, err error) {
	if t.spec.OwnTools != nil && !slices.Contains(t.spec.OwnTools, u.Tool) && !(isSpawn(u.Tool) && slices.ContainsFunc(t.spec.OwnTools, isSpawn)) {
		return "", fmt.Errorf("there is no tool %s", u.Tool)
	}
	hook := agent.Hook{ID: t.newID("hook"), Point: agent.BeforeTool, Tool: u.Tool, Input: u.Input, Parent: parent}
	switch r, ok := t.ask(hook.ID, hook); {
	case !ok:
		return "", errStopped
	case !r.Allow:
		return "", fmt.Errorf("refused: %s", r.Reason)
	}
	if isSpawn(u.Tool) {
		return t.spawn(u, id, parent)
	}
	return t.permitted(u, id, parent)
}

// permitted asks whether a tool may be used and then does.
func (t *turn) permitted(u use, id, parent string) (output string, err error) {
	p := agent.Permission{ID: t.newID("ask"), Tool: u.Tool, Input: u.Input, ToolUseID: id, Question: u.Tool == "AskUserQuestion", Parent: parent}
	r, ok := t.ask(p.ID, p)
	switch {
	case !ok || t.ctx.Err() != nil:
		return "", errStopped
	case !r.Allow:
		return "", fmt.Errorf("not permitted: %s", r.Reason)
	case p.Question:
		return string(r.Answers), nil
	}
	return t.perform(u)
}

// spawn plays a subagent, which uses the tools in the input, one after the other.
func (t *turn) spawn(u use, id, parent string) (string, error) {
	began := time.Now()
	var input struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(u.Input, &input) // what describes nothing is not described
	run := agent.Subagent{TaskID: "task-" + id, Description: input.Description, Depth: t.depth + 1}
	t.tell(run)
	t.depth++
	tools, _ := spawned(field{value: u.Input}) // was read with the script
	for _, inner := range tools {
		if t.ctx.Err() == nil {
			t.use(inner, id)
		}
	}
	t.depth--
	run.Status, run.Millis = "completed", time.Since(began).Milliseconds()
	if t.ctx.Err() != nil {
		run.Status = "stopped"
	}
	t.tell(run)
	return run.Status, nil
}
