package agent

import "errors"

// Errors that callers ask for with [errors.Is].
var (
	ErrStale   = errors.New("it is no longer asked")              // of an answer to what nobody waits for
	ErrClosed  = errors.New("the session of the agent has ended") // of what is said to an ended session
	ErrUnknown = errors.New("the agent knows no such session")    // of a session to go on with
)
