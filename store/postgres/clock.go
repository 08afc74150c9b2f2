package postgres

import (
	"sync/atomic"
	"time"
)

// The clock of the server is that of all processes: by it sessions are due, and leases run out. A process
// goes by it from what it was told last and the time that has passed since by a clock that nobody sets, so
// that of the computer may be wrong, and may jump. Each new connection asks anew, and so does each renewal of owners.
//
// What the server said, it said between the question and the answer, so that may be wrong by as long as that took: what
// is known is put right only as far as the answer proves it wrong. So an answer that is long on its way, or a process
// that stands still meanwhile, moves nothing.

// A clock is what is known of the server's.
type clock struct {
	began time.Time
	zero  atomic.Int64 // what time it was to the server then, in ns since 1970
}

// start begins with a guess.
func (c *clock) start(guess time.Time) {
	c.began = time.Now()
	c.zero.Store(guess.UnixNano())
}

// passed returns how much time has passed, by a clock that nobody sets.
func (c *clock) passed() time.Duration { return time.Since(c.began) }

// measured takes it that the server has said what time it is when so much had passed at least, and at most.
func (c *clock) measured(asked time.Duration, server time.Time, answered time.Duration) {
	c.zero.Store(min(max(c.zero.Load(), server.Add(-answered).UnixNano()), server.Add(-asked).UnixNano()))
}

func (c *clock) now() time.Time { return time.Unix(0, c.zero.Load()).Add(c.passed()) }

// Now implements [session.Clock].
func (s *Store) Now() time.Time { return s.clock.now() }

// Skew implements [session.Clock].
func (s *Store) Skew() time.Duration { return s.options.time().Round(0).Sub(s.Now()) }
