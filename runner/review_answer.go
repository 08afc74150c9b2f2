package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// ErrReviewed is wrapped if a round cannot be reviewed because that was done, or
// because a human decided it.
var ErrReviewed = errors.New("the round needs no review")

// A Reviewing is a human's answer about a closed round.
type Reviewing struct {
	SessionID      specialist.SessionID
	RoundID        string
	SpecialistID   machine.SpecialistID // who answers
	TransitionName string               // what should have been decided
	Reasoning      string
	Blind          bool // whoever answers has seen neither proposals nor decision; a recorded look says otherwise
}

// Review records what a human makes of a closed round, and executes nothing. The
// round is one of [session.Session.Reviews], or any other that the engine decided: then
// the answer is an overruling if it differs, and no random sample. The session may
// have ended.
//
// Errors: ErrNotFound, ErrIllegal for a transition that the round did not have,
// ErrForbidden for who may not answer, ErrReviewed, and a store that fails.
func (r *Runner) Review(ctx context.Context, in Reviewing) (*session.Reviewed, error) {
	for range maxRaces {
		s, err := r.load(ctx, in.SessionID)
		if err != nil {
			return nil, err
		}
		d, err := r.reviewOnce(ctx, s, in)
		if !errors.Is(err, session.ErrStale) {
			return d, err
		}
	}
	return nil, fmt.Errorf("session %s: %w", in.SessionID, session.ErrStale)
}

func (r *Runner) reviewOnce(ctx context.Context, s *session.Session, in Reviewing) (*session.Reviewed, error) {
	v, err := r.reviewOf(ctx, s, in.RoundID)
	if err != nil {
		return nil, err
	}
	if v.State.Transition(in.TransitionName) == nil {
		return nil, refuse(ErrIllegal, session.CodeIllegal, "Invalid transition %q from state %q", in.TransitionName, v.State.Name)
	}
	if err := r.mayReview(ctx, s, v, in.SpecialistID); err != nil {
		return nil, err
	}
	in.Blind = in.Blind && !v.RevealedTo(in.SpecialistID)
	w, err := r.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	d := &session.Reviewed{Review: v.Kind, Round: v.Key.Round, Attempt: v.Key.Attempt, SpecialistID: string(in.SpecialistID), TransitionName: in.TransitionName,
		Reasoning: specialist.Clip(in.Reasoning, maxReasoning), Lesson: v.Lesson(string(in.SpecialistID), in.TransitionName, in.Blind)}
	if err := d.Lesson.Check(); err != nil {
		return nil, err
	}
	w.emit(d)
	_, err = w.write(ctx)
	return d, err
}

// reviewOf returns the review of a round: one that waits, or of a round that the
// engine decided and nobody has looked at.
func (r *Runner) reviewOf(ctx context.Context, s *session.Session, roundID string) (*session.Review, error) {
	if v := s.ReviewOf(roundID); v != nil {
		return v, nil
	}
	var found *session.Review
	var reviewed bool
	f := &session.Folder{}
	f.Closing = func(now *session.Session, o *session.OpenRound, d *session.Executed) {
		key := specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}
		if key.ID() != roundID {
			return
		}
		found = &session.Review{Kind: session.Audit, Key: key, State: d.Transition.From, Since: d.At, Outcome: session.Automatic(now, o, d)}
		found.Outcome.Unasked, reviewed = true, d.IsHuman
	}
	f.Applied = func(_ int64, ev session.Event, _, _ spend.Book) {
		if d, ok := ev.Data.(*session.Reviewed); ok && found != nil && d.Round == found.Key.Round && d.Attempt == found.Key.Attempt {
			reviewed = true
		}
	}
	for _, err := range r.Fold(ctx, s.ID, f) {
		if err != nil {
			return nil, err
		}
	}
	switch {
	case found == nil:
		return nil, &session.NotFoundError{What: "Closed round", ID: roundID}
	case reviewed:
		return nil, refuse(ErrReviewed, "reviewed", "round %s was decided or reviewed by a human already", roundID)
	}
	return found, nil
}

