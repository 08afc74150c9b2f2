package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dialai/dialai/runner"
)

// interact asks at the terminal what a human decides. It returns false if the
// person would rather not say now.
func (a *app) interact(ctx context.Context, e *engine, p *printer, r runner.Result) (decided bool, err error) {
	p.status.clear()
	p.close()
	p.out.Flush()
	item, err := e.Question(ctx, r.Session)
	if err != nil {
		return false, err
	}
	q := &dialogue{a: a, ctx: ctx, lines: a.lines(), paint: p.paint}
	q.ask(item, r.Session)
	choice, ok := q.choose(item)
	if !ok {
		return false, nil
	}
	as, ok := q.human(item)
	if !ok {
		return false, nil
	}
	ruling := runner.Ruling{SessionID: r.Session.ID, SpecialistID: as, RoundID: item.RoundID, TransitionName: choice.Name}
	ruling.Reasoning, _ = q.read("Why? (optional) ")
	if as == runner.Operator {
		ruling.Reasoning = strings.TrimSpace(fmt.Sprintf("%s (decided by %s)", ruling.Reasoning, osUser()))
	}
	for {
		if data, ok := q.data(choice); ok {
			ruling.MetaJSON = data
		} else {
			return false, nil
		}
		result, err := e.Decide(ctx, ruling)
		switch {
		case err != nil:
			return false, err
		case result.Executed:
			return true, nil
		case result.Stale:
			fmt.Fprintln(a.err, "Somebody else decided meanwhile.")
			return true, nil
		}
		fmt.Fprintln(a.err, clean(result.GuardReason))
		if len(choice.Parameters) == 0 {
			return false, a.refused(result)
		}
	}
}

// lines returns the program's input, line by line; the reader is made once, so
// that what was typed ahead is not lost between two questions.
func (a *app) lines() *bufio.Reader {
	if r, ok := a.in.(*bufio.Reader); ok {
		return r
	}
	r := bufio.NewReader(a.in)
	a.in = r
	return r
}

// A dialogue is one question to a human and the answers to it. Questions go to
// stderr, so that stdout stays the round log.
type dialogue struct {
	a     *app
	ctx   context.Context //nolint:containedctx // it lives as long as the question
	lines *bufio.Reader
	paint paint
}

func (d *dialogue) say(format string, args ...any) { fmt.Fprintf(d.a.err, format, args...) }

// ask prints the question, why it is asked, what was proposed, and the choices.
func (d *dialogue) ask(item runner.InboxItem, s *runner.Session) {
	d.say("\n%s\n", d.paint.bold(clean(item.MachineName)+": "+clean(item.State)))
	if item.Prompt != "" {
		d.say("%s\n", clean(item.Prompt))
	}
	d.say("\nWhy you are asked: %s\n", clean(item.Reason))
	for _, p := range s.Proposals() {
		who := ""
		if p.IsHuman {
			who = " (human)"
		}
		d.say("  %s%s proposed %s → %s: %s\n", clean(p.SpecialistID), who, clean(p.Transition.Name), clean(p.Transition.Target), clean(p.Reasoning))
	}
	d.say("\nYour choices:\n")
	for i, t := range item.Transitions {
		d.say("  %d. %s → %s", i+1, clean(t.Name), clean(t.Target))
		if t.Description != "" {
			d.say("  %s", d.paint.dim(clean(t.Description)))
		}
		d.say("\n")
	}
}

// read reads one line. ok is false at the end of the input or when the command is
// interrupted.
func (d *dialogue) read(prompt string) (line string, ok bool) {
	d.say("%s", prompt)
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() { // reading a terminal cannot be interrupted; the process ends soon
		line, err := d.lines.ReadString('\n')
		got <- result{line, err}
	}()
	select {
	case <-d.ctx.Done():
		return "", false
	case r := <-got:
		if r.err != nil && (r.line == "" || !errors.Is(r.err, io.EOF)) {
			d.say("\n")
			return "", false
		}
		return strings.TrimSpace(r.line), true
	}
}

// choose asks for one of the transitions, by number or name.
func (d *dialogue) choose(item runner.InboxItem) (runner.InboxTransition, bool) {
	for {
		line, ok := d.read(fmt.Sprintf("Decide (1-%d, a name, or q to leave it open): ", len(item.Transitions)))
		if !ok || line == "q" {
			return runner.InboxTransition{}, false
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(item.Transitions) {
			return item.Transitions[n-1], true
		}
		for _, t := range item.Transitions {
			if t.Name == line {
				return t, true
			}
		}
		d.say("%q is none of the choices.\n", clean(line))
	}
}

// human asks who decides, if several could.
func (d *dialogue) human(item runner.InboxItem) (string, bool) {
	switch len(item.Humans) {
	case 0:
		return runner.Operator, true
	case 1:
		return item.Humans[0], true
	}
	for {
		line, ok := d.read("Who are you (" + clean(strings.Join(item.Humans, ", ")) + ")? ")
		if !ok || line == "q" {
			return "", false
		}
		for _, h := range item.Humans {
			if h == line {
				return h, true
			}
		}
		d.say("%q may not decide here.\n", clean(line))
	}
}

// data asks for the parameters of a transition, if it has any.
func (d *dialogue) data(t runner.InboxTransition) (json.RawMessage, bool) {
	if len(t.Parameters) == 0 {
		return nil, true
	}
	d.say("%s takes parameters: %s\n", clean(t.Name), clean(string(t.Parameters)))
	for {
		line, ok := d.read("Parameters as JSON (empty for none): ")
		switch {
		case !ok || line == "q":
			return nil, false
		case line == "":
			return nil, true
		case json.Valid([]byte(line)):
			return json.RawMessage(line), true
		}
		d.say("That is not JSON; an example: %s\n", skeleton(t.Parameters))
	}
}
