package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// Every ask outside this process has one account, and the fold keeps it. What a
// session has spent is the sum of the accounts of its asks and of what was charged
// without an ask: functions inside the process, and proposals that nobody asked for.
// Nothing else changes a sum, and no event and no process says what was charged
// before: a correction takes back what the account holds. So no order of answers,
// however late, doubled, or by whom, can charge an ask twice or give back what was
// never paid.
//
// An account has a payment for each thing that the service counts. A service that
// knows the ask by its key is paid once, however often the request was repeated: its
// account has one payment. A model is paid for each request: each process that took
// the ask over opens a payment of its own, and closes that of the process before it.
//
//	event               reserved              assumed                settled       unsent
//	------------------  --------------------  ---------------------  ------------  ---------
//	nobody waits        assumed, as expected  -                      -             -
//	failed, unknown     assumed, as it says   as it says             -             -
//	nothing was sent    unsent (*)            unsent (*)             -             -
//	said                settled, as it says   settled, as it says    the costlier    settled
//	free                free: nothing changes it any more
//
// "Expected" is the estimate that the ask holds, or, without one, a call of unknown
// cost. "As it says" replaces those members that the answer knows; the others stay.
// "The costlier" takes the most of each member: a service that knows the key may well
// say nothing, or less, the second time.
//
// (*) Only if each request that shares the payment has said so. If another request was
// made, a payment that is reserved becomes assumed when the present one fails, because
// the other may have been answered; one that is assumed stays. While the present
// request is out, what a former process says settles the payment or changes nothing.
//
// A session that is not in its round any more keeps the accounts that may still change
// ([debt]). A charge that is below zero, or would make an account or what was spent
// negative, is refused: live the commit fails ([ErrCharge]); of a log it counts as zero.

// ErrCharge is wrapped by the error of a commit that would charge less than nothing, or
// make what a session has spent negative.
var ErrCharge = errors.New("the charge would make what was spent negative")

// A payState is the state of a payment.
type payState uint8

const (
	reserved payState = iota // the request is out: its estimate is held, nothing is charged
	assumed                  // nobody has said what it cost: it is charged as expected
	settled                  // an answer said
	unsent                   // nothing left this process
	free                     // it is not paid from the session's budget
)

// A payEvent is something that happens to a payment.
type payEvent uint8

const (
	abandoned  payEvent = iota // nobody waits for it any more
	unknown                    // it failed, and nobody will say what it cost
	sentNone                   // nothing was sent
	said                       // an answer came
	notCharged                 // it is free
)

// A payment is what a service counts as one. It is a value.
type payment struct {
	state   payState
	first   int32            // the requests that share it, as numbers of repeats of the ask: from here
	last    int32            // up to here
	none    uint64           // which of them sent nothing, the first by the lowest bit
	charged specialist.Usage // what the session pays for it; zero while it is reserved
	model   string           // that is charged for; "" if nobody has said, or it is none
}

// An account is what a session owes for one ask. It never changes: a newer one takes
// its place. The nil account is that of an ask that has just been recorded.
type account struct {
	now    payment
	former []payment // of requests before the present one that are paid for themselves
}

// after returns p after an event of one of its requests. u is what that says of the
// cost, or, if it says nothing, what is expected.
func (p payment) after(e payEvent, repeat int32, u specialist.Usage) payment {
	if e == sentNone {
		if p.note(repeat); p.noneSent() && p.state <= assumed {
			p.state, p.charged = unsent, specialist.Usage{}.WithCalls(0, 0)
			return p
		}
		e = abandoned
	}
	switch {
	case p.state == free:
	case e == said && p.state == settled:
		p.charged = costlier(p.charged, u)
	case e == said:
		p.state, p.charged = settled, told(p, u)
	case e == unknown && p.state == assumed:
		p.charged = told(p, u)
	case p.state != reserved || repeat != p.last:
	case e == notCharged:
		p.state = free
	default:
		p.state, p.charged = assumed, u
	}
	return p
}

