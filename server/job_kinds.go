package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/lab/simulate"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// What jobs do: a back-test, a check of the store, its rebuilding, a simulation. Each is what the
// command of that name does, with what its flags say as members; what is wrong with them is said
// at once, and no job is made.

// The kinds of jobs.
const (
	kindBacktest = "backtest"
	kindVerify   = "verify"
	kindRebuild  = "rebuild"
	kindSimulate = "simulate"
)

// taskOf returns the work that is asked for.
func (s *Server) taskOf(ctx context.Context, p *Principal, in *api.NewJob) (*task, error) {
	for kind, part := range map[string]any{kindBacktest: in.BacktestJob, kindVerify: in.VerifyJob, kindRebuild: in.RebuildJob, kindSimulate: in.SimulateJob} {
		if v := reflect.ValueOf(part); kind != in.Kind && !v.IsZero() {
			for i := range v.NumField() {
				if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); !v.Field(i).IsZero() {
					return nil, bad("bad_request", "/%s: it is of a job of kind %s, not %s", name, kind, in.Kind)
				}
			}
		}
	}
	switch in.Kind {
	case kindBacktest:
		return s.backtestTask(ctx, p, &in.BacktestJob)
	case kindSimulate:
		return s.simulateTask(p, &in.SimulateJob)
	}
	return s.storeTask(p, in)
}

func (s *Server) backtestTask(ctx context.Context, p *Principal, in *api.BacktestJob) (*task, error) {
	if err := mayJob(p, kindBacktest, in.MachineName); err != nil {
		return nil, err
	}
	work := jobs.Backtest{MachineName: in.MachineName, Since: in.Since, Cold: in.Cold, HumanMinutes: in.HumanMinutes}
	var err error
	if work.Policy, err = policyOf(in); err != nil {
		return nil, err
	}
	if err := s.policyFits(ctx, p, in.MachineName, &work.Policy); err != nil {
		return nil, err
	}
	if in.Since != "" {
		if _, _, err := jobs.ParseSince(in.Since); err != nil {
			return nil, bad("bad_request", "/since: %v", err)
		}
	}
	if in.Guards != nil {
		if work.Guards, err = s.guardsOf(in.Guards); err != nil {
			return nil, err
		}
	}
	most, by := jobs.Limits{Flips: in.MaxFlips, Error: in.MaxError}, p.actor(in.MachineName)
	return &task{machineName: in.MachineName, do: func(ctx context.Context, w *working) (out control.Outcome, err error) {
		work := work
		hidden := map[string]map[string]bool{}
		work.Progress = w.tell
		work.Flip = func(f backtest.Flip) error {
			if kept, err := s.keepsFlip(ctx, hidden, &f); err != nil || kept {
				return err
			}
			return w.line(jobs.FlipOf(f))
		}
		r, gates, err := work.Run(ctx, tenantOf(ctx).Runner)
		if err != nil {
			return out, err
		}
		for _, line := range jobs.BacktestLines(r, gates, work.Changed()) {
			if err := w.line(line); err != nil {
				return out, err
			}
		}
		if work.Policy.Changed() && !work.Cold {
			w.finding = finding{r.Trial, r.Adoptions}
		}
		if exceeded := most.Exceeded(&r.Total); exceeded != nil {
			out = control.Outcome{ExitCode: 1, Code: "exceeded", Detail: exceeded.Error()}
		}
		return out, jobs.RecordTrials(ctx, tenantOf(ctx).Runner, r, by)
	}}, nil
}

// policyFits refuses a back-test of a machine that nobody knows, or under a policy by which its
// newest sessions could not be decided. Older definitions are met on the way.
func (s *Server) policyFits(ctx context.Context, p *Principal, name string, policy *backtest.Policy) error {
	if name == "" {
		return nil
	}
	if _, err := s.newest(ctx, p, name); errors.Is(err, session.ErrNotFound) {
		return &session.NotFoundError{What: "Sessions of machine", ID: name}
	} else if err != nil {
		return err
	}
	program, err := tenantOf(ctx).Runner.Newest(ctx, name)
	if errors.Is(err, session.ErrNotFound) { // it is published, and nobody has started it
		return nil
	}
	if err != nil {
		return err
	}
	return policy.Fits(program.Machine)
}

// A finding is what a back-test found that may be adopted.
type finding struct {
	Trial     session.Trial    `json:"trial"`
	Adoptions []trust.Adoption `json:"adoptions"`
}

