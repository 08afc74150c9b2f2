package runner

import (
	"context"
	"errors"
	"iter"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Inbox returns all that [Runner.Questions] yields. Those that cannot be read harm
// nothing but themselves: the error is about them, and the others are listed all the same.
func (r *Runner) Inbox(ctx context.Context, viewer machine.SpecialistID) ([]Question, error) {
	items := []Question{}
	var unread []error
	for item, err := range r.Questions(ctx, viewer, specialist.SessionID{}) {
		switch {
		case ctx.Err() != nil:
			return items, ctx.Err()
		case err != nil:
			unread = append(unread, err)
		default:
			items = append(items, item)
		}
	}
	return items, errors.Join(unread...)
}

// questionPage is how many waiting sessions are looked up at a time.
const questionPage = 256

// Questions yields the questions that wait for a human, in the order in which their
// sessions were created, as a viewer sees them, who is "" for nobody in particular: those
// of sessions after one, of all if that is the zero id. A session that cannot be read is
// an error, after which the others come; the error of a store that cannot list, or does
// not know the session, is the last.
func (r *Runner) Questions(ctx context.Context, viewer machine.SpecialistID, after specialist.SessionID) iter.Seq2[Question, error] {
	return func(yield func(Question, error) bool) {
		for {
			page, err := r.store.List(ctx, session.ListQuery{Waiting: true, After: after, Limit: questionPage, Oldest: true})
			for _, w := range page {
				after = w.SessionID
				if item, waits, err := r.waiting(ctx, after, viewer); (waits || err != nil) && !yield(item, err) {
					return
				}
			}
			if err != nil {
				yield(Question{}, err)
			}
			if err != nil || len(page) < questionPage {
				return
			}
		}
	}
}

// waiting returns the question of a session; waits is false if somebody was faster.
func (r *Runner) waiting(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID) (item Question, waits bool, err error) {
	s, err := r.load(ctx, id)
	if err != nil || s.Status != session.NeedsHuman {
		return item, false, err
	}
	err = r.contain(id, func() (err error) {
		item, err = r.Question(ctx, s, viewer)
		return err
	})
	return item, true, err
}

// Weights returns what each live proposal of the current round counts for, by
// specialist.
func (r *Runner) Weights(ctx context.Context, s *session.Session) (map[string]exact.Billionths, error) {
	votes, err := r.votesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	weights := make(map[string]exact.Billionths, len(votes))
	for _, v := range votes {
		weights[v.SpecialistID] = v.Weight
	}
	return weights, nil
}

// votesOf returns the live proposals in the round's order, weighed; if the arbiter is
// not there, by nobody.
func (r *Runner) votesOf(ctx context.Context, s *session.Session) ([]arbiter.Vote, error) {
	p, err := r.planPartial(ctx, s.Program)
	if err != nil {
		return nil, err
	}
	t := r.look(p, s)
	by, err := t.arbiter()
	if err != nil {
		by = noArbiter()
	}
	return t.standings(ctx, by)
}
