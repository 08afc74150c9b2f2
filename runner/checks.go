package runner

import (
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/strategies"
)

// Checks returns every rule of a machine file, for [machine.Parse]. What a
// store holds is read with [session.StoredChecks].
func Checks() machine.Checks {
	c := strategies.Checks()
	c.Guards, c.GuardsIn, c.Priced = guard.Check, guard.CheckIn, guard.CheckPriced
	return c
}
