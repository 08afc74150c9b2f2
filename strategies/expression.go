package strategies

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/expression"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// useOf returns what the expression of a specialist is for.
func useOf(role machine.Role) expression.Use {
	if role == machine.Arbiter {
		return expression.Arbitrate
	}
	return expression.Propose
}

// CheckExpression type-checks an inline expression, a strategyFn that begins
// with "=", for a role. Each literal in result position must be one of the
// transitions.
func CheckExpression(role machine.Role, source string, transitions []string) error {
	return expression.Check(useOf(role), source, transitions)
}

func reasoning(e *expression.Expression) string { return "Expression: " + e.String() }

// proposerExpression proposes what an expression yields.
type proposerExpression struct{ *expression.Expression }

// newProposerExpression compiles an inline expression of a proposer.
func newProposerExpression(source string) (specialist.Proposer, error) {
	e, err := expression.New(expression.Propose, source)
	return proposerExpression{e}, err
}

// Propose implements [specialist.Proposer].
func (e proposerExpression) Propose(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
	if !json.Valid(q.Meta) && q.Meta != nil {
		var any json.RawMessage
		return specialist.Answer{}, fmt.Errorf("metaJson: %w", json.Unmarshal(q.Meta, &any))
	}
	c := expression.Case{Data: q.Data, MetaJSON: q.Meta, State: q.State.Name, Visits: q.Past.Visits(q.State), Steps: q.Past.Steps()}
	if t := q.Past.Last(); t != nil {
		c.Last = t.Name
	}
	name, err := e.Name(ctx, &c)
	if err == nil && name == "" {
		err = fmt.Errorf("expression %q yields no transition", e.String())
	}
	return specialist.Answer{TransitionName: name, Reasoning: reasoning(e.Expression)}, err
}

// arbiterExpression elects what an expression yields.
type arbiterExpression struct{ *expression.Expression }

// newArbiterExpression compiles an inline expression of an arbiter.
func newArbiterExpression(source string) (arbiter.Arbiter, error) {
	e, err := expression.New(expression.Arbitrate, source)
	return arbiterExpression{e}, err
}

// Decide implements [arbiter.Arbiter]. The winner is the heaviest proposal of
// the transition that the expression yields; one that nobody proposed is no
// consensus.
func (e arbiterExpression) Decide(ctx context.Context, r *arbiter.Round) (arbiter.Decision, error) {
	scores := r.Tally(nil)
	name, err := e.Name(ctx, roundVariables(r, scores))
	if err != nil {
		return arbiter.Decision{}, err
	}
	for _, s := range scores {
		if s.Transition.Name == name {
			return arbiter.Elect(s.Best, reasoning(e.Expression)), nil
		}
	}
	return arbiter.None(reasoning(e.Expression)), nil
}

func roundVariables(r *arbiter.Round, scores []arbiter.Score) map[string]any {
	threshold := unanimity
	if r.Threshold != nil {
		threshold = *r.Threshold
	}
	humans := 0
	for _, v := range r.Votes {
		if v.IsHuman {
			humans++
		}
	}
	leader, aheadBy := ahead(scores, func(s arbiter.Score) exact.Billionths { return exact.Billionths(s.Count) })
	heaviest, lead := ahead(scores, bySum)
	return map[string]any{
		"proposals": len(r.Votes), "humans": humans,
		"leader": leader, "aheadBy": int64(aheadBy),
		"heaviest": heaviest, "margin": exact.Share(lead, totalOf(r.Votes)).Float(), "threshold": threshold.Given,
	}
}

// ahead returns the transition that leads alone, or null, and by how much.
func ahead(scores []arbiter.Score, by func(arbiter.Score) exact.Billionths) (name any, lead exact.Billionths) {
	first, second := arbiter.Leaders(scores, by)
	if first < 0 {
		return expression.None, 0
	}
	lead = by(scores[first])
	if second >= 0 {
		lead -= by(scores[second])
	}
	if lead == 0 {
		return expression.None, 0
	}
	return scores[first].Transition.Name, lead
}
