package driver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// A program starts sessions, and the Driver carries them on: beside each other, and after a
// human's ruling, too.
func ExampleDriver() {
	d := driver.New(driver.Config{Workers: 16})
	ended := make(chan *session.Session, 1)
	tell := d.Observer("main")
	r, err := runner.New(runner.Config{
		Store: store.NewMemory(),
		Resolver: strategies.Registry{}.WithProposer("clerk", specialist.ProposerFunc(func(_ context.Context, q specialist.Question) (specialist.Answer, error) {
			return q.Choose(q.Transitions()[0], "all is there"), nil
		})),
		Observer: func(c session.Change) {
			if tell(c); !c.After.Status.Live() {
				ended <- c.After
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error)
	go func() { done <- d.Run(ctx, driver.Tenant{Name: "main", Runner: r}) }()

	m, err := machine.Parse("claims.json", []byte(`{"machineName":"claims","initialState":"open","goalState":"paid",
		"states":{"open":{"transitions":{"check":"checked"}},"checked":{"transitions":{"pay":"paid"}},"paid":{}},
		"specialists":[{"role":"proposer","specialistId":"clerk","strategyFn":"clerk"},
			{"role":"arbiter","specialistId":"judge","strategyFnName":"firstProposal"}]}`), runner.Checks())
	if err == nil {
		_, err = r.Start(ctx, m, runner.StartOptions{})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	s := <-ended
	fmt.Println(s.Status, "in state", s.State.Name, "after", s.Executed, "steps")
	cancel()
	fmt.Println(<-done)
	// Output: completed in state paid after 2 steps
	// <nil>
}
