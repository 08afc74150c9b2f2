package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// What human decisions have taught about the specialists of a machine, how far its states do
// without humans, and the orders by which a human changes that. The reports are those of the
// commands: package report makes them.

func (s *Server) registerTrust() {
	const of = "/v1/machines/{machine}"
	add(s, operation{id: "list-trust", method: http.MethodGet, path: of + "/trust", summary: "What everybody's word counts for, by state", needs: mayRead}, s.trust)
	add(s, operation{id: "get-trust", method: http.MethodGet, path: of + "/trust/{specialist}", summary: "Where the trust of one specialist comes from, by state", needs: mayRead}, s.trustOf)
	add(s, operation{id: "list-trust-history", method: http.MethodGet, path: of + "/trust-history", summary: "What everybody's word has counted for, over human decisions", needs: mayRead}, s.trustHistory)
	add(s, operation{id: "list-alignment", method: http.MethodGet, path: of + "/alignment", summary: "How often specialists chose as humans did", needs: mayRead}, s.alignment)
	add(s, operation{id: "get-metrics", method: http.MethodGet, path: of + "/metrics", summary: "How far a machine does without humans", needs: mayRead}, s.metrics)
	add(s, operation{id: "get-risk", method: http.MethodGet, path: of + "/risk", summary: "What a machine promises, and what came of it", needs: mayRead}, s.risk)
	add(s, operation{id: "get-calibration", method: http.MethodGet, path: of + "/calibration", summary: "How the probabilities that bayes states compare with what humans choose", needs: mayRead}, s.calibration)
	add(s, operation{id: "list-spend", method: http.MethodGet, path: of + "/spend", summary: "What the sessions of a machine have spent", needs: mayRead}, s.spend)
	add(s, operation{id: "evaluate-specialist", method: http.MethodGet, path: of + "/evaluations/{specialist}", summary: "How what a specialist proposed compares with what humans decided", needs: mayRead}, s.evaluation)
	add(s, operation{id: "list-collapse", method: http.MethodGet, path: of + "/collapse", summary: "How far the states of a machine do without humans", needs: mayRead}, s.collapses)
	add(s, operation{id: "get-collapse", method: http.MethodGet, path: of + "/collapse/{state}", summary: "How far a state does without humans, and what is missing for more", needs: mayRead}, s.collapse)
	add(s, operation{id: "list-humans", method: http.MethodGet, path: of + "/humans", summary: "Who may give orders in a state, and review what was decided there", needs: mayRead}, s.humansIn)
	add(s, operation{id: "adopt-policy", method: http.MethodPost, path: of + "/adoptions", summary: "Let the live test of a policy's promise begin with what a back-test found, by a human's word", needs: mayRule, errors: []int{409, 422}}, s.adopt)
	for _, o := range []struct {
		name, summary string
		give          func(context.Context, runner.Order, machine.SpecialistID) error
	}{
		{"promote", "Make a specialist champion of a state, by a human's word", func(ctx context.Context, o runner.Order, id machine.SpecialistID) error {
			if id == "" {
				return bad("bad_request", "champion is missing: whom to promote?")
			}
			_, err := tenantOf(ctx).Runner.Promote(ctx, o, id)
			return err
		}},
		{"demote", "Send a state back, by a human's word", func(ctx context.Context, o runner.Order, _ machine.SpecialistID) error {
			return tenantOf(ctx).Runner.Demote(ctx, o)
		}},
		{"freeze", "Keep anybody from becoming champion of a state", func(ctx context.Context, o runner.Order, _ machine.SpecialistID) error {
			return tenantOf(ctx).Runner.Freeze(ctx, o, true)
		}},
		{"release", "Let a state that is frozen go on", func(ctx context.Context, o runner.Order, _ machine.SpecialistID) error {
			return tenantOf(ctx).Runner.Freeze(ctx, o, false)
		}},
	} {
		add(s, operation{id: o.name + "-state", method: http.MethodPost, path: of + "/collapse/{state}/" + o.name, summary: o.summary, needs: mayRule, errors: []int{409, 422}},
			func(ctx context.Context, p *Principal, in *orderIn) (*collapseOut, error) {
				return s.order(ctx, p, in, o.give)
			})
	}
}

// known refuses a machine that the caller may not see, or that there is not.
func (s *Server) known(ctx context.Context, p *Principal, name string) error {
	err := mayOf(p, mayRead, name)
	if err == nil {
		_, err = s.newest(ctx, p, name)
	}
	return err
}

type trustIn struct {
	params.Machine
	params.Page
	State string `query:"state" doc:"only this state"`
}

type trustOut struct{ Body api.List[report.Trusted] }

func (s *Server) trust(ctx context.Context, p *Principal, in *trustIn) (*trustOut, error) {
	return s.trusted(ctx, p, in, func(report.Trusted) bool { return true })
}

