package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// A screen is what is shown. Which one follows from the state, unless the human has asked for
// another.
type screen string

const (
	opening  screen = "opening"
	oracle   screen = "oracle"
	weaving  screen = "weaving"
	counsel  screen = "counsel"
	decision screen = "decision"
	record   screen = "record"
	tasks    screen = "tasks"
	logged   screen = "log"
	helping  screen = "help"
	leaving  screen = "exit"
	over     screen = "ended"
)

// screens says which screen a state has.
var screens = map[string]screen{
	"briefing": oracle, "awaiting_human": oracle, "awaiting_assent": oracle, "accepting": oracle,
	"summoning": weaving, "aligning": weaving, "weaving": weaving, "working": weaving, "wrapping": weaving, "recounting": weaving, "checking": weaving, "verifying": weaving,
	"onboarding": counsel, "counsel": counsel, "debrief": counsel,
	"awaiting_ruling": decision, "ruling": decision,
}

// titles are those of the screens.
var titles = map[screen]string{
	opening: "", oracle: "THE ORACLE", weaving: "THE WEAVING", counsel: "THE COUNSEL", decision: "THE DECISION",
	record: "THE RECORD", tasks: "THE TASKS", logged: "THE LOG", helping: "THE KEYS", leaving: "THE DEPARTURE", over: "THE END",
}

// screenOf returns the screen of what is now.
func screenOf(n Now) screen {
	s := n.Session
	switch {
	case s == nil:
		return opening
	case !s.Status.Live():
		return over
	case len(n.Prompts) > 0:
		return decision
	case s.Status == session.NeedsHuman && (screens[s.State.Name] != oracle || !undertaking.WaitsForOwner(s)):
		return decision
	case s.State.Name == "briefing" && len(s.History()) == 0:
		return opening
	}
	return screens[s.State.Name]
}

// body returns what a screen shows.
func (m *model) body(of screen) []para {
	n := m.now
	switch of {
	case opening:
		return openingBody(m.style)
	case oracle:
		return append(transcript(n, m.style, "manager", "owner"), asked(n, m.style)...)
	case counsel:
		return transcript(n, m.style, "manager", "owner", "orchestrator", "checks", "verifier-a", "verifier-b")
	case weaving:
		return weavingBody(n, m.style)
	case decision:
		return decisionBody(n, m.style)
	case record:
		return recordBody(n, m.style)
	case tasks:
		return tasksBody(n, m.style)
	case logged:
		return logBody(m.lines, m.filter)
	case helping:
		return helpBody(m.style)
	case leaving:
		return leavingBody(n, m.c.Watch)
	}
	return overBody(n, m.problem, m.style)
}

// openingBody is the first screen.
func openingBody(look style) []para {
	mark, crown := "◆", "/█\\"
	if look.ascii {
		mark, crown = "*", "/#\\"
	}
	return []para{
		blank, centred(mark), centred(crown), centred(look.bold("THE ARBITER")), centred("OF WHAT WAS, WHAT IS, AND WHAT IS YET TO BE"), blank, centred("Speak, mortal."),
	}
}

// transcript is what was said by some, the oldest first.
func transcript(n Now, look style, who ...string) (body []para) {
	number := 0
	for _, e := range n.Session.History() {
		if e.Transition.Name == "awakened" {
			number++
		}
		said := sayingOf(e)
		for _, id := range who {
			if (e.SpecialistID == id || e.IsHuman && id == "owner") && said != "" {
				body = append(body, spoken(speaker(e.SpecialistID, e.IsHuman, number), said, look))
				break
			}
		}
	}
	return body
}

// sayingOf is what a move said: its message, or what it was.
func sayingOf(e *session.Executed) string {
	var p struct {
		Message, Text string
		Questions     []struct {
			Text    string
			Options []string
		}
	}
	_ = json.Unmarshal(e.MetaJSON, &p)
	text := strings.TrimSpace(p.Message + "\n" + p.Text)
	if text == "" && e.IsHuman {
		text = "(" + strings.ReplaceAll(e.Transition.Name, "_", " ") + ")"
	}
	for i, q := range p.Questions {
		text += fmt.Sprintf("\n%d. %s", i+1, q.Text)
		if len(q.Options) > 0 {
			text += " (" + strings.Join(q.Options, ", ") + ")"
		}
	}
	return text
}

// asked is the plan that waits for the human's assent.
func asked(n Now, look style) []para {
	if n.State.Name != "awaiting_assent" {
		return nil
	}
	return []para{
		fixed(look.bold("The plan")), prose(strings.TrimPrefix(written(planOf(n.Session), "  "), "\n")), blank,
		prose("/assent begins the work; what you type instead changes the plan."),
	}
}

