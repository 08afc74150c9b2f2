package backtest

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

func (r *reader) judged(ctx context.Context, c *jsontext.Cursor) error {
	j := &judged{winner: -1}
	var s standing
	c.Members(func(name []byte) {
		switch string(name) {
		case "arbiterId":
			j.arbiterID = r.name(c.Text())
		case "strategy":
			j.strategy = r.name(c.Text())
		case "winner":
			j.winner = int(c.Int())
		case "code":
			j.code = r.name(c.Text())
		case "rule":
			j.rule = arbiter.Rule(c.Int())
		case "subject":
			j.subject = r.name(c.Text())
		case "margin":
			j.margin = c.Billionths()
		case "quorum":
			j.quorum = r.quorum(c)
		case "parametersBind":
			j.bound = c.Bool()
		case "evidence":
			j.evidence = r.evidence(c)
		case "explanation":
			explanation := c.Raw()
			j.explain(explanation)
			if r.Exact {
				j.explanation = append([]byte(nil), explanation...)
			}
		default:
			s.member(string(name), c)
		}
	})
	if c.Err != nil {
		return c.Err
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
func (s *standing) member(name string, c *jsontext.Cursor) {
	switch name {
	case "order":
		c.Elements(func() { s.order = append(s.order, int32(c.Int())) })
	case "weights":
		c.Elements(func() { s.weights = append(s.weights, c.Billionths()) })
	case "threshold":
		s.threshold = &machine.Threshold{}
		if err := s.threshold.UnmarshalJSON(c.Raw()); err != nil {
			c.Fail("a threshold")
		}
	default:
		c.Raw()
	}
}

func (r *reader) quorum(c *jsontext.Cursor) *arbiter.Quorum {
	q := &arbiter.Quorum{}
	c.Members(func(name []byte) {
		switch string(name) {
		case "counted":
			q.Counted = int(c.Int())
		case "answered":
			q.Answered = int(c.Int())
		case "needed":
			q.Needed = int(c.Int())
		case "missing":
			c.Elements(func() { q.Missing = append(q.Missing, r.name(c.Text())) })
		default:
			c.Raw()
		}
	})
	return q
}

func (r *reader) evidence(c *jsontext.Cursor) *session.JudgedBy {
	e := &session.JudgedBy{}
	c.Members(func(name []byte) {
		switch string(name) {
		case "place":
			e.Place = c.Int()
		case "policyDigest":
			e.PolicyDigest = r.name(c.Text())
		case "versions":
			c.Elements(func() { e.Versions = append(e.Versions, r.name(c.Text())) })
		case "partial":
			e.Partial = c.Bool()
		case "stop":
			e.Stop = trust.Stop(r.name(c.Text()))
		default:
			c.Raw()
		}
	})
	return e
}

// explain takes from an explanation what the round was held to.
func (j *judged) explain(explanation []byte) {
	c := &jsontext.Cursor{B: explanation}
	c.Members(func(name []byte) {
		switch string(name) {
		case "threshold":
			bar := c.Billionths()
			j.bar = &bar
		case "risk":
			c.Members(func(name []byte) {
				if string(name) == "promise" {
					j.promise = promise(c)
				} else {
					c.Raw()
				}
			})
		default:
			c.Raw()
		}
	})
}

func promise(c *jsontext.Cursor) *trust.Promise {
	p := &trust.Promise{}
	c.Members(func(name []byte) {
		switch string(name) {
		case "maxError":
			p.MaxError = c.Billionths()
		case "confidence":
			p.Confidence = c.Billionths()
		case "perState":
			p.PerState = c.Bool()
		case "scopes":
			p.Scopes = c.Int()
		case "clopperPearson":
			p.ClopperPearson = c.Bool()
		default:
			c.Raw()
		}
	})
	return p
}
