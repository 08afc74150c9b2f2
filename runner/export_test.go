package runner

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/dialai/dialai/internal/collapse"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// OpenRound returns everything a session knows of its round, as text.
func OpenRound(s *session.Session) string {
	if s.Open == nil {
		return "nothing"
	}
	var b strings.Builder
	o := s.Open
	for _, p := range o.Proposals {
		fmt.Fprintf(&b, "%s %s %q %s %+v %s %d %d %t %s", p.SpecialistID, p.Transition.Name, p.Reasoning, p.MetaJSON, p.Usage, p.CreatedAt, p.Arrival, p.Replaces, p.IsHuman, p.Mode)
		if p.Detail != nil {
			fmt.Fprintf(&b, " %+v", *p.Detail)
		}
		b.WriteByte('\n')
	}
	for _, a := range o.Asks {
		fmt.Fprintf(&b, "ask %d %s %s %s %d", a.Index, a.SpecialistID, a.Role, a.Source, a.Status)
		if a.Remote != nil {
			fmt.Fprintf(&b, " %+v", *a.Remote)
		}
		b.WriteByte('\n')
	}
	if v := o.Verdict; v != nil {
		fmt.Fprintf(&b, "verdict %d %d %s %s %d %d %s %q %v %v %v %v\n", v.Index, v.Ask, v.ArbiterID, v.Strategy, v.Decision.Winner, v.Decision.Rule,
			v.Decision.Code(), v.Decision.Reasoning(), v.Order, v.Weights, v.Threshold, v.Margin)
	}
	if o.Wave != nil {
		fmt.Fprintf(&b, "wave %+v\n", *o.Wave)
	}
	for _, p := range o.Probes {
		value := -1.0
		if p.Value != nil {
			value = *p.Value
		}
		fmt.Fprintf(&b, "probe %s %d %s %s %q %v %s %q %+v %s %t\n", p.Guard, p.Ask, p.Stage, p.Question, p.Reply, value, p.Code, p.Message, p.Usage, p.Model, p.Free)
	}
	fmt.Fprintf(&b, "%q %d %d %s %t", o.Notices, o.Arrivals, o.Verdicts, o.Cost, o.Blocked)
	return b.String()
}

// A Gate is the gate of one transition, for tests of it alone.
type Gate struct{ gate gate }

// NewGate returns the gate of t.
func NewGate(t *machine.Transition) *Gate {
	g := &Gate{}
	g.gate.init(t)
	return g
}

// JudgeFunc makes a judge of a function.
type JudgeFunc func(src, dst string) verdict.Verdict

func (f JudgeFunc) judge(src, dst string) verdict.Verdict { return f(src, dst) }

// Pass fires the event of the transition and reports whether there is a permit.
func (g *Gate) Pass(ctx context.Context, f JudgeFunc) (bool, verdict.Verdict, error) {
	p, v, err := g.gate.pass(ctx, f)
	return p.valid && p.transition == g.gate.transition, v, err
}

// Keys are the keys of the callbacks of a gate.
var Keys = []string{beforeAny, afterAny}

// Draw draws for a round's audit.
func Draw(secret []byte, key specialist.RoundKey) float64 { return draw(secret, key, "audit") }

// Unasked is what the gate says of a step that its guards want asked about, if
// the inquiry was about another one.
func Unasked(asked, passing verdict.Step) verdict.Verdict {
	return (&inquiry{step: asked, verdict: verdict.Verdict{}}).on(&passing)
}

// QuotaUsed returns what a tenant has used in the first window of its quota, as
// calls, tokens and dollars, and how many sessions are open.
func (r *Runner) QuotaUsed(tenant string) (used [3]int64, sessions int) {
	for _, s := range r.quota.Snapshot().Scopes {
		if s.Scope.Tenant != tenant {
			continue
		}
		if s.Scope.Session != "" && s.Scope.Round == "" {
			sessions++
		}
		for _, w := range s.Windows[:min(len(s.Windows), 1)] {
			for i := range w.Calls {
				used[0], used[1], used[2] = used[0]+w.Calls[i], used[1]+w.Tokens[i], used[2]+int64(w.USD[i])
			}
		}
	}
	return used, sessions
}

// Meet reads what the tenant of a session did before, as the first step does.
func (r *Runner) Meet(ctx context.Context, s *session.Session) error { return r.loadTenant(ctx, s) }

// Watchers returns how many watch a runner.
func Watchers(r *Runner) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.watchers)
}

// Plans returns how many plans a runner keeps.
func Plans(r *Runner) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(maps.Collect(r.plans.All()))
}

// SamePayload reports whether two payloads are the same; "" is none.
func SamePayload(a, b string) bool {
	text := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	return session.SamePayload(text(a), text(b))
}

// What tests compare notes and actors with.
const (
	NoSavingNote = noSavingNote
	Engine       = collapse.ByEngine
)
