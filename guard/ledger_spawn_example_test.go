package guard_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/guard"
)

// An agent that may start others, which may start others: the quota of the tenant
// says how many one may have at a time and how deep that goes. A scope is opened
// before an agent is started and closed when it has ended.
func ExampleNewLedger_open() {
	quota := guard.Quota{MaxSessions: new(int64(10)), MaxFanOut: new(int64(2)), MaxDepth: new(int64(1))}
	ledger, err := guard.NewLedger(guard.LedgerConfig{Now: time.Now, Quota: func(string) *guard.Quota { return &quota }})
	if err != nil {
		fmt.Println(err)
		return
	}
	spawn := func(name, parent string) {
		err := ledger.Open(guard.LedgerScope{Tenant: "acme", Session: name}, guard.LedgerOpening{Parent: parent})
		if refused, ok := errors.AsType[*guard.BudgetError](err); ok {
			fmt.Printf("%s: %s, at most %d %s\n", name, refused.Code, refused.Limit, refused.Unit)
		} else {
			fmt.Printf("%s: %v\n", name, err)
		}
	}
	spawn("lead", "")
	spawn("search", "lead")
	spawn("write", "lead")
	spawn("test", "lead")
	spawn("fetch", "search")
	if err := ledger.Close(guard.LedgerScope{Tenant: "acme", Session: "write"}); err != nil {
		fmt.Println(err)
	}
	spawn("test", "lead")
	// Output:
	// lead: <nil>
	// search: <nil>
	// write: <nil>
	// test: quota_exceeded, at most 2 children
	// fetch: quota_exceeded, at most 1 levels
	// test: <nil>
}
