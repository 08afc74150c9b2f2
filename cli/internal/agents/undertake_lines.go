package agents

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/undertaking"
)

// Without a screen an undertaking is lines: one for each event, and what is typed is said. What
// begins with a slash is a command, as on the screen.

// listen says what stdin has, line by line, and does what begins with a slash.
func (w *work) listen(ctx context.Context, loop *undertaking.Loop, leave func()) {
	go func() {
		in := bufio.NewReader(w.In)
		for ctx.Err() == nil {
			line, ended := in.ReadString('\n') // however long: what is too long to be said is told
			if text := strings.TrimSpace(line); text != "" {
				told, err := w.typed(ctx, loop, leave, text)
				if err != nil {
					told = "not done: " + err.Error()
				}
				if told != "" {
					fmt.Fprintln(w.Out, render.Clean(told))
				}
			}
			if ended != nil {
				return
			}
		}
	}()
}

// typed does what a line asks for, and returns what became of it.
func (w *work) typed(ctx context.Context, loop *undertaking.Loop, leave func(), text string) (string, error) {
	verb, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch verb {
	case "/hold":
		loop.Hold()
		return "held: say something or /resume to go on", nil
	case "/resume":
		return w.askAgain(ctx)
	case "/assent":
		return w.rule(ctx, "assent", "")
	case "/decide":
		move, message, _ := strings.Cut(rest, " ")
		if move == "" {
			return "", errors.New("/decide MOVE, and a message if it takes one; " + w.Command("show", []string{w.id.String()}).String() + " shows what there is")
		}
		return w.rule(ctx, move, strings.TrimSpace(message))
	case "/quit":
		leave()
		return "", nil
	}
	if strings.HasPrefix(text, "/") {
		return "", fmt.Errorf("there is no %s; there are /assent, /decide MOVE, /hold, /resume and /quit", verb)
	}
	return w.say(ctx, w.id, text)
}

// askAgain has those asked again whose asks have ended.
func (w *work) askAgain(ctx context.Context) (string, error) {
	_, err := w.engine.Resume(ctx, w.id, runner.ResumeOptions{Actor: command.LocalActor()})
	return "asked again", err
}

// rule makes a move in the undertaking's open round.
func (w *work) rule(ctx context.Context, move, message string) (string, error) {
	s, err := w.engine.Session(ctx, w.id)
	if err != nil {
		return "", err
	}
	return w.decide(ctx, w.id, s.Key().ID(), move, message)
}

// decide makes a move in a round.
func (w *work) decide(ctx context.Context, id specialist.SessionID, round, move, message string) (string, error) {
	r := runner.Ruling{SessionID: id, RoundID: round, SpecialistID: "owner", TransitionName: move, Actor: command.LocalActor()}
	if message != "" {
		r.MetaJSON, r.Reasoning = undertaking.Message(message), message
	}
	_, err := w.engine.Decide(ctx, r)
	return "decided: " + move, err
}
