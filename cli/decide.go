package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// decideFlags are those of a ruling or a proposal.
type decideFlags struct {
	as        string
	round     string
	question  string
	reasoning string
	data      string
	noRun     bool
	show      bool
	withdraw  bool
}

func (f *decideFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.as, "as", "", "`who` "+what+" (default: the machine's only human)")
	cmd.Flags().StringVar(&f.round, "round", "", "only if this `id` is still that of the current round")
	cmd.Flags().StringVar(&f.question, "question", "", "only if this `digest` is still that of the question; its first 12 hex digits are enough, and state the round too")
	cmd.Flags().StringVar(&f.reasoning, "reasoning", "", "`why`")
	cmd.Flags().StringVar(&f.data, "data", "", "metaJson that goes with it, as `JSON`")
}

func (a *app) decideCommand() *cobra.Command {
	f, run := &decideFlags{}, &runFlags{}
	cmd := &cobra.Command{
		Use:   "decide <session> [<transition>]",
		Short: "Decide a round as a human, and go on",
		Long: `Force a transition in the current round. The decision is final: it is compared
with what every AI proposed and becomes an example for the next time. Then the
session runs on, unless --no-run.

The ruling is on the round, and on the question, that stand when the command begins,
or on those that --round and --question name. If somebody else was faster it is refused,
and the new question shown. A transition that is irreversible needs one of the two.

Where a second human decides before anything is executed, the ruling is recorded, and
another human is asked without seeing it: exit code 3. Until that one has ruled, who
ruled may rule again or, with --withdraw, take it back.

dialai inbox lists what is to be decided, each choice as a command to copy.`,
		Example: `  dialai decide 0b9c1d3e-… approve
  dialai decide 0b9c1d3e-… pay --question 5d0e6c1a8f0b
  dialai decide 0b9c1d3e-… reject --as carol --reasoning "no receipt"
  dialai decide 0b9c1d3e-… pay --data '{"amount":120}' --no-run`,
		Args:              arguments,
		ValidArgsFunction: a.completeDecision,
		RunE: func(cmd *cobra.Command, args []string) error {
			const either = "give the transition, or --withdraw to take the own ruling back: not both"
			switch {
			case len(args) < 2 && !f.withdraw:
				return hinted(usage("dialai decide: <transition> is missing"), either)
			case len(args) > 1 && f.withdraw:
				return hinted(usage("dialai decide: %q beside --withdraw", args[1]), either)
			}
			if err := f.checkDigest(cmd); err != nil {
				return err
			}
			return a.taped(&run.tapeFlags, func() error { return a.decide(cmd.Context(), args[0], append(args, "")[1], f, run) })
		},
	}
	f.add(cmd, "decides")
	cmd.Flags().BoolVar(&f.noRun, "no-run", false, "only decide, do not run on")
	cmd.Flags().BoolVar(&f.show, "show-proposals", false, "show the proposals even if they are withheld; that is recorded, and the ruling is not blind")
	cmd.Flags().BoolVar(&f.withdraw, "withdraw", false, "take the own ruling back that waits for another human's")
	run.add(cmd, false)
	return cmd
}

func (a *app) decide(ctx context.Context, id, transition string, f *decideFlags, run *runFlags) error {
	if err := run.check(); err != nil {
		return err
	}
	data, err := parseData(f.data)
	if err != nil {
		return err
	}
	if transition == "" && !f.withdraw { // the arbiter would decide
		return usage("dialai decide: <transition> is empty")
	}
	p := a.newPrinter()
	defer p.status.stop()
	e, err := a.engine(ctx, writes, p.observe)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := a.liveSession(ctx, e, id)
	if err != nil {
		return err
	}
	actor, err := a.actor(ctx, e, s, f.as)
	if err != nil {
		return err
	}
	if err := a.wind(s); err != nil {
		return err
	}
	p.follow(s)
	q, err := a.asked(ctx, e, s, actor, f.show)
	if err != nil {
		return err
	}
	if err := p.tellQuestion(q); err != nil {
		return err
	}
	if err := a.statesQuestion(s, q, transition, f); err != nil {
		return errors.Join(err, p.out.Flush())
	}
	result, err := e.Decide(ctx, runner.Ruling{
		SessionID: s.ID, SpecialistID: actor, RoundID: cmp.Or(f.round, q.RoundID), QuestionDigest: cmp.Or(f.question, digestOf(q, f.round)),
		TransitionName: transition, Reasoning: signed(actor, f.reasoning), MetaJSON: data, Blind: q.Withheld != nil, Withdraw: f.withdraw,
		Reopen: osUser(), // only a human can let a session go on that a guard has stopped
	})
	switch {
	case err != nil && result.Session == nil || errors.Is(err, runner.ErrNotRunning):
		return err
	case result.Recorded:
		return a.decided(ctx, e, p, result.Session)
	case !result.Executed:
		return a.refused(ctx, e, p, transition, result, err)
	case f.noRun:
		return a.decided(ctx, e, p, result.Session)
	}
	return a.carryOn(ctx, e, p, s.ID, run)
}

