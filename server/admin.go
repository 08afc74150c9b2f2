package server

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Keys, the audit log and the store: for who administers or audits the whole of it, with a
// grant for all machines. A credential is in the one answer that makes it: it is made from
// random bytes, of which a hash is kept, and a receipt has the answer without it.

func (s *Server) registerAdmin() {
	const one = "/v1/keys/{key}"
	add(s, operation{id: "list-keys", method: http.MethodGet, path: "/v1/keys", summary: "The keys that are good, in the order in which they were made", needs: mayAdmin}, s.keys)
	add(s, operation{id: "create-key", method: http.MethodPost, path: "/v1/keys", summary: "Make a key, which is shown once", needs: mayAdmin, status: 201, errors: []int{409, 422}}, s.createKey)
	add(s, operation{id: "get-key", method: http.MethodGet, path: one, summary: "A key, without what is shown once", needs: mayAdmin}, s.key)
	add(s, operation{id: "revoke-key", method: http.MethodDelete, path: one, summary: "Have a key refused from now on", needs: mayAdmin}, s.revokeKey)
	add(s, operation{id: "rotate-key", method: http.MethodPost, path: one + "/rotate", summary: "Make a key in the place of another", needs: mayAdmin, status: 201, errors: []int{409, 422}}, s.rotateKey)
	add(s, operation{id: "create-ticket", method: http.MethodPost, path: "/v1/tickets", summary: "Make a ticket, with which a browser signs in once, within a minute", needs: mayRead, status: 201, errors: []int{409, 422}}, s.createTicket)
	add(s, operation{id: "list-audit", method: http.MethodGet, path: "/v1/audit", summary: "Who did what", needs: mayAudit}, s.audit)
	add(s, operation{id: "get-store", method: http.MethodGet, path: "/v1/store", summary: "What the server keeps its sessions in", needs: mayAdmin}, s.store)
}

// mayEverywhere refuses who may do something only with some machines.
func mayEverywhere(p *Principal, do permission) error {
	if p.everywhere(do) {
		return nil
	}
	return forbidden("forbidden", "this needs the permission "+string(do)+" for all machines (*)", "%s may not do this for all machines", p.Subject)
}

type keysIn struct {
	params.Page
	All bool `query:"all" doc:"those that have expired or are revoked, too"`
}

type keysOut struct{ Body api.List[api.Key] }

func (s *Server) keys(ctx context.Context, p *Principal, in *keysIn) (*keysOut, error) {
	if err := mayEverywhere(p, mayAdmin); err != nil {
		return nil, err
	}
	l, err := listing("keys", p, &in.Page, false)
	if err != nil {
		return nil, err
	}
	page, err := s.config.Control.Keys(ctx, l.Query)
	if err != nil {
		return nil, err
	}
	out := &keysOut{api.List[api.Key]{Items: []api.Key{}}}
	for _, k := range page {
		out.Body.NextCursor = l.next(len(page), k.Place)
		if shown := api.KeyOf(k, s.now()); in.All || shown.Status == "active" {
			out.Body.Items = append(out.Body.Items, shown)
		}
	}
	return out, nil
}

// ofTenant reports whether a key is of the caller's tenant. Those of the installation are of who
// administers it.
func ofTenant(p *Principal, k *control.Key) bool {
	of := belonging(&Principal{Grants: k.Grants}, k.Tenant)
	return of.Tenant == p.Tenant || of.Installation && p.Installation
}

// ofKey returns a key of the caller's tenant.
func (s *Server) ofKey(ctx context.Context, p *Principal, id string) (control.Key, error) {
	if err := mayEverywhere(p, mayAdmin); err != nil {
		return control.Key{}, err
	}
	k, err := s.config.Control.Key(ctx, id)
	if errors.Is(err, control.ErrNotFound) || err == nil && !ofTenant(p, &k) {
		return k, &session.NotFoundError{What: "Key", ID: id}
	}
	return k, err
}

type keyIn struct {
	ID string `path:"key" doc:"the id of the key" maxLength:"100"`
}

type keyOut struct{ Body api.Key }

func (s *Server) key(ctx context.Context, p *Principal, in *keyIn) (*keyOut, error) {
	k, err := s.ofKey(ctx, p, in.ID)
	return &keyOut{api.KeyOf(k, s.now())}, err
}

