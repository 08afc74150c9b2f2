package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/machine"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/payloads"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// A ruling from the command line. The order matters: who acts is found first (the one
// that --as names, else the machine's only human, else the operator), then the question
// as that one may see it is printed, and only then is the ruling sent, with the round
// and the digest of exactly that question, or those that the flags name. If the
// question has changed meanwhile the engine refuses the ruling, and the new question is
// shown.
//
// A transition that cannot be undone needs a question, or a round, in so many words:
// the one that stands when the command begins is not enough, since nobody may have read
// it. After a ruling that was executed the session runs on, unless --no-run.

// decideFlags are those of a ruling or a proposal.
type decideFlags struct {
	as        string
	round     string
	question  string
	reasoning string
	note      string
	data      []string
	accept    string
	noRun     bool
	show      bool
	withdraw  bool
}

func (f *decideFlags) add(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.as, "as", "", "the `human` who "+what+" (default: the machine's only human)")
	cmd.Flags().StringVar(&f.round, "round", "", "only if this `id` is still that of the current round")
	cmd.Flags().StringVar(&f.question, "question", "", "only if this `digest` is still that of the question; its first 12 hex digits are enough, and state the round too")
	cmd.Flags().StringVar(&f.reasoning, "reasoning", "", "the `reason`, for the record")
	cmd.Flags().StringArrayVar(&f.data, "data", nil, "the `payload` (metaJson) that goes with it: JSON, - for JSON on stdin, or name=value, a member read by its type in the transition's parameters (may be repeated)")
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

Where the parameters of a transition ask for a payload, --data gives it; a printed
command has the one that was proposed, or a … for each value that is asked for. With
--accept, in place of a transition, the ruling is for exactly what that specialist has
proposed, payload included, unless that is withheld.

