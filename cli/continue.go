package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// Commands that go on with a session: resume, decide, propose.

func (a *app) resumeCommand() *cobra.Command {
	f := &runFlags{}
	var o runner.ResumeOptions
	cmd := &cobra.Command{
		Use:   "resume <session>",
		Short: "Go on with a session",
		Long: `Run a session on from where it stands: after a crash, a limit, a stop by a guard,
or when answers may have arrived. What was recorded is not asked for again, and
what was spent stays spent.`,
		Example: `  dialai resume 0b9c1d3e-…
  dialai resume 0b9c1d3e-… --retry-failed
  dialai resume 0b9c1d3e-… --note "limit raised by finance"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.resume(cmd.Context(), args[0], o, f) },
	}
	f.add(cmd.Flags(), false)
	cmd.Flags().BoolVar(&o.RetryFailed, "retry-failed", false, "ask those again whose asks failed in this round")
	cmd.Flags().StringVar(&o.Actor, "as", "", "who resumes, for the record (default: the user of this computer)")
	cmd.Flags().StringVar(&o.Note, "note", "", "why, for the record")
	return cmd
}

func (a *app) resume(ctx context.Context, id string, o runner.ResumeOptions, f *runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if o.Actor == "" {
		o.Actor = osUser()
	}
	p := a.newPrinter()
	defer p.status.stop()
	e, err := a.engine(ctx, p.observe)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.Session(ctx, id)
	if err != nil {
		return err
	}
	p.header(s)
	if s, err = e.Resume(ctx, s.ID, o); err != nil {
		return err
	}
	return a.carryOn(ctx, e, p, s.ID, f)
}

// osUser returns who runs this program, "" if nobody can tell.
func osUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// decideFlags are those of a ruling or a proposal.
type decideFlags struct {
	as        string
	round     string
	reasoning string
	data      string
	noRun     bool
	show      bool
}

func (f *decideFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.as, "as", "", "who "+what+" (default: the machine's only human)")
	cmd.Flags().StringVar(&f.round, "round", "", "only if this round is still the current one")
	cmd.Flags().StringVar(&f.reasoning, "reasoning", "", "why")
	cmd.Flags().StringVar(&f.data, "data", "", "metaJson that goes with it, as JSON")
}

func (a *app) decideCommand() *cobra.Command {
	f, run := &decideFlags{}, &runFlags{}
	cmd := &cobra.Command{
		Use:   "decide <session> <transition>",
		Short: "Decide a round as a human, and go on",
		Long: `Force a transition in the current round. The decision is final: it is compared
with what every AI proposed and becomes an example for the next time. Then the
session runs on, unless --no-run.`,
		Example: `  dialai decide 0b9c1d3e-… approve
  dialai decide 0b9c1d3e-… reject --as carol --reasoning "no receipt"
  dialai decide 0b9c1d3e-… pay --data '{"amount":120}' --no-run`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args[0], args[1], f, run)
		},
	}
	f.add(cmd, "decides")
	cmd.Flags().BoolVar(&f.noRun, "no-run", false, "only decide, do not run on")
	cmd.Flags().BoolVar(&f.show, "show-proposals", false, "show the round's proposals before deciding")
	run.add(cmd.Flags(), false)
	return cmd
}

func (a *app) decide(ctx context.Context, id, transition string, f *decideFlags, run *runFlags) error {
	if err := run.check(); err != nil {
		return err
	}
	p := a.newPrinter()
	defer p.status.stop()
	e, err := a.engine(ctx, p.observe)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.Session(ctx, id)
	if err != nil {
		return err
	}
	actor, err := a.actor(ctx, e, s, f.as)
	if err != nil {
		return err
	}
	p.header(s)
	if f.show && !a.flags.json {
		a.printProposals(p.out, s)
	}
	ruling := runner.Ruling{SessionID: s.ID, SpecialistID: actor, RoundID: f.round, TransitionName: transition, Reasoning: f.reasoning}
	if f.data != "" {
		ruling.MetaJSON = json.RawMessage(f.data)
	}
	if actor == runner.Operator {
		ruling.Reasoning = strings.TrimSpace(fmt.Sprintf("%s (decided by %s)", f.reasoning, osUser()))
	}
	result, err := e.Decide(ctx, ruling)
	switch {
	case err != nil:
		return err
	case !result.Executed:
		p.close()
		p.out.Flush()
		return a.refused(result)
	case f.noRun:
		p.out.Flush()
		return nil
	}
	return a.carryOn(ctx, e, p, s.ID, run)
}

// refused turns a ruling that was not executed into an error.
func (a *app) refused(r runner.Arbitration) error {
	code := exitFailure
	if r.TransitionName != "" && !r.Stale { // legal, but a guard stopped it
		code = exitStopped
	}
	err := fmt.Errorf("not decided: %s", r.GuardReason)
	if r.Stale {
		err = fmt.Errorf("not decided: %s\n    hint: %s shows the present round", r.GuardReason, a.command("show", []string{r.SessionID}))
	}
	return &exitError{code, err}
}

// actor returns who acts: whoever --as names, else the machine's only human, else
// the operator of this computer.
func (a *app) actor(ctx context.Context, e *engine, s *runner.Session, as string) (string, error) {
	if as != "" {
		return as, nil
	}
	humans, declared, err := e.Humans(ctx, s)
	switch {
	case err != nil:
		return "", err
	case len(humans) == 1:
		return humans[0], nil
	case len(humans) > 1:
		return "", usage("several humans may decide; say who you are with --as: %s", strings.Join(humans, ", "))
	case declared:
		return "", usage("no human takes part in state %q; --as names one that does elsewhere", s.State.Name)
	}
	return runner.Operator, nil
}

func (a *app) proposeCommand() *cobra.Command {
	f := &decideFlags{}
	var cost string
	var in, out int64
	cmd := &cobra.Command{
		Use:   "propose <session> [<transition>]",
		Short: "Hand in a proposal for the current round",
		Long: `Add a proposal to the current round of a session. A specialist has one proposal
in a round; a later one replaces it. Without a transition the specialist is asked
now, and what it answers is proposed. The round is decided by the next step
(dialai resume, or dialai tick).`,
		Example: `  dialai propose 0b9c1d3e-… approve --as carol
  dialai propose 0b9c1d3e-… --as ai-reviewer`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := runner.Submission{RoundID: f.round, Reasoning: f.reasoning}
			if len(args) == 2 {
				s.TransitionName = args[1]
			}
			if f.data != "" {
				s.MetaJSON = json.RawMessage(f.data)
			}
			var err error
			if s.Usage, err = usageFlags(cmd, cost, in, out); err != nil {
				return err
			}
			return a.propose(cmd.Context(), args[0], f.as, s)
		},
	}
	f.add(cmd, "proposes")
	cmd.Flags().StringVar(&cost, "cost-usd", "", "what the proposal cost, in US dollars")
	cmd.Flags().Int64Var(&in, "input-tokens", 0, "tokens read for it")
	cmd.Flags().Int64Var(&out, "output-tokens", 0, "tokens written for it")
	return cmd
}

func usageFlags(cmd *cobra.Command, cost string, in, out int64) (u specialist.Usage, err error) {
	if cost != "" {
		m, err := exact.ParseMoney(cost)
		if err != nil || m < 0 {
			return u, usage("--cost-usd is %q, not an amount of dollars from 0", cost)
		}
		u = u.WithCost(m)
	}
	if cmd.Flags().Changed("input-tokens") {
		u.NumInputTokens, u.Given = in, u.Given|specialist.InputGiven
	}
	if cmd.Flags().Changed("output-tokens") {
		u.NumOutputTokens, u.Given = out, u.Given|specialist.OutputGiven
	}
	if u.NumInputTokens < 0 || u.NumOutputTokens < 0 {
		return u, usage("numbers of tokens cannot be negative")
	}
	return u, nil
}

func (a *app) propose(ctx context.Context, id, as string, in runner.Submission) error {
	p := a.newPrinter()
	defer p.status.stop()
	e, err := a.engine(ctx, p.observe)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.Session(ctx, id)
	if err != nil {
		return err
	}
	if in.SpecialistID, err = a.actor(ctx, e, s, as); err != nil {
		return err
	}
	if in.SpecialistID == runner.Operator {
		return usage("this machine declares no human; name the specialist that proposes with --as")
	}
	in.SessionID = s.ID
	p.header(s)
	_, after, err := e.Propose(ctx, in)
	p.status.stop()
	p.close()
	p.out.Flush()
	if err != nil {
		return err
	}
	if a.flags.json {
		return p.endJSON(runner.Result{Status: after.Status.String(), Session: after}, exitOK)
	}
	if !a.flags.quiet {
		_, err = fmt.Fprintf(a.out, "Proposed. The round is decided by:\n  %s\n", a.command("resume", []string{s.ID.String()}))
	}
	return errors.Join(err)
}
