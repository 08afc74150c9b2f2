package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Each operation is declared once: its route, what it takes and gives, and whose permission it
// needs. From that come the handler, its part of the OpenAPI document and the checks that precede
// the handler.

// An operation is a route and what it needs.
type operation struct {
	id, method, path string
	summary          string
	needs            permission
	or               permission // is enough, too; "" is none
	status           int        // of success; 0 means 200
	errors           []int
	also             map[int]string // other answers without a problem, and what they mean
	media            []string       // of answers that are no JSON, or not only
	json             reflect.Type   // what those of them are that are JSON
}

// responses describes what is answered without a problem, as far as the library cannot see it.
func (o *operation) responses(schemas huma.Registry) map[string]*huma.Response {
	list := map[string]*huma.Response{}
	for status, means := range o.also {
		list[strconv.Itoa(status)] = &huma.Response{Description: means}
	}
	if len(o.media) > 0 {
		content := map[string]*huma.MediaType{}
		for _, m := range o.media {
			content[m] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
			if m == "application/json" {
				content[m].Schema = schemas.Schema(o.json, true, "")
			}
		}
		list["200"] = &huma.Response{Content: content}
	}
	return list
}

// parameters describes what every request of the kind may say beside what its operation takes.
func (o *operation) parameters() []*huma.Param {
	if o.method != http.MethodPost {
		return nil
	}
	shortest, longest := 1, 255
	return []*huma.Param{{Name: "Idempotency-Key", In: "header", Description: "a text of visible ASCII that no other request has: sent again with it within a day, the request does nothing twice",
		Schema: &huma.Schema{Type: huma.TypeString, MinLength: &shortest, MaxLength: &longest}}}
}

// anyError are the statuses of problems that every operation may come to.
var anyError = []int{400, 401, 403, 404, 406, 408, 413, 414, 415, 421, 429, 431, 500, 503}

// add registers an operation. Whoever may do nothing of the kind with any machine gets no
// further; with which machine it is about, handle asks once it knows.
func add[I, O any](s *Server, o operation, handle func(ctx context.Context, p *Principal, in *I) (*O, error)) {
	s.needs[o.id] = o.needs
	if _, means := reflect.TypeFor[I]().FieldByName("IfMatch"); means { // a state that may be gone
		o.errors = append(slices.Clip(o.errors), http.StatusPreconditionFailed)
	}
	huma.Register(s.api, huma.Operation{
		OperationID: o.id, Method: o.method, Path: o.path, Summary: o.summary, DefaultStatus: o.status,
		MaxBodyBytes: maxBody, BodyReadTimeout: 30 * time.Second,
		Errors:    append(slices.Clip(anyError), o.errors...),
		Responses: o.responses(s.api.OpenAPI().Components.Schemas), Parameters: append(inTenant(), o.parameters()...),
		Security: []map[string][]string{{"key": {}}},
		Metadata: map[string]any{schemasKey: s.api.OpenAPI().Components.Schemas},
	}, func(ctx context.Context, in *I) (*O, error) {
		p := callerOf(ctx)
		if p == nil {
			return nil, s.fail(ctx, ErrUnauthenticated)
		}
		if !p.may(o.needs, "") && (o.or == "" || !p.may(o.or, "")) {
			return nil, s.fail(ctx, mayNot(p, o.needs, ""))
		}
		out, err := handle(ctx, p, in)
		if err == nil {
			err = p.note()
		}
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		return out, nil
	})
}

// fail turns an error into the answer that says it.
func (s *Server) fail(ctx context.Context, err error) error {
	p := s.problem(ctx, err)
	finish(ctx, p)
	return huma.ErrorWithHeaders(p, headersOf(p))
}

// headersOf returns the headers of a refusal: of one that may succeed later, when to try again.
func headersOf(p *api.Error) http.Header {
	if !p.Retryable {
		return nil
	}
	return http.Header{"Retry-After": {"1"}}
}

func mayNot(p *Principal, do permission, machineName string) *api.Error {
	of := ""
	if machineName != "" {
		of = fmt.Sprintf(" with machine %q", machineName)
	}
	return forbidden("forbidden", "this needs the permission "+string(do)+"; GET /v1 lists those of the key", "%s may not do this%s", p.Subject, of)
}

