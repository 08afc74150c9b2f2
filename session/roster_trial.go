package session

import (
	"github.com/dialai/dialai/internal/trust"
)

// A Trial is a policy that was back-tested on recorded rounds.
type Trial struct {
	Policy string `json:"policy"` // digest of what was changed
	From   int64  `json:"from"`   // LogEntry.Place of the first record of these rounds
	To     int64  `json:"to"`     // likewise, of the last
}

// Overlaps reports whether two trials were on some of the same rounds.
func (t Trial) Overlaps(u Trial) bool { return t.From <= u.To && u.From <= t.To }

// Within reports whether the same policy was tried on all of these rounds.
func (t Trial) Within(u Trial) bool { return t.Policy == u.Policy && u.From <= t.From && t.To <= u.To }

// Adopted records that the test of a promise is to begin with what a back-test found.
type Adopted struct {
	SpecialistID string
	Reason       string
	Lesson       *trust.Lesson
	Actor        *Actor // who adopts it; nil if that is not said
}

// KindTried is the kind of the roster event of a [Trial].
const KindTried = "policy_tried"
