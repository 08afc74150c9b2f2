package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/internal/jobs"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// mayAdopt refuses --adopt where there is nothing that could be adopted.
func (f *backtestFlags) mayAdopt(machineName string, changes bool) error {
	switch {
	case !f.adopt && (f.given("as") || f.given("reasoning")):
		return command.Usage("--as and --reasoning belong to --adopt")
	case !f.adopt:
		return nil
	case machineName == "":
		return command.Usage("--adopt needs the name of a machine")
	case !changes:
		return command.Hinted(command.Usage("--adopt needs a policy that is tried"), "for example --arbiter bayes --risk 0.05,0.9")
	case f.cold:
		return command.Usage("--adopt and --cold: the live test does not begin with nothing learned")
	}
	return nil
}

// adopt has the tests of the policy's promises begin with what was found.
func (a *app) adopt(ctx context.Context, e *engine, out *bufio.Writer, f *backtestFlags, r *backtest.Report) error {
	if len(r.Adoptions) == 0 {
		return promisesNothing()
	}
	lines, err := jobs.Adopt(ctx, e.Runner, r, runner.Adopting{Reason: f.order.reason, Actor: command.LocalActor()}, func(adoption *trust.Adoption) (machine.SpecialistID, error) {
		by, err := a.adopter(ctx, e, adoption, f.order.as)
		return machine.SpecialistID(by), err
	})
	return errors.Join(a.adopted(out, lines), adoptError(err))
}

// adoptAt has a server do so with what a job has found.
func (a *app) adoptAt(ctx context.Context, far *remote.Server, out *bufio.Writer, machineName string, in api.Adopting) error {
	done, err := far.Adopt(ctx, machineName, in, client.Write{})
	return errors.Join(a.adopted(out, done.Adopted), adoptError(far.Told(err)))
}

// adopted prints what was adopted.
func (a *app) adopted(out *bufio.Writer, lines []api.AdoptedPromise) error {
	for i := range lines {
		if err := a.Adopted(out, &lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// promisesNothing says that there is nothing to adopt.
func promisesNothing() error {
	return command.Hinted(command.Usage("this policy promises nothing, so there is nothing to adopt"), "--arbiter bayes --risk 0.05,0.9")
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
func adoptError(err error) error {
	e, ok := errors.AsType[*runner.Error](err)
	switch {
	case ok && e.Code == "promises_nothing":
		return promisesNothing()
	case ok && e.Code == "nothing_to_adopt":
		return command.Hinted(err, "it takes rounds of the present definition that humans decided after %d others; who is switched off has to be left out with --drop", trust.EligibleFrom)
	}
	return err
}