type trustOfIn struct {
	params.Machine
	params.Page
	SpecialistID string `path:"specialist" doc:"the id of the specialist" maxLength:"300"`
}

func (s *Server) trustOf(ctx context.Context, p *Principal, in *trustOfIn) (*trustOut, error) {
	out, err := s.trusted(ctx, p, &trustIn{Machine: in.Machine, Page: in.Page}, func(t report.Trusted) bool { return t.SpecialistID == in.SpecialistID })
	if err == nil && len(out.Body.Items) == 0 && in.Cursor == "" {
		err = &session.NotFoundError{What: "Specialist", ID: in.SpecialistID}
	}
	return out, err
}

func (s *Server) trusted(ctx context.Context, p *Principal, in *trustIn, wanted func(report.Trusted) bool) (*trustOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	list, err := report.TrustOf(ctx, tenantOf(ctx).Runner, in.Name, machine.StateName(in.State))
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(t report.Trusted) bool { return !wanted(t) })
	page, err := pageOf("trust in "+in.Name, p, &in.Page, list, func(t report.Trusted) string { return t.State + "\n" + t.SpecialistID })
	return &trustOut{page}, err
}

type alignmentOut struct{ Body api.List[api.Alignment] }

func (s *Server) alignment(ctx context.Context, p *Principal, in *trustIn) (*alignmentOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	book, err := tenantOf(ctx).Runner.Store().Book(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(book.Records(in.Name), func(a api.Alignment) bool { return in.State != "" && a.State != in.State && a.State != "" })
	page, err := pageOf("alignment in "+in.Name, p, &in.Page, list, func(a api.Alignment) string { return a.State + "\n" + a.SpecialistID })
	return &alignmentOut{page}, err
}

type metricsIn struct {
	params.Machine
	State        string  `query:"state" doc:"only decisions in this state"`
	HumanMinutes float64 `query:"humanMinutes" minimum:"0" maximum:"1000000" doc:"how long a human decision takes; 2 without it"`
}

type metricsOut struct{ Body *report.Metrics }

func (s *Server) metrics(ctx context.Context, p *Principal, in *metricsIn) (*metricsOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	m, err := report.MetricsOf(ctx, tenantOf(ctx).Runner, in.Name, machine.StateName(in.State))
	if err == nil && in.HumanMinutes > 0 {
		m.Assume(in.HumanMinutes)
	}
	return &metricsOut{m}, err
}

type riskOut struct{ Body *report.Risks }

func (s *Server) risk(ctx context.Context, p *Principal, in *params.Machine) (*riskOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	r, err := report.RisksOf(ctx, tenantOf(ctx).Runner, in.Name)
	return &riskOut{r}, err
}

type evaluationIn struct {
	params.Machine
	SpecialistID string `path:"specialist" doc:"the id of the specialist" maxLength:"300"`
	First        int    `query:"first" minimum:"0" doc:"over the first human decisions, so many; without it and last all"`
	Last         int    `query:"last" minimum:"0" doc:"over the last human decisions, so many"`
}

type evaluationOut struct{ Body report.Evaluation }

func (s *Server) evaluation(ctx context.Context, p *Principal, in *evaluationIn) (*evaluationOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	if in.First > 0 && in.Last > 0 {
		return nil, bad("bad_request", "first and last: one of them")
	}
	evaluate, n := report.EvaluateAlignment, in.First
	if in.Last > 0 {
		evaluate, n = report.EvaluateAccuracy, in.Last
	}
	v, err := evaluate(ctx, tenantOf(ctx).Runner, in.Name, machine.SpecialistID(in.SpecialistID), n)
	return &evaluationOut{v}, err
}

type collapsesOut struct {
	Body api.List[runner.StateCollapse]
}

func (s *Server) collapses(ctx context.Context, p *Principal, in *trustIn) (*collapsesOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	list, err := report.CollapseOf(ctx, tenantOf(ctx).Runner, in.Name, machine.StateName(in.State))
	if err != nil {
		return nil, err
	}
	page, err := pageOf("collapse of "+in.Name+"\n"+in.State, p, &in.Page, list, func(c runner.StateCollapse) string { return c.State })
	return &collapsesOut{page}, err
}

type collapseIn struct {
	params.Machine
	params.State
}

type collapseOut struct{ Body runner.StateCollapse }

func (s *Server) collapse(ctx context.Context, p *Principal, in *collapseIn) (*collapseOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	list, err := report.CollapseOf(ctx, tenantOf(ctx).Runner, in.Name, machine.StateName(in.StateName))
	if err == nil && len(list) == 0 {
		err = &session.NotFoundError{What: "Collapse of state", ID: in.StateName}
	}
	if err != nil {
		return nil, err
	}
	return &collapseOut{list[0]}, nil
}

type humansIn struct {
	params.Machine
	StateName string `query:"state" doc:"the name of the state" maxLength:"300"`
}

type humansOut struct{ Body api.Deciders }

func (s *Server) humansIn(ctx context.Context, p *Principal, in *humansIn) (*humansOut, error) {
	if err := s.known(ctx, p, in.Name); err != nil {
		return nil, err
	}
	if in.StateName == "" {
		return nil, bad("bad_request", "state is missing: the humans of which state?")
	}
	ids, declared, err := tenantOf(ctx).Runner.HumansIn(ctx, in.Name, machine.StateName(in.StateName))
	return &humansOut{api.Deciders{Humans: append([]string{}, ids...), Declared: declared}}, err
}

type orderIn struct {
	params.Machine
	params.State
	Body *api.Order
}

// order has a human's order carried out, who is bound to the caller and takes part in the state.
func (s *Server) order(ctx context.Context, p *Principal, in *orderIn, give func(context.Context, runner.Order, machine.SpecialistID) error) (*collapseOut, error) {
	name, body := in.Name, api.Order{}
	if err := mayOf(p, mayRule, name); err != nil {
		return nil, err
	}
	if in.Body != nil {
		body = *in.Body
	}
	who, err := p.actingAs(name, in.StateName, body.SpecialistID, func() ([]string, bool, error) {
		return tenantOf(ctx).Runner.HumansIn(ctx, name, machine.StateName(in.StateName))
	})
	if err != nil {
		return nil, err
	}
	if err := give(ctx, runner.Order{MachineName: name, State: machine.StateName(in.StateName), SpecialistID: who, Reason: body.Reasoning, Actor: p.actor(name)}, machine.SpecialistID(body.Champion)); err != nil {
		return nil, err
	}
	return s.collapse(ctx, p, &collapseIn{in.Machine, in.State})
}

type adoptIn struct {
	params.Machine
	Body api.Adopting
}

type adoptOut struct{ Body api.Adopted }

// adopt has the live tests of what a policy promises begin with what a job has found, by the word of
// a human who is bound to the caller and takes part where the promise is made.
func (s *Server) adopt(ctx context.Context, p *Principal, in *adoptIn) (*adoptOut, error) {
	if err := mayOf(p, mayRule, in.Name); err != nil {
		return nil, err
	}
	report, err := s.foundBy(ctx, p, in.Body.JobID, in.Name)
	if err != nil {
		return nil, err
	}
	order := runner.Adopting{Reason: in.Body.Reasoning, Actor: p.actor(in.Name)}
	if key := receiptOf(ctx); key != nil {
		order.ID = key.ID().String() // so that the request adopts once
	}
	lines, err := jobs.Adopt(ctx, tenantOf(ctx).Runner, report, order, func(a *trust.Adoption) (machine.SpecialistID, error) {
		return p.actingAs(in.Name, a.State, in.Body.SpecialistID, func() ([]string, bool, error) {
			ids, err := tenantOf(ctx).Runner.Adopters(ctx, in.Name, machine.StateName(a.State))
			return ids, !slices.Contains(ids, runner.Operator), err
		})
	})
	if errors.Is(err, session.ErrExists) {
		err = keyReused("this Idempotency-Key has adopted something else")
	}
	return &adoptOut{api.Adopted{Adopted: lines}}, err
}

// foundBy returns what a back-test has found of a machine that may be adopted.
func (s *Server) foundBy(ctx context.Context, p *Principal, id, machineName string) (*backtest.Report, error) {
	j, err := s.config.Control.Job(ctx, id)
	if errors.Is(err, control.ErrNotFound) || err == nil && (j.Tenant != p.Tenant || j.Kind != kindBacktest || j.Machine != "" && j.Machine != machineName) {
		err = &session.NotFoundError{What: "Back-test of machine " + machineName, ID: id}
	}
	if err == nil {
		err = notDone(&j)
	}
	if err != nil {
		return nil, err
	}
	if j.Outcome.Code != "" {
		return nil, &api.Error{Status: http.StatusConflict, Code: j.Outcome.Code, Detail: j.Outcome.Detail, ExitCode: 1}
	}
	_, text, err := s.config.Control.JobResult(ctx, id)
	if err != nil {
		return nil, err
	}
	var found finding
	if text != nil {
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, err
		}
	}
	report := &backtest.Report{Trial: found.Trial}
	for _, a := range found.Adoptions {
		if a.Machine == machineName {
			report.Adoptions = append(report.Adoptions, a)
		}
	}
	if len(report.Adoptions) == 0 {
		return nil, &api.Error{Status: http.StatusUnprocessableEntity, Code: "promises_nothing", Detail: "this policy promises nothing, so there is nothing to adopt", Hint: "a back-test tries one with an arbiter of the strategy bayes and a risk", ExitCode: 2}
	}
	return report, nil
}
