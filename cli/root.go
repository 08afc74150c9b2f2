package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/cli/internal/agents"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/cli/internal/serving"
)

// root returns the command line: every command, under the one that runs a
// machine file.
func (a *app) root() *cobra.Command {
	run := &runFlags{}
	root := &cobra.Command{
		Use:   "dialai <machine-file>",
		Short: "Run a machine of proposers, arbiters and humans to its goal",
		Long: `dialai runs a machine file: states, transitions, and the specialists who propose
them. In each round everybody proposes one legal transition, an arbiter decides
or says that a human must, and guards gate what is executed. Sessions are kept
in a store and can be resumed after anything.

New here? These three commands write a commented machine file, run it, and show
what happened:

  dialai init
  dialai starter.yaml
  dialai sessions

` + exitHelp(),
		Example: `  dialai machines/document-review.json
  dialai review.yaml --meta amount=120 --verbose
  dialai decide 0b9c1d3e approve --as carol
  dialai init review.json --sample document-review`,
		Args:              cobra.ArbitraryArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := noEmptyFlags(cmd, args); err != nil {
				return err
			}
			return remote.Check(a.App, cmd)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runRoot(cmd, args, run) },
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetIn(a.In)
	root.SetFlagErrorFunc(a.FlagError)
	p := root.PersistentFlags()
	p.StringVar(&a.Flags.Store, "store", "", "`where` sessions are kept: a path, sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE, memory:, or env for DATABASE_URL (default: dialai/dialai.db in the user's data directory)")
	p.StringVar(&a.Flags.Server, "server", "", "work at a server of dialai serve in place of a store: its `URL`, or unix:PATH")
	p.StringVar(&a.Flags.KeyFile, "key-file", "", "the `file` with the key for --server (default: DIALAI_API_TOKEN, else, at this computer, its server-key)")
	p.StringVar(&a.Flags.PricesFile, "prices", "", "a `file` of what models cost, laid over the prices that are built in")
	p.BoolVar(&a.Flags.JSON, "json", false, "print JSON, one value a line")
	p.BoolVarP(&a.Flags.Quiet, "quiet", "q", false, "print only how it ended")
	p.BoolVarP(&a.Flags.Verbose, "verbose", "v", false, "say more, on stderr")
	p.BoolVar(&a.Flags.Full, "full", false, "print ids whole, and values however long they are")
	p.BoolVar(&a.Flags.AllowOutside, "allow-outside", false, "let machine files name guards files outside their own folder")
	root.Flags().Bool("mcp", false, "serve MCP clients as DIAL does (dialai mcp has humans asked)")
	root.Flags().Bool("version", false, "print the version of this program")
	run.add(root, true)
	a.addCommands(root)
	a.addDrivers(root)
	return root
}

// noEmptyFlags refuses a flag for text that was given none, as a script does whose variable
// is not set: it would mean the flag left out, which checks less, or whoever is the
// default. No flag of any command means anything by no text.
func noEmptyFlags(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || !empty(f.Value) {
			return
		}
		advice := render.Either(f.Annotations[command.Needed] != nil, "the command needs one that says something", "give it a value, or leave it out")
		err = cmd.FlagErrorFunc()(cmd, fmt.Errorf("--%s is empty: %s", f.Name, advice))
	})
	return err
}

