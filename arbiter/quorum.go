package arbiter

import (
	"fmt"
	"strings"
)

// A Quorum says how far the panel of a round has answered. An engine that counts
// hands it to the arbiter's decision as a floor: below it a verdict stands, and
// executes nothing. It is never changed.
type Quorum struct {
	Counted  int      `json:"counted"`           // proposers who were asked or proposed, without humans and shadows
	Answered int      `json:"answered"`          // of them, those with a legal proposal
	Needed   int      `json:"needed"`            // of answers, before the round is decided without a human
	Missing  []string `json:"missing,omitempty"` // who is required and has not answered
	// Failures says in words why those who were counted have not answered. It is
	// part of the reasoning of a verdict, and not kept beside it.
	Failures string `json:"-"`
}

// Reached reports whether the round may be decided without a human: as many have
// answered as must, and all who are required. That of nil is reached: nobody
// counted.
func (q *Quorum) Reached() bool {
	return q == nil || q.Answered >= q.Needed && len(q.Missing) == 0
}

// numbers returns the counts in words, without names.
func (q *Quorum) numbers() string {
	text := fmt.Sprintf("%d of %d answered", q.Answered, q.Counted)
	if q.Answered < q.Needed {
		text += fmt.Sprintf(", %d needed", q.Needed)
	}
	switch n := len(q.Missing); {
	case n == 1:
		text += ", a required answer is missing"
	case n > 1:
		text += fmt.Sprintf(", %d required answers are missing", n)
	}
	return text
}

// text returns the counts in words, and who did not answer.
func (q *Quorum) text() string {
	text := fmt.Sprintf("%d of %d answered", q.Answered, q.Counted)
	if q.Answered < q.Needed {
		text += fmt.Sprintf(", %d needed", q.Needed)
	}
	if n := len(q.Missing); n > 0 {
		text += fmt.Sprintf(", %s %s required", strings.Join(q.Missing, ", "), []string{"is", "are"}[min(n-1, 1)])
	}
	if q.Failures != "" {
		text += ": " + q.Failures
	}
	return text
}
