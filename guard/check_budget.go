package guard

import "github.com/dialai/dialai/verdict"

// What a budget says of a whole task, whose open calls the caller knows: the
// engine keeps them with the session, so that no crash and no second process can
// spend what they hold. A [Ledger] is for programs that do not have that.

// budget judges what the task has spent and how long it has taken. Limits of
// money and tokens are those of the spend book: what nobody executed counts too.
func (k *checking) budget() {
	b := k.c.Budget
	if b == nil {
		return
	}
	spent := k.s.Spent
	k.reasons = append(k.reasons, b.Judge(spent, k.step.At, k.step.Began, k.step.Moved)...)
	if !k.s.warned && b.overSoft(spent) {
		message := "more was spent than the soft limit"
		k.report(verdict.Reason{Code: codeBudgetSoft, Guard: "budget", Class: verdict.Warn, Message: message})
		k.notices = append(k.notices, "Budget: "+message+"; come to an end.")
	}
}
