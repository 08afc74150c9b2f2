package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/undertaking"
)

// A decision is shown whole before it is made: what is asked and why, what the case has, what
// was proposed, and what may be chosen. The list of choices is an overlay, which has the keys
// while it is open; it is about the round that was shown when it was opened, so that nobody rules
// on a question that they have not seen.

// decisionBody is what a decision is about.
func decisionBody(n Now, look style) (body []para) {
	if len(n.Prompts) > 0 {
		return promptBody(n, look)
	}
	s := n.Session
	body = append(body, strong(orWord(s.State.Prompt, s.State.Name), look), blank)
	if reason := s.ReasonFor("owner"); reason != "" {
		body = append(body, prose("Why you: "+clean(reason)), blank)
	}
	body = append(body, questionsOf(s)...)
	if h := s.History(); len(h) > 0 {
		last := h[len(h)-1]
		if said := sayingOf(last); said != "" {
			body = append(body, spoken(speaker(last.SpecialistID, last.IsHuman, n.State.Bound), said, look))
		}
	}
	proposals := s.Proposals()
	if why := s.Withheld("owner"); why != "" && len(proposals) > 0 {
		body, proposals = append(body, prose(fmt.Sprintf("%d proposals are withheld: %s.", len(proposals), why)), blank), nil
	}
	for _, p := range proposals {
		text := p.Transition.Name + ": " + p.Reasoning + written(without(p.MetaJSON, "message"), "")
		body = append(body, spoken(speaker(p.SpecialistID, p.IsHuman, n.State.Bound)+" proposes", text, look))
	}
	for _, part := range [][2]string{{"plan", "The plan"}, {"record", "The record"}, {"check", "The check"}, {"findings", "Findings"}} {
		if text := strings.TrimPrefix(written(without(s.Data().Get(part[0]), "message", "text", "continuity", "session_id", "specialist"), "  "), "\n"); text != "" {
			body = append(body, fixed(look.bold(part[1])), prose(text), blank)
		}
	}
	body = append(body, fixed(look.bold("You can")))
	for i, c := range choicesOf(n) {
		body = append(body, prose(c.text(i, look)))
	}
	for i := range s.State.Transitions {
		t := s.State.Transitions[i]
		if why := s.WhyClosed(t); why != "" {
			body = append(body, prose(fmt.Sprintf("   %s is closed: %s", t.Name, why)))
		}
	}
	return append(body, blank, prose(hintOf(n)))
}

// hintOf says what becomes of what is typed.
func hintOf(n Now) string {
	switch answer := undertaking.AnswerIn(n.Session); {
	case answer != "":
		return "F2 chooses. What you type is: " + answer + "."
	case undertaking.WaitsForOwner(n.Session):
		return "F2 chooses. What you type decides nothing: the manager hears it with its next turn."
	}
	return "F2 chooses. What you type is said, and whose move it is is asked again."
}

func questionsOf(s *session.Session) (body []para) {
	var list []struct {
		Text    string
		Options []string
	}
	_ = json.Unmarshal(s.Data().Get("questions"), &list)
	for i, q := range list {
		text := fmt.Sprintf("%d. %s", i+1, q.Text)
		if len(q.Options) > 0 {
			text += " (" + strings.Join(q.Options, ", ") + ")"
		}
		body = append(body, prose(text))
	}
	if len(body) > 0 {
		body = append(body, blank)
	}
	return body
}

// promptBody is a permission that an agent waits for.
func promptBody(n Now, look style) []para {
	p := n.Prompts[0]
	body := []para{
		strong(fmt.Sprintf("May %s use %s?", p.Agent, p.Tool), look), prose(fmt.Sprintf("%s, asked %s ago%s", p.Kind, short(n.At.Sub(p.Since)), map[bool]string{true: ", parked: it does other work, and may ask again"}[p.Parked])), blank,
		prose(p.Input), blank,
	}
	if p.Why != "" {
		body = append(body, prose("Why you: "+clean(p.Why)), blank)
	}
	if more := len(n.Prompts) - 1; more > 0 {
		body = append(body, prose(fmt.Sprintf("%d more wait.", more)), blank)
	}
	if p.Kind == question {
		return append(body, prose("dialai decide "+clean(p.Session)[:min(8, len(p.Session))]+" answers it; F2 can deny it."))
	}
	return append(body, prose("F2 chooses: allow, once, for exactly this; or deny, with a reason if you like."))
}

// question is the kind of permission that asks the human something.
const question = "question"

// A choice is a move that the human may make.
type choice struct {
	ruling  Ruling
	about   string // what it does
	message bool   // it takes one
	needed  bool   // and needs it
}

func (c choice) text(i int, look style) string {
	return fmt.Sprintf("%d. %s%s%s", i+1, c.ruling.Transition, look.dot(), flat(c.about))
}

// choicesOf returns what may be chosen now.
func choicesOf(n Now) (list []choice) {
	if len(n.Prompts) > 0 {
		p := n.Prompts[0]
		allow := choice{Ruling{Session: p.Session, Round: p.Round, Transition: "allow"}, "once, for exactly this", false, false}
		deny := choice{Ruling{Session: p.Session, Round: p.Round, Transition: "deny"}, "the agent is told why", true, false}
		if p.Kind == question { // its answers are its questions' options, which are chosen elsewhere
			return []choice{deny}
		}
		return []choice{allow, deny}
	}
	s := n.Session
	if s == nil || !s.Status.Live() {
		return nil
	}
	for i := range s.State.Transitions {
		t := s.State.Transitions[i]
		if s.WhyClosed(t) != "" {
			continue
		}
		list = append(list, choice{Ruling{Session: s.ID.String(), Round: s.Key().ID(), Transition: t.Name}, t.Description, t.Parameters != nil, t.NeedsPayload})
	}
	return list
}
