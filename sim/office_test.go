package sim_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// Who runs the engine cancels sessions, and registers specialists and switches them
// off and on, while sessions run.

// actOf returns the act that an activity carries out; nil if it carries out none.
func actOf(ctx context.Context) *act {
	if a, ok := ctx.Value(key{}).(*activity); ok {
		return a.act
	}
	return nil
}

// newcomers are who may be registered while sessions run: a function and a service.
func (w *world) newcomers() []machine.Specialist {
	list := []machine.Specialist{{Role: machine.Proposer, SpecialistID: "r1", StrategyFn: "fn"}}
	if s := w.services["r2"]; s != nil {
		list = append(list, machine.Specialist{Role: machine.Proposer, SpecialistID: s.id, StrategyWebhookURL: "https://hooks.example/r2", WebhookTokenName: "A_WEBHOOK_TOKEN", EstimatedCostUSD: &s.estimate})
	}
	return list
}

// eager is how likely a session is resumed: a stopped one soon, or nothing would
// happen any more.
func (w *world) eager(s *observed) int {
	if s.now != nil && s.now.Status == session.Stopped {
		return 4
	}
	return 1
}

// office returns what whoever runs the engine may do, in the runs in which they do
// something.
func (p *process) office() (list []choice) {
	w := p.w
	if len(p.active) > 1 {
		return nil
	}
	if w.draw(3, "cancels") == 0 {
		for _, s := range w.sessions {
			if s.now != nil && s.now.Status.Live() {
				list = append(list, choice{fmt.Sprintf("%s cancels %s", p.name, s), 1, false, func() { p.run("cancel", s, p.cancelled) }})
			}
		}
	}
	list = append(append(list, p.humanOffice()...), append(append(p.moves(), p.drivers()...), p.forks()...)...)
	if w.draw(4, "registers") > 0 {
		return list
	}
	for _, s := range w.newcomers() {
		for _, c := range []struct {
			what string
			do   func(context.Context) error
		}{
			{"registers", func(ctx context.Context) error {
				_, err := p.r.Register(ctx, w.machine.Name(), s, operator)
				return err
			}},
			{"switches off", func(ctx context.Context) error {
				return p.r.Switch(ctx, w.machine.Name(), machine.SpecialistID(s.SpecialistID), runner.Switching{Actor: *operator})
			}},
			{"switches on", func(ctx context.Context) error {
				return p.r.Switch(ctx, w.machine.Name(), machine.SpecialistID(s.SpecialistID), runner.Switching{On: true, Actor: *operator})
			}},
		} {
			what := c.what + " " + s.SpecialistID
			list = append(list, choice{p.name + " " + what, 1, false, func() {
				p.run(what, nil, func(ctx context.Context, _ *observed) error { return c.do(ctx) })
			}})
		}
	}
	return list
}

func (p *process) cancelled(ctx context.Context, s *observed) error {
	_, err := p.r.Stop(ctx, s.id, runner.Stopping{Actor: *operator, Note: "enough"})
	return err
}

// higher is the limit that a human raises a session's limit to.
func (s *observed) higher() exact.Money { return s.limit + exact.Dollar/2 }
