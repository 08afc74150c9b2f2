package serving

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/internal/proxy"
	"github.com/dialai/dialai/internal/seal"
	"github.com/dialai/dialai/server"
	"github.com/dialai/dialai/server/mcp"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/postgres"
	"github.com/dialai/dialai/webhook"
)

// The tools of MCP, for a client that starts this program and talks to it over stdin and stdout.
// It is a server without an address: the same store, the same driver, the same operations, for
// the one person at whose computer it runs.

// toolFlags say how operations are offered as tools.
type toolFlags struct{ toolset, rulings string }

// How a human's word may come.
const (
	rulingsAsk  = "ask"
	rulingsTool = "tool"
)

func (f *toolFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.toolset, "toolset", "all", "which `tools` MCP clients are offered: all, dial (the twelve of DIAL), run or desk")
	flags.StringVar(&f.rulings, "rulings", rulingsAsk, "`ask|tool`: how humans rule through MCP: ask, by a page or form; tool, the arguments of a tool count as the word of the human whom the caller is bound to")
}

// check returns what is wrong with the flags.
func (f *toolFlags) check() error {
	return cmp.Or(command.OneOf("toolset", f.toolset, mcp.Toolsets()...), command.OneOf("rulings", f.rulings, rulingsAsk, rulingsTool))
}

// config says how the tools are made.
func (f *toolFlags) config(key seal.Key) mcp.Config {
	return mcp.Config{Toolset: f.toolset, Key: key, ArgumentsRule: f.rulings == rulingsTool, Now: command.Clock}
}

// mcpFlags are those of mcp.
type mcpFlags struct {
	tools  toolFlags
	elicit string
	serve  serveFlags
}

// MCPCommand returns dialai mcp, of a program of some version.
func MCPCommand(call *command.App, version string) *cobra.Command {
	a := &app{call}
	f := &mcpFlags{}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer sessions as tools to an MCP client that starts this program",
		Long: `Offer the sessions of the store as tools of the Model Context Protocol, over stdin and
stdout, to the client that starts this program, and carry sessions on meanwhile.
docs/mcp.md has what to paste for the clients that people use. A client elsewhere is
served by dialai serve, at /mcp.

A tool never decides for a human. ask_human says where they can: dialai decide, or a
page. With --elicit form a form of the client counts too, in which they type their
decision; then whoever sits before the client is believed to be the human.`,
		Example: `  dialai mcp
  dialai mcp --toolset desk --elicit form
  claude mcp add dialai -- dialai mcp`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.mcp(cmd.Context(), f) },
	}
	f.tools.register(cmd.Flags())
	cmd.Flags().StringVar(&f.elicit, "elicit", "", "let whoever fills in a `form` of the client rule as the human that they say: form")
	f.serve.register(pflag.NewFlagSet("", pflag.ContinueOnError)) // for what goes without saying
	f.serve.version = version
	cmd.Flags().StringVar(&f.serve.control, "control", "", "the `file` in which a server keeps what it must remember (default: that of the store, with .control behind its name; with a store in Postgres, a schema beside it)")
	cmd.Flags().StringVar(&f.serve.drive, "drive", "on", "`on|off`: whether sessions are carried on")
	cmd.Flags().StringVar(&f.serve.logLevel, "log-level", "warn", "the lowest `level` that is logged on stderr: debug, info, warn or error")
	command.Complete(cmd, "toolset", mcp.Toolsets()...)
	command.Complete(cmd, "rulings", rulingsAsk, rulingsTool)
	command.Complete(cmd, "elicit", "form")
	command.Complete(cmd, "drive", "on", "off")
	command.Complete(cmd, "log-level", "debug", "info", "warn", "error")
	return cmd
}

// mcp serves the client at stdin and stdout until it leaves.
func (a *app) mcp(ctx context.Context, f *mcpFlags) error {
	if err := cmp.Or(f.serve.check(), f.tools.check(), command.OneOf("elicit", f.elicit, "form", "")); err != nil {
		return err
	}
	remembers, err := a.openControl(ctx, f.serve.control)
	if err != nil {
		return err
	}
	defer remembers.Close()
	key, err := a.sealedWith(ctx, remembers, f.serve.control)
	if err != nil {
		return err
	}
	f.serve.auth, f.serve.hosts = authLocal, nil
	credential := rand.Text()
	tools := f.tools.config(key)
	tools.Form = f.elicit == "form"
	maker, err := a.hookMaker(key)
	if err != nil {
		return err
	}
	log := a.logger(&f.serve, &slog.LevelVar{})
	h, err := a.assemble(ctx, &f.serve, remembers, log, func(c *server.Config) {
		c.Control, c.Who, c.Webhooks, c.MCP = remembers, server.Local(credential), maker, tools
	})
	if err != nil {
		return err
	}
	defer h.close()
	if h.tells, err = a.notifier(remembers, maker, "", log, h.watched); err != nil {
		return err
	}
	ctx, left := context.WithCancel(ctx)
	defer left()
	served := make(chan error, 1)
	go func() {
		defer left()
		served <- h.web.RunMCP(ctx, credential, io.NopCloser(a.In), writeCloser{a.Out})
	}()
	err = a.serveUntil(ctx, &f.serve, h, log, server.Listening{Grace: f.serve.grace})
	left()
	if said := <-served; said != nil && !errors.Is(said, context.Canceled) && !errors.Is(said, io.EOF) {
		return errors.Join(err, said)
	}
	return err
}

