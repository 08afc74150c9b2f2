package sim_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// An invariant is what holds after every step of every run, whatever fails.
type invariant struct {
	name  string
	says  string
	check func(c *check) error
}

// The names of those invariants that are checked elsewhere than on a record.
const (
	logEqualsFold = "log equals fold"
	refusalsOnly  = "errors are refusals or faults"
	endsAll       = "everything ends"
	rulingKept    = "a ruling that was executed is in the log"
	asksSettled   = "open asks have a living owner"
	askedFirst    = "an ask is in the log before it is sent"
	limitHolds    = "hard limit"
	quotaHolds    = "quota"
	storeVerifies = "the store verifies"
	ledgerKept    = "a ledger that is read goes on as it was written"
	talliesKept   = "decisions are counted once"
)

// each are the invariants of a record, checked as soon as it is durable.
var each = []invariant{
	{logEqualsFold, "what a process holds after a commit is what the log, read again, folds to", (*check).logEqualsFold},
	{snapshotsHold, "a snapshot that is made where a round begins is what the log comes to, and with the records behind it what the whole log comes to", (*check).snapshotsHold},
	{"hash chain", "each record has the hash of the one before and its own", (*check).hashChain},
	{"each transition once", "a round executes one transition at most, from the state it is about", (*check).transitionOnce},
	{"each answer once", "an ask has one answer at most, and is not asked again once it has one", (*check).answerOnce},
	{"living owners are left alone", "an ask is taken over only from a process that is lost or overdue", (*check).takeOver},
	{"never negative", "nothing that was spent is below zero", (*check).neverNegative},
	{"charges per ask", "what a session has spent is, ask for ask, what the service counted; what nobody told is the estimate", (*check).charges},
	{"admitted within the limit", "who is asked fits into the budget together with everything that is out", (*check).admitted},
	{"human acts", "what a human executes, rules or raises is what that human wanted, on the round that the human saw", (*check).humanActs},
	{whoActed, "each act is in the log with the person or program that has done it, and one person never counts as two humans", (*check).whoActed},
	{takenBack, "an author takes back the own ruling only, before another human has reviewed it, and all that it has taught leaves tallies and examples", (*check).takenBack},
	{movedOnly, "a move changes by which definition a session runs, and begins its round anew; nothing else", (*check).movedOnly},
	{handedOver, "a session that another driver is to carry on stands where it stood, and waits for the same", (*check).handedOver},
	{forkedRight, "a fork is what the other session was after that commit, with nothing that is withheld, waits or was learned there, and its answers teach nothing twice", (*check).forkedRight},
	{"questions as seen", "a ruling that pins a question is recorded only while that is the question", (*check).asSeen},
	{"two humans agree", "where others have to rule too, what two have chosen is executed, and nothing else", (*check).together},
	{approvalsGiven, "nothing is executed without its approvals: as many humans have chosen it with the same payload, one of the group among them, who may and are not excluded, and all of them are its authors; and what has them is executed", (*check).approvalsGiven},
	{deciderRules, "who may not decide in a state, or is switched off, closes no round there, neither by ruling nor by proposing", (*check).deciderRules},
	{pendingHolds, "while a ruling is pending, no consensus executes anything, and the session waits", (*check).pendingHolds},
	{conditionsHold, "nothing is proposed, ruled or executed whose condition did not hold when the round opened, and just that is closed", (*check).conditionsHold},
	{dataWritten, "the data are what the executed transitions have set, all values of one worked out from the data before it", (*check).dataWritten},
	{timersCome, "a state is due when it says, a timer executes its transition then or later, once, and a reminder comes once, whatever the clocks do", (*check).timersCome},
	{waitsWait, "where nobody is asked nobody is, and nothing but the timer executes anything", (*check).waitsWait},
	{"quorum", "no transition is executed without a human unless as many of the panel have answered as must, and all who are required", (*check).panels},
	{"gates are heard", "no transition that the truth gate wants is executed without a human unless the log has the answers to its questions, and they pass", (*check).gates},
	{"irreversible needs a human", "no transition that cannot be undone is executed unless a human chose it", (*check).irreversible},
	{"audited rounds wait", "a round that is drawn for an audit before is closed by a human", (*check).auditedWaits},
	{"ended stays ended", "a session that has completed does not go on; one that was stopped goes on only by a resume", (*check).endedStays},
}

