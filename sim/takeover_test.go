package sim_test

import (
	"fmt"
	"strings"

	"github.com/dialai/dialai/session"
)

func (c *check) takeOver() error {
	if c.before == nil {
		return nil
	}
	out := map[int32]session.Ask{}
	for _, a := range c.before.OpenAsks() {
		out[a.Index] = a
	}
	for i, e := range c.events {
		if c.keys[i] != c.before.Key() {
			continue
		}
		for _, index := range takenOver(e.Data) {
			old, ok := out[index]
			if !ok || old.Remote == nil {
				continue
			}
			c.w.count("asks taken over")
			const overdue = 5000 // milliseconds
			if !strings.HasPrefix(old.Remote.Owner, c.p.incarnation()+"-") && c.w.alive(old.Remote.Owner) && e.At <= old.Remote.Deadline+overdue {
				return fmt.Errorf("ask %d of %s is taken over from %s, which lives, before %s", index, old.SpecialistID, old.Remote.Owner, old.Remote.Deadline)
			}
		}
	}
	return nil
}

// takenOver returns the asks that an event takes over from whoever had them: it asks
// again, or says that a question of the guards was lost.
func takenOver(d session.Data) (asks []int32) {
	switch d := d.(type) {
	case *session.Asked:
		for _, a := range d.Asks {
			if a.Remote != nil && !a.Remote.Accepted {
				asks = append(asks, a.Index)
			}
		}
	case *session.Probed:
		if d.Code == session.CodeLost {
			asks = append(asks, d.Ask)
		}
	}
	return asks
}
