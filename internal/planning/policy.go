package planning

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// What the rounds of a state put to the ledger (Plan.ask): the options, what binds the
// decision (a promise, or else a threshold, or else the default promise), and a digest of
// the policy.
//
// The digest decides when the test of a promise begins anew: it is made of everything
// that can change how a round is decided (arbiter, prompts, transitions, order, quorum,
// and who is asked in which version). A promise of a state depends on the policy of
// that state alone, one of the machine on those of all states. Whatever is added to
// statePolicy changes the digest of every machine that has it, so a new field is left
// out of the JSON while it is unset.

// auditable reports whether automatic decisions of a state are audited: those of
// bayes, and all where the file says how.
func (p *State) auditable(def *machine.Definition) bool {
	if p.Arbiter != nil && p.Arbiter.ByBayes() || def.Audit != nil {
		return true
	}
	i := slices.IndexFunc(def.States, func(s machine.StateDefinition) bool { return s.Name == p.State.Name })
	return i >= 0 && def.States[i].Audit != nil
}

// Offered returns a question whose options are the transitions of a state, such as those
// that conditions have left ([session.Session.Offered]).
func Offered(q trust.Question, s *machine.State) trust.Question {
	q.Options, q.Irreversible = make([]string, len(s.Transitions)), make([]bool, len(s.Transitions))
	for i, t := range s.Transitions {
		q.Options[i], q.Irreversible[i] = t.Name, t.OnlyHumans()
	}
	return q
}

// ByBayes reports whether an arbiter is the strategy bayes.
func (m *Member) ByBayes() bool { return m.StrategyFnName == machine.Bayes }

// versionOf returns a digest of what a specialist is: of its code, model and
// prompt, as far as its declaration tells.
func versionOf(s *machine.Specialist) string {
	of := []string{s.StrategyFn, s.StrategyFnName, s.StrategyWebhookURL, s.ContextFn, s.ContextWebhookURL, s.ModelID}
	if s.Agent != "" { // others have the versions that they had before there were agents
		of = append(of, s.Agent)
	}
	return DigestOf(of)
}

// DigestOf returns the first 16 hex digits of the SHA-256 of v as JSON.
func DigestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("planning: " + err.Error()) // never: v is made of texts, numbers and lists
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// A statePolicy is what a change of which opens a new risk epoch.
type statePolicy struct {
	State, Prompt        string
	Arbiter, ArbiterKind string
	Roster               [][2]string // ids and versions of those who are asked
	Transitions          [][2]string
	Risk                 *machine.Risk
	Threshold            *machine.Threshold
	Order                machine.OptionOrder
	Mode                 machine.Mode
	Wave                 int                    `json:",omitempty"` // in mode sequential
	HumanCost            *exact.Money           `json:",omitempty"` // likewise
	Quorum               *machine.Quorum        `json:",omitempty"` // declared
	Required             []string               `json:",omitempty"` // ids of those without whose answer a human decides
	When                 []string               `json:",omitempty"` // conditions, by place of the transition; none if there is none
	Set                  [][]machine.Assignment `json:",omitempty"` // likewise
}

func (p *State) policy() statePolicy {
	s := p.State
	d := statePolicy{State: s.Name, Prompt: s.Prompt, Risk: s.Risk, Threshold: s.Threshold, Order: s.OptionOrder, Mode: s.Solicit.Mode, Quorum: s.Quorum}
	if d.Mode == machine.Sequential {
		d.Wave, d.HumanCost = s.Solicit.Wave, s.Solicit.HumanCost
	}
	if p.Arbiter != nil {
		d.Arbiter, d.ArbiterKind = p.Arbiter.SpecialistID, versionOf(p.Arbiter.Specialist)
	}
	for i := range p.Members {
		if m := &p.Members[i]; !m.Off && !m.IsHuman {
			d.Roster = append(d.Roster, [2]string{m.SpecialistID, m.Version})
		}
		if m := &p.Members[i]; m.Required {
			d.Required = append(d.Required, m.SpecialistID)
		}
	}
	for _, t := range s.Transitions {
		d.Transitions = append(d.Transitions, [2]string{t.Name, t.Target})
	}
	if slices.ContainsFunc(s.Transitions, func(t *machine.Transition) bool { return t.When != "" }) {
		for _, t := range s.Transitions {
			d.When = append(d.When, t.When)
		}
	}
	if slices.ContainsFunc(s.Transitions, func(t *machine.Transition) bool { return t.Set != nil }) {
		for _, t := range s.Transitions {
			d.Set = append(d.Set, t.Set)
		}
	}
	return d
}

