package server

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// Answers that come later: a service that was asked has said so, and sends its answer to the
// address that it was given, with the token that came with it. That token is all it needs; it
// is looked at first, and then, where the machine names a secret, the signature. A service that
// does not know whether its answer has arrived sends it again: the same one is taken twice and
// counts once. Where the round is over, what the answer says of its cost is recorded.

// callbackRefused is all that a stranger learns.
var callbackRefused = api.Error{Status: http.StatusForbidden, Code: "bad_callback", Detail: "this callback is not valid", Hint: "the address is Dialai-Callback-Url, and the token Dialai-Callback-Token, of one request"}

// A calledBack is the answer to an answer that came later.
type calledBack struct {
	ProposalID string `json:"proposalId"`
	RoundID    string `json:"roundId"`
	Settled    bool   `json:"settled"`
	Repeated   bool   `json:"repeated,omitempty"`
}

func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	ctx, id, token := r.Context(), r.PathValue("callback"), bearer(r)
	about, err := s.config.Runner.Called(ctx, id, token)
	if errors.Is(err, runner.ErrForbidden) {
		if wait := s.limits.stranger(r); wait > 0 {
			writeProblem(w, r, tooMany(w, wait))
			return
		}
		refused := callbackRefused
		writeProblem(w, r, &refused)
		return
	}
	if err != nil {
		writeProblem(w, r, s.problem(ctx, err))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) > maxBody {
		writeProblem(w, r, &api.Error{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: "the body is larger than 1 MiB, or was cut off", ExitCode: 2})
		return
	}
	if err := s.signed(about, r, body); err != nil {
		writeProblem(w, r, &api.Error{Status: http.StatusUnauthorized, Code: "bad_signature", Detail: err.Error(), Hint: "sign as docs/webhooks.md says, with the key of the specialist"})
		return
	}
	answer, err := webhook.ReadAnswer(body)
	if err != nil {
		writeProblem(w, r, &api.Error{Status: http.StatusBadRequest, Code: "bad_answer", Detail: err.Error(), Hint: "the token is still good: send an answer that can be read", ExitCode: 2})
		return
	}
	out, problem := s.answered(r, about, id, token, answer)
	if problem != nil {
		writeProblem(w, r, problem)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = marshal(w, out) // whoever has gone does not read it
}

// answered hands an answer in, once.
func (s *Server) answered(r *http.Request, about *runner.Called, id, token string, answer specialist.Answer) (*calledBack, *api.Error) {
	ctx := r.Context()
	used := &api.Error{Status: http.StatusConflict, Code: "callback_used", Detail: "this question was answered already, by another answer", ExitCode: 1}
	if !about.Used {
		p, after, err := s.config.Runner.Callback(ctx, id, token, answer)
		if err == nil {
			return &calledBack{ProposalID: about.Key.ProposalID(p.Arrival), RoundID: about.Key.ID(), Settled: isSettled(after)}, nil
		}
		switch {
		case errors.Is(err, runner.ErrStaleRound):
			return nil, &api.Error{Status: http.StatusGone, Code: "round_over", Detail: "nobody waits for this answer any more; what it says of its cost is recorded", ExitCode: 1}
		case errors.Is(err, runner.ErrIllegal):
			problem := s.problem(ctx, err)
			problem.Status, problem.Code = http.StatusUnprocessableEntity, "illegal_answer"
			return nil, problem
		case !errors.Is(err, runner.ErrForbidden):
			return nil, s.problem(ctx, err)
		}
		if about.Over {
			return nil, &api.Error{Status: http.StatusGone, Code: "round_over", Detail: "nobody waits for this answer any more", ExitCode: 1}
		}
		if about, err = s.config.Runner.Called(ctx, id, token); err != nil { // another one was faster
			return nil, s.problem(ctx, err)
		}
	}
	if !about.Repeats(answer) {
		return nil, used
	}
	return &calledBack{ProposalID: about.Key.ProposalID(about.Answered.Arrival), RoundID: about.Key.ID(), Settled: isSettled(about.Session), Repeated: true}, nil
}

// signed checks the signature of a callback: it must have one if the specialist has a secret.
func (s *Server) signed(about *runner.Called, r *http.Request, body []byte) error {
	of, err := s.calledSpecialists(r, about)
	if err != nil {
		return errors.New("it cannot be found out who is to sign")
	}
	h := r.Header
	signature, secret, token := h.Get("Webhook-Signature"), "", ""
	for i := range of {
		secret, token = cmp.Or(secret, of[i].WebhookSecretName), cmp.Or(token, of[i].WebhookTokenName)
	}
	switch {
	case secret == "" && (signature == "" || token == ""):
		return nil // the callback's own token is what there is
	case signature == "":
		return errors.New("the specialist has a secret, and the answer is not signed")
	case s.config.Variable == nil:
		return errors.New("this server knows no secrets")
	}
	key := []byte(s.config.Variable(token))
	if secret != "" {
		key, err = webhook.Key(s.config.Variable(secret))
	}
	if err != nil || len(key) == 0 {
		return errors.New("the secret of the specialist is not set here")
	}
	return webhook.Verify(key, h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), signature, body, time.Now())
}

// calledSpecialists returns who may be meant by the id of who was asked: the definition and the
// roster say it.
func (s *Server) calledSpecialists(r *http.Request, about *runner.Called) (of []machine.Specialist, err error) {
	m := about.Session.Machine()
	all := slices.Clone(m.Specialists())
	for _, at := range m.States() {
		all = append(all, at.Roster...)
	}
	registered, err := s.config.Runner.Store().Roster(r.Context(), m.Name())
	if err != nil {
		return nil, err
	}
	for i := range registered.Specialists {
		all = append(all, registered.Specialists[i].Specialist)
	}
	return slices.DeleteFunc(all, func(sp machine.Specialist) bool { return string(sp.SpecialistID) != about.SpecialistID }), nil
}
