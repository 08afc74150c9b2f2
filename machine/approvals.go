package machine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
)

// Who may rule, and how many humans a transition takes. A file names humans by their ids,
// or by groups of them ("group:NAME"): those who may rule in a state (deciders), and
// for a transition how many of them have to choose it (approvals), of which groups, and
// who may not because of an earlier act in the session (exclude). Names are resolved
// here, once; who is excluded depends on a session and is worked out when somebody rules.

// A Group is a name for humans of a machine.
type Group struct {
	Name   string
	Humans []string // ids, in written order
}

type groupList []Group

// MarshalJSON writes an object of lists of ids.
func (l groupList) MarshalJSON() ([]byte, error) {
	return asObject(l, func(g *Group) (string, any) { return g.Name, g.Humans })
}

// Approvals say which humans have to choose a transition before it is executed. The zero
// value of each member means that it is absent.
type Approvals struct {
	Count   int      `json:"count,omitempty"`   // how many; as many as Each if absent, or 1
	From    []string `json:"from,omitempty"`    // ids and groups of those who count; nil means all deciders
	Each    []string `json:"each,omitempty"`    // groups of which one human each, another for each group, has to be among them
	Exclude []string `json:"exclude,omitempty"` // ExcludeStarter, ExcludePrevious, or a state
}

// What Approvals may exclude, beside who ruled last in a state.
const (
	ExcludeStarter  = "starter"  // as whom the session was started
	ExcludePrevious = "previous" // who executed the step before
)

// Needed returns how many humans have to choose the transition: never fewer than Each has
// groups, as may stand in a definition that a store holds.
func (a *Approvals) Needed() int {
	return max(1, a.Count, len(a.Each))
}

// MarshalJSON writes approvals that are no more than a number as such.
func (a Approvals) MarshalJSON() ([]byte, error) {
	if a.Count > 0 && a.From == nil && a.Each == nil && a.Exclude == nil {
		return strconv.AppendInt(nil, int64(a.Count), 10), nil
	}
	type plain Approvals
	return jsontext.Marshal(plain(a))
}

// An ApprovalRule is what the approvals of a transition come to.
type ApprovalRule struct {
	Needed  int      // how many humans have to choose the transition, from 1
	From    []string // the ids of those who count; nil means everybody who may rule in the state
	Each    []Group  // groups of which one human each, another for each group, has to be among them
	Exclude []string // as in Approvals
}

// Lacks returns which of Each nobody of the ids is left for, by their indices: each human
// stands for one group, and earlier groups come first. It is nil if there is somebody for
// each.
func (r *ApprovalRule) Lacks(ids []string) (groups []int) {
	standsFor := make(map[string]int, len(r.Each))
	for i := range r.Each {
		if !r.assign(i, ids, standsFor, map[string]bool{}) {
			groups = append(groups, i)
		}
	}
	return groups
}

// assign finds somebody who stands for a group, if need be by having others change theirs.
func (r *ApprovalRule) assign(group int, ids []string, standsFor map[string]int, tried map[string]bool) bool {
	for _, id := range ids {
		if tried[id] || !slices.Contains(r.Each[group].Humans, id) {
			continue
		}
		tried[id] = true
		if other, taken := standsFor[id]; !taken || r.assign(other, ids, standsFor, tried) {
			standsFor[id] = group
			return true
		}
	}
	return false
}

const groupPrefix = "group:"

