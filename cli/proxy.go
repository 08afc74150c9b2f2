package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/proxy"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/permit"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/webhook"
)

// dialai proxy: the guards of a file before the tools of an agent. Package proxy passes the
// messages; here are its two sides, its log, and the panel: a session of a machine for each call
// that a guard gives to somebody else. Its input is the call, and only if its last transition is
// `allow` the call is made. Stdout belongs to the agent; what the operator should know is on
// stderr.

// proxyFlags are those of proxy.
type proxyFlags struct {
	guards   string
	log      string
	task     string
	escalate string
	url      string
	token    string
	timeout  time.Duration
}

func (a *app) proxyCommand() *cobra.Command {
	f := &proxyFlags{}
	cmd := &cobra.Command{
		Use:   "proxy --guards FILE (-- <command>... | --url URL)",
		Short: "Guard an agent's tool calls before an MCP server",
		Long: `Stand between an agent and an MCP server, and judge each call of a tool by a guards
file. The agent starts this command in the place of the server, which is started by the
command behind --, or is at --url. All other messages pass as they are.

Tools that tool_calls.allowed does not have are hidden and refused, and so is a tool that
changes after it was first listed. A call that passes is made, with warnings behind its
result; one that does not is answered with the reasons, as an error of the tool. After an
abort no tool is called any more. What packs find in a result is withheld from the agent.

With --escalate a call that a guard gives to somebody else starts a session of that
machine in the store (or at --server). Its input is {tool, args, digest, reasons}; the
call is made, once, if the session ends with the transition "allow" within ten minutes.
Without it, and whatever fails, means no.

--log keeps the guards' event log: each call is in it before it is made. With the same
--task a restart forgets nothing: limits, tools and loops hold for the whole task.
dialai replay judges the log again by other guards.

The exit code is that of the server's program if it ends by itself.`,
		Example: `  dialai proxy --guards guards.yaml -- npx -y @modelcontextprotocol/server-filesystem .
  dialai proxy --guards guards.yaml --log calls.jsonl --task spring-cleaning -- my-server
  dialai proxy --guards guards.yaml --escalate machines/tool-approval.yaml -- my-server
  dialai proxy --guards guards.yaml --url https://tools.example.com --token-env TOKEN`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.proxy(cmd.Context(), f, args) },
	}
	guards.GuardsFlag(cmd, &f.guards, "the guards `file`, JSON or YAML")
	flags := cmd.Flags()
	flags.StringVar(&f.log, "log", "", "the `file` that keeps the event log of the guards")
	flags.StringVar(&f.task, "task", "", "the `name` of the task that all calls belong to (default: a new one)")
	flags.StringVar(&f.escalate, "escalate", "", "the machine `file` whose sessions decide on calls that a guard gives to somebody else")
	flags.StringVar(&f.url, "url", "", "the `address` of the MCP server, in the place of a command")
	flags.StringVar(&f.token, "token-env", "", "the `variable` with the bearer token for --url")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long the server may take for a `call`")
	return cmd
}

// check returns what is wrong with the flags.
func (f *proxyFlags) check(argv []string) error {
	switch {
	case f.guards == "":
		return command.Hinted(command.Usage("--guards is missing"), "dialai proxy --guards guards.yaml -- my-server")
	case (len(argv) == 0) == (f.url == ""):
		return command.Hinted(command.Usage("which server? One of a command behind -- and --url is needed"), "dialai proxy --guards guards.yaml -- my-server")
	case f.token != "" && f.url == "":
		return command.Usage("--token-env without --url")
	case f.timeout <= 0:
		return command.Usage("--timeout is %s, it must be above 0", f.timeout)
	}
	return command.OneStdin(command.StdinUse{What: "the messages of the agent", Is: true}, command.StdinUse{What: "the guards of --guards -", Is: f.guards == "-"}, command.StdinUse{What: "the machine of --escalate -", Is: f.escalate == "-"})
}

