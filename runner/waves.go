package runner

import (
	"cmp"
	"context"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Asking in waves: mode sequential. Under bayes the ledger says whom to ask next
// and when to stop; what it chose by goes into the log with the first ask of the
// wave. Other arbiters have the cheapest asked first.

// exploration is the share of rounds in which the order is drawn.
const exploration = exact.One / 20

// The reasons to ask everyone at once.
const (
	WhileCalibrating session.Everyone = "calibrating" // no tau is established, or a human has sent the state back
	NoSaving         session.Everyone = "no_saving"   // the panel is weak or correlated: asking one after the other saves nothing
)

// wave returns who of the due is asked together: everybody, or in mode sequential
// the next few. It returns nobody if asking is over, which t.stop then says, or an
// answer of the wave before is still out.
func (w *engine) wave(ctx context.Context, due []*planning.Member) ([]*planning.Member, error) {
	w.stop, w.chosen = "", nil
	switch {
	case w.mode() != machine.Sequential || w.championship.champion != "":
		return due, nil
	case w.externalOut():
		return nil, nil
	case w.by.ByBayes():
		return w.informative(ctx, due)
	}
	ask, err := w.cheapest(ctx, due)
	return w.withRequired(ask, due), err
}

// withRequired adds to a wave those of the due without whose answer nothing is
// decided: they are asked with the first.
func (w *engine) withRequired(ask, due []*planning.Member) []*planning.Member {
	ask = slices.Clip(ask)
	for _, m := range due {
		if m.Required && !slices.Contains(ask, m) {
			ask = append(ask, m)
		}
	}
	return ask
}

// cheapest returns the next few by cost. A wave that is as large as could decide
// the round ends where the arbiter would be settled, if all of it said the same.
func (w *engine) cheapest(ctx context.Context, due []*planning.Member) ([]*planning.Member, error) {
	slices.SortStableFunc(due, func(a, b *planning.Member) int { return cmp.Compare(a.Estimate, b.Estimate) })
	if most := w.now.State.Solicit.Wave; most != machine.AutoWave {
		return due[:min(len(due), most)], nil
	}
	stopper, ok := w.by.Arbiter.(arbiter.Stopper)
	if !ok {
		return due, nil
	}
	votes, err := w.standings(ctx, w.by)
	if err != nil {
		return nil, err
	}
	round, err := w.arbiterRound(ctx, slices.Clone(votes), w.by)
	if err != nil {
		return nil, err
	}
	for n := 1; n < len(due); n++ {
		if w.enough(due[:n]) && w.couldSettle(stopper, *round, due[:n], due[n:]) {
			return due[:n], nil
		}
	}
	return due, nil
}

// enough reports whether the quorum would be reached if all of a wave, and those who
// are required, answered.
func (w *engine) enough(wave []*planning.Member) bool {
	wave = w.withRequired(wave, w.dueNow)
	q := w.quorumWith(w.by, func(m *planning.Member) bool { return slices.Contains(wave, m) })
	return q.Answered+len(wave) >= q.Needed
}

// couldSettle reports whether the round would be settled if all who are asked said
// the same.
func (t *assessment) couldSettle(s arbiter.Stopper, round arbiter.Round, asked, open []*planning.Member) bool {
	standing := func(m *planning.Member) arbiter.Standing {
		return arbiter.Standing{Weight: t.weights[m.Rank], Rank: m.Rank}
	}
	rest := make([]arbiter.Standing, len(open))
	for i, m := range open {
		rest[i] = standing(m)
	}
	votes := round.Votes
	for _, to := range t.now.Offered().Transitions {
		round.Votes = slices.Clip(votes)
		for _, m := range asked {
			p := &specialist.Proposal{SpecialistID: m.SpecialistID, Transition: to}
			round.Votes = append(round.Votes, arbiter.Vote{Proposal: p, Weight: standing(m).Weight, Rank: m.Rank})
		}
		if s.Settled(&round, rest) {
			return true
		}
	}
	return false
}

// informative returns whom the ledger would ask next. Who was asked by a process
// that is lost comes before, and a wave is over before the next begins: then the
// order in which answers come changes nothing.
func (w *engine) informative(ctx context.Context, due []*planning.Member) ([]*planning.Member, error) {
	if again := w.lostAsks(due); len(again) > 0 || w.waiting() {
		return again, nil
	}
	e, q, err := w.put(ctx, w.by)
	if err != nil {
		return nil, err
	}
	a := w.askingPolicy()
	if a.Explore, err = w.explores(ctx); err != nil {
		return nil, err
	}
	open := make([]trust.Open, len(due))
	for i, m := range due {
		open[i] = w.openTo(m)
	}
	next := e.Ledger.Wave(q, open, a)
	chosen := &session.Wave{Place: e.Place, Tau: next.Tau, Everyone: w.everyone(&q, next.Tau)}
	switch {
	case chosen.Everyone != "":
		next.Ask = nil
		for i := range due {
			next.Ask = append(next.Ask, i)
		}
	case next.Stop == trust.StopDecided:
		if next.Ask = w.allTheSame(e.Ledger, q, due, next.Information); len(next.Ask) == 0 {
			w.stop = next.Stop
			return nil, nil
		}
	case next.Stop != "":
		w.stop = next.Stop
		return nil, nil
	default:
		chosen.Explore = a.Explore != "" && len(q.Options) > 1
	}
	return w.choose(chosen, due, next), nil
}

// choose returns those of a wave, and notes by what they were chosen.
func (w *engine) choose(chosen *session.Wave, due []*planning.Member, next trust.Wave) []*planning.Member {
	for i, m := range due {
		if m.Required && !slices.Contains(next.Ask, i) {
			next.Ask = append(slices.Clip(next.Ask), i)
		}
	}
	ask := make([]*planning.Member, len(next.Ask))
	for i, at := range next.Ask {
		ask[i] = due[at]
		chosen.Specialists = append(chosen.Specialists, ask[i].SpecialistID)
		if chosen.Everyone == "" {
			chosen.Information = append(chosen.Information, exact.Billionths(next.Information[at]))
		}
	}
	w.chosen = chosen
	return ask
}

// allTheSame returns whom to ask although the probability is reached: who is missing
// for the quorum, or else for the payload.
func (w *engine) allTheSame(l *trust.Ledger, q trust.Question, due []*planning.Member, information []int64) []int {
	if !w.quorum(w.by).Reached() {
		return w.upToQuorum(due, information)
	}
	return w.toPay(l, q, due)
}

// upToQuorum returns whom to ask where the probability is reached and the quorum is
// not: the cheapest, among equals those who tell most, as few as could reach it.
func (w *engine) upToQuorum(due []*planning.Member, information []int64) (ask []int) {
	order := make([]int, len(due))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(w.costOf(due[i]), w.costOf(due[j])), cmp.Compare(information[j], information[i]))
	})
	var wave []*planning.Member
	for _, i := range order {
		ask, wave = append(ask, i), append(wave, due[i])
		if w.enough(wave) {
			break
		}
	}
	return ask
}

