package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/payloads"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// How a run, a ruling or a proposal ends: the last lines and the exit code. Each way to end
// says what there is to do next, as a command to copy: the choices of a human, what takes a
// stopped session up again, which limit can be raised and how. Where the store ends with
// this process there is nothing to copy, and the text says that instead. Of what is withheld
// no more is told than may be (Session.OutcomeFor).

// end prints where a run left its session and returns the exit code. The error
// is what kept it, or anything before, from being printed.
func (p *printer) end(r runner.Result, ask func() (runner.Question, error)) (int, error) {
	p.status.Stop()
	code := api.ExitCode(r)
	if r.Session.Withheld("") != "" { // what may be told of it
		o := r.Session.Conceal(session.Outcome{Code: r.Code, Reason: r.Reason})
		r.Code, r.Reason = o.Code, o.Reason
	}
	if p.a.Flags.JSON {
		if err := p.endShadow(r); err != nil {
			return command.ExitFailure, err
		}
		return code, p.endJSON(r, code)
	}
	p.header()
	p.close()
	if err := p.endShadow(r); err != nil {
		return command.ExitFailure, err
	}
	if r.Status == session.NeedsHuman.String() {
		item, err := ask()
		if err != nil {
			return command.ExitFailure, err
		}
		p.endHuman(r, item)
	} else {
		p.endText(r)
	}
	return code, p.out.Flush()
}

// goesOn returns the command that goes on with a session that waits: where a coding agent is
// asked, only dialai undertake drives it.
func (p *printer) goesOn(s *session.Session, words []string) fmt.Stringer {
	for _, ask := range s.OpenAsks() {
		if ask.Source == specialist.Agent {
			return p.a.Command("undertake", nil, "--resume", s.ID.String())
		}
	}
	return p.a.Command("resume", []string{s.ID.String()}, words...)
}

func (p *printer) endText(r runner.Result) {
	state, id := render.Clean(r.Session.State.Name), []string{r.Session.ID.String()}
	switch r.Status {
	case session.Completed.String():
		fmt.Fprintf(p.out, "%s %s\n", render.Either(r.Session.State.Goal, p.paint.Green("Session complete:"), "Session ended:"), state)
	case runner.WaitingStatus:
		var words []string
		if asks := r.Session.OpenAsks(); r.Session.Waits() {
			words = []string{"--wait"} // nothing can be done before
			fmt.Fprintf(p.out, "Session waiting: %s (%s)\n", state, render.Clean(r.Session.WaitsFor()))
		} else {
			fmt.Fprintf(p.out, "Session waiting: %s (%s due by %s)\n", state, render.Plural(len(asks), "answer"), dueBy(asks))
		}
		if !p.a.Flags.Quiet {
			render.About(p.out, r.Session.Subject())
		}
		if p.a.Keeps() {
			fmt.Fprintf(p.out, "  %s\n", p.goesOn(r.Session, words))
		} else {
			p.hint("%s, and with it what would come; --wait stays for that, --store PATH keeps it", command.Gone)
		}
	case session.Stopped.String():
		by := "Session stopped" + render.When(r.Code != session.CodeCancelled, " by guard") + ":"
		fmt.Fprintf(p.out, "%s %s (%s)\n", p.paint.Red(by), render.Clean(r.Code), render.Clean(r.Reason))
		p.hint("%s", p.a.stopHint(r.Code, r.Session))
	case session.Failed.String():
		p.out.Flush()
		fmt.Fprintf(p.a.Err, "Session failed:\n%s\n", render.Clean(r.Reason))
		if r.Code == session.CodeDeadEnd && len(r.Session.Closed()) > 0 {
			p.hint("no condition of state %s holds: change them, or add a transition without one; %s and resume go on with that", state, p.a.Command("move", []string{r.Session.ID.String(), "FILE"}, "--note", "WHY"))
		} else if r.Code == session.CodeDeadEnd {
			p.hint(`state %s leads nowhere; mark it "final": true if a session may end there`, state)
		}
		if r.Code == session.CodePanic {
			p.hint("%s tries again, and with --verbose shows where it happened; %s gives it up", p.a.Command("resume", id), p.a.Command("cancel", id, "--note", "WHY"))
		}
	}
}

