// Package arbiter turns one round into a decision, and says why.
//
// A [Round] is plain data: the proposals in the round's order, each with its
// author's standing at that time, and the policy in force. An [Arbiter] decides
// it. The ready-made arbiters are in package strategies; here is what they
// share: the tally, the texts, and the form a webhook sees.
package arbiter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A Round is what an arbiter decides. The arbiter must not change it, nor keep
// it after it has decided.
type Round struct {
	Key          specialist.RoundKey
	Machine      *machine.Machine
	State        *machine.State
	Threshold    *machine.Threshold // in force; nil if nobody set one
	RequireTrust bool
	Votes        []Vote // in the round's order
	Meta         json.RawMessage
	Past         specialist.Past
	Ask          *specialist.Ask // nil for arbiters inside this process
	Evidence     *Evidence       // for the strategy bayes; nil for others
	Quorum       *Quorum         // how far the panel has answered; nil if nobody counted
	// Unbound says that the round was judged before parameters bound: its winner is
	// executed without the payload that they ask for.
	Unbound bool
}

// A Vote is one proposal of a round with its author's standing.
type Vote struct {
	*specialist.Proposal
	Weight exact.Billionths // a human's is 1, an AI's its alignment score
	Rank   int32            // place of the author: humans first, then roster order
	// Version is a digest of what the author is: its model, prompt or code.
	Version string
}

// An Arbiter decides rounds.
//
// Decide returns a Decision whose Winner is an index into r.Votes, or
// [NoWinner] if a human must decide. An error is no verdict: the session waits,
// and the arbiter is asked again when it is resumed. The same round must always
// be decided alike. Decide may be called concurrently.
type Arbiter interface {
	Decide(ctx context.Context, r *Round) (Decision, error)
}

// Func makes an Arbiter of a function.
type Func func(ctx context.Context, r *Round) (Decision, error)

// Decide calls f.
func (f Func) Decide(ctx context.Context, r *Round) (Decision, error) { return f(ctx, r) }

// A Stopper is an Arbiter that can tell when a round is decided although some
// answers are still out.
//
// Settled is called with the votes so far and the standing of everyone who has
// not answered. It must return true only if r has a winner that no answer of
// theirs, nor its absence, can change.
type Stopper interface {
	Settled(r *Round, open []Standing) bool
}

// A Standing is the weight and the place of somebody who has not answered yet.
type Standing struct {
	Weight exact.Billionths
	Rank   int32
}

// NoWinner is the Winner of a decision without consensus.
const NoWinner = -1

// A Decision is an arbiter's verdict on a round. The zero value is no valid
// decision: use [Elect], [None] or the fields.
type Decision struct {
	Winner    int  // index into the round's Votes, or NoWinner
	Rule      Rule // which rule decided
	HasMargin bool
	Margin    exact.Billionths  // meaningful if HasMargin
	Threshold machine.Threshold // compared with, where Rule compares

	// Subject is what the text of Rule speaks of: the leading transition or a
	// specialist. Weight is that specialist's.
	Subject string
	Weight  exact.Billionths
	// Text is the reasoning of an arbiter that gives its own.
	Text string
	// Judgement is that of the strategy bayes, nil for others. It is never changed.
	Judgement *trust.Judgement
	// Quorum is how far the panel had answered; nil if nobody counted.
	Quorum *Quorum
	// Bound says that some vote lacked the payload that its transition needs, and was
	// taken for no more than a vote. Where it is false of such a round, that was judged
	// before parameters bound.
	Bound bool
	// Expense is what it cost to decide, nil if nothing was said of that. A decision
	// that comes with an error may have cost something too.
	Expense *Expense

	elected bool // by Elect, so that electing the first vote without a word is not the zero Decision
}

// An Expense is what an arbiter's answer cost. It is never changed.
type Expense struct {
	specialist.Usage
	Model string // that was asked; "" if none was
}

// Consensus reports whether there is a winner.
func (d Decision) Consensus() bool { return d.Winner != NoWinner }

// Elect returns the decision that r.Votes[winner] wins.
func Elect(winner int, reasoning string) Decision {
	return Decision{Winner: winner, Rule: Custom, Text: reasoning, elected: true}
}

// None returns the decision that there is no consensus.
func None(reasoning string) Decision {
	return Decision{Winner: NoWinner, Rule: Custom, Text: reasoning}
}

// ErrNoDecision is returned for the zero [Decision], which would elect the first vote.
var ErrNoDecision = errors.New("the arbiter returned the zero Decision, which decides nothing: use Elect or None")

// ErrUnknownWinner is wrapped if a decision names a proposal that is not one of
// the round.
var ErrUnknownWinner = errors.New("winning proposal not found")

// An UnknownWinnerError names the proposal that an arbiter elected although it
// is none of the round's.
type UnknownWinnerError struct{ ProposalID string }

func (e *UnknownWinnerError) Error() string { return "Winning proposal not found: " + e.ProposalID }

// Is makes errors.Is(err, ErrUnknownWinner) true.
func (e *UnknownWinnerError) Is(target error) bool { return target == ErrUnknownWinner }