func (c *check) run(list []invariant) {
	for _, v := range list {
		if (v.name == logEqualsFold || v.name == snapshotsHold) && c.w.mutation != nil && c.w.mutation.alone {
			if c.fold != nil {
				return // nothing to look at
			}
			continue
		}
		if err := v.check(c); err != nil {
			c.w.fail(v.name, "%s, record at %d: %w\n\t%s", c.s, c.stored.First, err, c.stored.Events)
			return
		}
	}
}

func (c *check) logEqualsFold() error {
	if c.fold != nil {
		return c.fold
	}
	live, folded := c.live.View(), c.after.View()
	live.Machine, folded.Machine = nil, nil
	if !reflect.DeepEqual(live, folded) {
		return fmt.Errorf("the session was\n%+v\nfolded it is\n%+v", live, folded)
	}
	if l, f := c.live.Options(), c.after.Options(); !reflect.DeepEqual(l, f) {
		return fmt.Errorf("the options were\n%+v\nfolded they are\n%+v", l, f)
	}
	if l, f := c.live.GuardState(), c.after.GuardState(); !reflect.DeepEqual(l, f) {
		return fmt.Errorf("the guards remembered\n%+v\nfolded it is\n%+v", l, f)
	}
	if l, f := c.live.OpenAsks(), c.after.OpenAsks(); !reflect.DeepEqual(l, f) {
		return fmt.Errorf("open asks were\n%+v\nfolded they are\n%+v", l, f)
	}
	return nil
}

func (c *check) hashChain() error {
	defer func() { c.s.prev = c.stored.Hash }()
	if c.stored.Prev != c.s.prev {
		return fmt.Errorf("the record follows %s, the last one was %s", c.stored.Prev, c.s.prev)
	}
	if want := session.Chain(c.stored.Prev, c.s.id.String(), c.stored.Events); want != c.stored.Hash {
		return fmt.Errorf("the record has the hash %s, its events have %s", c.stored.Hash, want)
	}
	return nil
}

func (c *check) transitionOnce() error {
	seen := map[specialist.RoundKey]bool{}
	for i, e := range c.events {
		d, ok := e.Data.(*session.Executed)
		if !ok {
			continue
		}
		c.w.count("transitions")
		key := c.keys[i]
		if seen[key] || c.before == nil || key != c.before.Key() && key.Attempt == c.before.Attempt {
			return fmt.Errorf("round %d.%d executes %s, and is not the open one", key.Round, key.Attempt, d.Transition.Name)
		}
		seen[key] = true
		if d.Transition.From.Name != c.before.State.Name {
			return fmt.Errorf("%s leads out of %q, the session stands in %q", d.Transition.Name, d.Transition.From.Name, c.before.State.Name)
		}
	}
	if n := int(c.after.Executed); n != len(c.s.executed) {
		return fmt.Errorf("%d transitions are counted, %d rounds have executed one", n, len(c.s.executed))
	}
	return nil
}

func (c *check) answerOnce() error {
	answered := map[string]bool{}
	for id, a := range c.s.asks {
		answered[id] = a.answered
	}
	if c.s.twice != nil {
		return c.s.twice
	}
	again := map[string]int{}
	for i, e := range c.events {
		switch d := e.Data.(type) {
		case *session.Proposed:
			if d.Ask != 0 {
				again[c.keys[i].AskID(d.Ask)]++
			}
		case *session.Judged:
			if d.Ask != 0 {
				again[c.keys[i].AskID(d.Ask)]++
			}
		}
	}
	for id, n := range again {
		if n > 1 || c.s.recorded(id, c.before) {
			return fmt.Errorf("the answer to %s is recorded twice", id)
		}
	}
	return nil
}

