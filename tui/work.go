package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/undertaking"
)

// The screen of the work: who works, how full their context is, what they do, and the tasks.

func weavingBody(n Now, look style) []para {
	body := []para{prose("Task: " + input(n.Session, "task"))}
	w := bound(n.State)
	if w == nil {
		w = newest(n.State.Workers)
	}
	if w != nil {
		body = append(body, workerRow(w, look), fixed(look.branch()+doing(w)))
	}
	switch n.State.Name {
	case "summoning":
		body = append(body, prose("The next worker is being opened."))
	case "checking":
		body = append(body, prose("The check runs: "+orWord(input(n.Session, "check"), payload(n.Session, "plan", "check"))))
	case "verifying":
		for _, id := range []string{"verifier-a", "verifier-b"} {
			if v := newest(n.State.Others[id]); v != nil && v.Gone == "" {
				body = append(body, workerRow(v, look), fixed(look.branch()+doing(v)))
			}
		}
	}
	if len(n.State.Tasks) > 0 {
		body = append(body, blank)
	}
	return append(body, checklist(n.State.Tasks, look)...)
}

// workerRow is an agent session in a line: its name, how full its context is in ten cells and in
// per cent.
func workerRow(w *undertaking.Worker, look style) para {
	return func(width int) []string {
		pct := w.Usage.Percent(agent.Ceiling)
		share := fmt.Sprintf("%s%5s", look.cells(pct), percent(w))
		name := nameOf(w)
		dots := width - ansi.StringWidth(name) - 2 - ansi.StringWidth(share)
		if dots < 1 {
			return []string{ansi.Truncate(name+" "+share, width, "…")}
		}
		switch w.Level {
		case agent.Soft:
			share = look.yellow(share)
		case agent.Hard:
			share = look.red(share)
		}
		return []string{name + " " + strings.Repeat(".", dots) + " " + share}
	}
}

// doing says what an agent session does.
func doing(w *undertaking.Worker) string {
	switch n := len(w.Subagents); {
	case n > 1:
		return fmt.Sprintf("%s (+%d)", clean(w.Subagents[n-1]), n-1)
	case n == 1:
		return clean(w.Subagents[0])
	case w.Tool != "":
		return clean(w.Tool)
	case w.Turn:
		return "at work"
	case w.Gone != "":
		return "let go: " + w.Gone
	}
	return "waits"
}

// checklist lists tasks, from one before the first that is active on if they are many: that one
// is always seen.
func checklist(list []undertaking.Task, look style) (body []para) {
	for _, t := range list {
		text := look.mark(t.Status) + " " + flat(t.Text)
		if t.Status == "active" {
			text = look.bold(text)
		}
		body = append(body, fixed(text))
	}
	return body
}

// activeTask returns the index of the paragraph that is to be kept in view, -1 if none is.
func activeTask(n Now, body []para) int {
	for i, t := range n.State.Tasks {
		if t.Status == "active" {
			return len(body) - len(n.State.Tasks) + i
		}
	}
	return -1
}
