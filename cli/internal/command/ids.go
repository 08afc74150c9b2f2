package command

import (
	"context"
	"fmt"
	"regexp"
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

// shortestTyped is how many characters of an id have to be typed.
const shortestTyped = 6

var idBeginning = regexp.MustCompile(`^[0-9a-f][0-9a-f-]*$`)

// fitting is how many sessions are named that a beginning fits.
const fitting = 5

// FindID returns the id of a session as a person writes it: whole, or as far as it is unique.
// sessions lists those of the store.
func FindID(ctx context.Context, sessions func(context.Context, session.ListQuery) ([]session.Summary, error), text string) (specialist.SessionID, error) {
	id, err := session.ParseID(text)
	prefix := strings.ToLower(text)
	if err == nil || !idBeginning.MatchString(prefix) || len(prefix) >= len(id.String()) {
		return id, err
	}
	if len(prefix) < shortestTyped {
		return id, Hinted(err, "the beginning of an id is enough, of %d characters or more", shortestTyped)
	}
	list, failed := sessions(ctx, session.ListQuery{ID: prefix, Limit: fitting + 1})
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
	return id, Hinted(fmt.Errorf("%s fits several sessions: %s", prefix, strings.Join(fit, ", ")), "write more of the id")
}
