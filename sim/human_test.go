package sim_test

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// A human looks at a question, thinks for as long as the scheduler likes, and then
// acts on what was seen.
type human struct {
	w    *world
	id   string
	saw  map[*session]*runner.Session
	acts []*act
}

// An act is what a human wanted to happen.
type act struct {
	human      string
	s          *session
	round      specialist.RoundKey // that was seen
	transition string
	pinned     string // the round that was named
	result     runner.Arbitration
	landed     bool
	err        error
}

func (h *human) choices() (list []choice) {
	for _, s := range h.w.sessions {
		list = append(list, choice{fmt.Sprintf("%s looks at %s", h.id, s), 3, false, func() { h.look(s) }})
		saw := h.saw[s]
		if saw == nil {
			continue
		}
		for _, p := range h.w.procs {
			if p.dead || p.paused || len(p.active) > 1 {
				continue
			}
			list = append(list, h.may(p, s, saw)...)
		}
	}
	return list
}

// may returns what a human can do about a question that was seen.
func (h *human) may(p *process, s *session, saw *runner.Session) (list []choice) {
	if n := len(saw.State.Transitions); n > 0 && saw.Status.Live() {
		t := saw.State.Transitions[h.w.draw(n, "ruling", h.id, saw.Key())]
		list = append(list,
			choice{fmt.Sprintf("%s rules %s on %s round %d.%d through %s", h.id, t.Name, s, saw.Round, saw.Attempt, p.name), 5, false,
				func() { h.rule(p, s, saw, t.Name) }},
			choice{fmt.Sprintf("%s proposes %s on %s round %d.%d through %s", h.id, t.Name, s, saw.Round, saw.Attempt, p.name), 1, false,
				func() { h.propose(p, s, saw, t.Name) }})
	}
	if reviews := saw.Reviews(); len(reviews) > 0 {
		v := reviews[0]
		t := v.State.Transitions[h.w.draw(len(v.State.Transitions), "review", h.id, v.Key)]
		list = append(list, choice{fmt.Sprintf("%s reviews %s round %d through %s", h.id, s, v.Key.Round, p.name), 3, false, func() {
			delete(h.saw, s)
			p.run("review", s, func(ctx context.Context, s *session) error {
				_, err := p.r.Review(ctx, runner.Reviewing{SessionID: s.id, RoundID: v.Key.ID(), SpecialistID: h.id, TransitionName: t.Name, Blind: true})
				return err
			})
		}})
	}
	return list
}

// look reads the question as it is now.
func (h *human) look(s *session) {
	f, err := h.w.fold(context.Background(), runner.NewPrograms(), s.id)
	if err != nil {
		h.w.fail("log equals fold", "%s cannot be read: %v", s, err)
		return
	}
	h.saw[s] = f.Session()
}

// rule has the human's word recorded, on the round that was seen.
func (h *human) rule(p *process, s *session, saw *runner.Session, transition string) {
	a := &act{human: h.id, s: s, round: saw.Key(), transition: transition, pinned: saw.Key().ID()}
	if h.w.mutation.is("human does not pin the round") {
		a.pinned = runner.CurrentRound
	}
	h.acts = append(h.acts, a)
	delete(h.saw, s)
	p.run(h.id+" rules on", s, func(ctx context.Context, s *session) error {
		a.result, a.err = p.r.Decide(ctx, runner.Ruling{SessionID: s.id, SpecialistID: h.id, RoundID: a.pinned, TransitionName: transition, Reasoning: h.id + " says so"})
		a.landed = true
		return a.err
	})
}

func (h *human) propose(p *process, s *session, saw *runner.Session, transition string) {
	delete(h.saw, s)
	p.run(h.id+" proposes on", s, func(ctx context.Context, s *session) error {
		_, _, err := p.r.Propose(ctx, runner.Submission{SessionID: s.id, SpecialistID: h.id, RoundID: saw.Key().ID(), TransitionName: transition, Reasoning: h.id + " proposes"})
		return err
	})
}
