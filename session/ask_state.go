package session

import (
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The life of an ask. What an ask has come to is one status, and one table says what
// each thing that can happen makes of it and who says what it is charged. The fold goes
// by the table, and so does whoever records an answer ([Session.Refuses]): nothing else
// decides whether an answer still counts, but that an arbiter's verdict counts only for a
// session that is running. ARCHITECTURE.md draws the table. What a charge comes to, over
// all requests of one ask, is the account's matter (account.go).

// An AskStatus says what became of an ask.
type AskStatus uint8

// The statuses of an ask.
const (
	AskStatusOpen      AskStatus = iota // it was sent, or is being asked inside this process
	AskStatusAccepted                   // its service has said that it will answer later
	AskStatusAnswered                   // its answer counts
	AskStatusFailed                     // no answer, or one that counts for nothing
	AskStatusRefused                    // a budget or a quota had no room for it
	AskStatusCancelled                  // nobody waits for it: whoever was asked may be asked anew
	AskStatusLate                       // likewise, and an answer came all the same
	AskStatusLost                       // the process that had asked is gone, with the answer
	askStatuses
)

var askStatusNames = [askStatuses]string{"open", "accepted", "answered", "failed", "refused", "cancelled", "late", "lost"}

// String returns the word for the status.
func (s AskStatus) String() string { return askStatusNames[s] }

// Pending reports whether an answer may still come that counts.
func (s AskStatus) Pending() bool { return s <= AskStatusAccepted }

// Failed reports whether the ask has come to nothing, and is not repeated unless a
// resume says so.
func (s AskStatus) Failed() bool {
	return s == AskStatusFailed || s == AskStatusRefused || s == AskStatusLost
}

// Dropped reports whether nobody waits for an answer, so that it counts as not asked.
func (s AskStatus) Dropped() bool { return s == AskStatusCancelled || s == AskStatusLate }

// An askInput is something that happens to an ask.
type askInput uint8

const (
	repeated      askInput = iota // another process asks once more, under the same key
	repeatedPaid                  // likewise a model, which is paid for each request
	accepted                      // the service will answer later
	answered                      // the answer came, and counts
	overtaken                     // whoever was asked has proposed without it
	outdated                      // an arbiter's: the proposals that it was about have changed
	failedAsk                     // it failed; a deadline that passed is a failure
	refusedAsk                    // there is no room for it in a budget or a quota
	cancelledAsk                  // the round was decided without it
	lostAsk                       // the process that asked is gone
	lateAnswer                    // an answer came when nobody waited for it
	formerAnswer                  // an answer came to a request that was repeated since
	roundOver                     // its round is over
	resumed                       // the session was taken up again
	resumedFailed                 // likewise, and who failed is to be asked again
	askInputs
)

var askInputNames = [askInputs]string{"repeated", "repeated (model)", "accepted", "answered", "proposed from outside", "proposals changed", "failed or timed out", "no room",
	"decided without it", "process lost", "late answer", "answer to a former request", "round over", "resumed", "resumed to retry"}

// An askCharge says by whose word an ask is charged.
type askCharge uint8

const (
	nothing    askCharge = iota
	byEstimate           // as expected, until somebody says more
	byAnswer             // as what came of it says; what that leaves open stays as expected
)

var askChargeNames = [...]string{"", "as estimated", "as it says"}

type askStep struct {
	to     AskStatus
	charge askCharge
}

// askTable says what an input makes of an ask, and by whose word it is charged then.
var askTable = func() (t [askStatuses][askInputs]askStep) {
	for s := range askStatuses {
		for in := range askInputs {
			t[s][in] = askStep{s, nothing} // whatever is not said changes nothing
		}
		// Live, these come to asks that are pending; a log is believed.
		t[s][answered] = askStep{AskStatusAnswered, byAnswer}
		t[s][failedAsk] = askStep{AskStatusFailed, byAnswer}
		t[s][refusedAsk] = askStep{AskStatusRefused, byAnswer}
		t[s][cancelledAsk] = askStep{AskStatusCancelled, byAnswer}
		t[s][lostAsk] = askStep{AskStatusLost, byAnswer}
		t[s][lateAnswer].charge, t[s][formerAnswer].charge = byAnswer, byAnswer
		if s.Pending() {
			t[s][repeated] = askStep{AskStatusOpen, nothing}
			t[s][repeatedPaid] = askStep{AskStatusOpen, byEstimate}
			t[s][accepted].to = AskStatusAccepted
			t[s][outdated] = askStep{AskStatusCancelled, byEstimate}
			t[s][roundOver] = askStep{AskStatusCancelled, byEstimate}
		}
		if s.Pending() || s.Dropped() {
			t[s][lateAnswer].to = AskStatusLate
		}
	}
	t[AskStatusOpen][overtaken] = askStep{AskStatusAnswered, byEstimate} // somebody waits for what it costs
	t[AskStatusAccepted][overtaken] = askStep{AskStatusAnswered, byAnswer}
	t[AskStatusRefused][resumed].to = AskStatusCancelled
	t[AskStatusRefused][resumedFailed].to = AskStatusCancelled
	t[AskStatusFailed][resumedFailed].to = AskStatusCancelled
	return t
}()

// A statement is what something that came of an ask says of its cost.
type statement struct {
	pays   payEvent
	repeat int32 // of the request that it is about
	usage  specialist.Usage
	model  spend.Called
}

// take makes of an ask what an input makes of it, and charges it.
func (o *OpenRound) take(s *Session, a *AskState, in askInput, said statement) {
	step := askTable[a.Status][in]
	a.Status = step.to
	switch {
	case step.charge == nothing:
	case step.charge == byEstimate:
		o.abandon(s, a)
	case a.Remote == nil:
		o.charge(s, a.SpecialistID, said.usage, said.model)
	default:
		a.account = o.book(s, a.Ask, a.account, said.pays, said.repeat, said.usage, said.model)
	}
}

// closeAsk takes what came of an ask of the round; without an ask it is only charged.
func (o *OpenRound) closeAsk(s *Session, index int32, id string, in askInput, e payEvent, u specialist.Usage, model spend.Called) {
	a := o.At(index)
	if index == 0 || a == nil {
		o.charge(s, id, u, model)
		return
	}
	o.take(s, a, in, a.says(e, u, model))
}

// says returns what the answer to the present request of an ask says of its cost.
func (a *AskState) says(e payEvent, u specialist.Usage, model spend.Called) statement {
	if a.Remote == nil {
		return statement{usage: u, model: model}
	}
	return statement{e, a.Remote.Repeat, known(a.Ask, u, model), model}
}

// failedBy returns the input that a failure with that code is.
func failedBy(code string) askInput {
	switch {
	case Unpaid(code):
		return refusedAsk
	case code == CodeCancelled:
		return cancelledAsk
	case code == CodeLost:
		return lostAsk
	}
	return failedAsk
}

// Refuses returns the code under which an answer to a request of an ask is discarded,
// since it does not count any more; "" if it counts. key is of the round that the request
// was sent in, and o is the open round of s. An ask of 0 is none: of an answer that was
// given without one, only the round is tested.
func (s *Session) Refuses(o *OpenRound, key specialist.RoundKey, ask, repeat int32) (code string) {
	if key != s.Key() || s.Status > NeedsHuman {
		return CodeLate
	}
	switch a := o.At(ask); {
	case ask == 0:
		return ""
	case a != nil && a.Remote != nil && a.Remote.Repeat != repeat:
		return CodeTakenOver
	case a == nil || !a.Status.Pending():
		return CodeSuperseded
	}
	return ""
}

// askAgain enters an ask of an [Asked] that is known: it was accepted, or is repeated
// by another process.
func (o *OpenRound) askAgain(s *Session, known *AskState, again *Ask) {
	if r, was := again.Remote, known.Remote; r != nil && was != nil && r.Repeat > was.Repeat && known.Status.Pending() {
		in := repeated
		if r.Lost {
			in = repeatedPaid
		}
		o.take(s, known, in, statement{})
		known.account = known.account.repeated(r.Repeat, r.Lost)
	}
	if known.Ask = again; again.Remote != nil && again.Remote.Accepted {
		o.take(s, known, accepted, statement{})
	}
}

// proposedOver takes to the asks of the round that a proposal has come: an arbiter's was
// about another set, and one to its author need not be answered any more. It reports
// whether the proposal's cost was charged with one of them.
func (o *OpenRound) proposedOver(s *Session, d *Proposed, model spend.Called) (charged bool) {
	for i := range o.Asks {
		switch a := &o.Asks[i]; {
		case !a.Status.Pending():
		case a.Role == machine.Arbiter:
			o.take(s, a, outdated, statement{})
		case d.Ask == 0 && a.SpecialistID == d.SpecialistID:
			charged = charged || askTable[a.Status][overtaken].charge == byAnswer
			o.take(s, a, overtaken, a.says(said, d.Usage, model))
		}
	}
	return charged
}
