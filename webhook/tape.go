package webhook

import "context"

// A Label names one call of a run, the same in every run of the same machine
// that goes the same way: it has no id and no time in it.
type Label struct {
	Kind       string // proposer, arbiter, context or classifier; of a model: ask, repair or probe
	Specialist string // "" for a call of nobody's
	State      string
	Round      int32
	Attempt    int32 // at the round
}

// A Taped is what came of a call: a body with its status, or an error.
type Taped struct {
	Status int
	Body   []byte
	Err    error
}

// A Tape stands between the program and the network. It may be used
// concurrently.
//
// Exchange returns what send returned, and remembers it; or it returns what was
// remembered for that label, without calling send. With several calls of one
// label it goes by their order. request is what is sent, without keys, for people
// who read the tape.
type Tape interface {
	Exchange(ctx context.Context, l Label, request []byte, send func() Taped) Taped
}
