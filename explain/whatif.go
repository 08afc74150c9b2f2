package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/collapse"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
)

// What would have changed a verdict. The round is decided again by the same arbiter, from
// what was known then, first as it was: only if that comes out as it was recorded does
// anything else mean something. Then with one thing different at a time: without each
// vote, and with each vote for something else, until a bound on the work is reached. Of
// bayes the evidence is the ledger at the place that the verdict names. What a program's
// own function or a service decided is not asked again.

// Changes are what would have changed a verdict, found by deciding the round
// again with one thing different.
type Changes struct {
	// Reproduced says that the round, decided again as it was, comes out as it was
	// recorded: only then are there any changes.
	Reproduced bool      `json:"reproduced"`
	Why        string    `json:"why,omitempty"` // it was not decided again, or not alike: a stable code
	WhatIfs    []WhatIf  `json:"whatIfs,omitempty"`
	Distance   *Distance `json:"distance,omitempty"`
	// Limited says that the round is too large for every variant: only the absence
	// of each vote was tried.
	Limited bool `json:"limited,omitempty"`
}

// The reasons for which nothing can be said of changes.
const (
	NotReproduced = "not_reproduced" // another version of this program decided
	CustomArbiter = "custom_arbiter" // a function or a service decided: neither is asked again
	NoVotes       = "no_votes"
)

// A WhatIf is the outcome of the round without one vote, or with another.
type WhatIf struct {
	SpecialistID string            `json:"specialist"`        // whose vote is different
	Instead      string            `json:"instead,omitempty"` // what it names then; "" if the vote is left out
	Code         string            `json:"code"`
	Transition   string            `json:"transition,omitempty"` // decided then; "" if a human must decide
	Pick         string            `json:"pick,omitempty"`       // most probable then, under bayes
	P            *exact.Billionths `json:"p,omitempty"`          // its probability
	Margin       *exact.Billionths `json:"margin,omitempty"`     // under alignmentMargin
	Changed      bool              `json:"changed"`              // another transition, or none, or one where there was none
}

// An again decides the round of a trace again.
type again struct {
	t      *trace
	by     arbiter.Arbiter // nil if it cannot be asked
	round  *arbiter.Round
	margin bool // by is alignmentMargin
}

func decideAgain(ctx context.Context, r *runner.Runner, t *trace) (*again, error) {
	a := &again{t: t, round: t.round()}
	a.round.Past = r.Past(t.before)
	strategy, source := t.strategy()
	a.margin = strategy == machine.AlignmentMargin
	known := machine.Specialist{StrategyFnName: strategy}
	if source != "" {
		known = machine.Specialist{StrategyFn: source}
	}
	var err error
	if a.by, err = (strategies.Registry{}).Arbiter(nil, &known); err != nil {
		return nil, err
	}
	if j := t.verdict; j != nil && j.Evidence != nil {
		e, err := evidenceOf(ctx, r, t, j)
		if err != nil {
			return nil, err
		}
		a.round.Evidence = e
	} else if strategy == machine.Bayes {
		a.by = nil // what it was judged by was not recorded
	}
	return a, nil
}

// strategy returns the name of the strategy that judged the round, or would have,
// and the expression if it is one.
func (t *trace) strategy() (name, expression string) {
	list := slices.Concat(t.before.State.Roster, t.before.Machine().Specialists())
	i := slices.IndexFunc(list, func(s machine.Specialist) bool {
		if j := t.verdict; j != nil && s.SpecialistID != j.ArbiterID {
			return false
		}
		return s.Role == machine.Arbiter && !s.Off() && !s.Reference()
	})
	if i >= 0 {
		name = list[i].StrategyFnName
		if fn := list[i].StrategyFn; fn != "" && fn[0] == '=' {
			expression = fn
		}
	}
	if j := t.verdict; j != nil {
		name = j.Strategy
	}
	return name, expression
}

// evidenceOf returns what a recorded verdict of bayes was decided by.
func evidenceOf(ctx context.Context, r *runner.Runner, t *trace, j *session.Judged) (*arbiter.Evidence, error) {
	l, err := ledgerAt(ctx, r.Store(), j.Evidence.Place)
	if err != nil {
		return nil, err
	}
	m, s, made := t.before.Machine(), t.before.State, j.Decision.Judgement
	q := trust.Question{Machine: m.Name(), State: s.Name, PolicyDigest: j.Evidence.PolicyDigest, Partial: j.Evidence.Partial, Stop: j.Evidence.Stop}
	q = planning.Offered(q, t.before.Offered())
	switch {
	case made == nil: // nobody proposed the pick
		d, err := r.Deciding(ctx, t.before.Program)
		if err != nil {
			return nil, err
		}
		q.Policy = d.States[s.Index].Question.Policy
	case made.Risk != nil:
		q.Policy.Promise = &made.Risk.Promise
	default:
		q.Policy.Threshold = made.Threshold
	}
	q.Policy.NoStacking, q.Policy.Rounds = m.Definition().Stacking == "off", m.Definition().LearnsFromRounds()
	return &arbiter.Evidence{Ledger: l, Place: j.Evidence.Place, Question: q}, nil
}

