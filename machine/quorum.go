package machine

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// A Quorum says how many of the proposers that are counted in a round must have
// answered before it can be decided without a human. The zero Quorum asks for
// nobody.
type Quorum struct {
	Rule  QuorumRule // "" if Count says it
	Count int        // so many, however many are counted; 0 if Rule says it
}

// A QuorumRule is a quorum that grows with the panel.
type QuorumRule string

// The rules. MajorityQuorum holds where a machine file says nothing, but for
// strategies and modes that decide by whoever comes first: there AnyQuorum does.
const (
	AnyQuorum      QuorumRule = "any"      // one answer
	MajorityQuorum QuorumRule = "majority" // more than half
	AllQuorum      QuorumRule = "all"
)

// Needed returns how many of counted proposers must have answered. Where nobody is
// counted a rule asks for nobody; a number asks for so many all the same.
func (q Quorum) Needed(counted int) int {
	switch q.Rule {
	case AnyQuorum:
		return min(1, counted)
	case MajorityQuorum:
		if counted == 0 {
			return 0
		}
		return counted/2 + 1
	case AllQuorum:
		return counted
	}
	return q.Count
}

// String returns the quorum as a machine file writes it.
func (q Quorum) String() string {
	if q.Rule != "" {
		return string(q.Rule)
	}
	return strconv.Itoa(q.Count)
}

// MarshalJSON writes a rule as text and a number as number.
func (q Quorum) MarshalJSON() ([]byte, error) {
	if q.Rule != "" {
		return json.Marshal(q.Rule)
	}
	return strconv.AppendInt(nil, int64(q.Count), 10), nil
}

const quorumHint = `it may be "any", "majority", "all", or how many must answer, from 1`

// valid reports whether a machine file may say q.
func (q Quorum) valid() bool {
	switch q.Rule {
	case AnyQuorum, MajorityQuorum, AllQuorum:
		return q.Count == 0
	case "":
		return q.Count >= 1 && q.Count <= math.MaxInt32
	}
	return false
}

func (d *decoder) quorum(into **Quorum) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		q := Quorum{}
		switch {
		case n.kind == stringNode && n.text == "": // the zero Quorum is something else
			d.report(n.line, n.col, Problem{Path: path, Code: "bad-value", Message: what + ` is ""`, Hint: quorumHint})
			return
		case n.kind == stringNode:
			q.Rule = QuorumRule(n.text)
		case n.kind == numberNode && n.bad == "":
			v, _ := strconv.ParseFloat(n.text, 64)
			if v != math.Trunc(v) || v < 1 || v > math.MaxInt32 {
				d.report(n.line, n.col, Problem{Path: path, Code: "bad-value", Message: fmt.Sprintf("%s is %s", what, clip(n.text, 40)), Hint: quorumHint})
				return
			}
			q.Count = int(v)
		default:
			d.wrongType(n, path, what, "a rule or a number")
			return
		}
		*into = &q
	}
}

// checkQuorums checks the quorums of the machine and its states, and that nobody
// is required who cannot be waited for.
func (c *checker) checkQuorums() {
	c.checkQuorum("/quorum", c.def.Quorum)
	for i := range c.def.States {
		c.checkQuorum(c.statePath(i)+"/quorum", c.def.States[i].Quorum)
	}
}

func (c *checker) checkQuorum(path string, q *Quorum) {
	if q == nil || q.valid() {
		return
	}
	hint := quorumHint
	if q.Rule != "" {
		if near := didYouMean(string(q.Rule), []string{string(AnyQuorum), string(MajorityQuorum), string(AllQuorum)}); near != "" {
			hint = near
		}
	}
	c.report(path, false, Problem{Code: "bad-value", Message: fmt.Sprintf("quorum is %q", clip(q.String(), 40)), Hint: hint})
}

// checkRequiredAnswer checks the member required of one entry of a list. other is
// the declaration that a reference names, nil if there is none.
func (c *checker) checkRequiredAnswer(at string, s, other *Specialist) {
	if !s.Required {
		return
	}
	switch {
	case s.IsHuman || other != nil && other.IsHuman:
		c.report(at+"/required", false, Problem{Code: "bad-role",
			Message: fmt.Sprintf("human %q cannot be required: nobody waits for a human's proposal", s.SpecialistID),
			Hint:    `where a human must agree, write "irreversible": true on the transition`})
	case s.Role == Arbiter:
		c.report(at+"/required", false, Problem{Code: "bad-role",
			Message: fmt.Sprintf("arbiter %q cannot be required: only proposers are", s.SpecialistID), Hint: "remove required here"})
	}
}
