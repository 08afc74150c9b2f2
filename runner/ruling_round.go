package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// A ruling belongs to the round its author saw. Between the moment in which a
// question is shown and the moment in which the word on it arrives somebody else may
// have closed the round, and the next one may offer a transition of the same name.
// So every ruling and every proposal names its round, and may name the digest of the
// question too. Both are compared with the session that the commit replaces: where
// somebody was faster, the session is read again and compared again. What does not
// fit is refused with the question as it is now, and nothing of a ruling is recorded.

// CurrentRound in place of a round's id means the round that is open when the ruling
// or the proposal arrives, whichever that is, as DIAL's calls without a round id do.
// No ruling with it executes a transition that is irreversible, and no human proposes one.
const CurrentRound = "current"

// Codes of rulings and proposals that are about something else than the present
// question.
const (
	CodeStaleRound    = "stale_round"    // the round is over, or never was
	CodeStaleQuestion = "stale_question" // the round is open, but what it shows has changed
	CodeRoundRequired = "round_required" // no round is named where one must be
)

// A StaleError says that a ruling or a proposal is about a question that is not
// there any more. It wraps ErrStaleRound.
type StaleError struct {
	Refusal  *Error   // with the code CodeStaleRound or CodeStaleQuestion
	Question Question // as it is now, for whoever ruled or proposed
	Changed  []string // what happened since, the oldest first; empty if nobody can tell
}

func (e *StaleError) Error() string { return e.Refusal.Message }

// Unwrap returns the refusal.
func (e *StaleError) Unwrap() error { return e.Refusal }

// A pin is what a ruling or a proposal says it is about.
type pin struct {
	round  string
	digest string               // of the question, or its beginning; "" for whatever the round shows
	by     machine.SpecialistID // who says so
}

// check refuses what names no round.
func (p pin) check() error {
	if p.round != "" {
		return nil
	}
	e := refuse(ErrIllegal, CodeRoundRequired, "roundId is required")
	e.Hint = "give the id of the round that was seen, or runner.CurrentRound for whichever is open"
	return e
}

// fits returns a *StaleError unless a session is where its author saw it, else the whole
// digest of the question that was seen, "" if none is said.
func (r *Runner) fits(ctx context.Context, s *session.Session, p pin) (seen string, err error) {
	if p.round != CurrentRound && p.round != s.Key().ID() {
		return "", r.staleError(ctx, s, p, refuse(ErrStaleRound, CodeStaleRound, staleRound), since(s, p.round))
	}
	if p.digest == "" {
		return "", nil
	}
	order, err := r.proposalsInOrder(ctx, s)
	if err != nil {
		return "", err
	}
	if seen, err := s.FitsDigest(p.digest, p.by, order); seen != "" || err != nil {
		return seen, err
	}
	was, err := r.questionOf(ctx, s, p)
	switch {
	case err != nil:
		return "", err
	case was == nil:
		return "", r.staleError(ctx, s, p, refuse(ErrStaleRound, CodeStaleQuestion, staleQuestion), nil)
	case was.Key() != s.Key():
		return "", r.staleError(ctx, s, p, refuse(ErrStaleRound, CodeStaleRound, staleRound), since(s, was.Key().ID()))
	}
	return "", r.staleError(ctx, s, p, refuse(ErrStaleRound, CodeStaleQuestion, staleQuestion), append(proposedSince(was, s, p.by), ruledSince(was, s)...))
}

// questionOf returns the session as it was when a digest was last that of its
// question; nil if it never was.
func (r *Runner) questionOf(ctx context.Context, s *session.Session, p pin) (was *session.Session, err error) {
	f := &session.Folder{}
	for _, err := range r.Fold(ctx, s.ID, f) {
		if err != nil {
			return nil, err
		}
		then := f.Session()
		order, err := r.proposalsInOrder(ctx, then)
		if err != nil {
			return nil, err
		}
		if fits, err := then.FitsDigest(p.digest, p.by, order); err != nil {
			return nil, err
		} else if fits != "" {
			was = then
		}
	}
	return was, nil
}

const staleQuestion = "Question digest mismatch - what the round shows has changed"

// proposedSince returns what was proposed in the round since it was as it was then.
func proposedSince(was, s *session.Session, viewer machine.SpecialistID) (changed []string) {
	last := int32(0)
	if was.Open != nil {
		last = was.Open.Arrivals
	}
	for _, p := range s.Proposals() {
		switch {
		case p.Arrival <= last:
		case s.Withheld(viewer) != "":
			return []string{"proposals have come, which are withheld"}
		default:
			changed = append(changed, fmt.Sprintf("%s proposed %s: %s → %s", p.SpecialistID, p.Transition.Name, p.Transition.From.Name, p.Transition.Target))
		}
	}
	return changed
}

// ruledSince returns what humans have ruled in the round since it was as it was then, and taken
// back.
func ruledSince(was, s *session.Session) (changed []string) {
	before, _ := was.PendingRulings()
	list, concealed := s.PendingRulings()
	for _, r := range list {
		switch {
		case slices.ContainsFunc(before, func(was *session.Ruled) bool { return was.SpecialistID == r.SpecialistID && was.Equals(r) }):
		case concealed:
			return []string{"a human has ruled, which is withheld"}
		default:
			changed = append(changed, fmt.Sprintf("%s chose %s", r.SpecialistID, r.Transition.Name))
		}
	}
	for _, r := range before {
		if !slices.ContainsFunc(list, func(now *session.Ruled) bool { return now.SpecialistID == r.SpecialistID }) {
			changed = append(changed, fmt.Sprintf("the ruling of %s was taken back", r.SpecialistID))
		}
	}
	return changed
}

func (r *Runner) staleError(ctx context.Context, s *session.Session, p pin, e *Error, changed []string) error {
	q, err := r.Question(ctx, s, p.by)
	if err != nil {
		return err
	}
	return &StaleError{e, q, changed}
}

// allows refuses what is irreversible to a human who has not said which round that was
// about.
func (p pin) allows(t *machine.Transition) error {
	if p.round != CurrentRound || !t.Irreversible {
		return nil
	}
	e := refuse(ErrIllegal, CodeRoundRequired, "transition %q is irreversible: who chooses it must name the round it is about", t.Name)
	e.Hint = "give the id of the round that was seen"
	return e
}

// since returns the transitions that were executed since a round was open.
func since(s *session.Session, round string) (changed []string) {
	history := s.History()
	for i, e := range history {
		if e.Key(s.ID).ID() != round {
			continue
		}
		for _, e := range history[i:] {
			changed = append(changed, fmt.Sprintf("%s executed %s: %s → %s", e.Author(), e.Transition.Name, e.Transition.From.Name, e.Transition.Target))
		}
	}
	return changed
}
