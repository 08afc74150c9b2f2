package agents

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/undertaking"
)

// Without a screen an undertaking is lines: one for each event, and what is typed is said. What
// begins with a slash is a command, as on the screen.

// carryOn drives the undertaking until it ends, and writes a line for each event.
func (w *work) carryOn(ctx context.Context, c undertaking.Config, args []string) error {
	c, err := w.config(ctx, c)
	if err != nil {
		return err
	}
	out := &lines{out: w.Out}
	c.Tell = out.write
	fmt.Fprintf(w.Out, "undertaking %s in %s\n", w.id, near(w.cwd))
	loop := undertaking.New(c)
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if !c.NoWait && (len(args) == 0 || args[0] != "-") {
		w.listen(ctx, loop, leave)
	}
	s, _, err := loop.Run(ctx)
	switch {
	case errors.Is(err, undertaking.ErrWaits):
		return command.Hinted(command.Fail(command.ExitHuman, errors.New("your move is waited for")), "%s, then %s", w.Command("decide", []string{w.id.String()}), w.Command("undertake", nil, "--resume", w.id.String()))
	case ctx.Err() != nil && w.Ctx.Err() == nil: // by /quit
		return command.Fail(command.ExitInterrupted, context.Canceled)
	case err != nil:
		return err
	}
	return w.ended(s)
}

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

// lines writes what happens, one line for each event.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) write(of undertaking.Line) {
	words := []string{of.At.Local().Format("15:04:05"), of.State}
	if of.Worker != "" {
		words = append(words, of.Worker)
		if of.Pct >= 0 {
			words = append(words, fmt.Sprintf("%d%%", of.Pct))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.out, render.Clean(strings.Join(append(words, of.Text), " ")))
}

// ended says how it ended.
func (w *work) ended(s *session.Session) error {
	why := render.Clean(s.Outcome().Reason)
	if why != "" {
		why += ", "
	}
	fmt.Fprintf(w.Out, "%s: %s$%s spent, in %s\n", s.State.Name, why, s.Spent().Money, near(w.cwd))
	switch {
	case s.Status == session.Completed:
		return nil
	case s.State.Final:
		return command.Fail(command.ExitFinal, errors.New("it was given up"))
	}
	resume := w.Command("resume", []string{w.id.String()})
	if limit := undertaking.Exceeded(s); limit != "" {
		resume = w.Command("resume", []string{w.id.String()}, "--raise", limit+"=VALUE", "--note", "WHY")
	}
	return command.Hinted(command.Fail(command.ExitStopped, errors.New(render.Clean(s.Outcome().Reason))), "%s, then %s", resume, w.Command("undertake", nil, "--resume", w.id.String()))
}

// near returns a path as seen from here, if it is below.
func near(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(short) {
		return path
	}
	return short
}
