package cli

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/runner"
)

func (a *app) resumeCommand() *cobra.Command {
	f := &runFlags{}
	var o runner.ResumeOptions
	cmd := &cobra.Command{
		Use:   "resume <session>",
		Short: "Go on with a session",
		Long: `Run a session on from where it stands: after a crash, a limit of the run, or when
answers may have arrived. What was recorded is not asked for again, and what was
spent stays spent. A session that has completed stays so.

A session that a guard stopped is judged afresh. If it was stopped because it went
in circles, --clear says that you have looked at it: the guards forget what has
repeated. A limit of steps or money is part of the machine that the session began
with, and stays.`,
		Example: `  dialai resume 0b9c1d3e-…
  dialai resume 0b9c1d3e-… --retry-failed
  dialai resume 0b9c1d3e-… --clear --note "it waits for the build, that is fine"`,
		Args:              arguments,
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.taped(&f.tapeFlags, func() error { return a.resume(cmd.Context(), args[0], o, f) })
		},
	}
	f.add(cmd, false)
	cmd.Flags().BoolVar(&o.RetryFailed, "retry-failed", false, "ask those again who failed in this round")
	cmd.Flags().BoolVar(&o.Clear, "clear", false, "let the guards forget what has repeated")
	cmd.Flags().StringVar(&o.Actor, "as", "", "`who` resumes, for the record (default: the user of this computer)")
	cmd.Flags().StringVar(&o.Note, "note", "", "`why`, for the record")
	return cmd
}

func (a *app) resume(ctx context.Context, id string, o runner.ResumeOptions, f *runFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if o.Actor == "" {
		o.Actor = osUser()
	}
	p := a.newPrinter()
	defer p.status.stop()
	var err error
	if p.shadow, err = a.loadShadow(f.shadow); err != nil {
		return err
	}
	e, err := a.engine(ctx, writes, p.observe)
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.Session(ctx, id)
	if err != nil {
		return err
	}
	if err := a.wind(s); err != nil {
		return err
	}
	p.follow(s)
	if err := p.shadow.follow(ctx, e, s); err != nil {
		return err
	}
	if s, err = e.Resume(ctx, s.ID, o); err != nil {
		return err
	}
	return a.carryOn(ctx, e, p, s.ID, f)
}

// osUser returns who runs this program.
func osUser() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return fmt.Sprintf("user %d", os.Getuid())
	}
	return u.Username
}
