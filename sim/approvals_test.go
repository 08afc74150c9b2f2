package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The slow, obvious model of who may rule and whose approval a transition takes.

// approvals are what a transition takes.
type approvals struct {
	count   int
	from    []string // nil for whoever decides
	each    []group  // somebody of each has to be among them, another for each
	exclude string   // "" for nobody
}

// A group is one of the machine, some of whose humans are in others too.
type group struct {
	name   string
	humans []string
}

// standForEach reports whether there is somebody for each group among these humans, another
// for each: it tries everybody for the first group, and whoever is left for the others.
func standForEach(groups []group, ids []string) bool {
	if len(groups) == 0 {
		return true
	}
	return slices.ContainsFunc(both(ids, groups[0].humans), func(id string) bool {
		return standForEach(groups[1:], slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id }))
	})
}

// starter is as whom sessions are started.
const starter = "h1"

// drawApprovals draws approvals that can be given.
func (w *world) drawApprovals(c *cases, s *caseState, i int, humans []string) *approvals {
	may := humans
	if s.deciders != nil {
		may = s.deciders
	}
	a := &approvals{}
	if w.draw(3, "from", s.name, i) == 0 {
		a.from = humans[w.draw(2, "from whom", s.name, i):]
		may = both(may, a.from)
	}
	a.count = 1 + w.draw(min(3, len(may)), "how many approve", s.name, i)
	if w.draw(4, "each", s.name, i) > 0 {
		first, most := w.draw(len(c.groups), "which groups", s.name, i), 1+w.draw(3, "how many groups", s.name, i)
		for n := range c.groups {
			if each := append(slices.Clip(a.each), c.groups[(first+n)%len(c.groups)]); len(each) <= most && standForEach(each, may) {
				a.each = each
			}
		}
		a.count = max(a.count, len(a.each))
	}
	if w.draw(2, "exclude", s.name, i) == 0 {
		a.exclude = []string{machine.ExcludeStarter, machine.ExcludePrevious, "open", "next"}[w.draw(4, "whom", s.name, i)]
	}
	return a
}

// both returns who is in both lists.
func both(a, b []string) (list []string) {
	for _, id := range a {
		if slices.Contains(b, id) {
			list = append(list, id)
		}
	}
	return list
}

// written returns the approvals as the machine's file has them, but for the defect that
// is put in.
func (a *approvals) written(m *mutation) string {
	file := map[string]any{}
	if len(a.each) < 2 || a.count > len(a.each) {
		file["count"] = a.count
	}
	if a.from != nil {
		file["from"] = a.from
	}
	var each []string
	for _, g := range a.each {
		each = append(each, "group:"+g.name)
	}
	if m.is("a group is forgotten") && len(each) > 1 {
		each, file["count"] = each[1:], a.count
	}
	if each != nil {
		file["each"] = each
	}
	if a.exclude != "" && !m.is("exclude is forgotten") {
		file["exclude"] = []string{a.exclude}
	}
	if m.is("one approval is enough") {
		file["count"] = 1
		delete(file, "each")
	}
	text, _ := json.Marshal(file)
	if len(file) == 1 && file["count"] != nil {
		text, _ = json.Marshal(file["count"])
	}
	return string(text)
}

// The names of the invariants of people.
const (
	approvalsGiven = "approvals"
	deciderRules   = "who may not decide closes nothing"
	pendingHolds   = "pending rulings hold everything else up"
)

func (c *check) approvalsGiven() error { return c.wrong(approvalsGiven) }

func (c *check) deciderRules() error { return c.wrong(deciderRules) }

// pendingHolds looks also at whether a session waits for a human as long as a ruling is
// pending.
func (c *check) pendingHolds() error {
	if c.w.cases == nil || c.wrong(pendingHolds) != nil {
		return c.wrong(pendingHolds)
	}
	if n := len(c.s.ruled[c.after.Key()]); n > 0 && c.after.Status == session.Running {
		return fmt.Errorf("the session runs, and %d rulings are pending", n)
	}
	return nil
}

// off is since when a human is switched off, and until when.
type switched struct {
	id string
	on bool
	at int // by how many acts of the world had begun
}