// lostAsks returns those whose asks are open because their process is lost.
func (t *round) lostAsks(due []*planning.Member) (again []*planning.Member) {
	for _, m := range due {
		if a := t.open.Ask(m.SpecialistID, machine.Proposer); a != nil && a.Status.Pending() {
			again = append(again, m)
		}
	}
	return again
}

// put returns the question that the present round puts to the ledger.
func (t *assessment) put(ctx context.Context, by *planning.Member) (*arbiter.Evidence, trust.Question, error) {
	votes, err := t.standings(ctx, by)
	if err != nil {
		return nil, trust.Question{}, err
	}
	round, err := t.arbiterRound(ctx, votes, by)
	if err != nil {
		return nil, trust.Question{}, err
	}
	return round.Evidence, round.Evidence.Ask(round), nil
}

// askingPolicy returns how the proposers of the state are asked one after the other.
func (t *round) askingPolicy() trust.Asking {
	s := &t.now.State.Solicit
	a := trust.Asking{Most: max(0, s.Wave)}
	if s.HumanCost != nil {
		a.HumanCost = max(1, *s.HumanCost) // for free is cheaper than whatever costs anything
	}
	return a
}

// explores returns the seed of the order of this round, "" if nothing is drawn.
func (t *assessment) explores(ctx context.Context) (string, error) {
	secret, err := t.r.store.Secret(ctx)
	if err != nil {
		return "", err
	}
	parts := []string{t.now.ID.String(), t.now.Key().ID()}
	if !trust.NewSecretDraw(secret, append(parts, "explore")...).Happens(exploration) {
		return "", nil
	}
	return trust.NewSecretDraw(secret, append(parts, "order")...).Seed(), nil
}

// openTo returns a member as the ledger sees who can still be asked.
func (t *assessment) openTo(m *planning.Member) trust.Open {
	return trust.Open{SpecialistID: m.SpecialistID, Version: m.Version, Model: m.ModelID, Cost: t.costOf(m)}
}

// everyone returns why all are asked at once, "" if they are not. A round goes on
// as it began.
func (t *assessment) everyone(q *trust.Question, tau exact.Billionths) session.Everyone {
	switch began := t.open.Wave; {
	case len(q.Options) < 2:
		return ""
	case t.championship.held || tau == 0:
		return WhileCalibrating
	case began != nil:
		return began.Everyone
	case t.costly() || t.r.lessons.Worth(q, tau):
		return ""
	}
	return NoSaving
}

// costly reports whether asking everyone costs more than a human: then that is never
// done at once to decide a round.
func (t *assessment) costly() bool {
	var all exact.Money
	members := t.members()
	for i := range members {
		if m := &members[i]; !m.Off && !m.IsHuman {
			all = all.Add(t.costOf(m))
		}
	}
	human := t.here.State.Solicit.HumanCost
	return human != nil && all > *human
}

// costOf returns what an ask of a member is expected to cost.
func (t *assessment) costOf(m *planning.Member) exact.Money { return t.need(m).first.Money }

// partial reports whether somebody who takes part has not been asked.
func (t *round) partial() bool {
	members, have := t.members(), t.open.Finder()
	for i := range members {
		m := &members[i]
		if m.Off || m.IsHuman || have.Proposal(m.SpecialistID) != nil {
			continue
		}
		if a := have.Ask(m.SpecialistID); a == nil || a.Status.Dropped() {
			return true
		}
	}
	return false
}
