package agents

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/undertaking"
)

// dialai undertake: a specification becomes a session of the machine undertaking, or, with --solo,
// undertaking-solo, and this process carries it on (package undertaking).

// undertakeFlags are those of undertake.
type undertakeFlags struct {
	permitFlags
	solo, trust, worktree, again bool
	agent, manager, verifier     string
	model, cwd, check            string
	budget, resume               string
	maxTokens                    int64
	plain, ascii                 bool
	givenTree                    bool
}

// pinnedFlags are of the beginning: what they say is pinned with the session.
var pinnedFlags = []string{"solo", "agent", "manager-agent", "verifier-agent", "cwd", "worktree", "check", "budget", "max-tokens", "machine", "new"}

// newest is what --resume means without an id.
const newest = "the only one"

// UndertakeCommand returns dialai undertake.
func UndertakeCommand(a *command.App) *cobra.Command {
	f := &undertakeFlags{}
	cmd := &cobra.Command{
		Use:   "undertake [SPEC.md|-]",
		Short: "Have coding agents work until a check passes and you agree",
		Long: `Have coding agents work on a specification until the work is checked and you agree. A
manager asks what matters, states back the whole understanding, and begins when you
assent. Then a worker is briefed, works, and answers to the manager; when its context
gets full it hands over with a record, and the next one goes on from that and the working
tree. A claim that all is done is run through the check command, and then judged by two
verifiers with fresh eyes; until the record shows that they can be believed, you follow
their verdict or not. With --solo there is one worker at a time, and you.

Nothing is lost when this process ends, however it ends: dialai undertake --resume goes
on with the same agents' sessions. A turn begins only if the dearest so far would still
fit into the budget. Your answers are rulings: dialai inbox shows the questions, and
dialai decide, dialai say, or a line typed here answers. What agents ask to be allowed is
decided as dialai permit does.

An agent is claude (Claude Code) or codex (Codex), whose program is on the path or named
by DIALAI_CLAUDE_BIN or DIALAI_CODEX_BIN; "acp:COMMAND ARGS", any program that speaks the
Agent Client Protocol; or scripted:FILE, which follows a script and costs nothing. Codex
does not tell what it costs: its tokens are priced as models are. dialai agents check
says what each can do.`,
		Example: `  dialai undertake spec.md --check "go test ./..."
  dialai undertake --solo spec.md --agent scripted:demo.jsonl --cwd work
  dialai undertake --resume`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.givenTree = cmd.Flags().Changed("worktree")
			for _, name := range pinnedFlags {
				if f.resume != "" && cmd.Flags().Changed(name) {
					return command.Hinted(command.Usage("--resume goes on with what was begun, and --%s is of the beginning", name), "dialai resume ID --raise raises a limit")
				}
			}
			return f.undertake(cmd.Context(), a, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.solo, "solo", false, "one worker at a time, and you")
	flags.StringVar(&f.agent, "agent", claudeName, "the `agent` that works: claude, codex, acp:COMMAND or scripted:FILE")
	flags.StringVar(&f.manager, "manager-agent", "", "the `agent` that manages (default: as --agent)")
	flags.StringVar(&f.verifier, "verifier-agent", "", "the `agent` that judges the work (default: as --agent)")
	flags.StringVar(&f.model, "model", "", "the agent's `model` (default: the agent's choice)")
	flags.StringVar(&f.cwd, "cwd", "", "the `folder` to work in (default: this one)")
	flags.BoolVar(&f.worktree, "worktree", false, "work in a git worktree beside the repository (default: if it is clean)")
	flags.StringVar(&f.check, "check", "", "the `command` that passes when the work is done")
	flags.StringVar(&f.budget, "budget", "20", "how many `dollars` all of it may cost")
	flags.Int64Var(&f.maxTokens, "max-tokens", 0, "how many `tokens` all of it may use (default: any number)")
	flags.StringVar(&f.machine, "machine", "", "an edited copy of the machine `file` undertaking.json or, with --solo, undertaking-solo.json")
	flags.StringVar(&f.resume, "resume", "", "go on with an undertaking by its `session` (default: the only one)")
	flags.Lookup("resume").NoOptDefVal = newest
	flags.BoolVar(&f.again, "new", false, "begin, although there is unfinished work in the folder")
	flags.BoolVar(&f.trust, "trust-agent", false, "also drive an agent that cannot ask for permission")
	flags.BoolVar(&f.plain, "plain", false, "one line for each event, as without a terminal")
	flags.BoolVar(&f.ascii, "ascii", false, "draw the terminal's screen with ASCII only")
	flags.BoolVar(&f.noWait, "no-wait", false, "end when your move is waited for (exit code 3); refuse what only you can allow")
	flags.StringArrayVar(&f.allow, "allow", nil, "a `pattern` of what is allowed (repeatable)")
	flags.StringArrayVar(&f.deny, "deny", nil, "a `pattern` of what is denied (repeatable)")
	flags.StringVar(&f.permissions, "permissions", "", "the `file` with patterns of what is allowed and denied")
	flags.StringVar(&f.unanswered, "unanswered", "", "what becomes of permissions nobody answers (default: park=30m)")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "unanswered")
	return cmd
}

// maxSpec is how long a specification may be, in bytes.
const maxSpec = 128 << 10

