package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// From what a specialist said to what the log says of it. call asks one proposer and
// turns errors, panics and deadlines into the code of a failure; a response keeps all of
// it until a commit is durable, and is recorded anew after a lost race. recordAnswer is
// the one way into a round: it tests whether the answer still counts (Session.Refuses),
// prices it, has legal check it against the state, and records a proposal, a failure, or
// that the answer comes later.
//
// No proposal enters a round without having passed legal. What does not count any more
// is recorded as discarded, with its cost: whoever asked has paid. An answer of a
// service that names no cost is charged as estimated.

// A response is what came of one ask, or was handed in from outside, before it is
// durable. It survives lost races: it is recorded again in the next commit.
type response struct {
	key      specialist.RoundKey // the round it is for
	id       string              // of the specialist
	human    bool
	actor    *session.Actor // who handed it in; nil if it was asked for, or that is not said
	seen     string         // the digest of the question that was seen; "" if that is not said
	source   specialist.Source
	ask      int32              // 0 for local asks and submissions
	repeat   int32              // of the request that it answers
	local    bool               // its ask is recorded together with it
	estimate *session.RemoteAsk // what it was expected to need; nil if nobody said
	wave     *session.Wave      // that begins with it; nil for others

	answer   specialist.Answer
	code     string // "" unless it failed
	message  string
	accepted bool // nothing yet: the answer comes later
	unsaid   bool // an answer came that does not say what it cost
	givenUp  bool // the step was ended before an answer came: the ask stays open
	until    specialist.Time
}

// usage returns what the answer cost: as it says, or, if none came or it cannot be
// read, so that nobody will ever say, as was expected.
func (h *response) usage() specialist.Usage {
	if h.answer.Usage == (specialist.Usage{}) && (h.code == session.CodeCancelled || h.code == session.CodeTimeout || h.unsaid) {
		return h.estimate.Expected()
	}
	return h.answer.Usage
}

// priced returns what the answer cost, at the prices of c, which may be nil. An answer of
// a service that names no cost, and each call of a model that has no price, costs what
// the machine thinks that one costs: nobody will ever say more, and a limit of dollars
// that counted nothing would never end.
func (r *Runner) priced(c *guard.Config, h *response, u specialist.Usage) specialist.Usage {
	said, of := u.Has(specialist.CostGiven), spend.Called{Model: h.answer.Model, Asked: h.answer.Asked, Answered: h.answer.Answered}
	u = r.price(c, u, of)
	if said || h.estimate == nil {
		return u
	}
	switch {
	case h.source == specialist.Webhook && h.code == "" && !h.accepted:
		return unnamed(u, h.estimate.Estimate)
	case h.source != specialist.Model || h.estimate.Estimate == 0 || u.Billed() == 0:
		return u
	}
	if _, known := r.prices(c).Find(of.Answered, of.Model, of.Asked); known || c != nil && c.Cost.OnUnknownModel == "estimate_max" {
		return u
	}
	u.Estimated = true
	return u.WithCost(h.estimate.Estimate.Times(u.Billed()))
}

// unnamed returns what the answer of a service is charged: as it says, or, if it names no
// cost, as estimated. One that is free says 0, and one of which nothing was sent is no
// call.
func unnamed(u specialist.Usage, estimate exact.Money) specialist.Usage {
	if estimate == 0 || u.Has(specialist.CostGiven) || u.Made() == 0 {
		return u
	}
	u.Estimated = true
	return u.WithCost(estimate)
}

func (t *assessment) priced(h *response, u specialist.Usage) specialist.Usage {
	return t.r.priced(t.now.Program.Guards(t.now.State), h, u)
}

// Limits of what an answer may carry.
const (
	maxReasoning = 64 << 10
	maxMetaJSON  = 64 << 10
	maxMessage   = 2 << 10
)

// recordAnswer checks one answer against the session as it is now and records what
// becomes of it: a proposal, a failure, or a late answer that counts for
// nothing.
func (w *engine) recordAnswer(h *response) {
	if code := w.now.Refuses(&w.open, h.key, h.ask, h.repeat); code != "" {
		w.discard(h, code)
		return
	}
	if h.ask != 0 && h.accepted {
		w.accept(w.open.At(h.ask), h.until)
		return
	}
	ask := h.ask
	switch {
	case h.local:
		ask = w.recordLocal(h)
	case ask == 0:
		w.promised(h)
	}
	h.answer.Usage = w.priced(h, h.usage())
	var p *session.Proposed
	if h.code == "" {
		var err error
		if p, err = w.proposal(h, ask); err != nil {
			h.code, h.message = session.CodeIllegal, err.Error()
		}
	}
	if h.code != "" {
		w.emit(&session.AskFailed{SpecialistID: h.id, Ask: ask, Role: machine.Proposer, Code: h.code, Message: specialist.Clip(h.message, maxMessage), Usage: h.answer.Usage.Clean(), Model: h.answer.Model, Asked: h.answer.Asked})
		return
	}
	w.emit(p)
}

