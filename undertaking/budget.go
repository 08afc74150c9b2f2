package undertaking

import (
	"context"
	"fmt"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/session"
)

// Money and tokens of all agent sessions are one budget, that of the machine. It is looked at
// before each turn, and while one runs.

// capUSD returns the budget's limit in dollars, and whether there is one.
func capUSD(s *session.Session) (exact.Money, bool) {
	if c := s.Program.Guards(s.State); c != nil && c.Budget != nil && c.Budget.HardUSD != nil {
		return *c.Budget.HardUSD, true
	}
	return 0, false
}

func capTokens(s *session.Session) (int64, bool) {
	if c := s.Program.Guards(s.State); c != nil && c.Budget != nil && c.Budget.HardTokens != nil {
		return *c.Budget.HardTokens, true
	}
	return 0, false
}

// spent returns what the undertaking has cost: what the session's log has, what it does not
// have yet, and what the open process of a worker has not been charged.
func (l *Loop) spent() Cost {
	book := l.s.Spent()
	sum := Cost{book.Money, book.TokensIn, book.TokensOut}.plus(l.state.unpaid())
	for _, v := range l.live {
		sum = sum.plus(v.cost.minus(v.charged))
	}
	return sum
}

// budgetNote begins the note of an undertaking that was stopped for its budget.
const budgetNote = "budget: "

// Exceeded returns the limit that an undertaking was stopped for, because a turn more might not
// fit into it or one was over it, as resume raises it; "" if it was stopped for something else, or
// is not.
func Exceeded(s *session.Session) string {
	reason := s.Outcome().Reason
	if s.Status != session.Stopped {
		return ""
	}
	if over := s.Program.Guards(s.State).LimitsOf(s.Outcome().Code); len(over) > 0 {
		return over[0].Limit
	}
	switch {
	case !strings.HasPrefix(reason, budgetNote):
		return ""
	case strings.HasSuffix(reason, "tokens are spent"):
		return "budget.hard_limit_tokens"
	}
	return "budget.hard_limit_usd"
}

// overBudget stops the undertaking if a turn more might cost more than is left, and reports
// whether it did.
func (l *Loop) overBudget(ctx context.Context) (bool, error) {
	spent, next := l.spent(), or(l.state.Dearest, l.set.FirstTurn)
	limit, limited := capUSD(l.s)
	if limited && spent.USD+next > limit {
		return l.stop(ctx, fmt.Sprintf(budgetNote+"$%s of $%s is spent, and the next turn may cost $%s", spent.USD, limit, next))
	}
	if tokens, limited := capTokens(l.s); limited && spent.In+spent.Out >= tokens {
		return l.stop(ctx, fmt.Sprintf(budgetNote+"%d of %d tokens are spent", spent.In+spent.Out, tokens))
	}
	if limited && 5*spent.USD >= 4*limit && !l.told["budget"] {
		l.told["budget"] = true
		l.tell(who{orchestrator, l.state.Bound}, "$%s of $%s is spent", spent.USD, limit)
		for of := range l.live {
			l.note(of, kindNotice, notices{fmt.Sprintf("$%s of the budget of $%s is spent: bring the work to an end.", spent.USD, limit)})
		}
	}
	return false, nil
}

// overCap reports whether a running turn has brought the undertaking over its budget.
func (l *Loop) overCap() bool {
	spent := l.spent()
	usd, inUSD := capUSD(l.s)
	tokens, inTokens := capTokens(l.s)
	return inUSD && spent.USD > usd || inTokens && spent.In+spent.Out > tokens
}
