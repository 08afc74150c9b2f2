package cli

import (
	"bufio"
	"context"
	"io"
	"iter"
	"math"

	"github.com/dialai/dialai/api"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/cli/internal/remote"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/session"
)

func (a *app) logCommand() *cobra.Command {
	var from int64
	var machineName string
	f, v := &guardLogFlags{}, &viewFlags{}
	cmd := &cobra.Command{
		Use:   "log [<session>]",
		Short: "Print the events of a session, or of a machine's specialists",
		Long: `Print every event of a session, the oldest first. With --json each line is one
event with the hash of its record; dialai store verify checks them. Texts that hold what
looks like a secret or personal data are masked, unless --payload is full; the log itself
is whole. Of the open round what is withheld from whoever rules is left out, and so is
what was proposed in a closed one that waits for a review.

With --machine it prints instead what happened to the specialists of a machine name:
who was registered, switched on or off and by whom, and who became champion.

With --agent it prints what coding agents did about the session, which stands in a log
of its own: that a permission was used, for one.

With --guard it writes the event log of the guards instead, which dialai analyze
and dialai replay read: one JSON object a line for what was spent, every step that
was judged, and how. Where a step holds what looks like a secret or personal data, its
texts stand as their SHA-256, unless --payload is full; with digest all texts do.`,
		Example: `  dialai log 0b9c1d3e
  dialai log 0b9c1d3e --from 100 --json
  dialai log 0b9c1d3e --guard > guard.jsonl
  dialai log 0b9c1d3e --agent
  dialai log --machine triage`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case machineName == "" && len(args) == 0:
				return command.Hinted(command.Usage("%s: <session> is missing", cmd.CommandPath()), "name a session, or a machine with --machine")
			case machineName != "" && (len(args) > 0 || f.guard || f.agent):
				return command.Usage("%s: --machine stands alone: its log is that of no session, and no guard's or agent's", cmd.CommandPath())
			case machineName != "":
				return a.with(cmd.Context(), command.Reads, func(e *engine, out *bufio.Writer) error {
					return a.printMachineLog(cmd.Context(), e, out, machineName, from)
				})
			}
			return a.with(cmd.Context(), v.Access(), func(e *engine, out *bufio.Writer) error {
				s, err := e.session(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				s, hidden, err := v.lookAtAll(cmd.Context(), e, s)
				if err == nil {
					err = f.check()
				}
				switch {
				case err != nil:
					return err
				case e.far != nil:
					return a.printDistantLog(cmd.Context(), e, out, s, v, f, from)
				case f.guard:
					return a.printGuardLog(cmd.Context(), e, out, s, f, from, hidden)
				}
				view := &api.LogView{Redacted: f.payload == guardlog.PayloadRedacted, Hidden: hidden}
				if f.agent {
					return a.printEvents(out, view.AgentEvents(s.ID.String(), e.Store.AgentLog(cmd.Context(), s.ID, from-1)))
				}
				return a.printLog(cmd.Context(), e, out, s, view, from)
			})
		},
	}
	cmd.Flags().Int64Var(&from, "from", 1, "the `number` of the first event to print")
	cmd.Flags().StringVar(&machineName, "machine", "", "the `name` of a machine, to print the log of its specialists")
	v.add(cmd)
	cmd.Flags().BoolVar(&f.guard, "guard", false, "write the event log of the guards")
	cmd.Flags().BoolVar(&f.agent, "agent", false, "print what agents did about the session")
	cmd.MarkFlagsMutuallyExclusive("agent", "guard")
	cmd.Flags().StringVar(&f.payload, "payload", guardlog.PayloadRedacted, "what is written of texts: `redacted`, full or, with --guard, digest")
	command.Complete(cmd, "payload", guardlog.PayloadRedacted, string(guard.PayloadFull), string(guard.PayloadDigest))
	return cmd
}

// check returns what is wrong with what is to be written of texts.
func (f *guardLogFlags) check() error {
	switch {
	case f.guard && f.payload != guardlog.PayloadRedacted && f.payload != string(guard.PayloadFull) && f.payload != string(guard.PayloadDigest):
		return command.Hinted(command.Usage("--payload is %q", f.payload), "it may be %s, %s or %s", guardlog.PayloadRedacted, guard.PayloadFull, guard.PayloadDigest)
	case f.guard:
		return nil
	}
	if f.payload != guardlog.PayloadRedacted && f.payload != string(guard.PayloadFull) {
		return command.Hinted(command.Usage("--payload is %q", f.payload), "without --guard it may be %s or %s", guardlog.PayloadRedacted, guard.PayloadFull)
	}
	return nil
}

// printDistantLog prints the events of a session as a server shows them.
func (a *app) printDistantLog(ctx context.Context, e *engine, out io.Writer, s *session.Session, v *viewFlags, f *guardLogFlags, from int64) error {
	if f.agent {
		return a.printEvents(out, remote.ToldOf(e.far, e.far.AgentLog(ctx, s.ID.String(), from, f.payload, v.as)))
	}
	if f.guard {
		for rec, err := range e.far.GuardLog(ctx, s.ID.String(), from, f.payload, v.as) {
			if err != nil {
				return e.far.Told(err)
			}
			if err := render.JSON(out, rec); err != nil {
				return err
			}
		}
		return nil
	}
	return a.printEvents(out, remote.ToldOf(e.far, e.far.Log(ctx, s.ID.String(), client.EventQuery{Human: v.as, Payload: f.payload, After: max(from-1, 0)})))
}

// printEvents prints events that a server tells.
func (a *app) printEvents(out io.Writer, events iter.Seq2[api.Event, error]) error {
	for event, err := range events {
		if err != nil {
			return err
		}
		if err := a.LogLine(out, event); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printLog(ctx context.Context, e *engine, out io.Writer, s *session.Session, v *api.LogView, from int64) error {
	for event, err := range v.Events(s, e.Store.Records(ctx, s.ID, 1)) {
		if err != nil {
			return err
		}
		if event.Seq < from {
			continue
		}
		if err := a.LogLine(out, event); err != nil {
			return err
		}
	}
	return nil
}

// printMachineLog prints what happened to the specialists of a machine.
func (a *app) printMachineLog(ctx context.Context, e *engine, out io.Writer, name string, from int64) error {
	if e.far != nil {
		return a.printEvents(out, remote.ToldOf(e.far, e.far.MachineLog(ctx, name, from, "full")))
	}
	if roster, err := e.Store.Roster(ctx, name); err != nil {
		return err
	} else if roster.Sequence == 0 {
		if err := e.knows(ctx, name); err != nil {
			return err
		}
	}
	for event, err := range api.EventsOf("the log of machine "+name, e.Store.RosterRecords(ctx, name, from)) {
		if err != nil {
			return err
		}
		if event.Machine = name; event.Seq < from {
			continue
		}
		if err := a.LogLine(out, event); err != nil {
			return err
		}
	}
	return nil
}

// guardLogFlags are those of log that are about guards.
type guardLogFlags struct {
	guard   bool
	agent   bool
	payload string
}

func (a *app) printGuardLog(ctx context.Context, e *engine, out io.Writer, s *session.Session, f *guardLogFlags, from int64, hidden map[int32]string) error {
	w := guardlog.New(s, guardlog.Options{From: from, Payload: f.payload, Hidden: hidden}, func(rec *guard.LogRecord) error { return render.JSON(out, rec) })
	return w.Fold(e.Store.Records(ctx, s.ID, 1), math.MaxInt64)
}