dialai inbox lists what is to be decided, each choice as a command to copy.`,
		Example: `  dialai decide 0b9c1d3e approve
  dialai decide 0b9c1d3e pay --question 5d0e6c1a8f0b
  dialai decide 0b9c1d3e reject --as carol --reasoning "no receipt"
  dialai decide 0b9c1d3e pay --data '{"amount":120}' --no-run
  dialai decide 0b9c1d3e pay --data amount=120 --data to=Ann
  dialai decide 0b9c1d3e --accept ai-reviewer`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(f.checkChoice(cmd, args), f.checkDigest(cmd)); err != nil {
				return err
			}
			return a.taped(&run.tapeFlags, func() error { return a.decide(cmd.Context(), args[0], append(args, "")[1], f, run) })
		},
	}
	f.add(cmd, "decides")
	cmd.Flags().StringVar(&f.note, "note", "", "a `note` for the record, of which nobody learns")
	cmd.Flags().BoolVar(&f.noRun, "no-run", false, "only decide, do not run on")
	cmd.Flags().BoolVar(&f.show, "show-proposals", false, "show the proposals even if they are withheld; that is recorded, and the ruling is not blind")
	cmd.Flags().StringVar(&f.accept, "accept", "", "rule for what that `specialist` has proposed, or a human has ruled that waits for others, payload included, in place of a transition")
	cmd.Flags().BoolVar(&f.withdraw, "withdraw", false, "withdraw your ruling that waits for another human")
	run.add(cmd, false)
	return cmd
}

// checkChoice returns an error unless exactly one of a transition, --accept and --withdraw
// says what is ruled.
func (f *decideFlags) checkChoice(cmd *cobra.Command, args []string) error {
	accept := cmd.Flags().Changed("accept")
	var given []string
	if len(args) > 1 {
		given = append(given, strconv.Quote(args[1]))
	}
	if accept {
		given = append(given, "--accept")
	}
	if f.withdraw {
		given = append(given, "--withdraw")
	}
	const one = "give the transition, --accept ID for what somebody has proposed, or --withdraw to withdraw your ruling: one of them"
	switch {
	case len(given) == 0:
		return command.Hinted(command.Usage("dialai decide: <transition> is missing"), one)
	case len(given) > 1:
		return command.Hinted(command.Usage("dialai decide: %s beside %s", given[0], given[1]), one)
	case len(args) > 1 && args[1] == "": // the arbiter would decide
		return command.Usage("dialai decide: <transition> is empty")
	case f.withdraw && f.note != "":
		return command.Usage("--note beside --withdraw: it goes with a ruling")
	case accept && len(f.data) > 0:
		return command.Hinted(command.Usage("--data beside --accept, which takes the payload of the proposal"), "to give another one, name the transition")
	}
	return nil
}

func (a *app) decide(ctx context.Context, id, transition string, f *decideFlags, run *runFlags) error {
	if err := run.check(); err != nil {
		return err
	}
	if err := command.OneStdin(command.StdinUse{What: "the payload of --data -", Is: slices.Contains(f.data, "-")}, command.StdinUse{What: "the answers of --interactive", Is: run.interactive}); err != nil {
		return err
	}
	p := a.newPrinter()
	defer p.status.Stop()
	e, err := a.engine(ctx, command.Writes, p)
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
	if err := a.loadTape(s); err != nil {
		return err
	}
	p.Follow(s)
	q, err := a.asked(ctx, e, s, actor, f.show)
	if err != nil {
		return err
	}
	if err := p.tellQuestion(q); err != nil {
		return err
	}
	transition, data, err := a.chosen(s, q, transition, f)
	if err == nil {
		err = a.statesQuestion("decide", s, q, transition, f)
	}
	if err != nil {
		return errors.Join(err, p.out.Flush())
	}
	result, err := e.Decide(ctx, runner.Ruling{
		SessionID: s.ID, SpecialistID: machine.SpecialistID(actor), RoundID: cmp.Or(f.round, q.RoundID), QuestionDigest: cmp.Or(f.question, digestOf(q, f.round)),
		TransitionName: transition, Reasoning: signed(actor, f.reasoning), MetaJSON: data, Blind: q.Withheld != nil, Withdraw: f.withdraw,
		Manner: session.Manner{Note: f.note},
		Actor:  command.LocalActor(),
		Reopen: true, // only a human can let a session go on that a guard has stopped
	})
	switch {
	case err != nil && result.Session == nil || errors.Is(err, runner.ErrNotRunning):
		return err
	case f.withdraw && result.Recorded:
		return a.decided(ctx, e, p, result.Session, "Your ruling is taken back.")
	case result.Recorded && run.wait && !f.noRun && result.Session.Timer() != nil:
		return a.carryOn(ctx, e, p, s.ID, run)
	case result.Recorded:
		return a.decided(ctx, e, p, result.Session, wasDecided)
	case !result.Executed:
		return a.refused(ctx, e, p, refusedChoice{q, transition, f.words(q), data}, result, err)
	case f.noRun:
		return a.decided(ctx, e, p, result.Session, wasDecided)
	}
	return a.carryOn(ctx, e, p, s.ID, run)
}

// chosen returns what is ruled, and its payload.
func (a *app) chosen(s *session.Session, q runner.Question, transition string, f *decideFlags) (string, json.RawMessage, error) {
	if f.accept != "" {
		p, err := accepted(q, f.accept)
		return p.TransitionName, p.MetaJSON, err
	}
	data, err := a.payload(f.data, s.State.Transition(transition))
	return transition, data, err
}

// words returns the flags of a ruling or proposal on a question that stay the same
// whatever its payload is.
func (f *decideFlags) words(q runner.Question) (words []string) {
	if f.question == "" && f.round == "" {
		words = []string{"--question", shortDigest(q)}
	}
	for _, w := range []struct{ flag, value string }{{"--question", f.question}, {"--round", f.round}, {"--as", f.as}, {"--reasoning", f.reasoning}} {
		if w.value != "" {
			words = append(words, w.flag, w.value)
		}
	}
	return words
}

// asked returns the question of a session as somebody sees it who is about to answer;
// show has them look at what is withheld.
func (a *app) asked(ctx context.Context, e *engine, s *session.Session, actor string, show bool) (runner.Question, error) {
	if show {
		q, _, err := e.Reveal(ctx, s.ID, machine.SpecialistID(actor), command.LocalActor())
		return q, err
	}
	return e.Question(ctx, s, machine.SpecialistID(actor))
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
	if f.round == runner.CurrentRound {
		return command.Hinted(command.Usage("--round is %q, not the id of a round", f.round), "dialai show ID --json has it in currentRoundId; without --round it is the round that stands when the command begins")
	}
	if !cmd.Flags().Changed("question") || len(f.question) >= session.DigestPrefix && strings.Trim(strings.ToLower(f.question), "0123456789abcdef") == "" {
		return nil
	}
	return command.Hinted(command.Usage("--question is %q, not the first %d hex digits of a digest or more", f.question, session.DigestPrefix), "dialai show and dialai inbox print it in each command that decides")
}

// statesQuestion returns an error if a transition that cannot be undone is chosen
// without saying on which question; a round is not enough for what somebody proposed,
// who may have proposed something else since.
func (a *app) statesQuestion(name string, s *session.Session, q runner.Question, transition string, f *decideFlags) error {
	t := s.State.Transition(transition)
	if t == nil || !t.Irreversible || f.question != "" || f.round != "" && f.accept == "" {
		return nil
	}
	args, words, which := []string{q.SessionID}, f.words(q), "--question or --round"
	if f.accept != "" {
		stated := *f
		stated.round = "" // the question states the round as well
		words, which = append(stated.words(q), "--accept", f.accept), "--question"
	} else {
		args = append(args, transition)
	}
	for _, d := range f.data {
		words = append(words, "--data", d)
	}
	if f.accept == "" && len(f.data) == 0 {
		words = append(words, dataWords(payloads.Template(choiceOf(q, transition)))...)
	}
	return command.Hinted(command.Usage("dialai %s: %s is irreversible: say which question you answer, with %s", name, transition, which),
		"to answer the one that stands now: %s", a.Command(name, args, words...))
}

// shortDigest returns as much of a question's digest as is enough to state it.
func shortDigest(q runner.Question) string { return q.Digest[:session.DigestPrefix] }

// signed adds to the reasoning of an operator who that was.
func signed(actor, reasoning string) string {
	if actor != runner.Operator {
		return reasoning
	}
	return strings.TrimSpace(fmt.Sprintf("%s (decided by %s)", reasoning, command.OsUser()))
}

// notRunning says of a session what the engine says of it (runner.ErrNotRunning).
func notRunning(s *session.Session, why string) error {
	return fmt.Errorf("%s is not running: %s (%s)", "Session", s.ID, why)
}

// liveSession returns a session that can still be decided, be it stopped.
func (a *app) liveSession(ctx context.Context, e *engine, id string) (*session.Session, error) {
	s, err := e.session(ctx, id)
	cancelled := err == nil && s.Outcome().Code == session.CodeCancelled
	if err != nil || s.Status.Live() || s.Status == session.Stopped && !cancelled {
		return s, err
	}
	err = notRunning(s, s.Status.String())
	if cancelled {
		err = notRunning(s, "cancelled: "+s.Outcome().Reason)
	}
	if s.Status == session.Completed {
		return nil, command.Hinted(err, "it has ended in %s and stays so; start a new one", s.State.Name)
	}
	return nil, command.Hinted(err, "%s takes it up again", a.Command("resume", []string{s.ID.String()}))
}

// wasDecided is what is said of a ruling that was executed.
const wasDecided = "Decided."

// decided ends a ruling that is not run on from. done says what came of it where the
// session may run on.
func (a *app) decided(ctx context.Context, e *engine, p *printer, s *session.Session, done string) error {
	r, err := resultOf(ctx, e, s)
	switch {
	case err != nil:
		return err
	case s.Status != session.Running:
		return a.finish(ctx, e, p, r)
	case a.Flags.JSON:
		return p.endJSON(r, command.ExitOK)
	case !a.Flags.Quiet:
		fmt.Fprintf(p.out, "%s To run on:\n  %s\n", done, a.Command("resume", []string{s.ID.String()}))
	}
	return p.out.Flush()
}

// actors returns who may decide the present round. The error says that nobody
// can, and what to do about that.
func (a *app) actors(ctx context.Context, e *engine, s *session.Session) ([]string, error) {
	humans, declared, err := e.Humans(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case len(humans) > 0:
		return humans, nil
	case !declared:
		return []string{runner.Operator}, nil
	}
	id := command.HumanOf(s)
	if id == "" {
		return nil, command.Usage("nobody may decide in state %q: the machine file itself disables its humans; change it there, then start a new session", s.State.Name)
	}
	return nil, command.Usage("nobody may decide in state %q: its humans are switched off; %s switches one on", s.State.Name, a.Command("specialists enable", []string{s.Machine().Name(), id}))
}

// question returns what a human is asked about a session; without choices where
// nobody may decide.
func (a *app) question(ctx context.Context, e *engine, s *session.Session) (runner.Question, error) {
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
func (a *app) actor(ctx context.Context, e *engine, s *session.Session, as string) (string, error) {
	if as != "" {
		return as, nil
	}
	humans, err := a.actors(ctx, e, s)
	return onlyHuman(humans, err, "decide")
}

// onlyHuman returns the one of humans who may do something, if there is only one.
func onlyHuman(humans []string, err error, what string) (string, error) {
	switch {
	case err != nil:
		return "", err
	case len(humans) == 0:
		return "", command.Usage("nobody may %s: its humans are switched off", what)
	case len(humans) > 1:
		return "", command.Usage("several humans may %s; say who you are with --as: %s", what, strings.Join(humans, ", "))
	}
	return humans[0], nil
}
