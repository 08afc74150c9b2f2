package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
)

// Who may choose a transition that takes approvals. Its rule names whose word counts, and
// excludes who has done an earlier step, so that nobody approves what is their own: as
// whom the session was started, who executed the step before, who ruled in a state last, be
// it by a proposal that won. That is a function of the log, and of it alone. Who is switched off since, or may not
// rule in the state at all, is known to whoever drives the session.

// NotEligible says why a human may not choose a transition; "" if they may, as far as the
// transition's approvals go.
func (s *Session) NotEligible(t *machine.Transition, id string) string {
	rule := t.Approvals
	if rule == nil {
		return ""
	}
	if rule.From != nil && !slices.Contains(rule.From, id) {
		return fmt.Sprintf("%s is none of those whose approval of %q counts: %s", id, t.Name, strings.Join(rule.From, ", "))
	}
	for _, what := range rule.Exclude {
		if ids, why := s.excluded(what); slices.Contains(ids, id) {
			return fmt.Sprintf("%s may not choose %q: %s", id, t.Name, why)
		}
	}
	return ""
}

// excluded returns whom a word of exclude means in this session, and why.
func (s *Session) excluded(what string) (ids []string, why string) {
	switch what {
	case machine.ExcludeStarter:
		return s.StartedBy(), "they started the session (exclude: starter)"
	case machine.ExcludePrevious:
		return s.last.by(), "they executed the step before (exclude: previous)"
	}
	for e, step := s.last, s.Executed; e != nil; e, step = e.Previous, step-1 {
		if s.stateNow(e.Transition.From.Name, step) == what && (e.IsHuman || human(s.Machine(), e.SpecialistID)) {
			return e.by(), fmt.Sprintf("they ruled in state %q (exclude: %s)", what, what)
		}
	}
	return nil, ""
}

// Forgets returns, of a session that has just been moved, a human who has ruled in a state that
// is none of the definition any more, and a state of that one that approvals exclude and that may
// be the same, because it is new. All are "" if there is none. before is the session as it was.
func (s *Session) Forgets(before *Session) (by, was, excluded string) {
	for e, step := s.last, s.Executed; e != nil; e, step = e.Previous, step-1 {
		if s.StateNow(e.Transition.From.Name, step) != nil || !e.IsHuman && !human(before.Machine(), e.SpecialistID) {
			continue
		}
		was := before.stateNow(e.Transition.From.Name, step)
		for _, st := range s.Machine().States() {
			for _, t := range st.Transitions {
				if t.Approvals == nil {
					continue
				}
				for _, name := range t.Approvals.Exclude {
					taken := before.Machine().State(was) != nil && before.Machine().State(name) != nil
					if s.Machine().State(name) != nil && !taken {
						return e.SpecialistID, was, name
					}
				}
			}
		}
	}
	return "", "", ""
}

// StartedBy returns the humans as whom the session, or one from which it was forked, was
// started.
func (s *Session) StartedBy() (ids []string) {
	for _, a := range append(slices.Clip(s.starters), s.Options().Actor) {
		if a != nil {
			ids = append(ids, a.Humans...)
		}
	}
	return ids
}

// human reports whether a machine has a human of that id.
func human(m *machine.Machine, id string) bool {
	is := func(sp machine.Specialist) bool { return sp.SpecialistID == id && sp.IsHuman }
	return slices.ContainsFunc(m.Specialists(), is) || slices.ContainsFunc(m.States(), func(s machine.State) bool { return slices.ContainsFunc(s.Roster, is) })
}

// by returns everybody whose choice an execution was; nobody's for nil.
func (e *Executed) by() []string {
	if e == nil {
		return nil
	}
	return append(slices.Clip(e.Authors), e.SpecialistID)
}

// agreeing returns who has chosen what r chooses and still may, by when they first
// ruled.
func (p *PendingRulings) agreeing(r *Ruled, may func(*Ruled) bool) (list []*Ruled) {
	for _, other := range p.List {
		if other.Equals(r) && may(other) {
			list = append(list, other)
		}
	}
	return list
}

