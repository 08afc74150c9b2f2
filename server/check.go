package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

type checkIn struct{ Body api.Checking }

type checkOut struct{ Body api.Checked }

func (s *Server) registerCheck() {
	add(s, operation{id: "check-steps", method: http.MethodPost, path: "/v1/check", summary: "Judge steps of an agent by guards, as dialai check does; nothing is kept", needs: mayRead}, s.check)
}

// check judges steps, each with those before it.
func (s *Server) check(_ context.Context, _ *Principal, in *checkIn) (*checkOut, error) {
	config, err := s.guardsFor(&in.Body)
	if err != nil {
		return nil, err
	}
	if config.Classifier != nil {
		return nil, bad("bad_request", "the guards have a classifier, which is not asked here: remove it")
	}
	g, err := guard.New(config)
	if err != nil {
		return nil, bad("bad_request", "%v", err)
	}
	out := &checkOut{api.Checked{Verdicts: make([]json.RawMessage, len(in.Body.Steps))}}
	for i, step := range in.Body.Steps {
		input, err := guard.ParseCheckInput(step)
		if err != nil {
			return nil, bad("bad_request", "/steps/%d: %v", i, err)
		}
		v, metrics, err := g.Check(input)
		if err != nil {
			return nil, bad("bad_request", "/steps/%d: %v", i, err)
		}
		out.Body.Verdicts[i] = guard.AppendResult(nil, v, metrics, config.Profile)
	}
	return out, nil
}

// guardsFor returns the guards by which steps are to be judged: those that come along, or that are
// known here by a name.
func (s *Server) guardsFor(in *api.Checking) (*guard.Config, error) {
	switch {
	case (in.Guard == "") == (in.Config == nil):
		return nil, bad("bad_request", "the request needs guards as config, or the name of some as guard: one of them")
	case in.Guard == "":
		return parseGuards("config.json", in.Config, guard.Profile(cmp.Or(in.Profile, string(guard.Compat))))
	case in.Profile != "":
		return nil, bad("bad_request", "/profile: guards that the server knows have theirs")
	}
	if config := s.config.Guards[in.Guard]; config != nil {
		return config, nil
	}
	return nil, &session.NotFoundError{What: "Guards", ID: in.Guard}
}

// parseGuards reads guards; profile is that of guards that do not say.
func parseGuards(name string, text json.RawMessage, profile guard.Profile) (config *guard.Config, err error) {
	err = machine.ParseSection(name, text, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
		config, problems = guard.ParseAs(section, profile)
		return problems
	})
	if err != nil {
		p := problemOf(err)
		p.Code = "invalid_guards"
		return nil, p
	}
	return config, nil
}
