package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// Commands that look at sessions: sessions, show, log, inbox, tick.

// with runs f with an engine that is closed afterwards.
func (a *app) with(ctx context.Context, f func(e *engine, out *bufio.Writer) error) error {
	e, err := a.engine(ctx, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	out := bufio.NewWriter(a.out)
	if err := f(e, out); err != nil {
		out.Flush()
		return err
	}
	return out.Flush()
}

// printJSON prints v as one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints rows in columns.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, clean(cell))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func (a *app) sessionsCommand() *cobra.Command {
	var q runner.ListQuery
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List the sessions of the store",
		Example: `  dialai sessions
  dialai sessions --live --machine triage
  dialai sessions --json | jq -r .sessionId`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				list, err := e.Sessions(cmd.Context(), q)
				if err != nil {
					return err
				}
				return a.printSessions(out, list)
			})
		},
	}
	cmd.Flags().StringVar(&q.MachineName, "machine", "", "only sessions of this machine")
	cmd.Flags().BoolVar(&q.Live, "live", false, "only sessions that have not ended")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "only the newest so many; 0 shows all")
	return cmd
}

func (a *app) printSessions(out io.Writer, list []runner.Summary) error {
	if a.flags.json {
		for _, s := range list {
			if err := printJSON(out, s); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No sessions.")
		return err
	}
	rows := [][]string{{"SESSION", "MACHINE", "STATUS", "STATE", "ROUND", "UPDATED", "WHY"}}
	for _, s := range list {
		rows = append(rows, []string{s.SessionID, s.MachineName, s.Status.String(), s.CurrentState, fmt.Sprint(s.Round), s.UpdatedAt.String(), s.Code})
	}
	return table(out, rows)
}

func (a *app) showCommand() *cobra.Command {
	var proposals bool
	cmd := &cobra.Command{
		Use:   "show <session>",
		Short: "Show a session: where it stands, how it came there, what it waits for",
		Example: `  dialai show 0b9c1d3e-…
  dialai show 0b9c1d3e-… --json | jq .history`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				s, err := e.Session(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if a.flags.json {
					return printJSON(out, s.View())
				}
				return a.show(cmd.Context(), e, out, s)
			})
		},
	}
	cmd.Flags().BoolVar(&proposals, "show-proposals", false, "show proposals even where they are withheld until the ruling")
	return cmd
}

func (a *app) show(ctx context.Context, e *engine, out io.Writer, s *runner.Session) error {
	o, spent := s.Outcome(), s.Spent()
	fmt.Fprintf(out, "Session ID:    %s\n", s.ID)
	fmt.Fprintf(out, "Machine:       %s (%.12s)\n", clean(s.Machine().Name()), s.Machine().Digest())
	fmt.Fprintf(out, "Status:        %s\n", s.Status)
	fmt.Fprintf(out, "State:         %s (round %d, attempt %d)\n", clean(s.State.Name), s.Round, s.Attempt)
	fmt.Fprintf(out, "Started:       %s\n", s.CreatedAt)
	fmt.Fprintf(out, "Last event:    %d at %s\n", s.Sequence, s.UpdatedAt)
	if o.Reason != "" {
		fmt.Fprintf(out, "Why:           %s (%s)\n", clean(o.Reason), clean(o.Code))
	}
	if spent.Calls > 0 {
		fmt.Fprintf(out, "Spent:         $%s in %d calls, %d tokens read, %d written\n", spent.Money, spent.Calls, spent.TokensIn, spent.TokensOut)
	}
	if s.Options().Meta != nil {
		fmt.Fprintf(out, "metaJson:      %s\n", clean(string(s.Options().Meta)))
	}
	a.printHistory(out, s)
	a.printProposals(out, s)
	for _, ask := range s.OpenAsks() {
		fmt.Fprintf(out, "\nWaiting for %s", clean(ask.SpecialistID))
		if ask.Remote != nil {
			fmt.Fprintf(out, " until %s", ask.Remote.Deadline)
		}
		fmt.Fprintln(out)
	}
	if s.Status == runner.NeedsHuman {
		item, err := e.Question(ctx, s)
		if err != nil {
			return err
		}
		a.printChoices(out, item)
	}
	return nil
}

