package sim_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// Sessions are moved to another definition of their machine and back. It differs in what a
// state asks for, so that all that the models say of one definition holds for the other.

const movedOnly = "a move changes the definition only"

// another returns the same machine with another prompt.
func (w *world) another(m *machine.Machine, c machine.Checks) *machine.Machine {
	def := *m.Definition()
	def.States = append(def.States[:0:0], def.States...)
	def.States[0].Prompt += " Which way now?"
	other, err := machine.Compile(&def, c)
	if err != nil {
		w.t.Fatalf("seed %d: with another prompt the machine does not load: %v", w.seed, err)
	}
	return other
}

// moves returns the choices of whoever moves sessions, in the runs in which somebody does.
func (p *process) moves() (list []choice) {
	w := p.w
	if w.draw(3, "moves") > 0 {
		return nil
	}
	for _, s := range w.sessions {
		if s.now == nil || s.now.Status == session.Completed {
			continue
		}
		to := w.other
		if s.now.Machine().Digest() == to.Digest() {
			to = w.machine
		}
		list = append(list, choice{fmt.Sprintf("%s moves %s", p.name, s), 1, false, func() {
			p.run("moves", s, func(ctx context.Context, s *observed) error {
				_, err := p.r.Move(ctx, s.id, to, runner.Moving{Actor: *operator, Note: "a better file"})
				return err
			})
		}})
	}
	return list
}

// movedOnly compares a session before and after a move.
func (c *check) movedOnly() error {
	for i, e := range c.events {
		d, ok := e.Data.(*session.Moved)
		if !ok {
			continue
		}
		c.w.count("moves")
		was, is := c.before, c.after
		_, opens := c.events[min(i+1, len(c.events)-1)].Data.(*session.RoundOpened)
		switch {
		case i > 0 || len(c.events) != 2 || !opens:
			return fmt.Errorf("it moves beside other events")
		case was.Status == session.Completed || d.From != was.Machine().Digest() || is.Machine().Digest() == d.From:
			return fmt.Errorf("it was %s under %.12s, and moves from %.12s to %.12s", was.Status, was.Machine().Digest(), d.From, is.Machine().Digest())
		case was.State.Name != is.State.Name || was.Round != is.Round || was.Attempt+1 != is.Attempt || was.Executed != is.Executed:
			return fmt.Errorf("it was in %s, round %d.%d after %d transitions, and is in %s, round %d.%d after %d", was.State.Name, was.Round, was.Attempt, was.Executed, is.State.Name, is.Round, is.Attempt, is.Executed)
		case was.Status.Live() != is.Status.Live() || !was.Status.Live() && was.Status != is.Status:
			return fmt.Errorf("it was %s and is %s", was.Status, is.Status)
		case string(was.Data().JSON()) != string(is.Data().JSON()) || dueOf(was) != dueOf(is):
			return fmt.Errorf("its data were %s, due %s, and are %s, due %s", was.Data().JSON(), dueOf(was), is.Data().JSON(), dueOf(is))
		case len(is.Proposals()) > 0 || len(is.OpenAsks()) > 0 || pending(is):
			return fmt.Errorf("its round does not begin anew")
		}
	}
	return nil
}

func pending(s *session.Session) bool {
	list, _ := s.PendingRulings()
	return len(list) > 0
}
