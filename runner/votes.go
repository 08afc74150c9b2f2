package runner

import (
	"context"
	"encoding/json"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// How a round is put to its arbiter. arbiter says who decides; weigh reads the alignment
// of the members from one Book, once for each commit; standings makes a vote of each
// proposal but a shadow's, and puts them in order; arbiterRound adds the threshold and,
// for bayes, the evidence.
//
// The order is that of humans and then of the roster, so that neither a network nor a
// clock decides, except where arrival is the rule (mode eager, firstProposal). Nothing
// here asks anybody or records anything: explanations and live decisions see the same
// round. What is returned uses the buffers of the assessment and is valid until that
// changes.

// arbiter returns who decides the present round.
func (t *round) arbiter() (*planning.Member, error) {
	if t.here.Arbiter != nil {
		return t.here.Arbiter, nil
	}
	if t.now.Options().DefaultArbiter {
		return planning.DefaultArbiter(t.now.ID), nil
	}
	return nil, noArbiter(t.now.Machine())
}

// noArbiter is the refusal of a decision that nobody makes.
func noArbiter(m *machine.Machine) error {
	return refuse(session.ErrNotFound, session.CodeNoArbiter, "No arbiter registered for machine: %s", m.Name())
}

// weigh returns the standing of the members of the round.
func (t *assessment) weigh(ctx context.Context, members []planning.Member) ([]exact.Billionths, error) {
	if t.weighed {
		return t.weights, nil
	}
	b, err := t.r.store.Book(ctx, t.now.Machine().Name())
	if err != nil {
		return nil, err
	}
	if len(members) == len(t.here.Members) {
		t.weights = t.here.Weights(b)
	} else { // a default proposer stands in
		t.weights = make([]exact.Billionths, len(members))
		for i := range members {
			t.weights[i] = b.Score(members[i].SpecialistID, t.here.Scope)
		}
	}
	t.weighed = true
	return t.weights, nil
}

// standings returns the votes of the round in the order in which it is put to
// the arbiter: humans first and then by roster, so that no network decides; by
// arrival where arrival is what counts.
func (t *assessment) standings(ctx context.Context, by *planning.Member) ([]arbiter.Vote, error) {
	members := t.members()
	weights, err := t.weigh(ctx, members)
	if err != nil {
		return nil, err
	}
	t.votes = t.votes[:0]
	for _, p := range t.open.Proposals {
		if t.shadows(p.SpecialistID) {
			continue
		}
		rank, weight := t.place(p, members, weights)
		vote := arbiter.Vote{Proposal: p, Rank: rank, Weight: weight}
		if by.ByBayes() {
			vote.Version = t.here.VersionOf(p.SpecialistID)
		}
		t.votes = append(t.votes, vote)
	}
	votes := t.votes
	if t.mode() == machine.Eager || by.StrategyFnName == machine.FirstProposal {
		return votes, nil // by arrival already
	}
	// Insertion sort: a round is short and mostly in order.
	for i := 1; i < len(votes); i++ {
		for j := i; j > 0 && votes[j].Rank < votes[j-1].Rank; j-- {
			votes[j], votes[j-1] = votes[j-1], votes[j]
		}
	}
	return votes, nil
}

// place returns a proposal's rank and its author's weight. Proposals of members
// that have left since count nothing, but they are put to the arbiter.
func (t *round) place(p *specialist.Proposal, members []planning.Member, weights []exact.Billionths) (int32, exact.Billionths) {
	for i := range members {
		if m := &members[i]; m.SpecialistID == p.SpecialistID {
			if p.IsHuman {
				return m.Rank - planning.HumanFirst, exact.One
			}
			return m.Rank, weights[i]
		}
	}
	if p.IsHuman {
		for i := range t.here.Humans {
			if h := &t.here.Humans[i]; h.SpecialistID == p.SpecialistID {
				return h.Rank - planning.HumanFirst, exact.One
			}
		}
		return -1, exact.One
	}
	return int32(len(members)), 0
}

// arbiterRound returns the round as the arbiter sees it, valid until t changes.
func (t *assessment) arbiterRound(ctx context.Context, votes []arbiter.Vote, by *planning.Member) (*arbiter.Round, error) {
	st := t.now.State
	t.judging = arbiter.Round{
		Key: t.now.Key(), Machine: t.now.Machine(), State: t.now.Offered(), RequireTrust: st.RequireTrust,
		Threshold: st.Threshold, Votes: votes, Past: &t.past,
	}
	if t.judging.Threshold == nil {
		t.judging.Threshold = by.Threshold
	}
	t.judging.Meta = t.now.Options().Meta
	if by.ByBayes() {
		e, err := t.evidence(ctx)
		if err != nil {
			return nil, err
		}
		own := *e
		own.Question.Partial, own.Question.Stop = t.partial(), t.stop
		t.judging.Evidence = &own
	}
	return &t.judging, nil
}

// question returns what the proposers of the round are asked, valid until t
// changes.
func (t *assessment) question() specialist.Question {
	return questionOf(t.now, t.open.Notices, &t.past)
}

// Past returns what a session remembers, for an arbiter that decides a recorded round
// again. It may be used concurrently.
func (r *Runner) Past(s *session.Session) specialist.Past {
	return &lessons.Past{Store: r.store, Session: s}
}

func questionOf(s *session.Session, notices []string, p *lessons.Past) specialist.Question {
	o := s.Options()
	return specialist.Question{Key: s.Key(), Machine: s.Machine(), State: s.Offered(), Notices: notices, Past: p, Meta: o.Meta, Data: s.Data(), Seed: o.Seed}
}

// judge implements judge: it is called by the gate, inside the event.
func (w *engine) judge(string, string) verdict.Verdict {
	return w.passing.verdict(&w.assessment)
}

// A judgement is the step that is passing the gate.
type judgement struct {
	ctx     context.Context
	step    verdict.Step
	inquiry *inquiry // nil if nobody was asked about the step
}

// verdict judges the step. Guards that had to ask somebody have done so before:
// here it is made sure of.
func (j *judgement) verdict(t *assessment) verdict.Verdict {
	v := j.alone(t)
	if v.Passed() && !j.step.Human && t.now.Program.Guards(t.now.State).Asks(j.step.Transition) {
		return v.Join(j.inquiry.on(&j.step))
	}
	return v
}

// alone judges the step by the guards that ask nobody.
func (j *judgement) alone(t *assessment) (v verdict.Verdict) {
	v = t.now.Program.Guards(t.now.State).Check(t.now.GuardState(), j.step)
	if j.step.Human {
		return v // custom guards judge content, and a ruling's is a human's
	}
	for _, c := range t.r.config.Guards {
		v = v.Join(j.own(t, c))
	}
	return v
}

// own runs a guard of the program's own; a panic fails closed, and the program is told.
func (j *judgement) own(t *assessment, c guard.Checker) (v verdict.Verdict) {
	if t.r.contain(t.now.ID, func() error { v = c.Check(j.ctx, j.step); return nil }) != nil {
		return verdict.InternalError("a custom guard")
	}
	return v
}

// decision is a transition that somebody decided to execute.
type decision struct {
	transition *machine.Transition
	how        session.DecisionKind
	by         string         // the winner or the human; may be ""
	actor      *session.Actor // who ruled; nil if that is not said
	seen       string         // the digest of the question on which it was ruled; "" if that is not said
	manner     session.Manner
	arrival    int32
	reasoning  string
	meta       []byte
	winner     *specialist.Proposal // nil unless it was elected
	blind      bool                 // the human, and all who agreed, had seen no proposals
	authors    []string             // the humans who agreed, by when they ruled; nil if only by decided
	second     *trust.SecondLook    // what the first two made of it without sight of each other
	draws      *session.Draws
	learned    *session.Learned
	standing   *session.Standing // of the round a human closes
	inquiry    *inquiry          // nil if nobody was asked about it
	data       json.RawMessage   // what it writes into the session's data; nil for nothing
	subject    string            // what the session is about afterwards, if it writes anything
}