// ledgerAt returns the ledger as it was when the newest lesson had that place.
func ledgerAt(ctx context.Context, s session.TrustStore, place int64) (*trust.Ledger, error) {
	l := trust.New()
	for lesson, err := range s.Lessons(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if lesson.Seq > place {
			break
		}
		if err := l.Learn(lesson); err != nil {
			return nil, &session.CorruptError{What: fmt.Sprintf("lesson %d", lesson.Seq), Problem: err.Error()}
		}
	}
	return l, nil
}

// decide decides a variant of the round.
func (a *again) decide(votes []arbiter.Vote) (arbiter.Decision, error) {
	round := *a.round
	round.Votes, round.Quorum = votes, a.quorum(votes)
	rule := arbiter.Custom
	if j := a.t.verdict; j != nil {
		rule = j.Decision.Rule
	}
	if rule == arbiter.ByChampion {
		return a.champion(&round).Floor(&round), nil
	}
	d, err := a.by.Decide(context.Background(), &round)
	if err == nil {
		err = d.Check(&round)
	}
	if rule == arbiter.Held && d.Consensus() {
		d = arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.Held, Subject: a.t.verdict.Decision.Subject, Judgement: d.Judgement}
	}
	return d.Floor(&round), err
}

// quorum returns how far the panel had answered, were these its votes: who has none
// of them had not been asked.
func (a *again) quorum(votes []arbiter.Vote) *arbiter.Quorum {
	j := a.t.verdict
	if j == nil || j.Decision.Quorum == nil {
		return nil
	}
	q := *j.Decision.Quorum
	for _, v := range a.round.Votes {
		gone := !v.IsHuman && !slices.ContainsFunc(votes, func(w arbiter.Vote) bool { return w.SpecialistID == v.SpecialistID })
		if !gone {
			continue
		}
		q.Answered, q.Counted = q.Answered-1, q.Counted-1
		q.Needed = a.quorumRule().Needed(q.Counted)
		if a.required(v.SpecialistID) {
			q.Missing = append(slices.Clip(q.Missing), v.SpecialistID)
		}
	}
	return &q
}

// quorumRule returns the quorum that was in force.
func (a *again) quorumRule() machine.Quorum {
	s, j := a.t.before.State, a.t.verdict
	if s.Quorum != nil {
		return *s.Quorum
	}
	return planning.DefaultQuorum(j.Strategy, cmp.Or(a.t.before.Options().Mode, s.Solicit.Mode), j.Decision.Rule == arbiter.ByChampion)
}

// required reports whether the definition requires an answer in the state.
func (a *again) required(id string) bool {
	names := func(s machine.Specialist) bool { return s.SpecialistID == id && s.Required }
	return slices.ContainsFunc(a.t.before.State.Roster, names) || slices.ContainsFunc(a.t.before.Machine().Specialists(), names)
}

// champion decides a round of a champion. If it is contested, everybody else would
// have been asked, and nobody knows what they had said.
func (a *again) champion(round *arbiter.Round) arbiter.Decision {
	d := arbiter.Decision{Winner: arbiter.NoWinner, Rule: arbiter.ByChampion, Subject: a.t.verdict.Decision.Subject}
	j := round.Evidence.Ledger.Judge(round.Evidence.Ask(round))
	d.Judgement = &j
	i := slices.IndexFunc(round.Votes, func(v arbiter.Vote) bool { return v.SpecialistID == d.Subject })
	if i >= 0 && !collapse.Contested(round.Votes[i].Proposal, &j) {
		d.Winner = i
	}
	return d
}

// decided returns the transition of a decision, "" if it is left to a human.
func decided(d arbiter.Decision, votes []arbiter.Vote) string {
	if !d.Consensus() {
		return ""
	}
	return votes[d.Winner].Transition.Name
}

// ruling says what the engine had made of what a human decided.
func (a *again) ruling(r *Ruling) {
	if r == nil {
		return
	}
	if r.Pick == "" && a.by != nil && len(a.round.Votes) > 0 {
		if d, err := a.decide(a.round.Votes); err == nil {
			r.Pick = a.pick(d)
		}
	}
	if j := a.t.verdict; j != nil && j.Decision.Consensus() {
		r.Pick, r.Decides = decided(j.Decision, a.round.Votes), true
	}
	if r.Pick != "" {
		r.Agreed = new(r.Pick == r.Transition)
	}
}

