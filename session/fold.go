package session

import (
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// What each event makes of a session and its open round. An event is applied whole and
// in the order of the log: the sequence and the times first, then what its kind says. A
// round is closed by an execution, by the next round that opens, and by the end of the
// session; each first closes the asks that are open, as expected, and the first two then
// keep the accounts that may still change (owe) before they empty the round.
//
// An execution reads the round before that: the guards' state and the review are made of
// the proposals that led to it. Nothing here reads a clock, asks anybody or refuses an
// event: it has happened. Only a charge that makes no sense is reported, and counts as
// nothing.

// Apply brings a session and its round up to the event. It is the only function
// that changes either, live and when a log is read back, so what is stored and
// what is rebuilt cannot differ. The error is that of a charge which makes no sense;
// session and round are then as if it had been nothing.
func Apply(s *Session, o *OpenRound, e *Event) error {
	o.refused = nil
	applyEvent(s, o, e)
	err := o.refused
	o.refused = nil
	return err
}

func applyEvent(s *Session, o *OpenRound, e *Event) {
	s.Sequence++
	s.waited, s.dormant = s.waitedBy(e.At, o), s.dormant && !wakes(e.Data)
	s.UpdatedAt = e.At
	switch d := e.Data.(type) {
	case *Created:
		if d.forked != nil {
			applyFork(s, o, d, e.At)
			return
		}
		s.Program, s.State, s.CreatedAt, s.facts = d.Program, d.Program.Machine.Initial(), e.At, d.facts()
		if d.Options.IsSet() {
			options := d.Options
			s.options = &options
		}
	case *RoundOpened:
		applyRound(s, o, d)
		s.OpenedAt = e.At
	case *Asked:
		for i := range d.Asks {
			o.ApplyAsk(s, &d.Asks[i])
		}
		if o.Wave == nil {
			o.Wave = d.Wave
		}
	case *Proposed:
		applyProposed(s, o, d)
	case *AskFailed:
		applyFailed(s, o, d)
	case *Discarded:
		chargeDiscarded(s, o, d, spend.Called{Model: d.Model, Asked: d.Asked})
	case *Probed:
		applyProbed(s, o, d)
	case *Judged:
		o.Verdict, o.Verdicts = d, max(o.Verdicts, d.Index)
		o.closeAsk(s, d.Ask, d.ArbiterID, answered, said, d.Usage, spend.Called{Model: d.Model})
	case *Gated:
		applyGated(s, o, d)
	case *Executed:
		applyExecuted(s, o, d)
	case *AwaitsHuman:
		applyAwaits(s, o, d, e.At)
		o.shown = o.shown || len(o.Proposals) > 0 && d.Code != CodeAudit && d.Code != CodeSecondHuman
	case *Ruled:
		applyRuled(s, o, d, e.At)
	case *Reviewed:
		applyReviewed(s, d, e.At)
	case *Moved:
		applyMoved(s, o, d)
	case *Retracted:
		applyRetracted(s, d)
	case *Adopted: // it is about the machine: the session is where it stands
	case *Reminded:
		applyReminded(s, d)
	case *Revealed:
		applyRevealed(s, o, d)
	case *Resumed:
		applyResumed(s, o, d)
	case *Ended:
		s.Status, s.outcome = d.Status, &Outcome{d.Code, d.Reason, e.At}
		o.closeAsks(s)
	case *Erased:
		applyErased(s)
	case *DriverChanged:
		applyDriver(s, d)
	case *Learned: // trust is a fold of its own
		if d.Held != nil {
			s.await(&Review{Kind: SecondLook, Key: s.last.Key(s.ID), State: s.last.Transition.From, Since: e.At, Outcome: d.Held})
		}
	}
}

// IsSet reports whether any option is.
func (o Options) IsSet() bool {
	return o.Meta != nil || o.Seed != 0 || o.DefaultProposer || o.DefaultArbiter || o.Mode != "" || o.Prices != "" || o.Subject != "" || o.Closed != nil || o.Due != nil || o.Actor != nil || o.ForkedFrom != nil || o.Missing != nil || o.Driver != DriverPool
}

func applyRound(s *Session, o *OpenRound, d *RoundOpened) {
	o.closeAsks(s)
	owe(s, o)
	if (d.Closed != nil || d.Due != nil) && s.Round == 0 { // options of the session, of which its first record is made
		options := s.Options()
		options.Closed, options.Due, s.options = d.Closed, d.Due, &options
	}
	s.Round, s.Attempt, s.State, s.facts, s.timing = d.Round, d.Attempt, d.State, s.facts.opened(d), s.timing.opened(d)
	*o = OpenRound{refused: o.refused, charged: o.charged, Notices: d.Notices, Proposals: o.Proposals[:0], Asks: o.Asks[:0]}
}

func applyProbed(s *Session, o *OpenRound, d *Probed) {
	o.Probes = append(o.Probes, d)
	if d.Ask == 0 {
		return // a measurement
	}
	u := d.Usage
	if u == (specialist.Usage{}) {
		u.Given = specialist.CostGiven // it is a call all the same
	}
	in := answered
	if d.Code != "" {
		in = failedBy(d.Code)
	}
	o.closeAsk(s, d.Ask, d.Guard, in, d.means(), u, spend.Called{Model: d.Model, Asked: d.Asked})
}

// means returns what came of a question of the guards' own, for its account.
func (d *Probed) means() payEvent {
	switch {
	case d.Free:
		return notCharged
	case d.Code == "":
		return said
	}
	return failure(d.Code, d.Usage)
}

// ApplyAsk enters one ask of an [Asked]: a new one, or a known one that was accepted or
// is repeated by another process.
func (o *OpenRound) ApplyAsk(s *Session, a *Ask) {
	if known := o.At(a.Index); known != nil {
		o.askAgain(s, known, a)
		return
	}
	o.Asks = append(o.Asks, AskState{Ask: a})
}

func applyProposed(s *Session, o *OpenRound, d *Proposed) {
	p := &d.Proposal
	o.Arrivals = max(o.Arrivals, p.Arrival)
	o.Verdict, o.Blocked = nil, false
	if p.Replaces != 0 {
		o.Proposals = slices.DeleteFunc(o.Proposals, func(q *specialist.Proposal) bool { return q.SpecialistID == p.SpecialistID })
	}
	o.Proposals = append(o.Proposals, p)
	var model spend.Called
	if p.Detail != nil {
		model = spend.Called{Model: p.Detail.Model, Asked: p.Detail.Asked}
	}
	if !o.proposedOver(s, d, model) {
		o.closeAsk(s, d.Ask, d.SpecialistID, answered, said, p.Usage, model)
	}
	if s.Status == NeedsHuman {
		s.dormant = s.dormant || o.HumanAsked(s)
		o.goesOn(s)
	}
}

func applyFailed(s *Session, o *OpenRound, d *AskFailed) {
	if a := o.At(d.Ask); a != nil {
		a.failed = d
	}
	o.Blocked = o.Blocked || d.Role == machine.Arbiter
	o.closeAsk(s, d.Ask, d.SpecialistID, failedBy(d.Code), failure(d.Code, d.Usage), d.Usage, spend.Called{Model: d.Model, Asked: d.Asked})
}

func applyExecuted(s *Session, o *OpenRound, d *Executed) {
	d.Previous = s.last
	d.Visits = int32(s.Visits(d.Transition.To)) + 1
	if c := s.Program.counting(d.Transition.From); c != nil || s.guard != nil {
		next := s.GuardState().Advance(c, stepOf(s, o, d))
		s.guard = &next
	}
	applyReview(s, o, d)
	s.last, s.facts, s.timing = d, s.facts.executed(d), nil
	s.waitedAtMove, s.dormant = s.waited, d.How.Ruling()
	s.Executed++
	s.SinceResumed++
	s.Rejects = 0
	o.closeAsks(s)
	s.State = d.Transition.To
	if s.Status == NeedsHuman {
		s.Status, s.outcome = Running, nil
	}
	owe(s, o)
	*o = OpenRound{refused: o.refused, charged: o.charged, Proposals: o.Proposals[:0], Asks: o.Asks[:0]} // the proposals leave the view, not the log
}

// applyGated counts a step that the guards sent back. What they remember of one
// that they refused is for them to say.
func applyGated(s *Session, o *OpenRound, d *Gated) {
	if d.Verdict.Passed() {
		return
	}
	if step, known := refusedStep(s, o, d); known {
		was := s.GuardState()
		if next := was.Refuse(s.Program.Guards(s.State), step, d.Verdict); next != was {
			s.guard = &next
		}
	}
	if d.Verdict.Status == verdict.Retry {
		s.Rejects++
	}
}

// refusedStep returns the step of a transition that was not executed. What a human
// said is recorded only with an execution: known is false if guards look at it.
func refusedStep(s *Session, o *OpenRound, g *Gated) (step verdict.Step, known bool) {
	if j := o.Verdict; !g.IsHuman && j != nil && j.Decision.Consensus() {
		for _, p := range o.Proposals {
			if p.Arrival == j.Order[j.Decision.Winner] && p.Transition == g.Transition {
				return StepFor(s, g.Transition, p.Reasoning, p.MetaJSON, false, p), true
			}
		}
	}
	return verdict.Step{Transition: g.Transition.Name, FromState: g.Transition.From.Name, State: g.Transition.Target, Human: g.IsHuman}, g.IsHuman && g.Transition.Parameters == nil
}

// stepOf returns an executed transition as the guards count it.
func stepOf(s *Session, o *OpenRound, d *Executed) verdict.Step {
	var winner *specialist.Proposal
	for _, p := range o.Proposals {
		if p.Arrival == d.Arrival {
			winner = p
		}
	}
	return StepFor(s, d.Transition, d.Reasoning, d.MetaJSON, d.How != ByConsensus, winner)
}

// StepFor returns a transition as the guards see it. winner is nil if nobody was
// elected.
func StepFor(s *Session, t *machine.Transition, reasoning string, meta []byte, human bool, winner *specialist.Proposal) verdict.Step {
	step := verdict.Step{
		Transition: t.Name, FromState: t.From.Name, State: t.Target, MetaJSON: meta, Human: human,
		Output: reasoning, HasOutput: true, Canned: canned(winner), Began: s.CreatedAt, Moved: s.CreatedAt,
	}
	if s.last != nil {
		step.Moved = s.last.At
	}
	if s.options != nil {
		step.SessionMeta = s.options.Meta
	}
	if winner != nil {
		fillUsage(&step, winner)
	}
	if t.Parameters != nil {
		step.ToolCalls = append(step.ToolCalls, verdict.ToolCall{Name: t.Name, Args: meta})
	}
	return step
}

// canned reports whether a proposal's reasoning is that of a program, which says
// the same whenever it decides the same: to repeat it is no sign of a loop.
func canned(p *specialist.Proposal) bool {
	switch {
	case p == nil || p.Detail != nil && p.Detail.Model != "":
		return false
	case p.IsHuman:
		return true
	}
	return p.Mode == specialist.Function || p.Mode == specialist.Builtin || p.Mode == specialist.Expression
}

func fillUsage(step *verdict.Step, p *specialist.Proposal) {
	step.TokensIn, step.TokensOut = p.Usage.NumInputTokens, p.Usage.NumOutputTokens
	step.Cost, step.CostGiven = p.Usage.CostUSD, p.Usage.Has(specialist.CostGiven)
	if p.Detail == nil {
		return
	}
	step.Model = p.Detail.Model
	step.ToolCalls = slices.Clip(p.Detail.ToolCalls)
}

func applyResumed(s *Session, o *OpenRound, d *Resumed) {
	s.Rejects, s.SinceResumed = 0, 0
	s.Resumes++
	s.timerFailed(false)
	o.goesOn(s)
	if d.Program != nil {
		s.Program = d.Program
	}
	if d.Cleared && s.guard != nil {
		cleared := s.guard.Clear()
		s.guard = &cleared
	}
	o.Blocked = false
	for i := range o.Asks {
		switch a := &o.Asks[i]; {
		case a.Role == machine.Arbiter, a.Role == machine.Proposer && d.RetryFailed:
			o.take(s, a, resumedFailed, statement{}) // asked again under a new id
		case a.Role == machine.Proposer:
			o.take(s, a, resumed, statement{})
		}
	}
}

// Freeze returns an immutable copy of a session and its round.
func Freeze(s *Session, o *OpenRound) *Session {
	f := *s
	f.Open = nil
	if !o.empty() || o.Blocked || o.shown || len(o.revealed) > 0 {
		open := *o
		open.Proposals = slices.Clone(o.Proposals)
		open.Asks = slices.Clone(o.Asks)
		open.Probes = slices.Clip(o.Probes)
		f.Open = &open
	}
	return &f
}

// Unpaid reports whether a code says that there was no room to ask somebody.
func Unpaid(code string) bool {
	return strings.HasPrefix(code, "budget_") || strings.HasPrefix(code, "quota_")
}
