package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/deadline"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// From the votes of a round to its verdict. Each time before somebody is asked, settled
// says whether those who are still out could change the winner. When nobody more is to
// be asked, verdict returns the verdict that stands, or has the arbiter decide: the
// budget lets it be asked (unpaid), the arbiter chooses, Floor leaves to a human what
// the quorum or an irreversible transition does not let a program decide, and
// recordVerdict puts the result into the commit. Where a champion decides alone the
// arbiter is not asked.
//
// An arbiter outside this process is consulted: its ask is durable before it is sent, so
// a crash never pays for it unseen, and what it said outlives a lost race
// (pendingVerdict). A verdict never counts for proposals that have changed since it was
// asked for; then only its cost is recorded. An arbiter that fails, or chooses what
// nobody proposed, elects nobody: the round goes to a human.

// settled reports whether the round has a winner that nobody who has not
// answered could change, be it by failing.
func (w *engine) settled(ctx context.Context) (bool, error) {
	stopper, ok := w.by.Arbiter.(arbiter.Stopper)
	if !ok || len(w.open.Proposals) == 0 {
		return false, nil
	}
	votes, err := w.standings(ctx, w.by)
	if err != nil {
		return false, err
	}
	open := w.openStandings()
	if len(open) == 0 {
		return false, nil // complete: it is decided anyway
	}
	round, err := w.arbiterRound(ctx, votes, w.by)
	if err != nil || !stopper.Settled(round, open) {
		return false, err
	}
	enough := w.quorum(w.by).Reached()
	if enough && !round.LacksPayload() {
		return true, nil
	}
	d, err := w.by.Arbiter.Decide(ctx, round)
	if err != nil || !d.Consensus() {
		return false, err
	}
	won := round.Votes[d.Winner]
	return won.IsHuman || enough && !won.LacksPayload(), nil // whose payload is executed may depend on those who are still out
}

// openStandings returns the standing of everybody who may still answer in this
// round.
func (t *assessment) openStandings() []arbiter.Standing {
	members := t.members()
	open, have := t.outstanding[:0], t.open.Finder()
	for i := range members {
		m := &members[i]
		if !t.asks(m) || have.Proposal(m.SpecialistID) != nil {
			continue
		}
		if a := have.Ask(m.SpecialistID); a != nil && a.Status.Failed() {
			continue
		}
		open = append(open, arbiter.Standing{Weight: t.weights[i], Rank: m.Rank})
	}
	t.outstanding = open
	return open
}

// verdict returns the arbiter's verdict on the present proposals, asking for it
// if nobody has yet. It is nil if the arbiter failed, which is then recorded, or
// is being asked by another process. consulted says that an arbiter outside this process
// was asked: then its answer is in a commit that was begun since, and all is to be looked
// at anew.
func (w *engine) verdict(ctx context.Context) (v *session.Judged, consulted bool, err error) {
	if w.open.Blocked || w.stands(w.by) {
		return w.open.Verdict, false, nil
	}
	votes, err := w.standings(ctx, w.by)
	if err != nil {
		return nil, false, err
	}
	if len(votes) > 0 {
		if refused, err := w.unpaid(ctx); refused || err != nil {
			return nil, false, err
		}
		if !w.by.Local() {
			return w.consult(ctx)
		}
	}
	if w.championship.alone {
		d, round, ok, err := w.alone(ctx)
		if err != nil {
			return nil, false, err
		}
		if ok {
			w.recordVerdict(w.by, round, d, nil, 0)
			return w.open.Verdict, false, nil
		}
	}
	round, err := w.arbiterRound(ctx, votes, w.by)
	if err != nil {
		return nil, false, err
	}
	w.tickets[w.by.SpecialistID].Start()
	d, err := decideRound(ctx, w.by, round)
	spent, _ := w.expense(w.by, d, err)
	w.paid(w.by.SpecialistID, spent)
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	if w.championship.held && d.Consensus() {
		d = arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.Held, Subject: w.now.State.Name, Judgement: d.Judgement}
	}
	w.recordVerdict(w.by, round, d, err, 0)
	return w.open.Verdict, false, nil
}

