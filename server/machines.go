package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

func (s *Server) registerMachines() {
	add(s, operation{id: "validate-machine", method: http.MethodPost, path: "/v1/machines/validate", summary: "Check a definition, and say what is wrong with it or probably not meant", needs: mayRead}, s.validate)
	add(s, operation{id: "get-machine", method: http.MethodGet, path: "/v1/machines/{machine}", summary: "The newest definition of a machine", needs: mayRead}, s.machine)
}

// parse reads a definition that was sent.
func (s *Server) parse(definition json.RawMessage) (*machine.Machine, error) {
	return machine.Parse("machine.json", definition, s.config.Checks)
}

type definitionIn struct {
	Body json.RawMessage `doc:"a definition, as machine files have it"`
}

type validateOut struct {
	Body struct {
		MachineName   string        `json:"machineName,omitempty"`
		MachineDigest string        `json:"machineDigest,omitempty"`
		Problems      []api.Problem `json:"problems"`
	}
}

func (s *Server) validate(_ context.Context, _ *Principal, in *definitionIn) (*validateOut, error) {
	out := &validateOut{}
	out.Body.Problems = []api.Problem{}
	m, err := s.parse(in.Body)
	if err != nil {
		out.Body.Problems = problemOf(err).Problems
		return out, nil
	}
	out.Body.MachineName, out.Body.MachineDigest = m.Name(), m.Digest()
	out.Body.Problems = problemsOf(m.Lint(machine.LintOptions{}), machine.Problem.Level)
	return out, nil
}

type machineIn struct {
	Machine string `path:"machine" doc:"the name of the machine"`
}

type machineOut struct{ Body api.Machine }

func (s *Server) machine(ctx context.Context, p *Principal, in *machineIn) (*machineOut, error) {
	if !p.may(mayRead, in.Machine) {
		return nil, &session.NotFoundError{What: "Machine", ID: in.Machine}
	}
	program, err := s.newest(ctx, in.Machine)
	if err != nil {
		return nil, err
	}
	m := program.Machine
	return &machineOut{api.Machine{MachineName: m.Name(), MachineDigest: m.Digest(), Definition: m.JSON()}}, nil
}

// newest returns the newest definition of a machine.
func (s *Server) newest(ctx context.Context, name string) (*session.Program, error) {
	program, err := s.config.Runner.Newest(ctx, name)
	if err == nil && program == nil {
		err = &session.NotFoundError{What: "Machine", ID: name}
	}
	return program, err
}