// note notes that a request has sent nothing.
func (p *payment) note(repeat int32) {
	if bit := repeat - p.first; bit >= 0 && bit < 64 {
		p.none |= 1 << bit
	}
}

// noneSent reports whether every request that shares p has sent nothing.
func (p payment) noneSent() bool {
	n := p.last - p.first + 1
	return n < 64 && p.none == 1<<n-1
}

// open reports whether anything may still change p.
func (p payment) open() bool {
	switch p.state {
	case settled:
		return p.last > p.first
	case unsent, free:
		return false
	}
	return true
}

// told returns what is charged once an answer has come: what it says, and what was
// charged before where it says nothing.
func told(p payment, u specialist.Usage) specialist.Usage {
	was := p.charged
	if p.state != assumed || u.Has(specialist.CostGiven) || u.Made() == 0 {
		return u
	}
	if u == (specialist.Usage{}) {
		return was
	}
	u.CostUSD, u.Given = was.CostUSD, u.Given|was.Given&specialist.CostGiven
	if !u.Has(specialist.InputGiven) {
		u.NumInputTokens = was.NumInputTokens
	}
	if !u.Has(specialist.OutputGiven) {
		u.NumOutputTokens = was.NumOutputTokens
	}
	return u
}

// costlier returns the most of each member.
func costlier(a, b specialist.Usage) specialist.Usage {
	made := max(a.Made(), b.Made())
	a.CostUSD, a.Given = max(a.CostUSD, b.CostUSD), a.Given|b.Given
	a.NumInputTokens, a.NumOutputTokens = max(a.NumInputTokens, b.NumInputTokens), max(a.NumOutputTokens, b.NumOutputTokens)
	return a.WithCalls(made, a.Unbilled)
}

// payment returns the payment of a request.
func (a *account) payment(repeat int32) payment {
	if a == nil {
		return payment{}
	}
	for _, p := range a.former {
		if repeat <= p.last {
			return p
		}
	}
	return a.now
}

// with returns the account with the payment of a request in the place of the one it
// had.
func (a *account) with(repeat int32, p payment) *account {
	next := &account{now: p}
	if a == nil {
		return next
	}
	for i, f := range a.former {
		if repeat <= f.last {
			next.now, next.former = a.now, slices.Clone(a.former)
			next.former[i] = p
			return next
		}
	}
	next.former = a.former
	return next
}

// repeated returns the account of an ask that another process has taken over. paid
// says that the service is paid for the new request too.
func (a *account) repeated(repeat int32, paid bool) *account {
	next := &account{}
	if a != nil {
		*next = *a
	}
	if !paid {
		next.now.last = repeat
		return next
	}
	next.former = append(slices.Clip(next.former), next.now)
	next.now = payment{first: repeat, last: repeat}
	return next
}

// Reserved reports whether the present request of an ask is out, and nothing is charged
// for it yet.
func (a *AskState) Reserved() bool {
	return a.Status.Pending() && a.Remote != nil && a.account.payment(a.Remote.Repeat).state == reserved
}

// Assumed reports whether a request of an ask is charged as expected, since nobody has
// said what it cost.
func (a *AskState) Assumed(repeat int32) bool { return a.account.payment(repeat).state == assumed }

// Charged returns what is charged for a request of an ask of the present round or of a
// former one; zero if nothing is, or may change any more.
func (s *Session) Charged(o *OpenRound, key specialist.RoundKey, ask, repeat int32) specialist.Usage {
	if owed := s.owed(key.Round, key.Attempt, ask); owed != nil {
		return owed.account.payment(repeat).charged
	}
	if a := o.At(ask); a != nil && key.Round == s.Round && key.Attempt == s.Attempt {
		return a.account.payment(repeat).charged
	}
	return specialist.Usage{}
}

// open reports whether anything may still change the account.
func (a *account) open() bool {
	return a != nil && (a.now.open() || slices.ContainsFunc(a.former, payment.open))
}

