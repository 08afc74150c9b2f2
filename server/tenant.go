package server

import (
	"context"
	"sync"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/session"
)

// Tenants share a server and nothing else: each has a store of its own, with the Runner that works
// on it. Every request is one tenant's, and its context says whose; what an operation looks at, it
// finds there and nowhere else.

// A Tenant is a store whose sessions are offered.
type Tenant struct {
	Name   string
	Runner *runner.Runner
	// Shared says that other processes write to the store, too.
	Shared bool
}

const defaultTenant = "default"

// A tenant is one, with what follows its store.
type tenant struct {
	Tenant
	changes changes
	hub     *hub
	claims  claimNews
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

// entered returns a context for what somebody does with their tenant.
func (s *Server) entered(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(context.WithValue(ctx, principalKey{}, p), tenantKey{}, s.tenants[p.Tenant])
}
