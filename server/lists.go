package server

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// Pages of what the control store keeps. A cursor is the place at which a page has ended, with a
// sum over the list that it is of, so that it is refused where it is of another.

// A list is a list of which a page is asked for.
type list struct {
	name string
	control.Query
}

// listing reads which page is asked for of a list that the name tells from others.
func listing(name string, p *Principal, in *params.Page, desc bool) (list, error) {
	l := list{fmt.Sprint(name, desc), control.Query{Tenant: p.Tenant, Limit: parseLimit(in.Limit), Desc: desc}}
	if in.Cursor == "" {
		return l, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	if err != nil || len(text) != 16 || l.cursor(int64(binary.BigEndian.Uint64(text))) != in.Cursor { //nolint:gosec // it comes back as it went
		return l, session.ErrCursor
	}
	l.After = int64(binary.BigEndian.Uint64(text)) //nolint:gosec // the same
	return l, nil
}

func (l *list) cursor(place int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", l.Tenant, l.name, place))
	text := binary.BigEndian.AppendUint64(nil, uint64(place)) //nolint:gosec // the same
	return base64.RawURLEncoding.EncodeToString(append(text, sum[:8]...))
}

// events returns the page of those from a number on, a cursor being the number of the last.
func (l *list) events(from int64, all iter.Seq2[api.Event, error]) (eventsBody, error) {
	page := eventsBody{Items: []api.Event{}}
	for e, err := range all {
		switch {
		case err != nil:
			return page, err
		case e.Seq < from: // of the record that begins before
			continue
		case len(page.Items) == l.Limit:
			page.NextCursor = l.cursor(e.Seq - 1)
			return page, nil
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}

// next returns the cursor behind a place that ends a page of n; "" if nothing follows.
func (l *list) next(n int, place int64) string {
	if n < l.Limit {
		return ""
	}
	return l.cursor(place)
}

// pageOf is [pageEach] of a list that is at hand whole.
func pageOf[T any](name string, p *Principal, in *params.Page, all []T, key func(T) string) (api.List[T], error) {
	return pageEach(name, p, in, func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}, key)
}

// pageEach returns the page that is asked for of a list, of which it holds no more. Each of it
// has a key of its own, which is where the next page begins.
func pageEach[T any](name string, p *Principal, in *params.Page, all iter.Seq2[T, error], key func(T) string) (api.List[T], error) {
	page := api.List[T]{Items: []T{}}
	cursor := func(of T) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", p.Tenant, name, key(of)))
		return base64.RawURLEncoding.EncodeToString(sum[:12])
	}
	limit, skips := parseLimit(in.Limit), in.Cursor != ""
	for v, err := range all {
		switch {
		case err != nil:
			return page, err
		case skips:
			skips = cursor(v) != in.Cursor
		case len(page.Items) == limit:
			page.NextCursor = cursor(page.Items[limit-1])
			return page, nil
		default:
			page.Items = append(page.Items, v)
		}
	}
	if skips {
		return page, session.ErrCursor
	}
	return page, nil
}
