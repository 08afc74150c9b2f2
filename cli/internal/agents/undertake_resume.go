package agents

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/leftover"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/undertaking"
)

// Unfinished work is found by the store: the undertakings that are open, or were stopped, in
// the same folder. Nobody goes on with it unasked, and nobody begins beside it unasked.

// taskOf returns what an undertaking was started with.
func taskOf(s *session.Session) (task, cwd string) {
	o := jsontext.ReadObject(s.Options().Meta)
	_ = jsontext.Unmarshal(o.Get("task"), &task) // what is missing is ""
	_ = jsontext.Unmarshal(o.Get("cwd"), &cwd)
	return task, cwd
}

// maxUnfinished is how many undertakings are looked at.
const maxUnfinished = 200

// begunIn returns the folder that an undertaking was begun in, which works in at: that, or a working
// tree made for it beside the repository of the folder.
func begunIn(s *session.Session, at string) string {
	return strings.Replace(at, "-dialai-"+s.ID.String()[:8], "", 1)
}

// open returns the undertakings that can be gone on with and that nobody has cancelled, of those
// that were begun in a folder, the newest first; "" is any folder.
func (w *work) open(ctx context.Context, cwd string) (list []*session.Session, err error) {
	linked, err := filepath.EvalSymlinks(cwd)
	if err != nil && cwd != "" {
		return nil, err
	}
	var found []session.Summary
	for _, name := range []string{fullMachine, soloMachine} {
		some, err := w.engine.Sessions(ctx, session.ListQuery{MachineName: name, Statuses: []session.Status{session.Running, session.NeedsHuman, session.Stopped}, Desc: true, Limit: maxUnfinished})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	for _, of := range found {
		s, err := w.engine.Session(ctx, of.SessionID)
		if err != nil {
			return nil, err
		}
		cancelled, err := undertaking.Cancelled(ctx, w.engine.Store, s)
		if err != nil {
			return nil, err
		}
		if _, at := taskOf(s); !s.State.Final && !cancelled && (cwd == "" || at == cwd || begunIn(s, at) == linked) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *session.Session) int { return cmp.Compare(b.EnteredAt(), a.EnteredAt()) })
	return list, nil
}

// unfinished returns an error if there is unfinished work in a folder; on a terminal the human
// chooses what becomes of it.
func (w *work) unfinished(ctx context.Context, cwd string) error {
	if w.flags.again {
		return nil
	}
	list, err := w.open(ctx, cwd)
	if w.known = list; err != nil || len(list) == 0 {
		return err
	}
	w.list(list)
	if w.flags.terminal(w.App) != nil {
		return w.chooseUnfinished(ctx, list[0])
	}
	id := []string{list[0].ID.String()}
	goesOn, problem := w.Command("undertake", nil, "--resume", id[0]), errors.New("there is unfinished work in this folder")
	if list[0].Status == session.Stopped { // there is nothing to cancel
		return command.Hinted(problem, "%s goes on, --new begins beside it", goesOn)
	}
	return command.Hinted(problem, "%s goes on, %s ends it, --new begins beside it", goesOn, w.Command("cancel", id, "--note", "WHY"))
}

// alone keeps others from beginning in a folder until begun is called. It returns an error if
// somebody has begun there since the human was told what is unfinished.
func (w *work) alone(ctx context.Context, cwd string) (begun func(), err error) {
	if w.flags.again {
		return func() {}, nil
	}
	unlock, err := undertaking.LockTree(locks("begins"), cwd, w.id.String())
	switch {
	case errors.Is(err, undertaking.ErrTaken):
		return nil, command.Hinted(errors.New("another undertaking is just being begun in this folder"), "%s shows it", w.Command("status", nil))
	case err != nil:
		return nil, err
	}
	begun = func() { _ = unlock() }
	list, err := w.open(ctx, cwd)
	for _, s := range list {
		if !slices.ContainsFunc(w.known, func(k *session.Session) bool { return k.ID == s.ID }) && err == nil {
			err = command.Hinted(fmt.Errorf("undertaking %q was begun in this folder at the same time", s.ID), "%s follows it, --new begins beside it", w.Command("watch", []string{s.ID.String()}))
		}
	}
	if err != nil {
		begun()
		return nil, err
	}
	return begun, nil
}

// chooseUnfinished asks what becomes of unfinished work: to go on with it, to look at it, to end
// it, or to begin beside it.
func (w *work) chooseUnfinished(ctx context.Context, s *session.Session) error {
	in := bufio.NewReader(w.In)
	for {
		fmt.Fprint(w.Err, "There is unfinished work in this folder: (r)esume the newest, (l)ook at it, (e)nd it, begin a (n)ew one, or (q)uit? ")
		line, err := in.ReadString('\n')
		if err != nil {
			return command.Fail(command.ExitInterrupted, context.Canceled)
		}
		switch strings.TrimSpace(line) {
		case "r", "resume":
			w.flags.resume = s.ID.String()
			return w.goOn(ctx, nil)
		case "l", "look":
			if err := w.status(ctx, []string{s.ID.String()}, false); err != nil {
				return err
			}
		case "e", "end":
			return w.giveUp(ctx, s)
		case "n", "new":
			return nil
		case "q", "quit":
			return command.Fail(command.ExitFailure, errors.New("nothing was begun"))
		}
	}
}

