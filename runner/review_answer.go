package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What humans say of rounds that are closed. A review is listed without what was
// proposed and decided, its transitions in a random order that stays the same, so that
// the answer is independent. The answer executes nothing: it becomes a reviewed event,
// and its lesson goes to the ledger.
//
// A round waits for a review where it was drawn for an audit, a second human or an
// adjudication. Any other round that the engine decided alone may be reviewed too: then
// its log is read again up to where it closed, and the outcome is marked as unasked,
// since it is no random sample. Nobody reviews a round that they have decided or
// reviewed. A round that a human decided waits only if a second human was drawn for it,
// or two of them differ.
//
// If somebody else writes to the session first, the answer is checked and made again on
// what is then true.

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
	Actor          *session.Actor               // who that is, for the record; nil if that is not said
	If             func(*session.Session) error // as in a Ruling
	Blind          bool                         // whoever answers has seen neither proposals nor decision; a recorded look says otherwise
	session.Manner                              // as in a Ruling
}

// Review records what a human makes of a closed round, and executes nothing. The
// round is one of [session.Session.Reviews], or any other that the engine decided: then
// the answer is an overruling if it differs, and no random sample. The session may
// have ended.
//
// Errors: ErrNotFound, ErrIllegal for a transition that the round did not have,
// ErrForbidden for who may not answer, ErrReviewed, and a store that fails.
func (r *Runner) Review(ctx context.Context, in Reviewing) (*session.Reviewed, error) {
	if err := cmp.Or(checkActor(in.Actor), checkManner(&in.Manner)); err != nil {
		return nil, err
	}
	for range maxRaces {
		s, err := r.load(ctx, in.SessionID)
		if err == nil {
			err = holds(in.If, s)
		}
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
	all := s.Machine().State(v.State.Name)
	switch o := v.Outcome; {
	case all == nil || all.Transition(in.TransitionName) == nil:
		return nil, refuse(ErrIllegal, session.CodeIllegal, "Invalid transition %q from state %q", in.TransitionName, v.State.Name)
	case v.State.Transition(in.TransitionName) == nil, o != nil && len(o.Options) > 0 && !slices.Contains(o.Options, in.TransitionName):
		return nil, refuse(ErrIllegal, session.CodeClosed, "transition %q was closed in round %s", in.TransitionName, in.RoundID)
	}
	if err := r.mayReview(ctx, s, v, in.SpecialistID); err != nil {
		return nil, err
	}
	if v.Seen(in.SpecialistID) && !v.Joins(string(in.SpecialistID), in.TransitionName) {
		return nil, refuse(ErrIllegal, session.CodeContested, "%s has decided round %s before, and nobody else is left to: only with the choice of the other human is it settled", in.SpecialistID, in.RoundID)
	}
	in.Blind = in.Blind && !in.Bulk && !v.RevealedTo(in.SpecialistID)
	w, err := r.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	d := &session.Reviewed{Review: v.Kind, Round: v.Key.Round, Attempt: v.Key.Attempt, SpecialistID: string(in.SpecialistID), TransitionName: in.TransitionName,
		Reasoning: specialist.Clip(in.Reasoning, maxReasoning), Lesson: v.Lesson(string(in.SpecialistID), in.TransitionName, in.Blind), Actor: in.Actor.Clone(), Manner: in.Manner}
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
	var was string
	f := &session.Folder{}
	f.Closing = func(now *session.Session, o *session.OpenRound, d *session.Executed) {
		key := specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}
		if key.ID() != roundID {
			return
		}
		was = d.Transition.From.Name
		found = &session.Review{Kind: session.Audit, Key: key, State: s.StateNow(was, now.Executed+1), Since: d.At, Outcome: session.Automatic(now, o, d)}
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
		return nil, noClosedRound(s, roundID)
	case s.Retracted(found.Key.Round) != nil:
		d := s.Retracted(found.Key.Round)
		return nil, refuse(ErrReviewed, "retracted", "%s has taken the ruling on round %d back: nobody learns from it, so there is nothing to review", d.SpecialistID, d.Round)
	case reviewed:
		return nil, refuse(ErrReviewed, "reviewed", "round %s was decided or reviewed by a human already", roundID)
	case found.State == nil:
		return nil, refuse(ErrIllegal, "no_state", "round %s was in state %q, which the definition does not have to which session %s was moved", roundID, was, s.ID)
	}
	return found, nil
}

// mayReview returns an error unless somebody may answer a review: a human who
// takes part in the state and has not decided the round before; the operator
// where there is none; and where two disagree, and no third is there, either of them.
func (r *Runner) mayReview(ctx context.Context, s *session.Session, v *session.Review, id machine.SpecialistID) error {
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return err
	}
	here := &p.States[v.State.Index]
	m := here.Find(string(id))
	switch {
	case v.Seen(id) && !here.Contested(v):
		return refuse(ErrForbidden, "same_human", "%s has decided round %s before: somebody else must", id, v.Key.ID())
	case m != nil && m.IsHuman && !m.Off && here.Decides(string(id)):
		return nil
	case id == Operator && r.config.AllowOperator && len(here.Reviewers(v)) == 0:
		return nil
	}
	return refuse(ErrForbidden, "not_human", "only humans who take part in state %q can review its rounds, and %q is none", v.State.Name, id)
}

