package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A question is one page wherever it is shown: what the session is about, how it came
// where it is, what was proposed. Whoever rules has all of it in front of them.

// Question prints what a human has to know to answer.
func (st Style) Question(out io.Writer, q runner.Question) error {
	return st.page(out, q, "show", q.SessionID)
}

// page prints a question; look is the command, with its arguments, that shows what is withheld.
func (st Style) page(out io.Writer, q runner.Question, look string, args ...string) error {
	st.printFacts(out, q)
	if err := st.printHistory(out, q.History); err != nil {
		return err
	}
	printNotices(out, q.Notices)
	st.printRulings(out, q)
	return st.printProposals(out, q, look, args)
}

// Due prints by when a question is to be answered, after a label; nothing where nobody minds.
func Due(out io.Writer, label string, q runner.Question) {
	switch {
	case q.DueError != "":
		fmt.Fprintf(out, "%snobody knows: %s\n", label, Clean(q.DueError))
	case q.Due != 0:
		then := When(q.Then != "", fmt.Sprintf(", then %s is executed", Clean(q.Then)))
		fmt.Fprintf(out, "%s%s%s%s\n", label, q.Due, then, When(q.Overdue, " (overdue)"))
	}
}

// Meaning prints what a choice means, after a mark if it cannot be undone.
func Meaning(out io.Writer, t session.InboxTransition) {
	text := t.Description
	if t.Irreversible {
		text = "(irreversible) " + text
	}
	Prompt(out, "      ", text)
	Prompt(out, "      ", Approvals(t.Approvals))
}

// Approvals says how many humans have to choose a transition, who has, and who may not; ""
// for one that takes none.
func Approvals(a *session.QuestionApprovals) string {
	if a == nil {
		return ""
	}
	text := fmt.Sprintf("takes %d approvals", a.Needed)
	if a.Needed == 1 {
		text = "takes the approval of a human"
	}
	if a.Each != nil {
		text += ", one of each of " + strings.Join(a.Each, ", ")
	}
	if len(a.Given) > 0 {
		text += fmt.Sprintf("; %d given: %s", len(a.Given), strings.Join(a.Given, ", "))
	}
	if a.Differ {
		text += "; those who have chosen it differ about what goes with it"
	}
	for _, e := range a.Excluded {
		text += "; " + e.Reason
	}
	return text
}

// printRulings prints the words of humans that wait for another's and may be seen, each with
// its reasons.
func (st Style) printRulings(out io.Writer, q runner.Question) {
	for i, r := range q.Rulings {
		if i == 0 {
			fmt.Fprintln(out, "\nRulings of this round:")
		}
		fmt.Fprintf(out, "  %s chose %s\n", Clean(r.SpecialistID), Clean(r.TransitionName))
		Prompt(out, "      ", r.Reasoning)
		payloadLines(out, r.MetaJSON, st.fullValues(q.SessionID))
	}
}

// QuestionHead stands before what a state asks, as wide as what stands before other facts of a
// session.
const QuestionHead = "Question:      "

// printFacts prints what the session is about, a member a line: its data, and what it was
// started with where that has changed since.
func (st Style) printFacts(out io.Writer, q runner.Question) {
	input, data := q.Facts.Input, q.Facts.Data
	switch {
	case len(input) == 0 && string(data) == "{}":
		return
	case string(data) == "{}":
		input = nil
	}
	fmt.Fprintln(out, "\nFacts:")
	st.Facts(out, "  ", q)
	if was := changed(input, data); was != nil {
		fmt.Fprintln(out, "\nAs the session was started:")
		printMembers(out, "  ", "metaJson", was, st.fullValues(q.SessionID))
	}
}

// Facts prints what the session is about now: its data, or without any what it was started
// with.
func (st Style) Facts(out io.Writer, indent string, q runner.Question) {
	now := q.Facts.Data
	if string(now) == "{}" {
		now = q.Facts.Input
	}
	if len(now) > 0 {
		printMembers(out, indent, "metaJson", now, st.fullValues(q.SessionID))
	}
}

// changed returns those members of the input that are others in the data; nil if none is.
func changed(input, data json.RawMessage) json.RawMessage {
	now := jsontext.ReadObject(data)
	var was []jsontext.Member
	for _, m := range jsontext.ReadObject(input).Members() {
		if !bytes.Equal(now.Get(m.Name), m.Value) {
			was = append(was, m)
		}
	}
	if was == nil {
		return nil
	}
	return jsontext.ObjectOf(was).JSON()
}