// mayReview returns an error unless somebody may answer a review: a human who
// takes part in the state and has not decided the round before; the operator
// where there is none.
func (r *Runner) mayReview(ctx context.Context, s *session.Session, v *session.Review, id machine.SpecialistID) error {
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return err
	}
	here := &p.states[v.State.Index]
	m := here.find(string(id))
	switch {
	case v.Seen(id):
		return refuse(ErrForbidden, "same_human", "%s has decided round %s before: somebody else must", id, v.Key.ID())
	case m != nil && m.IsHuman && !m.off:
		return nil
	case id == Operator && r.config.AllowOperator && len(here.reviewers(v)) == 0:
		return nil
	}
	return refuse(ErrForbidden, "not_human", "only humans who take part in state %q can review its rounds, and %q is none", v.State.Name, id)
}

// reviewers returns who may answer a review.
func (p *statePlan) reviewers(v *session.Review) (ids []string) {
	return slices.DeleteFunc(p.humansOn(), func(id string) bool { return v.Seen(machine.SpecialistID(id)) })
}

// A ReviewItem is a closed round that waits for a human. It says neither what was
// proposed nor what was decided.
type ReviewItem struct {
	Review      session.ReviewKind        `json:"review"`
	SessionID   string                    `json:"sessionId"`
	MachineName string                    `json:"machineName"`
	RoundID     string                    `json:"roundId"`
	Round       int32                     `json:"round"`
	State       string                    `json:"state"`
	Prompt      string                    `json:"prompt"`
	Transitions []session.InboxTransition `json:"transitions"` // in an order of its own
	Since       specialist.Time           `json:"since"`
	Humans      []string                  `json:"humans"` // who may answer; empty if nobody declared may
}

// Reviews lists the closed rounds that wait for a human, of all sessions, or of
// those of one machine if machineName is not "". The transitions are in random
// order, the same at each call. Sessions that cannot be read harm nothing but
// themselves, as in [Runner.Inbox].
func (r *Runner) Reviews(ctx context.Context, machineName string) ([]ReviewItem, error) {
	list, err := r.store.List(ctx, session.ListQuery{MachineName: machineName, Reviews: true})
	if err != nil {
		return nil, err
	}
	items := []ReviewItem{}
	var unread []error
	for _, sum := range list {
		own, err := r.reviewsOf(ctx, sum.SessionID)
		switch {
		case ctx.Err() != nil:
			return items, ctx.Err()
		case err != nil:
			unread = append(unread, err)
		}
		items = append(items, own...)
	}
	return items, errors.Join(unread...)
}

// reviewsOf lists the reviews of one session.
func (r *Runner) reviewsOf(ctx context.Context, id specialist.SessionID) (items []ReviewItem, err error) {
	err = r.contain(id, func() error {
		s, err := r.load(ctx, id)
		if err != nil {
			return err
		}
		p, err := r.planPartial(ctx, s.Program)
		if err != nil {
			return err
		}
		for _, v := range s.Reviews() {
			items = append(items, p.states[v.State.Index].reviewItem(s, v))
		}
		return nil
	})
	return items, err
}

func (p *statePlan) reviewItem(s *session.Session, v *session.Review) ReviewItem {
	item := ReviewItem{Review: v.Kind, SessionID: s.ID.String(), MachineName: s.Machine().Name(), RoundID: v.Key.ID(), Round: v.Key.Round,
		State: v.State.Name, Prompt: v.State.Prompt, Since: v.Since, Humans: append([]string{}, p.reviewers(v)...)}
	choices := session.ChoicesOf(v.State)
	for _, i := range trust.OptionOrder(s.ID.String(), v.Key.ID(), string(v.Kind), len(choices), 0) {
		item.Transitions = append(item.Transitions, choices[i])
	}
	return item
}
