package sim_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A human looks at a question, thinks for as long as the scheduler likes, and then
// acts on what was seen.
type human struct {
	w    *world
	id   string
	saw  map[*observed]*sight
	acts []*act
}

// A sight is a question as a human saw it.
type sight struct {
	*session.Session
	digest string
}

// A deed is what a human can do to a session.
type deed string

// The deeds.
const (
	rules     deed = "rules"
	withdraws deed = "withdraws"
	raises    deed = "raises"
	retracts  deed = "takes back the ruling on"
)

// An act is what a human wanted to happen.
type act struct {
	human      string
	deed       deed
	s          *observed
	round      specialist.RoundKey // that was seen
	digest     string              // of the question that was seen; "" if the human names the round only
	transition string
	payload    json.RawMessage // of the ruling; nil for none
	began      int             // the moment of the world
	to         string          // the limit that was wanted
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
func (h *human) may(p *process, s *observed, saw *sight) (list []choice) {
	add := func(weight int, do func(), format string, a ...any) {
		list = append(list, choice{fmt.Sprintf("%s %s through %s", h.id, fmt.Sprintf(format, a...), p.name), weight, false, do})
	}
	if len(saw.State.Transitions) > 0 && saw.Status.Live() {
		t := h.chooses(saw)
		where := fmt.Sprintf("on %s round %d.%d", s, saw.Round, saw.Attempt)
		add(5, func() { h.rule(p, s, saw, t.Name) }, "rules %s %s", t.Name, where)
		add(1, func() { h.propose(p, s, saw, t.Name) }, "proposes %s %s", t.Name, where)
		if pending, _ := saw.PendingRulings(); len(pending) > 0 {
			add(1, func() { h.withdraw(p, s, saw) }, "takes back what was ruled %s", where)
		}
	}
	if reviews := saw.Reviews(); len(reviews) > 0 {
		v := reviews[0]
		t := v.State.Transitions[h.w.draw(len(v.State.Transitions), "review", h.id, v.Key)]
		add(3, func() { h.review(p, s, v, t.Name) }, "reviews %s round %d", s, v.Key.Round)
	}
	if key, any := h.regrets(saw); any && h.w.draw(3, "regrets") == 0 {
		add(1, func() { h.retract(p, s, key) }, "takes back the ruling on round %d of %s", key.Round, s)
	}
	if s.limit > 0 && saw.Status == session.Stopped && h.w.draw(2, "raises") == 0 {
		add(3, func() { h.raise(p, s, saw) }, "raises the limit of %s to %s", s, s.higher())
	}
	return list
}

// chooses returns the transition that a human wants: mostly one that is offered.
func (h *human) chooses(saw *sight) *machine.Transition {
	list := saw.State.Transitions
	if offered := saw.Offered().Transitions; len(offered) > 0 && h.w.draw(6, "closed", h.id, saw.Key()) > 0 {
		list = offered
	}
	return list[h.w.draw(len(list), "ruling", h.w.opinion(h.id), saw.Key())]
}

// opinion is whose opinion a human has: in some runs humans mostly agree.
func (w *world) opinion(id string) string {
	if w.draw(3, "of one mind") > 0 {
		return "everybody"
	}
	return id
}

func (h *human) specialistID() machine.SpecialistID { return machine.SpecialistID(h.id) }

// look reads the question as it is now.
func (h *human) look(s *observed) {
	if s.now == nil {
		return
	}
	q, err := h.w.reader.Question(context.Background(), s.now, machine.SpecialistID(h.id))
	if err != nil {
		h.w.fail(logEqualsFold, "the question of %s cannot be made: %v", s, err)
		return
	}
	h.saw[s] = &sight{s.now, q.Digest}
}

// begin notes what a human wants to happen, and has a process see to it.
func (h *human) begin(p *process, a *act, do func(context.Context) (runner.Arbitration, error)) {
	h.w.moment++
	a.human, a.began = h.id, h.w.moment
	h.acts = append(h.acts, a)
	delete(h.saw, a.s)
	p.carryOut(a, h.id+" "+string(a.deed)+" on", a.s, func(ctx context.Context, _ *observed) error {
		a.result, a.err = do(ctx)
		a.landed = true
		return a.err
	})
}

// ruling returns the human's word on the round that was seen, and mostly on exactly the
// question that was.
func (h *human) ruling(s *observed, saw *sight, a *act) runner.Ruling {
	a.s, a.round = s, saw.Key()
	in := runner.Ruling{SessionID: s.id, SpecialistID: machine.SpecialistID(h.id), RoundID: saw.Key().ID(), TransitionName: a.transition, Actor: h.actor()}
	if h.w.draw(3, "pins the question", h.id, saw.Key(), saw.Sequence) > 0 {
		a.digest, in.QuestionDigest = saw.digest, saw.digest[:session.DigestPrefix]
	}
	switch {
	case h.w.mutation.is("human does not pin the round"):
		in.RoundID, in.QuestionDigest, a.digest = runner.CurrentRound, "", ""
	case h.w.mutation.is("human does not pin the question"):
		in.QuestionDigest = ""
	}
	return in
}

// rule has the human's word recorded.
func (h *human) rule(p *process, s *observed, saw *sight, transition string) {
	a := &act{deed: rules, transition: transition}
	in := h.ruling(s, saw, a)
	in.Reasoning = h.id + " says so"
	a.payload = h.payload(saw)
	in.MetaJSON = a.payload
	decide := p.r.Decide
	if h.w.cases != nil && h.w.draw(5, "executes directly", h.id, saw.Key()) == 0 {
		decide = p.r.Execute
	}
	h.begin(p, a, func(ctx context.Context) (runner.Arbitration, error) { return decide(ctx, in) })
}

// withdraw has the human's word taken back.
func (h *human) withdraw(p *process, s *observed, saw *sight) {
	a := &act{deed: withdraws}
	in := h.ruling(s, saw, a)
	in.Withdraw = true
	h.begin(p, a, func(ctx context.Context) (runner.Arbitration, error) { return p.r.Decide(ctx, in) })
}

// raise has the limit on dollars of one session raised, which lets it go on.
func (h *human) raise(p *process, s *observed, saw *sight) {
	a := &act{deed: raises, s: s, round: saw.Key(), to: s.higher().String()}
	o := runner.ResumeOptions{Actor: h.actor(), SpecialistID: machine.SpecialistID(h.id), Note: "worth it", Raise: []guard.Raise{{Limit: dollarLimit, To: json.Number(a.to)}}}
	h.begin(p, a, func(ctx context.Context) (runner.Arbitration, error) {
		_, err := p.r.Resume(ctx, s.id, o)
		return runner.Arbitration{}, err
	})
}

const dollarLimit = "budget.hard_limit_usd"

func (h *human) review(p *process, s *observed, v *session.Review, transition string) {
	delete(h.saw, s)
	p.run("review", s, func(ctx context.Context, s *observed) error {
		_, err := p.r.Review(ctx, runner.Reviewing{SessionID: s.id, RoundID: v.Key.ID(), SpecialistID: machine.SpecialistID(h.id), TransitionName: transition, Blind: true, Actor: h.actor()})
		return err
	})
}

func (h *human) propose(p *process, s *observed, saw *sight, transition string) {
	delete(h.saw, s)
	p.run(h.id+" proposes on", s, func(ctx context.Context, s *observed) error {
		_, _, err := p.r.Propose(ctx, runner.Submission{SessionID: s.id, SpecialistID: machine.SpecialistID(h.id), RoundID: saw.Key().ID(), TransitionName: transition, Reasoning: h.id + " proposes", Actor: h.actor()})
		return err
	})
}
