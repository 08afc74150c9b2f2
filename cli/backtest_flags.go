package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/strategies"
)

// backtestFlags are those of backtest.
type backtestFlags struct {
	machine, arbiter, risk, roster, guards, since string
	threshold, maxError, minutes                  float64
	drop                                          []string
	cold, adopt                                   bool
	order                                         orderFlags // who adopts
	maxFlips                                      int
	given                                         func(flag string) bool // on the command line
}

// policy reads what is to be tried.
func (a *app) policy(f *backtestFlags) (p backtest.Policy, err error) {
	if f.arbiter != "" {
		if p.Arbiter, err = a.readArbiter(f.arbiter); err != nil {
			return p, err
		}
	}
	if f.given("threshold") {
		t, err := machine.NewThreshold(f.threshold)
		if err != nil {
			return p, command.Hinted(command.Usage("--threshold: %v", err), "for example --threshold 0.8")
		}
		p.Threshold = &t
	}
	if f.risk != "" {
		if p.Risk, err = parseRisk(f.risk); err != nil {
			return p, err
		}
	}
	if err := p.Check(); err != nil {
		return p, command.Hinted(command.Fail(command.ExitUsage, err), "for example --arbiter bayes --risk 0.05,0.9")
	}
	if f.roster != "" {
		if p.Roster, err = a.readRoster(f.roster); err != nil {
			return p, err
		}
	}
	if f.given("drop") && len(f.drop) == 0 {
		f.drop = []string{""}
	}
	for _, id := range f.drop {
		if id = strings.TrimSpace(id); id == "" {
			return p, command.Hinted(command.Usage("--drop has an empty id"), "for example --drop model-a,model-b")
		}
		p.Drop = append(p.Drop, id)
	}
	return p, nil
}

// readArbiter reads --arbiter: a built-in strategy, an expression, or a file with
// one arbiter as machine files have it.
func (a *app) readArbiter(name string) (*machine.Specialist, error) {
	if s := jobs.NamedArbiter(name); s != nil {
		return s, nil
	}
	if !strings.ContainsAny(name, "./\\") && a.Present(name) != nil {
		return nil, command.Hinted(command.Usage("--arbiter %q is no strategy", name), "it may be %s, an expression such as '= leader', or a file", strings.Join(strategies.Names(machine.Arbiter), ", "))
	}
	s := &machine.Specialist{Role: machine.Arbiter}
	data, err := a.ReadFile(name, files.Machine)
	if err == nil && guards.HoldsMachine(name, data) {
		err = fmt.Errorf(`%s: it is a machine file: write its arbiter alone, such as {"strategyFnName": "bayes"}`, name)
	}
	if err == nil {
		err = machine.ParseSpecialist(name, data, packs.HoldsSecret, s)
	}
	switch {
	case err != nil:
		return nil, command.Fail(command.ExitUsage, err)
	case s.Role != machine.Arbiter:
		return nil, command.Usage("%s: role is %q, an arbiter's is %q", name, s.Role, machine.Arbiter)
	}
	return s, nil
}

// readRoster reads --roster: a list of ids, or of specialists with ids.
func (a *app) readRoster(path string) (ids []string, err error) {
	data, err := a.ReadFile(path, files.Machine)
	if err == nil {
		err = machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
			ids, problems = rosterOf(section)
			return problems
		})
	}
	if err != nil {
		return nil, command.Fail(command.ExitUsage, err)
	}
	return ids, nil
}

// rosterOf reads a list of ids. What is none may be of another file than was meant: it
// is not shown.
func rosterOf(section []byte) (ids []string, problems []machine.Problem) {
	var list []json.RawMessage
	if json.Unmarshal(section, &list) != nil {
		return nil, []machine.Problem{{Code: "wrong-type", Message: `a list is wanted: of ids, such as ["model-a", "model-b"]`}}
	}
	ids = make([]string, 0, len(list))
	for i, item := range list {
		var id string
		var s struct{ SpecialistID string }
		if json.Unmarshal(item, &id) != nil && json.Unmarshal(item, &s) == nil {
			id = s.SpecialistID
		}
		if id == "" {
			problems = append(problems, machine.Problem{Path: fmt.Sprintf("/%d", i), Code: "wrong-type",
				Message: fmt.Sprintf(`element %d has to be an id, or to have a "specialistId"`, i+1)})
		}
		ids = append(ids, id)
	}
	return ids, problems
}

// parseRisk reads --risk.
func parseRisk(text string) (*machine.Risk, error) {
	most, confidence, two := strings.Cut(text, ",")
	r := &machine.Risk{Confidence: 0.9}
	var err error
	if r.MaxError, err = strconv.ParseFloat(strings.TrimSpace(most), 64); err == nil && two {
		r.Confidence, err = strconv.ParseFloat(strings.TrimSpace(confidence), 64)
	}
	if err == nil {
		err = (&backtest.Policy{Risk: r}).Check()
	}
	if err != nil {
		return nil, command.Hinted(command.Usage("--risk is %q", text), "it is maxError,confidence, both between 0 and 1, such as 0.05,0.9")
	}
	return r, nil
}

// readGuards reads --guards, also as a server is sent them; nil without it.
func (a *app) readGuards(path string) (*jobs.Guards, json.RawMessage, error) {
	if path == "" {
		return nil, nil, nil
	}
	l, err := guards.LoadAnyGuards(a.App, path)
	if err != nil {
		return nil, nil, command.Fail(command.ExitUsage, err)
	}
	return &jobs.Guards{Machine: l.Config, States: l.States}, l.JSON, nil
}

// limits are what --max-flips and --max-error say.
func (f *backtestFlags) limits() (most jobs.Limits) {
	if f.given("max-flips") {
		most.Flips = &f.maxFlips
	}
	if f.given("max-error") {
		most.Error = &f.maxError
	}
	return most
}

// request returns what is to be tried as a server is asked for it.
func request(b *jobs.Backtest, guards json.RawMessage, most jobs.Limits) (api.NewJob, error) {
	in := api.BacktestJob{
		MachineName: b.MachineName, Roster: b.Policy.Roster, Drop: b.Policy.Drop, Guards: guards, Since: b.Since, Cold: b.Cold, HumanMinutes: b.HumanMinutes,
		MaxFlips: most.Flips, MaxError: most.Error,
	}
	if t := b.Policy.Threshold; t != nil {
		in.Threshold = &t.Given
	}
	if r := b.Policy.Risk; r != nil {
		in.Risk = &api.PromisedRisk{MaxError: r.MaxError, Confidence: &r.Confidence}
	}
	var err error
	if b.Policy.Arbiter != nil {
		in.Arbiter, err = json.Marshal(b.Policy.Arbiter)
	}
	return api.NewJob{Kind: "backtest", BacktestJob: in}, err
}

// text says what is tried.
func (f *backtestFlags) text() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("arbiter", f.arbiter)
	add("threshold", render.When(f.given("threshold"), fmt.Sprint(f.threshold)))
	add("risk", f.risk)
	add("roster", f.roster)
	add("without", strings.Join(f.drop, ", "))
	add("guards", f.guards)
	if f.cold {
		parts = append(parts, "nothing learned before")
	}
	return cmp.Or(strings.Join(parts, "; "), "as recorded")
}
