package backtest

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/trust"
)

func (r *reader) judged(ctx context.Context, c *cursor) error {
	j := &judged{winner: -1}
	var s standing
	c.members(func(name []byte) {
		switch string(name) {
		case "arbiterId":
			j.arbiterID = r.name(c.text())
		case "strategy":
			j.strategy = r.name(c.text())
		case "winner":
			j.winner = int(c.int())
		case "code":
			j.code = r.name(c.text())
		case "rule":
			j.rule = arbiter.Rule(c.int())
		case "subject":
			j.subject = r.name(c.text())
		case "margin":
			j.margin = c.billionths()
		case "quorum":
			j.quorum = r.quorum(c)
		case "parametersBind":
			j.bound = c.bool()
		case "evidence":
			j.evidence = r.evidence(c)
		case "explanation":
			explanation := c.raw()
			j.explain(explanation)
			if r.Exact {
				j.explanation = append([]byte(nil), explanation...)
			}
		default:
			s.member(string(name), c)
		}
	})
	if c.err != nil {
		return c.err
	}
	j.threshold = s.threshold
	if j.winner >= len(s.order) {
		return fmt.Errorf("winner %d of %d proposals", j.winner, len(s.order))
	}
	pt, err := r.t.round.point(s.order, s.weights, r.place)
	if err != nil {
		return err
	}
	if pt.judged = j; j.evidence != nil {
		if len(j.evidence.Versions) != len(pt.votes) {
			return fmt.Errorf("%d versions for %d proposals", len(j.evidence.Versions), len(pt.votes))
		}
		for i := range pt.votes {
			pt.votes[i].Version = j.evidence.Versions[i]
		}
	}
	return r.decide(ctx, r.t.round, pt)
}

// A standing is a round as an arbiter or a human found it.
type standing struct {
	order     []int32
	weights   []exact.Billionths
	threshold *machine.Threshold
}

// member reads a member of a standing, and passes over any other.
func (s *standing) member(name string, c *cursor) {
	switch name {
	case "order":
		c.elements(func() { s.order = append(s.order, int32(c.int())) })
	case "weights":
		c.elements(func() { s.weights = append(s.weights, c.billionths()) })
	case "threshold":
		s.threshold = &machine.Threshold{}
		if err := s.threshold.UnmarshalJSON(c.raw()); err != nil {
			c.fail("a threshold")
		}
	default:
		c.raw()
	}
}

func (r *reader) quorum(c *cursor) *arbiter.Quorum {
	q := &arbiter.Quorum{}
	c.members(func(name []byte) {
		switch string(name) {
		case "counted":
			q.Counted = int(c.int())
		case "answered":
			q.Answered = int(c.int())
		case "needed":
			q.Needed = int(c.int())
		case "missing":
			c.elements(func() { q.Missing = append(q.Missing, r.name(c.text())) })
		default:
			c.raw()
		}
	})
	return q
}

func (r *reader) evidence(c *cursor) *session.JudgedBy {
	e := &session.JudgedBy{}
	c.members(func(name []byte) {
		switch string(name) {
		case "place":
			e.Place = c.int()
		case "policyDigest":
			e.PolicyDigest = r.name(c.text())
		case "versions":
			c.elements(func() { e.Versions = append(e.Versions, r.name(c.text())) })
		case "partial":
			e.Partial = c.bool()
		case "stop":
			e.Stop = trust.Stop(r.name(c.text()))
		default:
			c.raw()
		}
	})
	return e
}

// explain takes from an explanation what the round was held to.
func (j *judged) explain(explanation []byte) {
	c := &cursor{b: explanation}
	c.members(func(name []byte) {
		switch string(name) {
		case "threshold":
			bar := c.billionths()
			j.bar = &bar
		case "risk":
			c.members(func(name []byte) {
				if string(name) == "promise" {
					j.promise = promise(c)
				} else {
					c.raw()
				}
			})
		default:
			c.raw()
		}
	})
}

func promise(c *cursor) *trust.Promise {
	p := &trust.Promise{}
	c.members(func(name []byte) {
		switch string(name) {
		case "maxError":
			p.MaxError = c.billionths()
		case "confidence":
			p.Confidence = c.billionths()
		case "perState":
			p.PerState = c.bool()
		case "scopes":
			p.Scopes = c.int()
		case "clopperPearson":
			p.ClopperPearson = c.bool()
		default:
			c.raw()
		}
	})
	return p
}
