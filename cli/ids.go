package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Ids of sessions at the terminal. A person types the beginning of one, six characters or
// more, as far as it is nobody else's; what fits several names them. Printed is the shortest
// beginning that is unique in the store, of eight characters or more; --full prints ids
// whole, and so do --json and --quiet, which programs read, and the line "Session ID".
//
// What is unique today may not be so tomorrow: then the id that was printed names both.

// Beginnings of ids.
const (
	shortestTyped   = 6
	shortestPrinted = 8
)

var idBeginning = regexp.MustCompile(`^[0-9a-f][0-9a-f-]*$`)

// fitting is how many sessions are named that a beginning fits.
const fitting = 5

// id returns the id of a session as a person writes it: whole, or as far as it is unique.
func (e *engine) id(ctx context.Context, text string) (specialist.SessionID, error) {
	id, err := session.ParseID(text)
	prefix := strings.ToLower(text)
	if err == nil || !idBeginning.MatchString(prefix) || len(prefix) >= len(id.String()) {
		return id, err
	}
	if len(prefix) < shortestTyped {
		return id, hinted(err, "the beginning of an id is enough, of %d characters or more", shortestTyped)
	}
	list, failed := e.Sessions(ctx, session.ListQuery{ID: prefix, Limit: fitting + 1})
	switch {
	case failed != nil:
		return id, failed
	case len(list) == 0:
		return id, err
	case len(list) == 1:
		return list[0].SessionID, nil
	}
	var fit []string
	for _, s := range list[:min(len(list), fitting)] {
		fit = append(fit, s.SessionID.String())
	}
	if len(list) > fitting {
		fit = append(fit, "and others")
	}
	return id, hinted(fmt.Errorf("%s fits several sessions: %s", prefix, strings.Join(fit, ", ")), "write more of the id")
}

// session returns a session by its id as a person writes it.
func (e *engine) session(ctx context.Context, text string) (*session.Session, error) {
	id, err := e.id(ctx, text)
	if err != nil {
		return nil, err
	}
	return e.Session(ctx, id)
}

// A shortener knows how much of ids is printed.
type shortener struct {
	list func(context.Context, session.ListQuery) ([]session.Summary, error)
	ctx  context.Context //nolint:containedctx // of the one command it prints for; never cancelled
	all  []string        // the ids of the store in order, once so many were asked for
	done map[string]string
}

// manyIDs is how many ids are looked up one by one; for more, all of the store are read.
const manyIDs = 200

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
