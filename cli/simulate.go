package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/payloads"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/files"
	"github.com/dialai/dialai/internal/lab/simulate"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
)

// simulateFlags are those of simulate.
type simulateFlags struct {
	spec, plot   string
	rounds, runs int
	seed         uint64
	inputFlags
}

func (a *app) simulateCommand() *cobra.Command {
	f := &simulateFlags{}
	cmd := &cobra.Command{
		Use:   "simulate [<machine-file>]",
		Short: "Play a machine with made-up voters whose quality is known",
		Long: `Play sessions of a machine with the real engine, but with made-up voters and a
made-up human, and show what its policy would come to: how often it is right, how
often humans are asked, what it costs, and whether its promise is kept. Nobody is
asked and nothing is stored. The same seed gives the same bytes.

A panel (--spec, JSON or YAML) says who votes and how well. Without one, the
proposers of the machine get falling reliabilities from 0.92 to 0.68. Without a
machine, one is made of the panel. Guards are left out: they judge texts and money.

  {
    "states": [{"name": "open", "classes": ["approve", "reject"], "priors": [0.7, 0.3]}],
    "specialists": [
      {"id": "a", "p": 0.9, "costUSD": 0.01, "group": "model-x", "copy": 0.6},
      {"id": "b", "p": {"open": 0.8}, "group": "model-x", "copy": 0.6, "failure": 0.02},
      {"id": "c", "confusion": [[0.9, 0.1], [0.4, 0.6]]},
      {"id": "d", "p": 0.7, "adversary": true}
    ],
    "human": {"error": 0.02, "minutes": 2},
    "drift": [{"round": 500, "specialist": "a", "p": 0.6}],
    "arbiter": "bayes",
    "machine": {"risk": {"maxError": 0.1}}
  }

A voter is right with probability p in each round; with probability copy it uses the
draw of its group instead of its own, so that those of a group err together.
An adversary is wrong with probability p, and of one mind with the others. The
members of "machine" are those of machine files. What --input and --meta give is what
every session is about, where conditions read it: what a condition closes is neither the
truth of a round nor proposed. Approvals are given by the made-up humans one after the
other, payloads are examples made of the parameters. Waits end by their timer, and
nobody is later than a timer elsewhere.

Exit codes: 0 done, 2 wrong usage or file.`,
		Example: `  dialai simulate review.yaml --rounds 2000 --plot review.svg
  dialai simulate --spec panel.json --rounds 1000 --seed 7 --runs 20
  dialai simulate review.yaml --spec panel.yaml --json
  dialai simulate refund-desk.yaml --meta amount=20 --meta reason=late`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.simulate(cmd.Context(), args, f) },
	}
	f.inputFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.spec, "spec", "", "the panel `file`")
	flags.IntVar(&f.rounds, "rounds", 1000, "the `number` of rounds of a run")
	flags.IntVar(&f.runs, "runs", 1, "the `number` of runs, each with other draws")
	flags.Uint64Var(&f.seed, "seed", 1, "the `number` that all draws come from")
	flags.StringVar(&f.plot, "plot", "", "write the learning curves to this `file`, as SVG")
	return cmd
}

func (a *app) simulate(ctx context.Context, args []string, f *simulateFlags) error {
	switch {
	case f.rounds < 1 || f.rounds > simulate.MaxRounds:
		return command.Usage("--rounds is %d: it may be 1 to %d", f.rounds, simulate.MaxRounds)
	case f.runs < 1 || f.runs > simulate.MaxRuns:
		return command.Usage("--runs is %d: it may be 1 to %d", f.runs, simulate.MaxRuns)
	case len(args) == 0 && f.spec == "":
		return command.Hinted(command.Usage("dialai simulate: name a machine file, or a panel with --spec"), "dialai simulate --help shows a panel")
	}
	if err := command.OneStdin(command.StdinUse{What: "the machine file", Is: len(args) > 0 && args[0] == "-"}, command.StdinUse{What: "the panel", Is: f.spec == "-"}, command.StdinUse{What: "the input of --input -", Is: f.input == "-"}); err != nil {
		return err
	}
	c := simulate.Config{Registry: a.Registry, Rounds: f.rounds, Runs: f.runs, Seed: f.seed, Example: payloads.Example}
	var err error
	if len(args) > 0 {
		if c.Machine, err = a.LoadMachine(args[0]); err != nil {
			return err
		}
	}
	if c.Meta, err = f.read(a, c.Machine); err != nil {
		return err
	}
	if c.Panel, err = a.panel(c.Machine, f.spec); err != nil {
		return command.Fail(command.ExitUsage, err)
	}
	if f.plot != "" && !strings.EqualFold(filepath.Ext(f.plot), ".svg") {
		return command.Hinted(command.Usage("--plot %q: plots are written as SVG", f.plot), "name a file that ends in .svg; browsers and most viewers show it")
	}
	m := render.NewMeter(a.Screen(), "simulating", "rounds")
	c.Progress = func(done, of int) { m.At(int64(done), int64(of)) }
	r, err := simulate.Run(ctx, c)
	m.Stop()
	if refused, ok := errors.AsType[*runner.Error](err); ok && refused.Code == session.CodeInvalidInput {
		err = command.Fail(command.ExitUsage, refused)
	}
	if errors.Is(err, simulate.ErrPanel) {
		return command.Fail(command.ExitUsage, err)
	}
	if err != nil {
		return err
	}
	if f.plot != "" {
		if err := os.WriteFile(f.plot, render.Curves(r), 0o644); err != nil {
			return fmt.Errorf("writing the plot: %w", err)
		}
	}
	out := bufio.NewWriter(a.Out)
	return errors.Join(a.Simulation(out, r), out.Flush())
}

// panel reads the panel, or makes one for the machine.
func (a *app) panel(m *machine.Machine, path string) (p simulate.Panel, err error) {
	if path == "" {
		return simulate.DefaultPanel(m), nil
	}
	data, err := a.ReadFile(path, files.Machine)
	if err != nil {
		return p, err
	}
	err = machine.ParseSection(path, data, packs.HoldsSecret, func(section []byte) (problems []machine.Problem) {
		p, problems = simulate.ParsePanel(section, m)
		return problems
	})
	return p, err
}
