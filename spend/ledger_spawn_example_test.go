package spend_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/spend"
)

// An agent that may start others, which may start others: the quota of the tenant
// says how many one may have at a time and how deep that goes. A scope is opened
// before an agent is started and closed when it has ended.
func ExampleLedger_Open() {
	quota := spend.Quota{MaxSessions: new(int64(10)), MaxFanOut: new(int64(2)), MaxDepth: new(int64(1))}
	ledger, err := spend.NewLedger(spend.LedgerConfig{Now: time.Now, Quota: func(string) *spend.Quota { return &quota }})
	if err != nil {
		fmt.Println(err)
		return
	}
	spawn := func(name, parent string) {
		err := ledger.Open(spend.Scope{Tenant: "acme", Session: name}, spend.Opening{Parent: parent})
		if refused, ok := errors.AsType[*spend.BudgetError](err); ok {
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
	if err := ledger.Close(spend.Scope{Tenant: "acme", Session: "write"}); err != nil {
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
