package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/lab/dryrun"
	"github.com/dialai/dialai/internal/lab/simulate"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// From errors to what a program gets: one table, kinds, and what the engine says of each.
// The code of a problem is that of the kind, but where the engine refuses somebody: there
// it says why (not_a_decider, not_eligible, not_human and the like).

// kinds are the errors that callers can do something about. The first that fits counts.
var kinds = []struct {
	err       error
	status    int
	code      string // "" is the engine's own
	exit      int
	retryable bool
}{
	{runner.ErrForbidden, http.StatusForbidden, "", 1, false},
	{session.ErrNotFound, http.StatusNotFound, "not_found", 1, false},
	{runner.ErrStaleRound, http.StatusConflict, "", 1, false},
	{runner.ErrNotRunning, http.StatusConflict, "not_running", 1, false},
	{session.ErrExists, http.StatusConflict, "exists", 1, false},
	{runner.ErrReviewed, http.StatusConflict, "reviewed", 1, false},
	{session.ErrStale, http.StatusConflict, "conflict", 1, true},
	{runner.ErrUnknownStrategy, http.StatusUnprocessableEntity, "unknown_strategy", 2, false},
	{runner.ErrIllegal, http.StatusUnprocessableEntity, "", 1, false},
	{runner.ErrQuota, http.StatusTooManyRequests, "quota_exceeded", 1, true},
	{backtest.ErrPolicy, http.StatusUnprocessableEntity, "bad_policy", 2, false},
	{dryrun.ErrScript, http.StatusUnprocessableEntity, "bad_script", 2, false},
	{simulate.ErrPanel, http.StatusUnprocessableEntity, "bad_panel", 2, false},
	{session.ErrCursor, http.StatusBadRequest, "bad_cursor", 2, false},
	{session.ErrUnknown, http.StatusServiceUnavailable, "store_unknown", 1, false},
	{session.ErrBusy, http.StatusServiceUnavailable, "store_busy", 1, true},
	{store.ErrFull, http.StatusInsufficientStorage, "store_full", 1, true},
	{store.ErrReadOnly, http.StatusServiceUnavailable, "store_read_only", 1, false},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "overloaded", 1, true},
	{context.Canceled, http.StatusServiceUnavailable, "shutting_down", 1, true},
	{specialist.ErrAccepted, http.StatusAccepted, "accepted", 5, false},
}

// problem says what an error is to a program.
func (s *Server) problem(ctx context.Context, err error) *api.Error {
	if p, ok := errors.AsType[*api.Error](err); ok {
		return p
	}
	p := problemOf(err)
	if t := tenantOf(ctx); t != nil && p.Status == http.StatusInternalServerError { // a file that is gone may read as an empty one
		if gone := cmp.Or(intact(t.Runner.Store()), intact(s.config.Control)); errors.Is(gone, store.ErrReplaced) {
			p, err = problemOf(gone), fmt.Errorf("%w: %w", gone, err)
		}
	}
	if p.Status == http.StatusInternalServerError || slices.Contains([]string{"store_gone", "store_full", "store_read_only"}, p.Code) {
		s.config.Log.Error("fault", "id", requestID(ctx), "error", packs.Redact(err.Error()))
	}
	return p
}