func (a *app) proxy(ctx context.Context, f *proxyFlags, argv []string) (err error) {
	if err := f.check(argv); err != nil {
		return err
	}
	c := proxy.Config{Task: cmp.Or(f.task, uuid.NewString()), Timeout: f.timeout, Agent: proxy.Stdio(a.In, a.Out), Warn: a.proxyWarns}
	section, err := a.ReadFile(f.guards, files.Guards)
	if err != nil {
		return err
	}
	if c.Guards, err = guards.ParseGuards(f.guards, section); err != nil {
		return command.Fail(command.ExitUsage, err)
	}
	if c.Guards.Classifier != nil {
		return command.Hinted(command.Usage("the guards have a classifier, which this command does not ask"), "remove it, or let its pack action be escalate and a machine of --escalate ask it")
	}
	if c.Server, err = a.upstream(ctx, f, argv); err != nil {
		return err
	}
	if f.escalate != "" {
		end, err := a.panelOf(ctx, f.escalate, &c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if f.log != "" {
		if c.Log, err = proxy.OpenLog(f.log, asJSON(section)); err != nil {
			return err
		}
		defer c.Log.Close()
	}
	return proxyEnd(proxy.Run(ctx, c))
}

// asJSON returns a section if it is JSON; YAML is not kept in a log.
func asJSON(section []byte) json.RawMessage {
	if json.Valid(section) {
		return section
	}
	return nil
}

// proxyEnd turns the end of a server into that of the command.
func proxyEnd(err error) error {
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() > 0 {
		return command.Fail(ended.ExitCode(), err)
	}
	return err
}

func (a *app) proxyWarns(text string) { fmt.Fprintln(a.Err, "dialai proxy: "+render.Clean(text)) }

// upstream is the server that is guarded.
func (a *app) upstream(ctx context.Context, f *proxyFlags, argv []string) (proxy.Side, error) {
	if f.url == "" {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stderr = a.Err
		return proxy.Command(cmd), nil
	}
	config, err := webhook.FromEnvironment(a.Lookup)
	if err != nil {
		return proxy.Side{}, command.Fail(command.ExitUsage, err)
	}
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" {
		return proxy.Side{}, command.Hinted(command.Usage("--url is no address"), "such as https://mcp.example.com/mcp")
	}
	if err := config.Policy.CheckURL(u); err != nil {
		return proxy.Side{}, command.Fail(command.ExitUsage, fmt.Errorf("--url: %w", err))
	}
	token := ""
	if f.token != "" {
		if token = a.Env(f.token); token == "" {
			return proxy.Side{}, command.Usage("--token-env: the variable %s is not set", f.token)
		}
	}
	return proxy.URL(f.url, token, webhook.NewTransport(config.Policy)), nil
}

// allow is the transition that lets a call be made.
const allow = "allow"

// patience is how long somebody may take to decide on a call.
const patience = 10 * time.Minute

// panelOf has sessions of a machine decide on calls. What it returns closes the store.
func (a *app) panelOf(ctx context.Context, path string, c *proxy.Config) (end func() error, err error) {
	m, err := a.LoadMachine(path)
	if err != nil {
		return nil, err
	}
	if !allows(m) {
		return nil, command.Hinted(command.Usage("%s has no transition %q, so it could allow nothing", path, allow), "dialai init tool-approval.yaml --sample tool-approval writes one that has")
	}
	e, err := a.engine(ctx, command.Starts, nil)
	if err != nil {
		return nil, err
	}
	c.Panel = func(ctx context.Context, call proxy.Call) (proxy.Decision, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return a.decideCall(ctx, e, m, call)
	}
	return e.Close, nil
}

// allows reports whether a machine has the transition that lets a call be made.
func allows(m *machine.Machine) bool {
	for i := range m.States() {
		for _, t := range m.States()[i].Transitions {
			if t.Name == allow {
				return true
			}
		}
	}
	return false
}

// decideCall starts a session about a call and waits for it to end.
func (a *app) decideCall(ctx context.Context, e *engine, m *machine.Machine, call proxy.Call) (d proxy.Decision, err error) {
	meta, err := json.Marshal(call)
	if err != nil {
		return d, err
	}
	s, err := e.Start(ctx, m, runner.StartOptions{Meta: meta, Defaults: true, Actor: command.LocalActor()})
	if err != nil {
		return d, err
	}
	d.By = s.ID.String()
	s, err = permit.Await(ctx, ctx, e, s, func(s *session.Session) error {
		a.proxyWarns(fmt.Sprintf("a call of %s waits for somebody to decide: %s", call.Tool, a.Flags.Command("show", []string{s.ID.String()})))
		return nil
	})
	if err != nil {
		_, _ = e.Stop(context.WithoutCancel(ctx), s.ID, runner.Stopping{Actor: *command.LocalActor(), Note: "nobody waits for the call any more"})
		return d, fmt.Errorf("session %s did not end in time: %w", d.By, err)
	}
	last := s.Last()
	if s.Status == session.Completed && last != nil && last.Transition.Name == allow {
		d.Allowed = true
		return d, nil
	}
	d.Why = fmt.Sprintf("session %s is %s", d.By, s.Status)
	if last != nil {
		d.Why = fmt.Sprintf("session %s decided: %s", d.By, last.Transition.Name)
		if last.Reasoning != "" {
			d.Why += " (" + last.Reasoning + ")"
		}
	}
	return d, nil
}
