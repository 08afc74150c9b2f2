package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/tui"
	"github.com/dialai/dialai/undertaking"
)

// dialai watch follows a session from another terminal, by its logs in the store: it drives
// nothing, and ends with the session. An undertaking is the screen that its own terminal has,
// without a line to type in; another session, and anything without a terminal, is lines.

// watchFlags are those of watch.
type watchFlags struct {
	plain, ascii bool
	from         int64
}

// WatchCommand returns dialai watch.
func WatchCommand(a *command.App) *cobra.Command {
	f := &watchFlags{}
	cmd := &cobra.Command{
		Use:   "watch [session]",
		Short: "Follow a session as it happens, from another terminal",
		Long: `Follow a session as it happens, from another terminal, until it ends: an undertaking as
the screen that dialai undertake shows, any other session as a line for each move. It only
looks, and leaving it (Ctrl-C) changes nothing. Without a session, the newest undertaking
that is not finished.

Lines begin with what happens from now on; --from 1 begins with the first move.`,
		Example: `  dialai watch
  dialai watch 0b9c1d3e --plain --from 1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.from < 0 {
				return command.Usage("--from is %d, it is the number of an event: 1 or more", f.from)
			}
			return withWork(cmd.Context(), a, command.Reads, func(w *work) error { return w.watch(cmd.Context(), f, args) })
		},
	}
	cmd.Flags().BoolVar(&f.plain, "plain", false, "a line for each event, as without a terminal")
	cmd.Flags().BoolVar(&f.ascii, "ascii", false, "draw the terminal's screen with ASCII only")
	cmd.Flags().Int64Var(&f.from, "from", 0, "print the moves from the event of this `number` on")
	return cmd
}

// watch follows a session.
func (w *work) watch(ctx context.Context, f *watchFlags, args []string) error {
	s, err := w.watched(ctx, args)
	if err != nil {
		return err
	}
	w.id = s.ID
	terminal := command.Terminal(w.In)
	if f.plain || f.from > 0 || w.JSON || !isUndertaking(s) || terminal == nil || !render.IsTerminal(w.Out) {
		return w.watchLines(ctx, s, f.from)
	}
	return w.watchScreen(ctx, terminal, f.ascii)
}

// watched returns the session that is to be followed.
func (w *work) watched(ctx context.Context, args []string) (*session.Session, error) {
	if len(args) == 1 {
		id, err := command.FindID(ctx, w.engine.Sessions, args[0])
		if err != nil {
			return nil, err
		}
		return w.engine.Session(ctx, id)
	}
	list, err := w.open(ctx, "")
	if err == nil && len(list) == 0 {
		err = command.Hinted(errors.New("no undertaking is unfinished"), "name a session: %s lists them", w.Command("sessions", nil))
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// lookEach is how often the store is looked at.
const lookEach = time.Second

// follow calls see whenever the session has gone on, until it is over, see returns an error or
// ctx ends.
func (w *work) follow(ctx context.Context, see func(*session.Session, undertaking.State) error) error {
	each := time.NewTicker(lookEach)
	defer each.Stop()
	var u undertaking.State
	for {
		s, err := w.engine.Session(ctx, w.id)
		if err != nil {
			return err
		}
		if u, err = undertaking.Load(ctx, w.engine.Store, w.id, u); err != nil {
			return err
		}
		if err := see(s, u); err != nil || !s.Status.Live() {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-each.C:
		}
	}
}

// watchScreen shows the undertaking's screen.
func (w *work) watchScreen(ctx context.Context, terminal *os.File, ascii bool) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	screen := tui.New(ctx, tui.Config{In: terminal, Out: w.Out, ASCII: ascii, Watch: true})
	done := make(chan error, 1)
	go func() {
		defer givesBack(screen)
		seen := &sight{work: w}
		done <- w.follow(ctx, func(s *session.Session, u undertaking.State) error {
			prompts, err := w.waitingPrompts(ctx)
			if err != nil {
				return err
			}
			gone, err := undertaking.Gone(ctx, w.engine.Store, u)
			if err != nil {
				return err
			}
			screen.Show(tui.Now{Session: s, State: u, Prompts: prompts, Gone: gone, At: command.Now().Time()})
			err = seen.lines(ctx, s, screen.Line)
			if !s.Status.Live() {
				screen.End(tui.Now{Session: s, State: u, At: command.Now().Time()}, nil)
			}
			return err
		})
	}()
	err := screen.Run()
	leave()
	if problem := <-done; problem != nil && !errors.Is(problem, context.Canceled) {
		return problem
	}
	if errors.Is(err, tui.ErrLeft) { // only watching has ended
		return nil
	}
	return err
}

// watchLines writes a line for each event.
func (w *work) watchLines(ctx context.Context, s *session.Session, from int64) error {
	seen, out := &sight{work: w, seq: from - 1}, &lines{out: w.Out}
	if from == 0 {
		if err := seen.lines(ctx, s, func(undertaking.Line) {}); err != nil {
			return err
		}
	}
	err := w.follow(ctx, func(s *session.Session, _ undertaking.State) error { return seen.lines(ctx, s, out.write) })
	if err != nil {
		return err
	}
	s, err = w.engine.Session(ctx, w.id)
	if err == nil {
		fmt.Fprintf(w.Out, "%s in %s: %s\n", s.Status, s.State.Name, render.Clean(s.Outcome().Reason))
	}
	return err
}

// A sight is how far the logs of a session have been read.
type sight struct {
	*work
	seq, agentSeq int64
	state         string
}

// lines tells what the logs have that was not told: the moves, and what the agents did, by their
// times.
func (v *sight) lines(ctx context.Context, s *session.Session, tell func(undertaking.Line)) error {
	var news []undertaking.Line
	for rec, err := range v.engine.Store.Records(ctx, s.ID, v.seq+1) {
		if err != nil {
			return err
		}
		events, err := session.DecodeRaw(rec.Events)
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Seq <= v.seq {
				continue
			}
			if v.seq = e.Seq; e.Kind == session.KindExecuted {
				news = append(news, moveLine(e))
			}
		}
	}
	for e, err := range v.engine.Store.AgentLog(ctx, s.ID, v.agentSeq) {
		if err != nil {
			return err
		}
		v.agentSeq = e.Seq
		if line, told := agentLine(e); told {
			news = append(news, line)
		}
	}
	slices.SortStableFunc(news, func(a, b undertaking.Line) int { return a.At.Compare(b.At) })
	for _, line := range news {
		if line.State != "" {
			v.state = line.State
		}
		line.State = v.state
		tell(line)
	}
	return nil
}

// moveLine says which move was executed, and what it led to.
func moveLine(e session.Raw) undertaking.Line {
	var d struct {
		SpecialistID, ToState, TransitionName string
		MetaJSON                              struct{ Message string }
	}
	_ = json.Unmarshal(e.Data, &d) // what cannot be read is missing
	text := d.SpecialistID + " " + d.TransitionName + " → " + d.ToState
	if d.MetaJSON.Message != "" {
		text += ": " + d.MetaJSON.Message
	}
	return undertaking.Line{At: e.At.Time(), State: d.ToState, Pct: -1, Text: text}
}

// agentLine says what an agent did, of what people watch.
func agentLine(e session.AgentEvent) (undertaking.Line, bool) {
	var d struct {
		As                                    string
		Number, Pct                           int
		Agent, Text, Tool, Level, Outcome, By string
		Allowed                               bool
		Parent                                string
	}
	_ = json.Unmarshal(e.Data, &d)
	line := undertaking.Line{At: e.At.Time(), Worker: d.As, Pct: -1}
	if d.As == "orchestrator" {
		line.Worker = fmt.Sprintf("orch-%d", d.Number)
	}
	switch e.Kind {
	case string(agent.KindOpened):
		line.Text = "opened " + d.Agent
	case string(agent.KindExited):
		line.Text = "has gone"
	case string(agent.KindText):
		line.Text = "says: " + d.Text
	case string(agent.KindToolUse):
		line.Text = "uses " + d.Tool
	case string(agent.KindPermission):
		line.Text = map[bool]string{true: "may use ", false: "may not use "}[d.Allowed] + d.Tool
	case "crossed":
		line.Pct, line.Text = d.Pct, "its context is past the "+d.Level+" level"
	case "said":
		line.Text = d.By + " says: " + d.Text
	case "note":
		line.Text = "notes: " + d.Text
	}
	line.Text, _, _ = strings.Cut(strings.TrimSpace(line.Text), "\n")
	return line, line.Text != "" && d.Parent == "" && !(e.Kind == "crossed" && d.Level == "")
}