func problemOf(err error) *api.Error {
	if invalid, ok := errors.AsType[*machine.Error](err); ok {
		return &api.Error{Status: http.StatusBadRequest, Code: "invalid_machine", Detail: invalid.Summary(), ExitCode: 2, Problems: problemsOf(invalid.Problems, func(machine.Problem) string { return "error" })}
	}
	if cannot, ok := errors.AsType[*runner.StartError](err); ok {
		p := &api.Error{Status: http.StatusUnprocessableEntity, Code: "cannot_start", Detail: packs.Redact(cannot.Error()), ExitCode: 1, Problems: missing(cannot)}
		if said, ok := errors.AsType[*runner.Error](err); ok && said.Code == session.CodeNoArbiter {
			p.Hint = `declare or register an arbiter, or let firstProposal be it with "defaults": true; with "drive": false the session stands until there is one`
		}
		return p
	}
	if newer, ok := errors.AsType[*session.NewerError](err); ok {
		return &api.Error{Status: http.StatusServiceUnavailable, Code: "newer_version", Detail: newer.Error(), Hint: "a server of that version answers; other sessions go on here", ExitCode: 1, Retryable: true}
	}
	if _, ok := errors.AsType[*session.CorruptError](err); ok {
		return &api.Error{Status: http.StatusInternalServerError, Code: "store_damaged", Detail: "what is stored contradicts itself", Hint: "dialai store verify says what; other sessions go on", ExitCode: 1}
	}
	if at, ok := errors.AsType[*session.ArchivedError](err); ok { // where is nobody's business
		return &api.Error{Status: http.StatusNotFound, Code: "not_found", Detail: "Session " + at.ID + " was archived", Hint: "its log is in another store: ask whoever runs the server", ExitCode: 1}
	}
	var public interface{ Public() string } // where the store is is nobody's business
	errors.As(err, &public)
	if errors.Is(err, store.ErrReplaced) {
		p := &api.Error{Status: http.StatusServiceUnavailable, Code: "store_gone", Detail: store.ErrReplaced.Error(), Hint: "put it back, and start the server again", ExitCode: 1}
		if public != nil { // a database
			p.Detail, p.Hint = public.Public(), "restore it: the server goes on then"
		}
		return p
	}
	for _, k := range kinds {
		if !errors.Is(err, k.err) {
			continue
		}
		p := &api.Error{Status: k.status, Code: k.code, Detail: packs.Redact(err.Error()), ExitCode: k.exit, Retryable: k.retryable}
		if public != nil {
			p.Detail = public.Public()
		}
		if said, ok := errors.AsType[*runner.Error](err); ok {
			p.Code, p.Hint = cmp.Or(k.code, said.Code), packs.Redact(said.Hint)
			for _, d := range said.Details {
				p.Problems = append(p.Problems, api.Problem{Message: packs.Redact(d)})
			}
		}
		if stale, ok := errors.AsType[*runner.StaleError](err); ok {
			p.Code, p.Question, p.Reasons = stale.Refusal.Code, &stale.Question, stale.Changed
		}
		if k.err == runner.ErrIllegal && p.Code == "" {
			p.Code = "illegal_transition"
		}
		return p
	}
	if said, ok := errors.AsType[*runner.Error](err); ok {
		return &api.Error{Status: http.StatusUnprocessableEntity, Code: said.Code, Detail: packs.Redact(said.Message), Hint: packs.Redact(said.Hint), ExitCode: 1}
	}
	return internalProblem()
}

// missing returns what keeps a session from its start, each with its place in the definition, if
// it has one.
func missing(cannot *runner.StartError) []api.Problem {
	list := make([]api.Problem, len(cannot.Problems))
	for i, err := range cannot.Problems {
		if d, ok := errors.AsType[*runner.DanglingError](err); ok {
			list[i] = problemsOf([]machine.Problem{d.Problem}, func(machine.Problem) string { return "error" })[0]
		} else if u, ok := errors.AsType[*runner.UnpricedError](err); ok {
			list[i] = problemsOf([]machine.Problem{u.Problem}, func(machine.Problem) string { return "error" })[0]
		} else {
			list[i] = notSent(err)
		}
	}
	return list
}

func internalProblem() *api.Error {
	return &api.Error{Status: http.StatusInternalServerError, Code: "internal", Detail: "something went wrong here; the log of the server has it under the request's id", ExitCode: 1}
}

// problemsOf returns problems of a definition for programs.
func problemsOf(list []machine.Problem, level func(machine.Problem) string) []api.Problem {
	out := make([]api.Problem, len(list))
	for i, p := range list {
		severity := level(p)
		out[i] = api.Problem{Pointer: p.Path, Line: p.Line, Column: p.Column, Severity: severity, Code: p.Code, Message: p.Message, Hint: p.Hint}
	}
	return out
}

// forbidden is the refusal of something that the caller may not do.
func forbidden(code, hint, format string, args ...any) *api.Error {
	return &api.Error{Status: http.StatusForbidden, Code: code, Detail: fmt.Sprintf(format, args...), Hint: hint, ExitCode: 1}
}

func bad(code, format string, args ...any) *api.Error {
	return &api.Error{Status: http.StatusBadRequest, Code: code, Detail: fmt.Sprintf(format, args...), ExitCode: 2}
}

func orNobody(ids []string) string { return cmp.Or(strings.Join(ids, ", "), "nobody") }