// Floor returns d with the round's Quorum, and left to a human, whoever elected its
// winner and however sure they are, if the quorum is not reached or the winner's
// transition is irreversible; the first of the two that holds says why. What a
// human proposed is lifted over both, since it is no automatic decision; but proposing
// is no way around ruling: where a second human may have to agree before (secondHuman),
// nothing that a human proposed is executed, and where only some humans decide, neither
// what is irreversible nor what somebody proposed who does not decide. A transition that
// takes approvals is left to humans in any case. A verdict without
// consensus says that too few answered, if that is so, but for a round without
// proposals and for one in which asking on was given up for another reason.
func (d Decision) Floor(r *Round) Decision {
	d.Quorum, d.Bound = r.Quorum, !r.Unbound && r.LacksPayload()
	human := d.Consensus() && r.Votes[d.Winner].IsHuman
	switch {
	case len(r.Votes) == 0:
	case !human && !r.Quorum.Reached():
		if !d.Consensus() && r.Evidence != nil && r.Evidence.Question.Stop != "" {
			return d
		}
		return d.Below(r.Quorum)
	case d.Consensus():
		return d.executable(r)
	case d.Rule == ByJudgement && d.Judgement.Code == trust.Irreversible && r.State.Transition(d.Judgement.Pick).Approvals != nil:
		return d.leave(Approvals, d.Judgement.Pick)
	}
	return d
}

// executable returns d if its winner may be executed without a ruling, else left to a
// human.
func (d Decision) executable(r *Round) Decision {
	won := &r.Votes[d.Winner]
	switch t := won.Transition; {
	case t.Approvals != nil:
		return d.leave(Approvals, t.Name)
	case t.Irreversible && (!won.IsHuman || t.From.SecondBefore() || t.From.Deciders != nil):
		return d.leave(Irreversible, t.Name)
	case won.IsHuman && t.From.SecondBefore():
		return d.leave(needsRuling, t.Name)
	case won.IsHuman && t.From.Deciders != nil && !slices.Contains(t.From.Deciders, won.SpecialistID):
		return d.leave(NoDecider, won.SpecialistID)
	case !won.IsHuman && !r.Unbound:
		return d.payable(r)
	}
	return d
}

// leave returns d without a winner.
func (d Decision) leave(why Rule, subject string) Decision {
	d.Winner, d.Rule, d.Text, d.Subject = NoWinner, why, "", subject
	return d
}

// payable returns d with a winner that says what its transition's parameters ask for:
// of those who proposed the same the heaviest that does, the first of equals, or nobody
// if none does. Rules and built-in strategies have no payload to give.
func (d Decision) payable(r *Round) Decision {
	won := r.Votes[d.Winner]
	if !won.LacksPayload() {
		return d
	}
	if d.Winner = r.Payload(won.Transition); d.Winner == NoWinner {
		return d.leave(NoPayload, won.Transition.Name)
	}
	return d
}

// Payload returns the index of the vote whose payload goes with t: of those for t
// the heaviest that has one, the first of equals, or NoWinner if none has.
func (r *Round) Payload(t *machine.Transition) int {
	best := NoWinner
	for i := range r.Votes {
		v := &r.Votes[i]
		if v.Transition.Name == t.Name && len(v.MetaJSON) > 0 && (best == NoWinner || v.Weight > r.Votes[best].Weight) {
			best = i
		}
	}
	return best
}

// LacksPayload reports whether some vote lacks the payload that its transition needs.
func (r *Round) LacksPayload() bool {
	return slices.ContainsFunc(r.Votes, func(v Vote) bool { return v.LacksPayload() })
}

// Below returns d as it is where q is not reached: left to a human.
func (d Decision) Below(q *Quorum) Decision {
	d.Winner, d.Rule, d.Text, d.Subject, d.Quorum = NoWinner, NoQuorum, q.text(), "", q
	return d
}

// Check returns an error unless d can be executed on r.
func (d Decision) Check(r *Round) error {
	if d == (Decision{}) {
		return ErrNoDecision
	}
	if d.Winner < NoWinner || d.Winner >= len(r.Votes) {
		return &UnknownWinnerError{fmt.Sprintf("#%d", d.Winner)}
	}
	return nil
}

// A Score is the summed weight of one transition's proposals.
type Score struct {
	Transition *machine.Transition
	Sum        exact.Billionths // saturates, never wraps
	Count      int
	Best       int // index of the vote of greatest weight, the first of equals
}

// Tally sums the votes by transition, in the order in which the round first
// names them, and appends the sums to scores.
func (r *Round) Tally(scores []Score) []Score {
votes:
	for i := range r.Votes {
		v := &r.Votes[i]
		for j := range scores {
			s := &scores[j]
			if s.Transition != v.Transition && s.Transition.Name != v.Transition.Name {
				continue
			}
			s.Sum = exact.Billionths(exact.AddSat(int64(s.Sum), int64(v.Weight)))
			s.Count++
			if v.Weight > r.Votes[s.Best].Weight {
				s.Best = i
			}
			continue votes
		}
		scores = append(scores, Score{Transition: v.Transition, Sum: v.Weight, Count: 1, Best: i})
	}
	return scores
}

// Leaders returns the indices of the leading score and of the runner-up by sum,
// the first of equals before the later; -1 where there is none.
func Leaders(scores []Score, by func(Score) exact.Billionths) (leader, second int) {
	leader, second = -1, -1
	for i := range scores {
		switch {
		case leader < 0 || by(scores[i]) > by(scores[leader]):
			leader, second = i, leader
		case second < 0 || by(scores[i]) > by(scores[second]):
			second = i
		}
	}
	return leader, second
}
