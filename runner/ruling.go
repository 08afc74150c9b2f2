package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/cases"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A human closes a round. arbitrate loads the session, sees that it is live (or may be
// taken up again) and that the ruling is about the present round and question, and then
// forces a transition, takes a ruling back, or has the arbiter decide. If somebody else
// commits first it begins anew with the session as it is then.
//
// force tests who rules, then whether the transition is legal and the question pinned as
// closely as it wants; rule (ruling_waiting.go) keeps the ruling if another human has to rule
// too. executeForced weighs what the evidence said of the choice, passes the gate, and
// commits the move with what it teaches, all in one record: no move without its lesson,
// no lesson without its move. What is refused before the gate is not recorded at all.
// Where a human names the transition nobody is asked, so a machine whose services are
// missing can still be ruled on.

// A Ruling asks for a round to be closed: DIAL's submitArbitration. With a
// TransitionName a human forces it; without one the arbiter decides.
type Ruling struct {
	SessionID      specialist.SessionID
	SpecialistID   machine.SpecialistID // who rules
	RoundID        string               // the round it is about, or CurrentRound; required
	QuestionDigest string               // of the question it is about, or its first DigestPrefix hex digits or more; "" for any of the round
	TransitionName string
	ToState        string
	Reasoning      string
	MetaJSON       json.RawMessage
	Usage          specialist.Usage
	// Reopen takes up a session that a guard or a limit has stopped, in the commit of the
	// ruling. It stays stopped if the ruling is refused. What somebody has cancelled, only
	// Resume takes up.
	Reopen bool
	// Blind says that whoever rules has not seen what was proposed: only then is
	// the ruling evidence for letting somebody decide alone. It counts for nothing
	// where the log says otherwise (see Reveal).
	Blind bool
	// Manner is kept with the ruling. More than MaxLooked counts as that, and what was
	// given in bulk is not blind.
	session.Manner
	// Withdraw takes the own ruling back that waits for others; TransitionName is ""
	// then.
	Withdraw bool
	// Actor is the person or program that rules, for the record; nil if that is not said. Two
	// rulings of one actor never count as those of two humans, if its method authenticates.
	Actor *session.Actor
	// If, unless nil, is given the session that the ruling's commit would replace; nothing
	// happens, and its error is returned, if it returns one. It may be called again, with
	// the session as it is then, if somebody else commits first.
	If func(*session.Session) error
}

// Operator is who rules where a machine declares no human for a state and
// Config.AllowOperator is set.
const Operator = "__operator"

// An Arbitration is what came of a Ruling: DIAL's ArbitrationResult. A refusal
// is a result too, with Executed and GuardsPass false.
type Arbitration struct {
	ArbitrationID     string            `json:"arbitrationId"`
	SessionID         string            `json:"sessionId"`
	RoundID           string            `json:"roundId"`
	SpecialistID      string            `json:"specialistId,omitempty"`
	Stale             bool              `json:"stale"` // it is beside a *StaleError
	GuardsPass        bool              `json:"guardsPass"`
	GuardReason       string            `json:"guardReason"`
	WinningProposalID string            `json:"winningProposalId,omitempty"`
	TransitionName    string            `json:"transitionName,omitempty"`
	ToState           string            `json:"toState,omitempty"`
	Reasoning         string            `json:"reasoning,omitempty"`
	Executed          bool              `json:"executed"`
	Recorded          bool              `json:"recorded,omitempty"` // the ruling waits for another human's, or was taken back
	Repeated          bool              `json:"repeated,omitempty"` // the same ruling had been given before: nothing has changed
	IsHuman           bool              `json:"isHuman"`
	MetaJSON          json.RawMessage   `json:"metaJson,omitempty"`
	CostUSD           *exact.Money      `json:"costUSD,omitempty"`
	LatencyMsec       *int64            `json:"latencyMsec,omitempty"`
	NumInputTokens    *int64            `json:"numInputTokens,omitempty"`
	NumOutputTokens   *int64            `json:"numOutputTokens,omitempty"`
	Session           *session.Session  `json:"-"` // as it is afterwards
	Decided           *arbiter.Decision `json:"-"` // the arbiter's, if it was asked
}

// Texts of refusals, in DIAL's words.
const (
	onlyHumans  = "Only human specialists can force arbitration"
	noProposals = "No proposals in current round"
)

