package cli

import (
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/runner"
)

// ledger writes what an event says of the session's ledger: what is held for asks
// that go out, that they have been heard, and that there was no room for any.
func (w *guardLog) ledger(seq int64, ev runner.Event) {
	switch d := ev.Data.(type) {
	case *runner.Asked:
		for i := range d.Asks {
			w.reserve(seq, ev, &d.Asks[i])
		}
	case *runner.Proposed:
		w.settle(seq, ev, d.Ask, d.SpecialistID, d.Usage.CostUSD)
	case *runner.AskFailed:
		w.settle(seq, ev, d.Ask, d.SpecialistID, d.Usage.CostUSD)
	case *runner.Ended:
		if d.Status == runner.Stopped && (strings.HasPrefix(d.Code, "budget_") || strings.HasPrefix(d.Code, "quota_")) && !w.gated {
			w.write(seq, ev.At, &guard.LogRecord{Round: w.round, Type: guard.LogVerdict, Verdict: guard.Abort.String(), Reason: d.Code, Message: d.Reason})
		}
	case *runner.RoundOpened:
		w.held = nil // what is still out is charged as estimated, in a record of its own
	}
	_, w.gated = ev.Data.(*runner.Gated)
}

func (w *guardLog) reserve(seq int64, ev runner.Event, a *runner.Ask) {
	if a.Remote == nil || w.held[a.Index] { // the same ask again is paid once
		return
	}
	if w.held == nil {
		w.held = map[int32]bool{}
	}
	w.held[a.Index] = true
	held := a.Remote.Held()
	rec := &guard.LogRecord{Round: w.round, Type: guard.LogReserve, USD: &held.Money, Meta: &guard.LogMeta{Specialist: a.SpecialistID}}
	if held.Calls != 1 {
		rec.Meta.Calls = &held.Calls
	}
	if held.TokensIn != 0 || held.TokensOut != 0 {
		rec.Tokens = &guard.LogTokens{Input: held.TokensIn, Output: held.TokensOut}
	}
	w.write(seq, ev.At, rec)
}

// settle writes that what was held for an ask no longer is; what it cost stands in
// the record that follows.
func (w *guardLog) settle(seq int64, ev runner.Event, ask int32, who string, cost exact.Money) {
	if !w.held[ask] {
		return
	}
	delete(w.held, ask)
	w.write(seq, ev.At, &guard.LogRecord{Round: w.round, Type: guard.LogSettle, USD: &cost, Meta: &guard.LogMeta{Specialist: who}})
}
