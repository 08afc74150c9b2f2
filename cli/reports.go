package cli

import (
	"cmp"
	"context"
	"iter"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// What commands tell of machines and of the past, be it worked out here of a store, or told by
// the server that --server names.

// trusted returns what everybody's word counts for in the states of a machine.
func (e *engine) trusted(ctx context.Context, machineName, state string) ([]report.Trusted, error) {
	if e.far != nil {
		return remote.Every(e.far, e.far.Client.Trust(ctx, machineName, state))
	}
	return report.TrustOf(ctx, e.Runner, machineName, machine.StateName(state))
}

// trustHistory yields what everybody's word in the states of a machine has counted for.
func (e *engine) trustHistory(ctx context.Context, machineName string, q report.HistoryQuery) iter.Seq2[report.TrustSeries, error] {
	if e.far != nil {
		return remote.ToldOf(e.far, e.far.Client.TrustHistory(ctx, machineName, q))
	}
	return report.TrustHistoryOf(ctx, e.Runner, machineName, q)
}

// collapses returns how far the states of a machine do without humans that declare it; state is
// "" for all of them.
func (e *engine) collapses(ctx context.Context, machineName, state string) ([]runner.StateCollapse, error) {
	if e.far != nil {
		return remote.Every(e.far, e.far.Collapses(ctx, machineName, state))
	}
	return report.CollapseOf(ctx, e.Runner, machineName, machine.StateName(state))
}

// risks returns what a machine promises, and what came of it.
func (e *engine) risks(ctx context.Context, machineName string) (*report.Risks, error) {
	if e.far != nil {
		r, err := e.far.Risk(ctx, machineName)
		return &r, e.far.Told(err)
	}
	return report.RisksOf(ctx, e.Runner, machineName)
}

// calibration returns how what bayes states in a machine compares with what humans choose.
func (e *engine) calibration(ctx context.Context, machineName, state string) (*report.Calibration, error) {
	if e.far != nil {
		c, err := e.far.Calibration(ctx, machineName, state)
		return &c, e.far.Told(err)
	}
	return report.CalibrationOf(ctx, e.Runner, machineName, machine.StateName(state))
}

// spent returns what the sessions of a machine have spent.
func (e *engine) spent(ctx context.Context, machineName string, q report.SpendQuery) ([]report.Spent, error) {
	if e.far != nil {
		return remote.Every(e.far, e.far.Spend(ctx, machineName, q))
	}
	return report.SpentOf(ctx, e.Runner, machineName, q)
}

// metrics returns how far a machine does without humans, of whom each decision takes so many
// minutes.
func (e *engine) metrics(ctx context.Context, machineName, state string, minutes float64) (*report.Metrics, error) {
	if e.far != nil {
		m, err := e.far.Metrics(ctx, machineName, state, minutes)
		return &m, e.far.Told(err)
	}
	m, err := report.MetricsOf(ctx, e.Runner, machineName, machine.StateName(state))
	if err == nil {
		m.Assume(minutes)
	}
	return m, err
}

// roster returns who is registered for a machine, switched off, or champion.
func (e *engine) roster(ctx context.Context, machineName string) (list []*api.Specialist, err error) {
	if e.far != nil {
		all, err := remote.Every(e.far, e.far.Specialists(ctx, machineName))
		for i := range all {
			list = append(list, &all[i])
		}
		return list, err
	}
	r, err := e.Store.Roster(ctx, machineName)
	if err != nil {
		return nil, err
	}
	return api.SpecialistsOf(r), nil
}

// definitions returns the definitions of a machine that sessions run by; of a server the newest.
func (e *engine) definitions(ctx context.Context, machineName string) ([][]byte, error) {
	if e.far != nil {
		m, err := e.far.Machine(ctx, machineName)
		return [][]byte{m.Definition}, e.far.Told(err)
	}
	return e.Store.Definitions(ctx, machineName)
}

// ticks carries every live session one step further, but for those that wait for a timer, and
// yields what came of each.
func (e *engine) ticks(ctx context.Context) iter.Seq2[runner.TickView, error] {
	if e.far != nil {
		return e.far.Ticks(ctx)
	}
	return func(yield func(runner.TickView, error) bool) {
		for r, err := range e.Tick(ctx) {
			if !yield(r.View(), err) {
				return
			}
		}
	}
}

// review says what should have been decided in a closed round.
func (e *engine) review(ctx context.Context, in runner.Reviewing) (api.Reviewed, error) {
	if e.far != nil {
		return e.far.Answer(ctx, in)
	}
	v, err := e.Review(ctx, in)
	if err != nil {
		return api.Reviewed{}, err
	}
	return api.ReviewedOf(v), nil
}

// retracted returns how the ruling of a round was taken back.
func (e *engine) retracted(ctx context.Context, s *session.Session, roundID string) (line render.RetractedLine, err error) {
	if e.far != nil {
		return e.far.Retracted(ctx, s, roundID)
	}
	for _, x := range s.History() {
		if d := s.Retracted(x.Round); d != nil && x.Key(s.ID).ID() == roundID {
			line = render.RetractedLine{SessionID: s.ID.String(), RoundID: roundID, Round: d.Round, SpecialistID: d.SpecialistID, Note: d.Note, Actor: *d.Actor}
		}
	}
	return line, nil
}

// approved returns the transitions of a session that were executed and had needed approvals.
func (e *engine) approved(s *session.Session) (names []string) {
	if e.far != nil {
		return e.far.Approved(s)
	}
	for _, x := range s.History() {
		if x.Transition.Approvals != nil {
			names = append(names, x.Transition.Name)
		}
	}
	return names
}

// modelCalls yields how models were asked in a session; of the rounds that are hidden, only that
// they were.
func (e *engine) modelCalls(ctx context.Context, s *session.Session, hidden map[int32]string, v *viewFlags) iter.Seq2[api.ModelCall, error] {
	if e.far != nil {
		return remote.ToldOf(e.far, e.far.ModelCalls(ctx, s.ID.String(), v.as))
	}
	return func(yield func(api.ModelCall, error) bool) {
		for entry, err := range e.Store.Audit(ctx, s.ID) {
			if !yield(api.ModelCallOf(entry, hidden[cmp.Or(entry.Round, s.Round)] != ""), err) {
				return
			}
		}
	}
}

// asking yields the events of a session, those at least by which somebody is asked and answers.
func (e *engine) asking(ctx context.Context, s *session.Session) iter.Seq2[api.Event, error] {
	if e.far != nil {
		return e.far.Asking(ctx, s)
	}
	return api.EventsOf("", e.Store.Records(ctx, s.ID, 1))
}