// Decide closes the current round. A human who takes part forces a transition;
// that decision is ground truth: it is compared with every AI proposal of the
// round and becomes an exemplar. It is never out-voted, and stopped only by a
// guard that aborts. Nobody is asked for it, so it does not matter whether all that
// the machine names is there.
//
// A ruling on another round than the present one, or on another question of it, is
// refused with a [*StaleError], which wraps ErrStaleRound, and nothing of it is recorded; if
// the same actor gave the same ruling on that question before, the result says so (Repeated). Other errors wrap
// ErrNotFound, ErrNotRunning, ErrForbidden for who may not rule, or ErrIllegal for a transition that is not legal, a
// RoundID that is missing, and CurrentRound where the transition is irreversible;
// or a store fails. Beside errors that are about the round there is DIAL's result.
func (r *Runner) Decide(ctx context.Context, in Ruling) (Arbitration, error) {
	return r.arbitrate(ctx, in, session.Forced)
}

// Execute executes a transition for a human without teaching anything: DIAL's
// executeTransition.
func (r *Runner) Execute(ctx context.Context, in Ruling) (Arbitration, error) {
	if in.TransitionName == "" {
		return Arbitration{}, refuse(ErrIllegal, "transition_required", "transitionName is required")
	}
	return r.arbitrate(ctx, in, session.Direct)
}

func (r *Runner) arbitrate(ctx context.Context, in Ruling, how session.DecisionKind) (Arbitration, error) {
	if err := cmp.Or(in.pin().check(), checkActor(in.Actor), checkManner(&in.Manner)); err != nil {
		return Arbitration{}, err
	}
	for range maxRaces {
		s, err := r.load(ctx, in.SessionID)
		if err != nil {
			return Arbitration{}, err
		}
		if err := holds(in.If, s); err != nil {
			return Arbitration{Session: s}, err
		}
		if !s.Status.Live() && !in.reopens(s) {
			result := Arbitration{Session: s}
			err := refuse(ErrNotRunning, "not_running", "Session is not running: %s (%s)", s.ID, s.Status)
			if s.Outcome().Code == session.CodeCancelled {
				err.Hint = "it was cancelled, and asks nobody until it is resumed"
			}
			return r.repeated(ctx, s, in, how, result, err)
		}
		seen, err := r.fits(ctx, s, in.pin())
		if err != nil {
			return r.repeated(ctx, s, in, how, in.stale(s, err), err)
		}
		in.QuestionDigest = seen
		var result Arbitration
		err = r.containApart(s.ID, func() (err error) {
			switch {
			case in.Withdraw:
				result, err = r.withdraw(ctx, s, in)
			case in.TransitionName != "":
				result, err = r.force(ctx, s, in, how)
			default:
				result, err = r.evaluateAndExecute(ctx, s, in)
			}
			return err
		})
		if !errors.Is(err, session.ErrStale) {
			return result, err
		}
	}
	return Arbitration{}, fmt.Errorf("session %s: %w", in.SessionID, session.ErrStale)
}

// reopens reports whether the ruling may take up a session that has stopped.
func (in *Ruling) reopens(s *session.Session) bool {
	return s.Status == session.Stopped && in.Reopen && in.TransitionName != "" && s.Outcome().Code != session.CodeCancelled
}

// refused returns a result that says why nothing was executed.
func (in Ruling) refused(s *session.Session, reason string) Arbitration {
	judged := int32(0)
	if s.Open != nil {
		judged = s.Open.Verdicts
	}
	a := Arbitration{
		ArbitrationID: s.Key().ArbitrationID(judged + 1), SessionID: s.ID.String(), RoundID: s.Key().ID(), SpecialistID: string(in.SpecialistID),
		GuardReason: reason, MetaJSON: in.MetaJSON, Session: s,
	}
	a.show(in.Usage)
	return a
}

// notAllowed refuses the ruling of somebody who may not rule.
func (w *engine) notAllowed(in Ruling) (Arbitration, error) {
	why := onlyHumans
	if m := w.here.Find(string(in.SpecialistID)); m != nil && m.IsHuman && !m.Off {
		why = fmt.Sprintf("%s may only propose in state %q, where others decide: %s", m.SpecialistID, w.here.State.Name, strings.Join(w.here.State.Deciders, ", "))
	}
	return in.refused(w.before, why), refuse(ErrForbidden, "not_a_decider", "%s", why)
}