// empty reports whether a flag has no text, or a list has one of its texts without any.
func empty(v pflag.Value) bool {
	list, ok := v.(pflag.SliceValue)
	if !ok {
		return strings.TrimSpace(v.String()) == ""
	}
	texts := list.GetSlice()
	return len(texts) == 0 || slices.ContainsFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// addCommands adds every command, in the groups in which help lists them.
func (a *app) addCommands(root *cobra.Command) {
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run sessions:", []*cobra.Command{a.runCommand(), a.resumeCommand(), a.tickCommand(), a.cancelCommand(), a.forkCommand(), a.moveCommand(), serving.ServeCommand(a.App, buildInfo().Version), serving.MCPCommand(a.App, buildInfo().Version)}},
		{"Decide as a human:", []*cobra.Command{a.inboxCommand(), a.decideCommand(), a.proposeCommand(), a.retractCommand()}},
		{"Let the engine decide:", []*cobra.Command{a.trustCommand(), a.collapseCommand()}},
		{"Look at what happened:", []*cobra.Command{a.sessionsCommand(), a.showCommand(), a.logCommand(), a.explainCommand(), a.metricsCommand(), a.riskCommand(), a.calibrationCommand(), a.spendCommand(), a.specialistsCommand(), a.auditCommand()}},
		{"Guard an agent:", []*cobra.Command{guards.CheckCommand(a.App, a.judgeAt), a.proxyCommand(), guards.GuardCommand(a.App), guards.AnalyzeCommand(a.App), guards.BudgetCommand(a.App), guards.ReplayCommand(a.App), agents.PermitCommand(a.App, buildInfo().Version), agents.AgentsCommand(a.App)}},
		{"Undertake long work:", []*cobra.Command{agents.UndertakeCommand(a.App), agents.StatusCommand(a.App), agents.SayCommand(a.App), agents.WatchCommand(a.App), agents.BridgeCommand(a.App)}},
		{"Write machine files:", []*cobra.Command{a.initCommand(), a.lintCommand(), a.graphCommand(), a.schemaCommand(), a.modelsCommand(), a.pricesCommand()}},
		{"Measure decisions:", []*cobra.Command{a.backtestCommand(), a.simulateCommand(), a.benchCommand()}},
		{"Store and program:", []*cobra.Command{a.storeCommand(), a.workersCommand(), serving.KeysCommand(a.App, a.distantClient), serving.WebhooksCommand(a.App, a.hooks), a.migrateCommand(), a.completionCommand(), a.versionCommand(), helpCommand(), a.vectorsCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
			if c.Name() == "help" {
				root.SetHelpCommand(c)
			}
		}
	}
	root.AddCommand(command.EnvironmentTopic())
	a.complete(root)
}

// complete gives a command, and those below it, what follows from what it is: how many
// arguments it takes and which, as Use says, and what it does if it only groups others.
func (a *app) complete(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		a.complete(c)
	}
	switch {
	case cmd.HasSubCommands() && cmd.RunE == nil:
		cmd.RunE = command.NeedsSubcommand
	case cmd.RunE != nil && cmd.Args == nil:
		cmd.Args = command.Arguments
	}
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = a.completeArgument
	}
	for flag, known := range map[string]func(*cobra.Command) []string{"machine": a.machineNames, "session": a.sessionsNow} {
		if cmd.Flags().Lookup(flag) != nil {
			cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) { //nolint:errcheck // the flag is there
				return known(cmd), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
			})
		}
	}
}

// runRoot is the program called without a command.
func (a *app) runRoot(cmd *cobra.Command, args []string, run *runFlags) error {
	flag := func(name string) bool { on, _ := cmd.Flags().GetBool(name); return on }
	switch {
	case flag("version"):
		return a.version()
	case flag("mcp"):
		return serving.DIAL(cmd.Context(), a.App, buildInfo().Version)
	case len(args) == 0:
		a.hello()
		return command.Exit(command.ExitUsage)
	case len(args) == 1:
		return a.run(cmd.Context(), args[0], run)
	}
	if _, err := os.Stat(args[0]); err == nil {
		return command.Hinted(command.Usage("dialai: %q is one argument too many", args[1]), "usage: dialai <machine-file>, and flags")
	}
	return command.Hinted(command.Usage("unknown command %q", args[0]), "%s",
		cmp.Or(a.SuggestCommand(args[0]), "dialai takes one machine file, or a command with its arguments; dialai --help lists the commands"))
}

func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, e := range command.ExitCodes {
		fmt.Fprintf(&b, "  %-4d %s\n", e.Code, e.Text)
	}
	return strings.TrimRight(b.String(), "\n")
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [<command>] [<subcommand>]",
		Short: "Explain a command",
		Long:  "Explain a command, as dialai <command> --help does. Without a command it lists them\nall.",
		Example: `  dialai help decide
  dialai help store verify
  dialai help environment`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return command.Hinted(command.Usage("there is no command %q to explain", strings.Join(args, " ")), "dialai --help lists the commands")
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}
