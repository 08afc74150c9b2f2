package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/guards"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/lint"
	"github.com/dialai/dialai/internal/planning"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// Run is the way of every command that drives a session (run, resume, decide, propose): begin
// or take up, carry on while the printer shows each commit, finish with what is to be done
// next and the exit code of that.

// runFlags are those of the commands that run a session.
type runFlags struct {
	mode        string
	seed        uint64
	as          string
	missing     []string
	maxSteps    int
	timeout     time.Duration
	wait        bool
	strict      bool
	interactive bool
	shadow      string
	inputFlags
	tapeFlags
}

// modes are how proposers can be asked.
var modes = []string{string(machine.All), string(machine.Eager), string(machine.Sequential)}

// add adds the flags; those that start a session only if starts is set.
func (f *runFlags) add(cmd *cobra.Command, starts bool) {
	flags := cmd.Flags()
	if starts {
		f.inputFlags.add(cmd)
		flags.StringVar(&f.mode, "mode", "", "the `mode` in which proposers are asked: all, eager or sequential (default: as the file says)")
		flags.Uint64Var(&f.seed, "seed", 0, "a `number` that decides random choices; 0 draws other ones for each session")
		flags.StringVar(&f.as, "as", "", "the human `ID` as whom the session is started, whom approvals may exclude")
		flags.StringArrayVar(&f.missing, "allow-missing", nil, "start without the specialist of this `ID` if it cannot be asked here")
		flags.BoolVar(&f.strict, "strict", false, "refuse a machine that lint warns about")
		command.Complete(cmd, "mode", modes...)
	}
	f.tapeFlags.add(cmd)
	flags.IntVar(&f.maxSteps, "max-steps", runner.DefaultMaxSteps, "stop after that `number` of transitions")
	flags.DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "stop after that `time`, such as 90s or 5m")
	flags.BoolVar(&f.wait, "wait", false, "stay while the only answers missing are those that come later, or a timer executes something; a --timeout that ends then leaves the session as it is")
	flags.BoolVarP(&f.interactive, "interactive", "i", false, "ask here, at the terminal, when a human must decide")
	guards.GuardsFlag(cmd, &f.shadow, "a guards or machine `file` whose guards judge every step beside those of the machine; what they say is shown where it differs, and has no effect", "shadow")
	flags.Bool("remote", false, "work at the server that DIALAI_BASE_URL names, as with --server")
}

func (f *runFlags) options() runner.RunOptions {
	return runner.RunOptions{MaxSteps: f.maxSteps, Timeout: f.timeout, Wait: f.wait, Timers: !f.interactive}
}

func (f *runFlags) check() error {
	switch {
	case f.maxSteps < 1:
		return command.Usage("--max-steps is %d, it must be at least 1", f.maxSteps)
	case f.timeout <= 0:
		return command.Usage("--timeout is %s, it must be above 0", f.timeout)
	}
	if err := f.tapeFlags.check(); err != nil {
		return err
	}
	return command.OneOf("mode", f.mode, append(modes, "")...)
}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run <machine-file>",
		Short: "Run a machine file to its goal (also: dialai <machine-file>)",
		Long: `Start a session of a machine file, JSON or YAML, and run it until it ends,
needs a human, or waits for answers that come later. "-" reads the file from
stdin. The session stays in the store.`,
		Example: `  dialai run machines/document-review.json
  dialai run expense.yaml --meta amount=120 --meta 'items:=["hotel"]'
  dialai run expense.yaml --input expense.json --meta urgent=true
  dialai run triage.json --json | jq .kind
  dialai run review.json --interactive`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args[0], f) },
	}
	f.add(cmd, true)
	return cmd
}

