package cli

import (
	"bufio"
	"context"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

func (a *app) modelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "models",
		Short:   "Try the models that a machine names",
		Long:    "Find out whether the models that a machine names can be asked from here.",
		Example: "  dialai models check triage.yaml",
	}
	cmd.AddCommand(&cobra.Command{
		Use: "check <machine-file>", Short: "Make one tiny call of each model of a machine",
		Long: `Make one tiny call of every model that a machine names, in the form in which it
would be asked, and say whether it answered, how long that took, and whether its
price is known. Nothing is kept.

Exit codes: 0 all of them answered, 1 one did not, 2 wrong usage or file.`,
		Example: "  dialai models check triage.yaml\n  dialai models check triage.yaml --json",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.checkModels(cmd.Context(), args[0]) },
	})
	return cmd
}

// A modelUse is one model as a machine names it.
type modelUse struct{ id, provider string }

// modelsOf returns the models that a machine names, each once: those of its
// specialists in order, then those of its guards.
func modelsOf(m *machine.Machine) (uses []modelUse, err error) {
	add := func(u modelUse) {
		if u.id != "" && !slices.Contains(uses, u) {
			uses = append(uses, u)
		}
	}
	roster := func(list []machine.Specialist) {
		for i := range list {
			if s := &list[i]; !s.IsHuman {
				add(modelUse{s.ModelID, s.Provider})
			}
		}
	}
	roster(m.Specialists())
	for i := range m.States() {
		roster(m.States()[i].Roster)
	}
	p, err := session.NewProgram(m)
	if err != nil {
		return nil, err
	}
	for i := range m.States() {
		for _, id := range guardModels(p.Guards(&m.States()[i])) {
			asked := func(u modelUse) bool { return u.provider == "" && llm.BaseModel(u.id) == llm.BaseModel(id) }
			if !slices.ContainsFunc(uses, asked) {
				add(modelUse{id: id})
			}
		}
	}
	return uses, nil
}

// guardModels returns the models that guards ask, with the flags of the form in
// which they do; c may be nil. The model of a classifier of another kind is a
// service's own name, and none that is asked here.
func guardModels(c *guard.Config) (ids []string) {
	add := func(id, flags string) {
		if id != "" {
			ids = append(ids, llm.BaseModel(id)+flags)
		}
	}
	if c != nil && c.Truth != nil {
		add(c.Truth.Model, "[tools=no,schema=no]")
		add(c.Truth.ProbeModel, "[tools=no,schema=no]")
	}
	if c != nil && c.Classifier != nil && c.Classifier.Function == llm.ClassifierName {
		add(c.Classifier.Model, "[tools=no]")
	}
	return ids
}

// checkModels makes one call of each model, all at once.
func (a *app) checkModels(ctx context.Context, path string) error {
	m, err := a.LoadMachine(path)
	if err != nil {
		return err
	}
	prices, err := a.PriceTable()
	if err != nil {
		return err
	}
	config, err := a.ModelConfig()
	if err != nil {
		return err
	}
	stop, err := a.Telemetry(&config)
	if err != nil {
		return err
	}
	defer stop()
	uses, err := modelsOf(m)
	if err != nil {
		return err
	}
	client := llm.New(config)
	checks := make([]llm.Check, len(uses))
	var wg sync.WaitGroup
	for i, u := range uses {
		wg.Go(func() { checks[i] = client.Check(ctx, u.id, u.provider) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	out := bufio.NewWriter(a.Out)
	failed, err := a.Checks(out, checks, pricedBy(m, prices))
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil || !failed {
		return err
	}
	return command.Exit(command.ExitFailure)
}