// complete reports whether rulings are all that the approvals of their transition ask for.
func complete(rule *machine.ApprovalRule, list []*Ruled) bool {
	return len(list) >= rule.Needed && rule.Lacks(authors(list)) == nil
}

// authors returns who has given rulings.
func authors(list []*Ruled) []string {
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.SpecialistID
	}
	return ids
}

// Given says how far the approvals are that wait: for each choice how many have made it
// who still may, and who.
func (p *PendingRulings) Given(may func(*Ruled) bool) string {
	var texts []string
	var said []*Ruled
	for _, r := range p.List {
		if r.Transition.Approvals == nil || slices.ContainsFunc(said, r.Equals) {
			continue
		}
		said = append(said, r)
		texts = append(texts, p.given(r, may))
	}
	return strings.Join(texts, "; ")
}

func (p *PendingRulings) given(r *Ruled, may func(*Ruled) bool) string {
	rule, list := r.Transition.Approvals, p.agreeing(r, may)
	text := fmt.Sprintf("%d of %d approvals for %s", min(len(list), rule.Needed), rule.Needed, r.Transition.Name)
	if other := slices.ContainsFunc(p.List, func(o *Ruled) bool { return o.Transition == r.Transition && !o.Equals(r) }); other && r.MetaJSON != nil {
		text += " with " + clipPayload(r.MetaJSON)
	}
	for i, a := range list {
		text += [2]string{": ", ", "}[min(i, 1)] + a.SpecialistID
	}
	if len(list) < rule.Needed {
		return text
	}
	lacks := rule.Lacks(authors(list))
	if lacks == nil { // who had given one was switched on again
		return text + "; one of them has to choose it once more"
	}
	for _, i := range lacks {
		text += fmt.Sprintf(", and nobody for %s", rule.Each[i].Name)
	}
	return text
}

// QuestionApprovals say how far the approvals of a transition are.
type QuestionApprovals struct {
	Needed    int        `json:"needed"`             // how many humans have to choose it
	Given     []string   `json:"given"`              // who have, the same payload included, as far as that is shown
	Differ    bool       `json:"differ,omitempty"`   // about the payload: Given are those who agree with whoever looks, and nobody else
	Remaining []string   `json:"remaining"`          // who may rule, and choose it, and are none of these
	Each      []string   `json:"each,omitempty"`     // groups of which one human each, another for each group, has to be among them
	Excluded  []Excluded `json:"excluded,omitempty"` // who may rule, but not choose it, and who has started the session, if that excludes them

	lost []string // groups for which nobody is left who may rule and choose it
}

// give enters who has chosen a transition, of those who still may: where they differ about
// its payload, those who agree with the viewer.
func (a *QuestionApprovals) give(t *machine.Transition, p *PendingRulings, may func(*Ruled) bool, viewer string) {
	var said *Ruled
	for _, r := range p.List {
		if r.Transition != t || !may(r) {
			continue
		}
		a.Differ = a.Differ || said != nil && !said.Equals(r)
		said = r
	}
	if own := p.By(viewer); a.Differ && own != nil && own.Transition == t {
		said = own
	} else if a.Differ {
		return
	}
	if said != nil {
		a.Given = authors(p.agreeing(said, may))
	}
}

// Excluded is a human who may not choose a transition, and why.
type Excluded struct {
	SpecialistID string `json:"specialistId"`
	Reason       string `json:"reason"`
}

