package undertaking

import (
	"fmt"
	"strings"
)

// What a worker is told: the task, and what the next one has to know of those before it, which is
// their record and the working tree, never what they said.

const workerPart = `You are worker %d of one undertaking, which is larger than one session. Whoever talks to you as the user runs it.

Your context is finite. You will be told when it gets full: then bring your work to an end, and hand over with a record. Another worker goes on from that record and from the working tree, and sees nothing else of you. So commit often, in small steps, and keep the list of tasks true (tool tasks).

Give well-bounded pieces of the work to subagents, wait for them, and keep your own context for the whole. No subagent judges its own work. Ask (inquire) only when you cannot decide yourself.

Every turn ends with one move: call the tool submit as the last thing you do. The moves, each with a message:
- report: what you have done; you go on at once.
- hand_off: your record: accomplished [], remaining [], context, and if you like files [], commits [], open_risks [].
- complete: the same record with nothing remaining: all that was asked for is done, and you have checked it.
`

const workerSolo = `- inquire: questions [{text, options?}] that only a human can answer.
"complete" is a claim. A check is run on it, and a human decides.`

const workerFull = `- inquire: questions [{text, options?}] that you cannot decide; your user answers.
- clarify, before you begin: questions [{text, options?}] about what is wanted.
- begin, once all is clear: understanding, approach, tasks []: what you will do, in your own words.
- recount: the answer to a question about your record.
"complete" is a claim. Your user reads your record and may ask about it; then a check is run, and others judge what is there.`

// workerPrompt returns what a worker's next turn begins with.
func (l *Loop) workerPrompt(w *Worker, v *live) string {
	switch {
	case l.s.State.Name == "wrapping":
		return "Stop here: your session ends with this turn. Do no more work. Hand over now: submit hand_off with your record (accomplished, remaining, context for whoever goes on, files, commits, open risks)."
	case w.Finished == 0 && w.Opened == 1:
		return l.opening(w)
	case w.Finished == 0 && !v.prompted: // whatever it was told, it may not have been kept
		return l.opening(w) + "\n\nYou may have begun with this already: look at the working tree."
	case w.Opened > 1 && !v.prompted:
		return restarted + "Look at the working tree before you trust what you remember.\n\n" + l.goOn()
	}
	return l.goOn()
}

// opening is the first prompt of a worker.
func (l *Loop) opening(w *Worker) string {
	in := l.input()
	var b strings.Builder
	fmt.Fprintf(&b, "The task: %s\nThe working tree: %s\n", in.Task, l.c.Cwd)
	if line := l.checkCommand(); line != "" {
		fmt.Fprintf(&b, "The check that must pass: %s\n", line)
	}
	if in.Spec != "" {
		b.WriteString("\n" + block("the specification", in.Spec))
	}
	if plan := l.data("plan"); plan != nil {
		b.WriteString("\n" + block("the plan that was agreed", indented(plan)))
	}
	if w.Number > 1 {
		l.successor(&b, w)
	}
	switch {
	case l.full():
		b.WriteString("\nRead what is there. Then ask what is unclear (clarify), or say what you have understood and will do (begin).")
	case w.Number == 1:
		b.WriteString("\nBegin: read what is there, list the tasks, and work.")
	}
	return b.String()
}

// successor tells a worker of those before it.
func (l *Loop) successor(b *strings.Builder, w *Worker) {
	fmt.Fprintf(b, "\nWorker %d has handed over to you. Look at the working tree before you trust its record.\n", w.Number-1)
	if l.state.Churn >= softChurn {
		fmt.Fprintf(b, "The last %d workers left no commit, no changed file and no finished task. Leave something, or ask: if you leave nothing either, the undertaking stops.\n", l.state.Churn)
	}
	if text := recordText(l.state.Record); text != "" {
		b.WriteString("\n" + block("the record of worker "+itoa(w.Number-1), text))
	}
	if failed := l.failedCheck(); failed != "" {
		b.WriteString("\n" + failed)
	}
	if text := findingsText(l.data("findings")); text != "" {
		b.WriteString("\n" + block("findings of those who judged the work", text))
	}
	if text := l.rulings(); text != "" {
		b.WriteString("\n" + block("what the human has decided", text))
	}
	if len(l.state.Tasks) > 0 {
		b.WriteString("\n" + block("the list of tasks", taskList(l.state.Tasks)))
	}
}

// goOn is the prompt of a worker whose turn has ended, by what happened since.
func (l *Loop) goOn() string {
	switch last := l.state.Last; {
	case l.s.State.Name == "aligning":
		return "Ask what is still unclear (clarify), or say what you have understood and will do (begin)."
	case l.s.State.Name == "recounting":
		return "Your user asks about your record. Answer with recount; do no more work."
	case last.Transition == "failed":
		return l.failedCheck() + "\nMend it, and go on."
	case last.Transition == "reply":
		return block(last.By, messageIn(last.Payload)) + "\nGo on by that."
	}
	return "Go on with the work."
}

// failedCheck tells of a check that does not pass; "" if the newest has.
func (l *Loop) failedCheck() string {
	m := l.state.Last.Payload
	if l.full() {
		m = l.data("check")
	}
	if l.state.Last.Transition != "failed" && !l.full() || m == nil || l.state.Passed {
		return ""
	}
	d := read[struct {
		Command, Output string
		Exit            int
	}](m)
	return fmt.Sprintf("The check %q does not pass (exit code %d).\n%s", d.Command, d.Exit, block("its output", d.Output))
}

// maxRulings is how many bytes of what a human has decided are told, the newest.
const maxRulings = 8 << 10

// rulings tells what a human has decided so far; "" if nothing in words.
func (l *Loop) rulings() string {
	var list []string
	size := 0
	history := l.s.History()
	for i := len(history) - 1; i >= 0; i-- {
		e := history[i]
		text := messageIn(e.MetaJSON)
		if !e.IsHuman || text == "" {
			continue
		}
		if size += len(text); size > maxRulings {
			break
		}
		list = append([]string{fmt.Sprintf("- %s: %s", e.Transition.Name, text)}, list...)
	}
	return strings.Join(list, "\n")
}

// listTasks puts the tasks with which a worker begins on the list, those that are not there.
func (l *Loop) listTasks(w *Worker, m Move) {
	if m.Transition != begin {
		return
	}
	for _, text := range read[struct{ Tasks []string }](m.Payload).Tasks {
		known := false
		for _, t := range l.state.Tasks {
			known = known || t.Text == clip(text, maxTask)
		}
		if !known && strings.TrimSpace(text) != "" && len(l.state.Tasks) < maxTasks {
			l.note(w.who(), kindTask, Task{ID: len(l.state.Tasks) + 1, Text: clip(text, maxTask), Status: "pending"})
		}
	}
}