// run starts a session of a machine file and runs it.
func (a *app) run(ctx context.Context, path string, f *runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := command.OneStdin(command.StdinUse{What: "the machine file", Is: path == "-"}, command.StdinUse{What: "the input of --input -", Is: f.input == "-"},
		command.StdinUse{What: "the guards of --guards -", Is: f.shadow == "-"}, command.StdinUse{What: "the answers of --interactive", Is: f.interactive}); err != nil {
		return err
	}
	m, err := a.LoadMachine(path)
	if err != nil {
		return err
	}
	meta, err := f.read(a, m)
	if err != nil {
		return err
	}
	if err := a.warn(m, f.strict); err != nil {
		return err
	}
	if err := a.warnShort(m, f); err != nil {
		return err
	}
	actor := command.LocalActor()
	if f.as != "" {
		actor.Humans = []string{f.as}
	}
	options := runner.StartOptions{Meta: meta, Seed: f.seed, Mode: machine.Mode(f.mode), Defaults: true, Actor: actor}
	for _, id := range f.missing {
		options.AllowMissing = append(options.AllowMissing, machine.SpecialistID(id))
	}
	deck, err := f.deck(m, &options)
	if err != nil {
		return err
	}
	if deck == nil {
		return a.begin(ctx, m, options, f)
	}
	a.Tape = deck
	return deckError(a.begin(ctx, m, options, f), deck)
}

// begin starts a session and runs it.
func (a *app) begin(ctx context.Context, m *machine.Machine, options runner.StartOptions, f *runFlags) error {
	p := a.newPrinter()
	defer p.status.Stop()
	var err error
	if p.shadow, err = a.loadShadow(f.shadow); err != nil {
		return err
	}
	e, err := a.engine(ctx, command.Starts, p)
	if err != nil {
		return err
	}
	defer e.Close()
	if e.far == nil { // a server asks with keys of its own
		all, err := everybody(ctx, e, m)
		if err != nil {
			return err
		}
		a.warnKeys(e, all)
		if err := a.checkStarter(m, all, f.as); err != nil {
			return err
		}
	} else if f.as != "" {
		all, err := e.far.Everybody(ctx, m)
		if err != nil {
			return err
		}
		if err := a.checkStarter(m, all, f.as); err != nil {
			return err
		}
	}
	s, err := e.Start(ctx, m, options)
	switch {
	case errors.Is(err, runner.ErrIllegal): // metaJson that is too large, and the like
		return command.Fail(command.ExitUsage, err)
	case err != nil:
		return err
	}
	return a.carryOn(ctx, e, p, s.ID, f)
}

// everybody returns the specialists of a machine, those of its states and of its roster, with
// those off that are switched off there.
func everybody(ctx context.Context, e *engine, m *machine.Machine) ([]machine.Specialist, error) {
	roster, err := e.Store.Roster(ctx, m.Name())
	if err != nil {
		return nil, err
	}
	all := slices.Clone(m.Specialists())
	for i := range m.States() {
		all = append(all, m.States()[i].Roster...)
	}
	for _, r := range roster.Specialists {
		all = append(all, r.Specialist)
	}
	for i := range all {
		if off := roster.Off[all[i].SpecialistID]; off {
			all[i].Disabled = &off
		}
	}
	return all, nil
}

// warnKeys says which models that take part cannot be asked for lack of a key: their asks
// are going to fail. Where cassettes answer, none is needed.
func (a *app) warnKeys(e *engine, all []machine.Specialist) {
	if a.Tape != nil && a.Tape.Playing() {
		return
	}
	said := map[string]bool{}
	for i := range all {
		s := &all[i]
		if s.ModelID == "" || s.Off() || said[s.SpecialistID] {
			continue
		}
		if err := e.Models.Ready(s.ModelID, s.Provider); err != nil {
			said[s.SpecialistID] = true
			fmt.Fprintf(a.Err, "warning: specialist %q cannot be asked: %s\n", render.Clean(s.SpecialistID), render.Clean(err.Error()))
		}
	}
}

