package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/dialai/dialai/cli/internal/guardlog"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/session"
	"github.com/spf13/cobra"
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

With --guard it writes the event log of the guards instead, which dialai analyze
and dialai replay read: one JSON object a line for what was spent, every step that
was judged, and how. Where a step holds what looks like a secret or personal data, its
texts stand as their SHA-256, unless --payload is full; with digest all texts do.`,
		Example: `  dialai log 0b9c1d3e
  dialai log 0b9c1d3e --from 100 --json
  dialai log 0b9c1d3e --guard > guard.jsonl
  dialai log --machine triage`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case machineName == "" && len(args) == 0:
				return hinted(usage("%s: <session> is missing", cmd.CommandPath()), "name a session, or a machine with --machine")
			case machineName != "" && (len(args) > 0 || f.guard):
				return usage("%s: --machine stands alone: its log is that of no session, and no guard's", cmd.CommandPath())
			case machineName != "":
				return a.with(cmd.Context(), reads, func(e *engine, out *bufio.Writer) error {
					return a.printMachineLog(cmd.Context(), e, out, machineName, from)
				})
			}
			return a.with(cmd.Context(), v.access(), func(e *engine, out *bufio.Writer) error {
				s, err := e.session(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				s, hidden, err := v.lookAtAll(cmd.Context(), e, s)
				if err != nil {
					return err
				}
				if f.guard {
					return a.printGuardLog(cmd.Context(), e, out, s, f, from, hidden)
				}
				if f.payload != guardlog.PayloadRedacted && f.payload != string(guard.PayloadFull) {
					return hinted(usage("--payload is %q", f.payload), "without --guard it may be %s or %s", guardlog.PayloadRedacted, guard.PayloadFull)
				}
				return a.printLog(cmd.Context(), e, out, s, logView{from, f.payload == guardlog.PayloadRedacted, hidden})
			})
		},
	}
	cmd.Flags().Int64Var(&from, "from", 1, "the `number` of the first event to print")
	cmd.Flags().StringVar(&machineName, "machine", "", "the `name` of a machine, to print the log of its specialists")
	v.add(cmd)
	cmd.Flags().BoolVar(&f.guard, "guard", false, "write the event log of the guards")
	cmd.Flags().StringVar(&f.payload, "payload", guardlog.PayloadRedacted, "what is written of texts: `redacted`, full or, with --guard, digest")
	complete(cmd, "payload", guardlog.PayloadRedacted, string(guard.PayloadFull), string(guard.PayloadDigest))
	return cmd
}

// A logView says what of a log is printed.
type logView struct {
	from   int64            // the first event
	masked bool             // secrets are masked
	hidden map[int32]string // the rounds of which what was proposed is left out, and why
}

func (a *app) printLog(ctx context.Context, e *engine, out io.Writer, s *session.Session, v logView) error {
	round := int32(0)
	return eachEvent(e.store.Records(ctx, s.ID, 1), "", 1, func(ev session.Raw, hash session.Hash) error {
		in := roundOf(ev, &round)
		if ev.Seq < v.from {
			return nil
		}
		line := render.LogLine{V: 1, SessionID: s.ID.String(), Raw: ev.Brief(), Hash: hash.String()}
		switch hidden := v.hidden[in] != ""; {
		case s.Opens(in):
			line.Raw, line.Withheld = s.Concealed(line.Raw, hidden)
		case hidden:
			line.Raw, line.Withheld = s.ConcealedReview(line.Raw)
		}
		if v.masked {
			line.Data, line.Redacted = render.Redact(line.Data)
		}
		return a.LogLine(out, line)
	})
}

// eachEvent calls do with the events of records from a number on, and with the hash of
// the record. log names the log if a record cannot be read; "" names the record.
func eachEvent(records iter.Seq2[session.StoredRecord, error], log string, from int64, do func(session.Raw, session.Hash) error) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		events, err := session.DecodeRaw(rec.Events)
		if err != nil {
			return &session.CorruptError{What: cmp.Or(log, fmt.Sprintf("the record at event %d", rec.First)), Problem: err.Error()}
		}
		for _, ev := range events {
			if ev.Seq < from {
				continue
			}
			if err := do(ev, rec.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}

// printMachineLog prints what happened to the specialists of a machine.
func (a *app) printMachineLog(ctx context.Context, e *engine, out io.Writer, name string, from int64) error {
	if roster, err := e.store.Roster(ctx, name); err != nil {
		return err
	} else if roster.Sequence == 0 {
		if err := e.knows(ctx, name); err != nil {
			return err
		}
	}
	return eachEvent(e.store.RosterRecords(ctx, name, from), "the log of machine "+name, from, func(ev session.Raw, hash session.Hash) error {
		return a.LogLine(out, render.LogLine{V: 1, Machine: name, Raw: ev, Hash: hash.String()})
	})
}

// roundOf returns the number of the round that an event is about: the one that was opened
// last, of a review the one that was reviewed, and where a session is forked the one with
// which it goes on.
func roundOf(ev session.Raw, opened *int32) int32 {
	if ev.Kind == session.KindCreated {
		if _, o, err := ev.Creation(); err == nil && o.ForkedFrom != nil {
			*opened = o.ForkedFrom.Round
		}
	}
	if ev.Kind != session.KindRoundOpened && ev.Kind != session.KindReviewed {
		return *opened
	}
	var d struct{ Round int32 }
	_ = json.Unmarshal(ev.Data, &d) // without a number it is about no round that could be withheld
	if ev.Kind == session.KindRoundOpened {
		*opened = d.Round
	}
	return d.Round
}

// guardLogFlags are those of log that are about guards.
type guardLogFlags struct {
	guard   bool
	payload string
}

func (a *app) printGuardLog(ctx context.Context, e *engine, out io.Writer, s *session.Session, f *guardLogFlags, from int64, hidden map[int32]string) error {
	if f.payload != guardlog.PayloadRedacted && f.payload != string(guard.PayloadFull) && f.payload != string(guard.PayloadDigest) {
		return hinted(usage("--payload is %q", f.payload), "it may be %s, %s or %s", guardlog.PayloadRedacted, guard.PayloadFull, guard.PayloadDigest)
	}
	w := guardlog.New(s, guardlog.Options{From: from, Payload: f.payload, Hidden: hidden}, func(rec *guard.LogRecord) error { return render.JSON(out, rec) })
	return w.Fold(e.store.Records(ctx, s.ID, 1), math.MaxInt64)
}
