package prom

import "sync"

// maxTenants is how many tenants are counted by themselves.
const maxTenants = 200

// tenants are those that are counted by themselves: the first that come. They are named in the
// settings of a server, so that nobody who calls can add to them.
type tenants struct {
	mu    sync.Mutex
	known map[string]bool
}

// label returns the label of a tenant.
func (t *tenants) label(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[name] {
		return name
	}
	if len(t.known) >= maxTenants {
		return other
	}
	if t.known == nil {
		t.known = map[string]bool{}
	}
	t.known[name] = true
	return name
}
