package server

import (
	"context"
	"net/http"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// What an operator orders of a session: it goes on, with a larger budget, or is ended, forked, moved to another definition, and a word taken back.

type resumeIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body *api.Resuming
}

func (s *Server) resume(ctx context.Context, p *Principal, in *resumeIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	b := api.Resuming{}
	if in.Body != nil {
		b = *in.Body
	}
	if _, err := p.viewer(at.Machine().Name(), b.SpecialistID); err != nil {
		return nil, err
	}
	after, err := tenantOf(ctx).Runner.Resume(ctx, at.ID, runner.ResumeOptions{
		Actor: p.actor(at.Machine().Name()), SpecialistID: machine.SpecialistID(b.SpecialistID), Note: b.Note, RetryFailed: b.RetryFailed, KeepFailed: b.KeepFailed, Clear: b.Clear, If: holds(in.IfMatch),
	})
	return s.changed(ctx, p, after, err, in.For)
}

type raiseIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body api.Raising
}

func (s *Server) raise(ctx context.Context, p *Principal, in *raiseIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRule)
	if err != nil {
		return nil, err
	}
	who, err := s.human(ctx, p, at, in.Body.SpecialistID)
	if err != nil {
		return nil, err
	}
	o := runner.ResumeOptions{Actor: p.actor(at.Machine().Name()), SpecialistID: who, Note: in.Body.Note, If: holds(in.IfMatch)}
	for _, r := range in.Body.Raise {
		o.Raise = append(o.Raise, guard.Raise{Limit: r.Limit, To: r.To})
	}
	after, err := tenantOf(ctx).Runner.Resume(ctx, at.ID, o)
	return s.changed(ctx, p, after, err, in.For)
}

// changed is the answer to what has changed a session.
func (s *Server) changed(ctx context.Context, p *Principal, after *session.Session, err error, wait string) (*sessionOut, error) {
	if err != nil {
		return nil, err
	}
	after, settled, err := s.answer(ctx, p, after, wait)
	if err != nil {
		return nil, err
	}
	return &sessionOut{Status: http.StatusOK, ETag: etag(after), Body: settled}, nil
}

type noteIn struct {
	params.Session
	params.Precondition
	Body api.Note
}

func (s *Server) cancel(ctx context.Context, p *Principal, in *noteIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	after, err := tenantOf(ctx).Runner.Stop(ctx, at.ID, runner.Stopping{Actor: *p.actor(at.Machine().Name()), Note: in.Body.Note, If: holds(in.IfMatch)})
	return s.changed(ctx, p, after, err, "")
}

type forkIn struct {
	params.Session
	params.Precondition
	Body *api.Forking
}

func (s *Server) fork(ctx context.Context, p *Principal, in *forkIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	o := runner.Forking{Actor: p.actor(at.Machine().Name())}
	if in.Body == nil || !in.Body.Drive {
		o.Driver = session.DriverNone
	}
	if in.Body != nil {
		o.At = in.Body.Sequence
	}
	fork, err := tenantOf(ctx).Runner.Fork(ctx, at.ID, o)
	out, err := s.changed(ctx, p, fork, err, "")
	if err == nil {
		out.Status, out.Location = http.StatusCreated, "/v1/sessions/"+fork.ID.String()
	}
	return out, err
}

type moveIn struct {
	params.Session
	params.Precondition
	Body api.Moving
}

func (s *Server) move(ctx context.Context, p *Principal, in *moveIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	definition := in.Body.Definition
	if (len(definition) == 0) == (in.Body.MachineDigest == "") {
		return nil, bad("bad_request", "the request needs a definition, or the machineDigest of a published one: one of them")
	}
	if in.Body.MachineDigest != "" {
		v, err := s.of(ctx, p, at.Machine().Name(), in.Body.MachineDigest)
		if err != nil {
			return nil, err
		}
		definition = v.Definition
	}
	m, err := s.parse(definition)
	if err != nil {
		return nil, err
	}
	if !p.may(mayDrive, m.Name()) {
		return nil, mayNot(p, mayDrive, m.Name())
	}
	o := runner.Moving{Actor: *p.actor(at.Machine().Name()), Note: in.Body.Note, DryRun: in.Body.DryRun, If: holds(in.IfMatch), States: map[machine.StateName]machine.StateName{}}
	for from, to := range in.Body.States {
		o.States[machine.StateName(from)] = machine.StateName(to)
	}
	after, err := tenantOf(ctx).Runner.Move(ctx, at.ID, m, o)
	if err == nil && o.DryRun {
		shown, err := s.shown(ctx, p, after, "")
		return &sessionOut{Status: http.StatusOK, Body: api.Settled{Session: shown, Settled: isSettled(after)}}, err
	}
	return s.changed(ctx, p, after, err, "")
}

type retractIn struct {
	params.Session
	params.Precondition
	Body api.Retracting
}

func (s *Server) retract(ctx context.Context, p *Principal, in *retractIn) (*sessionOut, error) {
	at, err := s.session(ctx, p, in.ID, mayRule)
	if err != nil {
		return nil, err
	}
	bound := p.humans(at.Machine().Name())
	who := in.Body.SpecialistID
	if who == "" && len(bound) == 1 {
		who = bound[0]
	}
	if who == "" {
		return nil, bad("bad_request", "specialistId is missing: whose ruling was it?")
	}
	if _, err := p.viewer(at.Machine().Name(), who); err != nil {
		return nil, err
	}
	after, err := tenantOf(ctx).Runner.Retract(ctx, runner.Retracting{SessionID: at.ID, RoundID: in.Body.RoundID, SpecialistID: machine.SpecialistID(who), Note: in.Body.Note, Actor: p.actor(at.Machine().Name()), If: holds(in.IfMatch)})
	return s.changed(ctx, p, after, err, "")
}