// A body that answers with a session.
type sessionAnswer[T any] struct {
	Status   int
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Body     T
}

// register adds all operations.
func (s *Server) register() {
	add(s, operation{id: "about", method: http.MethodGet, path: "/v1", summary: "What this server is, and what the caller may do", needs: mayRead}, s.about)
	s.registerMachines()
	s.registerSessions()
	s.registerQuestions()
	s.registerStreams()
	s.registerAdmin()
	s.registerWebhooks()
	s.registerCheck()
	s.registerDryRuns()
	s.registerJobs()
}

type aboutAnswer struct{ Body api.About }

func (s *Server) about(_ context.Context, p *Principal, _ *struct{}) (*aboutAnswer, error) {
	humans := append([]string{}, p.humans("")...)
	if p.Anybody {
		humans = []string{"*"}
	}
	return &aboutAnswer{api.About{
		Version: s.config.Version, Drives: s.config.Driver != nil,
		Caller: api.Caller{Subject: p.Subject, Name: p.Name, Method: p.Method, Tenant: p.Tenant, Permissions: p.permissions(), Humans: humans},
		Limits: api.Limits{BodyBytes: maxBody, WaitMsec: s.config.WaitMax.Milliseconds(), PageItems: maxPage},
	}}, nil
}

// session returns a session that the caller may do something with. One that they may not
// even see is not found.
func (s *Server) session(ctx context.Context, p *Principal, id string, do permission) (*session.Session, error) {
	unknown := &session.NotFoundError{What: "Session", ID: id}
	key, err := session.ParseID(id)
	if err != nil {
		return nil, unknown
	}
	at, err := tenantOf(ctx).Runner.Session(ctx, key)
	archived, _ := errors.AsType[*session.ArchivedError](err)
	switch {
	case archived != nil && !p.may(mayRead, archived.MachineName), unread(err) && !mayKnow(ctx, p, id):
		return nil, unknown
	case err != nil:
		return nil, err
	case !p.may(mayRead, at.Machine().Name()):
		return nil, unknown
	case !p.may(do, at.Machine().Name()):
		return nil, mayNot(p, do, at.Machine().Name())
	}
	return at, nil
}

// unread reports whether an error says that a session is there, and cannot be read: it is damaged, or of a newer version.
func unread(err error) bool { return errors.As(err, new(*session.CorruptError)) }

// mayKnow reports whether the caller may be told that there is a session of a full id, which cannot be read itself: what lists say of
// it names its machine.
func mayKnow(ctx context.Context, p *Principal, id string) bool {
	list, err := tenantOf(ctx).Runner.Sessions(ctx, session.ListQuery{ID: strings.ToLower(id), Limit: 1})
	if err != nil || len(list) == 0 {
		return p.everywhere(mayRead)
	}
	return p.may(mayRead, list[0].MachineName)
}

// holds returns what a write asks of the session that it changes, nil if nothing.
func holds(ifMatch string) func(*session.Session) error {
	if ifMatch == "" || ifMatch == "*" {
		return nil
	}
	return func(at *session.Session) error {
		if etag(at) == ifMatch {
			return nil
		}
		return &api.Error{Status: http.StatusPreconditionFailed, Code: "stale_sequence", Sequence: at.Sequence, ExitCode: 1,
			Detail: fmt.Sprintf("the session has changed: its newest event is %d", at.Sequence), Hint: "look at it again, then send the request with its new ETag"}
	}
}

// seen refuses a write on a session that has changed since the caller has seen it, where what
// is done looks at the session anew: a step, a run, a fork, a look.
func seen(at *session.Session, ifMatch string) error {
	if check := holds(ifMatch); check != nil {
		return check(at)
	}
	return nil
}

// etag returns the version of a session as it is told.
func etag(at *session.Session) string { return strconv.Quote(strconv.FormatInt(at.Sequence, 10)) }