// pin returns what the ruling is about.
func (in *Ruling) pin() pin { return pin{in.RoundID, in.QuestionDigest, in.SpecialistID} }

// stale refuses a ruling about another round or question.
func (in Ruling) stale(s *session.Session, why error) Arbitration {
	result := in.refused(s, why.Error())
	result.Stale = errors.Is(why, ErrStaleRound)
	return result
}

// amend gives an arbiter's decision the reasoning and data of whoever asked for it.
func (in *Ruling) amend(d decision) decision {
	if in.Reasoning != "" {
		d.reasoning = in.Reasoning
	}
	if in.MetaJSON != nil {
		d.meta = in.MetaJSON
	}
	return d
}

// gated enters what the guards said and returns whether they let it pass.
func (a *Arbitration) gated(v verdict.Verdict) bool {
	if a.Executed = v.Passed(); a.Executed {
		a.GuardsPass = true
	} else {
		a.GuardReason = v.Reasons[0].Text()
	}
	return a.Executed
}

// show gives the known members of u back to who gave them.
func (a *Arbitration) show(u specialist.Usage) {
	if u.Has(specialist.CostGiven) {
		a.CostUSD = &u.CostUSD
	}
	if u.Has(specialist.LatencyGiven) {
		a.LatencyMsec = &u.LatencyMsec
	}
	if u.Has(specialist.InputGiven) {
		a.NumInputTokens = &u.NumInputTokens
	}
	if u.Has(specialist.OutputGiven) {
		a.NumOutputTokens = &u.NumOutputTokens
	}
}

// force lets a human decide.
func (r *Runner) force(ctx context.Context, s *session.Session, in Ruling, how session.DecisionKind) (Arbitration, error) {
	w, err := r.beginPartial(ctx, s)
	if err != nil {
		return Arbitration{}, err
	}
	if !w.mayRule(string(in.SpecialistID)) {
		return w.notAllowed(in)
	}
	if how == session.Direct && len(s.State.Transitions) == 0 {
		return in.refused(s, fmt.Sprintf("No transitions available from state %q", s.State.Name)), nil
	}
	answer := specialist.Answer{TransitionName: in.TransitionName, ToState: in.ToState, Reasoning: in.Reasoning, MetaJSON: in.MetaJSON, Usage: in.Usage}
	legal, err := allowed(s, &answer)
	if err != nil {
		result := in.refused(s, err.Error())
		result.IsHuman = true
		return result, err
	}
	d := decision{transition: legal, how: how, by: string(in.SpecialistID), actor: in.Actor.Clone(), seen: in.QuestionDigest, manner: in.Manner, blind: in.Blind && !in.Bulk && s.MayBeBlind(in.SpecialistID), reasoning: answer.Reasoning, meta: answer.MetaJSON}
	if d.reasoning == "" {
		d.reasoning = session.HumanOverride
	}
	if err := in.pin().allows(d.transition); err != nil {
		result := in.refused(s, err.Error())
		result.IsHuman = true
		return result, err
	}
	if why := s.NotEligible(legal, d.by); why != "" {
		return in.refusedHuman(s, refuse(ErrForbidden, session.CodeNotEligible, "%s", why))
	}
	return w.rule(ctx, in, d)
}

// executeForced puts a human's choice through the gate, with what it teaches, and
// commits.
func (w *engine) executeForced(ctx context.Context, in Ruling, d decision) (Arbitration, error) {
	if w.now.Status == session.Stopped {
		w.emit(&session.Resumed{Actor: d.actor, SpecialistID: d.by, Note: "to be decided"})
	}
	if err := w.weighForced(ctx, &d); err != nil {
		return Arbitration{}, err
	}
	verdict, err := w.execute(ctx, &d)
	if failed, ok := errors.AsType[*cases.SetError](err); ok {
		return in.refusedHuman(w.before, refuse(ErrIllegal, session.CodeSetFailed, "%v", failed))
	}
	if err != nil {
		return Arbitration{}, err
	}
	result := in.refused(w.before, session.HumanOverride)
	result.IsHuman, result.TransitionName, result.ToState = true, d.transition.Name, d.transition.Target
	result.Reasoning, result.MetaJSON = d.reasoning, d.meta
	if !result.gated(verdict) {
		w.stopAgain()
	}
	result.Session, err = w.write(ctx)
	return result, err
}

