package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Invariants of what humans do: a log may hold nothing that no human wanted.

// acted returns what humans wanted of a session.
func (w *world) acted(s *observed) (list []*act) {
	for _, h := range w.humans {
		for _, a := range h.acts {
			if a.s == s {
				list = append(list, a)
			}
		}
	}
	return list
}

// wanted reports whether a human wanted exactly this of the round.
func (w *world) wanted(s *observed, id string, d deed, key specialist.RoundKey, transition string, payload json.RawMessage) bool {
	return slices.ContainsFunc(w.acted(s), func(a *act) bool {
		return a.human == id && a.deed == d && a.round == key && a.transition == transition && reflect.DeepEqual(object(a.payload), object(payload))
	})
}

func (w *world) wishes(s *observed, id string) (list []string) {
	for _, a := range w.acted(s) {
		if a.human == id {
			list = append(list, fmt.Sprintf("%s %s%s in round %d.%d", a.deed, a.transition, a.to, a.round.Round, a.round.Attempt))
		}
	}
	return list
}

func (c *check) humanActs() error {
	for i, e := range c.events {
		key, by, what, there := c.keys[i], "", "", true
		switch d := e.Data.(type) {
		case *session.Executed:
			if !d.IsHuman {
				continue
			}
			c.w.count("rulings")
			by, what = d.SpecialistID, "executes "+d.Transition.Name
			there = d.Round == key.Round && d.Attempt == key.Attempt
			for _, id := range append([]string{by}, d.Authors...) {
				there = there && c.w.wanted(c.s, id, rules, key, d.Transition.Name, d.MetaJSON)
			}
		case *session.Ruled:
			by, what = d.SpecialistID, "rules"
			if d.Transition == nil {
				there = c.w.wanted(c.s, by, withdraws, key, "", nil)
			} else {
				there = c.w.wanted(c.s, by, rules, key, d.Transition.Name, d.MetaJSON)
			}
		case *session.Retracted:
			by, what = d.SpecialistID, fmt.Sprintf("takes back round %d", d.Round)
			there = c.w.wanted(c.s, by, retracts, d.Key(c.s.id), "", nil)
		case *session.Resumed:
			for _, r := range d.Raised {
				c.w.count("limits raised")
				by, what = d.SpecialistID, "raises a limit to "+string(r.To)
				there = slices.ContainsFunc(c.w.acted(c.s), func(a *act) bool { return a.human == by && a.deed == raises && a.to == string(r.To) })
			}
		}
		if !there {
			return fmt.Errorf("%s %s in round %d.%d, and never wanted that of that round: %s", by, what, key.Round, key.Attempt, c.w.wishes(c.s, by))
		}
	}
	return nil
}

// asSeen compares the question that a human has pinned with the one that was there when
// the word was recorded.
func (c *check) asSeen() error {
	if c.act == nil || c.act.digest == "" {
		return nil
	}
	for _, e := range c.events {
		switch e.Data.(type) {
		case *session.Executed, *session.Ruled:
		default:
			continue
		}
		c.w.count("rulings on a digest")
		q, err := c.w.reader.Question(context.Background(), c.before, machine.SpecialistID(c.act.human))
		if err != nil || q.Digest != c.act.digest {
			return fmt.Errorf("%s ruled on the question %.12s, and it was %.12s then (%v)", c.act.human, c.act.digest, q.Digest, err)
		}
	}
	return nil
}

// together looks at rulings that wait for others: what is executed is what two have
// chosen, and nobody's word changes once another's is there.
func (c *check) together() error { return c.alone }

// ruled enters a ruling that waits for others.
func (c *check) ruled(key specialist.RoundKey, d *session.Ruled) {
	list := c.s.ruled[key]
	i := slices.IndexFunc(list, func(r *session.Ruled) bool { return r.SpecialistID == d.SpecialistID })
	if i >= 0 && len(list) > 1 && !c.s.contested[key] && (c.w.cases == nil || c.s.cases.drawn[key]) {
		c.alone = fmt.Errorf("%s changes a ruling after another human has ruled", d.SpecialistID)
	}
	if i >= 0 {
		list = slices.Delete(slices.Clone(list), i, i+1)
	}
	if d.Transition != nil {
		list = append(list, d)
	}
	c.w.count("rulings that wait")
	c.s.ruled[key] = list
}

// executed compares what is executed with the rulings that waited.
func (c *check) executed(key specialist.RoundKey, d *session.Executed) {
	waiting := c.s.ruled[key]
	switch {
	case !d.IsHuman && d.How != session.ByTimer && c.w.second == "before" && c.w.isHuman(d.SpecialistID):
		c.alone = fmt.Errorf("%s is executed because %s proposed it, where a second human may have to agree", d.Transition.Name, d.SpecialistID)
	case len(waiting) == 0 && (!d.IsHuman || !c.w.alwaysTwo()):
	case c.w.cases != nil && (!d.IsHuman || !c.twoHumans(key, d)): // approvals_test.go looks at these
	case !d.IsHuman:
		c.alone = fmt.Errorf("%s is executed for a program where %d rulings wait", d.Transition.Name, len(waiting))
	case len(d.Authors) < 2 || !slices.Contains(d.Authors, d.SpecialistID):
		c.alone = fmt.Errorf("%s is executed for %s and %q where two have to agree", d.Transition.Name, d.SpecialistID, d.Authors)
	}
	for i, id := range d.Authors {
		agrees := id == d.SpecialistID || slices.ContainsFunc(waiting, func(r *session.Ruled) bool { return r.SpecialistID == id && r.Transition == d.Transition })
		if !agrees || slices.Index(d.Authors, id) < i {
			c.alone = fmt.Errorf("%s is executed for %q, and %s has not ruled so", d.Transition.Name, d.Authors, id)
		}
	}
	if len(d.Authors) > 1 {
		c.w.count("joint rulings")
	}
}

// twoHumans reports whether two humans have to agree on what is executed because a second
// one was drawn. Whether one is left to be drawn is not looked at where humans are switched
// off.
func (c *check) twoHumans(key specialist.RoundKey, d *session.Executed) bool {
	if c.w.cases.state(d.Transition.From.Name).rule(d.Transition.Name).approvals != nil {
		return false
	}
	return c.s.cases.drawn[key] && len(c.s.ruled[key]) > 0 || c.w.alwaysTwo() && !c.w.cases.switching
}

// isHuman reports whether somebody is one of the humans of the world.
func (w *world) isHuman(id string) bool {
	return slices.ContainsFunc(w.humans, func(h *human) bool { return h.id == id })
}

// alwaysTwo reports whether no ruling of one human is executed.
func (w *world) alwaysTwo() bool {
	return w.second == "before" && w.secondRate == "1" && len(w.humans) > 1
}