// pick returns what a decision finds best, be it not good enough.
func (a *again) pick(d arbiter.Decision) string {
	switch {
	case d.Consensus():
		return decided(d, a.round.Votes)
	case d.Judgement != nil:
		return d.Judgement.Pick
	case !a.margin || d.Rule == arbiter.ColdStart:
		return ""
	}
	return a.leader()
}

// leader returns the transition with most weight behind it.
func (a *again) leader() string {
	scores := a.round.Tally(nil)
	leader, _ := arbiter.Leaders(scores, func(s arbiter.Score) exact.Billionths { return s.Sum })
	if leader < 0 {
		return ""
	}
	return scores[leader].Transition.Name
}

// changes returns what would have changed the verdict; nil without one.
func (a *again) changes() *Changes {
	j := a.t.verdict
	switch {
	case j == nil:
		return nil
	case len(a.round.Votes) == 0:
		return &Changes{Why: NoVotes}
	case a.by == nil:
		return &Changes{Why: CustomArbiter}
	}
	d, err := a.decide(a.round.Votes)
	if err != nil || !alike(&j.Decision, &d) {
		return &Changes{Why: NotReproduced}
	}
	c := &Changes{Reproduced: true, Distance: a.distance(d), Limited: len(a.round.Votes)*len(a.round.State.Transitions) > mostVariants}
	was := decided(d, a.round.Votes)
	for i := range a.round.Votes {
		c.WhatIfs = a.without(c.WhatIfs, i, was)
		if !c.Limited {
			c.WhatIfs = a.instead(c.WhatIfs, i, was)
		}
	}
	return c
}

// mostVariants is how many variants of a round are tried at most, where not only
// the absence of votes is.
const mostVariants = 2000

// alike reports whether a decision is the recorded one. Probabilities may differ
// in the last place between architectures.
func alike(was, is *arbiter.Decision) bool {
	if was.Winner != is.Winner || was.Code() != is.Code() || was.HasMargin != is.HasMargin || was.Margin != is.Margin {
		return false
	}
	if was.Judgement == nil || is.Judgement == nil {
		return was.Judgement == is.Judgement
	}
	return slices.EqualFunc(was.Judgement.P, is.Judgement.P, func(p, q exact.Billionths) bool { return p-q <= 2 && q-p <= 2 })
}

// without leaves the i-th vote out.
func (a *again) without(list []WhatIf, i int, was string) []WhatIf {
	votes := slices.Delete(slices.Clone(a.round.Votes), i, i+1)
	return a.tryOut(list, WhatIf{SpecialistID: a.round.Votes[i].SpecialistID}, votes, was)
}

// instead changes the i-th vote to each other transition.
func (a *again) instead(list []WhatIf, i int, was string) []WhatIf {
	votes := a.round.Votes
	for _, o := range a.round.State.Transitions {
		if o.Name == votes[i].Transition.Name {
			continue
		}
		other, p := slices.Clone(votes), *votes[i].Proposal
		p.Transition = o
		if p.MetaJSON = nil; o.NeedsPayload && !p.Mode.VotesOnly() {
			p.MetaJSON = json.RawMessage("{}") // something that would have satisfied it
		}
		other[i].Proposal = &p
		list = a.tryOut(list, WhatIf{SpecialistID: p.SpecialistID, Instead: o.Name}, other, was)
	}
	return list
}

func (a *again) tryOut(list []WhatIf, w WhatIf, votes []arbiter.Vote, was string) []WhatIf {
	d, err := a.decide(votes)
	if err != nil {
		return list
	}
	w.Code, w.Transition = d.Code(), decided(d, votes)
	if d.Rule == arbiter.ByChampion && !d.Consensus() {
		w.Code = session.CodeContested
	}
	w.Changed = w.Transition != was
	if d.HasMargin {
		w.Margin = &d.Margin
	}
	if j := d.Judgement; j != nil && j.Best >= 0 {
		w.Pick, w.P = j.Pick, &j.P[j.Best]
	}
	return append(list, w)
}

// correlations fills in for whose sake bayes discounted votes, and from which
// states it knows their authors.
func (a *again) correlations(votes []Vote) {
	if a.round.Evidence == nil {
		return
	}
	q := a.round.Evidence.Ask(a.round)
	for _, v := range q.Votes {
		for i := range votes {
			if votes[i].SpecialistID == v.SpecialistID && !v.Human {
				votes[i].Origins = a.round.Evidence.Ledger.Origins(v.SpecialistID, v.Version)
			}
		}
	}
	for _, c := range a.round.Evidence.Ledger.Correlated(q) {
		for i := range votes {
			if votes[i].SpecialistID == c.SpecialistID {
				votes[i].Correlated = append(votes[i].Correlated, c)
			}
		}
	}
}
