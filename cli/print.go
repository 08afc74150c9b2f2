package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// A printer shows a session as it goes: as a round log, as JSON, or not at all.
// It is fed by the runner's observer.
type printer struct {
	a      *app
	out    *bufio.Writer
	paint  paint
	round  int32
	state  string
	short  string // the newest verdict
	opened bool   // lines of the current round have been printed
	head   runner.Hash
	status *progress
}

func (a *app) newPrinter() *printer {
	return &printer{a: a, out: bufio.NewWriter(a.out), paint: a.paintFor(a.out), status: a.newProgress()}
}

// observe is the runner's observer.
func (p *printer) observe(r runner.Record) {
	p.status.observe(r)
	if p.a.flags.json {
		p.json(r)
	} else {
		p.text(r)
	}
	p.out.Flush()
}

// json prints every event as one line.
func (p *printer) json(r runner.Record) {
	hash := r.After.Head
	if hash == nil { // the store computes hashes on demand
		key := (&runner.Change{Before: r.Before, After: r.After}).Key()
		p.head = runner.Chain(p.head, r.After.ID.String(), runner.AppendEvents(nil, key, r.First, r.Events))
		hash = &p.head
	}
	for i := range r.Events {
		line := fmt.Appendf(nil, `{"v":1,"sessionId":"%s",`, r.After.ID)
		event := r.AppendEvent(nil, i)
		line = append(line, event[1:len(event)-1]...)
		line = fmt.Appendf(line, `,"hash":"%s"}`, hash)
		fmt.Fprintf(p.out, "%s\n", line)
	}
}

// header prints what a session is, before its rounds.
func (p *printer) header(s *runner.Session) {
	p.follow(s)
	if p.a.flags.json || p.a.flags.quiet {
		return
	}
	m := s.Machine()
	p.status.clear()
	fmt.Fprintf(p.out, "Machine:       %s\n", clean(m.Name()))
	fmt.Fprintf(p.out, "Initial state: %s\n", clean(m.Initial().Name))
	fmt.Fprintf(p.out, "Goal state:    %s\n", clean(m.Goal().Name))
	fmt.Fprintf(p.out, "Session ID:    %s\n\n", s.ID)
	p.out.Flush()
}

// follow takes up a session where it stands.
func (p *printer) follow(s *runner.Session) {
	p.round, p.state, p.opened = s.Round, s.State.Name, false
}

func (p *printer) text(r runner.Record) {
	for _, e := range r.Events {
		switch d := e.Data.(type) {
		case *runner.Created:
			p.header(r.After)
		case *runner.RoundOpened:
			p.close()
			p.round, p.state = d.Round, d.State.Name
		case *runner.Proposed:
			p.proposed(d)
		case *runner.AskFailed:
			p.failed(d)
		case *runner.Judged:
			p.judged(d)
		case *runner.Gated:
			p.gated(d.Verdict)
		case *runner.Executed:
			p.executed(d)
		}
	}
}

// line prints one line of the current round, after its heading.
func (p *printer) line(format string, args ...any) {
	if p.a.flags.quiet {
		return
	}
	p.status.clear()
	if !p.opened {
		p.opened = true
		fmt.Fprintln(p.out, p.paint.bold(fmt.Sprintf("Round %d from %s", p.round, clean(p.state))))
	}
	fmt.Fprintf(p.out, "  "+format+"\n", args...)
}

// close ends the round's lines with a blank one.
func (p *printer) close() {
	if p.opened {
		fmt.Fprintln(p.out)
		p.opened = false
	}
}

// say prints one line on stderr if --verbose asks for it.
func (p *printer) say(format string, args ...any) {
	if p.a.flags.verbose {
		p.status.clear()
		fmt.Fprintf(p.a.err, format+"\n", args...)
	}
}

func (p *printer) proposed(d *runner.Proposed) {
	who := "Proposer"
	if d.IsHuman {
		who = "Human"
	}
	id, t := clean(d.SpecialistID), d.Transition
	p.line("%s %s proposed: %s → %s", who, id, clean(t.Name), clean(t.Target))
	p.say("[PROPOSE] %s: %s -> %s", id, clean(t.Name), clean(t.Target))
}

func (p *printer) failed(d *runner.AskFailed) {
	if d.Code == runner.CodeCancelled {
		p.say("[CANCEL] %s: %s", clean(d.SpecialistID), clean(d.Message))
		return
	}
	who := "Proposer"
	if d.Role == machine.Arbiter {
		who = "Arbiter"
	}
	p.line("%s %s failed: %s", who, clean(d.SpecialistID), p.paint.red(clean(d.Message)))
}

func (p *printer) judged(d *runner.Judged) {
	p.short = d.Decision.Short()
	short := clean(p.short)
	if d.Decision.Consensus() {
		p.line("Arbiter %s: %s (%s)", clean(d.ArbiterID), p.paint.green("consensus reached"), short)
	} else {
		p.line("Arbiter %s: %s (%s)", clean(d.ArbiterID), p.paint.yellow("no consensus"), short)
	}
}

func (p *printer) gated(v guard.Verdict) {
	for _, r := range v.Reasons {
		p.line("Guard %s: %s (%s)", v.Status, clean(r.Code), clean(r.Message))
	}
}

