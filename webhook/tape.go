package webhook

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/arbiter"
)

// A Label names one call of a run, the same in every run of the same machine
// that goes the same way: it has no id and no time in it.
type Label struct {
	Kind       string // proposer, arbiter, context or classifier; of a model: ask, repair or probe
	Specialist string // "" for a call of nobody's
	State      string
	Round      int32
	Attempt    int32 // at the round
	Ask        int32 // how many asks of the specialist came before in the round
}

// A Taped is what came of a call: a body with its status, or an error.
type Taped struct {
	Status int
	Body   []byte
	Err    error
	Unsent bool // nothing went out, so there was no call
	Lost   bool // a request went out, and its answer did not come, or not all of it
}

// A Tape stands between the program and the network. It may be used
// concurrently.
//
// Exchange returns what send returned, and remembers it; or it returns what was
// remembered for that label, without calling send. With several calls of one
// label it goes by their order. request is what is sent, without keys, for people
// who read the tape. Playing reports whether it calls nobody.
type Tape interface {
	Exchange(ctx context.Context, l Label, request []byte, send func() Taped) Taped
	Playing() bool
}

// tapedIDs returns what stands on a tape for the ids of a round's proposals, which
// are others in every session.
func (c *Client) tapedIDs(r *arbiter.Round) (pairs []string) {
	if c.config.Tape == nil {
		return nil
	}
	for _, v := range r.Votes {
		pairs = append(pairs, r.Key.ProposalID(v.Proposal.Arrival), fmt.Sprintf("proposal %d of the round", v.Proposal.Arrival))
	}
	return pairs
}
