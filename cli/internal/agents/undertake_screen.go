package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/tui"
	"github.com/dialai/dialai/undertaking"
)

// On a terminal an undertaking is a screen (package tui), which runs beside the loop: the loop
// hands it what is now, and it calls back what keys ask for. What other parts would print while
// it is there are lines of its log.

// terminal returns the terminal that a screen is shown on, nil if there is none or none is wanted.
func (f *undertakeFlags) terminal(a *command.App) *os.File {
	if f.plain || f.noWait || a.JSON || !render.IsTerminal(a.Out) || a.Env("TERM") == "dumb" {
		return nil
	}
	return command.Terminal(a.In)
}

// A shown is an undertaking on a screen.
type shown struct {
	*work
	screen  *tui.Screen
	base    undertaking.Config
	loop    *undertaking.Loop
	cancel  context.CancelFunc
	done    chan struct{}
	result  *session.Session
	problem error

	mu      sync.Mutex
	newest  tui.Now
	prompts []tui.Prompt
}

// onScreen drives the undertaking until it ends or the human leaves.
func (w *work) onScreen(ctx context.Context, terminal *os.File, c undertaking.Config) error {
	out, errs := w.Out, w.Err
	v := &shown{work: w, base: c, done: make(chan struct{})}
	v.screen = tui.New(ctx, tui.Config{In: terminal, Out: w.Out, ASCII: w.flags.ascii, Acts: tui.Acts{
		Begin: func(text string) (string, error) { return v.begun(ctx, text) },
		Say: func(text string, d agent.Delivery) (string, error) {
			return undertaking.Say(ctx, w.engine.Runner, w.id, text, d, command.LocalActor(), command.Now().Time())
		},
		Rule:   func(r tui.Ruling) (string, error) { return v.ruled(ctx, r) },
		Hold:   func() { v.loop.Hold() },
		Resume: func() (string, error) { return w.askAgain(ctx) },
	}})
	w.Out, w.Err = io.Discard, &noted{to: v.screen}
	restore := func() { w.Out, w.Err = out, errs }
	defer restore()
	if w.session != nil {
		if err := v.drive(ctx); err != nil {
			return err
		}
	}
	err := v.screen.Run()
	restore()
	broken := errors.Is(err, tui.ErrBroken)
	if v.cancel != nil {
		if broken || errors.Is(err, tui.ErrLeft) {
			fmt.Fprintln(w.Err, "closing the agents' sessions …")
		}
		v.cancel()
		<-v.done
	}
	switch {
	case v.problem != nil && !errors.Is(v.problem, context.Canceled):
		return v.problem
	case broken && v.cancel != nil:
		return command.Hinted(err, "%s goes on", w.GoesOn)
	case broken:
		return err
	case v.cancel == nil || err != nil || v.problem != nil:
		return command.Fail(command.ExitInterrupted, context.Canceled)
	}
	return w.ended(v.result)
}

// begun starts the undertaking about what was typed.
func (v *shown) begun(ctx context.Context, text string) (string, error) {
	cwd, err := v.folder()
	if err != nil {
		return "", err
	}
	if err := v.start(ctx, text, cwd); err != nil {
		return "", err
	}
	return "", v.drive(ctx)
}

// drive runs the loop beside the screen.
func (v *shown) drive(ctx context.Context) error {
	c, err := v.config(ctx, v.base)
	if err != nil {
		return err
	}
	c.Tell = v.screen.Line
	c.Changed = func(s *session.Session, u undertaking.State) {
		v.show(func() { v.newest.Session, v.newest.State = s, u })
	}
	u, err := undertaking.Load(ctx, v.engine.Store, v.id, undertaking.State{})
	if err != nil {
		return err
	}
	c.Changed(v.session, u) // what is gone on with is shown from the beginning
	v.loop = undertaking.New(c)
	ctx, v.cancel = context.WithCancel(ctx)
	go v.watchPrompts(ctx)
	go func() {
		defer givesBack(v.screen)
		s, u, err := v.loop.Run(ctx)
		v.result, v.problem = s, err
		if ctx.Err() == nil {
			v.screen.End(tui.Now{Session: s, State: u, At: command.Now().Time()}, err)
		}
		close(v.done) // but not after a panic, which ends the process as soon as it is printed
	}()
	return nil
}