// Choices returns the transitions of a question that may be chosen, and those that are
// closed.
func Choices(q runner.Question) (open, closed []session.InboxTransition) {
	for _, t := range q.Transitions {
		if t.Closed == "" {
			open = append(open, t)
		} else {
			closed = append(closed, t)
		}
	}
	return open, closed
}

// Closed prints the transitions that may not be chosen, and why.
func (st Style) Closed(out io.Writer, paint Paint, closed []session.InboxTransition) {
	for _, t := range closed {
		fmt.Fprintln(out, paint.Dim(fmt.Sprintf("  not now: %s → %s: %s", Clean(t.Name), Clean(t.Target), Clean(t.Closed))))
	}
}

// fullValues says where a value is shown that was cut; "" cuts none.
func (st Style) fullValues(session string) string {
	if st.Full {
		return ""
	}
	return st.Command("show", []string{session}, "--full").String() + " shows them"
}

// more is fullValues where this command itself shows it.
func (st Style) more() string { return When(!st.Full, "--full shows them") }

func printNotices(out io.Writer, notices []string) {
	for i, n := range notices {
		if i == 0 {
			fmt.Fprintln(out, "\nNotices:")
		}
		fmt.Fprintf(out, "  %s\n", Clean(n))
	}
}

// Long values are folded; what is beyond the last line is cut.
const (
	valueWidth = 76
	valueLines = 8
)

// printMembers prints the members of a JSON object as aligned lines, any other value
// under a name.
func printMembers(out io.Writer, indent, name string, value json.RawMessage, more string) {
	members := []factLine{{name, ValueText(value)}}
	if len(value) > 0 && value[0] == '{' {
		if members = membersOf(value); len(members) == 0 {
			members = []factLine{{name, "{}"}}
		}
	}
	width := 0
	for _, m := range members {
		width = max(width, utf8.RuneCountInString(m.name))
	}
	for _, m := range members {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(m.name))
		fold(out, fmt.Sprintf("%s%s%s  ", indent, m.name, pad), m.value, more)
	}
}

// fold prints a value after its name, in lines of one width: the first ones, and where more
// is shown, or all of them if that is "".
func fold(out io.Writer, head, value, more string) {
	runes := []rune(value)
	blank := strings.Repeat(" ", utf8.RuneCountInString(head))
	for i := 0; i == 0 || len(runes) > 0; i++ {
		if i == valueLines && more != "" {
			fmt.Fprintf(out, "%s… %s more; %s\n", blank, Plural(len(runes), "character"), more)
			return
		}
		n := lineEnd(runes)
		fmt.Fprintf(out, "%s%s\n", head, strings.TrimRight(string(runes[:n]), " "))
		head, runes = blank, runes[n:]
	}
}

// lineEnd returns how much of a text goes into one line: up to its last blank, if
// there is one in the second half of it.
func lineEnd(runes []rune) int {
	if len(runes) <= valueWidth {
		return len(runes)
	}
	for n := valueWidth; n > valueWidth/2; n-- {
		if runes[n-1] == ' ' {
			return n
		}
	}
	return valueWidth
}

// A factLine is a member as it is printed.
type factLine struct{ name, value string }

// membersOf returns the members of a JSON object in their order.
func membersOf(object json.RawMessage) (lines []factLine) {
	for _, m := range jsontext.ReadObject(object).Members() {
		lines = append(lines, factLine{Clean(m.Name), ValueText(m.Value)})
	}
	return lines
}

// ValueText returns a value for people: a text as it is where nothing in it could be
// taken for something else, anything else as JSON.
func ValueText(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil && s != "" && s == strings.TrimSpace(s) && s == Clean(s) && !looksLikeJSON(s) {
		return s
	}
	tidy, err := jsontext.Tidy(value)
	if err != nil {
		tidy = value
	}
	return Clean(string(tidy))
}

// looksLikeJSON reports whether a text would read as another kind of value.
func looksLikeJSON(s string) bool { return json.Valid([]byte(s)) }

// What stands under a row begins after underRow.
const underRow = "         "

// payloadLines prints a payload under what it belongs to.
func payloadLines(out io.Writer, payload json.RawMessage, more string) {
	if len(payload) > 0 {
		printMembers(out, underRow, "payload", payload, more)
	}
}

