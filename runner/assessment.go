package runner

import (
	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/lessons"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// An assessment is a round with what the store and the program know of it: what
// everybody's word counts for, the evidence, the prices, the draws. It reads each of
// them once, and writes nothing.
type assessment struct {
	round
	r *Runner

	weighed     bool // weights has been read
	weights     []exact.Billionths
	votes       []arbiter.Vote
	outstanding []arbiter.Standing
	judging     arbiter.Round
	reads       *arbiter.Evidence // nil until bayes decides
	past        lessons.Past
}

// assess makes t an assessment of the open round o of s, by those of p.
func (t *assessment) assess(r *Runner, p *plan, s *session.Session, o *session.OpenRound, at specialist.Time) {
	*t = assessment{r: r, votes: t.votes[:0], outstanding: t.outstanding[:0]}
	t.round = round{now: s, open: o, at: at, plan: p, here: &p.States[s.State.Index]}
	t.past.Store, t.past.Session = r.store, s
}

// look returns an assessment of a session as last committed, by those who would take
// part, be they there or not: for whoever only reads.
func (r *Runner) look(p *plan, s *session.Session) *assessment {
	o := s.Open
	if o == nil {
		o = &session.OpenRound{}
	}
	t := &assessment{}
	t.assess(r, p, s, o, r.now())
	return t
}

// guardStep returns a decision as the guards see it.
func (t *assessment) guardStep(d *decision) verdict.Step {
	s := session.StepFor(t.now, d.transition, d.reasoning, d.meta, d.how != session.ByConsensus, d.winner)
	s.Attempt, s.At = int64(t.now.Rejects), t.at
	s.Began, s.Moved = t.now.CountedSince(t.at)
	if len(t.r.config.Guards) > 0 || t.now.Program.Guarded {
		s.Task = t.now.ID.String()
	}
	return s
}

// raise adds to d the limits that a human wants to raise in the session.
func (t *assessment) raise(d *session.Resumed, asked []guard.Raise) (err error) {
	s := t.now
	switch {
	case s.Status == session.Completed:
		return refuse(ErrNotRunning, "completed", "the session has completed in %q, so there is nothing to raise a limit for", s.State.Name)
	case !t.mayRule(d.SpecialistID):
		e := refuse(ErrForbidden, "not_human", "only humans who take part in state %q can raise a limit, and %q is none", s.State.Name, d.SpecialistID)
		e.Hint = "the machine file says who they are (isHuman)"
		return e
	case d.Note == "":
		return refuse(nil, session.BadRaise, "a limit is raised without a note: say why")
	}
	var problems []machine.Problem
	if d.Raised, problems = s.Program.Guards(s.State).Raise(s.State.Name, asked); len(problems) > 0 {
		e := refuse(nil, session.BadRaise, "%s", problems[0].Message)
		e.Hint = problems[0].Hint
		return e
	}
	d.Program, err = s.Program.Lift(s.State, d.Raised)
	return err
}
