package store

import (
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/projection"
)

// What a session has spent is worked out anew here, from its events and by code of its
// own, ask by ask: a bill for each thing that a service counts. Where that is not what
// the fold says, the first event at which it shows is named. Earlier versions let an
// answer that came late take back what nobody had paid; the first such event is kept,
// to be named where the session's row still says so.

// A bill is what a service counts as one: an ask of one that knows it by its key, or one
// request to a model.
type bill struct {
	requests map[int32]bool // by number: false if it said that nothing was sent
	told     bool           // an answer said what it cost
	guessed  bool           // it is charged as nobody knows better
	void     bool           // nothing was sent
	sum      spend.Book
}

// A billedAsk is an ask outside the process, and its bills, the present one last.
type billedAsk struct {
	ask   session.Ask
	ended bool
	free  bool
	bills []*bill
}

type askPlace struct{ round, attempt, ask int32 }

// The bills of one session say what it has spent, event by event.
type bills struct {
	asks    map[askPlace]*billedAsk
	at      askPlace // of the present round
	state   *machine.State
	program *session.Program
	beside  spend.Book // what was charged without an ask outside the process
	wrong   *Difference
	taken   string // the first event that took back what was not charged; "" if none did
}

func newBills() *bills { return &bills{asks: map[askPlace]*billedAsk{}} }

// follow takes in an event, after which the fold says that so much was spent.
func (p *bills) follow(seq int64, ev session.Event, _, folded spend.Book) {
	p.add(seq, ev.Data)
	if d, ok := ev.Data.(*session.Created); ok && d.Options.ForkedFrom != nil {
		p.beside = folded // it was spent in another session
	}
	var sum spend.Book
	sum.Calls, sum.TokensIn, sum.TokensOut, sum.Money = p.beside.Calls, p.beside.TokensIn, p.beside.TokensOut, p.beside.Money
	for _, a := range p.asks {
		sum = sum.Plus(a.sum())
	}
	folded.Unpriced, folded.Estimated = 0, 0
	if p.wrong == nil && sum != folded {
		p.wrong = &Difference{Seq: seq, Kind: inLog, What: fmt.Sprintf("after it the session has spent %s, and the sum of its asks is %s", spentText(folded), spentText(sum))}
	}
}

func spentText(b spend.Book) string {
	return fmt.Sprintf("$%s in %d calls with %d and %d tokens", b.Money, b.Calls, b.TokensIn, b.TokensOut)
}

func (a *billedAsk) sum() (sum spend.Book) {
	for _, b := range a.bills {
		sum = sum.Plus(b.sum)
	}
	return sum
}

func (p *bills) add(seq int64, data session.Data) {
	switch d := data.(type) {
	case *session.Created:
		p.program = d.Program
		p.state, p.at.round, p.at.attempt = d.Start()
	case *session.RoundOpened:
		p.over()
		p.at, p.state = askPlace{d.Round, d.Attempt, 0}, d.State
	case *session.Executed, *session.Ended:
		p.over()
	case *session.Moved:
		p.over()
		p.program = d.Program
	case *session.Asked:
		for _, a := range d.Asks {
			p.asked(a)
		}
	case *session.Proposed:
		p.proposed(d)
	case *session.AskFailed:
		p.answered(d.Ask, d.Usage, d.Model, failureOf(d.Code, d.Usage))
	case *session.Judged:
		p.answered(d.Ask, d.Usage, d.Model, (*bill).tell)
	case *session.Probed:
		p.probed(d)
	case *session.Discarded:
		p.discarded(seq, d)
	}
}

// over ends the asks of the present round.
func (p *bills) over() {
	for place, a := range p.asks {
		if place.round != p.at.round || place.attempt != p.at.attempt || a.ended {
			continue
		}
		c := p.program.Guards(p.state)
		if a.free = a.ask.OfGuards() && (c == nil || !c.DebitsProbes()); !a.free {
			a.expect()
		}
		a.ended = true
	}
}

func (p *bills) place(ask int32) askPlace { return askPlace{p.at.round, p.at.attempt, ask} }

