package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

func (a *app) logCommand() *cobra.Command {
	var from int64
	f := &guardLogFlags{}
	cmd := &cobra.Command{
		Use:   "log <session>",
		Short: "Print the events of a session",
		Long: `Print every event of a session, the oldest first. With --json each line is one
event with the hash of its record; dialai store verify checks them. Texts that hold what
looks like a secret or personal data are masked, unless --payload is full; the log itself
is whole.

With --guard it writes the event log of the guards instead, which dialai analyze
and dialai replay read: one JSON object a line for what was spent, every step that
was judged, and how. Where a step holds what looks like a secret or personal data, its
texts stand as their SHA-256, unless --payload is full; with digest all texts do.`,
		Example: `  dialai log 0b9c1d3e-…
  dialai log 0b9c1d3e-… --from 100 --json
  dialai log 0b9c1d3e-… --guard > guard.jsonl`,
		Args:              arguments,
		ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
				id, err := runner.ParseID(args[0])
				if err != nil {
					return err
				}
				if f.guard {
					return a.printGuardLog(cmd.Context(), e, out, id, f, from)
				}
				if f.payload != payloadRedacted && f.payload != string(guard.PayloadFull) {
					return hinted(usage("--payload is %q", f.payload), "without --guard it may be %s or %s", payloadRedacted, guard.PayloadFull)
				}
				return a.printLog(cmd.Context(), e, out, id, from, f.payload == payloadRedacted)
			})
		},
	}
	cmd.Flags().Int64Var(&from, "from", 1, "the `number` of the first event to print")
	cmd.Flags().BoolVar(&f.guard, "guard", false, "write the event log of the guards")
	cmd.Flags().StringVar(&f.payload, "payload", payloadRedacted, "what is written of texts: `redacted`, full or, with --guard, digest")
	complete(cmd, "payload", payloadRedacted, string(guard.PayloadFull), string(guard.PayloadDigest))
	return cmd
}

func (a *app) printLog(ctx context.Context, e *engine, out io.Writer, id specialist.SessionID, from int64, masked bool) error {
	for rec, err := range e.store.Records(ctx, id, from) {
		if err != nil {
			return err
		}
		events, err := runner.DecodeRaw(rec.Events)
		if err != nil {
			return &runner.CorruptError{What: fmt.Sprintf("the record at event %d", rec.First), Problem: err.Error()}
		}
		for _, ev := range events {
			if ev.Seq < from {
				continue
			}
			changed := false
			if masked {
				ev.Data, changed = redact(ev.Data)
			}
			if a.flags.json {
				err = printJSON(out, struct {
					V         int    `json:"v"`
					SessionID string `json:"sessionId"`
					runner.Raw
					Hash     string `json:"hash"`
					Redacted bool   `json:"redacted,omitempty"`
				}{1, id.String(), ev, rec.Hash.String(), changed})
			} else {
				_, err = fmt.Fprintf(out, "%5d  %s  %-15s %s\n", ev.Seq, ev.At, ev.Kind, clean(string(ev.Data)))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
