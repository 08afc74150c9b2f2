package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/webhook"
)

// Machines are published: each definition that is put under a name is a version of it, and
// stays. A session is started of the newest or of one by its digest, and keeps it, whatever is
// published later. Where nothing was published under a name, its newest definition is the one
// that sessions were started of last.

func (s *Server) registerMachines() {
	const one = "/v1/machines/{machine}"
	add(s, operation{id: "list-machines", method: http.MethodGet, path: "/v1/machines", summary: "The machines that were published, each in its newest version", needs: mayRead}, s.machines)
	add(s, operation{id: "validate-machine", method: http.MethodPost, path: "/v1/machines/validate", summary: "Check a definition, and say what is wrong with it or probably not meant", needs: mayRead}, s.validate)
	add(s, operation{id: "get-machine", method: http.MethodGet, path: one, summary: "The newest definition of a machine", needs: mayRead, also: map[int]string{304: "It has not changed"}}, s.machine)
	add(s, operation{id: "publish-machine", method: http.MethodPut, path: one, summary: "Publish a definition of a machine; sessions that were started before keep theirs", needs: mayConfigure, also: map[int]string{201: "A version was published; 200 means that it is the newest already"}, errors: []int{422, 428}}, s.publish)
	add(s, operation{id: "list-versions", method: http.MethodGet, path: one + "/versions", summary: "The published versions of a machine, the oldest first", needs: mayRead}, s.versions)
	add(s, operation{id: "get-version", method: http.MethodGet, path: one + "/versions/{digest}", summary: "A published version of a machine, with its definition", needs: mayRead}, s.version)
	s.registerGraph()
	s.registerSpecialists()
	s.registerTrust()
	s.registerHistory()
}

// parsed are the definitions that were read last, by their texts.
type parsed struct {
	mu   sync.Mutex
	list *lru.Cache[control.Hash, *machine.Machine]
}

const (
	maxParsed     = 64
	maxParsedText = 64 << 10 // of those that are larger none is kept, in bytes
)

// parse reads a definition that was sent, or published.
func (s *Server) parse(definition json.RawMessage) (*machine.Machine, error) {
	return s.parseFile("machine.json", definition)
}

// parseFile reads the text of a machine file.
func (s *Server) parseFile(name string, text []byte) (*machine.Machine, error) {
	key, keeps := control.Hash{}, len(text) <= maxParsedText
	if keeps {
		key = control.HashOf(strconv.Quote(name) + string(text))
		s.parsed.mu.Lock()
		m, ok := s.parsed.list.Get(key)
		s.parsed.mu.Unlock()
		if ok {
			return m, nil
		}
	}
	m, err := machine.Parse(name, text, s.config.Checks)
	if err == nil && keeps {
		s.parsed.mu.Lock()
		s.parsed.list.Put(key, m)
		s.parsed.mu.Unlock()
	}
	return m, err
}

// parseEither reads a definition, or a machine file in place of one: an object of a name and a
// text and nothing else, which no definition is.
func (s *Server) parseEither(body json.RawMessage) (*machine.Machine, error) {
	var in map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil || len(in) != 2 || in["name"] == nil || in["text"] == nil {
		return s.parse(body)
	}
	var file struct{ Name, Text *string }
	if err := json.Unmarshal(body, &file); err != nil || file.Name == nil || file.Text == nil {
		return nil, bad("bad_request", "name and text of a machine file are strings")
	}
	return s.parseFile(*file.Name, []byte(*file.Text))
}

type definitionIn struct {
	Body json.RawMessage `doc:"a definition, as machine files have it, or {name, text}: a machine file as it is written, JSON or YAML by its name"`
}

type validateIn struct {
	definitionIn
	Tests      bool `query:"tests" doc:"say what becomes of the tests of promises if the definition takes the place of the newest one of its name"`
	Definition bool `query:"definition" doc:"answer the definition, too: of a machine file what it comes to"`
}

