// Package spend keeps what is spent below its limits, before it is spent.
//
// A [Price] says what a call costs, a [Budget] what may be spent, and a [Book] sums what
// was. Whoever keeps open calls with its own records, as the engine does in a session's
// log, asks the Budget before each call ([Budget.Admit]) and judges by it afterwards
// ([Budget.Judge]): then no crash and no second process can spend what open calls hold. A
// [Ledger] is for programs without such records: it holds reservations in memory, and
// charges what was used when the call has been made.
package spend
