package session

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// Hold notes what an ask is expected to need.
func (r *RemoteAsk) Hold(b spend.Book) {
	r.Estimate, r.TokensIn, r.TokensOut = b.Money, b.TokensIn, b.TokensOut
}

// Held returns all that an ask holds of the budget, for its first call and for what
// is set aside beside that.
func (r *RemoteAsk) Held() spend.Book {
	b := spend.Book{Calls: 1, Money: r.Estimate, TokensIn: r.TokensIn, TokensOut: r.TokensOut}
	return b.Plus(spend.Book{Calls: r.Spare.Calls, Money: r.Spare.Money, TokensIn: r.Spare.TokensIn, TokensOut: r.Spare.TokensOut})
}

// Charged returns what an ask that nobody answered is charged; r may be nil.
func (r *RemoteAsk) Charged() (cost exact.Money, in, out int64) {
	if r == nil {
		return 0, 0, 0
	}
	return r.Estimate, r.TokensIn, r.TokensOut
}

// Add holds what a further call takes; billed says how many of its calls may cost something.
func (s *Spare) Add(b spend.Book, billed int64) {
	s.Calls, s.Billed, s.Money = s.Calls+b.Calls, s.Billed+billed, s.Money.Add(b.Money)
	s.TokensIn, s.TokensOut = s.TokensIn+b.TokensIn, s.TokensOut+b.TokensOut
}

// Asked records who is asked. Asks outside this process are recorded before they
// are sent, others together with their answers.
type Asked struct {
	Asks []Ask
	Wave *Wave // that begins with these; nil for others
}

// An Ask is one asking of one specialist.
type Ask struct {
	SpecialistID string
	Index        int32 // within the round, from 1
	Role         machine.Role
	Source       specialist.Source
	Remote       *RemoteAsk // nil for asks inside this process
	Shadow       bool       // only to learn from: while a champion decides alone, the answer does not count
}

// External reports whether the ask is for any process to send, until its deadline: none
// waits for the answer.
func (a *Ask) External() bool {
	return a.Remote != nil && a.Remote.Owner == "" && !a.Remote.Accepted
}

// Late reports whether no process waits for the answer: it comes with a commit.
func (a *Ask) Late() bool { return a.Remote != nil && a.Remote.Accepted || a.External() }

// A RemoteAsk is what more there is to say of an ask outside this process.
type RemoteAsk struct {
	Owner     string          // the process that waits for the answer; "" if none does
	Deadline  specialist.Time // after which nobody waits
	Estimate  exact.Money     // what it is thought to cost
	TokensIn  int64           // likewise
	TokensOut int64           // likewise
	Accepted  bool            // it was taken and will be answered later
	TokenHash string          // SHA-256 of the callback token, in hex; "" if there is none
	Repeat    int32           // how often it was taken over from a lost process
	Spare     Spare           // what is held beside the estimate
	Lost      bool            // what the lost process had asked is charged as estimated: it may have been answered
}

// A Spare is what is held for calls of an ask beyond its first: for repairs, and
// for calls that a provider refuses.
type Spare struct {
	Calls     int64
	Billed    int64 // of them, those that may cost something
	Money     exact.Money
	TokensIn  int64
	TokensOut int64
}
