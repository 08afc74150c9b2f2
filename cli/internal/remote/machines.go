package remote

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What a server tells of machines, of those who take part in them and of the past, and what it
// is told to do about them: orders, reviews, looks on the record, steps.

// ToldOf yields a list of a server, of which the error is as the engine would have said it.
func ToldOf[T any](r *Server, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range list {
			if !yield(v, r.Told(err)) {
				return
			}
		}
	}
}

// Every returns a list of a server that is told whole.
func Every[T any](r *Server, list iter.Seq2[T, error]) ([]T, error) {
	all := []T{}
	for v, err := range ToldOf(r, list) {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Knows returns an error if the server knows no machine of a name.
func (r *Server) Knows(ctx context.Context, machineName string) error {
	if machineName == "" {
		return &session.NotFoundError{What: "Machine", ID: machineName}
	}
	_, err := r.Machine(ctx, machineName)
	return r.Told(err)
}

// Everybody returns the specialists of a machine, and of those who are registered with the server
// their ids, and whether they are human.
func (r *Server) Everybody(ctx context.Context, m *machine.Machine) ([]machine.Specialist, error) {
	all := slices.Clone(m.Specialists())
	for i := range m.States() {
		all = append(all, m.States()[i].Roster...)
	}
	for s, err := range ToldOf(r, r.Specialists(ctx, m.Name())) {
		if errors.Is(err, session.ErrNotFound) { // it knows no machine of the name
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, machine.Specialist{SpecialistID: s.SpecialistID, IsHuman: s.IsHuman})
	}
	return all, nil
}

// Move moves a session to a definition that the server is sent.
func (r *Server) Move(ctx context.Context, id specialist.SessionID, m *machine.Machine, o runner.Moving) (*session.Session, error) {
	r.sent = m
	in := api.Moving{Definition: m.JSON(), Note: o.Note, DryRun: o.DryRun, States: map[string]string{}}
	for from, to := range o.States {
		in.States[string(from)] = string(to)
	}
	after, err := r.Client.Move(ctx, id.String(), in, client.Write{})
	if err != nil {
		return nil, r.Told(err)
	}
	return r.take(ctx, after.Session, "")
}

// Retract takes back an executed ruling.
func (r *Server) Retract(ctx context.Context, in runner.Retracting) (*session.Session, error) {
	after, err := r.Client.Retract(ctx, in.SessionID.String(), api.Retracting{RoundID: in.RoundID, SpecialistID: string(in.SpecialistID), Note: in.Note}, client.Write{})
	if err != nil {
		return nil, r.Told(err)
	}
	return r.take(ctx, after.Session, "")
}

// Retracted returns how the ruling of a round was taken back, as the log has it.
func (r *Server) Retracted(ctx context.Context, s *session.Session, roundID string) (line render.RetractedLine, err error) {
	for e, err := range r.Log(ctx, s.ID.String(), client.EventQuery{Kinds: []string{session.KindRetracted}, Payload: "full"}) {
		if err != nil {
			return line, r.Told(err)
		}
		next := render.RetractedLine{SessionID: s.ID.String()}
		if err := json.Unmarshal(e.Data, &next); err != nil {
			return line, err
		}
		if next.RoundID == roundID {
			line = next
		}
	}
	return line, nil
}

// Approved returns the transitions of the session that was read last that were executed and had
// needed approvals.
func (r *Server) Approved(s *session.Session) (names []string) {
	for _, x := range r.shown.History {
		if state := s.Machine().State(x.FromState); state != nil {
			if t := state.Transition(x.TransitionName); t != nil && t.Approvals != nil {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// maxAttempts is how many attempts a round that is named by its number is looked for among.
const maxAttempts = 1000

// ClosedRound finds a closed round of the session that was read last, by its id or, if it is not
// 0, its number; "" if there is none.
func (r *Server) ClosedRound(session specialist.SessionID, text string, number int) (id, state string) {
	for _, t := range r.shown.History {
		if t.RoundID == text {
			return t.RoundID, t.FromState
		}
	}
	if number <= 0 || number > int(r.shown.Round) {
		return "", ""
	}
	for attempt := range int32(maxAttempts) { // an id says of which round it is to whoever makes it anew
		made := specialist.RoundKey{Session: session, Round: int32(number), Attempt: attempt}.ID()
		for _, t := range r.shown.History {
			if t.RoundID == made {
				return t.RoundID, t.FromState
			}
		}
	}
	return "", ""
}

// Reviews returns a page of the closed rounds that wait for a review; the next ones are those
// behind it.
func (r *Server) Reviews(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) (items []runner.ReviewItem, next session.Cursor, err error) {
	if q.After == "" || r.reviews == nil {
		pull, stop := iter.Pull2(ToldOf(r, r.Client.Reviews(ctx, client.ReviewQuery{Machine: q.MachineName, Human: string(viewer)})))
		context.AfterFunc(ctx, stop)
		r.reviews, r.reviewAhead = pull, nil
	}
	if r.reviewAhead != nil {
		items = append(items, *r.reviewAhead)
	}
	for {
		item, err, more := r.reviews()
		if !more || err != nil {
			return items, "", err
		}
		if item.Viewer = string(viewer); len(items) == q.Limit {
			r.reviewAhead = &item
			return items, "behind", nil
		}
		items = append(items, item)
	}
}

// Answer says what should have been decided in a closed round.
func (r *Server) Answer(ctx context.Context, in runner.Reviewing) (api.Reviewed, error) {
	v, err := r.Review(ctx, in.SessionID.String()+"."+in.RoundID, api.Reviewing{TransitionName: in.TransitionName, Reasoning: in.Reasoning, SpecialistID: string(in.SpecialistID), Seen: !in.Blind, Manner: api.MannerOf(in.Manner)}, client.Write{})
	return v, r.Told(err)
}

// RevealReview has somebody look at what was decided in a closed round.
func (r *Server) RevealReview(ctx context.Context, id specialist.SessionID, roundID string, viewer machine.SpecialistID, _ *session.Actor) (*session.Session, error) {
	after, err := r.Client.RevealReview(ctx, id.String()+"."+roundID, api.Viewer{SpecialistID: string(viewer)})
	if err != nil {
		return nil, r.Told(err)
	}
	return r.take(ctx, after.Session, viewer)
}

// LookAtAll has somebody look at all that is withheld in a session.
func (r *Server) LookAtAll(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (*session.Session, error) {
	if err := r.lookAtReviews(ctx, s.ID, viewer, nil); err != nil {
		return s, err
	}
	_, after, err := r.Reveal(ctx, s.ID, viewer, nil)
	return after, err
}

// lookAtReviews has somebody look at the closed rounds of a session that wait for a review; if
// round is not nil, at that one.
func (r *Server) lookAtReviews(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID, round *int32) error {
	waiting, err := Every(r, r.Client.Reviews(ctx, client.ReviewQuery{Session: id.String(), Human: string(viewer)}))
	for i := range waiting {
		if err == nil && (round == nil || waiting[i].Round == *round) {
			_, err = r.RevealReview(ctx, id, waiting[i].RoundID, viewer, nil)
		}
	}
	return err
}

// Why returns why a round went so; where that is withheld from the viewer, who wants to see
// it, after they have looked at it.
func (r *Server) Why(ctx context.Context, id specialist.SessionID, round, viewer string, show bool) (*explain.Explanation, error) {
	why, err := r.explained(ctx, id, round, viewer)
	if err != nil || !why.Withheld || !show {
		return why, err
	}
	if why.Executed == "" {
		_, _, err = r.Reveal(ctx, id, machine.SpecialistID(viewer), nil)
	} else {
		err = r.lookAtReviews(ctx, id, machine.SpecialistID(viewer), &why.Round)
	}
	if err != nil {
		return nil, err
	}
	return r.explained(ctx, id, round, viewer)
}

// explained returns why a round went so; of one of which all is withheld, that it is.
func (r *Server) explained(ctx context.Context, id specialist.SessionID, round, viewer string) (*explain.Explanation, error) {
	why, err := r.Explain(ctx, id.String(), round, viewer)
	var p *client.Problem
	if errors.As(err, &p) && p.Code == "withheld" {
		return &explain.Explanation{Withheld: true}, nil
	}
	return &why, r.Told(err)
}

// Asking yields the events of a session by which somebody is asked and answers.
func (r *Server) Asking(ctx context.Context, s *session.Session) iter.Seq2[api.Event, error] {
	return ToldOf(r, r.Log(ctx, s.ID.String(), client.EventQuery{Kinds: []string{session.KindAsked, session.KindProposed}, Payload: "full"}))
}

// HumansIn returns who may give orders in a state, and whether the machine declares any human.
func (r *Server) HumansIn(ctx context.Context, machineName string, state machine.StateName) (ids []string, declared bool, err error) {
	d, err := r.Client.HumansIn(ctx, machineName, string(state))
	return d.Humans, d.Declared, r.Told(err)
}

// orderOf returns an order as the server is sent it.
func orderOf(o runner.Order, champion machine.SpecialistID) api.Order {
	return api.Order{Champion: string(champion), SpecialistID: string(o.SpecialistID), Reasoning: o.Reason}
}

// Promote makes somebody champion of a state. What it rests on is not told.
func (r *Server) Promote(ctx context.Context, o runner.Order, id machine.SpecialistID) (*trust.Certificate, error) {
	_, err := r.Client.Promote(ctx, o.MachineName, string(o.State), orderOf(o, id), client.Write{})
	return nil, r.Told(err)
}

// Demote sends a state back.
func (r *Server) Demote(ctx context.Context, o runner.Order) error {
	_, err := r.Client.Demote(ctx, o.MachineName, string(o.State), orderOf(o, ""), client.Write{})
	return r.Told(err)
}

// Freeze keeps a state from going further, or lets it.
func (r *Server) Freeze(ctx context.Context, o runner.Order, on bool) error {
	give := r.Release
	if on {
		give = r.Client.Freeze
	}
	_, err := give(ctx, o.MachineName, string(o.State), orderOf(o, ""), client.Write{})
	return r.Told(err)
}

// Switch switches a specialist on or off.
func (r *Server) Switch(ctx context.Context, machineName string, id machine.SpecialistID, to runner.Switching) error {
	_, err := r.Client.Switch(ctx, machineName, string(id), to.On, to.Reason)
	return r.Told(err)
}

// stepsAtOnce is how many sessions a server is asked to step at the same time.
const stepsAtOnce = 16

// Ticks steps the live sessions of a server, and yields what came of each in their order.
func (r *Server) Ticks(ctx context.Context) iter.Seq2[runner.TickView, error] {
	return func(yield func(runner.TickView, error) bool) {
		for batch, err := range chunks(r.Each(ctx, session.ListQuery{Statuses: session.LiveStatuses(), Awake: 1}), stepsAtOnce) {
			if err != nil {
				yield(runner.TickView{}, err)
				return
			}
			views := make([]runner.TickView, len(batch))
			var all sync.WaitGroup
			for i := range batch {
				all.Go(func() { views[i] = r.tick(ctx, &batch[i]) })
			}
			all.Wait()
			if err := ctx.Err(); err != nil {
				yield(runner.TickView{}, err)
				return
			}
			for _, v := range views {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// chunks yields a list in parts of so many.
func chunks[T any](list iter.Seq2[T, error], n int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var part []T
		for v, err := range list {
			if err != nil {
				yield(nil, err)
				return
			}
			if part = append(part, v); len(part) == n {
				if !yield(part, nil) {
					return
				}
				part = nil
			}
		}
		if len(part) > 0 {
			yield(slices.Clip(part), nil)
		}
	}
}

// tick steps a session; that it could not be is told of that session.
func (r *Server) tick(ctx context.Context, s *session.Summary) runner.TickView {
	stepped, err := r.Step(ctx, s.SessionID.String(), client.Write{})
	if err == nil {
		return stepped.Tick
	}
	return runner.TickView{SessionID: s.SessionID.String(), MachineName: s.MachineName, Subject: s.Subject, CurrentState: s.CurrentState, Status: string(runner.TickFailed), Error: r.Told(err).Error()}
}