// A debt is the account of an ask whose round was closed before everybody had said
// what it cost. Debts are a list, the newest first, that never changes.
type debt struct {
	round, attempt int32
	ask            *Ask
	account        *account
	next           *debt
}

// owe keeps the accounts of a round that is over, as far as they may still change.
func owe(s *Session, o *OpenRound) {
	for i := range o.Asks {
		if a := &o.Asks[i]; a.account.open() {
			s.owing = &debt{s.Round, s.Attempt, a.Ask, a.account, s.owing}
		}
	}
}

// owed returns the account of an ask of a former round, nil if it cannot change any
// more.
func (s *Session) owed(round, attempt, ask int32) *debt {
	for d := s.owing; d != nil; d = d.next {
		if d.round == round && d.attempt == attempt && d.ask.Index == ask {
			return d
		}
	}
	return nil
}

// Owing returns the newest ask of a specialist in a round that is over whose cost may still
// become known: the round's key, the ask's index and the number of its newest request. ok is
// false if there is none.
func (s *Session) Owing(roundID string, id machine.SpecialistID) (key specialist.RoundKey, ask, repeat int32, ok bool) {
	for d := s.owing; d != nil; d = d.next {
		key = specialist.RoundKey{Session: s.ID, Round: d.round, Attempt: d.attempt}
		if d.ask.SpecialistID == string(id) && d.ask.Remote != nil && key.ID() == roundID {
			return key, d.ask.Index, d.ask.Remote.Repeat, true
		}
	}
	return specialist.RoundKey{}, 0, 0, false
}

// CalledBack returns the ask with that id, and the key of its round, if its service may
// still answer later: it is out, or nobody waits for it any more and it is charged as
// expected, so that the answer is late and tells what it cost. It is nil for any other.
func (s *Session) CalledBack(askID string) (specialist.RoundKey, *Ask) {
	for i := range s.round().Asks {
		a := &s.Open.Asks[i]
		if a.Remote != nil && (a.Status.Pending() || a.Assumed(a.Remote.Repeat)) && s.Key().AskID(a.Index) == askID {
			return s.Key(), a.Ask
		}
	}
	for d := s.owing; d != nil; d = d.next {
		key := specialist.RoundKey{Session: s.ID, Round: d.round, Attempt: d.attempt}
		if d.ask.Remote != nil && d.account.payment(d.ask.Remote.Repeat).state == assumed && key.AskID(d.ask.Index) == askID {
			return key, d.ask
		}
	}
	return specialist.RoundKey{}, nil
}

// with returns the list with another account for one of its debts, or without it once
// nothing can change it.
func (d *debt) with(of *debt, a *account) *debt {
	if d != of {
		return &debt{d.round, d.attempt, d.ask, d.account, d.next.with(of, a)}
	}
	if !a.open() {
		return d.next
	}
	return &debt{d.round, d.attempt, d.ask, a, d.next}
}

// Accounts returns what the session knows of what its asks cost, as text for people who
// look for a difference: those of its round, then those of former rounds, the newest
// first.
func (s *Session) Accounts() string {
	var b strings.Builder
	for _, a := range s.round().Asks {
		fmt.Fprintf(&b, "%d %s%s\n", a.Index, a.SpecialistID, a.account)
	}
	for d := s.owing; d != nil; d = d.next {
		fmt.Fprintf(&b, "%d.%d %d %s%s\n", d.round, d.attempt, d.ask.Index, d.ask.SpecialistID, d.account)
	}
	return b.String()
}

var payStateNames = [...]string{"reserved", "assumed", "settled", "unsent", "free"}

// String returns the payments, the oldest first.
func (a *account) String() string {
	if a == nil {
		a = &account{}
	}
	var b strings.Builder
	for _, p := range append(slices.Clip(a.former), a.now) {
		fmt.Fprintf(&b, " %d-%d %s %+v", p.first, p.last, payStateNames[p.state], p.charged)
	}
	return b.String()
}