// requestProblem is what the library says of a request that does not fit its operation.
func requestProblem(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
	p := &api.Error{Status: status, Code: "bad_request", Detail: message, ExitCode: 2}
	switch status {
	case http.StatusUnprocessableEntity:
		p.Status = http.StatusBadRequest
	case http.StatusRequestEntityTooLarge:
		p.Code, p.Detail = "too_large", "the body is larger than 1 MiB"
	case http.StatusUnsupportedMediaType:
		p.Code, p.Hint = "unsupported_media_type", "bodies are application/json"
	case http.StatusNotAcceptable:
		p.Code, p.Hint = "not_acceptable", "answers are application/json"
	case http.StatusInternalServerError:
		p = internalProblem()
		errs = nil
	}
	for _, err := range errs {
		if d, ok := err.(huma.ErrorDetailer); ok {
			at := d.ErrorDetail()
			where := strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(strings.TrimPrefix(at.Location, "body"))
			p.Problems = append(p.Problems, api.Problem{Pointer: where, Message: at.Message, Hint: meant(ctx, where)})
			p.Hint = cmp.Or(p.Hint, p.Problems[len(p.Problems)-1].Hint)
			continue
		}
		p.Problems = append(p.Problems, api.Problem{Message: err.Error()})
	}
	if len(p.Problems) > 0 {
		p.Detail = strings.TrimSpace(p.Problems[0].Pointer + ": " + p.Problems[0].Message)
		p.Detail = strings.TrimPrefix(p.Detail, ": ")
	}
	if ctx != nil {
		finish(ctx.Context(), p)
	}
	return p
}

// schemasKey is where the metadata of an operation have the schemas that its body refers to.
const schemasKey = "schemas"

// meant returns the hint for a member of a body or a parameter that an operation does not know,
// such as /raise/0/limt or query/limt; "" if it knows it, or nothing is like it.
func meant(ctx huma.Context, where string) string {
	if ctx == nil {
		return ""
	}
	var known []string
	op, path := ctx.Operation(), strings.Split(where, "/")
	last := len(path) - 1
	switch all, _ := op.Metadata[schemasKey].(huma.Registry); {
	case path[0] == "query":
		for _, param := range op.Parameters {
			if param.In == path[0] {
				known = append(known, param.Name)
			}
		}
	case path[0] == "" && last > 0 && all != nil && op.RequestBody != nil:
		known = slices.Collect(maps.Keys(membersAt(op.RequestBody.Content["application/json"].Schema, path[1:last], all)))
	}
	if slices.Contains(known, path[last]) {
		return ""
	}
	return machine.DidYouMean(path[last], known)
}

// membersAt returns the members that an object may have which is at the path in what a schema
// describes.
func membersAt(schema *huma.Schema, path []string, all huma.Registry) map[string]*huma.Schema {
	if schema != nil && schema.Ref != "" {
		schema = all.SchemaFromRef(schema.Ref)
	}
	switch {
	case schema == nil:
		return nil
	case len(path) == 0:
		return schema.Properties
	case schema.Items != nil:
		return membersAt(schema.Items, path[1:], all)
	}
	return membersAt(schema.Properties[path[0]], path[1:], all)
}

// finish adds to a problem what all have.
func finish(ctx context.Context, p *api.Error) {
	p.Type, p.Title, p.RequestID = "/problems/"+p.Code, http.StatusText(p.Status), requestID(ctx)
	if p.ExitCode == 0 {
		p.ExitCode = 1
	}
}

// writeProblem answers with a problem where no operation does.
func writeProblem(w http.ResponseWriter, r *http.Request, p *api.Error) {
	finish(r.Context(), p)
	h := w.Header()
	for name, values := range headersOf(p) {
		if h.Get(name) == "" {
			h[name] = values
		}
	}
	h.Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = marshal(w, p) // whoever has gone does not read it
}

