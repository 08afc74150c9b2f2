package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// runFlags are those of the commands that run a session.
type runFlags struct {
	meta        []string
	mode        string
	seed        uint64
	maxSteps    int
	timeout     time.Duration
	wait        bool
	strict      bool
	interactive bool
	remote      bool
}

// add adds the flags; those that start a session only if starts is set.
func (f *runFlags) add(flags *pflag.FlagSet, starts bool) {
	if starts {
		flags.StringArrayVar(&f.meta, "meta", nil, "a member of the session's metaJson, key=value; the value is JSON if it parses, else text")
		flags.StringVar(&f.mode, "mode", "", "how proposers are asked: all, eager or sequential (default: as the file says)")
		flags.Uint64Var(&f.seed, "seed", 0, "seed of random choices; 0 draws other ones for each session")
		flags.BoolVar(&f.strict, "strict", false, "refuse a machine that lint warns about")
	}
	flags.IntVar(&f.maxSteps, "max-steps", runner.DefaultMaxSteps, "stop after that many transitions")
	flags.DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "stop after that time")
	flags.BoolVar(&f.wait, "wait", false, "stay while answers are only out for later")
	flags.BoolVarP(&f.interactive, "interactive", "i", false, "ask at the terminal when a human must decide")
	flags.BoolVar(&f.remote, "remote", false, "run at DIALAI_BASE_URL (not part of this version)")
}

func (f *runFlags) options() runner.RunOptions {
	return runner.RunOptions{MaxSteps: f.maxSteps, Timeout: f.timeout, Wait: f.wait}
}

func (f *runFlags) check() error {
	switch {
	case f.remote:
		return usage("running at a server is not part of this version; leave out --remote")
	case f.maxSteps < 1:
		return usage("--max-steps is %d, it must be at least 1", f.maxSteps)
	case f.timeout <= 0:
		return usage("--timeout is %s, it must be above 0", f.timeout)
	}
	return nil
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run <machine file>",
		Short: "Run a machine file to its goal (also: dialai <machine file>)",
		Long: `Start a session of a machine file, JSON or YAML, and run it until it ends,
needs a human, or waits for answers that come later. "-" reads the file from
stdin. The session stays in the store.`,
		Example: `  dialai run machines/document-review.json
  dialai run expense.yaml --meta amount=120 --meta 'items=["hotel"]'
  dialai run triage.json --json | jq .kind
  dialai run review.json --interactive`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args[0], f) },
	}
	f.add(cmd.Flags(), true)
	return cmd
}

// run starts a session of a machine file and runs it.
func (a *app) run(ctx context.Context, path string, f *runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	m, err := a.loadMachine(path)
	if err != nil {
		return err
	}
	if err := a.warn(m, f.strict); err != nil {
		return err
	}
	meta, err := parseMeta(f.meta)
	if err != nil {
		return err
	}
	p := a.newPrinter()
	defer p.status.stop()
	e, err := a.engine(ctx, p.observe)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.Start(ctx, m, runner.StartOptions{Meta: meta, Seed: f.seed, Mode: machine.Mode(f.mode), Defaults: true})
	if err != nil {
		return err
	}
	return a.carryOn(ctx, e, p, s.ID, f)
}

// carryOn runs a session from where it stands and ends the command.
func (a *app) carryOn(ctx context.Context, e *engine, p *printer, id specialist.SessionID, f *runFlags) error {
	for {
		result, err := e.Run(ctx, id, f.options())
		if err != nil {
			p.status.stop()
			return err
		}
		if f.interactive && result.Status == runner.NeedsHuman.String() {
			decided, err := a.interact(ctx, e, p, result)
			if err != nil {
				return err
			}
			if decided {
				continue
			}
		}
		code, err := p.end(result, func() (runner.InboxItem, error) { return e.Question(ctx, result.Session) })
		return errors.Join(err, exit(code))
	}
}

// warn prints lint findings if --verbose or --strict asks for them; under
// --strict they are errors.
func (a *app) warn(m *machine.Machine, strict bool) error {
	if !a.flags.verbose && !strict {
		return nil
	}
	findings := m.Lint(machine.LintOptions{Priced: priced(m)})
	for _, f := range findings {
		fmt.Fprintln(a.err, cleanLines(f.Warning()))
	}
	if strict && len(findings) > 0 {
		return usage("%d findings, and --strict makes them errors", len(findings))
	}
	return nil
}

// parseMeta makes one JSON object of --meta flags; nil if there are none.
func parseMeta(pairs []string) ([]byte, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	var members []string
	seen := map[string]bool{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usage("--meta %q is not key=value", pair)
		}
		if seen[key] {
			return nil, usage("--meta gives %q twice", key)
		}
		seen[key] = true
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		text := []byte(value)
		if !json.Valid(text) {
			if text, err = json.Marshal(value); err != nil {
				return nil, err
			}
		}
		members = append(members, string(name)+":"+string(text))
	}
	return []byte("{" + strings.Join(members, ",") + "}"), nil
}
