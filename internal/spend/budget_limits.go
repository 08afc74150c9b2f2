package spend

import (
	"fmt"
	"iter"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// A budget asked without a ledger, by whoever keeps records of open calls: the engine,
// whose session's log says what was spent and what open asks hold. Admit asks before a
// call whether spent + held + needed stays within each hard limit; AdmitProbe adds the
// share that the guards' own questions may have; Judge says afterwards, of a step,
// which limits were passed; TooLate and Over say so of a session as it stands.
//
// The rules are those of the ledger (ledger_check.go): what would fit without the open
// calls is contended, what would not is refused for good, and in mode observe nothing
// is refused. hard is the one list of hard limits, so no question here can forget one.

// Admit reports whether one more call fits: what was spent, what open calls
// hold, and what this one is expected to cost. Nil means yes; b may be nil. In
// mode observe everything is admitted.
func (b *Budget) Admit(spent, held, need Book) *BudgetError {
	if b == nil || b.Mode == ModeObserve {
		return nil
	}
	var contended *BudgetError
	most, gone, open, more := b.hard().list(), spent.amount().list(), held.amount().list(), need.amount().list()
	for i, of := range limited {
		if more[i] == 0 || exact.AddSat(exact.AddSat(gone[i], open[i]), more[i]) <= most[i] {
			continue
		}
		e := &BudgetError{Code: of.code, Unit: of.unit, Limit: most[i], Spent: gone[i], Reserved: open[i], Estimate: more[i]}
		switch {
		case exact.AddSat(e.Spent, e.Estimate) > e.Limit:
			return e
		case contended == nil:
			e.Code = codeContended
			contended = e
		}
	}
	return contended
}

// AdmitProbe is Admit for a question of the guards' own, which also has to fit
// into the share of all spending that those may have: of dollars where any are
// spent, else of tokens. probes is what such questions have cost so far.
func (b *Budget) AdmitProbe(spent, probes, held, need Book) *BudgetError {
	if b == nil || b.Mode == ModeObserve {
		return nil
	}
	if e := b.Admit(spent, held, need); e != nil || b.ProbeShareMax == nil {
		return e
	}
	unit, of := UnitTokens, tokensOf
	part, whole := probes.Plus(need), spent.Plus(held).Plus(need)
	if whole.Money > 0 {
		unit, of = UnitUSD, func(k Book) int64 { return int64(k.Money) }
	}
	if !above(of(part), of(whole), *b.ProbeShareMax) {
		return nil
	}
	return &BudgetError{Code: CodeProbeShare, Unit: unit, Limit: partOf(*b.ProbeShareMax, of(whole)), Spent: of(probes), Estimate: of(need)}
}

// Over returns the first hard limit that more was spent than, nil if there is
// none. b may be nil; in mode observe no limit counts.
func (b *Budget) Over(spent Book) *BudgetError {
	if b == nil || b.Mode == ModeObserve {
		return nil
	}
	for e := range b.passed(spent) {
		return e
	}
	return nil
}

// passed yields the hard limits that more was spent than.
func (b *Budget) passed(spent Book) iter.Seq[*BudgetError] {
	return func(yield func(*BudgetError) bool) {
		most, gone := b.hard().list(), spent.amount().list()
		for i, of := range limited {
			if gone[i] > most[i] && !yield(&BudgetError{Code: of.code, Unit: of.unit, Limit: most[i], Spent: gone[i]}) {
				return
			}
		}
	}
}

// TooLate returns the first limit of time that has passed, nil if there is none:
// at is now, began when the task did, and moved when it last did; 0 is not known. b
// may be nil; in mode observe no limit counts.
func (b *Budget) TooLate(at, began, moved specialist.Time) *BudgetError {
	if b == nil || b.Mode == ModeObserve {
		return nil
	}
	for e := range b.late(at, began, moved) {
		return e
	}
	return nil
}

// late yields the limits of time that have passed.
func (b *Budget) late(at, began, moved specialist.Time) iter.Seq[*BudgetError] {
	return func(yield func(*BudgetError) bool) {
		for _, t := range [...]struct {
			code  string
			limit *int64
			since specialist.Time
		}{{CodeWall, b.WallMsec, began}, {CodeWall, b.RoundWallMsec, moved}, {CodeNoProgress, b.NoProgressMsec, moved}} {
			passed := int64(at - t.since)
			if t.limit != nil && t.since != 0 && passed > *t.limit && !yield(&BudgetError{Code: t.code, Unit: UnitMilliseconds, Limit: *t.limit, Spent: passed}) {
				return
			}
		}
	}
}

// CapsDollars reports whether b has a hard limit of dollars that counts; b may be
// nil.
func (b *Budget) CapsDollars() bool { return b != nil && b.HardUSD != nil && b.Mode != ModeObserve }

// CapsMore reports whether b has a hard limit that counts beside that of dollars; b
// may be nil.
func (b *Budget) CapsMore() bool {
	return b != nil && b.Mode != ModeObserve &&
		(b.HardTokens != nil || b.HardCalls != nil || b.WallMsec != nil || b.RoundWallMsec != nil || b.NoProgressMsec != nil)
}

// hard returns the hard limits of what is spent, the largest number for none.
func (b *Budget) hard() amount {
	return amount{limitOf(b.HardTokens), limitOf(b.HardCalls), limitOf(b.HardUSD)}
}

func tokensOf(k Book) int64 { return exact.AddSat(k.TokensIn, k.TokensOut) }

// OverSoft reports whether a soft limit has been crossed.
func (b *Budget) OverSoft(spent Book) bool {
	return b.SoftTokens != nil && tokensOf(spent) > *b.SoftTokens || b.SoftUSD != nil && spent.Money > *b.SoftUSD
}

// Judge returns a reason for every hard limit that more was spent than, and for every
// limit of time that has passed: an abort, in mode observe a warning. The times are
// those of [Budget.TooLate].
func (b *Budget) Judge(spent Book, at, began, moved specialist.Time) (reasons []verdict.Reason) {
	for e := range b.passed(spent) {
		reasons = append(reasons, b.over(e))
	}
	for e := range b.late(at, began, moved) {
		reasons = append(reasons, b.over(e))
	}
	return reasons
}

func (b *Budget) over(e *BudgetError) verdict.Reason {
	r := verdict.Reason{Code: e.Code, Guard: "budget", Class: verdict.Abort, Limit: e.number(e.Limit), Seen: e.number(e.Spent)}
	if r.Message = fmt.Sprintf("the task has spent %s %s, more than the budget of %s", e.text(e.Spent), e.Unit, e.text(e.Limit)); e.Unit == UnitMilliseconds {
		r.Message = fmt.Sprintf("%d ms have passed, more than the limit of %d", e.Spent, e.Limit)
	}
	if b.Mode == ModeObserve {
		r.Class = verdict.Warn
	}
	return r
}