// planOf returns the plan without the manager's message, which stands above it.
func planOf(s *session.Session) json.RawMessage {
	return without(s.Data().Get("plan"), "message", "text", "continuity")
}

// without returns an object without some members, in its order.
func without(raw json.RawMessage, names ...string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw
	}
	var b strings.Builder
	for _, name := range ordered(raw) {
		if !has(names, name) {
			key, _ := json.Marshal(name)
			fmt.Fprintf(&b, ",%s:%s", key, members[name])
		}
	}
	return json.RawMessage("{" + strings.TrimPrefix(b.String(), ",") + "}")
}

func has(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// recordBody is the newest hand-off record.
func recordBody(n Now, _ style) []para {
	if n.Session == nil || n.State.Record == nil {
		return []para{prose("No worker has handed over yet.")}
	}
	return []para{prose(strings.TrimPrefix(written(n.State.Record, ""), "\n"))}
}

// tasksBody lists the tasks, and who judges them.
func tasksBody(n Now, look style) (body []para) {
	for _, t := range n.State.Tasks {
		text := look.mark(t.Status) + " " + clean(t.Text)
		if t.Status == "verified" {
			text += " (verified)"
		}
		body = append(body, prose(text))
	}
	if len(body) == 0 {
		body = append(body, prose("No tasks are listed yet."))
	}
	body = append(body, blank)
	for _, id := range []string{"verifier-a", "verifier-b"} {
		if w := newest(n.State.Others[id]); w != nil {
			body = append(body, workerRow(w, look), fixed(look.branch()+doing(w)))
		}
	}
	return body
}

// logBody lists what has happened, of what has a text in it.
func logBody(lines []undertaking.Line, filter string) (body []para) {
	for _, l := range lines {
		if filter == "" || strings.Contains(strings.ToLower(lineOf(l)), strings.ToLower(filter)) {
			body = append(body, func(width int) []string { return wrap(lineOf(l), width) })
		}
	}
	if len(body) == 0 {
		body = append(body, prose("Nothing has happened."))
	}
	return body
}

// lineOf writes what has happened in a line.
func lineOf(l undertaking.Line) string {
	words := []string{l.At.Local().Format("15:04:05"), l.State}
	if l.Worker != "" {
		words = append(words, l.Worker)
	}
	if l.Pct >= 0 && l.Worker != "" {
		words = append(words, fmt.Sprintf("%d%%", l.Pct))
	}
	return flat(strings.Join(append(words, l.Text), " "))
}

// leavingBody says what is saved.
func leavingBody(n Now, watch bool) []para {
	if watch || n.Session == nil {
		return []para{blank, centred("Nothing is lost: this only watches."), blank, centred("Ctrl-C again within three seconds leaves, any other key stays.")}
	}
	return []para{
		blank, prose("The agents' sessions are closed, and everything is in the store: moves, words, records, costs."), blank,
		prose("dialai undertake --resume " + shortID(n.Session) + " goes on."), blank, prose("Ctrl-C again within three seconds leaves, any other key stays."),
	}
}

// overBody says how it ended.
func overBody(n Now, problem error, look style) []para {
	if n.Session == nil {
		return []para{prose(fmt.Sprint(problem))}
	}
	s := n.Session
	body := []para{prose("Task: " + input(s, "task")), blank, prose(fmt.Sprintf("%s: %s", s.State.Name, orWord(s.Outcome().Reason, s.Status.String()))), prose(fmt.Sprintf("$%s spent", s.Spent().Money))}
	if problem != nil {
		body = append(body, blank, strong("It cannot go on: "+problem.Error(), look))
	}
	if h := s.History(); len(h) > 0 {
		if said := sayingOf(h[len(h)-1]); said != "" {
			body = append(body, blank, spoken(speaker(h[len(h)-1].SpecialistID, h[len(h)-1].IsHuman, len(n.State.Workers)), said, look))
		}
	}
	if s.Status == session.Stopped && !s.State.Final {
		resume := "dialai resume " + shortID(s)
		if limit := undertaking.Exceeded(s); limit != "" {
			resume += " --raise " + limit + "=VALUE --note WHY"
		}
		body = append(body, blank, prose(resume+", then dialai undertake --resume "+shortID(s)+", goes on."))
	}
	return append(body, blank, prose("Any key leaves."))
}

func orWord(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// shortID is how a session is named in commands.
func shortID(s *session.Session) string { return s.ID.String()[:8] }