// weighForced adds to a human's choice what the evidence said of it, whether a
// second human is drawn, and the lesson.
func (w *engine) weighForced(ctx context.Context, d *decision) (err error) {
	if d.standing, err = w.standing(ctx); err != nil || d.how != session.Forced {
		return err
	}
	if d.draws == nil {
		if d.draws, err = w.drawSecond(ctx, *d); err != nil {
			return err
		}
	}
	if w.forced() {
		return nil
	}
	d.learned, err = w.learningEvent(ctx, *d)
	return err
}

// stopAgain leaves a session stopped that was taken up for a ruling, which a guard
// has refused.
func (t *commit) stopAgain() {
	if t.before.Status == session.Stopped {
		o := t.before.Outcome()
		t.emit(&session.Ended{Status: session.Stopped, Code: o.Code, Reason: o.Reason})
	}
}

// standing returns the round as a human finds it.
func (t *assessment) standing(ctx context.Context) (*session.Standing, error) {
	by, err := t.arbiter()
	if err != nil {
		by = planning.NoArbiter() // nobody arbitrates here: a human still can
	}
	votes, err := t.standings(ctx, by)
	if err != nil {
		return nil, err
	}
	round, err := t.arbiterRound(ctx, votes, by)
	if err != nil {
		return nil, err
	}
	s := &session.Standing{Threshold: round.Threshold}
	for _, v := range votes {
		s.Order, s.Weights = append(s.Order, v.Arrival), append(s.Weights, v.Weight)
	}
	return s, nil
}

// mayRule reports whether somebody may force a decision: an enabled human who
// takes part, or the operator where no human is declared for the state: somebody
// must be able to.
func (t *assessment) mayRule(id string) bool {
	if m := t.here.Find(id); m != nil {
		return m.IsHuman && !m.Off && t.here.Decides(id)
	}
	return id == Operator && t.r.config.AllowOperator && !t.here.DeclaresHuman()
}

// Humans returns the ids of the humans who may rule on the session now, in
// roster order, and whether any are declared for its state at all: if not, the
// operator may rule.
func (r *Runner) Humans(ctx context.Context, s *session.Session) (ids []string, declared bool, err error) {
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return nil, false, err
	}
	here := &p.States[s.State.Index]
	return here.HumansOn(), here.DeclaresHuman(), nil
}

// learningEvent returns what a forced decision teaches: a comparison for every AI that
// proposed in this round, and an exemplar. A champion that falls below the bar
// by it is demoted.
func (w *engine) learningEvent(ctx context.Context, d decision) (*session.Learned, error) {
	l := &session.Learned{}
	for _, p := range w.open.Proposals {
		if p.IsHuman {
			continue
		}
		key := trust.Key{SpecialistID: p.SpecialistID, State: w.here.Scope}
		l.Comparisons = append(l.Comparisons, trust.Comparison{Key: key, Match: p.Transition == d.transition, At: w.at})
	}
	if err := w.demoteBelowBar(ctx, l.Comparisons); err != nil {
		return nil, err
	}
	var err error
	if l.Outcome, err = w.learn(ctx, d); err != nil {
		return nil, err
	}
	if l.Second = d.second; d.looksAfter(w.here.State) {
		l.Outcome, l.Held = nil, l.Outcome
	}
	key := w.now.Key()
	shown, truncated := w.question().ExemplarContext()
	proposals := []byte{'['}
	for i, p := range w.open.Proposals {
		if i > 0 {
			proposals = append(proposals, ',')
		}
		proposals = specialist.AppendProposal(proposals, key, p)
	}
	l.Exemplar = &specialist.Exemplar{
		ExemplarID: key.ExemplarID(), MachineName: w.now.Machine().Name(), State: w.now.State.Name, Context: shown,
		HumanTransitionName: d.transition.Name, HumanToState: d.transition.Target, Proposals: append(proposals, ']'),
		CreatedAt: w.at, Reasoning: session.GivenReason(d.reasoning), SpecialistID: d.by, SessionID: w.now.ID.String(), Truncated: truncated,
	}
	return l, nil
}
