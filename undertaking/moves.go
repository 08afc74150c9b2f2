package undertaking

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
)

// Who may make which move is a table: a specialist in a state. submit is checked against it at
// once, while the agent can still do better, and the arbiter of the machine goes by the same
// table (seats.go), so that nothing that was handed in another way is elected.
//
// A payload has the members that its move needs. The machine itself asks only for the
// message of a human, so that a human may rule an agent's move without its payload.

// Moves that the loop knows by name.
const (
	report       = "report"
	inquire      = "inquire"
	handOff      = "hand_off"
	complete     = "complete"
	lost         = "lost"
	cutShort     = "cut_short"
	awakened     = "awakened"
	begin        = "begin"
	clarify      = "clarify"
	question     = "question"
	statePlan    = "state_plan"
	escalate     = "escalate"
	passOn       = "pass_on"
	acceptReport = "accept_report"
)

// moves has the legal moves of each specialist in each state, of both machines: states of one
// name have the same.
var moves = map[string]map[string][]string{
	// undertaking
	"briefing":   {manager: {"ask", statePlan, "decline"}},
	"summoning":  {engine: {awakened}},
	"onboarding": {manager: {"brief", escalate}},
	"aligning":   {orchestrator: {clarify, begin}, engine: {cutShort, lost}},
	"weaving":    {orchestrator: {report, inquire, handOff, complete}, manager: {"relay", "respond", "wrap_up", escalate}, engine: {cutShort, lost}},
	"counsel":    {manager: {"answer", "wrap_up", "dismiss", escalate}},
	"wrapping":   {orchestrator: {handOff}, engine: {lost}},
	"debrief":    {manager: {question, passOn, acceptReport, escalate}},
	"recounting": {orchestrator: {"recount"}, engine: {lost}},
	"checking":   {checks: {"passed", "failed"}},
	"verifying":  {verifierA: verdicts, verifierB: verdicts},
	"accepting":  {manager: {"fulfil", "reopen"}},
	// undertaking-solo
	"working": {orchestrator: {report, inquire, handOff, complete}, engine: {cutShort, lost}},
	"ruling":  {checks: {"accept"}},
}

var verdicts = []string{"sound", "incomplete", "unsound"}

// works reports whether workers work in a state.
func works(state string) bool { return state == "weaving" || state == "working" || state == "wrapping" }

// letsGo reports whether a move lets the bound worker go.
func letsGo(transition, to string) bool {
	switch transition {
	case lost, "recall", "dismiss", passOn, acceptReport, "verify":
		return true
	}
	return transition == handOff && to == "checking"
}

// toWorker and toManager are the moves whose message is for the bound worker, or the next one, and
// for the manager; that of the others is for people only. In the solo machine a worker hears of
// the newest move alone.
var (
	toWorker  = []string{"brief", "answer", "relay", "wrap_up", question, passOn}
	toManager = []string{"reply", "amend", "assent", "rule", "carry_on", "verify", "recall", clarify, begin, report, inquire, handOff, complete, "recount", cutShort, lost, "failed", "sound", "incomplete", "unsound"}
)

// addressee returns the agent whom a move is for; "" for none.
func addressee(from, transition, to string) string {
	solo := from == "working" || to == "working" || from == "ruling" || to == "ruling" || transition == handOff && to == "checking"
	switch {
	case solo:
	case slices.Contains(toWorker, transition):
		return orchestrator
	case slices.Contains(toManager, transition):
		return manager
	}
	return ""
}

// mayMove reports whether a specialist may make a move in a state.
func mayMove(state, id, transition string) bool {
	return slices.Contains(moves[state][id], transition)
}

// A refusal says why a move was refused, and what may be done instead.
type refusal struct {
	Problem string
	Legal   []string // moves
}

func (r *refusal) Error() string {
	return r.Problem + ". Legal moves: " + strings.Join(r.Legal, ", ")
}

const (
	maxRecord  = 16 << 10 // bytes of a hand-off record, its message not counted
	maxPayload = 24 << 10 // bytes of all that is submitted
)

// checkMove returns the payload of a move as it is handed in, or why it is refused: an error
// that is a *refusal.
func checkMove(state, id string, in json.RawMessage) (m Move, err error) {
	legal := moves[state][id]
	refuse := func(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...), legal} }
	tidy, err := jsontext.Tidy(in)
	if err != nil {
		return m, refuse("the input is no JSON object: %v", err)
	}
	if len(tidy) > maxPayload {
		return m, refuse("the input has %d bytes, more than %d", len(tidy), maxPayload)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(tidy, &members); err != nil {
		return m, refuse("the input is no JSON object")
	}
	if err := json.Unmarshal(members["transition"], &m.Transition); err != nil || m.Transition == "" {
		return m, refuse(`transition is missing: name the move, as in {"transition": %q, "message": "…"}`, append(legal, report)[0])
	}
	delete(members, "transition")
	if !slices.Contains(legal, m.Transition) {
		return m, refuse("%q is no move that you may make now", clip(m.Transition, 64))
	}
	if err := checkPayload(m.Transition, members); err != nil {
		return m, refuse("%s: %v", m.Transition, err)
	}
	m.By, m.From = id, state
	m.Payload, err = jsontext.Marshal(members)
	return m, err
}