// recordVerdict records a verdict, or why there is none.
func (w *engine) recordVerdict(by *planning.Member, round *arbiter.Round, d arbiter.Decision, err error, ask int32) {
	usage, model := w.expense(by, d, err)
	if err != nil {
		code := session.CodeArbiterFailed
		if errors.Is(err, arbiter.ErrUnknownWinner) {
			code = session.CodeUnknownWinner
		}
		w.emit(&session.AskFailed{SpecialistID: by.SpecialistID, Ask: ask, Role: machine.Arbiter, Code: code, Message: specialist.Clip(err.Error(), maxMessage), Usage: usage, Model: model})
		return
	}
	round.Quorum = w.counted(by)
	d = d.Floor(round)
	j := w.newJudged(len(round.Votes))
	if e := round.Evidence; e != nil {
		j.Evidence = judgedBy(e, round)
	}
	j.Index, j.Ask, j.ArbiterID, j.Strategy, j.Decision, j.Threshold = w.open.Verdicts+1, ask, by.SpecialistID, by.Strategy, d, round.Threshold
	for i := range round.Votes {
		j.Order[i], j.Weights[i] = round.Votes[i].Arrival, round.Votes[i].Weight
	}
	if d.HasMargin {
		j.Margin = d.Margin
	} else {
		j.Margin = margin(round)
	}
	j.Usage, j.Model = usage, model
	w.emit(j)
}

// expense returns what an arbiter's answer cost. One that never came, cannot be read, or
// is that of a service and names no cost, costs what was expected: nobody will ever say.
func (t *assessment) expense(by *planning.Member, d arbiter.Decision, err error) (u specialist.Usage, model string) {
	if d.Expense != nil {
		u, model = d.Expense.Usage.Clean(), d.Expense.Model
	}
	expected, _ := t.estimateOf(by)
	if err != nil && u == (specialist.Usage{}) && expected > 0 && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, specialist.ErrUncounted)) {
		u = specialist.Usage{Estimated: true}.WithCost(expected)
	}
	asked := d.Rule != arbiter.NoProposals // of nothing nobody is asked
	if u = t.price(u, spend.Called{Model: model}); err == nil && asked && by.Webhook() {
		u = unnamed(u, expected)
	}
	return u, model
}

// unpaid reports whether the budget does not let the arbiter be asked, and
// records what follows: the session stops, or, if others only hold the last of it
// for now, the arbiter has failed and can be asked again.
func (w *engine) unpaid(ctx context.Context) (bool, error) {
	n := w.need(w.by)
	need := n.first
	if a := w.open.Ask(w.by.SpecialistID, machine.Arbiter); a != nil && a.Status.Pending() {
		return false, w.keep(ctx, w.by.SpecialistID, need) // what it costs is held already
	}
	refused := w.unpriced(n)
	if refused == nil {
		refused = w.budget().Admit(w.now.Spent(), w.held(), need)
	}
	if refused == nil {
		var err error
		if refused, err = w.take(ctx, w.by.SpecialistID, need); err != nil {
			return false, err
		}
	}
	switch {
	case refused == nil:
		return false, nil
	case w.looking:
		return true, refuse(nil, refused.Code, "%s", refused.Reason().Message)
	case refused.Class() == verdict.Abort:
		w.emit(&session.Ended{Status: session.Stopped, Code: refused.Code, Reason: refused.Reason().Message})
	default:
		w.emit(&session.AskFailed{SpecialistID: w.by.SpecialistID, Ask: 0, Role: machine.Arbiter, Code: refused.Code, Message: refused.Reason().Message})
	}
	return true, nil
}

func judgedBy(e *arbiter.Evidence, round *arbiter.Round) *session.JudgedBy {
	by := &session.JudgedBy{Place: e.Place, PolicyDigest: e.Question.PolicyDigest, Versions: make([]string, len(round.Votes)),
		Partial: e.Question.Partial, Stop: e.Question.Stop}
	for i := range round.Votes {
		by.Versions[i] = round.Votes[i].Version
	}
	return by
}

// decideRound asks an arbiter and checks its answer. A round without proposals
// is no question: only built-in arbiters have words for it.
func decideRound(ctx context.Context, by *planning.Member, round *arbiter.Round) (d arbiter.Decision, err error) {
	if len(round.Votes) == 0 && by.Source != specialist.Builtin {
		return arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.NoProposals}, nil
	}
	if by.Source == specialist.Function {
		limited := deadline.New(ctx, by.Timeout)
		defer limited.Release()
		ctx = limited
	}
	if d, err = decideBy(ctx, by, round); err != nil {
		return d, err
	}
	err = d.Check(round)
	if d.Rule == arbiter.Custom && d.Text == "" {
		d.Text = by.Strategy
	}
	d.Text = specialist.Clip(d.Text, maxReasoning)
	return d, err
}

// decideBy has an arbiter decide, one outside this process on a goroutine that may end.
func decideBy(ctx context.Context, m *planning.Member, round *arbiter.Round) (d arbiter.Decision, err error) {
	if m.Local() {
		return judgeBy(ctx, m, round)
	}
	return decideApart(ctx, m, round)
}