// explained is what the page of a code says.
var explained = map[string]string{
	"bad_request":            "The request does not fit the operation: a member is missing, misspelt or of another type. problems says where.",
	"bad_cursor":             "The cursor is not one of this list. Ask for the first page again.",
	"bad_host":               "The server does not go by the name in the request. Start it with --host NAME.",
	"invalid_machine":        "The definition has errors. problems says where, and what to do.",
	"unauthenticated":        "No key was sent that is known here.",
	"forbidden":              "The key does not allow this.",
	"not_found":              "There is nothing of that name or id, or none that the key may see.",
	"bad_callback":           "The token is not that of the address, or nothing is asked there.",
	"bad_signature":          "The answer is not signed with the secret of the specialist, or at another time.",
	"bad_answer":             "The answer cannot be read. The token is still good.",
	"illegal_answer":         "The answer, or the choice of a ruling, is none of the transitions of the state. A service's answer is recorded, and its token used up.",
	"callback_used":          "The question was answered already, by another answer.",
	"round_over":             "Nobody waits for the answer any more. What it says of its cost is recorded.",
	"stale_round":            "The round is over. question has the one that is open now: look at it, then decide.",
	"stale_question":         "What was to be decided has changed since it was looked at. question has it as it is now.",
	"not_running":            "The session has ended, or it was cancelled and asks nobody until it is resumed.",
	"guard_refused":          "A guard of the machine stops this. reasons says which, and why.",
	"stale_sequence":         "The session has changed since the state that If-Match names.",
	"stale_machine":          "Another version of the machine was published since. Look at it, then send the request with its ETag.",
	"withheld":               "What was proposed is withheld until a human has ruled, or reviewed the round.",
	"claimed":                "Somebody else has claimed the question. A claim is advice only: every human who may rule still may.",
	"invalid_guards":         "The guards have errors. problems says where, and what to do.",
	"key_revoked":            "The key is revoked.",
	"key_expired":            "The key has expired.",
	"address_not_allowed":    "Nothing is sent to that address: it is private, or not reached by https. DIALAI_WEBHOOK_ALLOW, where the server runs, allows others.",
	"webhook_off":            "The webhook is switched off. Switch it on first.",
	"too_many_webhooks":      "There are as many webhooks as there may be. Delete one.",
	"too_many_jobs":          "As many jobs wait as may. Wait until one is done, or cancel one.",
	"job_not_done":           "The job has not ended yet. GET it with wait=30s until it has.",
	"job_failed":             "The job has failed, so there is no result. The job says why.",
	"job_cancelled":          "The job was cancelled, so there is no result.",
	"job_ended":              "The job has ended. There is nothing to cancel.",
	"bad_policy":             "The policy cannot be tried: it contradicts itself, or the machine.",
	"bad_panel":              "The panel does not fit the machine.",
	"promises_nothing":       "The policy that was tried promises nothing, so there is nothing to adopt.",
	"exceeded":               "The back-test exceeds a limit that was set for it, so nothing of it is adopted.",
	"driven":                 "Sessions of the store are carried on. Rebuild it where nobody does: dialai serve --drive off.",
	"memory_store":           "The store is in memory: there is no file to check.",
	"not_implemented":        "This is not in this version.",
	"precondition_required":  "The request has to say what it is about: the round and the digest of the question, as they were seen.",
	"illegal_transition":     "The transition cannot be chosen here. The question lists those that can.",
	"rate_limited":           "Too many requests at a time. Retry-After says in how many seconds there is room again.",
	"too_many_streams":       "The key has as many streams open as it may. End one of them.",
	"too_slow":               "The body of the request did not come in time.",
	"too_large":              "The body is larger than 1 MiB, or a part of it larger than it may be: detail says what.",
	"not_through_proxy":      "The server is behind a proxy, and the request did not come through it.",
	"token_not_bound":        "A variable with a token would go to a host that nobody has bound it to. Who runs the server does that: tokens in the file of --config.",
	"tenant_required":        "The server has several tenants, and the request does not say of which it is. Name one in the header Dialai-Tenant.",
	"cannot_start":           "Something that the machine needs is missing here: a function, a variable, an address that may be called.",
	"unknown_strategy":       "The machine names a strategy that is not known here.",
	"quota_exceeded":         "The tenant may not have more at a time.",
	"store_unknown":          "The server of the store did not answer: what was asked for is done, or it is not. Look first, or send the request again with the same Idempotency-Key.",
	"store_busy":             "Another process holds the store, or its server cannot be reached. Try again.",
	"store_full":             "The disk of the store is full. Nothing was changed.",
	"store_read_only":        "The store cannot be written.",
	"store_gone":             "The store was removed or replaced while the server ran. Nothing was changed: put its file back, and start the server again, or restore its database.",
	"newer_version":          "A newer version of dialai has written to this session. Ask a server of that version. Other sessions go on.",
	"store_damaged":          "What is stored of this contradicts itself. Other sessions go on.",
	"internal":               "A fault of the server. Its log has it under the request's id.",
	"unsupported_media_type": "Bodies are application/json.",
}

var problemPage = template.Must(template.New("problem").Parse(`<!doctype html><meta charset="utf-8"><title>{{.Code}}</title><h1>{{.Code}}</h1><p>{{.Text}}</p>
`))

// explainProblem is the page of a code.
func explainProblem(w http.ResponseWriter, r *http.Request) {
	code := r.PathValue("code")
	text := cmp.Or(explained[code], "The engine refused this. detail and hint of the answer say why, and what to do.")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = problemPage.Execute(w, struct{ Code, Text string }{code, text}) // whoever has gone does not read it
}