func (a *app) printHistory(out io.Writer, s *runner.Session) {
	history := s.History()
	if len(history) == 0 {
		return
	}
	fmt.Fprintln(out, "\nHistory:")
	rows := make([][]string, len(history))
	for i, t := range history {
		rows[i] = []string{"  " + fmt.Sprint(i+1), t.At.String(), t.Transition.From.Name + " → " + t.Transition.Target, t.Transition.Name, who(t), t.Reasoning}
	}
	table(out, rows)
}

func who(e *runner.Executed) string {
	if e.IsHuman {
		return e.SpecialistID + " (human)"
	}
	return e.SpecialistID
}

func (a *app) printProposals(out io.Writer, s *runner.Session) {
	if len(s.Proposals()) == 0 {
		return
	}
	fmt.Fprintln(out, "\nProposals of this round:")
	var rows [][]string
	for _, p := range s.Proposals() {
		rows = append(rows, []string{"  " + p.SpecialistID, p.Transition.Name + " → " + p.Transition.Target, p.Reasoning})
	}
	table(out, rows)
}

// printChoices prints what a human may decide, each as a command.
func (a *app) printChoices(out io.Writer, item runner.InboxItem) {
	fmt.Fprintln(out, "\nTo decide:")
	for _, t := range item.Transitions {
		fmt.Fprintf(out, "  %s\n", a.decideWords(item, t))
	}
}

func (a *app) inboxCommand() *cobra.Command {
	var proposals bool
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List the questions that wait for a human",
		Example: `  dialai inbox
  dialai inbox --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				items, err := e.Inbox(cmd.Context())
				if err != nil {
					return err
				}
				return a.printInbox(cmd.Context(), e, out, items)
			})
		},
	}
	cmd.Flags().BoolVar(&proposals, "show-proposals", false, "show proposals even where they are withheld until the ruling")
	return cmd
}

func (a *app) printInbox(ctx context.Context, e *engine, out io.Writer, items []runner.InboxItem) error {
	if a.flags.json {
		for _, item := range items {
			if err := printJSON(out, item); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 {
		_, err := fmt.Fprintln(out, "Nothing waits for a human.")
		return err
	}
	for i, item := range items {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s in state %s, since %s\n", clean(item.MachineName), item.SessionID, clean(item.State), item.Since)
		if item.Prompt != "" {
			fmt.Fprintf(out, "  %s\n", clean(item.Prompt))
		}
		fmt.Fprintf(out, "  Why: %s\n", clean(item.Reason))
		s, err := e.Session(ctx, item.SessionID)
		if err != nil {
			return err
		}
		a.printProposals(out, s)
		a.printChoices(out, item)
	}
	return nil
}

func (a *app) tickCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tick",
		Short: "Carry every live session one step further",
		Long: `Step all sessions that have not ended once, at most 16 at a time. A session that
fails spoils only its own line.`,
		Example: `  dialai tick
  watch -n 60 dialai tick --quiet`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				results, err := e.Tick(cmd.Context())
				if err != nil {
					return err
				}
				return a.printTicks(out, results)
			})
		},
	}
}

// tickLine is a TickResult as it is shown.
type tickLine struct {
	SessionID      string   `json:"sessionId"`
	MachineName    string   `json:"machineName"`
	Status         string   `json:"status"`
	CurrentState   string   `json:"currentState"`
	SpecialistID   string   `json:"specialistId,omitempty"` // if exactly one was asked
	SpecialistIDs  []string `json:"specialistIds,omitempty"`
	PreviousState  string   `json:"previousState,omitempty"`
	TransitionName string   `json:"transitionName,omitempty"`
	Reasoning      string   `json:"reasoning,omitempty"`
	Code           string   `json:"code,omitempty"`
	Error          string   `json:"error,omitempty"`
}

func lineOf(r runner.TickResult) tickLine {
	line := tickLine{SessionID: r.Summary.SessionID, MachineName: r.Summary.MachineName, CurrentState: r.Summary.CurrentState, Status: "failed"}
	if r.Err != nil {
		line.Error = r.Err.Error()
		return line
	}
	t := r.Tick
	line.Status, line.CurrentState, line.Reasoning, line.Code = string(t.Status), t.Session.State.Name, t.Reasoning(), t.Code
	if line.SpecialistIDs = t.Asked(); len(line.SpecialistIDs) == 1 {
		line.SpecialistID = line.SpecialistIDs[0]
	}
	if t.Transition != nil {
		line.PreviousState, line.TransitionName = t.Previous.Name, t.Transition.Name
	}
	return line
}

func (a *app) printTicks(out io.Writer, results []runner.TickResult) error {
	failed := 0
	rows := [][]string{{"SESSION", "MACHINE", "STEP", "STATE", "WHAT"}}
	for _, r := range results {
		line := lineOf(r)
		if r.Err != nil {
			failed++
		}
		if a.flags.json {
			if err := printJSON(out, line); err != nil {
				return err
			}
			continue
		}
		what := line.Reasoning
		if line.TransitionName != "" {
			what = line.TransitionName + ": " + what
		}
		if line.Error != "" {
			what = line.Error
		}
		rows = append(rows, []string{line.SessionID, line.MachineName, line.Status, line.CurrentState, what})
	}
	switch {
	case a.flags.json:
	case len(results) == 0:
		fmt.Fprintln(out, "No live sessions.")
	case a.flags.quiet:
		fmt.Fprintf(out, "%d sessions stepped, %d failed\n", len(results), failed)
	default:
		if err := table(out, rows); err != nil {
			return err
		}
	}
	if failed > 0 {
		return exit(exitFailure)
	}
	return nil
}

func (a *app) logCommand() *cobra.Command {
	var from int64
	cmd := &cobra.Command{
		Use:   "log <session>",
		Short: "Print the events of a session",
		Long: `Print every event of a session, the oldest first. With --json each line is one
event with the hash of its record; dialai store verify checks them.`,
		Example: `  dialai log 0b9c1d3e-…
  dialai log 0b9c1d3e-… --from 100 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				id, err := runner.ParseID(args[0])
				if err != nil {
					return err
				}
				return a.printLog(cmd.Context(), e, out, id, from)
			})
		},
	}
	cmd.Flags().Int64Var(&from, "from", 1, "the first event to print")
	return cmd
}

