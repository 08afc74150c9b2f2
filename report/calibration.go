package report

import (
	"context"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// A Calibration says how the probabilities that bayes gave its picks compare with what humans
// chose: in rulings, audits and reviews, weighted by one over the probability with which they
// looked.
type Calibration struct {
	MachineName string `json:"machineName"`
	State       string `json:"state,omitempty"`
	trust.CalibrationReport
}

// CalibrationOf returns the calibration of a machine; of one of its states if state is not "". It
// returns ErrNotFound for a machine or a state that is not there.
func CalibrationOf(ctx context.Context, r *runner.Runner, machineName string, state machine.StateName) (*Calibration, error) {
	program, err := r.Newest(ctx, machineName)
	if err != nil {
		return nil, err
	}
	if err := known(program.Machine, state); err != nil {
		return nil, err
	}
	c := &Calibration{MachineName: machineName, State: string(state)}
	c.CalibrationReport, err = r.Calibration(ctx, machineName, state)
	return c, err
}