// recorded reports whether the log held an answer to an ask before this record.
func (s *observed) recorded(id string, before *session.Session) bool {
	if before == nil {
		return false
	}
	for _, p := range before.Proposals() {
		if p.Detail != nil && p.Detail.AskID == id {
			return true
		}
	}
	return false
}

func (c *check) neverNegative() error {
	b := c.after.Spent()
	if b.Money < 0 || b.Calls < 0 || b.TokensIn < 0 || b.TokensOut < 0 || b.Estimated < 0 || b.Unpriced < 0 {
		return fmt.Errorf("spent is %+v", b)
	}
	return nil
}

// charges compares what was spent with the obvious model, ask for ask. A model that
// was asked again is paid for each request, and the log does not say which answered:
// there it is held to a range.
func (c *check) charges() error {
	low, high := c.s.base, c.s.base
	for id, a := range c.s.asks {
		least, most := a.charge()
		low, high = low+least, high+most
		if a.by.model && a.requests > 1 {
			high += max(a.estimate, a.by.price) * exact.Money(a.requests)
			continue
		}
		if acc := a.by.accounts[id]; a.told != nil && (acc == nil || acc.charged != *a.told) {
			return fmt.Errorf("the answer to %s says that it cost %s, the service counts %+v", c.w.short(a.round, id), *a.told, acc)
		}
	}
	if spent := c.after.Spent().Money; spent < low || spent > high {
		return fmt.Errorf("spent is %s, the asks cost %s (at most %s):%s", spent, low, high, c.s.accounts())
	}
	return c.probes()
}

// accounts lists what is known of each ask.
func (s *observed) accounts() (text string) {
	for _, id := range sorted(s.asks) {
		a := s.asks[id]
		said := "nothing said"
		if a.told != nil {
			said = "said " + a.told.String()
		}
		counted := exact.Money(0)
		if acc := a.by.accounts[id]; acc != nil {
			counted = acc.charged
		}
		text += fmt.Sprintf("\n\t%s %s: %d requests, open %t, %s, estimate %s, the service counts %s", a.by.id, s.w.short(a.round, id), a.requests, a.open, said, a.estimate, counted)
	}
	return text
}

// admitted looks at each ask as it is recorded.
func (c *check) admitted() error { return c.crowded }

// admit compares those who are asked with what is spent and held at that moment.
func (c *check) admit(spent exact.Money, d *session.Asked, key specialist.RoundKey) {
	held, added := exact.Money(0), exact.Money(0)
	again := map[string]bool{}
	for _, a := range d.Asks {
		again[key.AskID(a.Index)] = true
		if a.Remote != nil && !a.Remote.Accepted && a.Remote.Repeat == 0 {
			added += a.Remote.Estimate
		}
	}
	for id, a := range c.s.asks {
		if a.open && !again[id] && (a.told == nil || a.by.model) { // what is paid under its key costs no more
			held += a.estimate
		}
	}
	if limit := c.s.limit; added > 0 && limit > 0 && spent+held+added > limit {
		c.crowded = fmt.Errorf("%s are asked for %s, where %s of %s are spent and %s held:%s", who(d), added, spent, limit, held, c.s.accounts())
	}
}

func who(d *session.Asked) (ids []string) {
	for _, a := range d.Asks {
		ids = append(ids, a.SpecialistID)
	}
	return ids
}

func (c *check) irreversible() error {
	for _, e := range c.events {
		d, ok := e.Data.(*session.Executed)
		if !ok || !d.Transition.Irreversible || d.How != session.ByConsensus {
			continue
		}
		for _, p := range c.before.Proposals() {
			if p.Arrival == d.Arrival && p.IsHuman {
				return nil
			}
		}
		return fmt.Errorf("%s is executed because %s proposed it", d.Transition.Name, d.SpecialistID)
	}
	return nil
}

func (c *check) auditedWaits() error {
	for i, e := range c.events {
		if d, ok := e.Data.(*session.Executed); ok && d.How == session.ByConsensus && c.s.audited[c.keys[i]] {
			return fmt.Errorf("round %d.%d waits for an audit, and %s is executed without a human", d.Round, d.Attempt, d.Transition.Name)
		}
	}
	return nil
}

