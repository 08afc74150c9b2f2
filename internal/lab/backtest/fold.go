package backtest

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/collapse"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The heart of a back-test: the log is read once, in commit order, and every round is
// decided again at the points at which it was, or could have been. For each point:
//
//  1. rule says who decides: the arbiter that is tried, or the recorded one.
//  2. votes are those of then, without those whom the policy does not ask.
//  3. Under bayes the ledger is brought to the place of the verdict, and no further:
//     what humans said later must not be known.
//  4. The rule decides; a verdict of somebody's own code is not made again, but taken
//     over where the same was asked about the same votes.
//  5. The point is unknown where the policy would have asked somebody whose answer is
//     not recorded, unless the decision stands whatever that one says.
//
// A human's word is learned only after the round it is about. Verdicts that were given
// by less than the ledger had learned already, since another process was faster, are
// decided at the end with a ledger of their own, in the order of their places.

// A fold goes through the log of a store and decides every round again.
type fold struct {
	*Config
	changed bool // rounds are not decided as they were
	scenes  scenes
	ledger  ledger
	learned map[string]learned // of rounds with an outcome, until that is learned
	kept    map[string]bool    // rounds whose outcome was not learned as recorded, or not in the cold: whether without some
	seeds   map[seedKey]*trust.Seed
	books   map[string]map[trust.Key]trust.Tally // by machine, of what was learned so far
	tracks  map[specialist.SessionID]*track
	raw     []session.Raw    // of the record that is read
	audits  map[string]audit // by round
	late    []*round         // those judged by less than the ledger knew already
	report  *Report
	tallies []*tally
	broken  error // a definition that cannot be used, or a policy for it
	since   int64 // place of the first record that counts; 0 until it comes
}

// compared counts what a human decision said of somebody.
func (f *fold) compared(machineName string, c *trust.Comparison) {
	if f.Cold && f.since == 0 {
		return
	}
	book := f.books[machineName]
	if book == nil {
		book = map[trust.Key]trust.Tally{}
		f.books[machineName] = book
	}
	t, one := book[c.Key], c.Tally()
	if t.Total, t.Matching = t.Total+one.Total, t.Matching+one.Matching; t.Total >= t.Matching && t.Matching >= 0 {
		book[c.Key] = t // else it takes back what was said before anything counted
	}
}

// score returns the alignment of somebody in a state as of now.
func (f *fold) score(p *part, id string) exact.Billionths {
	return f.books[p.was.Question.Machine][trust.Key{SpecialistID: id, State: p.was.Scope}].Score()
}

// decide decides a point again.
func (f *fold) decide(ctx context.Context, r *round, pt *point) error {
	if r.at < f.Since || !f.changed && pt.judged == nil {
		pt.decided, pt.decision.Winner = true, arbiter.NoWinner
		return nil
	}
	rule, err := f.rule(r, pt)
	if err != nil {
		return err
	}
	votes := f.votes(r, pt, rule)
	if rule.made == nil {
		pt.recall(rule, len(votes), r.part.threshold(rule), f.quorum(r, pt, rule, votes))
		return nil
	}
	round := f.put(r, pt, rule, votes)
	if rule.bayes {
		if ready, err := f.evidence(ctx, r, pt, round); err != nil || !ready {
			return err
		}
	}
	f.settle(ctx, pt, rule, round)
	if f.changed {
		pt.unknown = f.lacks(r, pt, rule, round)
	}
	return nil
}

// rule returns who decides a point.
func (f *fold) rule(r *round, pt *point) (*rule, error) {
	switch {
	case f.Policy.Arbiter != nil:
		return &r.part.new, nil
	case pt.judged != nil:
		return r.part.recorded(pt.judged)
	case r.part.old.by == nil && r.standIn:
		return standIn(), nil
	}
	return &r.part.old, nil
}

