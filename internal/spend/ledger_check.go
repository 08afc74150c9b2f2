package spend

import (
	"fmt"
	"iter"
	"math/bits"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/verdict"
)

// Is there room? refusal asks that for one scope, before anything is held, and Reserve
// asks it for each scope on the path. The order decides which limit is named: what the
// numbers can hold, the tenant's quota (ledger_quota.go), the limits of time, the share
// that the guards' own questions may have, then tokens, calls and dollars. What is
// spent, what open calls hold and what this call needs must together be at most the
// limit.
//
// What would fit if no other call were open is refused as contended: the caller may try
// again when those are settled. A limit of dollars per minute passes too; other
// refusals stay. In mode observe only the quota refuses.
//
// Check is the other side: it judges a step by what has been spent, without
// reservations, and tells of soft limits, of each once.

// refusal returns why n has no room for c, or nil. The path of n is locked.
func (n *node) refusal(c *call) *BudgetError {
	held := c.entry.amount()
	if !n.held.canTake(held) {
		return n.refuse(codeContended, UnitTokens, maxInt64, n.spent.amount().tokens, n.held.tokens, held.tokens)
	}
	if n.depth == 1 {
		if e := n.overQuota(c); e != nil {
			return e
		}
	}
	if n.caps.observe || n.caps.none && n.depth != 3 {
		return nil
	}
	if e := n.tooLate(c.at); e != nil {
		return e
	}
	if c.waived {
		return nil
	}
	if c.probe && n.depth == 2 && n.caps.share <= exact.One {
		if e := n.overShare(c, held); e != nil {
			return e
		}
	}
	return n.overCaps(c, held)
}

func (n *node) refuse(code string, unit Unit, limit, spent, reserved, estimate int64) *BudgetError {
	return &BudgetError{Code: code, Scope: n.scope, Unit: unit, Limit: limit, Spent: spent, Reserved: reserved, Estimate: estimate}
}

// canTake reports whether the sum of both fits into the numbers, so that it can
// be taken apart again.
func (a amount) canTake(b amount) bool {
	return b.tokens <= maxInt64-a.tokens && b.calls <= maxInt64-a.calls && b.usd <= maxInt64-a.usd
}

// overCaps holds c against the limits of n. What would fit if the open calls
// were not there is contended.
func (n *node) overCaps(c *call, need amount) *BudgetError {
	var contended *BudgetError
	for e := range n.passed(n.caps.amount, n.spent.amount(), need, c.free) {
		if e.Code != codeContended {
			return e
		}
		if contended == nil {
			contended = e
		}
	}
	return contended
}

// passed yields the limits that n would pass with one more call, which may be free of
// those of dollars: as contended, where it would not if the open calls were not there.
func (n *node) passed(limit, spent, need amount, free bool) iter.Seq[*BudgetError] {
	return func(yield func(*BudgetError) bool) {
		if all := spent.plus(n.held).plus(need); all.tokens <= limit.tokens && all.calls <= limit.calls && all.usd <= limit.usd {
			return
		}
		most, used, held, more := limit.list(), spent.list(), n.held.list(), need.list()
		for i, of := range limited {
			if of.unit == UnitUSD && free || exact.AddSat(exact.AddSat(used[i], held[i]), more[i]) <= most[i] {
				continue
			}
			code := of.code
			if exact.AddSat(used[i], more[i]) <= most[i] {
				code = codeContended
			}
			if !yield(n.refuse(code, of.unit, most[i], used[i], held[i], more[i])) {
				return
			}
		}
	}
}

// overShare holds a probe against the share of a session that probes may have:
// of dollars where any are spent, else of tokens.
func (n *node) overShare(c *call, need amount) *BudgetError {
	probes, all := n.probes.amount(), n.spent.amount()
	part, whole := probes.plus(need), all.plus(need)
	held, allHeld := part.plus(n.probesHeld), whole.plus(n.held)
	measure := func(a amount) int64 { return a.tokens }
	unit := UnitTokens
	if allHeld.usd > 0 {
		unit, measure = UnitUSD, func(a amount) int64 { return int64(a.usd) }
	}
	if !above(measure(held), measure(allHeld), n.caps.share) {
		return nil
	}
	code := CodeProbeShare
	if !above(measure(part), measure(whole), n.caps.share) {
		code = codeContended
	}
	limit := partOf(n.caps.share, measure(allHeld))
	return n.refuse(code, unit, limit, measure(probes), measure(n.probesHeld), measure(need))
}

// tooLate holds the moment against the limits of time of n.
func (n *node) tooLate(now int64) *BudgetError {
	for _, t := range n.times() {
		if gone := max(now-t.since, 0); gone > t.limit {
			return n.refuse(t.code, UnitMilliseconds, t.limit, gone, 0, 0)
		}
	}
	return nil
}

// A timed is a limit of time, in milliseconds, and from when on it counts.
type timed struct {
	code         string
	limit, since int64
}

// times returns the limits of time of n: its own, and that of what it is.
func (n *node) times() [2]timed {
	list := [2]timed{{CodeWall, n.caps.wall, n.opened}, {CodeWall, maxInt64, n.opened}}
	if n.depth == 2 {
		list[1] = timed{CodeNoProgress, n.caps.idle, n.progress}
	} else if s := n.session(); n.depth == 3 && !s.caps.observe {
		list[1].limit = s.caps.roundWall
	}
	return list
}

