package runner

import (
	"context"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// What the arbiter bayes decides by. The ledger of the store's outcomes says what
// specialists are worth (assessment.evidence); the plan says, once for each state, what
// is asked of it (State.Question of package planning).

// Ledger returns what human decisions have taught so far, over all machines of
// the store. It must not be added to: Clone it for that.
func (r *Runner) Ledger(ctx context.Context) (*trust.Ledger, error) {
	l, _, err := r.lessons.Read(ctx, r.store)
	return l, err
}

// ReadAhead reads what the store has learned since somebody last asked, and prepares what the next
// decisions by the arbiter bayes are made by, so that they need not wait for that: whoever drives
// sessions calls it when something was learned and it has nothing else to do. It changes no
// decision. Where nobody has asked yet it does nothing. An error of the store comes again where
// it matters.
func (r *Runner) ReadAhead(ctx context.Context) error {
	return r.contain(specialist.SessionID{}, func() error { return r.lessons.ReadAhead(ctx, r.store) })
}

// TrustHistory calls look with what everybody's word has counted for so far, over all machines
// of the store. It is look's to read until it returns, and nobody else's meanwhile. The first
// call folds all that was ever learned.
func (r *Runner) TrustHistory(ctx context.Context, look func(*trust.History)) error {
	return r.past.Read(ctx, r.store, look)
}

// Calibration returns how what bayes has stated in a machine compares with what humans chose
// then; of one of its states if state is not "".
func (r *Runner) Calibration(ctx context.Context, machineName string, state machine.StateName) (trust.CalibrationReport, error) {
	if _, err := r.Ledger(ctx); err != nil {
		return trust.CalibrationReport{}, err
	}
	return r.lessons.Calibration(machineName, string(state)).Report(), nil
}

// evidence returns what bayes decides the present round by.
func (t *assessment) evidence(ctx context.Context) (*arbiter.Evidence, error) {
	if t.reads != nil {
		return t.reads, nil
	}
	l, place, err := t.r.lessons.Read(ctx, t.r.store)
	if err != nil {
		return nil, err
	}
	t.reads = &arbiter.Evidence{Ledger: l, Place: place, Question: t.asked()}
	return t.reads, nil
}

// asked returns what the present round asks, but for the votes: what conditions have
// closed is no option of it.
func (t *round) asked() trust.Question {
	if offered := t.now.Offered(); offered != t.now.State {
		return planning.Offered(t.here.Question, offered)
	}
	return t.here.Question
}

// forced reports whether conditions have left nothing to choose between, or answers of the
// round count in the session from which this one was forked: such a round is evidence for
// nothing.
func (t *round) forced() bool {
	return t.open.Inherited() || t.now.Offered() != t.now.State && len(t.now.Offered().Transitions) < 2
}
