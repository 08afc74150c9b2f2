package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Who calls, and what they may do. A credential stands for a Principal, which has grants: a
// role with some machines, and the humans and specialists as whom it acts there. Nobody
// rules by their role: an id is bound to the principal, and the machine declares it. Where
// everybody who can call is the same person (the modes local and none) any declared human
// may be named, which the log says of the act: the method proves nothing.

// A Permission is what an operation needs.
type permission string

const (
	mayRead      permission = "read"      // states, lists, metrics, trust
	mayPayload   permission = "payload"   // texts: what sessions were given, proposed, said
	mayStart     permission = "start"     // begin sessions
	mayDrive     permission = "drive"     // step, run, resume, cancel, fork, move
	mayPropose   permission = "propose"   // as a specialist or human that is bound
	mayRule      permission = "rule"      // as a human that is bound
	mayConfigure permission = "configure" // machines, specialists
	mayAdmin     permission = "admin"     // keys, the store, registering humans
	mayAudit     permission = "audit"     // who did what
)

// roles are the permissions of each role.
var roles = map[control.Role][]permission{
	control.Viewer:     {mayRead},
	control.Operator:   {mayRead, mayPayload, mayStart, mayDrive, mayConfigure},
	control.Human:      {mayRead, mayPayload, mayPropose, mayRule},
	control.Specialist: {mayRead, mayPropose},
	control.Auditor:    {mayRead, mayPayload, mayAudit},
	control.Admin:      {mayRead, mayPayload, mayStart, mayDrive, mayRule, mayConfigure, mayAdmin, mayAudit},
}

// A Principal is somebody who calls.
type Principal struct {
	Subject string // such as "key:ci"; "local" is whoever can read the server's own key
	Name    string // what people call them: that of a key, or what an issuer says; "" for none
	Method  string // how that is known: key, oidc, cookie, local or none; elicitation or tool if a human has spoken through a client
	Tenant  string // whose store they see; "" until they have named one, if they administer the installation
	KeyID   string // of the stored key; "" if it is none
	Grants  []control.Grant
	// Anybody says that the principal may act as every human and specialist that a machine
	// declares: whoever calls is at the computer that the server runs on.
	Anybody bool
	// Installation says that the principal administers all tenants, and names one with each request.
	Installation bool

	sent   proof           // of who they are
	signIn *control.SignIn // in which they are at a page; nil if they have sent a credential

	reads   func() error // records that payload is read; nil where the request is recorded itself
	payload bool         // it was found that payload may be shown
	byTool  bool         // the request is one of a tool of MCP
}

// ErrUnauthenticated is returned for a credential that nobody has.
var ErrUnauthenticated = errors.New("the credential is not known")

// An Authenticator finds out who calls. credential is "" if none was sent. The error is
// [ErrUnauthenticated], or that of a store.
type Authenticator interface {
	Authenticate(ctx context.Context, credential string) (*Principal, error)
}

// An authenticatorFunc is a function that is an Authenticator.
type authenticatorFunc func(ctx context.Context, credential string) (*Principal, error)

// Authenticate calls f.
func (f authenticatorFunc) Authenticate(ctx context.Context, credential string) (*Principal, error) {
	return f(ctx, credential)
}

// Local returns who has the server's own key: the one person at whose computer it runs. An
// empty key lets everybody in who can reach the server.
func Local(key string) Authenticator {
	if key == "" {
		return authenticatorFunc(func(context.Context, string) (*Principal, error) {
			return &Principal{Subject: "anybody", Method: "none", Grants: []control.Grant{everything}, Anybody: true, Installation: true}, nil
		})
	}
	return token(key, Principal{Subject: "local", Method: "local", Grants: []control.Grant{everything}, Anybody: true, Installation: true})
}

// Administrator returns who has a key that is not stored, such as one of the environment. They
// may do everything but act as a human.
func Administrator(subject, key string) Authenticator {
	return token(key, Principal{Subject: subject, Method: "key", Grants: []control.Grant{everything}, Installation: true})
}

var everything = control.Grant{Role: control.Admin, Machines: []string{"*"}}

