package sim_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/dialai/dialai/session"
)

// Sessions are handed to another driver and back. Here whoever steps a session does so by name, so nothing else may
// change: neither where it stands, nor what it waits for, nor what its first record says.

const handedOver = "another driver changes nothing else"

// drivers returns the choices of whoever hands sessions over, in the runs in which somebody does.
func (p *process) drivers() (list []choice) {
	w := p.w
	if w.draw(4, "drivers") > 0 {
		return nil
	}
	for _, s := range w.sessions {
		if s.now == nil || s.now.Status == session.Completed {
			continue
		}
		to := session.DriverTemporal
		if s.now.Options().Driver != session.DriverPool {
			to = session.DriverPool
		}
		list = append(list, choice{fmt.Sprintf("%s hands %s to %s", p.name, s, to), 1, false, func() {
			p.run("drivers", s, func(ctx context.Context, s *observed) error {
				_, err := p.r.SetDriver(ctx, s.id, to, operator)
				return err
			})
		}})
	}
	return list
}

// handedOver compares a session before and after it has another driver.
func (c *check) handedOver() error {
	for _, e := range c.events {
		d, ok := e.Data.(*session.DriverChanged)
		if !ok {
			continue
		}
		c.w.count("other drivers")
		was, is := c.before, c.after
		switch {
		case len(c.events) != 1:
			return fmt.Errorf("it is handed over beside other events")
		case was.Options().Driver == d.Driver || is.Options().Driver != d.Driver:
			return fmt.Errorf("it was with %s, is handed to %s, and is with %s", was.Options().Driver, d.Driver, is.Options().Driver)
		case was.Status != is.Status || was.Key() != is.Key() || was.State != is.State || was.Executed != is.Executed || was.WakeAt() != is.WakeAt():
			return fmt.Errorf("it was %s in round %s, and is %s in round %s", was.Status, was.Key().ID(), is.Status, is.Key().ID())
		case !bytes.Equal(was.Data().JSON(), is.Data().JSON()) || len(was.Proposals()) != len(is.Proposals()) || len(was.OpenAsks()) != len(is.OpenAsks()) || pending(was) != pending(is):
			return fmt.Errorf("its round is another one")
		}
	}
	return nil
}
