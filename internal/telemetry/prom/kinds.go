package prom

import (
	"context"
	"errors"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// kindOf returns what kind of error one is.
func kindOf(err error) string {
	_, damaged := errors.AsType[*session.CorruptError](err)
	_, start := errors.AsType[*runner.StartError](err)
	switch {
	case damaged:
		return "damaged"
	case start:
		return "cannot_start"
	case errors.Is(err, session.ErrStale):
		return "stale"
	case errors.Is(err, session.ErrBusy):
		return "busy"
	case errors.Is(err, store.ErrFull):
		return "full"
	case errors.Is(err, store.ErrReadOnly):
		return "read_only"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "interrupted"
	}
	return other
}