// token returns a principal for who has a key. How long it takes says nothing about the key.
func token(key string, p Principal) Authenticator {
	want := sha256.Sum256([]byte(key))
	return authenticatorFunc(func(_ context.Context, credential string) (*Principal, error) {
		if got := sha256.Sum256([]byte(credential)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return nil, ErrUnauthenticated
		}
		own := p
		return &own, nil
	})
}

// Any returns whom the first of some knows.
func Any(list ...Authenticator) Authenticator {
	return authenticatorFunc(func(ctx context.Context, credential string) (*Principal, error) {
		for _, a := range list {
			if p, err := a.Authenticate(ctx, credential); !errors.Is(err, ErrUnauthenticated) {
				return p, err
			}
		}
		return nil, ErrUnauthenticated
	})
}

// Tokens are keys that are not stored, but are in a file that somebody keeps. They may be
// replaced at any time.
type Tokens struct {
	keys atomic.Pointer[[]control.Key]
	now  func() time.Time
}

// NewTokens returns who has one of some keys; ID, Hash, Tenant, ExpiresAt and Grants of each
// count. now is the clock; nil means time.Now.
func NewTokens(keys []control.Key, now func() time.Time) *Tokens {
	if now == nil {
		now = time.Now
	}
	t := &Tokens{now: now}
	t.Set(keys)
	return t
}

// Set replaces the keys.
func (t *Tokens) Set(keys []control.Key) { t.keys.Store(&keys) }

// Authenticate returns who has one of the keys.
func (t *Tokens) Authenticate(_ context.Context, credential string) (*Principal, error) {
	var found *control.Key
	keys := *t.keys.Load()
	for i := range keys { // all of them, so that how long it takes says nothing
		if k := &keys[i]; k.Admit(credential, specialist.TimeOf(t.now())) == nil {
			found = k
		}
	}
	if found == nil {
		return nil, ErrUnauthenticated
	}
	return belonging(&Principal{Subject: "token:" + found.ID, Method: "key", Grants: found.Grants}, found.Tenant), nil
}

// Keys returns who has a key that is stored. now is the clock; nil means time.Now.
func Keys(store control.Store, now func() time.Time) Authenticator {
	if now == nil {
		now = time.Now
	}
	return authenticatorFunc(func(ctx context.Context, credential string) (*Principal, error) {
		id, err := control.CredentialID(credential)
		if err != nil {
			return nil, ErrUnauthenticated
		}
		key, err := store.Key(ctx, id)
		if errors.Is(err, control.ErrNotFound) {
			return nil, ErrUnauthenticated
		}
		if err != nil {
			return nil, err
		}
		if key.Admit(credential, specialist.TimeOf(now())) != nil {
			return nil, ErrUnauthenticated
		}
		return belonging(&Principal{Subject: "key:" + key.ID, Name: key.Name, Method: "key", KeyID: key.ID, Grants: key.Grants}, key.Tenant), nil
	})
}

// belonging returns a principal with the tenant that a key is of. A key of no tenant is one of who
// administers the installation, if it may administer all machines, and else of the tenant "default".
func belonging(p *Principal, tenant string) *Principal {
	p.Installation = tenant == "" && p.everywhere(mayAdmin)
	if p.Tenant = tenant; !p.Installation {
		p.Tenant = cmp.Or(tenant, defaultTenant)
	}
	return p
}

// spokenThrough reports whether this is a human's word that came through a client of a model, of
// which nobody knows what it has shown them.
func (p *Principal) spokenThrough() bool {
	return p.Method == mcp.SpokenForm || p.Method == mcp.SpokenTool
}

type principalKey struct{}