// asked returns the question of a session as somebody sees it who is about to answer;
// show has them look at what is withheld.
func (a *app) asked(ctx context.Context, e *engine, s *runner.Session, actor string, show bool) (runner.Question, error) {
	if show {
		q, _, err := e.Reveal(ctx, s.ID, actor)
		return q, err
	}
	return e.Question(ctx, s, actor)
}

// digestOf returns the digest of a question for a ruling on a round; "" if that is
// another one, which is refused for that.
func digestOf(q runner.Question, round string) string {
	if round != "" && round != q.RoundID {
		return ""
	}
	return q.Digest
}

// checkDigest checks what --question is given.
func (f *decideFlags) checkDigest(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("question") || len(f.question) >= runner.DigestPrefix && strings.Trim(strings.ToLower(f.question), "0123456789abcdef") == "" {
		return nil
	}
	return hinted(usage("--question is %q, not the first %d hex digits of a digest or more", f.question, runner.DigestPrefix), "dialai show and dialai inbox print it in each command that decides")
}

// statesQuestion returns an error if a transition that cannot be undone is chosen
// without saying on which question.
func (a *app) statesQuestion(s *runner.Session, q runner.Question, transition string, f *decideFlags) error {
	t := s.State.Transition(transition)
	if t == nil || !t.Irreversible || f.round != "" || f.question != "" {
		return nil
	}
	words := []string{"--question", shortDigest(q)}
	for _, w := range []struct{ flag, value string }{{"--as", f.as}, {"--reasoning", f.reasoning}, {"--data", f.data}} {
		if w.value != "" {
			words = append(words, w.flag, w.value)
		}
	}
	return hinted(usage("dialai decide: %s is irreversible: say which question you answer, with --question or --round", transition),
		"to answer the one that stands now: %s", a.command("decide", []string{q.SessionID, transition}, words...))
}

// shortDigest returns as much of a question's digest as is enough to state it.
func shortDigest(q runner.Question) string { return q.Digest[:runner.DigestPrefix] }

// signed adds to the reasoning of an operator who that was.
func signed(actor, reasoning string) string {
	if actor != runner.Operator {
		return reasoning
	}
	return strings.TrimSpace(fmt.Sprintf("%s (decided by %s)", reasoning, osUser()))
}

// liveSession returns a session that can still be decided, be it stopped.
func (a *app) liveSession(ctx context.Context, e *engine, id string) (*runner.Session, error) {
	s, err := e.Session(ctx, id)
	if err != nil || s.Status.Live() || s.Status == runner.Stopped {
		return s, err
	}
	//lint:ignore ST1005 these are the words of the specification
	err = fmt.Errorf("Session is not running: %s (%s)", s.ID, s.Status)
	if s.Status == runner.Completed {
		return nil, hinted(err, "it has ended in %s and stays so; start a new one", s.State.Name)
	}
	return nil, hinted(err, "%s takes it up again", a.command("resume", []string{s.ID.String()}))
}

// decided ends a ruling that is not run on from.
func (a *app) decided(ctx context.Context, e *engine, p *printer, s *runner.Session) error {
	r := resultOf(s)
	switch {
	case s.Status != runner.Running:
		return a.finish(ctx, e, p, r)
	case a.flags.json:
		return p.endJSON(r, exitOK)
	case !a.flags.quiet:
		fmt.Fprintf(p.out, "Decided. To run on:\n  %s\n", a.command("resume", []string{s.ID.String()}))
	}
	return p.out.Flush()
}

// refused ends the command with a ruling that was not executed. why is nil where
// DIAL's result says all.
func (a *app) refused(ctx context.Context, e *engine, p *printer, transition string, r runner.Arbitration, why error) error {
	code := exitFailure
	if r.TransitionName != "" && why == nil { // legal, but a guard stopped it
		code = exitStopped
	}
	p.status.stop()
	p.close()
	if stale, ok := errors.AsType[*runner.StaleError](why); ok {
		if err := p.tellNewQuestion(stale); err != nil {
			return err
		}
	}
	if a.flags.json {
		result := resultOf(r.Session)
		result.Code, result.Reason = refusal(r, code, why)
		if err := p.endJSON(result, code); err != nil {
			return err
		}
	}
	err := errors.Join(fmt.Errorf("not decided: %s", r.GuardReason), p.out.Flush())
	hint := a.refusalHint(ctx, e, r, code, why)
	if hint == "" {
		hint = choiceHint(r.Session.State, transition)
	}
	return &exitError{code, hinted(err, "%s", hint)}
}

