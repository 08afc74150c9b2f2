package runner

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The inbox: a page of the questions that wait for humans. A store lists sessions, and each
// question is made anew of its session for whoever looks, so nothing is kept of an inbox that
// could be out of date. What is overdue comes first, which are two lists in one: the cursor says
// in which part the next page begins, and when the first page was read, so that a question that
// becomes overdue meanwhile is shown neither twice nor never.

// Inbox returns a page of the questions that wait for a human, those that are overdue when
// the first page is read in front, each part in the order of the query,
// as a viewer sees them, who is "" for nobody in particular: those of the sessions that the
// query selects and that need a human, and the cursor of the next page, "" after the last.
// With a cursor of the query itself all are read in its order from there on.
// Sessions that cannot be read harm nothing but themselves: the error is about them, and
// the others are listed all the same.
func (r *Runner) Inbox(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) (items []Question, next session.Cursor, err error) {
	q.Statuses = []session.Status{session.NeedsHuman}
	items = []Question{}
	ask := func(id specialist.SessionID) error {
		item, waits, err := r.waiting(ctx, id, viewer)
		if waits && err == nil {
			items = append(items, item)
		}
		return err
	}
	if q.Overdue != 0 || q.Timely != 0 || q.After != "" && !strings.Contains(string(q.After), ".") {
		next, err = r.eachOf(ctx, q, ask)
		return items, next, err
	}
	part, err := partOf(q, r.now())
	if err != nil {
		return items, "", err
	}
	var unread error
	if part.query.Overdue != 0 {
		page, err := r.listed(ctx, part.query)
		if err != nil {
			return items, "", err
		}
		if unread = eachIn(ctx, page, ask); ctx.Err() != nil {
			return items, "", unread
		}
		if next = part.query.Next(page); next != "" {
			return items, part.cursor(next), unread
		}
		part.rest(len(page))
	}
	next, err = r.eachOf(ctx, part.query, ask)
	return items, part.cursor(next), errors.Join(unread, err)
}

// eachOf calls do with each session of a page, and returns the cursor of the next one. An
// error of do is about its session only, so it is returned with the others.
func (r *Runner) eachOf(ctx context.Context, q session.ListQuery, do func(specialist.SessionID) error) (session.Cursor, error) {
	page, err := r.listed(ctx, q)
	if err != nil {
		return "", err
	}
	if err = eachIn(ctx, page, do); ctx.Err() != nil {
		return "", err
	}
	return q.Next(page), err
}

// eachIn calls do with each session of a page, and returns what went wrong with any.
func eachIn(ctx context.Context, page []session.Summary, do func(specialist.SessionID) error) error {
	var unread []error
	for i := range page {
		if err := do(page[i].SessionID); err != nil {
			unread = append(unread, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(unread...)
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
		by = planning.NoArbiter()
	}
	return t.standings(ctx, by)
}

// An inboxPart is what is read next of an inbox: the questions that were overdue at the
// moment when its first page was read, or those that were not. Its cursor says which part,
// as of when, and where in it.
type inboxPart struct {
	query session.ListQuery
	since specialist.Time
}

// partOf returns the part of an inbox that a query goes on with.
func partOf(q session.ListQuery, now specialist.Time) (inboxPart, error) {
	p := inboxPart{q, now}
	p.query.Overdue = now
	if q.After == "" {
		return p, nil
	}
	at, after, ok := strings.Cut(string(q.After), ".")
	which, moment := at[:min(1, len(at))], at[min(1, len(at)):]
	since, err := strconv.ParseInt(moment, 36, 64)
	if !ok || err != nil || since <= 0 || which != "o" && which != "t" {
		return p, session.ErrCursor
	}
	p.query.After, p.since, p.query.Overdue = session.Cursor(after), specialist.Time(since), specialist.Time(since)
	if which == "t" {
		p.query.Overdue, p.query.Timely = 0, p.since
	}
	return p, nil
}

// rest goes on with the questions that are not overdue, after so many others on the page.
func (p *inboxPart) rest(shown int) {
	p.query.Overdue, p.query.Timely, p.query.After = 0, p.since, ""
	if p.query.Limit > 0 {
		p.query.Limit -= shown
	}
}

// cursor returns the cursor of what comes after a page whose last part has this one.
func (p *inboxPart) cursor(next session.Cursor) session.Cursor {
	which := "t"
	if next == "" {
		return ""
	}
	if p.query.Overdue != 0 {
		which = "o"
	}
	return session.Cursor(which+strconv.FormatInt(int64(p.since), 36)+".") + next
}
