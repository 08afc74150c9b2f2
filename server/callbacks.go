package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
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
//
// A token is looked for in a log, so wrong ones are bounded by their address before that. Right
// ones are not: a service may have much to answer. An answer with a right token is in the audit
// log before anything comes of it, as every request that changes something; of wrong ones their
// number is.

// callbackRefused is all that a stranger learns.
var callbackRefused = api.Error{Status: http.StatusForbidden, Code: "bad_callback", Detail: "this callback is not valid", Hint: "the address is Dialai-Callback-Url, and the token Dialai-Callback-Token, of one request"}

const callbackPath = "/v1/callbacks/{callback}"

// describeCallback puts into the document what is no operation of anybody with a key.
func (s *Server) describeCallback() {
	doc := s.api.OpenAPI()
	doc.Components.SecuritySchemes["callback"] = &huma.SecurityScheme{Type: "http", Scheme: "bearer", Description: "the Dialai-Callback-Token that came with the question"}
	body := func(of reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: doc.Components.Schemas.Schema(of, true, "")}}
	}
	op := &huma.Operation{
		OperationID: "answer-callback", Method: http.MethodPost, Path: callbackPath, Summary: "Take the answer of a service that comes later",
		Description: "The same answer may be sent again, and counts once. With a secret it is signed as docs/webhooks.md says.",
		Security:    []map[string][]string{{"callback": {}}},
		Parameters:  []*huma.Param{{Name: "callback", In: "path", Required: true, Description: "the end of Dialai-Callback-Url", Schema: &huma.Schema{Type: huma.TypeString}}},
		RequestBody: &huma.RequestBody{Required: true, Content: body(typeOf[api.LateAnswer]())},
		Responses:   map[string]*huma.Response{"200": {Description: "OK", Content: body(typeOf[api.Answered]())}},
	}
	problem := map[string]*huma.MediaType{(*api.Error)(nil).ContentType(""): {Schema: doc.Components.Schemas.Schema(typeOf[api.Error](), true, "")}}
	for _, status := range append(slices.Clip(anyError), http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity, http.StatusInsufficientStorage) {
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: problem}
	}
	doc.AddOperation(op)
}

// isCallback reports whether a path is one to which answers are sent, with or without a tenant.
func isCallback(path string) bool {
	if rest, ok := strings.CutPrefix(path, "/t/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); !ok {
			return false
		}
		path = "/" + rest
	}
	return strings.HasPrefix(path, "/v1/callbacks/")
}

func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	t := s.tenants[cmp.Or(r.PathValue("tenant"), s.home)]
	r = r.WithContext(context.WithValue(r.Context(), tenantKey{}, t))
	ctx, id, token := r.Context(), r.PathValue("callback"), bearer(r)
	if wait := s.limits.guesses(r); wait > 0 {
		s.limitMet(r, wait, "stranger")
		s.refuseCallback(w, r, tooMany(w, wait))
		return
	}
	var about *runner.Called
	err := error(runner.ErrForbidden)
	if t != nil {
		about, err = t.Runner.Called(ctx, id, token)
	}
	if errors.Is(err, runner.ErrForbidden) {
		s.limits.guessed(r)
		s.noteRefused(r)
		s.config.Metrics.AuthFailed(ctx, token != "")
		refused := callbackRefused
		s.refuseCallback(w, r, &refused)
		return
	}
	if err != nil {
		s.refuseCallback(w, r, s.problem(ctx, err))
		return
	}
	caller := &Principal{Tenant: t.Name, Subject: "specialist:" + about.SpecialistID, Method: "callback"}
	entry := s.entry(s.mux, r, caller, nil)
	entry.RoundID = about.Key.ID()
	if err := s.config.Control.Commit(ctx, control.Changes{Entries: []control.Entry{entry}}); err != nil {
		s.refuseCallback(w, r, s.problem(ctx, err))
		return
	}
	kept := &keptWriter{ResponseWriter: w}
	defer func() { s.concluded(r, caller, kept, entry, control.Changes{}) }()
	out, problem := s.answeredLater(r, about, id, token)
	switch {
	case problem != nil:
		s.refuseCallback(kept, r, problem)
	case out.Repeated:
		s.config.Metrics.Callback(ctx, "repeated")
	default:
		s.config.Metrics.Callback(ctx, "accepted")
	}
	if problem == nil {
		kept.Header().Set("Content-Type", "application/json")
		_ = marshal(kept, out) // whoever has gone does not read it
	}
}

// refuseCallback answers with a problem.
func (s *Server) refuseCallback(w http.ResponseWriter, r *http.Request, problem *api.Error) {
	s.config.Metrics.Callback(r.Context(), problem.Code)
	writeProblem(w, r, problem)
}

// answeredLater reads an answer and hands it in.
func (s *Server) answeredLater(r *http.Request, about *runner.Called, id, token string) (*api.Answered, *api.Error) {
	body, problem := readBody(r)
	if problem != nil {
		return nil, problem
	}
	if err := s.signed(about, r, body); err != nil {
		return nil, &api.Error{Status: http.StatusUnauthorized, Code: "bad_signature", Detail: err.Error(), Hint: "sign as docs/webhooks.md says, with the key of the specialist"}
	}
	answer, err := webhook.ReadAnswer(body)
	if err != nil {
		return nil, &api.Error{Status: http.StatusBadRequest, Code: "bad_answer", Detail: err.Error(), Hint: "the token is still good: send an answer that can be read", ExitCode: 2}
	}
	return s.answered(r, about, id, token, answer)
}

// answered hands an answer in, once.
func (s *Server) answered(r *http.Request, about *runner.Called, id, token string, answer specialist.Answer) (*api.Answered, *api.Error) {
	ctx := r.Context()
	used := &api.Error{Status: http.StatusConflict, Code: "callback_used", Detail: "this question was answered already, by another answer", ExitCode: 1}
	if !about.Used {
		p, after, err := tenantOf(ctx).Runner.Callback(ctx, id, token, answer)
		if err == nil {
			return &api.Answered{ProposalID: about.Key.ProposalID(p.Arrival), RoundID: about.Key.ID(), Settled: isSettled(after)}, nil
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
		if about, err = tenantOf(ctx).Runner.Called(ctx, id, token); err != nil { // another one was faster
			return nil, s.problem(ctx, err)
		}
	}
	if !about.Repeats(answer) {
		return nil, used
	}
	return &api.Answered{ProposalID: about.Key.ProposalID(about.Answered.Arrival), RoundID: about.Key.ID(), Settled: isSettled(about.Session), Repeated: true}, nil
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
	registered, err := tenantOf(r.Context()).Runner.Store().Roster(r.Context(), m.Name())
	if err != nil {
		return nil, err
	}
	for i := range registered.Specialists {
		all = append(all, registered.Specialists[i].Specialist)
	}
	return slices.DeleteFunc(all, func(sp machine.Specialist) bool { return string(sp.SpecialistID) != about.SpecialistID }), nil
}