func (c *check) endedStays() error {
	if c.before == nil || c.before.Status.Live() {
		return nil
	}
	for i, e := range c.events {
		switch d := e.Data.(type) {
		case *session.Moved:
			continue
		case *session.RoundOpened: // anew, under another definition
			if _, moved := c.events[max(i-1, 0)].Data.(*session.Moved); moved {
				continue
			}
		case *session.DriverChanged, *session.Discarded, *session.Reviewed, *session.Retracted, *session.Learned, *session.Adopted:
			continue
		case *session.Resumed:
			if i == 0 && c.before.Status != session.Completed {
				return nil
			}
		case *session.Ended: // a human gives up what has failed
			if c.before.Status == session.Failed && d.Code == session.CodeCancelled {
				continue
			}
		}
		return fmt.Errorf("the session was %s, and then there is %s", c.before.Status, e.Data.Kind())
	}
	return nil
}

// checkNow is about what services count, which no record says.
func (w *world) checkNow() {
	for _, s := range w.sessions {
		if s.limit == 0 {
			continue
		}
		sum := s.counted()
		limit := max(s.limit, s.grace)
		if sum > limit && s.over == nil {
			s.over = map[string]bool{}
			for id, a := range s.asks {
				if a.open || a.told == nil {
					s.over[id] = true
				}
				if acc := a.by.accounts[id]; acc != nil && acc.requests > 0 {
					s.over[id] = s.over[id] || a.open
				}
			}
		}
		if s.over == nil {
			continue
		}
		var out exact.Money
		for id := range s.over {
			out += s.asks[id].counted()
		}
		if sum-limit > out {
			w.fail(limitHolds, "%s: services charged %s where the limit is %s and %s were in flight:%s", s, sum, limit, out, s.accounts())
		}
	}
	for _, p := range w.procs {
		if n, limit := w.counts["sent by "+p.incarnation()], w.quotaCalls(); w.quota("") != nil && n > limit {
			w.fail(quotaHolds, "%s has sent %d requests where its quota is %d", p.name, n, limit)
		}
	}
}

// allowed are the errors that a call may return.
var allowed = []error{
	errDisk, errDead, runner.ErrNotRunning, runner.ErrIllegal, runner.ErrForbidden, runner.ErrStaleRound, session.ErrStale, session.ErrNotFound,
	runner.ErrQuota, runner.ErrReviewed, session.ErrExists, specialist.ErrAccepted, context.Canceled,
}

// checkError looks at what a call returned.
func (w *world) checkError(a *activity) {
	w.count("calls")
	if a.err == nil {
		return
	}
	for _, e := range allowed {
		if errors.Is(a.err, e) {
			return
		}
	}
	if e, ok := errors.AsType[*runner.Error](a.err); ok && e.Code == session.BadRaise {
		return // somebody else has raised it so far meanwhile
	}
	if e, ok := errors.AsType[*runner.PanicError](a.err); ok {
		w.fail(refusalsOnly, "%s\n%s", e, e.Stack)
	}
	w.fail(refusalsOnly, "%s returned %v", a.name, a.err)
}

// checkEnd looks at the world once everything has come to rest.
func (w *world) checkEnd() {
	w.whoManaged()
	w.whatIsLeft()
	for _, h := range w.humans {
		for _, a := range h.acts {
			if a.landed && a.err == nil && (a.result.Executed && a.s.executed[a.round] == nil || a.result.Recorded && !a.s.said[a.round][a.human]) {
				w.fail(rulingKept, "%s was told that %s %s was recorded in round %d.%d of %s, and the log does not have it", a.human, a.deed, a.transition, a.round.Round, a.round.Attempt, a.s)
			}
		}
	}
	for _, s := range w.sessions {
		if s.now.Status != session.Running {
			continue
		}
		for _, a := range s.now.OpenAsks() {
			if a.Remote != nil && !a.Remote.Accepted && !w.alive(a.Remote.Owner) {
				w.fail(asksSettled, "%s: ask %d of %s belongs to %s, which is lost, and nobody asks again", s, a.Index, a.SpecialistID, a.Remote.Owner)
			}
		}
	}
}