// votes returns the votes of a point as the rule would have been given them.
func (f *fold) votes(r *round, pt *point, rule *rule) []arbiter.Vote {
	if !f.changed {
		return pt.votes
	}
	votes := make([]arbiter.Vote, 0, len(pt.votes))
	for _, v := range pt.votes {
		if !v.IsHuman && !f.Policy.keeps(v.SpecialistID) {
			continue
		}
		if f.Cold && !v.IsHuman {
			v.Weight = f.score(r.part, v.SpecialistID)
		}
		votes = append(votes, v)
	}
	if f.Policy.Arbiter != nil && !rule.arrive && r.mode != machine.Eager {
		slices.SortStableFunc(votes, func(a, b arbiter.Vote) int { return cmp.Compare(a.Rank, b.Rank) })
	}
	return votes
}

// put makes the round that the rule decides.
func (f *fold) put(r *round, pt *point, rule *rule, votes []arbiter.Vote) *arbiter.Round {
	st := r.offered
	round := &arbiter.Round{Key: r.key, State: st, RequireTrust: st.RequireTrust, Votes: votes, Threshold: r.part.threshold(rule)}
	if !f.changed && pt.judged != nil {
		round.Threshold = pt.judged.Threshold
	}
	round.Quorum = f.quorum(r, pt, rule, votes)
	round.Unbound = pt.unbound(votes)
	return round
}

// unbound reports whether the round was recorded before parameters bound: so its verdict
// says, or without one a proposal of somebody who has to give a payload now.
func (pt *point) unbound(votes []arbiter.Vote) bool {
	if pt.judged != nil {
		return !pt.judged.Decision.Bound && (&arbiter.Round{Votes: pt.votes}).LacksPayload()
	}
	return slices.ContainsFunc(votes, func(v arbiter.Vote) bool { return v.LacksPayload() && !v.Mode.VotesOnly() })
}

// evidence gives a round what bayes decides by. It is not ready if the verdict was
// given by less than the ledger has learned meanwhile.
func (f *fold) evidence(ctx context.Context, r *round, pt *point, round *arbiter.Round) (ready bool, err error) {
	q, upTo := r.part.now.Question, pt.place-1
	if !f.changed && pt.judged != nil && pt.judged.Evidence != nil {
		q, upTo = r.part.question(pt.judged), pt.judged.Evidence.Place
	} else {
		open, stranger := f.unanswered(r, pt)
		q.Partial = len(open) > 0 || stranger
	}
	if f.ledger.place > upTo {
		return false, nil
	}
	if err := f.ledger.advance(ctx, upTo); err != nil {
		return false, err
	}
	if r.offered != r.part.was.State {
		q = planning.Offered(q, r.offered)
	}
	round.Evidence = &arbiter.Evidence{Ledger: f.ledger.now, Place: f.ledger.place, Question: q}
	return true, nil
}

// settle has the rule decide.
func (f *fold) settle(ctx context.Context, pt *point, rule *rule, round *arbiter.Round) {
	d := pt.championDecides(rule.decide(ctx, round), round)
	pt.lacked = d.Consensus() && !round.Unbound && round.Votes[d.Winner].LacksPayload()
	pt.decision, pt.decided = d.Floor(round), true
	if pt.decision.Consensus() {
		pt.elected = round.Votes[pt.decision.Winner].Transition
	}
	if pt.judged != nil && !f.changed {
		f.report.compare(pt, f.Exact)
	}
}

// championDecides returns the decision of a round in which a champion decided alone, or which a
// human had sent back to humans: neither depends on the votes alone. d is that of
// the arbiter.
func (pt *point) championDecides(d arbiter.Decision, round *arbiter.Round) arbiter.Decision {
	if pt.judged == nil || d.Judgement == nil {
		return d
	}
	switch j := pt.judged; {
	case j.Decision.Rule == arbiter.ByChampion:
		i := slices.IndexFunc(round.Votes, func(v arbiter.Vote) bool { return v.SpecialistID == j.Decision.Subject })
		if i >= 0 && !collapse.Contested(round.Votes[i].Proposal, d.Judgement) {
			return arbiter.Decision{Winner: i, Rule: arbiter.ByChampion, Subject: j.Decision.Subject, Judgement: d.Judgement}
		}
	case j.Decision.Rule == arbiter.Held && d.Consensus():
		return arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.Held, Subject: j.Decision.Subject, Judgement: d.Judgement}
	}
	return d
}

