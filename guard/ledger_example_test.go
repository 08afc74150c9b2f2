package guard_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
)

// A budget of little more than half a cent. Two proposers are asked at once; the third must wait
// until one of them has answered and turned out cheaper than it might have been.
func ExampleNewLedger() {
	config, problems := guard.Parse([]byte(`{
		"budget": {"hard_limit_usd": 0.0055},
		"cost": {"prices": {"small": {"input_per_1m": 1, "output_per_1m": 2}}}}`), false)
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	ledger, err := guard.NewLedger(guard.LedgerConfig{Now: time.Now, Budget: config.Budget, Prices: config.Cost.Table()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	ask := func(who string) (*guard.LedgerHandle, error) {
		scope := guard.LedgerScope{Tenant: "acme", Session: "s", Round: "1", Proposer: who}
		return ledger.Reserve(ctx, scope, guard.CallEstimate{Model: "small", Input: 400, MaxOutput: 1000})
	}
	anna, err := ask("anna")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer anna.Release()
	bert, err := ask("bert")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bert.Release()

	_, err = ask("carl")
	if refused, ok := errors.AsType[*guard.BudgetError](err); ok {
		fmt.Println("carl:", refused.Code, refused.Class())
	}
	if err := anna.Start(); err != nil { // then call the model
		fmt.Println(err)
		return
	}
	receipt := anna.Settle(guard.CallUsage{ID: "msg_1", Usage: specialist.Usage{
		NumInputTokens: 410, NumOutputTokens: 120, Given: specialist.InputGiven | specialist.OutputGiven}})
	fmt.Println("anna: $" + receipt.Charged.Money.String())
	if carl, err := ask("carl"); err == nil {
		fmt.Println("carl:", carl.Reserved().TokensOut, "tokens of output reserved")
	}
	// Output:
	// carl: budget_contended retry
	// anna: $0.00065
	// carl: 1000 tokens of output reserved
}