// stopHint says what can be done about a session that was stopped.
func (a *app) stopHint(code string, s *session.Session) string {
	id := s.ID.String()
	switch {
	case !a.Keeps():
		return command.Gone + "; --store PATH would keep it, so that it can be taken up"
	case code == session.CodeStepLimit || code == session.CodeTimeLimit || code == session.CodeCancelled:
		return fmt.Sprintf("%s goes on from here", a.Command("resume", []string{id}))
	case strings.HasPrefix(code, "loop_") || code == "batch_repeat":
		return fmt.Sprintf("it went in circles: %s shows the choices of a human, %s lets it go on", a.Command("show", []string{id}), a.Command("resume", []string{id}, "--clear"))
	}
	if raise := a.raiseHint(code, s); raise != "" {
		return raise
	}
	return "that is part of the machine that this session began with; change it in the file and start a new session"
}

// raiseHint says how to raise the limit that keeps a session from going on; "" if
// none does.
func (a *app) raiseHint(code string, s *session.Session) string {
	limits := s.Program.Guards(s.State).LimitsOf(code)
	if len(limits) == 0 || !a.Keeps() {
		return ""
	}
	texts := make([]string, len(limits))
	for i, l := range limits {
		texts[i] = fmt.Sprintf("%s (now %s)", render.Clean(l.Limit), l.From)
	}
	name := render.Either(len(limits) > 1, "LIMIT", limits[0].Limit)
	return fmt.Sprintf("a human can raise %s for this session: %s", strings.Join(texts, " or "),
		a.Command("resume", []string{s.ID.String()}, "--raise", name+"=VALUE", "--note", "WHY"))
}

// endHuman prints a question for a human, each answer as a command.
func (p *printer) endHuman(r runner.Result, item runner.Question) {
	fmt.Fprintf(p.out, "%s %s (%s)\n", p.paint.Yellow("Session needs a human:"), render.Clean(item.State), render.Clean(item.Reason))
	if !p.a.Flags.Quiet && p.asked != item.Digest {
		render.About(p.out, item.Subject)
		render.Prompt(p.out, "  ", item.Prompt)
		p.a.Facts(p.out, "    ", item)
		render.Due(p.out, "  Due: ", item)
	}
	p.a.printTransitions(p.out, item)
	if raise := p.a.raiseHint(r.Code, r.Session); raise != "" {
		p.hint("%s", raise)
	}
	if !p.a.Keeps() {
		p.hint("%s; keep it with --store PATH, or decide with --interactive", command.Gone)
	}
}

// hint says on stderr what to do next.
func (p *printer) hint(format string, args ...any) {
	if !p.a.Flags.Quiet {
		p.out.Flush()
		fmt.Fprintf(p.a.Err, "    hint: "+format+"\n", args...)
	}
}

func dueBy(asks []session.Ask) string {
	var last session.RemoteAsk
	for _, ask := range asks {
		if ask.Remote != nil && ask.Remote.Deadline > last.Deadline {
			last = *ask.Remote
		}
	}
	return last.Deadline.String()
}

// endJSON prints the last line of --json.
func (p *printer) endJSON(r runner.Result, code int) error {
	if err := render.JSON(p.out, api.ResultOf(r, code)); err != nil {
		return err
	}
	return p.out.Flush()
}

// resultOf returns a session that nobody runs on as a Result.
func resultOf(ctx context.Context, e *engine, s *session.Session) (runner.Result, error) {
	o, err := e.Outcome(ctx, s, "")
	return runner.Result{Status: s.Status.String(), Session: s, Code: o.Code, Reason: o.Reason}, err
}

