package remote

import (
	"context"
	"errors"
	"iter"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What is read of a server's sessions. What it tells is made into a session as one is here, so
// that the same code shows it; what it withholds is not there.

// Session returns a session as the server shows it.
func (r *Server) Session(ctx context.Context, id specialist.SessionID) (*session.Session, error) {
	return r.look(ctx, id, "")
}

// look returns a session as the server shows it to somebody.
func (r *Server) look(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID) (*session.Session, error) {
	v, err := r.Client.Session(ctx, id.String(), string(viewer))
	if said, _ := errors.AsType[*client.Problem](err); errors.Is(err, client.ErrNotFound) && said.Hint == "" { // else there is more to say
		return nil, &session.NotFoundError{What: "Session", ID: id.String()}
	}
	if err != nil {
		return nil, r.Told(err)
	}
	return r.take(ctx, v, viewer)
}

// take makes a session of what was told.
func (r *Server) take(ctx context.Context, v api.Session, viewer machine.SpecialistID) (*session.Session, error) {
	m, err := machine.Parse("machine.json", v.Machine, session.StoredChecks()) // which the server has checked when it was new
	if err != nil {
		return nil, err
	}
	p, err := r.programs.Of(m)
	if err != nil {
		return nil, err
	}
	beside := session.Beside{Missing: r.missing}
	for sum, err := range r.Client.Sessions(ctx, client.SessionQuery{ID: v.SessionID}) {
		if err != nil {
			return nil, r.Told(err)
		}
		beside.UpdatedAt = sum.UpdatedAt
	}
	if v.Question == nil && v.Status.Live() {
		if q, err := r.Client.Question(ctx, v.SessionID+"."+v.CurrentRoundID, string(viewer)); err == nil { // else it has gone on meanwhile
			v.Question = &q.Question
		}
	}
	if q := v.Question; q != nil {
		q.Viewer = string(viewer)
		beside.Due = session.Due{At: q.Due, Error: q.DueError}
		for _, t := range q.Transitions {
			if t.Closed != "" {
				beside.Closed = append(beside.Closed, t.Name)
			}
		}
	}
	if state := m.State(v.CurrentState); v.Code == session.CodeDeadEnd && state != nil {
		for _, t := range state.Transitions {
			if t.When != "" {
				beside.Closed = append(beside.Closed, t.Name)
			}
		}
	}
	s, err := session.Shown(v.SessionView, p, beside)
	if err == nil && len(v.Waiting) > 0 {
		if beside.Out, err = r.out(ctx, s, v.Waiting); err == nil {
			s, err = session.Shown(v.SessionView, p, beside)
		}
	}
	r.shown = v
	return s, err
}

// out returns the asks whose answers are out, with by when they are due.
func (r *Server) out(ctx context.Context, s *session.Session, waiting []string) (list []session.Ask, err error) {
	last := map[string]session.Ask{}
	for e, err := range r.Client.Log(ctx, s.ID.String(), client.EventQuery{Kinds: []string{session.KindAsked}, Payload: "full"}) {
		if err != nil {
			return nil, r.Told(err)
		}
		if d, _ := s.Read(e.Raw); d != nil { // one that is withheld does not say
			for _, a := range d.(*session.Asked).Asks {
				last[a.SpecialistID] = a
			}
		}
	}
	for _, id := range waiting {
		a := last[id]
		a.SpecialistID = id
		list = append(list, a)
	}
	return list, nil
}

// View returns the session that was read last as it was told, to be printed as it is.
func (r *Server) View(q runner.Question) api.Session {
	v := r.shown
	if v.Status != session.NeedsHuman && v.Status != session.Stopped {
		v.Question = nil
	} else {
		v.Question = &q
	}
	return v
}

// Sessions returns the summaries of sessions, as many as are asked for.
func (r *Server) Sessions(ctx context.Context, q session.ListQuery) (list []session.Summary, err error) {
	for sum, err := range r.Each(ctx, q) {
		if err != nil {
			return nil, err
		}
		list = append(list, sum)
	}
	return list, nil
}

// Each yields the summaries of sessions, as many as are asked for.
func (r *Server) Each(ctx context.Context, q session.ListQuery) iter.Seq2[session.Summary, error] {
	return func(yield func(session.Summary, error) bool) {
		in := client.SessionQuery{ID: q.ID, Machine: q.MachineName, State: q.State, Code: q.Code, Subject: q.Subject, Decider: string(q.Decider), OldestFirst: !q.Desc, Awake: q.Awake != 0, Reviews: q.Reviews}
		for _, s := range q.Statuses {
			in.Statuses = append(in.Statuses, s.String())
		}
		in.StartedBy = q.StartedBy
		if q.CreatedAfter != 0 {
			in.CreatedAfter = q.CreatedAfter.Time()
		}
		if q.UpdatedAfter != 0 {
			in.UpdatedAfter = q.UpdatedAfter.Time()
		}
		n := 0
		for sum, err := range r.Client.Sessions(ctx, in) {
			if n++; !yield(sum, r.Told(err)) || err != nil || n == q.Limit {
				return
			}
		}
	}
}

// Inbox returns a page of questions; the next ones are those behind it.
func (r *Server) Inbox(ctx context.Context, q session.ListQuery, viewer machine.SpecialistID) (items []runner.Question, next session.Cursor, err error) {
	if q.After == "" || r.pull == nil {
		pull, stop := iter.Pull2(r.Client.Inbox(ctx, client.QuestionQuery{Machine: q.MachineName, State: q.State, Code: q.Code, Human: string(q.Decider), As: string(viewer)}))
		context.AfterFunc(ctx, stop)
		r.pull, r.ahead = pull, nil
	}
	if r.ahead != nil {
		items = append(items, *r.ahead)
	}
	for {
		item, err, more := r.pull()
		if !more || err != nil {
			return items, "", r.Told(err)
		}
		if item.Viewer = string(viewer); len(items) == q.Limit {
			r.ahead = &item.Question
			return items, "behind", nil
		}
		items = append(items, item.Question)
	}
}

// Question returns the question of a session as somebody sees it. Where none is open it has
// what is known of the session.
func (r *Server) Question(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (runner.Question, error) {
	if viewer != "" || r.shown.SessionID != s.ID.String() || r.shown.Sequence != s.Sequence {
		if _, err := r.look(ctx, s.ID, viewer); err != nil {
			return runner.Question{}, err
		}
	}
	v := r.shown
	if v.Question != nil {
		return *v.Question, nil
	}
	return runner.Question{
		QuestionID: v.SessionID + "." + v.CurrentRoundID, SessionID: v.SessionID, MachineName: v.MachineName, RoundID: v.CurrentRoundID, State: v.CurrentState,
		Prompt: s.State.Prompt, Subject: v.Subject, Facts: factsOf(v), History: v.History, Notices: v.Notices, Code: v.Code, Reason: v.Reason, Viewer: string(viewer), Proposals: v.Proposals,
	}, nil
}

// factsOf returns what a session is about, as a question has it.
func factsOf(v api.Session) session.Facts {
	if v.Data == nil && len(v.MetaJSON) > 0 && v.MetaJSON[0] == '{' {
		return session.Facts{Input: v.MetaJSON, Data: v.MetaJSON}
	}
	f := session.Facts{Input: v.MetaJSON, Data: v.Data}
	if f.Data == nil {
		f.Data = []byte("{}")
	}
	return f
}

// Reveal looks at what is withheld.
func (r *Server) Reveal(ctx context.Context, id specialist.SessionID, viewer machine.SpecialistID, _ *session.Actor) (runner.Question, *session.Session, error) {
	s, err := r.look(ctx, id, viewer)
	if err != nil {
		return runner.Question{}, nil, err
	}
	if !s.Status.Live() {
		q, err := r.Question(ctx, s, viewer)
		return q, s, err
	}
	q, err := r.Client.Reveal(ctx, id.String()+"."+s.Key().ID(), api.Viewer{SpecialistID: string(viewer)})
	if err != nil {
		return q, nil, r.Told(err)
	}
	q.Viewer = string(viewer)
	s, err = r.look(ctx, id, viewer)
	r.shown.Question = &q
	return q, s, err
}

// Humans returns who may rule in a session, and whether its machine declares any human.
func (r *Server) Humans(ctx context.Context, s *session.Session) (ids []string, declared bool, err error) {
	if !s.Status.Live() && s.Status != session.Stopped { // there is no question
		return r.HumansIn(ctx, s.Machine().Name(), machine.StateName(s.State.Name))
	}
	q, err := r.Question(ctx, s, "")
	return q.Humans, len(q.Humans) > 0 || command.HumanOf(s) != "", err
}

// Outcome returns why a session is not running, as the server tells it.
func (r *Server) Outcome(_ context.Context, s *session.Session, _ machine.SpecialistID) (session.Outcome, error) {
	return s.Outcome(), nil
}
