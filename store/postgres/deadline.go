package postgres

import (
	"context"
	"fmt"
	"time"
)

// How long this process waits for the server. Where a network is parted without a word nothing ends: a connection stays
// open on both sides, and an answer that was lost never comes. What stands between may even go on acknowledging what is
// sent, so that the system notices nothing. So each exchange ends at a moment of this process: by then the server has ended
// a statement itself (statement_timeout), and its answer has had time to arrive. After that the connection is of no use any
// more, and neither are those of the pool that were idle meanwhile.

const (
	answerWithin = 40 * time.Second // where the server ends a statement after 30 s
	answerLater  = 10 * time.Second // than the server has ended a statement
	pingWithin   = 5 * time.Second  // a connection that was idle for a second has to answer before it is used
)

// limits takes over after how long the server ends a statement; never if that is zero.
func (d *database) limits(statement time.Duration) {
	if d.answer = statement + answerLater; statement <= 0 {
		d.answer = 0
	}
}

// answered returns ctx with the moment by which the server has answered whatever it is asked now. Who has set no
// statement_timeout waits as long as it takes.
func (d *database) answered(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.answer == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.options.hurried(d.answer))
}

// silent returns the error of a read that the server has not answered in time. Connections of the pool that are idle would
// not be answered either.
func (d *database) silent() error {
	d.readers.Reset()
	return &unreachableError{d.address, fmt.Errorf("no answer in %s", d.options.hurried(d.answer))}
}