// promised charges a proposal from outside that names no cost as the ask was estimated
// that it answers: one whose service said that it would answer later.
func (t *assessment) promised(h *response) {
	if a := t.open.Ask(h.id, machine.Proposer); a != nil && a.Status == session.AskStatusAccepted {
		h.answer.Usage = unnamed(t.priced(h, h.answer.Usage), a.Remote.Estimate)
	}
}

// recordLocal records the ask of a local function; those of one commit share an
// event, but for waves, which begin one each.
func (w *engine) recordLocal(h *response) int32 {
	a := session.Ask{SpecialistID: h.id, Index: w.nextAsk(), Role: machine.Proposer, Source: h.source, Shadow: w.shadows(h.id)}
	if w.shared == nil || h.wave != nil {
		w.shared = w.newAsked()
		w.shared.Wave = h.wave
		w.shared.Asks = append(w.shared.Asks, a)
		w.emit(w.shared)
		return a.Index
	}
	w.shared.Asks = append(w.shared.Asks, a)
	w.open.ApplyAsk(&w.now, &w.shared.Asks[len(w.shared.Asks)-1])
	return a.Index
}

func (t *commit) nextAsk() int32 {
	if n := len(t.open.Asks); n > 0 {
		return t.open.Asks[n-1].Index + 1
	}
	return 1
}

// accept notes that an ask will be answered later.
func (t *commit) accept(a *session.AskState, until specialist.Time) {
	later := *a.Remote
	later.Accepted, later.Deadline, later.Owner = true, until, ""
	again := *a.Ask
	again.Remote = &later
	t.emit(&session.Asked{Asks: []session.Ask{again}})
}

// discard records an answer that came too late, with its cost.
func (w *engine) discard(h *response, code string) {
	if h.accepted && !w.answered(h, code) {
		return
	}
	d := &session.Discarded{
		SpecialistID: h.id, Round: h.key.Round, Attempt: h.key.Attempt, Ask: h.ask, Code: code,
		TransitionName: specialist.Clip(h.answer.TransitionName, 128), Usage: w.priced(h, h.answer.Usage.Clean()), Model: h.answer.Model, Asked: h.answer.Asked,
	}
	if h.ask != 0 {
		d.Repeat = h.repeat
		d.Correct(w.now.Charged(&w.open, h.key, h.ask, h.repeat))
	}
	w.emit(d)
}

// answered reports whether an ask that was accepted has its answer already, as a
// proposal from outside, which says more of the cost than was assumed. That was charged
// beside the ask; what it does not say costs what was estimated.
func (t *round) answered(h *response, code string) bool {
	a, p := t.open.At(h.ask), t.open.Proposal(h.id)
	if code != session.CodeSuperseded || a == nil || p == nil || a.Status != session.AskStatusAnswered || !a.Assumed(h.repeat) {
		return false
	}
	u := specialist.Usage{}
	if !p.Usage.Has(specialist.CostGiven) {
		u = unnamed(u, a.Remote.Estimate)
	}
	if p.Usage != (specialist.Usage{}) { // it is the call
		u = u.WithCalls(0, 0)
	}
	h.answer.Usage = u.WithCost(u.CostUSD)
	return true
}

// proposal returns the proposal an answer makes, or says why it is not legal.
func (t *commit) proposal(h *response, ask int32) (*session.Proposed, error) {
	legal, err := legal(&t.now, &h.answer, h.source.VotesOnly())
	if err != nil {
		return nil, err
	}
	p := t.newProposed()
	*p = session.Proposed{Ask: ask, Actor: h.actor, QuestionDigest: h.seen, Proposal: specialist.Proposal{
		SpecialistID: h.id, Transition: legal, Reasoning: h.answer.Reasoning, MetaJSON: h.answer.MetaJSON,
		Usage: h.answer.Usage, CreatedAt: t.at, Arrival: t.open.Arrivals + 1, IsHuman: h.human, Mode: h.source,
	}}
	if old := t.open.Proposal(h.id); old != nil {
		p.Replaces = old.Arrival
	}
	if h.ask != 0 || h.answer.Model != "" || len(h.answer.ToolCalls) > 0 {
		p.Detail = &specialist.Detail{Model: h.answer.Model, Asked: h.answer.Asked, ToolCalls: h.answer.ToolCalls, OptionOrder: h.answer.OptionOrder}
		if h.ask != 0 {
			p.Detail.AskID = h.key.AskID(h.ask)
		}
	}
	return p, nil
}

// allowed checks an answer against the state and returns the transition it
// proposes. It brings the answer's metaJson into its stored form. Nothing
// reaches a round without having passed here.
func allowed(s *session.Session, a *specialist.Answer) (*machine.Transition, error) {
	return legal(s, a, false)
}