type validateOut struct {
	Body struct {
		MachineName   string              `json:"machineName,omitempty"`
		MachineDigest string              `json:"machineDigest,omitempty"`
		Problems      []api.Problem       `json:"problems"`
		Tests         []report.Succession `json:"tests,omitempty" doc:"if they were asked for: of each promise; absent of a machine that there is not yet"`
		Definition    json.RawMessage     `json:"definition,omitempty" doc:"if it was asked for"`
	}
}

func (s *Server) validate(ctx context.Context, p *Principal, in *validateIn) (*validateOut, error) {
	out := &validateOut{}
	out.Body.Problems = []api.Problem{}
	m, err := s.parseEither(in.Body)
	if _, invalid := errors.AsType[*machine.Error](err); invalid {
		out.Body.Problems = problemOf(err).Problems
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Body.MachineName, out.Body.MachineDigest = m.Name(), m.Digest()
	out.Body.Problems = findings(m)
	if in.Definition {
		out.Body.Definition = m.JSON()
	}
	if in.Tests && p.may(mayRead, m.Name()) {
		out.Body.Tests, err = s.succeeding(ctx, p, m)
	}
	return out, err
}

// succeeding returns what becomes of the tests of promises if a definition takes the place of the
// newest one of its name; nil without one.
func (s *Server) succeeding(ctx context.Context, p *Principal, m *machine.Machine) ([]report.Succession, error) {
	current, err := s.newest(ctx, p, m.Name())
	if _, none := errors.AsType[*session.NotFoundError](err); none {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	before, err := s.parse(current.Definition)
	if err != nil {
		return nil, err
	}
	programs := session.NewPrograms()
	was, err := programs.Of(before)
	if err != nil {
		return nil, err
	}
	is, err := programs.Of(m)
	if err != nil {
		return nil, err
	}
	return report.Succeeding(ctx, tenantOf(ctx).Runner, was, is)
}

// findings are what is probably not meant in a definition.
func findings(m *machine.Machine) []api.Problem {
	return problemsOf(m.Lint(machine.LintOptions{}), machine.Problem.Level)
}

type machineIn struct {
	params.Machine
	IfNoneMatch string `header:"If-None-Match"`
}

type machineOut struct {
	Status       int
	ETag         string `header:"ETag"`
	Location     string `header:"Location"`
	CacheControl string `header:"Cache-Control"`
	Body         *api.Machine
}

func (s *Server) machine(ctx context.Context, p *Principal, in *machineIn) (*machineOut, error) {
	if err := mayOf(p, mayRead, in.Name); err != nil {
		return nil, err
	}
	current, err := s.newest(ctx, p, in.Name)
	if err != nil {
		return nil, err
	}
	out := &machineOut{Status: http.StatusOK, ETag: strconv.Quote(current.Digest), CacheControl: "private, no-cache"}
	if in.IfNoneMatch == out.ETag {
		out.Status = http.StatusNotModified
		return out, nil
	}
	out.Body, err = s.describeMachine(ctx, current)
	return out, err
}

// describeMachine returns a version as it is shown.
func (s *Server) describeMachine(ctx context.Context, m control.Machine) (*api.Machine, error) {
	shown := api.MachineOf(m)
	shown.Definition = m.Definition
	live, err := tenantOf(ctx).Runner.Sessions(ctx, session.ListQuery{MachineName: m.Name, Statuses: session.LiveStatuses(), Limit: maxPage})
	n := len(live)
	shown.LiveSessions = &n
	return &shown, err
}

// mayOf refuses what the caller may not do with a machine. One that they may not even see is
// not found.
func mayOf(p *Principal, do permission, machineName string) error {
	switch {
	case !p.may(mayRead, machineName):
		return noMachine(machineName)
	case !p.may(do, machineName):
		return mayNot(p, do, machineName)
	}
	return nil
}

func noMachine(name string) error { return &session.NotFoundError{What: "Machine", ID: name} }

// newest returns the newest definition of a machine: the one published last, or else that of
// which a session was started last, which has no version.
func (s *Server) newest(ctx context.Context, p *Principal, name string) (control.Machine, error) {
	m, err := s.config.Control.Machine(ctx, p.Tenant, name)
	if !errors.Is(err, control.ErrNotFound) {
		return m, err
	}
	program, err := tenantOf(ctx).Runner.Newest(ctx, name)
	if err == nil && program == nil {
		err = noMachine(name)
	}
	if err != nil {
		return control.Machine{}, err
	}
	return control.Machine{Name: name, Digest: program.Machine.Digest(), Definition: program.Machine.JSON()}, nil
}

// of returns the version of a machine that has a digest; "" is the newest.
func (s *Server) of(ctx context.Context, p *Principal, name, digest string) (control.Machine, error) {
	if digest != "" {
		if m, err := s.config.Control.MachineOf(ctx, p.Tenant, name, digest); !errors.Is(err, control.ErrNotFound) {
			return m, err
		}
	}
	m, err := s.newest(ctx, p, name)
	if err == nil && digest != "" && m.Digest != digest {
		err = &session.NotFoundError{What: "Version", ID: digest}
	}
	return m, err
}

type publishIn struct {
	params.Machine
	IfMatch     string          `header:"If-Match" doc:"the ETag of the newest version, as it was seen; * is any"`
	IfNoneMatch string          `header:"If-None-Match" doc:"* for a new name"`
	Body        json.RawMessage `doc:"a definition, as machine files have it, or {name, text}: a machine file as it is written, JSON or YAML by its name"`
}

func (s *Server) publish(ctx context.Context, p *Principal, in *publishIn) (*machineOut, error) {
	name := in.Name
	if err := mayOf(p, mayConfigure, name); err != nil {
		return nil, err
	}
	if (in.IfMatch == "") == (in.IfNoneMatch != "*") {
		return nil, &api.Error{Status: http.StatusPreconditionRequired, Code: "precondition_required", ExitCode: 1,
			Detail: "the request does not say over what it publishes", Hint: "send If-None-Match: * for a new name, or If-Match with the ETag of the newest version"}
	}
	m, err := s.parseEither(in.Body)
	if err != nil {
		return nil, err
	}
	if m.Name() != name {
		return nil, bad("bad_request", "the definition is of machine %q, the path of %q", m.Name(), name)
	}
	if err := tenantOf(ctx).maySend(m); err != nil {
		return nil, err
	}
	current, err := s.config.Control.Machine(ctx, p.Tenant, name)
	if err != nil && !errors.Is(err, control.ErrNotFound) {
		return nil, err
	}
	if current.Digest != m.Digest() {
		if in.IfMatch != "" && in.IfMatch != "*" && in.IfMatch != strconv.Quote(current.Digest) || in.IfMatch == "" && current.Version > 0 {
			return nil, staleMachine(current)
		}
		next := control.Machine{Tenant: p.Tenant, Name: name, Version: current.Version + 1, Digest: m.Digest(), Definition: m.JSON(), By: p.Subject, At: s.now()}
		if err := s.config.Control.Commit(ctx, control.Changes{Publish: &next}); errors.Is(err, control.ErrStale) {
			return nil, staleMachine(current)
		} else if err != nil {
			return nil, err
		}
		return published(http.StatusCreated, next, m), nil
	}
	return published(http.StatusOK, current, m), nil
}

// maySend refuses a machine that has a variable sent where it may not go. A session of it is
// refused, too; but who publishes it learns it first.
func (t *tenant) maySend(m *machine.Machine) error {
	if t.MaySend == nil {
		return nil
	}
	program, err := session.NewPrograms().Of(m)
	if err != nil {
		return err
	}
	var asked []*guard.ClassifierConfig
	for i := range m.States() {
		if g := program.Guards(&m.States()[i]); g != nil && g.Classifier != nil {
			asked = append(asked, g.Classifier)
		}
	}
	var problems []api.Problem
	for _, use := range webhook.Uses(m, asked...) {
		if err := t.MaySend(use.Variable, use.Host); err != nil {
			problems = append(problems, notSent(err))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &api.Error{Status: http.StatusUnprocessableEntity, Code: "token_not_bound", Detail: problems[0].Message, Hint: problems[0].Hint, Problems: problems, ExitCode: 1}
}

// notSent says why a variable is not sent to a host, and what helps.
func notSent(err error) api.Problem {
	p := api.Problem{Message: packs.Redact(err.Error())}
	if bound, ok := errors.AsType[*webhook.BoundError](err); ok {
		p.Code, p.Hint = "token_not_bound", bound.Hint()
	}
	return p
}

// published is the answer to who has published a version, or would have if it were not the
// newest already.
func published(status int, v control.Machine, m *machine.Machine) *machineOut {
	shown := api.MachineOf(v)
	shown.Problems = findings(m)
	return &machineOut{Status: status, ETag: strconv.Quote(v.Digest), Location: versionPath(v), Body: &shown}
}

func versionPath(v control.Machine) string {
	return "/v1/machines/" + url.PathEscape(v.Name) + "/versions/" + v.Digest
}

func staleMachine(current control.Machine) *api.Error {
	e := &api.Error{Status: http.StatusPreconditionFailed, Code: "stale_machine", ExitCode: 1, Detail: "nothing is published under this name", Hint: "send If-None-Match: * to publish the first version"}
	if current.Version > 0 {
		e.Detail, e.Hint = "the newest version is "+strconv.FormatInt(current.Version, 10)+", "+current.Digest, "look at it, then send the request with its ETag in If-Match"
	}
	return e
}

type machinesOut struct{ Body api.List[api.Machine] }

func (s *Server) machines(ctx context.Context, p *Principal, in *params.Page) (*machinesOut, error) {
	l, err := listing("machines", p, in, false)
	if err != nil {
		return nil, err
	}
	page, err := s.config.Control.Machines(ctx, l.Query)
	if err != nil {
		return nil, err
	}
	out := &machinesOut{api.List[api.Machine]{Items: []api.Machine{}}}
	for _, m := range page {
		out.Body.NextCursor = l.next(len(page), m.Place)
		if !p.may(mayRead, m.Name) {
			continue
		}
		shown, err := s.describeMachine(ctx, m)
		if err != nil {
			return nil, err
		}
		out.Body.Items = append(out.Body.Items, *shown)
	}
	return out, nil
}

func (s *Server) versions(ctx context.Context, p *Principal, in *machinePage) (*machinesOut, error) {
	if err := mayOf(p, mayRead, in.Name); err != nil {
		return nil, err
	}
	l, err := listing("versions of "+in.Name, p, &in.Page, false)
	if err != nil {
		return nil, err
	}
	page, err := s.config.Control.Versions(ctx, in.Name, l.Query)
	if err == nil && len(page) == 0 {
		_, err = s.newest(ctx, p, in.Name) // one that sessions alone have is a machine, too
	}
	if err != nil {
		return nil, err
	}
	out := &machinesOut{api.List[api.Machine]{Items: []api.Machine{}}}
	for _, m := range page {
		out.Body.NextCursor = l.next(len(page), m.Place)
		out.Body.Items = append(out.Body.Items, api.MachineOf(m))
	}
	return out, nil
}

type versionIn struct {
	params.Machine
	Digest string `path:"digest" doc:"the digest of the version" maxLength:"100"`
}

type versionOut struct{ Body api.Machine }

func (s *Server) version(ctx context.Context, p *Principal, in *versionIn) (*versionOut, error) {
	if err := mayOf(p, mayRead, in.Name); err != nil {
		return nil, err
	}
	m, err := s.of(ctx, p, in.Name, in.Digest)
	if err != nil {
		return nil, err
	}
	out := &versionOut{api.MachineOf(m)}
	out.Body.Definition = m.Definition
	return out, nil
}
