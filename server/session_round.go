package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/specialist"
)

// Operations on the round of a session: it is stepped or run, somebody proposes, it is judged for a look or for good.

type stepIn struct {
	params.Session
	params.Wait
	params.Precondition
}

type stepOut = sessionAnswer[api.Stepped]

func (s *Server) step(ctx context.Context, p *Principal, in *stepIn) (*stepOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	tick, err := tenantOf(ctx).Runner.StepOn(ctx, at.ID)
	if err != nil && tick.Transition == nil { // else a step before the one that failed is told, with why
		return nil, err
	}
	view := runner.TickResult{Tick: tick, Err: err}.View()
	at, settled, err := s.answer(ctx, p, tick.Session, in.For)
	if err != nil {
		return nil, err
	}
	return &stepOut{Status: http.StatusOK, ETag: etag(at), Body: api.Stepped{Tick: view, Settled: settled}}, nil
}

type runIn struct {
	params.Session
	params.Precondition
	Body *struct {
		MaxSteps int `json:"maxSteps,omitempty" minimum:"0" doc:"transitions; 1000 without it"`
	}
}

type runOut = sessionAnswer[api.Ran]

func (s *Server) run(ctx context.Context, p *Principal, in *runIn) (*runOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if err := seen(at, in.IfMatch); err != nil {
		return nil, err
	}
	var o runner.RunOptions
	if in.Body != nil {
		o.MaxSteps = in.Body.MaxSteps
	}
	r, err := tenantOf(ctx).Runner.Run(ctx, at.ID, o)
	if err != nil {
		return nil, err
	}
	at, settled, err := s.answer(ctx, p, r.Session, "")
	if err != nil {
		return nil, err
	}
	return &runOut{Status: http.StatusOK, ETag: etag(at), Body: api.Ran{Result: api.ResultFor(r), Settled: settled}}, nil
}

type proposeIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body api.Proposal
}

type proposeOut = sessionAnswer[api.Proposed]

func (s *Server) propose(ctx context.Context, p *Principal, in *proposeIn) (*proposeOut, error) {
	at, err := s.session(ctx, p, in.ID, mayPropose)
	if err != nil {
		return nil, err
	}
	b, name := &in.Body, at.Machine().Name()
	who, err := specialistOf(p, name, b.SpecialistID)
	if err != nil {
		return nil, err
	}
	humans, _, err := tenantOf(ctx).Runner.Humans(ctx, at)
	if err != nil {
		return nil, err
	}
	for _, id := range humans {
		if id == string(who) && b.TransitionName != "" && (b.RoundID == "" || b.QuestionDigest == "") {
			return nil, needsQuestion("a human's proposal")
		}
	}
	if b.RoundID == "" {
		b.RoundID = at.Key().ID()
	}
	proposal, after, err := tenantOf(ctx).Runner.Propose(ctx, runner.Submission{
		SessionID: at.ID, SpecialistID: who, RoundID: b.RoundID, QuestionDigest: b.QuestionDigest, TransitionName: b.TransitionName, ToState: b.ToState,
		Reasoning: b.Reasoning, MetaJSON: b.MetaJSON, Usage: b.Usage(), Model: b.Model, ToolCalls: b.ToolCalls, Actor: p.actor(name), If: holds(in.IfMatch),
	})
	if err != nil {
		return nil, err
	}
	text := json.RawMessage(specialist.AppendProposal(nil, after.Key(), proposal))
	after, settled, err := s.answer(ctx, p, after, in.For)
	if err != nil {
		return nil, err
	}
	return &proposeOut{Status: http.StatusCreated, ETag: etag(after), Body: api.Proposed{Proposal: text, Settled: settled}}, nil
}

// needsQuestion refuses a human's word that does not say what it is about.
func needsQuestion(what string) *api.Error {
	return &api.Error{Status: http.StatusPreconditionRequired, Code: "precondition_required", ExitCode: 1,
		Detail: what + " needs roundId and questionDigest, as they were seen", Hint: "the question has them, as roundId and digest: GET /v1/inbox, or the session"}
}

type evaluateOut struct{ Body runner.Consensus }

func (s *Server) evaluate(ctx context.Context, p *Principal, in *params.Session) (*evaluateOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	if at.Withheld("") != "" {
		return nil, forbidden("withheld", "it is shown once a human has ruled", "what was proposed in this round is withheld, and with it what would be decided")
	}
	c, err := tenantOf(ctx).Runner.Evaluate(ctx, at.ID)
	return &evaluateOut{c}, err
}

type arbitrateIn struct {
	params.Session
	params.Wait
	params.Precondition
	Body *api.Arbitrating
}

type ruledOut = sessionAnswer[api.Ruled]

func (s *Server) arbitrate(ctx context.Context, p *Principal, in *arbitrateIn) (*ruledOut, error) {
	at, err := s.session(ctx, p, in.ID, mayDrive)
	if err != nil {
		return nil, err
	}
	r := runner.Ruling{SessionID: at.ID, RoundID: at.Key().ID(), Actor: p.actor(at.Machine().Name()), If: holds(in.IfMatch)}
	if in.Body != nil && in.Body.RoundID != "" {
		r.RoundID = in.Body.RoundID
	}
	a, err := tenantOf(ctx).Runner.Decide(ctx, r)
	if a.Session != nil && !a.Executed && a.Session.Withheld("") != "" {
		if err != nil && s.problem(ctx, err).Code == "set_failed" { // it names the winner
			return nil, forbidden("withheld", "it is shown once a human has ruled", "what was proposed in this round is withheld, and what the arbiter has made of it could not be executed")
		}
		// Whoever is to rule without sight of the proposals would see the arbiter's in this.
		a = runner.Arbitration{ArbitrationID: a.ArbitrationID, SessionID: a.SessionID, RoundID: a.RoundID, Stale: a.Stale, Session: a.Session}
	}
	return s.ruled(ctx, p, a, err, in.For)
}