// whether says of a human whether they have been on, and off, at some time since an act
// began: who rules while they are switched off may have been a moment too early.
func (w *world) whether(id string, since int) (on, off bool) {
	state := true
	for _, s := range w.switches {
		if s.id != id {
			continue
		}
		if s.at > since {
			on, off = on || state, off || !state
		}
		state = s.on
	}
	return on || state, off || !state
}

// since returns when the act of the record has begun.
func (c *check) since() int {
	if c.act == nil {
		return c.w.moment
	}
	return c.act.began
}

// decides reports whether a human may rule in the state of the round, certainly or at most.
func (c *check) decides(state *caseState, id string) (certain, possible bool) {
	if !c.w.isHuman(id) || state.deciders != nil && !slices.Contains(state.deciders, id) {
		return false, false
	}
	on, off := c.w.whether(id, c.since())
	return !off, on
}

// eligible says why a human may not choose a transition, by what was executed before.
func (l *caseLog) eligible(a *approvals, id string) error {
	if a.from != nil && !slices.Contains(a.from, id) {
		return fmt.Errorf("%s is not one of %v", id, a.from)
	}
	switch a.exclude {
	case "":
	case machine.ExcludeStarter:
		if id == starter {
			return fmt.Errorf("%s has started the session", id)
		}
	case machine.ExcludePrevious:
		if n := len(l.steps); n > 0 && authored(l.steps[n-1], id) {
			return fmt.Errorf("%s has executed the step before", id)
		}
	default:
		for i := len(l.steps) - 1; i >= 0; i-- {
			if e := l.steps[i]; e.IsHuman && e.Transition.From.Name == a.exclude {
				if authored(e, id) {
					return fmt.Errorf("%s has ruled in %s last", id, a.exclude)
				}
				break
			}
		}
	}
	return nil
}

func authored(e *session.Executed, id string) bool {
	return e.SpecialistID == id || slices.Contains(e.Authors, id)
}

func equalRuling(r *session.Ruled, name string, payload json.RawMessage) bool {
	return r.Transition.Name == name && reflect.DeepEqual(object(r.MetaJSON), object(payload))
}

// ruledOn looks at a ruling that is recorded.
func (c *check) ruledOn(key specialist.RoundKey, d *session.Ruled) {
	l, state := c.s.cases, c.w.cases.state(c.before.State.Name)
	if _, may := c.decides(state, d.SpecialistID); !may {
		l.blame(deciderRules, "%s rules in %s, where %v decide", d.SpecialistID, state.name, state.deciders)
	}
	if d.Transition == nil {
		c.w.count("rulings taken back")
		return
	}
	if _, closed := l.closed[d.Transition.Name]; closed {
		l.blame(conditionsHold, "%s rules %s, which is closed", d.SpecialistID, d.Transition.Name)
	}
	a := state.rule(d.Transition.Name).approvals
	if a == nil {
		return
	}
	if err := l.eligible(a, d.SpecialistID); err != nil {
		l.blame(deciderRules, "a ruling on %s is recorded: %w", d.Transition.Name, err)
	}
	var sure []string
	for _, r := range c.s.ruled[key] { // d is among them
		if may, _ := c.decides(state, r.SpecialistID); (may || r == d) && equalRuling(r, d.Transition.Name, d.MetaJSON) && l.eligible(a, r.SpecialistID) == nil {
			sure = append(sure, r.SpecialistID)
		}
	}
	if len(sure) >= a.count && standForEach(a.each, sure) {
		l.blame(approvalsGiven, "%v have chosen %s, which is enough, and it is not executed", sure, d.Transition.Name)
	}
}

// mayExecute looks at who has chosen what is executed.
func (c *check) mayExecute(key specialist.RoundKey, d *session.Executed) {
	l, state := c.s.cases, c.w.cases.state(d.Transition.From.Name)
	rule, waiting := state.rule(d.Transition.Name), c.s.ruled[key]
	switch {
	case d.How == session.ByTimer: // due_test.go looks at these
		return
	case !d.IsHuman:
		c.consensus(state, rule, d, len(waiting))
		return
	}
	authors := d.Authors
	if len(authors) == 0 {
		authors = []string{d.SpecialistID}
	}
	for _, id := range authors {
		if _, may := c.decides(state, id); !may {
			l.blame(deciderRules, "%s executes %s in %s, where %v decide", id, d.Transition.Name, state.name, state.deciders)
		}
	}
	if rule.approvals != nil {
		c.approved(rule.approvals, state, waiting, authors, d)
	}
}