// recall takes over the verdict of somebody's own code, who is not asked again, if
// the same was asked about the same votes.
func (pt *point) recall(rule *rule, votes int, threshold *machine.Threshold, q *arbiter.Quorum) {
	pt.decided, pt.decision.Winner, pt.decision.Quorum = true, arbiter.NoWinner, q
	switch j := pt.judged; {
	case rule.by == nil: // nobody decides here
	case j == nil || j.ArbiterID != rule.by.SpecialistID || votes != len(pt.votes) || !same(j.Threshold, threshold):
		pt.unknown = true
	case j.Decision.Rule == arbiter.NoQuorum: // what was elected is not recorded
		pt.unknown = q.Reached()
	case j.Decision.Winner >= 0 && (q.Reached() || pt.votes[j.Decision.Winner].IsHuman):
		pt.decision.Winner, pt.elected = j.Decision.Winner, pt.votes[j.Decision.Winner].Transition
	}
}

func same(a, b *machine.Threshold) bool { return a == b || a != nil && b != nil && *a == *b }

// lacks reports whether the policy would have asked somebody whose answer is not
// recorded. Who was not asked for another reason than that the round was decided
// already, such as a budget, would not have been asked under the policy either.
func (f *fold) lacks(r *round, pt *point, rule *rule, round *arbiter.Round) bool {
	open, stranger := f.unanswered(r, pt)
	switch {
	case len(open) == 0 && !stranger, !pt.lacked && f.settled(r, pt, rule, round, open, pt.decision):
		return false
	case pt.decision.Rule == arbiter.ByChampion, rule.bayes && pt.decision.Consensus() && r.mode == machine.Sequential:
		return false // decided: nobody else is asked
	case stranger, pt.judged == nil, pt.judged.Decision.Rule == arbiter.ByChampion, pt.judged.Evidence != nil && pt.judged.Evidence.Stop != "":
		return true
	}
	before, err := r.part.recorded(pt.judged)
	if err != nil || before.made == nil {
		return true
	}
	was := *round
	was.Votes, was.Threshold = pt.votes, pt.judged.Threshold
	old := arbiter.Decision{Winner: pt.judged.Decision.Winner}
	was.Quorum = pt.judged.Decision.Quorum
	return f.settled(r, pt, before, &was, open, old)
}

// settled reports whether a rule would have decided before the others answered: not
// before the quorum is reached even if none of them does.
func (f *fold) settled(r *round, pt *point, rule *rule, round *arbiter.Round, open []arbiter.Standing, d arbiter.Decision) bool {
	if q := round.Quorum; q != nil {
		most := q.Counted
		if r.mode != machine.Sequential {
			most += len(open)
		}
		if byHuman := d.Consensus() && round.Votes[d.Winner].IsHuman; !byHuman && (q.Answered < r.quorumRule(pt, rule).Needed(most) || len(q.Missing) > 0) {
			return false
		}
	}
	if r.mode == machine.Eager {
		return d.Consensus() && len(round.Votes) >= 2
	}
	stopper, ok := rule.made.(arbiter.Stopper)
	return ok && len(round.Votes) > 0 && stopper.Settled(round, open)
}

// answered reports whether a specialist is among those who voted.
func answered(votes []arbiter.Vote, id string) bool {
	return slices.ContainsFunc(votes, func(v arbiter.Vote) bool { return v.SpecialistID == id })
}

