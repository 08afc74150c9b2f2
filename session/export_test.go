package session

import (
	"fmt"
	"maps"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A LedgerTest applies events to a session that nobody stores.
type LedgerTest struct {
	s     Session
	o     OpenRound
	asked []placedAsk
	err   error
}

type placedAsk struct {
	Ask
	round int32
}

// NewLedgerTest returns one at the beginning of a session.
func NewLedgerTest(s *Session) *LedgerTest { return &LedgerTest{s: *s} }

func (l *LedgerTest) apply(d Data) {
	if err := Apply(&l.s, &l.o, &Event{Data: d}); err != nil {
		l.err = err
	}
}

// Ask sends a further ask.
func (l *LedgerTest) Ask(model bool, expected exact.Money) {
	a := Ask{SpecialistID: "w", Index: int32(len(l.o.Asks)) + 1, Role: machine.Proposer, Source: specialist.Webhook, Remote: &RemoteAsk{Estimate: expected}}
	if model {
		a.Source = specialist.Model
	}
	l.asked = append(l.asked, placedAsk{a, l.s.Round})
	l.apply(&Asked{Asks: []Ask{a}})
}

// TakeOver repeats an ask, which must be out.
func (l *LedgerTest) TakeOver(i int) {
	a := &l.asked[i]
	again := *a.Remote
	again.Repeat, again.Lost = again.Repeat+1, a.Source == specialist.Model
	a.Remote = &again
	l.apply(&Asked{Asks: []Ask{a.Ask}})
}

// CloseRound opens the next round.
func (l *LedgerTest) CloseRound() {
	l.apply(&RoundOpened{Round: l.s.Round + 1, State: l.s.State})
}

// Answer has the present request of an ask that is out say what it cost.
func (l *LedgerTest) Answer(i int, money exact.Money) {
	a := l.asked[i]
	l.apply(&AskFailed{SpecialistID: a.SpecialistID, Ask: a.Index, Role: a.Role, Code: CodeIllegal, Usage: specialist.Usage{}.WithCost(money)})
}

// Fail has it say nothing.
func (l *LedgerTest) Fail(i int) {
	a := l.asked[i]
	u := a.Remote.Expected()
	if u == (specialist.Usage{}) {
		u = u.WithCost(0)
		u.Estimated = true
	}
	l.apply(&AskFailed{SpecialistID: a.SpecialistID, Ask: a.Index, Role: a.Role, Code: CodeTimeout, Usage: u})
}

func (l *LedgerTest) discarded(i int, repeat int32, u specialist.Usage) {
	a := l.asked[i]
	code := CodeLate
	if a.round == l.s.Round {
		code = CodeTakenOver
	}
	l.apply(&Discarded{SpecialistID: a.SpecialistID, Round: a.round, Ask: a.Index, Code: code, Usage: u, Repeat: repeat})
}

// Late has any request of an ask say what it cost when nobody waits for it.
func (l *LedgerTest) Late(i int, repeat int32, money exact.Money) {
	l.discarded(i, repeat, specialist.Usage{}.WithCost(money))
}

// Unsent has a request say that it sent nothing; present says that it is out.
func (l *LedgerTest) Unsent(i int, repeat int32, present bool) {
	a, u := l.asked[i], specialist.Usage{}.WithCalls(0, 0)
	if present {
		l.apply(&AskFailed{SpecialistID: a.SpecialistID, Ask: a.Index, Role: a.Role, Code: CodeAskError, Usage: u})
		return
	}
	l.discarded(i, repeat, u)
}

// Spent returns what the session has spent, and whether a charge was refused.
func (l *LedgerTest) Spent() (spend.Book, error) { return l.s.Spent(), l.err }

// AskDrawing returns the states of an ask as a Mermaid diagram, as its table has them:
// what comes to asks that are pending, and else what changes anything. An answer that is
// recorded although it was not waited for is drawn once for all states it stays in.
func AskDrawing() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> open : asked\n")
	for s := range askStatuses {
		for in := range askInputs {
			step := askTable[s][in]
			if step == (askStep{s, nothing}) || !s.Pending() && (in <= cancelledAsk || in == lostAsk || in == formerAnswer) {
				continue
			}
			label := askInputNames[in]
			if step.charge != nothing {
				label += ", charged " + askChargeNames[step.charge]
			}
			fmt.Fprintf(&b, "    %s --> %s : %s\n", s, step.to, label)
		}
	}
	return b.String()
}

// AfterAsk applies one event to an ask that is open, or accepted, and returns the word
// for what became of it and what was charged.
func AfterAsk(s *Session, accepted bool, d Data) (status string, charged spend.Book) {
	l := NewLedgerTest(s)
	l.Ask(false, exact.Dollar)
	if accepted {
		again := l.asked[0].Ask
		remote := *again.Remote
		remote.Accepted, again.Remote = true, &remote
		l.apply(&Asked{Asks: []Ask{again}})
	}
	l.apply(d)
	return l.o.Asks[0].Status.String(), l.s.Spent()
}

// Held returns how many Programs are remembered.
func (ps *Programs) Held() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(maps.Collect(ps.byDigest.All()))
}
