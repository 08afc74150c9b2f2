package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

func (a *app) trustCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Show and change how far specialists are trusted",
		Long: `Show what human decisions have taught about each specialist, look at decisions
that were drawn for a review, and make or end a champion by hand. Nothing but
decisions of humans teaches anything, and only humans can give orders.`,
		Example: `  dialai trust list triage
  dialai trust show triage ai-router
  dialai trust audit`,
	}
	cmd.AddCommand(a.trustListCommand(), a.trustShowCommand(), a.trustHistoryCommand(), a.trustPromoteCommand(),
		a.demoteCommand("Demote a state's champion",
			"Have everybody asked again in a state, at once. Without a champion the state goes\nback to humans until its cool-down is over. dialai collapse demote is the same.",
			"  dialai trust demote triage pending --as carol --reasoning \"wrong twice today\""),
		a.trustAuditCommand())
	return cmd
}

func (a *app) trustListCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "list <machine>",
		Short: "List what everybody's word counts for",
		Long: `List, for each state of the newest definition of a machine, how often everybody who
takes part agreed with humans, and the probability of agreeing that follows from it:
from the record in the state, filled up with that of other states and machines.`,
		Example: `  dialai trust list triage
  dialai trust list triage --state pending --json`,
		RunE: a.on(command.Reads, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			list, err := e.trusted(ctx, args[0], state)
			if err != nil {
				return err
			}
			return a.Trust(out, list)
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "only the state of this `name`")
	return cmd
}

func (a *app) trustShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show <machine> <specialist>",
		Short: "Show where one specialist's trust comes from",
		Long: `Show the record of one specialist in each state: what was pooled from which level,
and the evidence for deciding alone.`,
		Example: "  dialai trust show triage ai-router",
		RunE: a.on(command.Reads, func(ctx context.Context, e *engine, out *bufio.Writer, args []string) error {
			list, err := e.trusted(ctx, args[0], "")
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(t report.Trusted) bool { return t.SpecialistID != args[1] })
			if len(list) == 0 {
				return &session.NotFoundError{What: "Specialist", ID: args[1]}
			}
			return a.TrustOf(out, list)
		}),
	}
}

func (a *app) trustHistoryCommand() *cobra.Command {
	var q report.HistoryQuery
	cmd := &cobra.Command{
		Use:   "history <machine>",
		Short: "Show how trust came to be what it is",
		Long: `Show, for each state of the newest definition of a machine, what the word of everybody
who takes part counted for after each human decision on what they had proposed: the
newest 20, and with --json 500. Of more it has the first, the newest, and those of least
and most trust in equal parts of the decisions or, with --by dates, of the time. The
range beside each is an interval of 90 % for how often they agree (Wilson's). New
versions and stages are marked.`,
		Example: `  dialai trust history triage
  dialai trust history triage --state pending --specialist ai-router --by dates --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.By != "" && q.By != string(trust.ByDecisions) && q.By != string(trust.ByDates) {
				return command.Usage("--by %q: there are %s and %s", q.By, trust.ByDecisions, trust.ByDates)
			}
			return a.with(cmd.Context(), command.Reads, func(e *engine, out *bufio.Writer) error {
				for t, err := range e.trustHistory(cmd.Context(), args[0], q) {
					if err != nil {
						return err
					}
					if err := a.TrustHistory(out, &t); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&q.State, "state", "", "only the state of this `name`")
	cmd.Flags().StringVar(&q.SpecialistID, "specialist", "", "only the specialist of this `id`")
	cmd.Flags().StringVar(&q.By, "by", "", "thin by `what`: decisions or dates (default: decisions)")
	return cmd
}

// orderFlags are those of an order.
type orderFlags struct{ as, reason string }

func (f *orderFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.as, "as", "", "the `human` who gives the order (default: the state's only human)")
	cmd.Flags().StringVar(&f.reason, "reasoning", "", "the `reason`, for the record")
}

// order runs an order of a human.
func (a *app) order(cmd *cobra.Command, machineName, state string, f *orderFlags, do func(e *engine, o runner.Order) error, done string, args ...any) error {
	return a.with(cmd.Context(), command.Writes, func(e *engine, out *bufio.Writer) error {
		by, err := a.orderBy(cmd.Context(), e, machineName, state, f.as)
		if err != nil {
			return err
		}
		if err := do(e, runner.Order{MachineName: machineName, State: machine.StateName(state), SpecialistID: machine.SpecialistID(by), Reason: f.reason, Actor: command.LocalActor()}); err != nil {
			return err
		}
		if a.Flags.JSON {
			list, err := e.collapses(cmd.Context(), machineName, state)
			if err != nil {
				return err
			}
			return render.Lines(out, list)
		}
		if !a.Flags.Quiet {
			fmt.Fprintf(out, done+"\n", args...)
		}
		return nil
	})
}

// orderBy returns who gives an order in a state.
func (a *app) orderBy(ctx context.Context, e *engine, machineName, state, as string) (string, error) {
	if as != "" {
		return as, nil
	}
	humans, declared, err := e.HumansIn(ctx, machineName, machine.StateName(state))
	if err == nil && len(humans) == 0 && !declared {
		return runner.Operator, nil
	}
	return onlyHuman(humans, err, fmt.Sprintf("give orders in state %q", state))
}

func (a *app) trustPromoteCommand() *cobra.Command {
	f := &orderFlags{}
	cmd := &cobra.Command{
		Use:   "promote <machine> <state> <specialist>",
		Short: "Make a specialist champion of a state",
		Long: `Have a specialist decide a state alone, with audits, because you say so: its
certificate carries your name, whatever the evidence is. The state must declare a
collapse, and its promise must be established. The engine demotes it when the
evidence calls for it.`,
		Example: "  dialai trust promote triage pending ai-router --as carol",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd, args[0], args[1], f, func(e *engine, o runner.Order) error {
				_, err := e.Promote(cmd.Context(), o, machine.SpecialistID(args[2]))
				return err
			}, "%s is champion of state %s.", render.Clean(args[2]), render.Clean(args[1]))
		},
	}
	f.add(cmd)
	return cmd
}

// demoteCommand sends a state back, as trust and collapse both offer.
func (a *app) demoteCommand(short, long, example string) *cobra.Command {
	f := &orderFlags{}
	cmd := &cobra.Command{
		Use: "demote <machine> <state>", Short: short, Long: long, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.order(cmd, args[0], args[1], f, func(e *engine, o runner.Order) error { return e.Demote(cmd.Context(), o) }, "State %s was sent back.", render.Clean(args[1]))
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) trustAuditCommand() *cobra.Command {
	f := &orderFlags{}
	var machineName, note string
	var seen bool
	cmd := &cobra.Command{
		Use:   "audit [<session>] [<round>] [<transition>]",
		Short: "List the closed rounds that wait for a human, or answer one",
		Long: `Without arguments, list the closed rounds that were drawn for a review: audits of
what the engine decided, and second looks at what a human decided. Each is shown as its
question stood then: what it is about, how it came there, and the choices. Neither the
proposals nor the decision are shown, so that your answer is your own; dialai explain
shows them with --show-proposals, which is recorded.

With a session, a round (its number or id) and a transition, say what should have
been decided. Nothing is executed: the answer teaches how far everybody can be
trusted. A round that was not drawn can be answered too. Where two humans disagree and
no third is left, everything is shown, and either of them may take the other's choice.`,
		Example: `  dialai trust audit
  dialai trust audit 0b9c1d3e 4 approve --as carol`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return command.Hinted(command.Usage("%s: a session, a round and a transition belong together", cmd.CommandPath()), "without any of them it lists what waits")
			}
			return command.Arguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.with(cmd.Context(), command.Reads, func(e *engine, out *bufio.Writer) error {
					return a.reviews(cmd.Context(), e, out, machineName, machine.SpecialistID(f.as))
				})
			}
			return a.audit(cmd, args, f, seen, note)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&machineName, "machine", "", "list only those of the machine of this `name`")
	cmd.Flags().StringVar(&note, "note", "", "a `note` for the record, of which nobody learns")
	cmd.Flags().BoolVar(&seen, "seen", false, "you have seen what was proposed or decided: the answer is not blind")
	return cmd
}

