// Package serving has the commands of whoever runs a server: dialai serve, with its settings,
// and dialai keys.
package serving

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/notify"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/session"
)

// Serving: the same engine as at the terminal, with a driver that carries the sessions of
// the store on, and a server before it. Without a word about keys only the computer's own
// address is listened at, and whoever can read the file server-key may call.

// An app is one call of the program.
type app struct{ *command.App }

// serveFlags are those of serve.
type serveFlags struct {
	version    string // of this program
	config     string
	only       bool // check, and end
	browse     bool // open the desk
	proxies    []string
	listen     []string
	hosts      []string
	origins    []string
	auth       string
	control    string
	cert, key  string
	drive      string
	workers    int
	perMachine int
	waitMax    time.Duration
	grace      time.Duration
	oidc       server.OIDC
	rates      server.Rates
	guards     namedGuards
	logLevel   string
	logFormat  string
	tools      toolFlags
	listening  func() // is called once the server listens; nil has it said on stdout

	metricsListen string

	tenants map[string]tenantSettings  // nil for one
	tokens  map[string][]string        // the hosts of variables with tokens
	inFile  map[string]json.RawMessage // members that only the file has
}

// ServeCommand returns dialai serve, of a program of some version.
func ServeCommand(call *command.App, version string) *cobra.Command {
	a := &app{call}
	f := &serveFlags{version: version}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions, questions and rulings over HTTP, and carry sessions on",
		Long: `Serve the sessions of the store over HTTP, and carry them on by themselves: proposers
are asked, timers fire, and what needs a human waits in the inbox. docs/server.md is
the guide, /openapi.json the reference.

Without --listen that is at 127.0.0.1:8420 (DIALAI_PORT names another port), for whoever
has the key in the file server-key beside the store, which the first start writes. Every
program of the same user can read it, and rule with it. Once a key exists
(dialai keys, or DIALAI_API_TOKEN), a ruling needs a key that names the human. Without
keys and TLS the server listens only on this computer.

Ctrl-C or SIGTERM ends it in good order: steps that are under way are recorded.`,
		Example: `  dialai serve
  dialai serve --listen 127.0.0.1:9000 --listen unix:/run/dialai.sock
  dialai keys create carol --role human --human carol
  dialai serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, f) },
	}
	f.register(cmd.Flags())
	for _, b := range call.Beside {
		command.AddGoFlags(cmd.Flags(), b.Flags)
	}
	command.Complete(cmd, "auth", authKeys, authNone)
	command.Complete(cmd, "drive", "on", "off")
	command.Complete(cmd, "log-level", "debug", "info", "warn", "error")
	command.Complete(cmd, "log-format", "text", "json")
	command.Complete(cmd, "toolset", mcp.Toolsets()...)
	command.Complete(cmd, "rulings", rulingsAsk, rulingsTool)
	return cmd
}

// register declares the flags.
func (f *serveFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "a `file` with settings, JSON or YAML, by the names of these flags (tlsCert for --tls-cert)")
	flags.BoolVar(&f.only, "check", false, "say what the settings are and whether they are right, and end")
	flags.BoolVar(&f.browse, "open", false, "open the desk in a browser, signed in as who has the key of this computer, and print its address, which signs in once, within 60 seconds")
	flags.StringArrayVar(&f.proxies, "behind-proxy", nil, "the `addresses` of proxies in front of the server, such as 10.0.0.0/8: only they may call, and say for whom (may be repeated)")
	flags.StringArrayVar(&f.listen, "listen", nil, "an `address` to listen at: HOST:PORT, or unix:PATH (may be repeated)")
	flags.StringArrayVar(&f.hosts, "host", nil, "a `name` under which the server is reached, beside those of its addresses (may be repeated)")
	flags.StringArrayVar(&f.origins, "cors-origin", nil, "the `origin` of pages elsewhere that may call, with a key (may be repeated)")
	flags.StringVar(&f.auth, "auth", "", "the `mode`: keys, whoever has a key may call; none, whoever can reach it (default: keys, if there are any, else who has the key of this computer)")
	flags.StringVar(&f.oidc.Issuer, "oidc-issuer", "", "the `address` of an issuer of OpenID Connect, whose tokens are taken beside keys")
	flags.StringVar(&f.oidc.Audience, "oidc-audience", "", "the `name` of this server in tokens of the issuer (aud)")
	flags.StringVar(&f.oidc.Client, "oidc-client", "", "the `id` of this server at the issuer, to have people log in there with a browser; DIALAI_OIDC_CLIENT_SECRET has its secret, if there is one")
	flags.Var((*oidcRoles)(&f.oidc.Roles), "oidc-roles", `what claims of a token are good for, as `+"`JSON`"+`: [{"claim":"groups","value":"finance","role":"human","machines":["*"]}]`)
	flags.StringVar(&f.oidc.HumanClaim, "human-claim", "", "the `claim` of a token that names the human as whom its owner rules")
	flags.Var(&f.guards, "guards", "guards that steps may be judged by here (dialai check --guard), as `JSON`: {\"strict\": \"guards.json\"}")
	flags.StringVar(&f.control, "control", "", "the `file` in which the server keeps what it must remember (default: that of the store, with .control behind its name; with a store in Postgres, a schema beside it)")
	flags.StringVar(&f.cert, "tls-cert", "", "a `file` with the certificate of the server")
	flags.StringVar(&f.key, "tls-key", "", "a `file` with the key of that certificate")
	flags.StringVar(&f.drive, "drive", "on", "`on|off`: whether sessions are carried on")
	flags.IntVar(&f.workers, "workers", 256, "at most this `number` of steps at once")
	flags.IntVar(&f.perMachine, "per-machine", 64, "at most this `number` of steps of one machine at once")
	flags.DurationVar(&f.waitMax, "wait-max", time.Minute, "the longest `time` that a request may wait for a session")
	flags.DurationVar(&f.grace, "grace", 20*time.Second, "the `time` that running steps get when the server stops")
	flags.Float64Var(&f.rates.Read, "rate-read", 50, "how many requests of a key that read are answered in a second, twice as many at once (0: any `number`)")
	flags.Float64Var(&f.rates.Write, "rate-write", 20, "how many requests of a key that write are answered in a second, twice as many at once (0: any `number`)")
	flags.StringVar(&f.logLevel, "log-level", "info", "the lowest `level` that is logged on stderr: debug, info, warn or error")
	f.tools.register(flags)
	flags.StringVar(&f.metricsListen, "metrics-listen", "", "an `address` at which /metrics is shown to whoever can reach it: HOST:PORT, or unix:PATH (default: where the server listens, to whoever may read)")
	flags.StringVar(&f.logFormat, "log-format", "", "the `format` of lines of the log: text or json (default: text on a terminal)")
}

const (
	authLocal = "local"
	authKeys  = "keys"
	authNone  = "none"
)

// check returns what is wrong with the flags.
func (f *serveFlags) check() error {
	for _, c := range []struct {
		flag, value string
		known       []string
	}{{"auth", f.auth, []string{authKeys, authNone, ""}}, {"drive", f.drive, []string{"on", "off"}}, {"log-level", f.logLevel, []string{"debug", "info", "warn", "error"}}, {"log-format", f.logFormat, []string{"text", "json", ""}}} {
		if err := command.OneOf(c.flag, c.value, c.known...); err != nil {
			return err
		}
	}
	if err := f.tools.check(); err != nil {
		return err
	}
	for _, o := range f.origins {
		if u, err := url.Parse(o); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" {
			return command.Hinted(command.Usage("--cors-origin is %q, not the origin of a page", o), "such as https://console.example.com; every page of the web (*) cannot be let in")
		}
	}
	for _, p := range f.proxies {
		if _, err := netip.ParsePrefix(p); err != nil {
			return command.Hinted(command.Usage("--behind-proxy is %q, which names no addresses", p), "such as 10.0.0.0/8, or 192.0.2.7/32 for one")
		}
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return command.Usage("--tls-cert and --tls-key: one needs the other")
	case f.workers < 1, f.perMachine < 1:
		return command.Usage("--workers and --per-machine must be at least 1")
	case !(f.rates.Read >= 0 && f.rates.Write >= 0):
		return command.Usage("--rate-read and --rate-write must not be below 0")
	case f.waitMax <= 0, f.grace <= 0:
		return command.Usage("--wait-max and --grace must be above 0")
	}
	return nil
}

func (a *app) serve(cmd *cobra.Command, f *serveFlags) error {
	ctx := cmd.Context()
	if err := cmp.Or(a.configure(f, cmd), f.check()); err != nil {
		return err
	}
	remembers, err := a.openControl(ctx, f.control)
	if err != nil {
		return err
	}
	defer remembers.Close()
	again := &reloading{app: a, given: cmd.Flags(), config: f.config, level: &slog.LevelVar{}}
	who, err := a.callers(ctx, f, remembers, again)
	if err != nil {
		return err
	}
	known, err := a.knownGuards(f.guards)
	if err != nil {
		return err
	}
	if _, err := a.hookPolicy(); err != nil {
		return err
	}
	if f.only {
		return cmp.Or(f.checkAddresses(), f.checkOpen(a.Env("DIALAI_PUBLIC_URL")), f.checkCertificate(), a.tellSettings(f, cmd))
	}
	if err := f.checkOpen(a.Env("DIALAI_PUBLIC_URL")); err != nil {
		return err
	}
	listeners, err := f.open()
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	metricsAt, err := f.openMetrics()
	if err != nil {
		return err
	}
	if metricsAt != nil {
		defer metricsAt.Close()
	}
	log := a.logger(f, again.level)
	again.log = log
	key, err := a.sealedWith(ctx, remembers, f.control)
	if err != nil {
		return err
	}
	maker, err := a.hookMaker(key)
	if err != nil {
		return err
	}
	h, err := a.assemble(ctx, f, remembers, log, func(c *server.Config) {
		c.Guards = known
		c.Control, c.Who, c.Webhooks, c.MCP, c.Login = remembers, who, maker, f.tools.config(key), a.login(f, key)
		c.MCP.Desk = strings.TrimSuffix(cmp.Or(a.Env("DIALAI_PUBLIC_URL"), urlOf(listeners[0].Addr(), f.cert != "")), "/")
		if strings.HasPrefix(c.MCP.Desk, "unix:") {
			c.MCP.Desk = "" // no browser gets there
		}
	})
	if err != nil {
		return err
	}
	defer h.close()
	defer h.watched.metrics.Close()
	if h.tells, err = a.notifier(remembers, maker, urlOf(listeners[0].Addr(), f.cert != ""), log, h.watched); err != nil {
		return err
	}
	if f.listening != nil {
		f.listening()
	} else if err := a.tellServing(ctx, f, h, listeners, a.opened(ctx, f, h.web, listeners, log)); err != nil {
		return err
	}
	hangup := func() { again.again(h.web) }
	a.Hangup.Store(&hangup)
	defer a.Hangup.Store(nil)
	return a.serveUntil(ctx, f, h, log, server.Listening{Listeners: listeners, Metrics: metricsAt, Grace: f.grace})
}

// serveUntil serves and carries on until ctx ends, and then lets what is under way end.
func (a *app) serveUntil(ctx context.Context, f *serveFlags, h *assembled, log *slog.Logger, listening server.Listening) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	driven, err := h.driven(f)
	if err != nil {
		return err
	}
	var work sync.WaitGroup
	if f.cert != "" {
		c := &certificate{certFile: f.cert, keyFile: f.key, log: log}
		if _, err := c.load(); err != nil {
			return command.Fail(command.ExitUsage, err)
		}
		listening.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.load() }
	}
	work.Go(func() { stop(h.web.Serve(ctx, listening)) })
	work.Go(func() {
		var tell []notify.Tenant
		for i, e := range h.engines {
			tell = append(tell, notify.Tenant{Name: h.names[i], Runner: e.Runner})
		}
		if err := h.tells.Run(ctx, tell...); err != nil {
			stop(err)
		}
	})
	if f.drive == "on" {
		work.Go(func() {
			err := h.carry.Run(ctx, driven...)
			if errors.As(err, new(*session.NewerError)) {
				err = command.Fail(command.ExitTooOld, err)
			}
			if err != nil {
				stop(err)
			}
		})
	}
	for _, b := range a.Beside {
		for i, e := range h.engines {
			work.Go(func() {
				if err := b.Run(ctx, e, h.names[i]); err != nil && ctx.Err() == nil {
					stop(err)
				}
			})
		}
	}
	work.Wait()
	if why := context.Cause(ctx); why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return nil
}

// logger writes what happens to stderr.
func (a *app) logger(f *serveFlags, level *slog.LevelVar) *slog.Logger {
	_ = level.UnmarshalText([]byte(f.logLevel)) // it was checked
	o := &slog.HandlerOptions{Level: level}
	if f.logFormat == "json" || f.logFormat == "" && !render.IsTerminal(a.Err) {
		return slog.New(slog.NewJSONHandler(escaper{a.Err}, o))
	}
	return slog.New(slog.NewTextHandler(a.Err, o))
}

// An escaper writes JSON as --json does.
type escaper struct{ w io.Writer }

func (e escaper) Write(line []byte) (int, error) {
	if _, err := e.w.Write(text.Escaped(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// A ServingLine is what serve prints with --json once it listens.
type ServingLine struct {
	V       int      `json:"v"`
	Kind    string   `json:"kind"` // "serving"
	URLs    []string `json:"urls"`
	KeyFile string   `json:"keyFile,omitempty"` // "" with --auth none
	Desk    string   `json:"desk,omitempty"`    // "" without --open

	Drivers []ServingDriver `json:"drivers,omitempty"`
}

// tellServing says where the server is, how to call it, where other drivers have their sessions, and where the desk is,
// unless that is "".
func (a *app) tellServing(ctx context.Context, f *serveFlags, h *assembled, listeners []net.Listener, desk string) error {
	line := ServingLine{V: 1, Kind: "serving", Desk: desk, Drivers: a.drivers(ctx, h)}
	for _, l := range listeners {
		line.URLs = append(line.URLs, urlOf(l.Addr(), f.cert != ""))
	}
	if f.auth != authNone {
		path, err := a.ServerKeyPath()
		if err != nil {
			return err
		}
		line.KeyFile = path
	}
	switch {
	case a.Flags.JSON:
		return render.JSON(a.Out, line)
	case a.Flags.Quiet:
		if desk != "" {
			fmt.Fprintln(a.Out, desk)
		}
		return nil
	}
	path, address, err := a.PlaceOf(a.Flags.Store)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "dialai serves %s (store %s)\n", strings.Join(line.URLs, ", "), cmp.Or(path, render.StoreName(address), "memory:"))
	if line.KeyFile != "" && !strings.HasPrefix(line.URLs[0], "unix:") {
		fmt.Fprintf(a.Out, "  curl -H \"Authorization: Bearer $(cat %s)\" %s/v1\n", render.Quote(line.KeyFile), line.URLs[0])
	}
	for _, d := range line.Drivers {
		d.print(a.Out)
	}
	if desk != "" {
		fmt.Fprintf(a.Out, "  desk %s (once, within 60 seconds)\n", desk)
	}
	return nil
}
