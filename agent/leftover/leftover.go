// Package leftover finds the processes that sessions of agents have left behind, because the host
// that drove them was killed: what an agent starts, such as a shell that runs a server, outlives
// both. Each is found by the mark that its session's processes have in their environment. It sees
// processes on Linux only; elsewhere there seem to be none.
package leftover

import (
	"time"

	"github.com/dialai/dialai/agent/internal/process"
)

// Running returns the processes of this user that sessions of agents have started, by [agent.Spec]'s
// ID; those of sessions that somebody drives are among them.
func Running() map[string][]int { return process.Marked() }

// grace is how long processes may take to end.
const grace = 5 * time.Second

// End ends all processes of a session that nobody drives, and returns those that could not be.
func End(session string) (left []int) { return process.End(session, grace) }