func (p *bills) asked(ask session.Ask) {
	if ask.Remote == nil {
		return
	}
	a := p.asks[p.place(ask.Index)]
	repeat := ask.Remote.Repeat
	switch {
	case a == nil:
		p.asks[p.place(ask.Index)] = &billedAsk{ask: ask, bills: []*bill{{requests: map[int32]bool{repeat: true}}}}
		return
	case a.ended || repeat <= a.ask.Remote.Repeat:
	case ask.Remote.Lost:
		a.expect()
		a.bills = append(a.bills, &bill{requests: map[int32]bool{repeat: true}})
	default:
		a.present().requests[repeat] = true
	}
	a.ask = ask
}

func (a *billedAsk) present() *bill { return a.bills[len(a.bills)-1] }

// of returns the bill that a request is on.
func (a *billedAsk) of(repeat int32) *bill {
	for _, b := range a.bills {
		if _, on := b.requests[repeat]; on {
			return b
		}
	}
	return a.present()
}

// expect charges the present bill as expected, unless something is known.
func (a *billedAsk) expect() { a.present().guess(expectedOf(&a.ask)) }

func expectedOf(a *session.Ask) specialist.Usage {
	u := a.Remote.Expected()
	if u == (specialist.Usage{}) {
		return u.WithCost(0)
	}
	return u
}

func bookOf(u specialist.Usage) spend.Book {
	return spend.Book{Calls: u.Made(), TokensIn: max(u.NumInputTokens, 0), TokensOut: max(u.NumOutputTokens, 0), Money: max(u.CostUSD, 0)}
}

// guess charges what nobody knows better.
func (b *bill) guess(u specialist.Usage) {
	if !b.told && !b.guessed && !b.void {
		b.guessed, b.sum = true, bookOf(u)
	}
}

// tell charges what an answer said.
func (b *bill) tell(u specialist.Usage) {
	said := bookOf(u)
	switch {
	case b.told:
		b.sum.Calls, b.sum.Money = max(b.sum.Calls, said.Calls), max(b.sum.Money, said.Money)
		b.sum.TokensIn, b.sum.TokensOut = max(b.sum.TokensIn, said.TokensIn), max(b.sum.TokensOut, said.TokensOut)
	case b.guessed:
		b.refine(u)
	default:
		b.sum = said
	}
	b.told = true
}

// refine puts what is known in the place of what was guessed.
func (b *bill) refine(u specialist.Usage) {
	said, all := bookOf(u), u.Has(specialist.CostGiven) || u.Made() == 0
	if all {
		b.sum = said
		return
	}
	b.sum.Calls = said.Calls
	if u.Has(specialist.InputGiven) {
		b.sum.TokensIn = said.TokensIn
	}
	if u.Has(specialist.OutputGiven) {
		b.sum.TokensOut = said.TokensOut
	}
}

// doubt charges what a failure thinks that it cost.
func (b *bill) doubt(u specialist.Usage) {
	if b.guessed && !b.told {
		b.refine(u)
	}
	b.guess(u)
}

// unsent strikes a request off, and reports whether that was the last.
func (b *bill) unsent(repeat int32) bool {
	b.requests[repeat] = false
	for _, sent := range b.requests {
		if sent {
			return false
		}
	}
	if !b.told {
		b.void, b.sum = true, spend.Book{}
	}
	return true
}

// failureOf says what a failure tells of its cost: nil if nothing was sent.
func failureOf(code string, u specialist.Usage) func(*bill, specialist.Usage) {
	silent := code == session.CodeCancelled || code == session.CodeTimeout || code == session.CodeLost
	switch {
	case u.Made() == 0 && !u.Has(specialist.CostGiven):
		return nil
	case u.Estimated || silent && u == specialist.Usage{}:
		return (*bill).doubt
	}
	return (*bill).tell
}

