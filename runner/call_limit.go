package runner

import (
	"context"

	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// How many calls an ask may make: one, and repairs of what a model has answered badly. The
// first calls are admitted by budget and quotas (budget.go, tickets.go); what is left of the
// limits then is set aside for repairs, before anybody is asked, so that those who are asked at
// the same time cannot break a limit together. The room travels to whoever asks in the context
// of the call, as a deadline does.

// A hold is what one ask holds of the budget and the quotas.
type hold struct {
	member  *planning.Member
	need    need
	spare   session.Spare
	limited bool // how many calls are made is limited, also of those that cost nothing
	full    bool // there is no room for more
}

// callLimit returns how many calls the ask may make.
func (h *hold) callLimit() specialist.CallLimit {
	r := specialist.CallLimit{Billed: 1 + h.spare.Billed}
	if h.limited {
		r.Calls = 1 + h.spare.Calls
	}
	return r
}

// A repairBudget is what is left of the limits beside the first calls of those who are asked.
type repairBudget struct {
	*engine
	budget      *spend.Budget
	spent, held spend.Book
	again       map[string]spend.Book // by who is to be asked again and was not looked at yet: what that holds
	waiting     []*planning.Member    // who is neither asked nor refused: they may be asked when others are settled
	last        string                // who does not wait: what others hold is for its ask as good as spent
}

// reserved returns what is held, with what will be held or charged of those who are
// asked again, whatever becomes of them.
func (a *repairBudget) reserved() spend.Book {
	sum := a.held
	for _, b := range a.again {
		sum = sum.Plus(b)
	}
	return sum
}

// setAside gives those who are to be asked room for repairs, as long as there is
// any: everybody's first before anybody's second. Where the number of calls is
// limited, calls that a provider refuses need room too, which comes last. So what is
// asked at once, repairs and all, never breaks a limit that no part of it breaks
// alone; and nobody is refused for what will hardly ever be needed.
func (a *repairBudget) setAside(ctx context.Context, admitted []*planning.Member) {
	var holds []*hold
	for _, m := range admitted {
		if h := a.holds[m.SpecialistID]; h != nil && h.need.repairs+h.need.retries > 0 {
			h.limited = a.budget != nil && a.budget.HardCalls != nil
			holds = append(holds, h)
		}
	}
	for turn := int64(0); a.turn(holds, turn, func(h *hold) int64 { return h.need.repairs }, func(h *hold) bool { return a.repair(ctx, h) }); turn++ {
	}
	for _, h := range holds {
		h.full = !h.limited
	}
	for turn := int64(0); a.turn(holds, turn, func(h *hold) int64 { return h.need.retries }, a.retry); turn++ {
	}
}

// turn gives each hold one more, unless it has enough or there was no room for it
// before. It reports whether any got one.
func (*repairBudget) turn(holds []*hold, turn int64, enough func(*hold) int64, give func(*hold) bool) (given bool) {
	for _, h := range holds {
		if h.full || turn >= enough(h) {
			continue
		}
		if h.full = !give(h); !h.full {
			given = true
		}
	}
	return given
}

// repair sets one more call aside that may be charged, and reports whether there is
// room for it.
func (a *repairBudget) repair(ctx context.Context, h *hold) bool {
	more := h.need.repair
	if a.budget.Admit(a.spent, a.held, more) != nil || !a.takeMore(ctx, h.member.SpecialistID, more) {
		return false
	}
	a.held = a.held.Plus(more)
	h.spare.Add(more, 1)
	return true
}

// retry sets one more call aside that costs nothing.
func (a *repairBudget) retry(h *hold) bool {
	more := spend.Book{Calls: 1}
	if a.budget.Admit(a.spent, a.held, more) != nil {
		return false
	}
	a.held = a.held.Plus(more)
	h.spare.Add(more, 0)
	return true
}
