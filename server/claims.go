package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
)

// Who is at a question. A claim is advice to others for half an hour, and no lock: it is kept
// beside the sessions, changes no digest, and nobody who may rule is kept from it.

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
	return &claimOut{api.ClaimOf(c)}, err
}

type unclaimOut struct{}

func (s *Server) unclaim(ctx context.Context, p *Principal, in *params.Question) (*unclaimOut, error) {
	if _, err := s.asked(ctx, p, in.QuestionID, mayRule); err != nil {
		return nil, err
	}
	return nil, s.config.Control.Commit(ctx, control.Changes{Unclaim: &control.Claim{Tenant: p.Tenant, QuestionID: in.QuestionID, Subject: p.Subject}})
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
