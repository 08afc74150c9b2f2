package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/session"
)

// Tenants share a server and nothing else: each has a store of its own, with the Runner that works
// on it. Every request is one tenant's, and its context says whose; what an operation looks at, it
// finds there and nowhere else. What the server remembers for all of them it asks for by the name
// of the tenant. A credential is of one tenant, but for those of who administers the installation:
// they name the tenant with each request. So of another tenant nobody learns even what there is:
// its ids are as unknown as those that nobody has.

// A Tenant is a store whose sessions are offered.
type Tenant struct {
	Name   string
	Runner *runner.Runner
	// Shared says that other processes write to the store, too.
	Shared bool
	// MaySend returns why a variable that a machine names may not be sent to a host, nil if it
	// may; nil lets all go anywhere. See webhook.Client.
	MaySend func(variable, host string) error
}

const defaultTenant = "default"

// A tenant is one, with what follows its store.
type tenant struct {
	Tenant
	changes changes
	hub     *hub
	passed  passings
	alone   chan struct{} // is full while a job runs that must be alone at the store
	tools   func() (*mcp.Server, error)
}

func (s *Server) newTenant(of Tenant) *tenant {
	t := &tenant{Tenant: of, hub: newHub(of.Runner, s.config.Log), alone: make(chan struct{}, 1), tools: sync.OnceValues(s.newTools)}
	t.hub.told, t.hub.missed = t.changes.tell, t.changes.tellAll
	if t.Shared {
		t.changes.follow = t.hub.follow
	}
	return t
}

// Observer returns what a tenant's Runner tells of its commits: it is the Observer of the Runner's
// Config, or is called by it. It does not block.
func (s *Server) Observer(name string) func(session.Change) {
	t := s.tenants[name]
	return func(c session.Change) {
		t.changes.tell(c.After.ID)
		t.hub.committed()
	}
}

type tenantKey struct{}

// tenantOf returns whose request a context is of.
func tenantOf(ctx context.Context) *tenant {
	t, _ := ctx.Value(tenantKey{}).(*tenant)
	return t
}

// tenantHeader names whose a request is, where whoever sends it administers the installation.
const tenantHeader = "Dialai-Tenant"

// enter returns the context of what somebody does with their tenant: the one that their credential
// is of, or the one that they name, if they administer the installation.
func (s *Server) enter(ctx context.Context, p *Principal, named string) (context.Context, error) {
	switch {
	case p.Installation:
		if named != "" && s.tenants[named] == nil {
			return nil, &api.Error{Status: http.StatusNotFound, Code: "not_found", Detail: fmt.Sprintf("there is no tenant %q", named), Hint: "there are " + strings.Join(s.names(), ", "), ExitCode: 1}
		}
		p.Tenant = cmp.Or(named, s.home)
	case named != "" && named != p.Tenant:
		return nil, forbidden("forbidden", tenantHeader+" is for who administers the installation: a key without a tenant, or DIALAI_API_TOKEN", "%s is of one tenant and may name no other", p.Subject)
	case s.tenants[p.Tenant] == nil:
		return nil, forbidden("forbidden", "the settings of the server name its tenants", "the tenant of %s is not served here", p.Subject)
	}
	return context.WithValue(context.WithValue(ctx, principalKey{}, p), tenantKey{}, s.tenants[p.Tenant]), nil
}

// names returns those of all tenants.
func (s *Server) names() []string { return slices.Sorted(maps.Keys(s.tenants)) }

// homeOf returns whose a request is that names no tenant and could name any: "" if that cannot be
// said.
func homeOf(tenants map[string]*tenant) string {
	if tenants[defaultTenant] != nil {
		return defaultTenant
	}
	for name := range tenants {
		if len(tenants) == 1 {
			return name
		}
	}
	return ""
}

// ofNone are what is answered over all tenants to who administers the installation and names none.
var ofNone = []string{"/v1/audit", "/metrics", sessionPath}

// inTenant finds out whose a request is.
func (s *Server) ofTenant(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := callerOf(r.Context())
		if p == nil { // where nobody has to say who they are
			next.ServeHTTP(w, r)
			return
		}
		ctx, err := s.enter(r.Context(), p, r.Header.Get(tenantHeader))
		if err == nil && p.Tenant == "" && !slices.Contains(ofNone, r.URL.Path) {
			err = s.tenantRequired()
		}
		if err != nil {
			s.refused(r, p, err)
			writeProblem(w, r, s.problem(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// tenantRequired is the refusal of a request that could be of several tenants.
func (s *Server) tenantRequired() error {
	return &api.Error{Status: http.StatusBadRequest, Code: "tenant_required", Detail: "the request does not say of which tenant it is", Hint: tenantHeader + " may be " + strings.Join(s.names(), ", "), ExitCode: 2}
}

// refused has the audit log say that somebody named a tenant who may not.
func (s *Server) refused(r *http.Request, p *Principal, err error) {
	e := s.entry(s.mux, r, p, nil)
	e.Result = http.StatusText(s.problem(r.Context(), err).Status)
	if err := s.config.Control.Commit(context.WithoutCancel(r.Context()), control.Changes{Entries: []control.Entry{e}}); err != nil {
		s.config.Log.Error("a refusal is not recorded", "id", requestID(r.Context()), "error", err)
	}
}

// still returns a caller as they are known now; ErrUnauthenticated if what they have sent is not that
// of the same caller any more.
func (s *Server) still(ctx context.Context, p *Principal) (*Principal, error) {
	again, err := s.authenticate(ctx, p.sent)
	if err != nil {
		return nil, err
	}
	if again.Subject != p.Subject || again.Installation != p.Installation || !again.Installation && again.Tenant != p.Tenant {
		return nil, ErrUnauthenticated
	}
	again.Tenant = p.Tenant
	return again, nil
}