// legal is allowed; with bare an answer may leave out what the parameters of its transition
// ask for: it is a vote, and somebody else's payload is executed.
func legal(s *session.Session, a *specialist.Answer, bare bool) (*machine.Transition, error) {
	t := s.State.Transition(a.TransitionName)
	if t == nil {
		return nil, refuse(ErrIllegal, session.CodeIllegal, "Invalid transition %q from state %q", specialist.Clip(a.TransitionName, 128), s.State.Name)
	}
	if why := s.WhyClosed(t); why != "" {
		return nil, refuse(ErrIllegal, session.CodeClosed, "%s", why)
	}
	if a.ToState != "" && a.ToState != t.Target {
		return nil, refuse(ErrIllegal, session.CodeIllegal, "State mismatch: transition %q should go to %q, not %q", t.Name, t.Target, specialist.Clip(a.ToState, 128))
	}
	if len(a.Reasoning) > maxReasoning {
		return nil, refuse(ErrIllegal, session.CodeIllegal, "reasoning is larger than %d bytes", maxReasoning)
	}
	if u := a.Usage; u != (specialist.Usage{}) && (u.CostUSD < 0 || u.LatencyMsec < 0 || u.NumInputTokens < 0 || u.NumOutputTokens < 0 || u.Calls < 0 || u.Unbilled < 0) {
		return nil, refuse(ErrIllegal, session.CodeIllegal, "cost, latency and tokens must not be negative")
	}
	if len(a.MetaJSON) > 0 {
		if err := legalMeta(t, a); err != nil {
			return nil, err
		}
	} else {
		a.MetaJSON = nil
	}
	if a.MetaJSON == nil && t.NeedsPayload && !bare {
		return nil, refuse(ErrIllegal, session.CodeIllegal, "transition %q needs metaJson that satisfies its parameters: %v", t.Name, t.Parameters.Validate(nil))
	}
	return t, legalCalls(a.ToolCalls)
}

func legalMeta(t *machine.Transition, a *specialist.Answer) error {
	if len(a.MetaJSON) > maxMetaJSON {
		return refuse(ErrIllegal, session.CodeIllegal, "metaJson is larger than %d bytes", maxMetaJSON)
	}
	tidy, err := jsontext.Tidy(a.MetaJSON)
	if err != nil {
		return refuse(ErrIllegal, session.CodeIllegal, "metaJson is not one JSON value: %v", err)
	}
	a.MetaJSON = tidy
	if string(tidy) == "null" {
		a.MetaJSON = nil
		return nil
	}
	if t.Parameters != nil {
		if err := t.Parameters.Validate(tidy); err != nil {
			return refuse(ErrIllegal, session.CodeIllegal, "metaJson does not satisfy the parameters of transition %q: %v", t.Name, err)
		}
	}
	return nil
}

func legalCalls(calls []specialist.ToolCall) error {
	for i := range calls {
		for _, v := range []struct {
			what  string
			value *json.RawMessage
		}{{"arguments", &calls[i].Args}, {"result", &calls[i].Result}} {
			if *v.value == nil {
				continue
			}
			tidy, err := jsontext.Tidy(*v.value)
			if err != nil || len(tidy) > maxMetaJSON {
				return refuse(ErrIllegal, session.CodeIllegal, "%s of tool call %q are not one JSON value of at most %d bytes", v.what, specialist.Clip(calls[i].Name, 128), maxMetaJSON)
			}
			*v.value = tidy
		}
	}
	return nil
}

// call asks one proposer and never panics. The answer in h may still be illegal. Who is
// outside this process is asked on a goroutine that may end; a Go function is called as any
// other is: if it ends its goroutine, that of the step has ended.
func call(ctx context.Context, m *planning.Member, q *specialist.Question, h *response) {
	h.key, h.id, h.source, h.local = q.Key, m.SpecialistID, m.Source, m.Local()
	if m.Estimate > 0 {
		h.estimate = &session.RemoteAsk{Estimate: m.Estimate}
	}
	if m.Local() {
		h.say(ctx, m, q)
	} else {
		h.sayApart(ctx, m, *q)
	}
}

// sayApart is say on a goroutine that may end.
func (h *response) sayApart(ctx context.Context, m *planning.Member, q specialist.Question) {
	if !apart(func() { h.say(ctx, m, &q) }) {
		h.code, h.message = session.CodePanic, errGone.Error()
	}
}

// say has a proposer say something. A panic is a failure.
func (h *response) say(ctx context.Context, m *planning.Member, q *specialist.Question) {
	defer func() {
		if p := recover(); p != nil {
			h.code, h.message = session.CodePanic, fmt.Sprintf("panic: %v", p)
		}
	}()
	q.Self = m.SpecialistID
	var err error
	if h.answer, err = m.Proposer.Propose(ctx, *q); err != nil {
		h.fail(ctx, err)
	}
}

// fail says what an error of a specialist means.
func (h *response) fail(ctx context.Context, err error) {
	h.message, h.unsaid = err.Error(), errors.Is(err, specialist.ErrUncounted)
	switch {
	case errors.Is(err, specialist.ErrAccepted):
		h.accepted, h.message = true, ""
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), specialist.ErrDecided):
		h.code, h.message = session.CodeCancelled, "the round was decided without it"
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		h.code, h.message = session.CodeTimeout, "no answer in time"
	default:
		h.code = session.CodeAskError
	}
}
