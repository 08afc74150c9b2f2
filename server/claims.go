package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// Who is at a question. A claim is advice to others for half an hour, and no lock: it is kept
// beside the sessions, changes no digest, and nobody who may rule is kept from it. Inboxes that
// are followed at this server hear of it as it changes; it is no event of a log, and who was not
// there asks for the question.

func (s *Server) registerClaims() {
	const one = "/v1/inbox/{question}/claim"
	add(s, operation{id: "claim-question", method: http.MethodPut, path: one, summary: "Say that one is at a question; it is advice to others for half an hour", needs: mayRule, errors: []int{409}}, s.claim)
	add(s, operation{id: "unclaim-question", method: http.MethodDelete, path: one, summary: "Say that one is not at a question any more", needs: mayRule, status: http.StatusNoContent}, s.unclaim)
}

type claimIn struct {
	params.Question
	Body *api.Viewer
}

type claimOut struct{ Body *api.Claim }

func (s *Server) claim(ctx context.Context, p *Principal, in *claimIn) (*claimOut, error) {
	at, err := s.asked(ctx, p, in.QuestionID, mayRule)
	if err != nil {
		return nil, err
	}
	named := ""
	if in.Body != nil {
		named = in.Body.SpecialistID
	}
	who, err := s.human(ctx, p, at, named)
	if err != nil {
		return nil, err
	}
	now := s.now()
	c := control.Claim{Tenant: p.Tenant, QuestionID: in.QuestionID, Subject: p.Subject, SpecialistID: string(who), At: now, ExpiresAt: now + control.ClaimLifetime}
	err = s.config.Control.Commit(ctx, control.Changes{Claim: &c})
	if taken, ok := errors.AsType[*control.ClaimedError](err); ok {
		err = &api.Error{Status: http.StatusConflict, Code: "claimed", Detail: taken.Error(), Hint: "a claim is advice only: every human who may rule still may", ExitCode: 1}
	}
	if err != nil {
		return nil, err
	}
	return &claimOut{api.ClaimOf(c)}, s.tellClaim(ctx, p, at, in.QuestionID)
}

type unclaimOut struct{}

func (s *Server) unclaim(ctx context.Context, p *Principal, in *params.Question) (*unclaimOut, error) {
	at, err := s.asked(ctx, p, in.QuestionID, mayRule)
	if err == nil {
		err = s.config.Control.Commit(ctx, control.Changes{Unclaim: &control.Claim{Tenant: p.Tenant, QuestionID: in.QuestionID, Subject: p.Subject}})
	}
	if err != nil {
		return nil, err
	}
	return nil, s.tellClaim(ctx, p, at, in.QuestionID)
}

// tellClaim tells inboxes who is at a question of a session now.
func (s *Server) tellClaim(ctx context.Context, p *Principal, at *session.Session, question string) error {
	now := s.now()
	held, err := s.config.Control.Claims(ctx, p.Tenant, []string{question}, now)
	if err != nil {
		return err
	}
	e := api.InboxEvent{V: 1, Kind: "claim.changed", At: now, QuestionID: question, SessionID: at.ID.String(), RoundID: at.Key().ID(), MachineName: at.Machine().Name()}
	if len(held) > 0 {
		e.Claim = api.ClaimOf(held[0])
	}
	tenantOf(ctx).tell(passing{kind: e.Kind, inbox: true, machine: e.MachineName, event: e, may: func(p *Principal) bool { return p.may(mayPayload, e.MachineName) }})
	return nil
}

// withClaims returns questions with who is at each; with free only those that nobody else is at.
func (s *Server) withClaims(ctx context.Context, p *Principal, questions []runner.Question, free bool) ([]api.Item, error) {
	ids := make([]string, len(questions))
	for i := range questions {
		ids[i] = questions[i].QuestionID
	}
	claims, err := s.config.Control.Claims(ctx, p.Tenant, ids, s.now())
	held := map[string]control.Claim{}
	for _, c := range claims {
		held[c.QuestionID] = c
	}
	items := []api.Item{}
	for _, q := range questions {
		c, claimed := held[q.QuestionID]
		switch {
		case !claimed:
			items = append(items, api.Item{Question: q})
		case !free || c.Subject == p.Subject:
			items = append(items, api.Item{Question: q, Claim: api.ClaimOf(c)})
		}
	}
	return items, err
}