// A ReviewItem is a closed round that waits for a human: its question as it stood when the
// round was closed. What was decided and by whom is among Rulings, and withheld as the
// proposals are. Transitions are those that may be answered, in an order of their own:
// none if nobody may. Since is when the round was closed, or the disagreement arose;
// Humans are who may answer, empty if none is declared; Digest is that of the question
// then, and no answer takes it.
type ReviewItem struct {
	Review session.ReviewKind `json:"review"`
	Round  int32              `json:"round"`
	Question
}

// Reviews returns the closed rounds that wait for a human, of a page of the sessions that
// the query selects, as a viewer sees them, who is "" for nobody in particular, and the
// cursor of the next page, "" after the last. With a Decider they are those that this human
// may answer. The transitions are in random order, the same at each call. Sessions that
// cannot be read harm nothing but themselves, as in [Runner.Inbox].
func (r *Runner) Reviews(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) (items []ReviewItem, next session.Cursor, err error) {
	q.Reviews = true
	items = []ReviewItem{}
	next, unread, err := r.eachOf(ctx, q, func(s *session.Session) error {
		own, err := r.reviewsOf(ctx, s, viewer)
		items = append(items, own...)
		return err
	})
	return whole(items, next, unread, err)
}

// reviewsOf lists the reviews of one session.
func (r *Runner) reviewsOf(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (items []ReviewItem, err error) {
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	rounds, err := r.closedRounds(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, v := range s.Reviews() {
		item, err := r.reviewItem(ctx, &p.States[v.State.Index], rounds[v.Key], v, viewer)
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

// A closedRound is one that waits for a review.
type closedRound struct {
	then  *session.Session       // as it was when the round was closed
	words session.PendingRulings // of humans, by when they were given
}

// closedRounds returns the rounds of a session that wait for a review.
func (r *Runner) closedRounds(ctx context.Context, s *session.Session) (map[specialist.RoundKey]*closedRound, error) {
	rounds := map[specialist.RoundKey]*closedRound{}
	f := &session.Folder{}
	f.Closing = func(now *session.Session, o *session.OpenRound, d *session.Executed) {
		key := d.Key(s.ID)
		if s.ReviewOf(key.ID()) == nil {
			return
		}
		rounds[key] = &closedRound{then: session.Freeze(now, o)}
		if d.IsHuman {
			rounds[key].words.List = []*session.Ruled{{SpecialistID: d.SpecialistID, Transition: d.Transition, MetaJSON: d.MetaJSON, Reasoning: session.GivenReason(d.Reasoning)}}
		}
	}
	f.Applied = func(_ int64, ev session.Event, _, _ spend.Book) {
		d, ok := ev.Data.(*session.Reviewed)
		if !ok {
			return
		}
		if c := rounds[specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}]; c != nil {
			c.words.List = append(c.words.List, &session.Ruled{SpecialistID: d.SpecialistID, Transition: c.then.State.Transition(d.TransitionName), Reasoning: d.Reasoning})
		}
	}
	for _, err := range r.Fold(ctx, s.ID, f) {
		if err != nil {
			return nil, err
		}
	}
	return rounds, nil
}

// everyRuling counts the words on a closed round: who gave one was asked.
func everyRuling(*session.Ruled) bool { return true }

// reviewItem makes the item of a review as a viewer sees it.
func (r *Runner) reviewItem(ctx context.Context, here *planning.State, c *closedRound, v *session.Review, viewer machine.SpecialistID) (ReviewItem, error) {
	why, contested := here.Withheld(v, viewer), here.Contested(v)
	q, err := r.questionFor(ctx, c.then, viewer, why)
	if err != nil {
		return ReviewItem{}, err
	}
	q.Since, q.Humans, q.Rulings, q.WithheldRulings = v.Since, append([]string{}, here.Reviewers(v)...), []session.QuestionRuling{}, 0
	switch {
	case v.Kind == session.Audit:
		q.Code, q.Reason = session.CodeAudit, "Drawn for an audit: the engine has decided, and a human says what should have been"
	case contested:
		q.Code, q.Reason = session.CodeContested, c.words.ContestedBy(everyRuling, 0)
		q.Humans = slices.DeleteFunc(here.HumansOn(), func(id string) bool { return c.words.By(id) == nil })
	default:
		q.Code, q.Reason = session.CodeSecondHuman, c.words.AsksAnother(everyRuling)
	}
	for _, w := range c.words.List {
		if why != "" {
			q.WithheldRulings++
			continue
		}
		q.Rulings = append(q.Rulings, session.QuestionRuling{SpecialistID: w.SpecialistID, TransitionName: w.Transition.Name, MetaJSON: w.MetaJSON, Reasoning: w.Reasoning})
	}
	choices := q.Transitions
	q.Transitions = []session.InboxTransition{}
	for _, i := range trust.OptionOrder(q.SessionID, v.Key.ID(), string(v.Kind), len(choices), 0) {
		choices[i].MetaJSON = nil
		if len(q.Humans) == 0 && here.DeclaresHuman() || contested && !slices.ContainsFunc(q.Rulings, func(r session.QuestionRuling) bool { return r.TransitionName == choices[i].Name }) {
			continue
		}
		q.Transitions = append(q.Transitions, choices[i])
	}
	return ReviewItem{v.Kind, v.Key.Round, q}, nil
}
