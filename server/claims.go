package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// Who is at a question, or is to be. A claim is advice to others for half an hour, and no lock: it
// is kept beside the sessions, changes no digest, and nobody who may rule is kept from it. Inboxes
// that are followed at this server hear of it as it changes; it is no event of a log, and who was
// not there asks for the question.
//
// Who may rule or drive may assign a question to another human who decides there, for a week. It
// is then that human's, who may pass it on; whoever assigned it takes it back. No claim takes its
// place, so that a page that says who looks at it undoes nothing.

func (s *Server) registerClaims() {
	const one = "/v1/inbox/{question}/claim"
	add(s, operation{id: "claim-question", method: http.MethodPut, path: one, summary: "Say that one is at a question, or that another human is to be; it is advice to others, for half an hour or a week", needs: mayRule, or: mayDrive, errors: []int{409, 422}}, s.claim)
	add(s, operation{id: "unclaim-question", method: http.MethodDelete, path: one, summary: "Say that one is not at a question any more, or that whom one has named is not to be", needs: mayRule, or: mayDrive, status: http.StatusNoContent}, s.unclaim)
}

// claimable returns the session of an open question that the caller may claim, or only assign.
func (s *Server) claimable(ctx context.Context, p *Principal, questionID string, only bool) (*session.Session, error) {
	at, err := s.asked(ctx, p, questionID, mayRead)
	if err == nil && !p.may(mayRule, at.Machine().Name()) && !(only && p.may(mayDrive, at.Machine().Name())) {
		err = mayNot(p, mayRule, at.Machine().Name())
	}
	return at, err
}

type claimIn struct {
	params.Question
	Body *api.Claiming
}

type claimOut struct{ Body *api.Claim }

func (s *Server) claim(ctx context.Context, p *Principal, in *claimIn) (*claimOut, error) {
	b := api.Claiming{}
	if in.Body != nil {
		b = *in.Body
	}
	at, err := s.claimable(ctx, p, in.QuestionID, b.For != "")
	if err != nil {
		return nil, err
	}
	now := s.now()
	c := control.Claim{Tenant: p.Tenant, QuestionID: in.QuestionID, Subject: p.Subject, At: now, ExpiresAt: now + control.ClaimLifetime, Note: b.Note}
	if err := s.claimFor(ctx, p, at, b, &c); err != nil {
		return nil, err
	}
	err = s.config.Control.Commit(ctx, control.Changes{Claim: &c})
	taken, held := errors.AsType[*control.ClaimedError](err)
	switch {
	case held && !c.Assigned && taken.Claim.Assigned && taken.Claim.SpecialistID == c.SpecialistID:
		return &claimOut{api.ClaimOf(taken.Claim)}, nil // it is theirs as it stands
	case held:
		return nil, &api.Error{Status: http.StatusConflict, Code: "claimed", Detail: taken.Error(), Hint: "a claim is advice only: every human who may rule still may", ExitCode: 1}
	case err != nil:
		return nil, err
	}
	return &claimOut{api.ClaimOf(c)}, s.tellClaim(ctx, p, at, in.QuestionID)
}

// claimFor says whose a claim is.
func (s *Server) claimFor(ctx context.Context, p *Principal, at *session.Session, b api.Claiming, c *control.Claim) error {
	if b.For == "" {
		who, err := s.human(ctx, p, at, b.SpecialistID)
		c.SpecialistID, c.As = string(who), string(who)
		return err
	}
	as, err := p.viewer(at.Machine().Name(), b.SpecialistID)
	if err != nil {
		return err
	}
	humans, _, err := tenantOf(ctx).Runner.Humans(ctx, at)
	if err != nil {
		return err
	}
	if !slices.Contains(humans, b.For) {
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: "not_a_decider", Detail: strconv.Quote(b.For) + " does not decide in state " + at.State.Name, Hint: "for may be " + orNobody(humans), ExitCode: 1}
	}
	if c.SpecialistID, c.As = b.For, string(as); b.For != c.As {
		c.Assigned, c.ExpiresAt = true, c.At+control.AssignmentLifetime
	}
	return nil
}

type unclaimOut struct{}

func (s *Server) unclaim(ctx context.Context, p *Principal, in *params.Question) (*unclaimOut, error) {
	at, err := s.claimable(ctx, p, in.QuestionID, true)
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

// withClaims returns questions with who is at each, as a human sees them; with free only those
// that nobody else is at or is to be.
func (s *Server) withClaims(ctx context.Context, p *Principal, questions []runner.Question, viewer machine.SpecialistID, free bool) ([]api.Item, error) {
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
		case !free || !c.Assigned && c.Subject == p.Subject || p.is(c.SpecialistID, q.MachineName, viewer):
			items = append(items, api.Item{Question: q, Claim: api.ClaimOf(c)})
		}
	}
	return items, err
}

// is reports whether the principal acts as a human, in the sessions of a machine or as whom it looks.
func (p *Principal) is(human, machineName string, viewer machine.SpecialistID) bool {
	return human != "" && (human == string(viewer) || slices.Contains(p.humans(machineName), human))
}
