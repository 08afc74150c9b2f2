package command

import (
	"context"
	"slices"

	"github.com/dialai/dialai/session"
)

// A shortener knows how much of ids is printed.
type shortener struct {
	list func(context.Context, session.ListQuery) ([]session.Summary, error)
	ctx  context.Context //nolint:containedctx // of the one command it prints for; never cancelled
	all  []string        // the ids of the store in order, once so many were asked for
	done map[string]string
}

// shortestPrinted is how many characters of an id are printed at least.
const shortestPrinted = 8

// manyIDs is how many ids are looked up one by one; for more, all of the store are read.
const manyIDs = 200

// Shorten has ids of sessions printed as far as they are unique among those of list, unless
// they are wanted whole.
func (a *App) Shorten(ctx context.Context, list func(context.Context, session.ListQuery) ([]session.Summary, error)) {
	if !a.Flags.Full {
		a.Flags.Short = (&shortener{list: list, ctx: context.WithoutCancel(ctx)}).short
	}
}

// short returns the beginning of an id that is printed, and any other text as it is.
func (s *shortener) short(text string) string {
	if _, err := session.ParseID(text); err != nil {
		return text
	}
	if s.done[text] == "" {
		if s.done == nil {
			s.done = map[string]string{}
		}
		s.done[text] = text[:max(shortestPrinted, s.shared(text)+1)]
	}
	return s.done[text]
}

// shared returns how many characters an id has in common with any other one, if they are so
// many that it matters. Where that cannot be found out it is printed whole.
func (s *shortener) shared(id string) (n int) {
	if len(s.done) >= manyIDs && s.all == nil {
		s.readAll()
	}
	if s.all != nil {
		i, _ := slices.BinarySearch(s.all, id)
		for _, other := range s.all[max(0, i-1):min(len(s.all), i+2)] {
			n = max(n, inCommon(id, other))
		}
		return n
	}
	list, err := s.list(s.ctx, session.ListQuery{ID: id[:shortestPrinted], Limit: manyIDs})
	if err != nil || len(list) == manyIDs {
		return len(id) - 1
	}
	for i := range list {
		n = max(n, inCommon(id, list[i].SessionID.String()))
	}
	return n
}

func (s *shortener) readAll() {
	var all []string
	for sum, err := range session.Each(s.ctx, s.list, session.ListQuery{}) {
		if err != nil {
			return
		}
		all = append(all, sum.SessionID.String())
	}
	slices.Sort(all)
	s.all = all
}

// inCommon returns how many characters two ids begin with that are the same; 0 for the same
// id.
func inCommon(id, other string) (n int) {
	for n < len(id) && n < len(other) && id[n] == other[n] {
		n++
	}
	return n % len(id)
}