// keepsFlip reports whether a round waits for a human who is to review it without having seen what
// was decided: then it is in no list of a server.
func (s *Server) keepsFlip(ctx context.Context, known map[string]map[string]bool, f *backtest.Flip) (bool, error) {
	hidden, is := known[f.SessionID]
	if !is {
		id, err := session.ParseID(f.SessionID)
		if err != nil {
			return true, err
		}
		at, err := tenantOf(ctx).Runner.Session(ctx, id)
		if err != nil {
			return true, err
		}
		if hidden, err = s.withheldIDs(ctx, at); err != nil {
			return true, err
		}
		known[f.SessionID] = hidden
	}
	return hidden[f.RoundID], nil
}

// policyOf returns what is to be tried.
func policyOf(in *api.BacktestJob) (p backtest.Policy, err error) {
	if in.Arbiter != nil {
		if p.Arbiter, err = arbiterOf(in.Arbiter); err != nil {
			return p, err
		}
	}
	if in.Threshold != nil {
		t, err := machine.NewThreshold(*in.Threshold)
		if err != nil {
			return p, bad("bad_request", "/threshold: %v", err)
		}
		p.Threshold = &t
	}
	if in.Risk != nil {
		p.Risk = &machine.Risk{MaxError: in.Risk.MaxError, Confidence: 0.9}
		if in.Risk.Confidence != nil {
			p.Risk.Confidence = *in.Risk.Confidence
		}
	}
	p.Roster, p.Drop = in.Roster, in.Drop
	return p, p.Check()
}

// arbiterOf reads an arbiter: the name of a strategy, an expression, or one as a definition has it.
func arbiterOf(text json.RawMessage) (*machine.Specialist, error) {
	var name string
	if json.Unmarshal(text, &name) == nil {
		if s := jobs.NamedArbiter(name); s != nil {
			return s, nil
		}
		return nil, bad("bad_request", "/arbiter: %q is no strategy, and no expression that begins with =", name)
	}
	s := &machine.Specialist{Role: machine.Arbiter}
	if err := machine.ParseSpecialist("arbiter.json", text, packs.HoldsSecret, s); err != nil {
		return nil, err
	}
	if s.Role != machine.Arbiter {
		return nil, bad("bad_request", "/arbiter/role: it is %q, an arbiter's is %q", s.Role, machine.Arbiter)
	}
	return s, nil
}

// guardsOf reads guards, or those of a definition.
func (s *Server) guardsOf(text json.RawMessage) (*jobs.Guards, error) {
	var is struct{ States json.RawMessage }
	if json.Unmarshal(text, &is) == nil && is.States != nil {
		m, err := s.parse(text)
		if err != nil {
			return nil, err
		}
		c, states, err := guard.OfMachine(m)
		return &jobs.Guards{Machine: c, States: states}, err
	}
	c, err := parseGuards("guards.json", text, guard.Compat)
	return &jobs.Guards{Machine: c}, err
}

// storeTask returns the work of a job that is about the file of the store.
func (s *Server) storeTask(p *Principal, in *api.NewJob) (*task, error) {
	if err := mayJob(p, in.Kind, ""); err != nil {
		return nil, err
	}
	kept := s.tenants[p.Tenant].Runner.Store()
	if database, ok := kept.(*postgres.Store); ok {
		return databaseTask(database, in)
	}
	file, ok := kept.(*store.SQLite)
	if !ok {
		return nil, &api.Error{Status: http.StatusUnprocessableEntity, Code: "memory_store", Detail: "the memory store holds nothing to check", ExitCode: 2}
	}
	var do func(context.Context) (store.Report, error)
	switch in.Kind {
	case kindVerify:
		var heads []store.Head
		if head := strings.TrimSpace(in.Head); head != "" {
			h, err := store.ParseHead(head)
			if err != nil {
				return nil, bad("bad_request", "/head: %v", err)
			}
			heads = append(heads, h)
		}
		do = func(ctx context.Context) (store.Report, error) {
			return file.Verify(ctx, session.NewPrograms(), heads...)
		}
	default:
		if s.config.Driver != nil {
			return nil, errDriven()
		}
		do = func(ctx context.Context) (store.Report, error) {
			r, err := file.Rebuild(ctx, session.NewPrograms(), store.RebuildOptions{AcceptCut: in.AcceptCut, Repack: in.Repack})
			if errors.Is(err, store.ErrDriven) {
				err = errDriven()
			}
			return r, err
		}
	}
	return storeReport(func(ctx context.Context, tell func(done, of int64)) (store.Report, error) {
		file.OnProgress(tell)
		defer file.OnProgress(nil)
		return do(ctx)
	}), nil
}

