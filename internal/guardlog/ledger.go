package guardlog

import (
	"slices"
	"strings"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// ledger writes what an event says of the session's ledger: what is held for asks
// that go out, that it no longer is, and that there was no room for any. Every
// reserve is followed by one settle or one release.
func (w *Log) ledger(seq int64, ev session.Event, spent spend.Book) {
	out := w.folder.Out()
	for _, a := range w.held {
		if !slices.ContainsFunc(out, func(b session.Ask) bool { return b.Index == a.Index && b.Role == a.Role }) {
			w.unhold(seq, ev, a, spent)
		}
	}
	for _, a := range out {
		if !slices.ContainsFunc(w.held, func(b session.Ask) bool { return b.Index == a.Index }) { // the same ask again is paid once
			w.write(seq, ev.At, w.holding(guard.LogReserve, a, heldBy(a), spent, out))
		}
	}
	w.held = out
	if d, ok := ev.Data.(*session.Ended); ok && d.Status == session.Stopped && (strings.HasPrefix(d.Code, "budget_") || strings.HasPrefix(d.Code, "quota_")) && !w.gated {
		w.write(seq, ev.At, &guard.LogRecord{Round: w.round, Type: guard.LogVerdict, Verdict: verdict.Abort.String(), Reason: d.Code, Message: d.Reason})
	}
	_, w.gated = ev.Data.(*session.Gated)
}

// unhold writes that nothing is held for an ask any more. If it cost something, or
// was answered, it is settled, and what it cost stands in the record that follows;
// else what was held is released.
func (w *Log) unhold(seq int64, ev session.Event, a session.Ask, spent spend.Book) {
	cost, answered := costOf(ev.Data, a)
	kind := guard.LogRelease
	if answered || cost != (specialist.Usage{}) {
		kind = guard.LogSettle
	}
	w.write(seq, ev.At, w.holding(kind, a, cost, spent, w.folder.Out()))
}

// heldBy returns what an ask holds, repairs included.
func heldBy(a session.Ask) specialist.Usage {
	b := a.Remote.Held()
	return specialist.Usage{CostUSD: b.Money, NumInputTokens: b.TokensIn, NumOutputTokens: b.TokensOut}.WithCalls(b.Calls, 0)
}

// holding makes a record about what is held for an ask.
func (w *Log) holding(kind guard.LogType, a session.Ask, u specialist.Usage, spent spend.Book, out []session.Ask) *guard.LogRecord {
	rec := &guard.LogRecord{
		Round: w.round, Type: kind, USD: &u.CostUSD, Ledger: ledgerOf(spent), Meta: &guard.LogMeta{Specialist: a.SpecialistID},
	}
	if u.NumInputTokens != 0 || u.NumOutputTokens != 0 {
		rec.Tokens = &guard.LogTokens{Input: u.NumInputTokens, Output: u.NumOutputTokens}
	}
	if n := u.Made(); n != 1 && kind == guard.LogReserve {
		rec.Meta.Calls = &n
	}
	if u.Estimated && kind == guard.LogSettle {
		rec.Meta.Estimated = 1
	}
	for _, o := range out {
		u := heldBy(o)
		rec.Ledger.Reserved += u.NumInputTokens + u.NumOutputTokens
	}
	return rec
}

// costOf returns what an ask cost that has ended by an event, and whether somebody
// answered it. Without an answer it is charged as estimated, or not at all.
func costOf(data session.Data, a session.Ask) (u specialist.Usage, answered bool) {
	switch d := data.(type) {
	case *session.Proposed:
		if d.Ask == a.Index || d.SpecialistID == a.SpecialistID {
			return d.Usage, true
		}
	case *session.AskFailed:
		if d.Ask == a.Index {
			return d.Usage, false
		}
	case *session.Judged:
		if d.Ask == a.Index {
			return d.Usage, true
		}
	case *session.Probed:
		if d.Ask == a.Index && !d.Free {
			return d.Usage, d.Code == ""
		}
	case *session.Discarded:
		if d.Ask == a.Index {
			return d.Usage, false
		}
	}
	return a.Remote.Expected(), false
}