// tellNewQuestion prints what has changed since the question was shown, and what it
// is now.
func (p *printer) tellNewQuestion(stale *runner.StaleError) error {
	q, told := stale.Question, p.asked == stale.Question.Digest
	switch {
	case p.a.flags.json && told:
		return nil
	case p.a.flags.json, p.a.flags.quiet:
		return p.tellQuestion(q)
	}
	p.header()
	for _, line := range stale.Changed {
		fmt.Fprintf(p.out, "Since then: %s\n", clean(line))
	}
	fmt.Fprintf(p.out, "The question now is about round %s, in state %s:\n", q.RoundID, clean(q.State))
	if !told {
		if err := p.a.printQuestion(p.out, q); err != nil {
			return err
		}
	}
	p.a.printChoices(p.out, q)
	return nil
}

// refusal returns why a ruling was not executed: its code and its text.
func refusal(r runner.Arbitration, exit int, why error) (code, reason string) {
	if refused, ok := errors.AsType[*runner.Error](why); ok && (r.Stale || refused.Code == runner.CodeRoundRequired) {
		return refused.Code, r.GuardReason
	}
	if exit == exitStopped {
		if code, reason, ok := strings.Cut(r.GuardReason, ": "); ok {
			return code, reason
		}
	}
	return "refused", r.GuardReason
}

// refusalHint says what could be done instead.
func (a *app) refusalHint(ctx context.Context, e *engine, r runner.Arbitration, code int, why error) string {
	id := []string{r.SessionID}
	switch {
	case r.Stale:
		return fmt.Sprintf("nothing was decided; %s shows the question as it is now", a.command("show", id))
	case code == exitStopped:
		code, _ := refusal(r, exitStopped, why)
		return a.stopHint(code, r.Session)
	case !r.IsHuman:
		humans, err := a.actors(ctx, e, r.Session)
		if err != nil {
			return err.Error()
		}
		return "say who you are with --as: " + strings.Join(humans, ", ")
	}
	return ""
}

// choiceHint helps whoever named a transition that is none, or gave data that
// does not fit it.
func choiceHint(s *machine.State, name string) string {
	if t := s.Transition(name); t != nil {
		if t.Parameters == nil {
			return ""
		}
		return "its parameters are " + t.Parameters.String()
	}
	var names []string
	for _, t := range s.Transitions {
		names = append(names, t.Name)
	}
	if near := machine.DidYouMean(name, names); near != "" {
		return near
	}
	return fmt.Sprintf("from state %s there are: %s", s.Name, strings.Join(names, ", "))
}

// actors returns who may decide the present round. The error says that nobody
// can, and what to do about that.
func (a *app) actors(ctx context.Context, e *engine, s *runner.Session) ([]string, error) {
	humans, declared, err := e.Humans(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case len(humans) > 0:
		return humans, nil
	case !declared:
		return []string{runner.Operator}, nil
	}
	return nil, usage("nobody may decide in state %q: its humans are switched off; %s switches one on", s.State.Name, a.command("specialists enable", []string{s.Machine().Name(), a.humanOf(s)}))
}

// humanOf returns a human who is declared for the session's state.
func (a *app) humanOf(s *runner.Session) string {
	for _, list := range [][]machine.Specialist{s.State.Roster, s.Machine().Specialists()} {
		for i := range list {
			if list[i].IsHuman {
				return list[i].SpecialistID
			}
		}
	}
	return "ID"
}

// question returns what a human is asked about a session; without choices where
// nobody may decide.
func (a *app) question(ctx context.Context, e *engine, s *runner.Session) (runner.Question, error) {
	item, err := e.Question(ctx, s, "")
	if err == nil {
		if _, nobody := a.actors(ctx, e, s); nobody != nil {
			item.Transitions = nil
		}
	}
	return item, err
}

// actor returns who acts: whoever --as names, else the machine's only human, else
// the operator of this computer.
func (a *app) actor(ctx context.Context, e *engine, s *runner.Session, as string) (string, error) {
	if as != "" {
		return as, nil
	}
	humans, err := a.actors(ctx, e, s)
	switch {
	case err != nil:
		return "", err
	case len(humans) > 1:
		return "", usage("several humans may decide; say who you are with --as: %s", strings.Join(humans, ", "))
	}
	return humans[0], nil
}