// consensus looks at what is executed without a ruling.
func (c *check) consensus(state *caseState, rule *caseRule, d *session.Executed, waiting int) {
	l := c.s.cases
	proposedBy := c.w.isHuman(d.SpecialistID)
	switch {
	case waiting > 0:
		l.blame(pendingHolds, "%s is executed by consensus where %d rulings wait", d.Transition.Name, waiting)
	case rule.approvals != nil:
		l.blame(approvalsGiven, "%s is executed by consensus, and takes %d approvals", d.Transition.Name, rule.approvals.count)
	case state.deciders != nil && rule.irreversible:
		l.blame(deciderRules, "%s is executed by consensus of %s, and cannot be undone where %v decide", d.Transition.Name, d.SpecialistID, state.deciders)
	case state.deciders != nil && proposedBy && !slices.Contains(state.deciders, d.SpecialistID):
		l.blame(deciderRules, "%s is executed because %s proposed it, where %v decide", d.Transition.Name, d.SpecialistID, state.deciders)
	}
}

// approved compares the authors of an executed transition with the approvals that it takes.
func (c *check) approved(a *approvals, state *caseState, waiting []*session.Ruled, authors []string, d *session.Executed) {
	l, seen := c.s.cases, map[string]bool{}
	for _, id := range authors {
		said := id == d.SpecialistID || slices.ContainsFunc(waiting, func(r *session.Ruled) bool {
			return r.SpecialistID == id && equalRuling(r, d.Transition.Name, d.MetaJSON)
		})
		if err := l.eligible(a, id); err != nil {
			l.blame(approvalsGiven, "%s is executed for %v: %w", d.Transition.Name, authors, err)
		} else if !said || seen[id] {
			l.blame(approvalsGiven, "%s %s is executed for %v, and %s has not ruled so", d.Transition.Name, d.MetaJSON, authors, id)
		}
		seen[id] = true
	}
	switch {
	case len(seen) < a.count:
		l.blame(approvalsGiven, "%s is executed for %v, and takes %d approvals", d.Transition.Name, authors, a.count)
	case !standForEach(a.each, authors):
		l.blame(approvalsGiven, "%s is executed for %v, and takes one of each of %v", d.Transition.Name, authors, a.each)
	}
	for _, r := range waiting {
		if may, _ := c.decides(state, r.SpecialistID); may && !seen[r.SpecialistID] && equalRuling(r, d.Transition.Name, d.MetaJSON) && l.eligible(a, r.SpecialistID) == nil {
			l.blame(approvalsGiven, "%s is executed for %v, and %s has ruled so too", d.Transition.Name, authors, r.SpecialistID)
		}
	}
	if a.count > 1 {
		c.w.count("approvals complete")
	}
	if len(a.each) > 1 {
		c.w.count("approvals of several groups complete")
	}
}

// humanOffice returns what whoever runs the engine may do to humans.
func (p *process) humanOffice() (list []choice) {
	w := p.w
	if w.cases == nil || !w.cases.switching {
		return nil
	}
	for _, h := range w.humans[1:] {
		on, _ := w.whether(h.id, w.moment)
		what := "switches on " + h.id
		if on {
			what = "switches off " + h.id
		}
		list = append(list, choice{p.name + " " + what, 1, false, func() {
			p.run(what, nil, func(ctx context.Context, _ *observed) error {
				err := p.r.Switch(ctx, w.machine.Name(), machine.SpecialistID(h.id), runner.Switching{On: !on, Actor: *operator})
				if err == nil {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.moment++
					w.switches = append(w.switches, switched{h.id, !on, w.moment})
				}
				return err
			})
		}})
	}
	return list
}

// payload is what a human says with a ruling, in one of two forms of the same number.
func (h *human) payload(saw *sight) json.RawMessage {
	if h.w.cases == nil {
		return nil
	}
	key := saw.Key()
	switch h.w.draw(5, "payload", h.w.opinion(h.id), key) {
	case 0:
		return nil
	case 1:
		return json.RawMessage(fmt.Sprintf(`{"amount":%d}`, 1+h.w.draw(2, "amount", h.id, key)))
	}
	return json.RawMessage([]string{`{"amount":2}`, `{"amount":2.0}`, `{"amount":20e-1}`}[h.w.draw(3, "form", h.id, key)])
}
