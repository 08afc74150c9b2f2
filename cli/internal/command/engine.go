package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/webhook"
)

// The engine that the environment and the flags describe: a Runner with its store, and how
// it reaches what is outside of it, services, models with their prices, and telemetry.

// An Engine is a Runner with its store.
type Engine struct {
	*runner.Runner
	Store  closableStore
	Models *llm.Client
	Hooks  *webhook.Client
	err    io.Writer
	stop   func() // of telemetry
}

// Close closes both, sends what telemetry is left, and says what the audit of models could not keep.
func (e *Engine) Close() error {
	e.stop()
	if n := e.Models.AuditFailures(); n > 0 {
		fmt.Fprintf(e.err, "warning: %s of how models were asked could not be kept\n", render.Plural(int(n), "attempt"))
	}
	return errors.Join(e.Runner.Close(), e.Store.Close())
}

// publicURL checks an address that is told to others; "" is none.
func publicURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", Hinted(Usage("DIALAI_PUBLIC_URL is not an address that anybody could call"), "for example https://decisions.example.com")
	}
	return strings.TrimRight(text, "/"), nil
}

// outside is how the program reaches what is outside of it.
type outside struct {
	hooks  webhook.Config
	models llm.Config
	prices *spend.PriceTable
	public string
}

// outside reads from the environment how to reach what is outside.
func (a *App) outside() (o outside, err error) {
	if o.hooks, err = webhook.FromEnvironment(a.Lookup); err != nil {
		return o, Fail(ExitUsage, err)
	}
	o.hooks.Tape = a.Tape
	if o.models, err = a.ModelConfig(); err != nil {
		return o, err
	}
	if o.prices, err = a.PriceTable(); err != nil {
		return o, err
	}
	o.models.Tape = a.Tape
	o.public, err = publicURL(a.Env("DIALAI_PUBLIC_URL"))
	return o, err
}

// panicked shows where the work on a session came to a panic.
func (a *App) panicked(p *runner.PanicError) {
	if a.Flags.Verbose {
		fmt.Fprintf(a.Err, "panic in session %s: %s\n%s", p.Session, render.Clean(p.Value), p.Stack)
	}
}

// An EngineOf says what sets an engine apart from others of the same program. The zero EngineOf
// is that of a program with one.
type EngineOf struct {
	Store    string // as --store names it; "" means what that does
	Observer func(session.Change)
	Tenant   string                                            // the Runner's; "" if there is one
	Quota    *spend.Quota                                      // of the tenant; nil limits nothing
	Agents   func(*machine.Machine, *machine.Specialist) error // the Runner's; nil drives no agents
	// Hooks changes how webhooks are called; nil leaves it.
	Hooks func(*webhook.Config)
	// Path stands behind DIALAI_PUBLIC_URL in the addresses for late answers.
	Path string
}

// EngineFor builds the engine that the environment and the flags describe; the operator of
// the terminal may not be among those who rule.
func (a *App) EngineFor(ctx context.Context, does Access, observer func(session.Change), operator bool) (*Engine, error) {
	all, err := a.Engines(ctx, does, operator, []EngineOf{{Observer: observer}})
	if err != nil {
		return nil, err
	}
	a.Shorten(ctx, all[0].Sessions)
	return all[0], nil
}

// Engines builds several at once, which ask models together no harder than one.
func (a *App) Engines(ctx context.Context, does Access, operator bool, of []EngineOf) (all []*Engine, err error) {
	o, err := a.outside()
	if err != nil {
		return nil, err
	}
	stop, err := a.Telemetry(&o.models)
	if err != nil {
		return nil, err
	}
	models := llm.New(o.models)
	defer func() {
		if err != nil {
			for _, e := range all {
				err = errors.Join(err, e.Close())
			}
			stop()
		}
	}()
	for i := range of {
		e, err := a.engine(ctx, does, operator, &o, models, &of[i])
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	all[0].stop = stop
	return all, nil
}

func (a *App) engine(ctx context.Context, does Access, operator bool, o *outside, models *llm.Client, of *EngineOf) (*Engine, error) {
	s, err := a.openStore(ctx, cmp.Or(of.Store, a.Flags.Store), does)
	if err != nil {
		return nil, err
	}
	hooks, config := o.hooks, runner.Config{
		Store: s, Prices: o.prices, Observer: of.Observer,
		AllowOperator: operator, Arrivals: a.arrivals(), Now: Clock, Panicked: a.panicked, Trace: a.Watch.Part,
	}
	if of.Hooks != nil {
		of.Hooks(&hooks)
	}
	if o.public != "" {
		config.PublicURL = o.public + of.Path
	}
	if of.Tenant != "" {
		config.Tenant = func(*machine.Machine, json.RawMessage) string { return of.Tenant }
	}
	config.Agents = of.Agents
	if of.Quota != nil {
		config.Quota = func(string) *spend.Quota { return of.Quota }
	}
	models = models.Auditing(s.AppendAudit)
	calls := webhook.New(hooks)
	config.Resolver = strategies.Resolvers{a.Registry, calls, models}
	r, err := runner.New(config)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Engine{Runner: r, Store: s, Models: models, Hooks: calls, err: a.Err, stop: func() {}}, nil
}

// ModelConfig reads from the environment how models are asked.
func (a *App) ModelConfig() (llm.Config, error) {
	c, err := llm.FromEnvironment(a.Lookup)
	if err != nil {
		return llm.Config{}, Fail(ExitUsage, err)
	}
	return c, nil
}

// PriceTable returns what models cost beside what machines say.
func (a *App) PriceTable() (table *spend.PriceTable, err error) {
	path := a.Flags.PricesFile
	if path == "" {
		return llm.Prices(), nil
	}
	data, err := a.ReadFile(path, files.Prices)
	if err != nil {
		return nil, err
	}
	err = machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
		table, problems = llm.ReadPrices(section)
		return problems
	})
	return table, err
}

// arrivals returns what knows in which order answers are delivered, nil without cassettes.
func (a *App) arrivals() runner.Arrivals {
	order, _ := a.Tape.(runner.Arrivals)
	return order
}