// undertake begins, or goes on.
func (f *undertakeFlags) undertake(ctx context.Context, a *command.App, args []string) error {
	f.mcp = true // as the tool of MCP, it has nobody to leave a prompt to
	f.permitFlags.agent = claudeName
	rules, err := f.permitFlags.check(a)
	if err != nil {
		return err
	}
	e, err := a.Engines(ctx, command.Starts, true, []command.EngineOf{{Agents: func(_ *machine.Machine, s *machine.Specialist) error {
		_, err := agentNamed(a, s.Agent)
		return err
	}}})
	if err != nil {
		return err
	}
	defer e[0].Close()
	w := &work{App: a, flags: f, engine: e[0]}
	defer w.unlock()
	terminal := f.terminal(a)
	switch {
	case f.resume != "":
		err = w.goOn(ctx, args)
	case terminal != nil && len(args) == 0: // the screen asks what is to be done
		var cwd string
		if cwd, err = w.folder(); err == nil {
			err = w.unfinished(ctx, cwd)
		}
	default:
		err = w.begin(ctx, args)
	}
	if err != nil {
		return err
	}
	own := f.permitFlags
	own.machine = "" // --machine names that of the undertaking
	c, err := own.configOn(a, e[0], rules)
	if err != nil {
		return err
	}
	if terminal != nil {
		return w.onScreen(ctx, terminal, undertaking.Config{Permit: c})
	}
	return w.carryOn(ctx, undertaking.Config{Permit: c}, args)
}

// A work is one call of undertake.
type work struct {
	*command.App
	flags   *undertakeFlags
	engine  *command.Engine
	id      specialist.SessionID
	session *session.Session
	cwd     string
	known   []*session.Session // the unfinished work in the folder that the human knows of
	locked  func() error
}

func (w *work) unlock() {
	if w.locked != nil {
		_ = w.locked()
	}
}

// lock holds the working tree.
func (w *work) lock(cwd string) (err error) {
	w.cwd = cwd
	w.locked, err = undertaking.LockTree(locks("trees"), cwd, w.id.String())
	return err
}

// locks returns the folder of locks of some kind.
func locks(kind string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "dialai", kind)
}

// begin starts a session about a specification.
func (w *work) begin(ctx context.Context, args []string) error {
	if f := w.flags; f.solo && f.manager+f.verifier != "" {
		return command.Usage("--solo has no manager and no verifiers: leave out --manager-agent and --verifier-agent")
	}
	text, err := w.spec(args)
	if err != nil {
		return err
	}
	cwd, err := w.folder()
	if err != nil {
		return err
	}
	if err := w.unfinished(ctx, cwd); err != nil || w.session != nil {
		return err
	}
	return w.start(ctx, text, cwd)
}

// folder returns the folder to work in.
func (w *work) folder() (string, error) {
	cwd, err := filepath.Abs(cmp.Or(w.flags.cwd, "."))
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
		return "", command.Usage("--cwd %s is no folder", w.flags.cwd)
	}
	return cwd, nil
}

// start starts a session about a text in a folder.
func (w *work) start(ctx context.Context, text, cwd string) error {
	f := w.flags
	m, err := w.machine()
	if err != nil {
		return err
	}
	for _, name := range f.agents() {
		if _, err := agentNamed(w.App, name); err != nil {
			return err
		}
	}
	w.id = specialist.SessionID(uuid.New())
	begun, err := w.alone(ctx, cwd)
	if err != nil {
		return err
	}
	defer begun()
	if cwd, err = w.tree(ctx, cwd); err != nil {
		return err
	}
	if err := w.lock(cwd); err != nil {
		return err
	}
	meta, err := jsontext.Marshal(map[string]string{"task": title(text), "spec": text, "check": f.check, "cwd": cwd})
	if err != nil {
		return err
	}
	s, err := w.engine.Start(ctx, m, runner.StartOptions{ID: w.id, Meta: meta, Actor: command.LocalActor(), Driver: session.DriverNone})
	if err != nil {
		return err
	}
	w.session = s
	return nil
}

// spec reads the specification.
func (w *work) spec(args []string) (string, error) {
	if len(args) == 0 {
		return "", command.Hinted(command.Usage("what is to be done?"), "dialai undertake SPEC.md, or - for stdin")
	}
	var text []byte
	var err error
	if args[0] == "-" {
		text, err = io.ReadAll(io.LimitReader(w.In, maxSpec+1))
	} else {
		text, err = w.ReadFile(args[0], files.Specification)
	}
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSpec:
		return "", command.Usage("%s has more than %d KiB: a specification is a text that a worker can hold in mind; name other files in it", args[0], maxSpec>>10)
	case len(bytes.TrimSpace(text)) == 0:
		return "", command.Usage("%s is empty: say what is to be done", args[0])
	}
	return string(text), nil
}

// title returns the first line of a specification.
func title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line = strings.TrimSpace(strings.TrimLeft(line, "# ")); len(line) > 120 {
		line = strings.ToValidUTF8(line[:120], "") + "…"
	}
	return line
}

// config completes what the undertaking is carried on with.
func (w *work) config(ctx context.Context, c undertaking.Config) (undertaking.Config, error) {
	c.Runner, c.Session, c.Cwd, c.Model, c.Trust, c.NoWait = w.engine.Runner, w.id, w.cwd, w.flags.model, w.flags.trust, w.flags.noWait
	c.Agent = func(name string) (agent.Agent, error) { return agentNamed(w.App, name) }
	c.Now = command.Clock
	prices, err := w.PriceTable()
	if err != nil {
		return c, err
	}
	c.Price = func(model string, u specialist.Usage) (exact.Money, bool) {
		p, known := prices.Find(model)
		if d := u.Detail; d != nil && !p.InputExcludesCached {
			u.NumInputTokens += d.CacheReadTokens + d.CacheWrite5mTokens
		}
		return p.Cost(u), known
	}
	dir := w.dumps()
	c.Saved = func(s undertaking.State) { w.dump(ctx, dir, s) }
	w.SessionID, w.GoesOn = w.id.String(), w.Command("undertake", nil, "--resume", w.id.String())
	return c, nil
}