// humansNamed returns the ids that a list of ids and groups stands for, each once. What
// names no group is left out.
func (def *Definition) humansNamed(list []string) []string {
	ids := []string{}
	for _, name := range list {
		named := []string{name}
		if group, isGroup := strings.CutPrefix(name, groupPrefix); isGroup {
			named = def.group(group)
		}
		for _, id := range named {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// group returns the humans of a group; nil if there is none of that name.
func (def *Definition) group(name string) []string {
	for _, g := range def.Groups {
		if g.Name == name {
			return g.Humans
		}
	}
	return nil
}

// approvalRule resolves the approvals of a transition of a state; nil if it has none.
func (def *Definition) approvalRule(a *Approvals, deciders []string) *ApprovalRule {
	if a == nil {
		return nil
	}
	rule := &ApprovalRule{Needed: a.Needed(), From: deciders, Exclude: a.Exclude}
	if a.From != nil {
		rule.From = def.humansNamed(a.From)
		if deciders != nil {
			rule.From = slices.DeleteFunc(rule.From, func(id string) bool { return !slices.Contains(deciders, id) })
		}
	}
	for _, name := range a.Each {
		name = strings.TrimPrefix(name, groupPrefix)
		rule.Each = append(rule.Each, Group{name, def.group(name)})
	}
	return rule
}

// Starters reports whether a transition excludes who started the session: then it has to
// be said as whom one is started.
func (m *Machine) Starters() bool { return m.starters }

// excludesStarter reports whether the approvals of a transition exclude who started.
func (t *Transition) excludesStarter() bool {
	return t.Approvals != nil && slices.Contains(t.Approvals.Exclude, ExcludeStarter)
}

// Reading.

func (d *decoder) groups(into *groupList) func(n *node, path, what string) {
	return d.only(objectNode, "an object", func(n *node, path, _ string) {
		d.duplicates(n, path)
		*into = make(groupList, len(n.keys))
		for i, k := range n.keys {
			g := &(*into)[i]
			g.Name = k.name
			d.texts(&g.Humans)(n.items[i], pointer(path, k.name), fmt.Sprintf("group %q", clip(k.name, maxNameRunes)))
		}
	})
}

// texts reads an array of strings.
func (d *decoder) texts(into *[]string) func(n *node, path, what string) {
	return d.only(arrayNode, "an array", func(n *node, path, what string) {
		*into = make([]string, len(n.items))
		for i, item := range n.items {
			text(d, &(*into)[i])(item, pointer(path, strconv.Itoa(i)), fmt.Sprintf("%s[%d]", what, i))
		}
	})
}

const approvalsHint = `say how many humans have to choose it, from 1, or {"count": 2, "from": ["group:finance"], "exclude": ["starter"]}`

func (d *decoder) approvals(into **Approvals) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		a := &Approvals{}
		switch n.kind {
		case numberNode:
			d.approvalCount(&a.Count)(n, path, what)
		case objectNode:
			d.object(n, path, what, []field{
				{"count", d.approvalCount(&a.Count)},
				{"from", d.texts(&a.From)},
				{"each", d.texts(&a.Each)},
				{"exclude", d.texts(&a.Exclude)},
			})
			if len(n.keys) == 0 {
				d.report(n.line, n.col, Problem{Path: path, Code: "missing-field", Message: what + " is {}, which says nothing", Hint: approvalsHint})
			}
		default:
			d.wrongType(n, path, what, "a number or an object")
			return
		}
		*into = a
	}
}

func (d *decoder) approvalCount(into *int) func(n *node, path, what string) {
	return func(n *node, path, what string) {
		v, err := strconv.ParseFloat(n.text, 64)
		if n.kind != numberNode || n.bad != "" || err != nil || v != math.Trunc(v) || v < 1 || v > maxApprovals {
			d.report(n.line, n.col, Problem{Path: path, Code: "bad-value", Message: fmt.Sprintf("%s is no whole number from 1 to %d", what, maxApprovals), Hint: approvalsHint})
			return
		}
		*into = int(v)
	}
}

// maxApprovals is how many humans a machine can have.
const maxApprovals = 256

// Checking.

// checkPeople checks who may rule and who has to: that groups name humans, that lists
// name groups and humans, and that there are enough of them.
func (c *checker) checkPeople() {
	known := c.humansOfMachine()
	for i := range c.def.Groups {
		g := &c.def.Groups[i]
		at := pointer("/groups", g.Name)
		if fault := badName(g.Name); fault != "" {
			c.report(at, true, Problem{Code: "bad-name", Message: fmt.Sprintf("the name %q %s", clip(g.Name, maxNameRunes), fault), Hint: "choose a short name of printable characters"})
		}
		c.checkHumans(at, fmt.Sprintf("group %q", clip(g.Name, maxNameRunes)), g.Humans, known, false)
	}
	for i := range c.def.States {
		s := &c.def.States[i]
		if s.Deciders != nil {
			c.checkHumans(c.statePath(i)+"/deciders", fmt.Sprintf("deciders of state %q", clip(s.Name, maxNameRunes)), s.Deciders, c.humansOfState(s, known), true)
		}
		for j := range s.Transitions {
			if t := &s.Transitions[j]; t.Approvals != nil {
				c.checkApprovals(c.statePath(i)+pointer("/transitions", t.Name)+"/approvals", s, t)
			}
		}
	}
}

// humansOfMachine returns the ids of the humans whom the machine's own list declares.
func (c *checker) humansOfMachine() (ids []string) {
	for i := range c.def.Specialists {
		if d := &c.def.Specialists[i]; d.IsHuman {
			ids = append(ids, d.SpecialistID)
		}
	}
	return ids
}

// humansOfState adds those whom the list of a state declares.
func (c *checker) humansOfState(s *StateDefinition, ids []string) []string {
	ids = slices.Clip(ids)
	for i := range s.Specialists {
		if d := c.resolve(&s.Specialists[i]); d.IsHuman && !slices.Contains(ids, d.SpecialistID) {
			ids = append(ids, d.SpecialistID)
		}
	}
	return ids
}

// checkHumans checks a list of humans, and of groups if it may name such.
func (c *checker) checkHumans(at, what string, list, humans []string, groups bool) {
	if len(list) == 0 && !c.unread[at] {
		c.report(at, false, Problem{Code: "missing-field", Message: what + " names nobody", Hint: "list the ids of humans" + orGroups(groups)})
	}
	for i, name := range list {
		at := pointer(at, strconv.Itoa(i))
		if c.unread[at] {
			continue
		}
		group, isGroup := strings.CutPrefix(name, groupPrefix)
		switch {
		case isGroup && !groups:
			c.report(at, false, Problem{Code: "bad-value", Message: fmt.Sprintf("%s names %q: a group names humans, and no groups", what, clip(name, maxNameRunes)), Hint: "list the ids of its humans"})
		case isGroup:
			c.checkGroup(at, what, group)
		case slices.Contains(humans, name):
		case c.declared(name) >= 0:
			c.report(at, false, Problem{Code: "bad-role", Message: fmt.Sprintf("%s names %q, who is no human", what, clip(name, maxNameRunes)), Hint: `only specialists with "isHuman": true rule`})
		default:
			c.report(at, false, Problem{Code: "unknown-human", Message: fmt.Sprintf("%s names %q, whom nobody declares", what, clip(name, maxNameRunes)),
				Hint: cmp.Or(c.groupHint(name, groups), didYouMean(name, humans), `declare them in the machine's specialists: {"role": "proposer", "specialistId": "`+clip(name, maxNameRunes)+`", "isHuman": true}`)})
		}
	}
}

func orGroups(groups bool) string {
	if groups {
		return ` or groups of them, such as "group:finance"`
	}
	return ""
}

// groupHint is for who writes the name of a group as that of a human.
func (c *checker) groupHint(name string, groups bool) string {
	if groups && c.def.group(name) != nil {
		return fmt.Sprintf(`write "%s%s" for the group`, groupPrefix, name)
	}
	return ""
}

func (c *checker) checkGroup(at, what, group string) {
	if c.def.group(group) != nil || c.unread[pointer("/groups", group)] {
		return
	}
	names := make([]string, len(c.def.Groups))
	for i, g := range c.def.Groups {
		names[i] = g.Name
	}
	c.report(at, false, Problem{Code: "unknown-group", Message: fmt.Sprintf("%s names group %q, which does not exist", what, clip(group, maxNameRunes)),
		Hint: cmp.Or(didYouMean(group, names), `declare it: "groups": {"`+clip(group, maxNameRunes)+`": ["ID", …]}`)})
}

func (c *checker) checkApprovals(at string, s *StateDefinition, t *TransitionDefinition) {
	a, what := t.Approvals, fmt.Sprintf("approvals of transition %q", clip(t.Name, maxNameRunes))
	if a.Count < 0 || a.Count > maxApprovals {
		c.report(at+"/count", false, Problem{Code: "bad-value", Message: fmt.Sprintf("%s is no whole number from 1 to %d", what, maxApprovals), Hint: approvalsHint})
	}
	if groups := len(a.Each); a.Count > 0 && a.Count < groups {
		c.report(at+"/count", false, Problem{Code: "bad-value", Message: fmt.Sprintf("%s takes %d in all, and one of each of %d groups: each human stands for one", what, a.Count, groups),
			Hint: fmt.Sprintf(`write "count": %d, or more, or leave it out: then it takes as many as each has groups`, groups)})
	}
	if a.From != nil {
		c.checkHumans(at+"/from", what, a.From, c.humansOfState(s, c.humansOfMachine()), true)
	}
	for i, name := range a.Each {
		at := at + "/each/" + strconv.Itoa(i)
		if group, isGroup := strings.CutPrefix(name, groupPrefix); isGroup {
			c.checkGroup(at, what, group)
		} else if !c.unread[at] {
			c.report(at, false, Problem{Code: "bad-value", Message: fmt.Sprintf("%s takes one of %q, which is no group", what, clip(name, maxNameRunes)),
				Hint: cmp.Or(c.groupHint(name, true), `name groups of the machine, such as "group:finance"`)})
		}
	}
	for i, name := range a.Exclude {
		at := at + "/exclude/" + strconv.Itoa(i)
		if states := c.stateNames(); name != ExcludeStarter && name != ExcludePrevious && !slices.Contains(states, name) && !c.unread[at] {
			c.report(at, false, Problem{Code: "unknown-state", Message: fmt.Sprintf("%s excludes %q, which is no state", what, clip(name, maxNameRunes)),
				Hint: cmp.Or(didYouMean(name, append(states, ExcludeStarter, ExcludePrevious)), `it may be "starter", "previous", or a state`)})
		}
	}
	c.checkEnough(at, s, a, what)
}

// checkEnough refuses approvals that can never be complete.
func (c *checker) checkEnough(at string, s *StateDefinition, a *Approvals, what string) {
	may, unknown := c.humansOf(s)
	if a.From != nil {
		from := c.def.humansNamed(a.From)
		may = slices.DeleteFunc(may, func(id string) bool { return !slices.Contains(from, id) })
	}
	if len(may)+unknown < a.Needed() {
		c.report(at, false, Problem{Code: tooFewHumans, Message: fmt.Sprintf("%s takes %d, and %s", what, a.Needed(), howManyOf(may)), Hint: "declare more humans, let more of them decide, or ask for fewer"})
		return
	}
	rule := c.def.approvalRule(a, nil)
	for _, i := range rule.Lacks(may) {
		g, why := rule.Each[i], "of whom nobody may rule there"
		if slices.ContainsFunc(g.Humans, func(id string) bool { return slices.Contains(may, id) }) {
			why = "and whoever may rule there of them stands for another group: each human stands for one"
		}
		if g.Humans != nil && unknown == 0 {
			c.report(at+"/each/"+strconv.Itoa(i), false, Problem{Code: tooFewHumans, Message: fmt.Sprintf("%s takes one of %s, %s", what, a.Each[i], why), Hint: "let one of them decide in this state"})
		}
	}
}

func howManyOf(humans []string) string {
	if len(humans) < 2 {
		return howMany(humans)
	}
	return fmt.Sprintf("only %d humans may rule there", len(humans))
}
