package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// costFlags say what a proposal has cost.
type costFlags struct {
	usd     string
	in, out int64
}

func (a *app) proposeCommand() *cobra.Command {
	f, cost, tapes := &decideFlags{}, &costFlags{}, &tapeFlags{}
	cmd := &cobra.Command{
		Use:   "propose <session> [<transition>]",
		Short: "Hand in a proposal for the current round",
		Long: `Add a proposal to the current round of a session. A specialist has one proposal
in a round; a later one replaces it. Without a transition the specialist is asked
now, and what it answers is proposed. The round is decided by the next step
(dialai resume, or dialai tick). What cannot be undone is proposed with --question or
--round. Where the parameters of the transition ask for a
payload, --data gives it.`,
		Example: `  dialai propose 0b9c1d3e approve --as carol
  dialai propose 0b9c1d3e pay --as ai-reviewer --data amount=120
  dialai propose 0b9c1d3e --as ai-reviewer`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s := runner.Submission{RoundID: f.round, QuestionDigest: f.question, Reasoning: f.reasoning}
			if len(args) == 2 {
				s.TransitionName = args[1]
			}
			err := f.checkDigest(cmd)
			if err != nil {
				return err
			}
			if s.Usage, err = cost.usage(cmd); err != nil {
				return err
			}
			return a.taped(tapes, func() error { return a.propose(cmd.Context(), args[0], f, s) })
		},
	}
	f.add(cmd, "proposes")
	tapes.add(cmd)
	cmd.Flags().StringVar(&cost.usd, "cost-usd", "", "what the proposal cost, in `dollars`")
	cmd.Flags().Int64Var(&cost.in, "input-tokens", 0, "`number` of tokens read for it")
	cmd.Flags().Int64Var(&cost.out, "output-tokens", 0, "`number` of tokens written for it")
	return cmd
}

func (f *costFlags) usage(cmd *cobra.Command) (u specialist.Usage, err error) {
	if f.usd != "" {
		m, err := exact.ParseMoney(f.usd)
		if err != nil || m < 0 {
			return u, command.Usage("--cost-usd is %q, not an amount of dollars from 0 to 9 million", f.usd)
		}
		u = u.WithCost(m)
	}
	if cmd.Flags().Changed("input-tokens") {
		u.NumInputTokens, u.Given = f.in, u.Given|specialist.InputGiven
	}
	if cmd.Flags().Changed("output-tokens") {
		u.NumOutputTokens, u.Given = f.out, u.Given|specialist.OutputGiven
	}
	if u.NumInputTokens < 0 || u.NumOutputTokens < 0 {
		return u, command.Usage("numbers of tokens cannot be negative")
	}
	return u, nil
}

func (a *app) propose(ctx context.Context, id string, f *decideFlags, in runner.Submission) error {
	p := a.newPrinter()
	defer p.status.Stop()
	e, err := a.engine(ctx, command.Writes, p)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := a.liveSession(ctx, e, id)
	if err == nil && s.Status == session.Stopped {
		err = command.Hinted(notRunning(s, s.Status.String()), "%s takes it up again", a.Command("resume", []string{s.ID.String()}))
	}
	if err != nil {
		return err
	}
	who, err := a.actor(ctx, e, s, f.as)
	if err != nil {
		return err
	}
	in.SpecialistID = machine.SpecialistID(who)
	if in.SpecialistID == runner.Operator {
		return command.Usage("this machine declares no human; name the specialist that proposes with --as")
	}
	if err := a.loadTape(s); err != nil {
		return err
	}
	q, err := e.Question(ctx, s, in.SpecialistID)
	if err != nil {
		return err
	}
	if err := a.statesQuestion("propose", s, q, in.TransitionName, f); err != nil {
		return err
	}
	if in.MetaJSON, err = a.payload(f.data, s.State.Transition(in.TransitionName)); err != nil {
		return err
	}
	if in.TransitionName != "" { // who is asked is shown the round as it is then
		in.QuestionDigest = cmp.Or(in.QuestionDigest, digestOf(q, in.RoundID))
	}
	in.Actor = command.LocalActor()
	in.SessionID, in.RoundID = s.ID, cmp.Or(in.RoundID, q.RoundID)
	p.Follow(s)
	_, after, err := e.Propose(ctx, in)
	if errors.Is(err, specialist.ErrAccepted) {
		return a.promised(p, after)
	}
	p.status.Stop()
	p.close()
	if err != nil {
		return a.notProposed(p, after, refusedChoice{q, in.TransitionName, f.words(q), in.MetaJSON}, err)
	}
	if a.Flags.JSON {
		r, err := resultOf(ctx, e, after)
		return errors.Join(err, p.endJSON(r, command.ExitOK))
	}
	if !a.Flags.Quiet {
		fmt.Fprintf(p.out, "Proposed. To have the round decided:\n  %s\n", a.Command("resume", []string{s.ID.String()}))
	}
	return p.out.Flush()
}

// notProposed ends the command with a proposal that was refused.
func (a *app) notProposed(p *printer, s *session.Session, c refusedChoice, refused error) error {
	stale, ok := errors.AsType[*runner.StaleError](refused)
	if !ok {
		if errors.Is(refused, runner.ErrIllegal) {
			if hint := a.payloadHint("propose", s.State.Transition(c.transition), c); hint != "" {
				refused = command.Hinted(refused, "%s", hint)
			}
		}
		return errors.Join(refused, p.out.Flush())
	}
	if err := p.tellNewQuestion(stale); err != nil {
		return err
	}
	if a.Flags.JSON {
		r := runner.Result{Status: s.Status.String(), Session: s}
		r.Code, r.Reason = stale.Refusal.Code, stale.Refusal.Message
		if err := p.endJSON(r, command.ExitFailure); err != nil {
			return err
		}
	}
	return errors.Join(command.Hinted(refused, "nothing was proposed; %s shows the question as it is now", a.Command("show", []string{s.ID.String()})), p.out.Flush())
}

// promised says that whoever was asked to propose will answer later.
func (a *app) promised(p *printer, s *session.Session) error {
	code, err := p.end(runner.Result{Status: runner.WaitingStatus, Session: s}, nil)
	if err != nil {
		return err
	}
	return command.Exit(code)
}