// ApprovalsOf returns how far the approvals of a transition are; nil if it takes none.
// humans are the ids of those who may rule in the present state, viewer is who looks, "" for
// nobody in particular.
func (s *Session) ApprovalsOf(t *machine.Transition, humans []string, viewer string) *QuestionApprovals {
	rule, p := t.Approvals, s.round().Rulings
	if rule == nil {
		return nil
	}
	a := &QuestionApprovals{Needed: rule.Needed, Given: []string{}, Remaining: []string{}}
	for _, g := range rule.Each {
		a.Each = append(a.Each, g.Name)
	}
	may := func(r *Ruled) bool {
		return slices.Contains(humans, r.SpecialistID) && s.NotEligible(t, r.SpecialistID) == ""
	}
	if p != nil && !p.Conceals() {
		a.give(t, p, may, viewer)
	}
	for _, id := range humans {
		if why := s.NotEligible(t, id); why != "" {
			a.Excluded = append(a.Excluded, Excluded{id, why})
		} else if !slices.Contains(a.Given, id) {
			a.Remaining = append(a.Remaining, id)
		}
	}
	if slices.Contains(rule.Exclude, machine.ExcludeStarter) {
		for _, id := range s.StartedBy() {
			if _, why := s.excluded(machine.ExcludeStarter); !slices.Contains(humans, id) {
				a.Excluded = append(a.Excluded, Excluded{id, fmt.Sprintf("%s may not choose %q: %s", id, t.Name, why)})
			}
		}
	}
	for _, i := range rule.Lacks(append(slices.Clip(a.Given), a.Remaining...)) {
		a.lost = append(a.lost, rule.Each[i].Name)
	}
	return a
}

// OutcomeBy returns why the session is not running, as it is with the humans who may rule in
// its state now: while rulings are pending, it goes by those that still count, and
// CodeTooFew says that nobody can rule on anything.
func (s *Session) OutcomeBy(humans []string) Outcome {
	o := s.Outcome()
	if s.Status != NeedsHuman {
		return o
	}
	if why := s.tooFew(humans); why != "" {
		o.Code, o.Reason = CodeTooFew, why
		return o
	}
	if p := s.round().Rulings; s.round().Pending() && slices.Contains(rulingCodes, o.Code) {
		may := func(r *Ruled) bool {
			return slices.Contains(humans, r.SpecialistID) && s.NotEligible(r.Transition, r.SpecialistID) == ""
		}
		o.Code, o.Reason = p.WaitsFor(may, len(slices.DeleteFunc(slices.Clone(humans), func(id string) bool { return p.By(id) != nil })))
		if o.Code == CodeContested && p.Conceals() {
			o.Reason = shownOnceRuled
		}
	}
	return o
}

// tooFew says why nobody can rule on anything, where only some humans may; "" if somebody
// can.
func (s *Session) tooFew(humans []string) string {
	second := s.round().Pending() && s.round().Rulings.Drawn()
	if !second && !s.State.RuledBySome() {
		return ""
	}
	switch {
	case len(humans) > 0:
	case s.State.Deciders == nil:
		return fmt.Sprintf("No human who takes part in state %q is switched on", s.State.Name)
	default:
		return fmt.Sprintf("Nobody who decides in state %q takes part or is switched on: %s", s.State.Name, strings.Join(s.State.Deciders, ", "))
	}
	var why []string
	for _, t := range s.State.Transitions {
		closed := s.WhyClosed(t)
		if closed == "" && t.Approvals != nil {
			closed = s.ApprovalsOf(t, humans, "").Unreachable(t.Name)
		} else if closed == "" && second && len(humans) < 2 {
			closed = fmt.Sprintf("two humans have to choose the same, and only %s may rule", humans[0])
		}
		if closed == "" {
			return ""
		}
		if !slices.Contains(why, closed) {
			why = append(why, closed)
		}
	}
	return "Nobody can rule here: " + strings.Join(why, "; ")
}

// Unreachable says why the approvals cannot be completed any more by those who may rule;
// "" if they can.
func (a *QuestionApprovals) Unreachable(name string) string {
	left := len(a.Given) + len(a.Remaining)
	text := fmt.Sprintf("transition %q takes %d approvals, and only %d can be given", name, a.Needed, left)
	switch {
	case left >= a.Needed && a.lost == nil:
		return ""
	case left >= a.Needed:
		text = fmt.Sprintf("transition %q takes the approval of one of %s, and nobody is left to give it for them", name, a.lost[0])
	}
	for i, e := range a.Excluded {
		text += [2]string{": ", "; "}[min(i, 1)] + e.Reason
	}
	return text
}