// checkStarter looks at as whom a session is started. Where approvals exclude who that is, an id
// that reads like one of the machine's humans is refused: whoever is misspelt would be excluded
// from nothing. Any other that is no human of the machine is warned of. A specialist of it who is
// no human starts nothing: the start says so.
func (a *app) checkStarter(m *machine.Machine, all []machine.Specialist, as string) error {
	var humans []string
	for i := range all {
		if all[i].IsHuman {
			humans = append(humans, all[i].SpecialistID)
		} else if all[i].SpecialistID == as {
			return nil
		}
	}
	if as == "" || len(humans) == 0 || slices.Contains(humans, as) {
		return nil
	}
	hint := machine.DidYouMean(as, humans)
	if m.Starters() && hint != "" {
		return command.Hinted(command.Usage("machine %q has no human %q, and its approvals exclude who has started a session", render.Clean(m.Name()), render.Clean(as)), "%s", render.Clean(hint))
	}
	fmt.Fprintf(a.Err, "warning: machine %q has no human %q%s\n", render.Clean(m.Name()), render.Clean(as),
		render.When(m.Starters(), ": approvals that exclude who has started the session exclude nobody"))
	if hint != "" {
		fmt.Fprintf(a.Err, "    hint: %s\n", render.Clean(hint))
	}
	return nil
}

// carryOn runs a session from where it stands and ends the command.
func (a *app) carryOn(ctx context.Context, e *engine, p *printer, id specialist.SessionID, f *runFlags) error {
	for decided := false; ; {
		result, err := e.Run(ctx, id, f.options())
		if err != nil {
			p.status.Stop()
			return err
		}
		another := decided && result.Code == session.CodeSecondHuman // who is not sitting here
		if f.interactive && result.Status == session.NeedsHuman.String() && !another {
			if decided, err = a.interact(ctx, e, p, result); err != nil {
				return err
			}
			if decided {
				continue
			}
		}
		return a.finish(ctx, e, p, result)
	}
}

// finish prints where a session was left and ends the command.
func (a *app) finish(ctx context.Context, e *engine, p *printer, r runner.Result) error {
	code, err := p.end(r, func() (runner.Question, error) { return a.question(ctx, e, r.Session) })
	if err == nil && r.Status == session.NeedsHuman.String() && !a.Flags.JSON {
		if _, err := a.actors(ctx, e, r.Session); err != nil {
			p.hint("%s", render.Clean(err.Error()))
		}
	}
	if err != nil { // it could not be told
		return err
	}
	return command.Exit(code)
}

// warn prints lint findings if --verbose or --strict asks for them; under
// --strict they are errors.
func (a *app) warn(m *machine.Machine, strict bool) error {
	if !a.Flags.Verbose && !strict {
		return nil
	}
	priced, err := a.priced(m)
	if err != nil {
		return err
	}
	findings := m.Lint(machine.LintOptions{Priced: priced, Decisions: lint.Machine(m)})
	findings = slices.DeleteFunc(findings, func(p machine.Problem) bool {
		return p.Info || p.Code == planning.Dangling // who is registered is known when the session starts
	})
	for _, f := range findings {
		fmt.Fprintln(a.Err, render.Problem(f, machine.Problem.Warning))
	}
	if strict && len(findings) > 0 {
		return command.Usage("%s, and --strict makes warnings errors", render.Plural(len(findings), "warning"))
	}
	return nil
}

// warnShort prints, as warn does, which variables hold tokens so short that they are
// not taken out of what services answer, since they might as well be words. On
// cassettes nobody is sent any.
func (a *app) warnShort(m *machine.Machine, f *runFlags) error {
	if f.replay != "" || !a.Flags.Verbose && !f.strict {
		return nil
	}
	short := webhook.ShortSecrets(m, a.Lookup)
	for _, name := range short {
		fmt.Fprintf(a.Err, "warning: what %s holds is so short that it is not taken out of answers; use a token of %d bytes or more\n", name, webhook.MinSecret)
	}
	if f.strict && len(short) > 0 {
		return command.Usage("%s, and --strict makes warnings errors", render.Plural(len(short), "warning"))
	}
	return nil
}