// unanswered returns the standing of those whom the policy asks and who have not
// answered; stranger is true if one of them never took part.
func (f *fold) unanswered(r *round, pt *point) (open []arbiter.Standing, stranger bool) {
	came := func(id string) bool { return slices.Contains(pt.failed, id) || answered(pt.votes, id) }
	for i := range r.part.now.Proposers {
		if m := &r.part.now.Proposers[i]; !m.Off && !m.IsHuman && f.Policy.keeps(m.SpecialistID) && !came(m.SpecialistID) {
			open = append(open, arbiter.Standing{Weight: f.score(r.part, m.SpecialistID), Rank: m.Rank})
		}
	}
	for _, id := range f.Policy.Roster {
		stranger = stranger || find(&r.part.now, id) == nil && !came(id)
	}
	return open, stranger
}

// close ends the present round of a track.
func (f *fold) close(t *track) {
	r := t.round
	t.round = nil
	if r == nil || len(r.points) == 0 || r.at < f.Since {
		return
	}
	if slices.ContainsFunc(r.points, func(pt *point) bool { return !pt.decided }) {
		f.late = append(f.late, r)
		return
	}
	if f.count(r) {
		t.offPath = true
	}
}

// rest decides, at the end of the log, what was judged by less than was known.
func (f *fold) rest(ctx context.Context) error {
	type place struct {
		r  *round
		pt *point
	}
	var points []place
	for _, r := range f.late {
		for _, pt := range r.points {
			if !pt.decided {
				points = append(points, place{r, pt})
			}
		}
	}
	slices.SortStableFunc(points, func(a, b place) int {
		return cmp.Compare(a.pt.judged.Evidence.Place, b.pt.judged.Evidence.Place)
	})
	if f.report.Late = len(f.late); f.report.Late == 0 {
		return nil
	}
	f.ledger.stop()
	f.ledger = newLedger(ctx, f.Source, nil)
	for _, p := range points {
		if err := f.decide(ctx, p.r, p.pt); err != nil {
			return err
		}
	}
	for _, r := range f.late {
		f.count(r)
	}
	return nil
}

// end closes the rounds that are still open, but for those in which something may be
// withheld from the humans who are to rule: how they were decided, or would have been, is
// for later.
func (f *fold) end(ctx context.Context) error {
	open := make([]*track, 0, len(f.tracks))
	for _, t := range f.tracks {
		if t.round != nil && !withheld(t.part.state) {
			open = append(open, t)
		}
	}
	slices.SortFunc(open, func(a, b *track) int {
		return cmp.Or(cmp.Compare(a.round.place, b.round.place), slices.Compare(a.id[:], b.id[:]))
	})
	for _, t := range open {
		f.close(t)
	}
	if f.changed {
		return f.promises(ctx)
	}
	return f.rest(ctx)
}

// withheld reports whether something may be withheld of an open round in a state.
func withheld(s *machine.State) bool {
	return s.Withheld() || s.Audit.Mode == machine.Before || s.SecondBefore()
}

// promises looks how far the promises of the policy have come once all is learned.
func (f *fold) promises(ctx context.Context) error {
	for _, t := range f.tallies {
		if t.promise == nil {
			continue
		}
		if err := f.ledger.advance(ctx, math.MaxInt64); err != nil {
			return err
		}
		t.tau, _ = f.ledger.now.Risk(t.machine, t.state, *t.promise, t.digest)
	}
	var err error
	f.report.Adoptions, err = f.adoptions(ctx)
	return err
}

// read goes through the log.
func (f *fold) read(ctx context.Context) error {
	for e, err := range ahead(ctx, f.Source.Log(ctx, f.MachineName, 0)) {
		if err != nil {
			return err
		}
		if err := f.record(ctx, &e); err != nil {
			return err
		}
		f.report.Trial.To = e.Place
		if f.Progress != nil {
			f.Progress(e.Place)
		}
	}
	f.report.Trial.Policy, f.report.Trial.From = f.Policy.Digest(), f.since
	return f.end(ctx)
}