// giveUp ends an undertaking for good, as cancel does; one that was stopped is taken up for that.
func (w *work) giveUp(ctx context.Context, s *session.Session) error {
	if s.Status == session.Stopped {
		if _, err := w.engine.Resume(ctx, s.ID, runner.ResumeOptions{Actor: command.LocalActor()}); err != nil {
			return err
		}
	}
	_, err := w.engine.Stop(ctx, s.ID, runner.Stopping{Note: "ended by who began another", Actor: *command.LocalActor()})
	return err
}

func (w *work) list(list []*session.Session) {
	for _, s := range list {
		task, cwd := taskOf(s)
		fmt.Fprintf(w.Err, "%s  %s, in %s, $%s spent: %s (%s)\n", s.ID, s.Status, s.State.Name, s.Spent().Money, render.Clean(task), render.Clean(cwd))
	}
}

// goOn takes up an undertaking.
func (w *work) goOn(ctx context.Context, args []string) error {
	if len(args) > 0 && w.flags.resume != newest {
		return command.Usage("--resume goes on with what was begun: it takes no specification")
	}
	s, err := w.which(ctx, args)
	if err != nil {
		return err
	}
	task, cwd := taskOf(s)
	if !filepath.IsAbs(cwd) || !isUndertaking(s) {
		return command.Usage("session %s is no undertaking", s.ID)
	}
	if s.Status == session.Completed || s.State.Final {
		return fmt.Errorf("session %s has ended in %s: there is nothing to go on with", s.ID, s.State.Name)
	}
	for _, name := range undertaking.AgentsOf(s) {
		if _, err := agentNamed(w.App, name); err != nil {
			return err
		}
	}
	w.id, w.session = s.ID, s
	if err := w.lock(cwd); err != nil {
		return err
	}
	fmt.Fprintf(w.Out, "goes on: %s\n", render.Clean(task))
	w.endLeftovers()
	if s.Status == session.Running || s.Status == session.NeedsHuman && undertaking.WaitsForOwner(s) {
		return nil
	}
	_, err = w.engine.Resume(ctx, s.ID, runner.ResumeOptions{Actor: command.LocalActor()})
	return err
}

// endLeftovers ends what agents have left whose host was killed: nobody else drives this
// undertaking, since its tree is locked.
func (w *work) endLeftovers() {
	for of, pids := range leftover.Running() {
		if !strings.HasPrefix(of, w.id.String()+"/") {
			continue
		}
		fmt.Fprintf(w.Out, "ends %d processes that %s has left\n", len(pids), strings.TrimPrefix(of, w.id.String()+"/"))
		if left := leftover.End(of); len(left) > 0 {
			warnUndertake(w.App, fmt.Errorf("processes could not be ended: %v", left))
		}
	}
}

// which returns the undertaking that --resume names.
func (w *work) which(ctx context.Context, args []string) (*session.Session, error) {
	text := w.flags.resume
	if text == newest && len(args) == 1 { // pflag leaves what is not joined by = as an argument
		text = args[0]
	}
	if text != newest {
		id, err := command.FindID(ctx, w.engine.Sessions, text)
		if err != nil {
			return nil, err
		}
		return w.engine.Session(ctx, id)
	}
	list, err := w.open(ctx, "")
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, command.Hinted(errors.New("no undertaking is unfinished"), "%s begins one", w.Command("undertake", []string{"SPEC.md"}))
	case len(list) > 1:
		w.list(list)
		return nil, command.Hinted(errors.New("several undertakings are unfinished"), "name one: %s", w.Command("undertake", nil, "--resume", list[0].ID.String()))
	}
	return list[0], nil
}

// tree returns the folder to work in: a worktree of its own, if that is wanted.
func (w *work) tree(ctx context.Context, cwd string) (string, error) {
	t, err := undertaking.TreeOf(ctx, cwd)
	if err != nil {
		return "", err
	}
	f := w.flags
	switch {
	case f.givenTree && !f.worktree:
		return cwd, nil
	case f.givenTree && t.Top == "":
		return "", command.Usage("--worktree needs a git repository, and %s is in none", cwd)
	case t.Top == "" || t.Head == "":
		return cwd, nil
	case t.Dirty && !f.givenTree:
		fmt.Fprintln(w.Err, "warning: the working tree has uncommitted changes: the work goes on in it, among them")
		return cwd, nil
	}
	path, err := undertaking.AddWorktree(ctx, cwd, w.id.String()[:8])
	if err == nil {
		fmt.Fprintf(w.Out, "works in the new worktree %s\n", near(path))
	}
	return path, err
}

// dumps returns the folder of dumps, beside the store; "" for a store in memory.
func (w *work) dumps() string {
	path, err := w.StorePath()
	if err != nil || path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "undertakings")
}

// dump writes where the undertaking stands.
func (w *work) dump(ctx context.Context, dir string, u undertaking.State) {
	if dir == "" {
		return
	}
	s, err := w.engine.Session(context.WithoutCancel(ctx), w.id)
	if err == nil {
		err = undertaking.WriteDump(dir, undertaking.DumpOf(context.WithoutCancel(ctx), s, u, command.Now()))
	}
	if err != nil {
		warnUndertake(w.App, fmt.Errorf("the dump was not written; the store has everything: %w", err))
	}
}

func warnUndertake(a *command.App, err error) {
	fmt.Fprintln(a.Err, "warning: "+render.Clean(err.Error()))
}

func (w *work) say(ctx context.Context, id specialist.SessionID, text string) (string, error) {
	return undertaking.Say(ctx, w.engine.Runner, id, text, agent.Steer, command.LocalActor(), command.Now().Time())
}