// definition returns the digest of what the state is, to which certificates hold.
func (d *statePolicy) definition() string {
	what := []any{d.State, d.Prompt, d.Transitions}
	if d.When != nil {
		what = append(what, d.When)
	}
	return DigestOf(what)
}

// ask fills in the questions that the rounds of a plan put to the ledger.
func (p *Plan) ask(m *machine.Machine) {
	def := m.Definition()
	policies := make([]statePolicy, len(p.States))
	scopes := int64(0)
	shared := false
	for i := range p.States {
		policies[i] = p.States[i].policy()
		own := def.States[i].Risk != nil
		if own {
			scopes++
		}
		shared = shared || !own && len(p.States[i].State.Transitions) > 0
	}
	if shared {
		scopes++
	}
	whole := digestUnder(def, policies)
	for i := range p.States {
		own := def.States[i].Risk != nil
		q := p.States[i].ask(m, own, scopes)
		if q.PolicyDigest = whole; own {
			q.PolicyDigest = digestUnder(def, policies[i])
		}
		p.States[i].Definition = policies[i].definition()
		p.States[i].Question, p.States[i].Audits = q, p.States[i].auditable(def)
	}
}

// digestUnder returns the digest of a policy and of the experts that take part in it.
func digestUnder(def *machine.Definition, policy any) string {
	of := []any{def.Stacking, policy}
	if def.LearnsFromRounds() { // others have the digests that they had before there was a choice
		of = append(of, def.LearnFrom)
	}
	return DigestOf(of)
}

// ask returns what a round of the state asks, but for the votes.
func (p *State) ask(m *machine.Machine, own bool, scopes int64) trust.Question {
	s := p.State
	q := Offered(trust.Question{Machine: m.Name(), State: s.Name}, s)
	q.Policy.NoStacking, q.Policy.Rounds = m.Definition().Stacking == "off", m.Definition().LearnsFromRounds()
	threshold := s.Threshold
	if threshold == nil && p.Arbiter != nil {
		threshold = p.Arbiter.Threshold
	}
	switch risk := s.Risk; {
	case risk != nil:
		promise := trust.Promise{MaxError: Billionths(risk.MaxError), Confidence: Billionths(cmp.Or(risk.Confidence, .9)), PerState: own, ClopperPearson: risk.Test == "clopperPearson"}
		if risk.Familywise {
			promise.Scopes = scopes
		}
		q.Policy.Promise = &promise
	case threshold != nil:
		q.Policy.Threshold = &threshold.Weight
	default:
		promise := trust.DefaultPromise()
		q.Policy.Promise = &promise
	}
	return q
}

// Billionths rounds a share that a machine file states.
func Billionths(p float64) exact.Billionths {
	b, err := exact.FromFloat(p)
	if err != nil {
		return 0 // never: the loader keeps it between 0 and 1
	}
	return b
}

// PolicyDigests returns the digest of the policy of each promise that a machine makes
// under bayes, by scope: "" for the machine, else the state. It is that by which
// sessions of the machine would be tested.
func PolicyDigests(m *machine.Machine, r *session.Roster) (map[string]PromisedPolicy, error) {
	casts, err := Cast(m, r)
	if err != nil {
		return nil, err
	}
	digests := map[string]PromisedPolicy{}
	for i := range casts {
		c := &casts[i]
		p := c.Question.Policy.Promise
		if len(c.State.Transitions) == 0 || c.Arbiter == nil || c.Arbiter.StrategyFnName != machine.Bayes || p == nil {
			continue
		}
		scope := ""
		if p.PerState {
			scope = c.State.Name
		}
		digests[scope] = PromisedPolicy{*p, c.Question.PolicyDigest}
	}
	return digests, nil
}

// A PromisedPolicy is a promise and the policy that makes it.
type PromisedPolicy struct {
	Promise trust.Promise
	Digest  string
}