// decideCommandFor returns the command that decides a question with one of its
// transitions.
func (a *app) decideCommandFor(item runner.Question, t session.InboxTransition) render.Command {
	words, payload := append([]string{"--question", shortDigest(item)}, asWords(item, t.Name)...), payloads.Template(t)
	if payload == "-" { // too long for a command
		if who := proposerOf(item, t); who != "" {
			return a.Command("decide", []string{item.SessionID}, append(words, "--accept", who)...)
		}
	}
	return a.Command("decide", []string{item.SessionID, t.Name}, append(words, dataWords(payload)...)...)
}

// asWords says in whose name a printed command decides: that of the viewer who may, or has
// ruled already, else, where it has to be said, that of the first who may and, where rulings
// differ, has not chosen that transition before.
func asWords(item runner.Question, transition string) []string {
	who := ""
	i := slices.IndexFunc(item.Transitions, func(t session.InboxTransition) bool { return t.Name == transition })
	switch {
	case i >= 0 && item.Transitions[i].Approvals != nil && item.WithheldRulings == 0:
		return approver(item, &item.Transitions[i])
	case hasRuled(item):
		who = item.Viewer
	case len(item.Humans) == 0, len(item.Humans) == 1 && item.WithheldRulings == 0:
		return nil
	case slices.Contains(item.Humans, item.Viewer):
		who = item.Viewer
	default:
		who = firstToChoose(item, item.Humans, transition)
	}
	return []string{"--as", who}
}

// firstToChoose returns the first of the humans who has not chosen the transition before, or
// the first of all.
func firstToChoose(item runner.Question, humans []string, transition string) string {
	return humans[max(0, slices.IndexFunc(humans, func(id string) bool {
		return !slices.ContainsFunc(item.Rulings, func(r session.QuestionRuling) bool { return r.SpecialistID == id && r.TransitionName == transition })
	}))]
}

// approver is asWords for a transition that takes approvals.
func approver(item runner.Question, t *session.InboxTransition) []string {
	switch a := t.Approvals; {
	case len(a.Given) >= a.Needed && a.Each == nil: // they count again, and one of them says so
		return []string{"--as", a.Given[max(0, slices.Index(a.Given, item.Viewer))]}
	case slices.Contains(a.Remaining, item.Viewer), len(a.Remaining) == 0 && slices.Contains(a.Given, item.Viewer):
		return []string{"--as", item.Viewer}
	case len(a.Remaining) > 0 && len(item.Humans) > 1:
		return []string{"--as", firstToChoose(item, a.Remaining, t.Name)}
	}
	return nil
}

// hasRuled reports whether a ruling of whoever looks at a question waits for that of another
// human, who has to rule without sight of it.
func hasRuled(item runner.Question) bool {
	return !slices.Contains(item.Humans, item.Viewer) && ownRuling(item)
}

// ownRuling reports whether a ruling of whoever looks at a question waits for others.
func ownRuling(item runner.Question) bool {
	return item.Viewer != "" && slices.ContainsFunc(item.Rulings, func(r session.QuestionRuling) bool { return r.SpecialistID == item.Viewer })
}

// proposerOf returns who has proposed a choice with the payload that goes with it so far,
// "" if nobody who is shown has.
func proposerOf(item runner.Question, t session.InboxTransition) string {
	for _, raw := range item.Proposals {
		var p render.Proposal
		if json.Unmarshal(raw, &p) == nil && p.TransitionName == t.Name && bytes.Equal(p.MetaJSON, t.MetaJSON) {
			return p.SpecialistID
		}
	}
	for _, r := range item.Rulings {
		if r.TransitionName == t.Name && r.SpecialistID != item.Viewer && bytes.Equal(r.MetaJSON, t.MetaJSON) {
			return r.SpecialistID
		}
	}
	return ""
}
