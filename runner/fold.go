package runner

import (
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// apply brings a session and its round up to the event. It is the only function
// that changes either, live and when a log is read back, so what is stored and
// what is rebuilt cannot differ.
func apply(s *Session, o *openRound, e *Event) {
	s.Sequence++
	s.UpdatedAt = e.At
	switch d := e.Data.(type) {
	case *Created:
		s.Program, s.State, s.CreatedAt = d.Program, d.Program.Machine.Initial(), e.At
		if d.Options.set() {
			options := d.Options
			s.options = &options
		}
	case *RoundOpened:
		applyRound(s, o, d)
	case *Asked:
		for i := range d.Asks {
			chargeLost(s, o, &d.Asks[i])
			o.applyAsk(&d.Asks[i])
		}
		if o.wave == nil {
			o.wave = d.Wave
		}
	case *Proposed:
		applyProposed(s, o, d)
	case *AskFailed:
		applyFailed(s, o, d)
	case *Discarded:
		applyDiscarded(s, o, d)
	case *Probed:
		applyProbed(s, o, d)
	case *Judged:
		o.verdict, o.judged, o.judging = d, max(o.judged, d.Index), false
		if a := o.at(d.Ask); a != nil {
			a.status = askAnswered
		}
		charge(s, o, o.called(d.Ask, d.Usage), d.Model)
	case *Gated:
		applyGated(s, o, d)
	case *Executed:
		applyExecuted(s, o, d)
	case *AwaitsHuman:
		s.Status, s.outcome = NeedsHuman, &Outcome{d.Code, d.Reason, e.At}
		o.draws = d.Draws
	case *Reviewed:
		applyReviewed(s, d, e.At)
	case *Adopted: // it is about the machine: the session is where it stands
	case *Resumed:
		applyResumed(s, o, d)
	case *Ended:
		s.Status, s.outcome = d.Status, &Outcome{d.Code, d.Reason, e.At}
		chargeOpen(s, o, s.State)
	case *Learned: // trust is a fold of its own
		if d.Held != nil {
			s.await(&Review{Kind: SecondLook, Key: s.last.Key(s.ID), State: s.last.Transition.From, Since: e.At, outcome: d.Held})
		}
	}
}

func (o Options) set() bool {
	return o.Meta != nil || o.Seed != 0 || o.DefaultProposer || o.DefaultArbiter || o.Mode != "" || o.Prices != ""
}

func applyRound(s *Session, o *openRound, d *RoundOpened) {
	chargeOpen(s, o, s.State)
	s.Round, s.Attempt, s.State = d.Round, d.Attempt, d.State
	*o = openRound{notices: d.Notices, proposals: o.proposals[:0], asks: o.asks[:0]}
}

func applyProbed(s *Session, o *openRound, d *Probed) {
	if a := o.at(d.Ask); a != nil {
		if a.status = askAnswered; d.Code != "" {
			a.status = askFailed
		}
	}
	o.probes = append(o.probes, d)
	if d.Free || d.Ask == 0 {
		return
	}
	u := d.Usage
	if u == (specialist.Usage{}) {
		u.Given = specialist.CostGiven // it is a call all the same
	}
	chargeFor(s, o, d.Guard, u, guard.Called{Model: d.Model, Asked: d.Asked}.String())
}

func (o *openRound) applyAsk(a *Ask) {
	if a.Role == machine.Arbiter {
		o.judging = true
	}
	if known := o.at(a.Index); known != nil {
		known.Ask = a // taken over, or accepted
		return
	}
	o.asks = append(o.asks, askState{Ask: a})
}

func applyProposed(s *Session, o *openRound, d *Proposed) {
	p := &d.Proposal
	o.arrivals = max(o.arrivals, p.Arrival)
	o.verdict, o.blocked = nil, false
	if p.Replaces != 0 {
		o.proposals = slices.DeleteFunc(o.proposals, func(q *specialist.Proposal) bool { return q.SpecialistID == p.SpecialistID })
	}
	o.proposals = append(o.proposals, p)
	o.chargeArbiter(s)
	o.settle(s, d)
	model := ""
	if p.Detail != nil {
		model = guard.Called{Model: p.Detail.Model, Asked: p.Detail.Asked}.String()
	}
	charge(s, o, o.called(d.Ask, p.Usage), model)
	if s.Status == NeedsHuman {
		s.Status, s.outcome = Running, nil
	}
}

// settle closes the asks that a proposal answers, and an arbiter's that was about
// another set of proposals.
func (o *openRound) settle(s *Session, d *Proposed) {
	if a := o.at(d.Ask); a != nil && d.Ask != 0 && !o.judging {
		a.status = askAnswered
		return
	}
	for i := range o.asks { // an answer from outside settles whatever was asked
		switch a := &o.asks[i]; {
		case a.status != askOpen:
		case a.Role == machine.Arbiter:
			a.status = askCancelled
		case a.SpecialistID == d.SpecialistID:
			a.status = askAnswered
			a.chargeAnswered(s, o, d)
		}
	}
	o.judging = false
}

func applyFailed(s *Session, o *openRound, d *AskFailed) {
	if a := o.at(d.Ask); a != nil {
		a.status, a.unpaid = askFailed, unpaid(d.Code)
		if d.Code == CodeCancelled {
			a.status = askCancelled
		}
	}
	if d.Role == machine.Arbiter {
		o.blocked, o.judging = true, false
	}
	u := o.called(d.Ask, d.Usage)
	if a := o.at(d.Ask); a != nil {
		a.charged = uncorrected(d, u)
	}
	charge(s, o, u, guard.Called{Model: d.Model, Asked: d.Asked}.String())
}

func applyDiscarded(s *Session, o *openRound, d *Discarded) {
	counted := d.Ask != 0 && d.Code == CodeLate // its round charged the call
	if a := o.at(d.Ask); a != nil && d.Round == s.Round && d.Attempt == s.Attempt {
		if a.status == askOpen {
			a.status = askCancelled
		}
		counted = counted || a.charged != specialist.Usage{}
		if d.Usage != (specialist.Usage{}) {
			a.charged = specialist.Usage{}
		}
	}
	if d.Usage == (specialist.Usage{}) {
		return
	}
	next := guard.State{}
	if s.guard != nil {
		next = *s.guard
	}
	model := guard.Called{Model: d.Model, Asked: d.Asked}.String()
	charged := specialist.Usage{CostUSD: d.Charged, NumInputTokens: d.ChargedIn, NumOutputTokens: d.ChargedOut}
	switch {
	case !counted:
		next = next.Charge(d.Usage, model)
	case guardsOwn(d.SpecialistID):
		next = next.CorrectProbe(charged, d.Usage)
	default:
		next = next.Correct(charged, d.Usage)
	}
	s.guard = &next
}

func applyExecuted(s *Session, o *openRound, d *Executed) {
	d.previous = s.last
	d.visits = int32(s.visits(d.Transition.To)) + 1
	if c := s.Program.counting(d.Transition.From); c != nil || s.guard != nil {
		next := guard.State{}
		if s.guard != nil {
			next = *s.guard
		}
		next = next.Advance(c, stepOf(s, o, d))
		s.guard = &next
	}
	applyReview(s, o, d)
	s.last = d
	s.Executed++
	s.Rejects = 0
	s.State = d.Transition.To
	if s.Status == NeedsHuman {
		s.Status, s.outcome = Running, nil
	}
	chargeOpen(s, o, d.Transition.From)
	*o = openRound{proposals: o.proposals[:0], asks: o.asks[:0]} // the proposals leave the view, not the log
}

// applyGated counts a step that the guards sent back. What they remember of one
// that they refused is for them to say.
func applyGated(s *Session, o *openRound, d *Gated) {
	if d.Verdict.Passed() {
		return
	}
	if step, known := refusedStep(s, o, d); known {
		was := guard.State{}
		if s.guard != nil {
			was = *s.guard
		}
		if next := was.Refuse(s.Program.Guards(s.State), step, d.Verdict); next != was {
			s.guard = &next
		}
	}
	if d.Verdict.Status == guard.Retry {
		s.Rejects++
	}
}

// refusedStep returns the step of a transition that was not executed. What a human
// said is recorded only with an execution: known is false if guards look at it.
func refusedStep(s *Session, o *openRound, g *Gated) (step guard.Step, known bool) {
	if j := o.verdict; !g.IsHuman && j != nil && j.Decision.Consensus() {
		for _, p := range o.proposals {
			if p.Arrival == j.Order[j.Decision.Winner] {
				return stepFor(s, g.Transition, p.Reasoning, p.MetaJSON, false, p), true
			}
		}
	}
	return guard.Step{Transition: g.Transition.Name, FromState: g.Transition.From.Name, State: g.Transition.Target, Human: g.IsHuman}, g.IsHuman && g.Transition.Parameters == nil
}

// stepOf returns an executed transition as the guards count it.
func stepOf(s *Session, o *openRound, d *Executed) guard.Step {
	var winner *specialist.Proposal
	for _, p := range o.proposals {
		if p.Arrival == d.Arrival {
			winner = p
		}
	}
	return stepFor(s, d.Transition, d.Reasoning, d.MetaJSON, d.How != ByConsensus, winner)
}

// stepFor returns a transition as the guards see it. winner is nil if nobody was
// elected.
func stepFor(s *Session, t *machine.Transition, reasoning string, meta []byte, human bool, winner *specialist.Proposal) guard.Step {
	step := guard.Step{
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
		step.ToolCalls = append(step.ToolCalls, guard.ToolCall{Name: t.Name, Args: meta})
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

func fillUsage(step *guard.Step, p *specialist.Proposal) {
	step.TokensIn, step.TokensOut = p.Usage.NumInputTokens, p.Usage.NumOutputTokens
	step.Cost, step.CostGiven = p.Usage.CostUSD, p.Usage.Has(specialist.CostGiven)
	if p.Detail == nil {
		return
	}
	step.Model = p.Detail.Model
	step.ToolCalls = slices.Clip(p.Detail.ToolCalls)
}

func applyResumed(s *Session, o *openRound, d *Resumed) {
	s.Status, s.outcome, s.Rejects = Running, nil, 0
	if d.program != nil {
		s.Program = d.program
	}
	if d.Cleared && s.guard != nil {
		cleared := s.guard.Clear()
		s.guard = &cleared
	}
	o.blocked = false
	keep := o.asks[:0]
	for _, a := range o.asks {
		failedArbiter := a.Role == machine.Arbiter && a.status == askFailed
		failedProposer := a.Role == machine.Proposer && a.status == askFailed && (d.RetryFailed || a.unpaid)
		if failedArbiter || failedProposer {
			a.status = askCancelled // asked again under a new id
		}
		keep = append(keep, a)
	}
	o.asks = keep
}

// freeze returns an immutable copy of a session and its round.
func freeze(s *Session, o *openRound) *Session {
	f := *s
	f.open = nil
	if !o.empty() || o.blocked {
		open := *o
		open.proposals = slices.Clone(o.proposals)
		open.asks = slices.Clone(o.asks)
		open.probes = slices.Clip(o.probes)
		f.open = &open
	}
	return &f
}

// margin returns by how much the leading transition is ahead by weight, in
// billionths of all weight: what a decision record shows for every strategy.
func margin(r *arbiter.Round) exact.Billionths {
	var room [8]arbiter.Score
	scores := r.Tally(room[:0])
	leader, second := arbiter.Leaders(scores, func(s arbiter.Score) exact.Billionths { return s.Sum })
	if leader < 0 {
		return 0
	}
	var total exact.Billionths
	for i := range r.Votes {
		total = exact.Billionths(exact.AddSat(int64(total), int64(r.Votes[i].Weight)))
	}
	lead := scores[leader].Sum
	if second >= 0 {
		lead -= scores[second].Sum
	}
	return exact.Share(lead, total)
}
