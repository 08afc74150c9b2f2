package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	printFacts(out, q)
	if err := printHistory(out, q.History); err != nil {
		return err
	}
	printNotices(out, q.Notices)
	printRulings(out, q)
	return st.printProposals(out, q)
}

// printRulings prints the words of humans that wait for another's and may be seen, each with
// its reasons.
func printRulings(out io.Writer, q runner.Question) {
	for i, r := range q.Rulings {
		if i == 0 {
			fmt.Fprintln(out, "\nRulings of this round:")
		}
		fmt.Fprintf(out, "  %s chose %s\n", Clean(r.SpecialistID), Clean(r.TransitionName))
		Prompt(out, "      ", r.Reasoning)
		payloadLines(out, r.MetaJSON, fullValues(q.SessionID))
	}
}

// QuestionHead stands before what a state asks, as wide as what stands before other facts of a
// session.
const QuestionHead = "Question:      "

// printFacts prints what the session is about, a member a line.
func printFacts(out io.Writer, q runner.Question) {
	if len(q.Facts.Input) == 0 {
		return
	}
	fmt.Fprintln(out, "\nFacts:")
	printMembers(out, "  ", "metaJson", q.Facts.Input, fullValues(q.SessionID))
}

// fullValues says where a value is shown that was cut.
func fullValues(session string) string { return "dialai show " + session + " --json shows all of it" }

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

// fold prints a value after its name, in lines of one width.
func fold(out io.Writer, head, value, more string) {
	runes := []rune(value)
	blank := strings.Repeat(" ", utf8.RuneCountInString(head))
	for i := 0; i == 0 || len(runes) > 0; i++ {
		if i == valueLines {
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
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return lines
		}
		lines = append(lines, factLine{Clean(fmt.Sprint(name)), ValueText(value)})
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

// What stands under a row begins after underRow; more says where what was cut is shown.
const (
	underRow = "         "
	more     = "--json shows all of it"
)

// payloadLines prints a payload under what it belongs to.
func payloadLines(out io.Writer, payload json.RawMessage, more string) {
	if len(payload) > 0 {
		printMembers(out, underRow, "payload", payload, more)
	}
}

func printHistory(out io.Writer, history []session.TransitionRecord) error {
	if len(history) == 0 {
		return nil
	}
	fmt.Fprintln(out, "\nHistory:")
	rows, under := make([][]string, len(history)), make([]func(), len(history))
	for i, t := range history {
		rows[i] = []string{"  " + t.ExecutionTimestamp.String(), t.FromState + " → " + t.ToState, t.TransitionName, Who(t.SpecialistID, t.IsHuman), t.Reasoning}
		under[i] = func() { payloadLines(out, t.MetaJSON, more) }
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
func (st Style) printProposals(out io.Writer, q runner.Question) error {
	if w := q.Withheld; w != nil {
		if w.Proposals == 0 {
			_, err := fmt.Fprintf(out, "\nProposals of this round would be withheld: %s.\n", w.Reason)
			return err
		}
		look := []string{"--show-proposals"}
		if q.Viewer != "" {
			look = append(look, "--as", q.Viewer)
		}
		_, err := fmt.Fprintf(out, "\n%s of this round %s withheld, so that the ruling is your own: %s.\nTo see them, which is recorded:\n  %s\n",
			Plural(w.Proposals, "proposal"), areOrIs(w.Proposals), w.Reason, st.Command("show", []string{q.SessionID}, look...))
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
			payloadLines(out, p.MetaJSON, more)
			p.account(out)
		}
	}
	return tableWith(out, rows, under)
}

// account prints what a proposal cost and which tools were called for it, as far as whoever
// made it has said so: in brackets, so that no member of a payload looks like it.
func (p *Proposal) account(out io.Writer) {
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