func (a *app) printLog(ctx context.Context, e *engine, out io.Writer, id specialist.SessionID, from int64) error {
	for rec, err := range e.store.Records(ctx, id, from) {
		if err != nil {
			return err
		}
		events, err := runner.DecodeRaw(rec.Events)
		if err != nil {
			return &runner.CorruptError{What: fmt.Sprintf("the record at event %d", rec.First), Problem: err.Error()}
		}
		for _, ev := range events {
			if ev.Seq < from {
				continue
			}
			if a.flags.json {
				err = printJSON(out, struct {
					V         int    `json:"v"`
					SessionID string `json:"sessionId"`
					runner.Raw
					Hash string `json:"hash"`
				}{1, id.String(), ev, rec.Hash.String()})
			} else {
				_, err = fmt.Fprintf(out, "%5d  %s  %-15s %s\n", ev.Seq, ev.At, ev.Kind, clean(string(ev.Data)))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) metricsCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "metrics <machine>",
		Short: "Show how far a machine can do without humans",
		Long: `Show decisions by humans and by consensus, the alignment of every specialist, and
signals, over all sessions of a machine name.`,
		Example: `  dialai metrics document-review
  dialai metrics document-review --state pending --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				m, err := e.Metrics(cmd.Context(), args[0], state)
				if err != nil {
					return err
				}
				return a.printMetrics(out, m)
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only decisions in this state")
	return cmd
}

func (a *app) printMetrics(out io.Writer, m *runner.Metrics) error {
	if a.flags.json {
		return printJSON(out, m)
	}
	fmt.Fprintf(out, "Machine:       %s\n", clean(m.MachineName))
	if m.State != "" {
		fmt.Fprintf(out, "State:         %s\n", clean(m.State))
	}
	fmt.Fprintf(out, "Decisions:     %d (%d by humans, %d by consensus)\n", m.TotalDecisions, m.HumanDecisions, m.AIDecisions)
	fmt.Fprintf(out, "Without human: %.0f %%, of the last 10 %.0f %%\n", 100*m.CollapseRatio, 100*m.RecentCollapseRatio)
	fmt.Fprintf(out, "Margin:        %.2f on average\n", m.AverageConsensusMargin)
	if len(m.Specialists) > 0 {
		fmt.Fprintln(out)
		rows := [][]string{{"SPECIALIST", "ALIGNMENT", "PROPOSALS", "DECIDED SO", "SHARE"}}
		for _, s := range m.Specialists {
			rows = append(rows, []string{s.SpecialistID, s.Alignment.Text2(), fmt.Sprint(s.TotalProposals), fmt.Sprint(s.WinningProposals), fmt.Sprintf("%.0f %%", 100*s.WinRate)})
		}
		if err := table(out, rows); err != nil {
			return err
		}
	}
	for _, s := range m.Signals {
		fmt.Fprintf(out, "\n%s %s: %s", s.Level, s.Code, s.Message)
	}
	if len(m.Signals) > 0 {
		fmt.Fprintln(out)
	}
	return nil
}

func (a *app) specialistsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "specialists <machine>",
		Short: "List or switch the specialists of a machine",
		Long: `List the specialists registered for a machine name, its champions, and who is
switched off. A specialist that is off is not asked, not heard and does not
decide, in any session of that machine; its alignment is kept.`,
		Example: `  dialai specialists triage
  dialai specialists disable triage ai-router
  dialai specialists enable triage ai-router`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e *engine, out *bufio.Writer) error {
				roster, err := e.store.Roster(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return a.printRoster(out, roster)
			})
		},
	}
	cmd.AddCommand(
		a.switchCommand("enable", "Switch a specialist on again", func(e *engine) func(context.Context, string, string) error { return e.Enable }),
		a.switchCommand("disable", "Switch a specialist off", func(e *engine) func(context.Context, string, string) error { return e.Disable }),
	)
	return cmd
}

func (a *app) switchCommand(name, short string, do func(*engine) func(context.Context, string, string) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " <machine> <specialist>", Short: short, Args: cobra.ExactArgs(2),
		Example: "  dialai specialists " + name + " triage ai-router",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(e *engine, _ *bufio.Writer) error { return do(e)(cmd.Context(), args[0], args[1]) })
		},
	}
}

func (a *app) printRoster(out io.Writer, r *runner.Roster) error {
	type entry struct {
		SpecialistID string       `json:"specialistId"`
		Role         machine.Role `json:"role,omitempty"`
		Registered   bool         `json:"registered"`
		Disabled     bool         `json:"disabled"`
		ChampionOf   []string     `json:"championOf,omitempty"` // states; "" is the machine
	}
	var list []*entry
	index := map[string]*entry{}
	get := func(id string) *entry {
		if index[id] == nil {
			index[id] = &entry{SpecialistID: id}
			list = append(list, index[id])
		}
		return index[id]
	}
	for i := range r.Specialists {
		e := get(r.Specialists[i].SpecialistID)
		e.Role, e.Registered = r.Specialists[i].Role, true
	}
	for _, id := range sortedKeys(r.Off) {
		get(id).Disabled = true
	}
	for _, state := range sortedKeys(r.Champions) {
		e := get(r.Champions[state].ID)
		e.ChampionOf = append(e.ChampionOf, state)
	}
	if a.flags.json {
		for _, e := range list {
			if err := printJSON(out, e); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "Nobody is registered, switched off or champion.")
		return err
	}
	rows := [][]string{{"SPECIALIST", "ROLE", "REGISTERED", "DISABLED", "CHAMPION OF"}}
	for _, e := range list {
		rows = append(rows, []string{e.SpecialistID, string(e.Role), fmt.Sprint(e.Registered), fmt.Sprint(e.Disabled), fmt.Sprint(e.ChampionOf)})
	}
	return table(out, rows)
}