// reviews prints the closed rounds that wait for a review, page by page.
func (a *app) reviews(ctx context.Context, e *engine, out *bufio.Writer, machineName string, viewer machine.SpecialistID) error {
	var unread []error
	for q := (session.ListQuery{MachineName: machineName, Limit: newestShown}); ; {
		items, next, err := e.Reviews(ctx, q, viewer)
		if unread = append(unread, err); err == nil && q.After == "" || len(items) > 0 {
			if q.After != "" && !a.Flags.JSON && !a.Flags.Quiet {
				fmt.Fprintln(out)
			}
			if err := a.Reviews(out, items); err != nil {
				return err
			}
		}
		if q.After = next; next == "" {
			return errors.Join(unread...)
		}
	}
}

func (a *app) audit(cmd *cobra.Command, args []string, f *orderFlags, seen bool, note string) error {
	return a.with(cmd.Context(), command.Writes, func(e *engine, out *bufio.Writer) error {
		s, err := e.session(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		round, state, err := e.closedRound(s, args[1])
		if err != nil {
			return err
		}
		by, err := a.orderBy(cmd.Context(), e, s.Machine().Name(), state, f.as)
		if err != nil {
			return err
		}
		v, err := e.review(cmd.Context(), runner.Reviewing{SessionID: s.ID, RoundID: round, SpecialistID: machine.SpecialistID(by), TransitionName: args[2], Reasoning: f.reason, Blind: !seen, Actor: command.LocalActor(), Manner: session.Manner{Note: note}})
		if err != nil {
			return err
		}
		return a.Reviewed(out, s.ID, round, v)
	})
}

// closedRound finds a closed round by its number or id, and the state it was in.
func (e *engine) closedRound(s *session.Session, text string) (id, state string, err error) {
	number, _ := strconv.Atoi(text)
	if e.far != nil {
		if id, state = e.far.ClosedRound(s.ID, text, number); id != "" {
			return id, state, nil
		}
	}
	for _, e := range s.History() {
		if key := e.Key(s.ID); key.ID() == text || number > 0 && int(e.Round) == number {
			return key.ID(), e.Transition.From.Name, nil
		}
	}
	return "", "", command.Hinted(&session.NotFoundError{What: "Closed round", ID: text}, "give its number or id; dialai show %s lists the rounds that are closed", s.ID)
}
