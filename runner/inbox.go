package runner

import (
	"context"
	"errors"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
)

// Inbox lists the sessions that wait for a human, in the order in which they
// were created, as a viewer sees them, who is "" for nobody in particular. Those that cannot be read spoil nothing but themselves: the error
// is about them, and the others are listed all the same.
func (r *Runner) Inbox(ctx context.Context, viewer string) ([]Question, error) {
	waiting, err := r.store.List(ctx, session.ListQuery{Waiting: true})
	if err != nil {
		return nil, err
	}
	items := make([]Question, 0, len(waiting))
	var unread []error
	for _, w := range waiting {
		item, waits, err := r.waiting(ctx, w.SessionID, viewer)
		switch {
		case ctx.Err() != nil:
			return items, ctx.Err()
		case err != nil:
			unread = append(unread, err)
		case waits:
			items = append(items, item)
		}
	}
	return items, errors.Join(unread...)
}

// waiting returns the question of a session; waits is false if somebody was faster.
func (r *Runner) waiting(ctx context.Context, sessionID, viewer string) (item Question, waits bool, err error) {
	id, err := session.ParseID(sessionID)
	if err != nil {
		return item, false, err
	}
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