// callerOf returns who makes a request.
func callerOf(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

// may reports whether a grant allows something with a machine; "" is any machine.
func (p *Principal) may(do permission, machineName string) bool {
	is := p.Anybody || slices.ContainsFunc(p.Grants, func(g control.Grant) bool {
		return slices.Contains(roles[g.Role], do) && (machineName == "" || g.Covers(machineName))
	})
	p.payload = p.payload || is && do == mayPayload && machineName != ""
	return is
}

// note records that the principal is about to be shown payload, if that is so.
func (p *Principal) note() error {
	if !p.payload || p.reads == nil {
		return nil
	}
	return p.reads()
}

// everywhere reports whether a grant allows something with all machines.
func (p *Principal) everywhere(do permission) bool {
	return p.Anybody || slices.ContainsFunc(p.Grants, func(g control.Grant) bool {
		return slices.Contains(roles[g.Role], do) && slices.Contains(g.Machines, "*")
	})
}

// humans returns as whom the principal may rule in the sessions of a machine; "" is any.
func (p *Principal) humans(machineName string) (ids []string) {
	for i := range p.Grants {
		if g := &p.Grants[i]; slices.Contains(roles[g.Role], mayRule) && (machineName == "" || g.Covers(machineName)) {
			ids = append(ids, g.Humans...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// specialists returns as whom the principal may propose in the sessions of a machine.
func (p *Principal) specialists(machineName string) (ids []string) {
	for i := range p.Grants {
		if g := &p.Grants[i]; slices.Contains(roles[g.Role], mayPropose) && g.Covers(machineName) {
			ids = append(append(ids, g.Specialists...), g.Humans...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// actor returns the principal as the log has it.
func (p *Principal) actor(machineName string) *session.Actor {
	return &session.Actor{Subject: p.Subject, Method: p.Method, Humans: p.humans(machineName)}
}

// permissions returns what the principal may do with some machine.
func (p *Principal) permissions() (list []string) {
	for _, do := range []permission{mayRead, mayPayload, mayStart, mayDrive, mayPropose, mayRule, mayConfigure, mayAdmin, mayAudit} {
		if p.may(do, "") {
			list = append(list, string(do))
		}
	}
	return list
}

// human returns as which human the principal acts in a session: the one that it names, else
// the only one as whom it may.
func (s *Server) human(ctx context.Context, p *Principal, at *session.Session, named string) (machine.SpecialistID, error) {
	return p.actingAs(at.Machine().Name(), at.State.Name, named, func() ([]string, bool, error) { return tenantOf(ctx).Runner.Humans(ctx, at) })
}

// actingAs returns as which human the principal acts in a state: the one that it names, else
// the only one of those who decide there as whom it may. deciders says who they are, and whether
// any are declared.
func (p *Principal) actingAs(machineName, state, named string, deciders func() (ids []string, declared bool, err error)) (machine.SpecialistID, error) {
	bound := p.humans(machineName)
	if named != "" {
		if !p.Anybody && !slices.Contains(bound, named) {
			return "", forbidden("not_bound", "the key names the humans as whom it may: "+orNobody(bound), "%s may not act as %q", p.Subject, named)
		}
		return machine.SpecialistID(named), nil
	}
	ids, declared, err := deciders()
	switch {
	case err != nil:
		return "", err
	case p.Anybody && !declared:
		return runner.Operator, nil
	case !p.Anybody:
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(bound, id) })
	}
	switch len(ids) {
	case 1:
		return machine.SpecialistID(ids[0]), nil
	case 0:
		return "", forbidden("not_a_decider", "it may act as "+orNobody(bound), "%s is bound to nobody who decides in state %s", p.Subject, state)
	}
	return "", &api.Error{Status: 422, Code: "illegal_transition", Detail: "several humans may decide, and the request does not say who does", Hint: "specialistId may be " + orNobody(ids)}
}

// viewer returns as whom somebody looks who does not say it: the only human as whom they
// may, else nobody in particular.
func (p *Principal) viewer(machineName, named string) (machine.SpecialistID, error) {
	bound := p.humans(machineName)
	switch {
	case named == "" && len(bound) == 1:
		return machine.SpecialistID(bound[0]), nil
	case named == "", p.Anybody, slices.Contains(bound, named):
		return machine.SpecialistID(named), nil
	}
	return "", forbidden("not_bound", "the key names the humans as whom it may: "+orNobody(bound), "%s may not look as %q", p.Subject, named)
}