func (s *Server) revokeKey(ctx context.Context, p *Principal, in *keyIn) (*keyOut, error) {
	k, err := s.ofKey(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.config.Control.Commit(ctx, control.Changes{Revoked: []control.KeyTime{{ID: k.ID, At: s.now()}}}); err != nil {
		return nil, err
	}
	return s.key(ctx, p, in)
}

type createKeyIn struct{ Body api.NewKey }

type madeKeyOut struct {
	Location string `header:"Location"`
	Body     api.MadeKey
}

func (s *Server) createKey(ctx context.Context, p *Principal, in *createKeyIn) (*madeKeyOut, error) {
	if err := mayEverywhere(p, mayAdmin); err != nil {
		return nil, err
	}
	for _, g := range in.Body.Grants {
		if err := g.Check(); err != nil {
			return nil, bad("bad_request", "grants: %v", err)
		}
	}
	expires, err := s.expiry(in.Body.ExpiresAt)
	if err != nil {
		return nil, err
	}
	return s.makeKey(ctx, p, control.Key{Name: in.Body.Name, Tenant: p.Tenant, Grants: in.Body.Grants, CreatedAt: s.now(), ExpiresAt: expires}, control.Changes{})
}

// expiry reads a moment that is to come; "" is none.
func (s *Server) expiry(text string) (specialist.Time, error) {
	at, err := momentOf("expiresAt", text)
	if err == nil && text != "" && at <= s.now() {
		err = bad("bad_request", "expiresAt is over: %s", text)
	}
	return at, err
}

// makeKey gives a key its id and its credential, and adds it with what else is changed.
func (s *Server) makeKey(ctx context.Context, p *Principal, k control.Key, changes control.Changes) (*madeKeyOut, error) {
	var credential string
	k.ID, credential = control.NewCredential(rand.Reader)
	k.Hash, k.CreatedBy = control.HashOf(credential), p.Subject
	made := api.MadeKey{Key: api.KeyOf(k, k.CreatedAt)}
	if len(changes.Revoked) > 0 {
		made.Replaces = changes.Revoked[0].ID
	}
	out := &madeKeyOut{"/v1/keys/" + k.ID, made}
	changes.Keys = []control.Key{k}
	if err := s.shownOnce(ctx, changes, http.StatusCreated, out.Location, made); err != nil {
		return nil, err
	}
	out.Body.Credential = credential
	return out, nil
}

type rotateKeyIn struct {
	ID   string `path:"key" doc:"the id of the key" maxLength:"100"`
	Body *api.Rotation
}

func (s *Server) rotateKey(ctx context.Context, p *Principal, in *rotateKeyIn) (*madeKeyOut, error) {
	old, err := s.ofKey(ctx, p, in.ID)
	if err != nil {
		return nil, err
	}
	at, wanted := s.now(), api.Rotation{}
	if in.Body != nil {
		wanted = *in.Body
	}
	if status := api.KeyOf(old, at).Status; status != "active" {
		return nil, &api.Error{Status: http.StatusConflict, Code: "key_" + status, Detail: "key " + old.ID + " is " + status, Hint: "dialai keys create makes another", ExitCode: 1}
	}
	next, end := old.Successor(at), at
	if wanted.Overlap != "" {
		d, err := time.ParseDuration(wanted.Overlap)
		if err != nil || d < 0 {
			return nil, bad("bad_request", "overlap is %q, not a time such as 24h", wanted.Overlap)
		}
		end += specialist.Time(d.Milliseconds())
	}
	if expires, err := s.expiry(wanted.ExpiresAt); err != nil {
		return nil, err
	} else if expires != 0 {
		next.ExpiresAt = expires
	}
	return s.makeKey(ctx, p, next, control.Changes{Revoked: []control.KeyTime{{ID: old.ID, At: end}}})
}

type auditIn struct {
	params.Page
	Order   string `query:"order" enum:"asc,desc" doc:"asc without it"`
	Subject string `query:"subject" doc:"only what this subject did" maxLength:"300"`
}

type auditOut struct {
	Body api.List[api.AuditRecord]
}

func (s *Server) audit(ctx context.Context, p *Principal, in *auditIn) (*auditOut, error) {
	if err := mayEverywhere(p, mayAudit); err != nil {
		return nil, err
	}
	l, err := listing("audit", p, &in.Page, in.Order == "desc")
	if err != nil {
		return nil, err
	}
	page, err := s.config.Control.Audit(ctx, l.Query)
	if err != nil {
		return nil, err
	}
	out := &auditOut{api.List[api.AuditRecord]{Items: []api.AuditRecord{}}}
	for i := range page {
		r := &page[i]
		out.Body.NextCursor = l.next(len(page), r.Place)
		e, err := r.Entry()
		if err != nil {
			return nil, err
		}
		if in.Subject == "" || e.Subject == in.Subject {
			out.Body.Items = append(out.Body.Items, api.AuditRecord{Entry: e, Place: r.Place, Process: r.Process, Sequence: r.Sequence, Hash: r.Hash})
		}
	}
	return out, nil
}

type storeOut struct{ Body api.Store }

func (s *Server) store(ctx context.Context, p *Principal, _ *struct{}) (*storeOut, error) {
	if err := mayEverywhere(p, mayAdmin); err != nil {
		return nil, err
	}
	kept := tenantOf(ctx).Runner.Store()
	out := &storeOut{}
	var err error
	if known, ok := kept.(interface {
		Status(context.Context) (session.StoreStatus, error)
	}); ok {
		out.Body.StoreStatus, err = known.Status(ctx)
	} else {
		out.Body.Kind = "memory"
		out.Body.Place, err = kept.Place(ctx)
	}
	if err == nil {
		out.Body.LastVerify, err = s.lastVerify(ctx, p)
	}
	return out, err
}

// lastVerify returns the newest check of the store that was done; nil if none is remembered.
func (s *Server) lastVerify(ctx context.Context, p *Principal) (*api.Verified, error) {
	page, err := s.config.Control.Jobs(ctx, control.Query{Tenant: p.Tenant, Desc: true, Limit: maxPage})
	for _, j := range page {
		if j.Kind == kindVerify && j.Status == control.JobDone {
			return &api.Verified{JobID: j.ID, At: j.EndedAt, ExitCode: j.Outcome.ExitCode}, nil
		}
	}
	return nil, err
}
