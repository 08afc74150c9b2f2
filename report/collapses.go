package report

import (
	"context"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// CollapseOf says how far the states of a machine that declare a collapse have
// come, in the order of the newest definition; one of them if state is not "".
func CollapseOf(ctx context.Context, r *runner.Runner, machineName string, state machine.StateName) ([]runner.StateCollapse, error) {
	d, err := deciding(ctx, r, machineName)
	if err != nil {
		return nil, err
	}
	if err := known(d.Machine, state); err != nil {
		return nil, err
	}
	list := []runner.StateCollapse{}
	for i := range d.States {
		s := &d.States[i]
		if state != "" && s.State.Name != string(state) || len(s.State.Transitions) == 0 {
			continue
		}
		c, declared, err := s.Collapse(ctx)
		if err != nil {
			return nil, err
		}
		if declared {
			list = append(list, c)
		}
	}
	return list, nil
}
