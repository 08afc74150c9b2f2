package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// What is done at a server. The client sends each write under a key of its own, so that one that is
// sent again is done once; what is refused comes back as the engine here would have refused it (told).

// Start starts a session of a definition that the server is sent.
func (r *Server) Start(ctx context.Context, m *machine.Machine, o runner.StartOptions) (*session.Session, error) {
	r.sent = m
	in := api.Start{Machine: m.JSON(), MetaJSON: o.Meta, Mode: string(o.Mode), Defaults: o.Defaults}
	if o.Seed != 0 {
		in.Seed = fmt.Sprint(o.Seed)
	}
	if o.Actor != nil && len(o.Actor.Humans) > 0 {
		in.Human = o.Actor.Humans[0]
	}
	for _, id := range o.AllowMissing {
		in.AllowMissing = append(in.AllowMissing, string(id))
	}
	started, err := r.Client.Start(ctx, in, client.Write{})
	if err != nil {
		return nil, r.Told(err)
	}
	if len(o.AllowMissing) > 0 {
		if err := r.readMissing(ctx, started.Session.SessionID); err != nil {
			return nil, err
		}
	}
	s, err := r.take(ctx, started.Session, "")
	if err == nil {
		r.shows.Follow(s)
		r.Begin(s, 0)
	}
	return s, err
}

// readMissing reads without whom a session was started.
func (r *Server) readMissing(ctx context.Context, id string) error {
	for e, err := range r.Log(ctx, id, client.EventQuery{Kinds: []string{session.KindCreated}, Payload: "full"}) {
		if err != nil {
			return r.Told(err)
		}
		_, o, err := e.Creation()
		if err != nil {
			return err
		}
		r.missing = o.Missing
	}
	return nil
}

// Resume takes a session up again.
func (r *Server) Resume(ctx context.Context, id specialist.SessionID, o runner.ResumeOptions) (*session.Session, error) {
	var after api.Settled
	var err error
	if len(o.Raise) > 0 {
		in := api.Raising{Note: o.Note, SpecialistID: string(o.SpecialistID)}
		for _, l := range o.Raise {
			if !json.Valid([]byte(l.To)) { // it cannot be sent, and here is who says what is wrong
				s, err := r.Session(ctx, id)
				if err != nil {
					return nil, err
				}
				_, problems := s.Program.Guards(s.State).Raise(s.State.Name, o.Raise)
				return nil, command.Usage("%s", problems[0].Message)
			}
			in.Raise = append(in.Raise, api.Raise{Limit: l.Limit, To: l.To})
		}
		after, err = r.Raise(ctx, id.String(), in, client.Write{})
	} else {
		after, err = r.Client.Resume(ctx, id.String(), api.Resuming{Note: o.Note, SpecialistID: string(o.SpecialistID), RetryFailed: o.RetryFailed, KeepFailed: o.KeepFailed, Clear: o.Clear}, client.Write{})
	}
	if err != nil {
		return nil, r.Told(err)
	}
	return r.take(ctx, after.Session, "")
}

// Decide rules on a session, and tells what came of it.
func (r *Server) Decide(ctx context.Context, in runner.Ruling) (runner.Arbitration, error) {
	id := in.SessionID.String()
	if q := r.shown.Question; in.QuestionDigest == "" && q != nil { // the round is not that of the question, which is refused
		in.QuestionDigest = q.Digest
	}
	var ruled api.Ruled
	var err error
	if r.withdraws = in.Withdraw; in.Withdraw {
		ruled, err = r.Withdraw(ctx, id, in.RoundID, string(in.SpecialistID))
	} else {
		ruled, err = r.Client.Decide(ctx, id, api.Ruling{TransitionName: in.TransitionName, RoundID: in.RoundID, QuestionDigest: in.QuestionDigest, SpecialistID: string(in.SpecialistID), Reasoning: in.Reasoning, MetaJSON: in.MetaJSON, Manner: api.MannerOf(in.Manner)}, client.Write{})
	}
	if err == nil {
		a := ruled.Arbitration
		r.catchUp(ctx, in.SessionID, ruled.Session.Sequence)
		a.Session, err = r.take(ctx, ruled.Session, "")
		return a, err
	}
	var p *client.Problem
	if !errors.As(err, &p) || p.Arbitration == nil && !errors.Is(p, client.ErrForbidden) {
		return runner.Arbitration{}, r.Told(err)
	}
	a := runner.Arbitration{SessionID: id, RoundID: in.RoundID, SpecialistID: string(in.SpecialistID), GuardReason: p.Detail}
	if p.Arbitration != nil {
		a = *p.Arbitration
	}
	if a.Session, err = r.Session(ctx, in.SessionID); err != nil {
		return runner.Arbitration{}, err
	}
	r.catchUp(ctx, in.SessionID, a.Session.Sequence)
	if errors.Is(p, client.ErrGuard) {
		return a, nil
	}
	return a, seenBy(in.SpecialistID, r.Told(p))
}

// seenBy says of a question that has changed who looks at it.
func seenBy(viewer machine.SpecialistID, err error) error {
	if stale, ok := errors.AsType[*runner.StaleError](err); ok {
		stale.Question.Viewer = string(viewer)
	}
	return err
}

// Propose hands in a proposal, and tells what came of it.
func (r *Server) Propose(ctx context.Context, in runner.Submission) (*specialist.Proposal, *session.Session, error) {
	if q := r.shown.Question; in.TransitionName != "" && in.QuestionDigest == "" && q != nil { // of another round, which is refused
		in.QuestionDigest = q.Digest
	}
	body := api.Proposal{SpecialistID: string(in.SpecialistID), RoundID: in.RoundID, QuestionDigest: in.QuestionDigest, TransitionName: in.TransitionName, Reasoning: in.Reasoning, MetaJSON: in.MetaJSON, Cost: api.CostOf(in.Usage)}
	done, err := r.Client.Propose(ctx, in.SessionID.String(), body, client.Write{})
	if err != nil {
		s, failed := r.Session(ctx, in.SessionID)
		if failed == nil {
			r.catchUp(ctx, in.SessionID, s.Sequence)
		}
		if errors.Is(err, client.ErrAccepted) {
			return nil, s, specialist.ErrAccepted
		}
		return nil, s, seenBy(in.SpecialistID, r.Told(err))
	}
	r.catchUp(ctx, in.SessionID, done.Session.Sequence)
	s, err := r.take(ctx, done.Session, "")
	return nil, s, err
}

// Stop cancels a session.
func (r *Server) Stop(ctx context.Context, id specialist.SessionID, why runner.Stopping) (*session.Session, error) {
	after, err := r.Cancel(ctx, id.String(), api.Note{Note: why.Note}, client.Write{})
	if err != nil {
		return nil, r.Told(err)
	}
	return r.take(ctx, after.Session, "")
}

// Fork makes a session that goes on from where another one stood.
func (r *Server) Fork(ctx context.Context, id specialist.SessionID, o runner.Forking) (*session.Session, error) {
	after, err := r.Client.Fork(ctx, id.String(), api.Forking{Sequence: o.At}, client.Write{})
	if err != nil {
		return nil, r.Told(err)
	}
	return r.take(ctx, after.Session, "")
}
