package report

import (
	"context"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// CollapseOf says how far the states of a machine that declare a collapse have
// come, in the order of the newest definition; one of them if state is not "".
func CollapseOf(ctx context.Context, r *runner.Runner, machineName string, state machine.StateName) ([]runner.StateCollapse, error) {
	d, err := deciding(ctx, r, machineName)
	if err != nil {
		return nil, err
	}
	if state != "" && d.Machine.State(string(state)) == nil {
		return nil, &session.NotFoundError{What: "State", ID: string(state)}
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
