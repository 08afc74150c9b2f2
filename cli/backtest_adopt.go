package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/store"
)

// mayAdopt refuses --adopt where there is nothing that could be adopted.
func (f *backtestFlags) mayAdopt(machineName string) error {
	switch {
	case !f.adopt && (f.given("as") || f.given("reasoning")):
		return command.Usage("--as and --reasoning belong to --adopt")
	case !f.adopt:
		return nil
	case machineName == "":
		return command.Usage("--adopt needs the name of a machine")
	case !f.changes():
		return command.Hinted(command.Usage("--adopt needs a policy that is tried"), "for example --arbiter bayes --risk 0.05,0.9")
	case f.cold:
		return command.Usage("--adopt and --cold: the live test does not begin with nothing learned")
	}
	return nil
}

// recordTrials records what was tried, so that picking the best of many is not free.
// A store that cannot be written is only looked at: nothing can be adopted there.
func recordTrials(ctx context.Context, e *engine, r *backtest.Report) error {
	if len(r.Adoptions) == 0 || r.Trial.From == 0 {
		return nil
	}
	for i := range r.Machines {
		if _, err := e.RecordTrial(ctx, r.Machines[i].Machine, r.Trial, command.LocalActor()); err != nil && !errors.Is(err, store.ErrReadOnly) {
			return err
		}
	}
	return nil
}

// adopt has the tests of the policy's promises begin with what was found.
func (a *app) adopt(ctx context.Context, e *engine, out *bufio.Writer, f *backtestFlags, r *backtest.Report) error {
	if len(r.Adoptions) == 0 {
		return command.Hinted(command.Usage("this policy promises nothing, so there is nothing to adopt"), "--arbiter bayes --risk 0.05,0.9")
	}
	for _, adoption := range r.Adoptions {
		by, err := a.adopter(ctx, e, &adoption, f.order.as)
		if err != nil {
			return err
		}
		done, err := e.Adopt(ctx, runner.Adopting{Adoption: adoption, Trial: r.Trial, SpecialistID: machine.SpecialistID(by), Reason: f.order.reason, Actor: command.LocalActor()})
		if err != nil {
			return adoptError(err, r)
		}
		line := render.AdoptedLine{Kind: "adopted", Machine: done.Machine, State: done.State, Promise: done.Promise, PolicyDigest: done.PolicyDigest, Pairs: len(done.Pairs), Tried: done.Tried, SpecialistID: by}
		if err := a.Adopted(out, &line); err != nil {
			return err
		}
	}
	return nil
}

// adopter returns who adopts.
func (a *app) adopter(ctx context.Context, e *engine, adoption *trust.Adoption, as string) (string, error) {
	if as != "" {
		return as, nil
	}
	humans, err := e.Adopters(ctx, adoption.Machine, machine.StateName(adoption.State))
	return onlyHuman(humans, err, fmt.Sprintf("adopt a policy for machine %q", adoption.Machine))
}

// adoptError says what stands in the way of an adoption.
func adoptError(err error, r *backtest.Report) error {
	if e, ok := errors.AsType[*runner.Error](err); ok && e.Code == "nothing_to_adopt" {
		return command.Hinted(err, "it takes rounds of the present definition that humans decided after %d others; who is switched off has to be left out with --drop", trust.EligibleFrom)
	}
	return err
}