func decideApart(ctx context.Context, m *planning.Member, round *arbiter.Round) (d arbiter.Decision, err error) {
	if !apart(func() { d, err = judgeBy(ctx, m, round) }) {
		return arbiter.Decision{}, fmt.Errorf("panic: %w", errGone)
	}
	return d, err
}

// judgeBy has an arbiter decide. A panic is an error.
func judgeBy(ctx context.Context, m *planning.Member, round *arbiter.Round) (d arbiter.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			d, err = arbiter.Decision{}, fmt.Errorf("panic: %v", p)
		}
	}()
	return m.Arbiter.Decide(ctx, round)
}

// consult asks an arbiter outside this process. The ask is recorded before
// it is sent; what was gathered so far becomes durable with it.
func (w *engine) consult(ctx context.Context) (v *session.Judged, consulted bool, err error) {
	if a := w.open.Ask(w.by.SpecialistID, machine.Arbiter); a != nil && a.Status.Pending() {
		if out, err := w.out(ctx, a); out || err != nil {
			return nil, false, err
		}
	}
	requests, err := w.recordAsks(ctx, []*planning.Member{w.by})
	if err != nil {
		return nil, false, err
	}
	if err := w.save(ctx); err != nil {
		return nil, false, err
	}
	key := askKey{w.s.Key(), requests[0].index}
	w.r.setInflight(key, true)
	defer w.r.setInflight(key, false)
	p := &pendingVerdict{key: key, estimate: requests[0].estimate}
	sent := false
	p.round, p.decision, sent, p.err = w.askArbiter(ctx, requests[0])
	if ctx.Err() != nil {
		return nil, false, ctx.Err() // still open: the next step repeats it
	}
	if sent {
		spent, _ := w.expense(w.by, p.decision, p.err)
		w.paid(w.by.SpecialistID, spent)
	}
	w.pending = p
	if err := w.begin(ctx); err != nil {
		return nil, false, err
	}
	return w.open.Verdict, true, nil
}

// A pendingVerdict is what an arbiter outside this process said, before it is
// durable. It outlives a lost race, so that nobody is asked twice.
type pendingVerdict struct {
	key      askKey
	estimate *session.RemoteAsk
	round    *arbiter.Round
	decision arbiter.Decision
	err      error
}

// recordPending records a verdict unless the proposals it is about have changed
// since.
func (w *engine) recordPending(p *pendingVerdict, by *planning.Member) {
	code := w.now.Refuses(&w.open, p.key.round, p.key.index, p.estimate.Repeat)
	if code == "" && w.now.Status != session.Running {
		code = session.CodeSuperseded
	}
	if code != "" {
		usage, model := w.expense(by, p.decision, p.err)
		d := &session.Discarded{SpecialistID: by.SpecialistID, Round: p.key.round.Round, Attempt: p.key.round.Attempt, Ask: p.key.index, Repeat: p.estimate.Repeat,
			Code: code, Usage: usage, Model: model}
		d.Correct(w.now.Charged(&w.open, p.key.round, d.Ask, d.Repeat))
		w.emit(d)
		return
	}
	w.recordVerdict(by, p.round, p.decision, p.err, p.key.index)
}

// arbiterOut reports whether somebody else is asking the arbiter.
func (w *engine) arbiterOut() bool {
	a := w.open.Ask(w.by.SpecialistID, machine.Arbiter)
	return a != nil && a.Status.Pending()
}

// arbiterFailure says why there is no verdict.
func (t *commit) arbiterFailure(by *planning.Member) string {
	for i := len(t.events) - 1; i >= 0; i-- {
		f, ok := t.events[i].Data.(*session.AskFailed)
		switch {
		case t.now.Status == session.Stopped:
			return t.now.Outcome().Reason
		case !ok || f.Role != machine.Arbiter:
		case f.Code == session.CodeUnknownWinner:
			return f.Message
		default:
			return fmt.Sprintf("Arbiter %s failed: %s", by.SpecialistID, f.Message)
		}
	}
	return fmt.Sprintf("Arbiter %s failed", by.SpecialistID)
}

// askArbiter puts the durable round to the arbiter, unless ctx is done before it is sent.
func (w *engine) askArbiter(ctx context.Context, req request) (round *arbiter.Round, d arbiter.Decision, sent bool, err error) {
	t := w.r.look(w.plan, w.s)
	votes, err := t.standings(ctx, w.by)
	if err != nil {
		return nil, d, false, err
	}
	round, err = t.arbiterRound(ctx, votes, w.by)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, d, false, err
	}
	round.Ask = &req.ask
	ctx, cancel := context.WithTimeout(specialist.WithCaller(ctx, req.caller), w.by.Timeout)
	defer cancel()
	w.tickets[w.by.SpecialistID].Start()
	d, err = decideRound(ctx, w.by, round)
	return round, d, true, err
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
