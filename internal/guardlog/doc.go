// Package guardlog writes and reads the event logs of guards: one JSON object a line for
// what was spent, every step that was judged, and how.
//
// [Log] tells a session of the store in this form. The other types read it: [Analysis] sums
// a log up, [Replay] and [Shadow] judge its steps again by other guards, [GatesAgain] does
// so for all sessions of a machine, and [BudgetRun] charges its calls to another budget.
// None of them asks anybody or writes anywhere; a value is for one goroutine.
package guardlog