// givesBack gives the terminal back before a panic beside the screen is printed.
func givesBack(screen *tui.Screen) {
	if p := recover(); p != nil {
		screen.Kill()
		panic(p)
	}
}

// show hands over what is now.
func (v *shown) show(change func()) {
	v.mu.Lock()
	change()
	v.newest.At, v.newest.Prompts = command.Now().Time(), v.prompts
	n := v.newest
	v.mu.Unlock()
	if n.Session != nil {
		v.screen.Show(n)
	}
}

// watchPrompts looks each second for permissions that wait for the human.
func (v *shown) watchPrompts(ctx context.Context) {
	defer givesBack(v.screen)
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-each.C:
		}
		if list, err := v.waitingPrompts(ctx); err == nil && !samePrompts(list, v.prompts) {
			v.show(func() { v.prompts = list })
		}
	}
}

func samePrompts(a, b []tui.Prompt) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Session != b[i].Session || a[i].Round != b[i].Round || a[i].Parked != b[i].Parked {
			return false
		}
	}
	return true
}

// maxPrompts is how many permissions are looked at.
const maxPrompts = 50

// waitingPrompts returns the permissions of this undertaking that wait for the human, the oldest
// first.
func (w *work) waitingPrompts(ctx context.Context) (list []tui.Prompt, err error) {
	u, err := w.engine.Session(ctx, w.id)
	if err != nil {
		return nil, err
	}
	q := session.ListQuery{MachineName: "permission", Statuses: []session.Status{session.NeedsHuman}, CreatedAfter: u.CreatedAt - 1, Limit: maxPrompts}
	for more := true; more && len(list) < maxPrompts; more = q.After != "" {
		found, err := w.engine.Sessions(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, of := range found {
			p, ours, err := w.promptOf(ctx, of.SessionID)
			if err != nil {
				return nil, err
			}
			if ours {
				list = append(list, p)
			}
		}
		q.After = q.Next(found)
	}
	return list, nil
}

// promptOf returns what a permission asks, and whether it is one of this undertaking.
func (w *work) promptOf(ctx context.Context, id specialist.SessionID) (p tui.Prompt, ours bool, err error) {
	s, err := w.engine.Session(ctx, id)
	if err != nil {
		return p, false, err
	}
	var about struct {
		Undertaking, Agent, Tool, Kind string
		Input                          json.RawMessage
	}
	if json.Unmarshal(s.Options().Meta, &about) != nil || about.Undertaking != w.id.String() || s.Status != session.NeedsHuman {
		return p, false, nil
	}
	waited, err := permit.Waited(ctx, w.engine.Store, id, command.Now().Time())
	return tui.Prompt{
		Session: s.ID.String(), Round: s.Key().ID(), Agent: about.Agent, Tool: about.Tool, Kind: about.Kind, Input: inputText(about.Input),
		Why: s.ReasonFor("owner"), Since: s.EnteredAt().Time(), Parked: !waited,
	}, true, err
}

// inputText writes the input of a tool for people: its members, a line each.
func inputText(raw json.RawMessage) string {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return string(raw)
	}
	if line, ok := members["command"].(string); ok && len(members) == 1 {
		return line
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// ruled makes a move that was chosen on the screen.
func (v *shown) ruled(ctx context.Context, r tui.Ruling) (string, error) {
	id, err := session.ParseID(r.Session)
	if err != nil {
		return "", err
	}
	return v.decide(ctx, id, r.Round, r.Transition, r.Message)
}

// A noted is where other parts write while the screen is there: lines of its log.
type noted struct{ to *tui.Screen }

func (n *noted) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		n.to.Line(undertaking.Line{At: command.Now().Time(), Pct: -1, Text: strings.TrimSpace(line)})
	}
	return len(p), nil
}
