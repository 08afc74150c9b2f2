package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// How a ruling ends that was not executed: why, and what could be done instead.

// A refusedChoice is what was to be ruled: on which question, with which flags
// and which payload.
type refusedChoice struct {
	question   runner.Question
	transition string
	words      []string
	given      json.RawMessage // the payload, nil for none
}

// refused ends the command with a ruling that was not executed. why is nil where
// DIAL's result says all.
func (a *app) refused(ctx context.Context, e *engine, p *printer, c refusedChoice, r runner.Arbitration, why error) error {
	code := command.ExitFailure
	if r.TransitionName != "" && why == nil { // legal, but a guard stopped it
		code = command.ExitStopped
	}
	p.status.Stop()
	p.close()
	if stale, ok := errors.AsType[*runner.StaleError](why); ok {
		if err := p.tellNewQuestion(stale); err != nil {
			return err
		}
	}
	if a.Flags.JSON {
		result := runner.Result{Status: r.Session.Status.String(), Session: r.Session}
		result.Code, result.Reason = refusal(r, code, why)
		if err := p.endJSON(result, code); err != nil {
			return err
		}
	}
	err := errors.Join(fmt.Errorf("not decided: %s", r.GuardReason), p.out.Flush())
	return command.Fail(code, command.Hinted(err, "%s", cmp.Or(a.refusalHint(ctx, e, r, code, why), a.choiceHint("decide", r.Session.State, c))))
}

// tellNewQuestion prints what has changed since the question was shown, and what it
// is now.
func (p *printer) tellNewQuestion(stale *runner.StaleError) error {
	q, told := stale.Question, p.asked == stale.Question.Digest
	switch {
	case p.a.Flags.JSON && told:
		return nil
	case p.a.Flags.JSON, p.a.Flags.Quiet:
		return p.tellQuestion(q)
	}
	p.header()
	for _, line := range stale.Changed {
		fmt.Fprintf(p.out, "Since then: %s\n", render.Clean(line))
	}
	fmt.Fprintf(p.out, "The question now is about round %s, in state %s:\n", q.RoundID, render.Clean(q.State))
	render.Prompt(p.out, "  ", q.Prompt)
	if !told {
		if err := p.a.Question(p.out, q); err != nil {
			return err
		}
	}
	p.a.printChoices(p.out, q)
	return nil
}

// ownCodes are the codes of refusals that say more than that a ruling was refused.
var ownCodes = []string{runner.CodeRoundRequired, session.CodeNotEligible, session.CodeClosed, session.CodeSetFailed}

// refusal returns why a ruling was not executed: its code and its text.
func refusal(r runner.Arbitration, exit int, why error) (code, reason string) {
	if refused, ok := errors.AsType[*runner.Error](why); ok && (r.Stale || slices.Contains(ownCodes, refused.Code)) {
		return refused.Code, r.GuardReason
	}
	if exit == command.ExitStopped {
		if code, reason, ok := strings.Cut(r.GuardReason, ": "); ok {
			return code, reason
		}
	}
	return "refused", r.GuardReason
}

// isRefusal reports whether an error refuses with a code.
func isRefusal(why error, code string) bool {
	refused, ok := errors.AsType[*runner.Error](why)
	return ok && refused.Code == code
}

// refusalHint says what could be done instead.
func (a *app) refusalHint(ctx context.Context, e *engine, r runner.Arbitration, code int, why error) string {
	id := []string{r.SessionID}
	switch {
	case r.Stale:
		return fmt.Sprintf("nothing was decided; %s shows the question as it is now", a.Command("show", id))
	case code == command.ExitStopped:
		code, _ := refusal(r, command.ExitStopped, why)
		return a.stopHint(code, r.Session)
	case isRefusal(why, session.CodeSetFailed): // the same command would fail again
		return fmt.Sprintf("nothing is written with this payload; %s shows the data and what else may be decided", a.Command("show", id))
	case isRefusal(why, session.CodeNotEligible), isRefusal(why, session.CodeClosed): // with any payload
		return fmt.Sprintf("%s shows what may be decided, and by whom", a.Command("show", id))
	case isRefusal(why, "nothing_to_withdraw"):
		return fmt.Sprintf("there is nothing to take back; %s shows which rulings wait", a.Command("show", id, "--as", r.SpecialistID))
	case !r.IsHuman:
		humans, err := a.actors(ctx, e, r.Session)
		if err != nil {
			return err.Error()
		}
		return "say who you are with --as: " + strings.Join(humans, ", ")
	}
	return ""
}

// choiceHint helps whoever named a transition that is none, or gave a payload that
// does not fit it, or none.
func (a *app) choiceHint(command string, s *machine.State, c refusedChoice) string {
	name := c.transition
	if t := s.Transition(name); t != nil {
		return a.payloadHint(command, t, c)
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
