package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// The specialists of a machine: those that were registered beside its definition, the champions,
// and who is switched off.

func (s *Server) registerSpecialists() {
	const all = "/v1/machines/{machine}/specialists"
	add(s, operation{id: "list-specialists", method: http.MethodGet, path: all, summary: "Who is registered for a machine, switched off, or champion", needs: mayRead}, s.specialists)
	add(s, operation{id: "register-specialist", method: http.MethodPost, path: all, summary: "Register a specialist, who takes part in all sessions of the machine", needs: mayConfigure, status: 201, errors: []int{409, 422}}, s.registerSpecialist)
	add(s, operation{id: "switch-specialist", method: http.MethodPatch, path: all + "/{specialist}", summary: "Switch a specialist on or off, in all sessions of the machine", needs: mayConfigure, errors: []int{422, 501}}, s.switchSpecialist)
}

// roster returns what is registered for a machine that there is.
func (s *Server) roster(ctx context.Context, p *Principal, name string) (*session.Roster, error) {
	r, err := tenantOf(ctx).Runner.Store().Roster(ctx, name)
	if err == nil && r.Sequence == 0 {
		_, err = s.newest(ctx, p, name)
	}
	return r, err
}

type machinePage struct {
	params.Machine
	params.Page
}

type specialistsOut struct{ Body api.List[*api.Specialist] }

func (s *Server) specialists(ctx context.Context, p *Principal, in *machinePage) (*specialistsOut, error) {
	if err := mayOf(p, mayRead, in.Name); err != nil {
		return nil, err
	}
	r, err := s.roster(ctx, p, in.Name)
	if err != nil {
		return nil, err
	}
	page, err := pageOf("specialists of "+in.Name, p, &in.Page, api.SpecialistsOf(r), func(e *api.Specialist) string { return e.SpecialistID })
	return &specialistsOut{page}, err
}

type registerIn struct {
	params.Machine
	Body machine.Specialist
}

type specialistOut struct {
	Status   int
	Location string `header:"Location"`
	Body     *api.Specialist
}

func (s *Server) registerSpecialist(ctx context.Context, p *Principal, in *registerIn) (*specialistOut, error) {
	if err := mayOf(p, mayConfigure, in.Name); err != nil {
		return nil, err
	}
	if in.Body.IsHuman && !p.may(mayAdmin, in.Name) {
		return nil, forbidden("forbidden", "an admin registers humans", "%s may not register a human", p.Subject)
	}
	_, err := tenantOf(ctx).Runner.Register(ctx, in.Name, in.Body, p.actor(in.Name))
	if key := receiptOf(ctx); errors.Is(err, session.ErrExists) && key != nil && key.resumed && s.registered(ctx, in) {
		err = nil // by the same request, of which nobody kept the answer
	}
	if err != nil {
		return nil, err
	}
	return s.specialist(ctx, http.StatusCreated, in.Name, in.Body.SpecialistID)
}

// registered reports whether the specialist of a request is registered just so.
func (s *Server) registered(ctx context.Context, in *registerIn) bool {
	r, err := tenantOf(ctx).Runner.Store().Roster(ctx, in.Name)
	if err != nil {
		return false
	}
	wanted := in.Body
	wanted.MachineName = in.Name
	stored := r.Registered(wanted.SpecialistID)
	return stored != nil && reflect.DeepEqual(*stored, wanted)
}

func (s *Server) specialist(ctx context.Context, status int, machineName, id string) (*specialistOut, error) {
	r, err := tenantOf(ctx).Runner.Store().Roster(ctx, machineName)
	if err != nil {
		return nil, err
	}
	path := "/v1/machines/" + url.PathEscape(machineName) + "/specialists/" + url.PathEscape(id)
	return &specialistOut{status, path, api.SpecialistIn(r, id)}, nil
}

type switchIn struct {
	params.Machine
	SpecialistID string `path:"specialist" doc:"the id of the specialist" maxLength:"300"`
	Body         struct {
		Enabled   *bool           `json:"enabled,omitempty" doc:"false switches the specialist off"`
		Reasoning string          `json:"reasoning,omitempty" doc:"why"`
		Threshold json.RawMessage `json:"threshold,omitempty" doc:"not in this version"`
	}
}

func (s *Server) switchSpecialist(ctx context.Context, p *Principal, in *switchIn) (*specialistOut, error) {
	if err := mayOf(p, mayConfigure, in.Name); err != nil {
		return nil, err
	}
	switch {
	case in.Body.Threshold != nil:
		return nil, &api.Error{Status: http.StatusNotImplemented, Code: "not_implemented", ExitCode: 2, Detail: "thresholds cannot be changed here", Hint: "publish a definition with another threshold"}
	case in.Body.Enabled == nil:
		return nil, bad("bad_request", "enabled is missing: on or off?")
	}
	if err := tenantOf(ctx).Runner.Switch(ctx, in.Name, machine.SpecialistID(in.SpecialistID), runner.Switching{On: *in.Body.Enabled, Reason: in.Body.Reasoning, Actor: *p.actor(in.Name)}); err != nil {
		return nil, err
	}
	return s.specialist(ctx, http.StatusOK, in.Name, in.SpecialistID)
}
