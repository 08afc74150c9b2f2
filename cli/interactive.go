package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// A question asked at the terminal. Questions go to stderr, so that stdout stays the
// round log; answers come line by line from a reader that is made once, so that what
// was typed ahead is not lost. A choice is a number or a name; where one is both, it
// must be said which is meant. A payload that is refused is asked for again, with what
// was given before as a proposal.
//
// The ruling carries the digest of the question that was shown. Whoever gives no answer
// (q, the end of the input, an interrupt) leaves the question open, and nothing is
// decided.

// interact asks at the terminal what a human decides. It returns false if the
// person would rather not say now.
func (a *app) interact(ctx context.Context, e *engine, p *printer, r runner.Result) (decided bool, err error) {
	defer p.status.Hold()()
	p.close()
	p.out.Flush()
	humans, err := a.actors(ctx, e, r.Session)
	if err != nil {
		return false, nil // finish says that nobody can
	}
	viewer := ""
	if len(humans) == 1 {
		viewer = humans[0]
	}
	item, err := e.Question(ctx, r.Session, machine.SpecialistID(viewer))
	if err != nil {
		return false, err
	}
	d := &dialogue{a: a, ctx: ctx, lines: a.lines(), paint: render.PaintFor(a.Err, a.Env)}
	if err := d.ask(item); err != nil {
		return false, err
	}
	ruling, choice, ok := d.answer(item, humans)
	ruling.SessionID, ruling.Blind, ruling.Actor = r.Session.ID, item.Withheld != nil, command.LocalActor()
	for ok {
		if ruling.MetaJSON, ok = d.payload(&item, choice); !ok {
			break
		}
		choice.MetaJSON = ruling.MetaJSON // to be corrected, if it is refused
		result, err := e.Decide(ctx, ruling)
		switch {
		case errors.Is(err, runner.ErrNotRunning), result.Stale:
			d.say("Nothing was decided: the question has changed meanwhile.\n")
			return true, nil
		case err != nil && result.Session == nil:
			return false, err
		case result.Executed, result.Recorded:
			return true, nil
		case len(choice.Parameters) == 0 || !result.Session.Status.Live():
			return false, a.refused(ctx, e, p, refusedChoice{question: item, transition: choice.Name}, result, err)
		}
		d.say("%s\n", render.Clean(result.GuardReason))
	}
	return false, ctx.Err()
}

// lines returns the program's input, line by line; the reader is made once, so
// that what was typed ahead is not lost between two questions.
func (a *app) lines() *bufio.Reader {
	if r, ok := a.In.(*bufio.Reader); ok {
		return r
	}
	r := bufio.NewReader(a.In)
	a.In = r
	return r
}

// A dialogue is one question to a human and the answers to it. Questions go to
// stderr, so that stdout stays the round log.
type dialogue struct {
	a     *app
	ctx   context.Context //nolint:containedctx // it lives as long as the question
	lines *bufio.Reader
	paint render.Paint
}

func (d *dialogue) say(format string, args ...any) { fmt.Fprintf(d.a.Err, format, args...) }

// ask prints the question, why it is asked, what it is about, what was proposed, and
// the choices.
func (d *dialogue) ask(item runner.Question) error {
	d.say("%s\n", d.paint.Bold(render.Clean(item.MachineName)+": "+render.Clean(item.State)))
	if item.Subject != "" {
		d.say("%s\n", render.Clean(item.Subject))
	}
	render.Prompt(d.a.Err, "", item.Prompt)
	d.say("\nWhy you are asked: %s\n", render.Clean(item.Reason))
	if err := d.a.Question(d.a.Err, item); err != nil {
		return err
	}
	d.say("\nYour choices:\n")
	open, closed := render.Choices(item)
	for i, t := range open {
		d.say("  %d. %s → %s", i+1, render.Clean(t.Name), render.Clean(t.Target))
		if t.Description != "" {
			d.say("  %s", d.paint.Dim(render.Clean(t.Description)))
		}
		if t.Irreversible {
			d.say("  (irreversible)")
		}
		d.say("\n")
		render.Prompt(d.a.Err, "      ", render.Approvals(t.Approvals))
	}
	d.a.Closed(d.a.Err, d.paint, closed)
	return nil
}

// answer asks what is decided, by whom, and why. ok is false if it is left open.
func (d *dialogue) answer(item runner.Question, humans []string) (r runner.Ruling, choice session.InboxTransition, ok bool) {
	if choice, ok = d.choose(item); !ok {
		return r, choice, false
	}
	r.RoundID, r.QuestionDigest, r.TransitionName = item.RoundID, item.Digest, choice.Name
	who, ok := d.human(humans)
	if !ok {
		return r, choice, false
	}
	why, _ := d.read("Why? (optional) ")
	r.SpecialistID, r.Reasoning = machine.SpecialistID(who), signed(who, why)
	return r, choice, d.ctx.Err() == nil
}

// read reads one line. ok is false at the end of the input or when the command is
// interrupted.
func (d *dialogue) read(prompt string) (line string, ok bool) {
	d.say("%s", prompt)
	line, err := d.lines.ReadString('\n')
	if d.ctx.Err() != nil || err != nil && (line == "" || !errors.Is(err, io.EOF)) {
		d.say("\n")
		return "", false
	}
	return strings.TrimSpace(line), true
}

// choose asks for one of the transitions, by number or name. Where a name is the
// number of another choice, it has to be said which is meant.
func (d *dialogue) choose(item runner.Question) (session.InboxTransition, bool) {
	open, _ := render.Choices(item)
	for {
		line, ok := d.read(fmt.Sprintf("Decide (1-%d, a name, or q to leave it open): ", len(open)))
		if !ok || line == "q" {
			return session.InboxTransition{}, false
		}
		numbered, named := pick(open, line)
		switch {
		case numbered == nil && named == nil:
			d.say("%q is none of the choices.\n", render.Clean(line))
		case numbered == nil || numbered == named:
			return *named, true
		case named == nil:
			return *numbered, true
		default:
			d.say("%s is a name and another's number; write %s. for the number, \"%s\" for the name.\n", line, line, line)
		}
	}
}

// pick returns the choice of that number and the choice of that name. "2." is
// surely a number, "2" in quotes surely a name.
func pick(choices []session.InboxTransition, line string) (numbered, named *session.InboxTransition) {
	name, quoted := strings.CutPrefix(line, `"`)
	name = strings.TrimSuffix(name, `"`)
	number, dotted := strings.CutSuffix(line, ".")
	if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= len(choices) && !quoted {
		numbered = &choices[n-1]
	}
	for i := range choices {
		if t := &choices[i]; t.Name == line || quoted && t.Name == name {
			named = t
		}
	}
	if dotted && numbered != nil && named == nil || named == nil {
		return numbered, nil
	}
	return numbered, named
}

// human asks who decides, if several could.
func (d *dialogue) human(humans []string) (string, bool) {
	if len(humans) == 1 {
		return humans[0], true
	}
	for {
		line, ok := d.read("Who are you (" + render.Clean(strings.Join(humans, ", ")) + ")? ")
		if !ok || line == "q" {
			return "", false
		}
		if slices.Contains(humans, line) {
			return line, true
		}
		d.say("%q may not decide here.\n", render.Clean(line))
	}
}