func (p *printer) executed(d *runner.Executed) {
	t := d.Transition
	switch {
	case d.How == runner.ByConsensus:
		p.say("[ARBITRATE] consensus reached: %s (%s)", clean(t.Name), clean(p.short))
	default:
		p.line("Human %s decided: %s → %s", clean(d.SpecialistID), clean(t.Name), clean(t.Target))
	}
	p.line("Executed: %s → %s", clean(t.Name), clean(t.Target))
	p.say("[EXECUTE] %s -> %s", clean(t.From.Name), clean(t.Target))
	p.close()
}

// end prints where a run left its session and returns the exit code.
func (p *printer) end(r runner.Result, ask func() (runner.InboxItem, error)) (int, error) {
	p.status.stop()
	code := codeOf(r)
	if p.a.flags.json {
		return code, p.endJSON(r, code)
	}
	p.close()
	defer p.out.Flush()
	state := clean(r.Session.State.Name)
	switch r.Status {
	case runner.Completed.String():
		if r.Session.State.Goal {
			fmt.Fprintf(p.out, "%s %s\n", p.paint.green("Session complete:"), state)
		} else {
			fmt.Fprintf(p.out, "Session ended: %s\n", state)
		}
	case runner.NeedsHuman.String():
		p.say("[ARBITRATE] no consensus (%s)", clean(r.Reason))
		item, err := ask()
		if err != nil {
			return exitFailure, err
		}
		fmt.Fprintf(p.out, "%s %s (%s)\n", p.paint.yellow("Session needs a human:"), state, clean(r.Reason))
		for _, t := range item.Transitions {
			fmt.Fprintf(p.out, "  %s\n", p.a.decideWords(item, t))
		}
	case runner.WaitingStatus:
		asks := r.Session.OpenAsks()
		fmt.Fprintf(p.out, "Session waiting: %s (%d answers due by %s)\n", state, len(asks), dueBy(asks))
		fmt.Fprintf(p.out, "  %s\n", p.a.command("resume", []string{r.Session.ID.String()}))
	case runner.Stopped.String():
		fmt.Fprintf(p.out, "%s %s (%s)\n", p.paint.red("Session stopped by guard:"), clean(r.Code), clean(r.Reason))
	case runner.Failed.String():
		p.out.Flush()
		fmt.Fprintf(p.a.err, "Session failed:\n%s\n", cleanLines(r.Reason))
	}
	return code, nil
}

func dueBy(asks []runner.Ask) string {
	var last runner.RemoteAsk
	for _, ask := range asks {
		if ask.Remote != nil && ask.Remote.Deadline > last.Deadline {
			last = *ask.Remote
		}
	}
	return last.Deadline.String()
}

// endJSON prints the last line of --json.
func (p *printer) endJSON(r runner.Result, code int) error {
	line, err := json.Marshal(struct {
		V         int    `json:"v"`
		Kind      string `json:"kind"`
		SessionID string `json:"sessionId"`
		Status    string `json:"status"`
		State     string `json:"state"`
		Reason    string `json:"reason"`
		Code      string `json:"code"`
		ExitCode  int    `json:"exitCode"`
	}{1, "result", r.Session.ID.String(), r.Status, r.Session.State.Name, r.Reason, r.Code, code})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%s\n", line)
	return p.out.Flush()
}

func codeOf(r runner.Result) int {
	switch r.Status {
	case runner.Completed.String():
		if r.Session.State.Goal {
			return exitOK
		}
		return exitFinal
	case runner.NeedsHuman.String():
		return exitHuman
	case runner.Stopped.String():
		return exitStopped
	case runner.WaitingStatus:
		return exitWaiting
	}
	return exitFailure
}

// command returns a command line of this program that goes on with the present
// store.
func (a *app) command(name string, args []string, words ...string) command {
	c := command{words: append([]string{"dialai", name}, words...), args: args}
	if a.flags.store != "" {
		c.words = append(c.words, "--store", a.flags.store)
	}
	return c
}

// decideWords returns the command that decides a question with one of its
// transitions.
func (a *app) decideWords(item runner.InboxItem, t runner.InboxTransition) command {
	words := []string{"--round", item.RoundID}
	if len(item.Humans) > 1 {
		words = append(words, "--as", item.Humans[0])
	}
	if data := skeleton(t.Parameters); data != "" {
		words = append(words, "--data", data)
	}
	return a.command("decide", []string{item.SessionID, t.Name}, words...)
}

// skeleton returns a JSON object with the members that a schema requires, "" if
// it requires none.
func skeleton(schema json.RawMessage) string {
	var s struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type  any               `json:"type"`
			Enum  []json.RawMessage `json:"enum"`
			Const json.RawMessage   `json:"const"`
		} `json:"properties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil || len(s.Required) == 0 {
		return ""
	}
	members := make([]string, len(s.Required))
	for i, name := range s.Required {
		p := s.Properties[name]
		value := map[any]string{"string": `""`, "number": "0", "integer": "0", "boolean": "false", "array": "[]", "object": "{}"}[kindOf(p.Type)]
		switch {
		case p.Const != nil:
			value = string(p.Const)
		case len(p.Enum) > 0:
			value = string(p.Enum[0])
		case value == "":
			value = "null"
		}
		key, _ := json.Marshal(name) // a string always marshals
		members[i] = string(key) + ":" + value
	}
	return "{" + strings.Join(members, ",") + "}"
}

func kindOf(t any) any {
	if list, ok := t.([]any); ok && len(list) > 0 {
		return list[0]
	}
	if s, ok := t.(string); ok {
		return s
	}
	return nil
}