// A writeCloser is a stream that others close.
type writeCloser struct{ io.Writer }

// Close does nothing.
func (writeCloser) Close() error { return nil }

// DIAL is dialai --mcp, as DIAL has it: a proxy where DIALAI_BASE_URL says to whom, a server
// over HTTP where DIALAI_PORT says at which port, else over stdin and stdout. As there, the
// arguments of a tool count as a human's word.
func DIAL(ctx context.Context, call *command.App, version string) error {
	a := &app{call}
	if base := a.Env("DIALAI_BASE_URL"); base != "" {
		fmt.Fprintf(a.Err, "Starting in proxy mode...\nForwarding to: %s\n", base)
		return a.forwardMCP(ctx, base, version)
	}
	tools := toolFlags{toolset: "all", rulings: rulingsTool}
	const warning = "The arguments of tools count as the word of the human whom they name (--rulings tool); dialai mcp has humans asked instead."
	if port := a.Env("DIALAI_PORT"); port != "" {
		fmt.Fprintf(a.Err, "Starting HTTP server on port %s...\n%s\n", port, warning)
		f, serve := &serveFlags{version: version}, &cobra.Command{Use: "serve"}
		f.register(serve.Flags())
		serve.SetContext(ctx)
		f.tools = tools
		if a.Env("DIALAI_API_TOKEN") == "" && a.Env(tokensFile) == "" {
			f.auth = authNone
		}
		f.listening = func() { fmt.Fprintf(a.Err, "DIAL AI HTTP server listening on port %s\n", port) }
		return a.serve(serve, f)
	}
	fmt.Fprintf(a.Err, "Starting MCP server (stdio)...\n%s\n", warning)
	f := &mcpFlags{}
	f.serve.register(pflag.NewFlagSet("", pflag.ContinueOnError))
	f.tools, f.serve.logLevel, f.serve.version = tools, "warn", version
	return a.mcp(ctx, f)
}

// serverKeyName is the variable with the key that seals what a server gives out of its hands.
const serverKeyName = "DIALAI_SERVER_KEY"

// sealKey returns that key: of the environment, else of the file beside what the server
// remembers, which is made if there is none; of what is in Postgres, of the one in the user's data directory.
// Where nothing is kept it is a new one.
func (a *app) sealKey(named string) (seal.Key, error) {
	if text := a.Env(serverKeyName); text != "" {
		k, err := seal.ParseKey(text)
		if err != nil {
			return k, command.Usage("%s: %v", serverKeyName, err)
		}
		return k, nil
	}
	path, address, err := a.controlAt(named)
	if err == nil && address != "" { // there is no file that it could be beside, and what it seals is there
		path, err = a.DefaultStore()
		path = store.ControlPath(path)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
	}
	if err != nil || path == "" {
		return seal.NewKey(), err
	}
	return seal.KeyFile(strings.TrimPrefix(path, "sqlite:") + ".key")
}

// sealedWith returns the key that seals what a server gives out of its hands. Servers that share what they
// remember share the key.
func (a *app) sealedWith(ctx context.Context, remembers control.Store, named string) (seal.Key, error) {
	key, err := a.sealKey(named)
	if shared, ok := remembers.(*postgres.Control); ok && err == nil {
		err = shared.Seal(ctx, key[:])
	}
	return key, err
}

// forwardMCP has the server at an address, which its owner has named, answer the client.
func (a *app) forwardMCP(ctx context.Context, base, version string) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return command.Hinted(command.Usage("DIALAI_BASE_URL is not the address of a server"), "such as https://decisions.example.com")
	}
	policy, err := webhook.ParsePolicy(u.Host)
	if err != nil {
		return command.Usage("DIALAI_BASE_URL is not the address of a server")
	}
	return proxy.Forwarding{Agent: proxy.Stdio(a.In, a.Out), Base: base, Token: a.Env("DIALAI_API_TOKEN"), Through: webhook.NewTransport(policy), Version: version}.Run(ctx)
}