// checkPayload checks the members of a payload.
func checkPayload(transition string, members map[string]json.RawMessage) error {
	var message string
	if err := json.Unmarshal(members["message"], &message); err != nil || strings.TrimSpace(message) == "" {
		return errors.New("message is missing: say in a sentence or more what the other side must know")
	}
	switch transition {
	case "ask", clarify, inquire, escalate:
		return checkQuestions(members["questions"])
	case statePlan:
		return checkMembers(members, []string{"understanding"}, []string{"deliverables", "out_of_scope", "done_when"}, "check")
	case begin:
		return checkMembers(members, []string{"understanding", "approach"}, []string{"tasks"})
	case handOff, complete:
		return checkRecord(transition, members)
	case "sound", "incomplete", "unsound":
		return checkFindings(members["findings"])
	}
	return nil
}

// checkMembers checks that texts are there, and lists of texts; what may be missing is a text.
func checkMembers(members map[string]json.RawMessage, texts, lists []string, optional ...string) error {
	for _, name := range append(texts, optional...) {
		var text string
		raw := members[name]
		if raw == nil && slices.Contains(optional, name) {
			continue
		}
		if json.Unmarshal(raw, &text) != nil || strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s is missing: a text", name)
		}
	}
	for _, name := range lists {
		var list []string
		if json.Unmarshal(members[name], &list) != nil || list == nil {
			return fmt.Errorf("%s is missing: a list of texts, which may be empty", name)
		}
	}
	return nil
}

func checkFindings(raw json.RawMessage) error {
	var findings []struct{ Text, Evidence string }
	if raw == nil || json.Unmarshal(raw, &findings) != nil || len(findings) == 0 {
		return errors.New(`findings is missing: a list such as [{"text": "the export has no header", "evidence": "head -1 out.csv shows data"}]`)
	}
	for i, f := range findings {
		if strings.TrimSpace(f.Text) == "" || strings.TrimSpace(f.Evidence) == "" {
			return fmt.Errorf("findings[%d] needs text and evidence", i)
		}
	}
	return nil
}

// checkContinuity checks what a manager whose context gets full leaves to its successor.
func checkContinuity(raw json.RawMessage) error {
	var members map[string]json.RawMessage
	if raw != nil && json.Unmarshal(raw, &members) == nil && members != nil {
		return checkMembers(members, []string{"intent"}, []string{"decisions", "open_questions"})
	}
	return errors.New(`continuity is missing: your context gets full, and your successor needs {"intent": "…", "decisions": [], "open_questions": []}`)
}

func checkQuestions(raw json.RawMessage) error {
	var questions []struct {
		Text    string   `json:"text"`
		Options []string `json:"options"`
	}
	if raw == nil || json.Unmarshal(raw, &questions) != nil || len(questions) == 0 {
		return errors.New(`questions is missing: a list such as [{"text": "Which format?", "options": ["CSV", "JSON"]}]`)
	}
	for i, q := range questions {
		if strings.TrimSpace(q.Text) == "" {
			return fmt.Errorf("questions[%d].text is empty", i)
		}
	}
	return nil
}

// lists are the members of a record that hold texts.
var lists = []string{"accomplished", "remaining", "files", "commits", "open_risks"}

// checkRecord checks a hand-off record: what was done, what remains, and what the next one
// must know.
func checkRecord(transition string, members map[string]json.RawMessage) error {
	size, bytes := map[string]int{}, 0
	for name, raw := range members {
		if name != "message" {
			bytes += len(name) + len(raw)
		}
	}
	if bytes > maxRecord {
		return fmt.Errorf("the record has %d bytes, more than %d: say less", bytes, maxRecord)
	}
	for _, name := range lists {
		raw, given := members[name]
		if !given {
			continue
		}
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil || list == nil { // null is none
			return fmt.Errorf("%s is no list of texts", name)
		}
		size[name] = len(list)
	}
	for _, name := range set {
		if members[name] != nil {
			return fmt.Errorf("%s is not yours to set: leave it out", name)
		}
	}
	for _, name := range lists[:2] {
		if members[name] == nil {
			return fmt.Errorf("%s is missing: a list of texts, which may be empty", name)
		}
	}
	var context string
	if raw := members["context"]; raw != nil {
		if err := json.Unmarshal(raw, &context); err != nil {
			return errors.New("context is no text")
		}
	}
	switch {
	case size["accomplished"]+size["remaining"] == 0:
		return errors.New("accomplished and remaining are both empty: say what was done, or what is left")
	case transition == complete && size["remaining"] > 0:
		return errors.New("remaining is not empty: hand over, or finish it")
	case size["remaining"] > 0 && strings.TrimSpace(context) == "":
		return errors.New("context is missing: say what whoever goes on must know")
	}
	return nil
}

// set are the members of a record that the loop adds.
var set = []string{"number", "specialist", "session_id", "reason", "pct", "head_before", "head_after", "diff_stat", "tasks", "at"}

// messageIn returns the message of a payload; "" if it has none.
func messageIn(payload json.RawMessage) string {
	return read[struct{ Message string }](payload).Message
}

func (l *Loop) messageOf(m Move) string {
	text := messageIn(m.Payload)
	if m.Transition == "failed" { // why is at the end of what the check said
		d := read[struct {
			Exit   int
			Output string
		}](m.Payload)
		lines := strings.Split(strings.TrimSpace(d.Output), "\n")
		text = fmt.Sprintf("%s (exit code %d) %s", firstLine(text), d.Exit, lines[len(lines)-1])
	}
	if text = strings.TrimSpace(text); text != "" {
		return ": " + firstLine(text)
	}
	return ""
}