// answered takes in what came of the present request of an ask, or of nobody's.
func (p *bills) answered(index int32, u specialist.Usage, model string, how func(*bill, specialist.Usage)) {
	a := p.asks[p.place(index)]
	if index == 0 || a == nil {
		if u != (specialist.Usage{}) || model != "" {
			p.beside = p.beside.Plus(bookOf(u))
		}
		return
	}
	a.ended = true
	if u == (specialist.Usage{}) {
		if u = u.WithCost(0); a.ask.Source == specialist.Model && model == "" {
			u = u.WithCalls(0, 0)
		} else if model != "" {
			u = specialist.Usage{}
		}
	}
	if how != nil {
		how(a.present(), u)
	} else if !a.present().unsent(a.ask.Remote.Repeat) {
		a.expect()
	}
}

func (p *bills) proposed(d *session.Proposed) {
	model := ""
	if d.Detail != nil {
		model = spend.Called{Model: d.Detail.Model, Asked: d.Detail.Asked}.String()
	}
	charged := false
	for place, a := range p.asks {
		if place.round != p.at.round || place.attempt != p.at.attempt || a.ended {
			continue
		}
		switch {
		case a.ask.Role == machine.Arbiter: // its question is out of date
			a.expect()
			a.ended = true
		case d.Ask != 0 || a.ask.SpecialistID != d.SpecialistID || a.ask.Role != machine.Proposer:
		case a.ask.Remote.Accepted:
			p.answered(place.ask, d.Usage, model, (*bill).tell)
			charged = true
		default:
			a.expect()
			a.ended = true
		}
	}
	if !charged {
		p.answered(d.Ask, d.Usage, model, (*bill).tell)
	}
}

func (p *bills) probed(d *session.Probed) {
	if d.Ask == 0 {
		return // a measurement
	}
	a, u := p.asks[p.place(d.Ask)], d.Usage
	if a != nil && d.Free {
		a.free, a.ended = true, true
		return
	}
	how := (*bill).tell
	if d.Code != "" {
		how = failureOf(d.Code, u)
	}
	if u == (specialist.Usage{}) {
		u = u.WithCost(0)
	}
	p.answered(d.Ask, u, d.Model, how)
}

func (p *bills) discarded(seq int64, d *session.Discarded) {
	here := d.Round == p.at.round && d.Attempt == p.at.attempt
	a := p.asks[askPlace{d.Round, d.Attempt, d.Ask}]
	if d.Ask == 0 && d.Usage != (specialist.Usage{}) {
		p.beside = p.beside.Plus(bookOf(d.Usage))
	}
	if d.Ask == 0 || a == nil {
		return
	}
	if charged := a.sum().Money; d.Charged > charged && p.taken == "" {
		p.taken = fmt.Sprintf("event %d takes $%s back from ask %d of %s in round %d, which had been charged $%s", seq, d.Charged, d.Ask, d.SpecialistID, d.Round, charged)
	}
	present := !a.ended && d.Repeat == a.ask.Remote.Repeat
	a.ended = a.ended || here && d.Code != session.CodeTakenOver
	b := a.of(d.Repeat)
	settled := !here && len(b.requests) == 1 && (b.told || b.void)
	how := failureOf(d.Code, d.Usage)
	switch {
	case d.Usage == specialist.Usage{} || a.free || settled:
	case how == nil:
		if !b.unsent(d.Repeat) && present {
			a.expect()
		}
	case d.Usage.Estimated:
		if present || b.guessed {
			b.doubt(d.Usage)
		}
	default:
		b.tell(d.Usage)
	}
}

// spentDifference says how a row's spending differs from what the log says; "" if it
// does not.
func spentDifference(got, want projection.Session, taken string) string {
	row := spend.Book{Calls: got.Calls, TokensIn: got.TokensIn, TokensOut: got.TokensOut, Money: exact.Money(got.PicoUSD)}
	log := spend.Book{Calls: want.Calls, TokensIn: want.TokensIn, TokensOut: want.TokensOut, Money: exact.Money(want.PicoUSD)}
	if row == log {
		return ""
	}
	text := fmt.Sprintf("its row in sessions says that it spent %s, its log says %s", spentText(row), spentText(log))
	if taken != "" {
		text += ": " + taken
	}
	return text
}
