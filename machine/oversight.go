package machine

import (
	"slices"

	"github.com/dialai/dialai/exact"
)

// How the decisions of a state are watched: collapse, audits, second humans, the order
// in which options are shown. Each is read with its defaults in place, so that what is
// absent in a file is never 0; a Definition that was built in Go gets the same defaults
// when it is compiled (copyCollapse and its like), there for members that are zero. A
// state has its own or else the machine's, as a whole: members are not mixed.

// A Collapse lets specialists earn the right to decide a state without being
// checked each time. Without one a state ends at consensus.
type Collapse struct {
	Target       float64      `json:"target" validate:"gt=0,lt=1,gte=0.000000001,lte=0.999999999"`      // share of agreement to be proven; 0.9 if absent
	Alpha        float64      `json:"alpha" validate:"gt=0,lt=1,gte=0.000000001,lte=0.999999999"`       // chance of promoting who does not reach it; 0.05 if absent
	ClassTarget  float64      `json:"classTarget" validate:"gt=0,lt=1,gte=0.000000001,lte=0.999999999"` // the same for each transition humans often chose; 0.5 if absent
	RequireBlind *bool        `json:"requireBlind,omitempty"`                                           // true if absent: only rulings made without sight of the proposals count
	Prune        bool         `json:"prune,omitempty"`                                                  // who costs money and informs nobody is asked no more
	ErrorCost    *exact.Money `json:"errorCost,omitempty" validate:"omitnil,gte=0"`                     // of one wrong decision; humanCost / maxError if absent
	CoolDown     int          `json:"coolDown" validate:"gte=1,lte=1000000"`                            // outcomes after a demotion; 20 if absent
	Expires      Duration     `json:"expires" validate:"gt=0"`                                          // of certificates; 30 days if absent
}

// Withheld reports whether what was proposed in the state is kept from humans until
// they have ruled: so that their rulings are evidence of their own.
func (s *State) Withheld() bool { return s.Collapse != nil }

// An Audit says how the decisions that nobody was asked about are looked at.
type Audit struct {
	Mode         string  `json:"mode" validate:"oneof=before after"`    // after if absent
	Rate         float64 `json:"rate" validate:"gt=0,lte=1"`            // 0.05 if absent
	NewcomerRate float64 `json:"newcomerRate" validate:"gt=0,lte=1"`    // of the first decisions; 0.25 if absent
	Newcomer     int     `json:"newcomer" validate:"gte=1,lte=1000000"` // how many those are; 40 if absent
}

// The modes of Audit and the moments of SecondHuman.
const (
	Before = "before" // the human decides, then the transition is executed
	After  = "after"  // it is executed, and looked at later
)

// A SecondHuman has a share of what humans decide decided again by another.
type SecondHuman struct {
	Rate             float64  `json:"rate" validate:"gt=0,lte=1"`                      // 0.05 if absent
	IrreversibleRate *float64 `json:"irreversibleRate" validate:"omitnil,gte=0,lte=1"` // 1 if absent
	When             string   `json:"when" validate:"oneof=before after"`              // after if absent
}

// An OptionOrder says in which order proposers see the transitions.
type OptionOrder string

// The orders of options.
const (
	RandomOrder   OptionOrder = "random" // the default: drawn for each ask, and logged
	DeclaredOrder OptionOrder = "declared"
)

// Defaults of the decisions specification, 4.3 to 5.
const (
	defaultTarget       = 0.9
	defaultAlpha        = 0.05
	defaultClassTarget  = 0.5
	defaultCoolDown     = 20
	defaultExpires      = Duration(30 * 24 * 3600e9)
	defaultAuditRate    = 0.05
	defaultNewcomerRate = 0.25
	defaultNewcomer     = 40
	defaultSecondRate   = 0.05
)

func newCollapse() Collapse {
	return Collapse{
		Target: defaultTarget, Alpha: defaultAlpha, ClassTarget: defaultClassTarget,
		RequireBlind: new(true), CoolDown: defaultCoolDown, Expires: defaultExpires,
	}
}

func newAudit() Audit {
	return Audit{Mode: After, Rate: defaultAuditRate, NewcomerRate: defaultNewcomerRate, Newcomer: defaultNewcomer}
}

func newSecondHuman() SecondHuman {
	return SecondHuman{Rate: defaultSecondRate, IrreversibleRate: new(1.0), When: After}
}

