package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/dialai/dialai/api"
)

// A Problem is what a server answers with when something was not done.
type Problem api.Error

func (p *Problem) Error() string { return p.Detail }

// What problems can be, for errors.Is.
var (
	ErrUnauthenticated = errors.New("the key is not known to the server")
	ErrForbidden       = errors.New("the key does not allow this")
	ErrNotFound        = errors.New("there is no such thing")
	// ErrStale says that a session, its round, its question or a definition is not any more
	// what the call was about. Nothing was changed; Question has the present question where
	// it was one.
	ErrStale = errors.New("it has changed meanwhile")
	// ErrNotRunning says that a session has ended.
	ErrNotRunning = errors.New("the session has ended")
	// ErrIllegal says that a transition, payload or value is not one that may be chosen.
	ErrIllegal = errors.New("this may not be chosen")
	// ErrGuard says that a guard of the machine refuses a ruling.
	ErrGuard = errors.New("a guard refuses it")
	// ErrAccepted says that whoever was asked will answer later.
	ErrAccepted = errors.New("the answer comes later")
	// ErrUnavailable says that the server cannot do it at present, however often it was asked.
	ErrUnavailable = errors.New("the server cannot do it at present")
)

// Is reports whether the problem is of the kind that one of the errors of this package
// stands for.
func (p *Problem) Is(kind error) bool {
	switch kind {
	case ErrUnauthenticated:
		return p.Status == http.StatusUnauthorized
	case ErrForbidden:
		return p.Status == http.StatusForbidden
	case ErrNotFound:
		return p.Status == http.StatusNotFound
	case ErrStale:
		return slices.Contains([]string{"stale_round", "stale_question", "stale_sequence", "stale_machine", "conflict"}, p.Code)
	case ErrNotRunning:
		return p.Code == "not_running"
	case ErrIllegal:
		return p.Status == http.StatusUnprocessableEntity
	case ErrGuard:
		return p.Code == "guard_refused"
	case ErrAccepted:
		return p.Code == "accepted"
	case ErrUnavailable:
		return p.Status == http.StatusTooManyRequests || p.Status >= http.StatusBadGateway
	}
	return false
}

// passes reports whether the same request may succeed a moment later: the server says so, or
// something between that has not reached it.
func (p *Problem) passes() bool {
	switch p.Status {
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return p.Code == "" || p.Retryable
	}
	return p.Retryable
}

// problemType is the type of answers that say a problem.
const problemType = "application/problem+json"

// problemOf reads an answer that is no success. What stands between may have written it.
func problemOf(res *http.Response, text []byte) *Problem {
	p := &Problem{}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if media != problemType || json.Unmarshal(text, p) != nil {
		p = &Problem{Detail: "the server answered " + res.Status + ", and nothing that a dialai server would say"}
	}
	p.Status, p.ExitCode = res.StatusCode, cmp.Or(p.ExitCode, api.ExitFailure)
	p.Detail = cmp.Or(p.Detail, res.Status)
	return p
}
