package runner

import (
	"context"
	"errors"
	"maps"
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
// could be out of date. What is overdue comes first, the longest overdue in front, then what has
// waited longest, which are two lists in one: the cursor says in which part the next page begins,
// and when the first page was read, so that a question that becomes overdue meanwhile is shown
// neither twice nor never.

// Inbox returns a page of the questions that wait for a human, as a viewer sees them, who is ""
// for nobody in particular, and the cursor of the next page, "" after the last: those of the
// sessions that the query selects and that need a human. Those that are overdue when the first
// page is read come first, by when they were due, then the others, by since when they wait.
// With a cursor of the query itself all are read in its order from there on.
// Sessions that cannot be read harm nothing but themselves: the error is about them, and
// the others are listed all the same. Where the store cannot be read, nothing is.
func (r *Runner) Inbox(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) (items []Question, next session.Cursor, err error) {
	q.Statuses = []session.Status{session.NeedsHuman}
	items = []Question{}
	ask := func(s *session.Session) error {
		if s.Status != session.NeedsHuman {
			return nil // somebody was faster
		}
		item, err := r.Question(ctx, s, viewer)
		if err == nil {
			items = append(items, item)
		}
		return err
	}
	if q.Overdue != 0 || q.Timely != 0 || q.After != "" && !strings.Contains(string(q.After), ".") {
		next, unread, err := r.eachOf(ctx, q, ask)
		return whole(items, next, unread, err)
	}
	part, err := partOf(q, r.now())
	if err != nil {
		return items, "", err
	}
	var before error
	if part.query.Overdue != 0 {
		page, err := r.listed(ctx, part.query)
		if err == nil {
			before, err = r.eachIn(ctx, page, ask)
		}
		if next = part.query.Next(page); err != nil || next != "" {
			return whole(items, part.cursor(next), before, err)
		}
		part.rest(len(page))
	}
	next, unread, err := r.eachOf(ctx, part.query, ask)
	return whole(items, part.cursor(next), errors.Join(before, unread), err)
}

// whole returns a page as it is where only sessions of it could not be read, and nothing of it where the store could not:
// nobody is to take what is left for all that waits.
func whole[T any](items []T, next session.Cursor, unread, err error) ([]T, session.Cursor, error) {
	if err != nil {
		return []T{}, "", err
	}
	return items, next, unread
}

// eachOf calls do with each session of a page, and returns the cursor of the next one, what went wrong with any, and the
// error of the store.
func (r *Runner) eachOf(ctx context.Context, q session.ListQuery, do func(*session.Session) error) (next session.Cursor, unread, err error) {
	page, err := r.listed(ctx, q)
	if err == nil {
		unread, err = r.eachIn(ctx, page, do)
	}
	return q.Next(page), unread, err
}

// eachIn calls do with each session of a page, and returns what went wrong with any, and the error of the store.
func (r *Runner) eachIn(ctx context.Context, page []session.Summary, do func(*session.Session) error) (unread, err error) {
	known, err := r.loadBatch(ctx, page)
	if err != nil {
		return nil, err
	}
	var list []error
	for i := range page {
		id := page[i].SessionID
		err := r.contain(id, func() (err error) {
			s := known[id]
			if s == nil {
				if s, err = r.load(ctx, id); err != nil {
					return err
				}
			}
			return do(s)
		})
		if err != nil {
			list = append(list, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return errors.Join(list...), nil
}

// loadBatch returns the sessions of a page that need no load of their own: those that are known as they were listed,
// and the others, as far as the store reads many at once.
func (r *Runner) loadBatch(ctx context.Context, page []session.Summary) (known map[specialist.SessionID]*session.Session, err error) {
	known = make(map[specialist.SessionID]*session.Session, len(page))
	var ids []specialist.SessionID
	for i := range page {
		if s := r.store.Recent(page[i].SessionID); s != nil && s.Sequence == page[i].Sequence {
			known[s.ID] = s
		} else {
			ids = append(ids, page[i].SessionID)
		}
	}
	store, ok := r.store.(session.BatchLoader)
	if !ok || len(ids) < 2 {
		return known, nil
	}
	var p *PanicError
	if err = r.contain(ids[0], func() error {
		others, err := store.LoadBatch(ctx, r.programs, ids)
		maps.Copy(known, others)
		return err
	}); errors.As(err, &p) {
		return known, nil // of one of them: each is loaded by itself, and says so
	}
	return known, err
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
	p.query.Overdue, p.query.Order = now, session.ByDue
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
		p.query.Overdue, p.query.Timely, p.query.Order = 0, p.since, session.BySince
	}
	return p, nil
}

// rest goes on with the questions that are not overdue, after so many others on the page.
func (p *inboxPart) rest(shown int) {
	p.query.Overdue, p.query.Timely, p.query.Order, p.query.After = 0, p.since, session.BySince, ""
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