func (st Style) printHistory(out io.Writer, history []session.TransitionRecord) error {
	if len(history) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nHistory:")
	rows, under := make([][]string, len(history)), make([]func(), len(history))
	for i, t := range history {
		rows[i] = []string{"  " + t.ExecutionTimestamp.String(), t.FromState + " → " + t.ToState, t.TransitionName, Whose(t.Authors, t.SpecialistID, t.IsHuman), t.Reasoning}
		under[i] = func() {
			payloadLines(out, t.MetaJSON, st.more())
			if t.Retracted != "" {
				fmt.Fprintf(out, "%staken back: %s\n", underRow, Clean(t.Retracted))
			}
		}
	}
	return tableWith(out, rows, under)
}

// tableWith prints rows in columns, each with what belongs under it.
func tableWith(out io.Writer, rows [][]string, under []func()) error {
	var b bytes.Buffer
	if err := Table(&b, rows); err != nil {
		return err
	}
	i := 0
	for line := range bytes.Lines(b.Bytes()) {
		if _, err := out.Write(line); err != nil {
			return err
		}
		under[i]()
		i++
	}
	return nil
}

// printProposals prints what was proposed, or that it is withheld.
func (st Style) printProposals(out io.Writer, q runner.Question, command string, args []string) error {
	if w := q.Withheld; w != nil {
		if w.Proposals == 0 {
			_, err := fmt.Fprintf(out, "\nProposals of this round would be withheld: %s.\n", w.Reason)
			return err
		}
		_, err := fmt.Fprintf(out, "\n%s of this round %s withheld, so that the ruling is your own: %s.\n", Plural(w.Proposals, "proposal"), areOrIs(w.Proposals), w.Reason)
		if look := []string{"--show-proposals"}; mayLook(q) {
			if q.Viewer != "" {
				look = append(look, "--as", q.Viewer)
			}
			_, err = fmt.Fprintf(out, "To see them, which is recorded:\n  %s\n", st.Command(command, args, look...))
		}
		return err
	}
	if len(q.Proposals) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nProposals of this round:")
	rows, under := make([][]string, len(q.Proposals)), make([]func(), len(q.Proposals))
	for i, raw := range q.Proposals {
		var p Proposal
		if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		rows[i] = []string{"  " + Who(p.SpecialistID, p.IsHuman), p.TransitionName + " → " + p.ToState, p.Reasoning}
		under[i] = func() {
			payloadLines(out, p.MetaJSON, st.more())
			p.account(out, st.more())
		}
	}
	return tableWith(out, rows, under)
}

// mayLook reports whether a look of the viewer would be recorded: only one of who may rule is,
// or of nobody in particular.
func mayLook(q runner.Question) bool {
	return q.Viewer == "" || len(q.Humans) == 0 || slices.Contains(q.Humans, q.Viewer) ||
		slices.ContainsFunc(q.Rulings, func(r session.QuestionRuling) bool { return r.SpecialistID == q.Viewer })
}

// account prints what a proposal cost and which tools were called for it, as far as whoever
// made it has said so: in brackets, so that no member of a payload looks like it.
func (p *Proposal) account(out io.Writer, more string) {
	if p.CostUSD != nil || p.NumInputTokens+p.NumOutputTokens > 0 {
		var words []string
		if p.CostUSD != nil {
			words = append(words, fmt.Sprintf("$%s", *p.CostUSD))
		}
		if n := p.NumInputTokens + p.NumOutputTokens; n > 0 {
			words = append(words, fmt.Sprintf("%s read, %d written", Plural(int(p.NumInputTokens), "token"), p.NumOutputTokens))
		}
		fmt.Fprintf(out, "%s(cost %s)\n", underRow, strings.Join(words, ", "))
	}
	for _, c := range p.ToolCalls {
		args := ""
		if len(c.Args) > 0 {
			args = ValueText(c.Args)
		}
		fold(out, underRow+"(called ", Clean(c.Name)+"("+args+"))", more)
	}
}

func areOrIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// A Proposal is what is read of one that a question shows.
type Proposal struct {
	SpecialistID    string                `json:"specialistId"`
	IsHuman         bool                  `json:"isHuman"`
	TransitionName  string                `json:"transitionName"`
	ToState         string                `json:"toState"`
	Reasoning       string                `json:"reasoning"`
	MetaJSON        json.RawMessage       `json:"metaJson"`
	CostUSD         *exact.Money          `json:"costUSD"`
	NumInputTokens  int64                 `json:"numInputTokens"`
	NumOutputTokens int64                 `json:"numOutputTokens"`
	ToolCalls       []specialist.ToolCall `json:"toolCalls"`
}