// databaseTask returns the work of a job that is about a store in Postgres.
func databaseTask(s *postgres.Store, in *api.NewJob) (*task, error) {
	switch {
	case strings.TrimSpace(in.Head) != "":
		return nil, bad("bad_request", "/head: it is of a store in a file")
	case in.AcceptCut || in.Repack:
		return nil, bad("bad_request", "/acceptCut, /repack: they are of a store in a file")
	}
	return storeReport(func(ctx context.Context, tell func(done, of int64)) (store.Report, error) {
		if in.Kind == kindVerify {
			return s.Verify(ctx, session.NewPrograms(), tell)
		}
		r, err := s.Rebuild(ctx, session.NewPrograms(), func(_ string, done, of int64) { tell(done, of) })
		if errors.Is(err, store.ErrDriven) {
			err = errDriven()
		}
		return r, err
	}), nil
}

// storeReport returns work that ends with a report on a store.
func storeReport(do func(ctx context.Context, tell func(done, of int64)) (store.Report, error)) *task {
	return &task{alone: true, do: func(ctx context.Context, w *working) (out control.Outcome, err error) {
		r, err := do(ctx, w.tell)
		if err != nil {
			return out, err
		}
		if r.Difference != nil {
			out = control.Outcome{ExitCode: 1, Code: "difference", Detail: packs.Redact(r.Difference.Error())}
		}
		return out, w.line(r)
	}}
}

// errDriven says that a store is not rebuilt while sessions are carried on.
func errDriven() error {
	return &api.Error{Status: http.StatusConflict, Code: "driven", Detail: "sessions are carried on: the store cannot be rebuilt meanwhile", Hint: "start the server with --drive off, and rebuild; nor may another process carry them on", ExitCode: 1}
}

// mostSimulated is how many rounds all runs of a simulation may have: each is remembered until its
// end.
const mostSimulated = 1_000_000

func (s *Server) simulateTask(p *Principal, in *api.SimulateJob) (*task, error) {
	c := simulate.Config{Registry: s.config.Registry, Example: s.config.Example, Rounds: 1000, Runs: 1, Seed: 1, Meta: in.MetaJSON}
	if in.Rounds > 0 {
		c.Rounds = in.Rounds
	}
	if in.Runs > 0 {
		c.Runs = in.Runs
	}
	if c.Rounds > mostSimulated/c.Runs {
		return nil, bad("bad_request", "/rounds: %d rounds in each of %d runs are more than %d", c.Rounds, c.Runs, mostSimulated)
	}
	var err error
	if in.Seed != "" {
		if c.Seed, err = strconv.ParseUint(in.Seed, 10, 64); err != nil {
			return nil, badSeed(in.Seed)
		}
	}
	name := ""
	switch {
	case in.Machine != nil:
		if c.Machine, err = s.parse(in.Machine); err != nil {
			return nil, err
		}
		if name = c.Machine.Name(); !p.may(mayConfigure, name) {
			return nil, mayNot(p, mayConfigure, name)
		}
	case in.Spec == nil:
		return nil, bad("bad_request", "the request needs a definition as machine, or a panel as spec")
	}
	if in.Spec == nil {
		c.Panel = simulate.DefaultPanel(c.Machine)
	} else {
		err = machine.ParseSection("spec.json", in.Spec, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
			c.Panel, problems = simulate.ParsePanel(section, c.Machine)
			return problems
		})
		if err != nil {
			return nil, err
		}
	}
	return &task{machineName: name, do: func(ctx context.Context, w *working) (out control.Outcome, err error) {
		c := c
		c.Progress = func(done, of int) { w.tell(int64(done), int64(of)) }
		r, err := simulate.Run(ctx, c)
		if err != nil {
			return out, err
		}
		for _, line := range jobs.SimulationLines(r) {
			if err := w.line(line); err != nil {
				return out, err
			}
		}
		return out, nil
	}}, nil
}

// badSeed says that a text is no seed.
func badSeed(text string) error {
	return bad("bad_request", "seed is %q, not a whole number from 0 to 18446744073709551615", text)
}