// settled waits, if that is asked for, until nothing of a session goes on by itself, and
// returns it as it is then.
func (s *Server) settled(ctx context.Context, at *session.Session, asked string) (*session.Session, bool, error) {
	wait, err := s.waitOf(asked)
	if err != nil {
		return nil, false, err
	}
	var changed <-chan struct{}
	if wait > 0 {
		var end func()
		changed, end = tenantOf(ctx).changes.watch(at.ID)
		defer end()
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for waited := false; ; {
		fresh := tenantOf(ctx).Runner.Store().Recent(at.ID)
		if !waited || fresh == nil || fresh.Sequence <= at.Sequence { // or this process has changed it
			if fresh, err = tenantOf(ctx).Runner.Session(context.WithoutCancel(ctx), at.ID); err != nil {
				return nil, false, err
			}
		}
		waited = true
		if at = fresh; isSettled(at) || wait == 0 {
			return at, isSettled(at), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return at, false, nil
		case <-s.closing:
			return at, false, nil
		}
	}
}

// waitOf returns how long a request may wait; "" is not at all.
func (s *Server) waitOf(asked string) (time.Duration, error) {
	if asked == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(asked)
	if err != nil || wait < 0 {
		return 0, bad("bad_request", "wait is %q, not a time such as 30s", asked)
	}
	return min(wait, s.config.WaitMax), nil
}

// isSettled reports whether nothing of a session goes on by itself.
func isSettled(at *session.Session) bool {
	return at.Status != session.Running || at.Options().Driver == session.DriverNone || at.Waits() || len(at.OpenAsks()) > 0 && at.OnlyLate()
}

// answer is the answer to a write on a session.
func (s *Server) answer(ctx context.Context, p *Principal, at *session.Session, asked string) (*session.Session, api.Settled, error) {
	at, done, err := s.settled(ctx, at, asked)
	if err != nil {
		return nil, api.Settled{}, err
	}
	shown, err := s.shown(ctx, p, at, "")
	return at, api.Settled{Session: shown, Settled: done}, err
}

// shown returns a session as the caller sees it.
func (s *Server) shown(ctx context.Context, p *Principal, at *session.Session, as string) (api.Session, error) {
	viewer, err := p.viewer(at.Machine().Name(), as)
	if err != nil {
		return api.Session{}, err
	}
	q, err := tenantOf(ctx).Runner.Question(ctx, at, viewer)
	if err != nil {
		return api.Session{}, err
	}
	shown := api.SessionOf(at, q)
	if !p.may(mayPayload, at.Machine().Name()) {
		shown = shown.WithoutPayload()
	}
	return shown, nil
}

// A cursor names the query that it belongs to and where a page has ended.
func parseLimit(limit int) int {
	if limit == 0 {
		return page
	}
	return min(limit, maxPage)
}

// specialistOf returns as whom the caller hands in a proposal.
func specialistOf(p *Principal, machineName, named string) (machine.SpecialistID, error) {
	bound := p.specialists(machineName)
	if named == "" && len(bound) == 1 {
		return machine.SpecialistID(bound[0]), nil
	}
	if named == "" {
		return "", bad("bad_request", "specialistId is missing: who proposes?")
	}
	for _, id := range bound {
		if id == named {
			return machine.SpecialistID(named), nil
		}
	}
	if p.Anybody {
		return machine.SpecialistID(named), nil
	}
	return "", forbidden("not_bound", "the key names as whom it may: "+orNobody(bound), "%s may not propose as %q", p.Subject, named)
}

// statusesOf reads a list of statuses, with commas between.
func statusesOf(text string) (list []session.Status, err error) {
	for name := range strings.SplitSeq(text, ",") {
		var status session.Status
		if name == "" {
			continue
		}
		if err := status.UnmarshalText([]byte(name)); err != nil {
			return nil, bad("bad_request", "status is %q; it may be running, needs_human, completed, stopped or failed", name)
		}
		list = append(list, status)
	}
	return list, nil
}

// momentOf reads a time; "" is none.
func momentOf(name, text string) (specialist.Time, error) {
	if text == "" {
		return 0, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, bad("bad_request", "%s is %q, not a time such as 2026-01-31T12:00:00Z", name, text)
	}
	return specialist.TimeOf(t), nil
}

// now returns the time.
func (s *Server) now() specialist.Time { return specialist.TimeOf(time.Now()) }

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// unwrap returns the request and the writer beneath the library.
func unwrap(c huma.Context) (*http.Request, http.ResponseWriter) { return humago.Unwrap(c) }