// blind returns why a call without a price is refused: a limit of dollars would
// not see it, and the table says that this must not be, or nothing else limits
// the session.
func (n *node) blind(t *PriceTable, c *call) *BudgetError {
	if t == nil || t.OnUnknownModel == "" || t.OnUnknownModel == unknownSkip {
		return nil
	}
	var dollars *node
	only := true
	for _, p := range n.path[:n.depth] {
		k := &p.caps
		if k.usd != maxInt64 && !k.observe {
			dollars = p
		}
		if min(k.tokens, k.calls, k.wall, k.roundWall, k.idle) != maxInt64 || k.bounded {
			only = false
		}
	}
	if dollars == nil || !only && t.OnUnknownModel != unknownAbort {
		return nil
	}
	return dollars.refuse(codeUnpriced, UnitUSD, int64(dollars.caps.usd), int64(dollars.spent.Money), int64(dollars.held.usd), 0)
}

// Check judges what has been spent in s and the scopes around it, for the step
// that is about to be taken there: a limit that was passed aborts, or warns in
// mode observe; the first time a soft limit was passed is a warning. Reservations
// play no part. A scope that is not open is judged by those around it.
func (l *Ledger) Check(s Scope) verdict.Verdict {
	n := l.nearest(s)
	if n == nil {
		return verdict.Verdict{}
	}
	now := l.config.Now().UnixMilli()
	n.path[0].mu.Lock()
	n.path[0].sweep(now)
	n.lockBelow()
	var reasons []verdict.Reason
	for _, p := range n.path[:n.depth] {
		reasons = p.judge(reasons, now)
	}
	due := n.collect()
	n.unlock()
	return verdict.Of(append(reasons, l.announce(due)...))
}

// judge appends what is wrong with what n has spent.
func (n *node) judge(reasons []verdict.Reason, now int64) []verdict.Reason {
	add := func(e *BudgetError) {
		r := e.Reason()
		if n.caps.observe {
			r.Class = verdict.Warn
		}
		reasons = append(reasons, r)
	}
	most, spent := n.caps.list(), n.spent.amount().list()
	for i, of := range limited {
		if spent[i] > most[i] {
			add(n.refuse(of.code, of.unit, most[i], spent[i], 0, 0))
		}
	}
	if e := n.tooLate(now); e != nil {
		add(e)
	}
	return reasons
}

// Deadline returns the moment after which a limit of time refuses calls in s. ok
// is false if there is no such limit.
func (l *Ledger) Deadline(s Scope) (at time.Time, ok bool) {
	n := l.nearest(s)
	if n == nil {
		return at, false
	}
	first := int64(maxInt64)
	n.lock()
	defer n.unlock()
	for _, p := range n.path[:n.depth] {
		first = min(first, p.deadline())
	}
	if first == maxInt64 {
		return at, false
	}
	return moment(first), true
}

func (n *node) deadline() int64 {
	if n.caps.observe {
		return maxInt64
	}
	times := n.times()
	return min(exact.AddSat(times[0].since, times[0].limit), exact.AddSat(times[1].since, times[1].limit))
}

// passed is a soft limit that was passed.
type passed struct {
	scope  Scope
	reason verdict.Reason
}

// collect returns the soft limits of n and around it that were passed and that
// nobody has been told of. The path is locked.
func (n *node) collect() (due []passed) {
	for _, p := range n.path[:n.depth] {
		if p.soft.due {
			p.soft.due = false
			due = append(due, passed{p.scope, p.softReason()})
		}
	}
	return due
}

func (n *node) softReason() verdict.Reason {
	r := verdict.Reason{Code: CodeSoft, Guard: "budget", Class: verdict.Warn}
	if spent := n.spent.amount(); spent.tokens > n.caps.softTokens {
		r.Limit, r.Seen = fmt.Sprint(n.caps.softTokens), fmt.Sprint(spent.tokens)
		r.Message = fmt.Sprintf("%s tokens were used in %s, more than the soft limit of %s", r.Seen, n.scope, r.Limit)
	} else {
		r.Limit, r.Seen = n.caps.softUSD.String(), spent.usd.String()
		r.Message = fmt.Sprintf("$%s was spent in %s, more than the soft limit of $%s", r.Seen, n.scope, r.Limit)
	}
	return r
}

// announce returns the reasons, and tells OnSoft of each.
func (l *Ledger) announce(due []passed) (reasons []verdict.Reason) {
	for _, p := range due {
		reasons = append(reasons, p.reason)
		if l.config.OnSoft != nil && !l.told(p) {
			reasons = append(reasons, verdict.Reason{Code: "internal_error", Guard: "budget", Class: verdict.Escalate, Message: "the program could not be told of a soft limit"})
		}
	}
	return reasons
}

// told calls OnSoft; a panic counts as an error.
func (l *Ledger) told(p passed) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return l.config.OnSoft(p.scope, p.reason) == nil
}

// partOf returns the given share of n, cut to a whole number.
func partOf(share exact.Billionths, n int64) int64 {
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(share))
	q, _ := bits.Div64(hi, lo, uint64(exact.One))
	return int64(q)
}
