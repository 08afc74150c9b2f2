package serving

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/payloads"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/driver"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
)

// How what is served is put together: the engines of the tenants, what carries their sessions on, the server before them, and who is told of them.

// An assembled server is an engine, what carries its sessions on, what offers them, and what
// tells others of them.
type assembled struct {
	names   []string // of the tenants
	engines []*command.Engine
	carry   *driver.Driver
	web     *server.Server
	tells   *notify.Notifier

	watched *watching
}

// close closes the engines.
func (h *assembled) close() (err error) {
	for _, e := range h.engines {
		err = errors.Join(err, e.Close())
	}
	return err
}

// notifier returns what tells webhooks. here is where the server listens.
func (a *app) notifier(remembers control.Store, maker *notify.Maker, here string, log *slog.Logger, watched *watching) (*notify.Notifier, error) {
	if strings.HasPrefix(here, "unix:") {
		here = "" // no browser gets there
	}
	c := notify.Config{Control: remembers, Seal: maker.Seal, Policy: maker.Policy, PublicURL: cmp.Or(a.Env("DIALAI_PUBLIC_URL"), here), Log: log, Attempted: watched.metrics.Delivered}
	switch kept := remembers.(type) {
	case *store.Control:
		var err error
		if c.Lock, err = kept.DeliveryLock(); err != nil {
			return nil, err
		}
	case *postgres.Control:
		c.Lock = kept.DeliveryLock()
	}
	if watched.spans != nil {
		c.Traceparent = watched.spans.Traceparent
	}
	tells := notify.New(c)
	watched.tells.Store(tells)
	return tells, nil
}

// assemble makes a server. more says what of its Config the flags do not; whoever has it closes it.
func (a *app) assemble(ctx context.Context, f *serveFlags, remembers control.Store, log *slog.Logger, more func(*server.Config)) (*assembled, error) {
	watched, err := a.watch()
	if err != nil {
		return nil, err
	}
	h := &assembled{watched: watched, names: f.tenancy()}
	config := a.serverConfig(f, log)
	path, address, err := a.PlaceOf(a.Flags.Store)
	if err != nil {
		return nil, err
	}
	if path+address != "" {
		config.Ready = watched.readyChecks(path)
	}
	for _, b := range a.Beside {
		if b.Ready == nil {
			continue
		}
		if name, check := b.Ready(); check != nil {
			if config.Ready == nil {
				config.Ready = map[string]server.ReadyCheck{}
			}
			config.Ready[name] = server.ReadyCheck{Check: check}
		}
	}
	more(&config)
	tokens := &bindings{settings: f.tokens, first: f.auth != authKeys, kept: config.Control, log: log}
	var of []command.EngineOf
	for _, name := range h.names {
		one := f.engineOf(name, tokens.bound)
		one.Observer = func(c session.Change) {
			watched.metrics.Committed(c)
			h.carry.Observer(name)(c)
			h.web.Observer(name)(c)
			for _, b := range a.Beside {
				if b.Committed != nil {
					b.Committed(name, c)
				}
			}
		}
		of = append(of, one)
	}
	if h.engines, err = a.Engines(ctx, command.Starts, f.auth != authKeys, of); err != nil {
		return nil, err
	}
	if err := writable(ctx, h.engines); err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.carry = driver.New(driver.Config{Workers: f.workers, PerMachine: f.perMachine, Grace: f.grace, Log: log, Stepped: watched.stepped, Times: remembers})
	watched.driver, watched.names, watched.engines = h.carry, h.names, h.engines
	for i, e := range h.engines {
		config.Tenants = append(config.Tenants, server.Tenant{Name: h.names[i], Runner: e.Runner, Shared: shared(e), MaySend: func(variable, host string) error {
			return cmp.Or(e.Hooks.MayName(variable), tokens.maySend(variable, host))
		}})
	}
	config.Metrics, config.Spans = watched.metrics, watched.spans
	if f.drive == "on" {
		config.Driver = h.carry
	}
	h.web = server.New(config)
	return h, nil
}

// writable returns an error if nobody may write to a store, since it was copied to another one for good: served it would take
// nothing of what people and programs send.
func writable(ctx context.Context, engines []*command.Engine) error {
	for _, e := range engines {
		if s, is := e.Store.(interface{ Writable(context.Context) error }); is {
			if err := s.Writable(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// shared reports whether other processes may write to the store of an engine.
func shared(e *command.Engine) bool {
	_, alone := e.Store.(*store.Memory)
	return !alone
}

// driven returns what the driver is to carry on.
func (h *assembled) driven(f *serveFlags) ([]driver.Tenant, error) {
	list := make([]driver.Tenant, len(h.engines))
	for i, e := range h.engines {
		list[i] = driver.Tenant{Name: h.names[i], Runner: e.Runner, Shared: shared(e), Workers: int(f.tenants[h.names[i]].workers)}
		if kept, ok := e.Store.(*store.SQLite); ok { // any number of processes drives another
			lock, err := kept.DriverLock()
			if err != nil {
				return nil, err
			}
			list[i].Lock = lock
		}
	}
	return list, nil
}

// serverConfig says what the server is made of.
func (a *app) serverConfig(f *serveFlags, log *slog.Logger) server.Config {
	checks := runner.Checks()
	checks.Model, checks.Secret = llm.CheckModel, packs.HoldsSecret
	var proxies []netip.Prefix
	for _, p := range f.proxies {
		proxies = append(proxies, netip.MustParsePrefix(p)) // it was checked
	}
	return server.Config{
		Proxies: proxies, Issuer: f.oidc.Issuer, Variable: a.Env, PublicURL: strings.TrimRight(a.Env("DIALAI_PUBLIC_URL"), "/"),
		Registry: a.Registry, Example: payloads.Example, Checks: checks, Hosts: f.names(a.Env("DIALAI_PUBLIC_URL")), Origins: f.origins, WaitMax: f.waitMax, Rates: f.rates, Version: f.version, Log: log,
	}
}
