package runner

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What the sessions of a machine have spent, by day, whom and what for: a fold of their logs that
// goes on where the last one who asked has left it. The log of all sessions says which records
// are new, and each session that has some is folded from its beginning, since what an answer
// costs depends on what was assumed before.

// A Spending is what one specialist has cost on one day, with one model. Corrections count on
// the day on which they came, so that members of Book may be below zero.
type Spending struct {
	Day          specialist.Time // when it began, in UTC
	SpecialistID string          // [session.TruthID] or [session.ClassifierID] for the guards' own questions
	Model        string          // that was charged for; "" if it was none, or nobody has said
	Guards       bool            // the guards asked that themselves
	Book         spend.Book
}

// key returns s without what was spent.
func (s Spending) key() Spending {
	s.Book = spend.Book{}
	return s
}

// expenses are what was read of one machine.
type expenses struct {
	mu     sync.Mutex
	place  int64                            // of the newest record that was met
	unread map[specialist.SessionID]records // that were met, and are not in sums
	sums   map[Spending]spend.Book          // by key
}

// records are a part of a session's log, by the first events of its first and its last record.
type records struct{ from, to int64 }

// Expenses returns what the sessions of a machine have spent, by day, specialist and model. What
// sessions were forked with was spent in others. The sum of all Books is that of what the
// sessions say they have spent, but for sums that are cut off at the largest number.
func (r *Runner) Expenses(ctx context.Context, machineName string) ([]Spending, error) {
	r.mu.Lock()
	x := r.expenses.GetOr(machineName, func() *expenses {
		return &expenses{unread: map[specialist.SessionID]records{}, sums: map[Spending]spend.Book{}}
	})
	r.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for e, err := range r.store.Log(ctx, machineName, x.place) {
		if err != nil {
			return nil, err
		}
		met, ok := x.unread[e.Session]
		if !ok {
			met.from = e.First
		}
		met.to, x.place = e.First, e.Place
		x.unread[e.Session] = met
	}
	for id, part := range x.unread {
		charged, err := r.charged(ctx, id, part)
		if err != nil {
			return nil, err // what was read before it need not be read again
		}
		delete(x.unread, id)
		for _, s := range charged {
			x.sums[s.key()] = x.sums[s.key()].Plus(s.Book)
		}
	}
	list := make([]Spending, 0, len(x.sums))
	for s, book := range x.sums {
		if s.Book = book; book != (spend.Book{}) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Spending) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.SpecialistID, b.SpecialistID), cmp.Compare(a.Model, b.Model))
	})
	return list, nil
}

// charged returns what a part of a session's log has charged.
func (r *Runner) charged(ctx context.Context, id specialist.SessionID, part records) (list []Spending, err error) {
	n := 0 // of the records that count
	f := &session.Folder{Charged: func(at specialist.Time, c session.Charge) {
		day := specialist.TimeOf(at.Time().Truncate(24 * time.Hour))
		list = append(list, Spending{day, c.SpecialistID, c.Model, c.Guards, c.Book})
	}}
	for first, err := range r.Fold(ctx, id, f) {
		if err != nil {
			return nil, err
		}
		if first < part.from {
			list = list[:0]
		}
		if first <= part.to {
			n = len(list)
		}
		if first >= part.to {
			break
		}
	}
	return list[:n], nil
}