func (d *decoder) collapse(into **Collapse) func(n *node, path, what string) {
	c := newCollapse()
	return members(d, into, &c, []field{
		{"target", d.float(&c.Target)},
		{"alpha", d.float(&c.Alpha)},
		{"classTarget", d.float(&c.ClassTarget)},
		{"requireBlind", d.optionalFlag(&c.RequireBlind)},
		{"prune", d.flag(&c.Prune)},
		{"errorCost", d.money(&c.ErrorCost)},
		{"coolDown", d.count(&c.CoolDown)},
		{"expires", d.duration(&c.Expires)},
	})
}

func (d *decoder) audit(into **Audit) func(n *node, path, what string) {
	a := newAudit()
	return members(d, into, &a, []field{
		{"mode", choice(d, &a, &a.Mode)},
		{"rate", d.float(&a.Rate)},
		{"newcomerRate", d.float(&a.NewcomerRate)},
		{"newcomer", d.count(&a.Newcomer)},
	})
}

func (d *decoder) secondHuman(into **SecondHuman) func(n *node, path, what string) {
	s := newSecondHuman()
	return members(d, into, &s, []field{
		{"rate", d.float(&s.Rate)},
		{"irreversibleRate", d.float(s.IrreversibleRate)},
		{"when", choice(d, &s, &s.When)},
	})
}

// members returns what reads an object into v, which into then leads to.
func members[T any](d *decoder, into **T, v *T, fields []field) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if d.object(n, path, what, fields) {
			*into = v
		}
	}
}

// wave reads a count, or "auto".
func (d *decoder) wave(into *int) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		if n.kind == stringNode && n.text == "auto" {
			*into = AutoWave
			return
		}
		d.count(into)(n, path, what)
	}
}

func copyCollapse(c *Collapse) *Collapse {
	own := copyOf(c)
	if own == nil {
		return nil
	}
	d := newCollapse()
	orDefault(&own.Target, d.Target)
	orDefault(&own.Alpha, d.Alpha)
	orDefault(&own.ClassTarget, d.ClassTarget)
	orDefault(&own.CoolDown, d.CoolDown)
	orDefault(&own.Expires, d.Expires)
	own.RequireBlind = copyOf(firstSet(own.RequireBlind, d.RequireBlind))
	own.ErrorCost = copyOf(own.ErrorCost)
	return own
}

func copyAudit(a *Audit) *Audit {
	own := copyOf(a)
	if own == nil {
		return nil
	}
	d := newAudit()
	orDefault(&own.Mode, d.Mode)
	orDefault(&own.Rate, d.Rate)
	orDefault(&own.NewcomerRate, d.NewcomerRate)
	orDefault(&own.Newcomer, d.Newcomer)
	return own
}

func copySecondHuman(s *SecondHuman) *SecondHuman {
	own := copyOf(s)
	if own == nil {
		return nil
	}
	d := newSecondHuman()
	orDefault(&own.Rate, d.Rate)
	orDefault(&own.When, d.When)
	own.IrreversibleRate = copyOf(firstSet(own.IrreversibleRate, d.IrreversibleRate))
	return own
}

func orDefault[T comparable](into *T, value T) {
	var zero T
	if *into == zero {
		*into = value
	}
}

// oversee fills in how the decisions of a state are watched: its own members or
// else the machine's.
func (s *State) oversee(def *Definition, own *StateDefinition) {
	s.Collapse = firstSet(own.Collapse, def.Collapse)
	s.SecondHuman = firstSet(own.SecondHuman, def.SecondHuman)
	s.Audit = newAudit()
	if a := firstSet(own.Audit, def.Audit); a != nil {
		s.Audit = *a
	}
	s.OptionOrder = RandomOrder
	for _, order := range []OptionOrder{def.OptionOrder, own.OptionOrder} {
		if order != "" {
			s.OptionOrder = order
		}
	}
}

// SecondBefore reports whether a second human may have to agree before anything that a
// human rules is executed.
func (s *State) SecondBefore() bool { return s.SecondHuman != nil && s.SecondHuman.When == Before }

// RuledBySome reports whether not every human who takes part may rule on everything in the
// state, or several have to: it has deciders, or transitions that take approvals.
func (s *State) RuledBySome() bool {
	return s.Deciders != nil || slices.ContainsFunc(s.Transitions, func(t *Transition) bool { return t.Approvals != nil })
}
