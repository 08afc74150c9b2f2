package runner

import (
	"context"
	"slices"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A ruling may come twice: its answer was lost, or a key was pressed twice. The second one
// is about a question that the first has closed, or changed. It is no ruling of its own and
// no mistake either: if the log has the same choice, by the same actor for the same human on
// the same question, the answer says what that one came to.

// repeated returns what a ruling that is refused came to when it was given before, or else
// the refusal as it is.
func (r *Runner) repeated(ctx context.Context, s *session.Session, in Ruling, how session.DecisionKind, result Arbitration, refusal error) (Arbitration, error) {
	if in.Withdraw || in.TransitionName == "" || len(in.QuestionDigest) < session.DigestPrefix || !in.Actor.Known() {
		return result, refusal
	}
	word, key, executed, err := r.givenBefore(ctx, s, in)
	if err != nil || word == nil || in.RoundID != CurrentRound && in.RoundID != key.ID() || !in.gives(word, how) {
		return result, refusal
	}
	result = in.refused(s, session.HumanOverride)
	result.RoundID, result.Repeated, result.Recorded, result.Executed, result.GuardsPass = key.ID(), true, !executed, executed, executed
	result.IsHuman, result.TransitionName, result.ToState = true, word.Transition.Name, word.Transition.Target
	result.Reasoning, result.MetaJSON = word.Reasoning, word.MetaJSON
	return result, nil
}

// gives reports whether a ruling is the one that was given.
func (in *Ruling) gives(word *session.Ruled, how session.DecisionKind) bool {
	return word.Direct == (how == session.Direct) && word.Transition.Name == in.TransitionName && (in.ToState == "" || in.ToState == word.Transition.Target) &&
		session.SamePayload(word.MetaJSON, in.MetaJSON) && word.Actor != nil && word.Actor.Subject == in.Actor.Subject && word.Actor.Method == in.Actor.Method
}

// givenBefore returns the ruling of the human on that question, its round, and whether it
// was executed; nil if there is none that stands or was executed.
func (r *Runner) givenBefore(ctx context.Context, s *session.Session, in Ruling) (word *session.Ruled, key specialist.RoundKey, executed bool, err error) {
	id, history := string(in.SpecialistID), s.History()
	seen := func(digest string) bool { return strings.HasPrefix(digest, strings.ToLower(in.QuestionDigest)) }
	for _, e := range slices.Backward(history) {
		if e.SpecialistID == id && e.How.Ruling() && seen(e.QuestionDigest) {
			return &session.Ruled{Transition: e.Transition, MetaJSON: e.MetaJSON, Reasoning: e.Reasoning, Direct: e.How == session.Direct, Actor: e.Actor}, e.Key(s.ID), true, nil
		}
	}
	f := &session.Folder{}
	for _, err := range r.Fold(ctx, s.ID, f) {
		if err != nil {
			return nil, key, false, err
		}
		if then := f.Session(); then.Open != nil {
			if w := then.Open.Rulings.By(id); w != nil && seen(w.QuestionDigest) {
				word, key = w, then.Key()
			} else if key == then.Key() {
				word = nil // it was replaced, or taken back
			}
		}
	}
	for _, e := range slices.Backward(history) {
		switch {
		case word == nil || e.Key(s.ID) != key:
		case e.Transition.Name == word.Transition.Name && slices.Contains(e.Authors, id):
			return word, key, true, nil
		default:
			return nil, key, false, nil // others have decided otherwise
		}
	}
	if word != nil && key != s.Key() {
		word = nil
	}
	return word, key, false, nil
}
