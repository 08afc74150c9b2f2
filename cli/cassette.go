package cli

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dialai/dialai/cli/internal/command"
	"github.com/dialai/dialai/internal/cassette"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// Runs on cassettes: --record keeps what services and models say, --replay says it
// again. A new run knows its machine and its seed before anybody is asked; a session
// that is carried on is known only once it has been loaded, so its tape begins empty
// (laterTape) and refuses every call until loadTape has found its cassettes. What a replay
// asks must be what was recorded: machine, metaJson, seed and mode are compared first.
// A call that the cassettes lack ends the command with that error, whatever became of
// the session without it.

// tapeFlags are those of the commands in which services and models are asked.
type tapeFlags struct{ record, replay string }

func (f *tapeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.record, "record", "", "keep what services and models say in this `folder`, one file a call, so that the run can be replayed")
	cmd.Flags().StringVar(&f.replay, "replay", "", "take what services and models say from this `folder`: nobody is asked and no key is needed")
}

func (f *tapeFlags) check() error {
	if f.record != "" && f.replay != "" {
		return command.Usage("a run is either recorded or replayed, so give one of --record and --replay")
	}
	return nil
}

// A laterTape is a tape whose cassettes are known only once its session is.
type laterTape struct {
	flags *tapeFlags
	deck  *cassette.Deck // nil until then
}

// Playing implements webhook.Tape.
func (t *laterTape) Playing() bool { return t.flags.replay != "" }

// Exchange implements webhook.Tape.
func (t *laterTape) Exchange(ctx context.Context, l webhook.Label, request []byte, send func() webhook.Taped) webhook.Taped {
	if t.deck == nil {
		return webhook.Taped{Err: errors.New("nobody is asked before it is known whose cassettes these are")}
	}
	return t.deck.Exchange(ctx, l, request, send)
}

// Together implements runner.Arrivals.
func (t *laterTape) Together(asked []specialist.Caller) func(ctx context.Context, place int, deliver func()) {
	if t.deck == nil {
		return func(_ context.Context, _ int, deliver func()) { deliver() } // with the error that Exchange gave
	}
	return t.deck.Together(asked)
}

// taped carries a session of the store on, on the cassettes that the flags ask for.
// do says by loadTape of which session they are, before anybody is asked.
func (a *app) taped(f *tapeFlags, do func() error) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.record == "" && f.replay == "" {
		return do()
	}
	t := &laterTape{flags: f}
	a.Tape = t
	err := do()
	if t.deck == nil {
		return err
	}
	return deckError(err, t.deck)
}

// loadTape gets the cassettes of a session ready, if there are to be any.
func (a *app) loadTape(s *session.Session) (err error) {
	if t, later := a.Tape.(*laterTape); later {
		t.deck, err = t.flags.goesOn(s)
	}
	return err
}

// goesOn returns the cassettes of a session that is there already: those that were
// recorded so far are kept.
func (f *tapeFlags) goesOn(s *session.Session) (d *cassette.Deck, err error) {
	o := s.Options()
	run := cassette.Run{MachineName: s.Machine().Name(), MachineDigest: s.Machine().Digest(), Seed: strconv.FormatUint(o.Seed, 10), Mode: string(o.Mode), MetaJSON: o.Meta}
	if f.record != "" {
		d, err = cassette.Continue(f.record, run)
	} else {
		d, err = cassette.Resume(f.replay, run)
	}
	if _, other := errors.AsType[*cassette.OtherRunError](err); other {
		err = command.Hinted(err, "name the folder of this session's run, or a new one for --record")
	}
	if err != nil {
		return nil, command.Fail(command.ExitUsage, err)
	}
	return d, nil
}

// deck returns the cassettes that the flags ask for, nil if they ask for none, and
// brings the options of the session into line with them.
func (f *runFlags) deck(m *machine.Machine, o *runner.StartOptions) (*cassette.Deck, error) {
	switch {
	case f.record != "":
		return f.recording(m, o)
	case f.replay != "":
		return f.replaying(m, o)
	}
	return nil, nil
}

// recording begins to record. Random choices get a seed, which is recorded too.
func (f *runFlags) recording(m *machine.Machine, o *runner.StartOptions) (*cassette.Deck, error) {
	for o.Seed == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		o.Seed = binary.BigEndian.Uint64(b[:])
	}
	d, err := cassette.Record(f.record, cassette.Run{MachineName: m.Name(), MachineDigest: m.Digest(), Seed: strconv.FormatUint(o.Seed, 10), Mode: string(o.Mode), MetaJSON: o.Meta})
	if err != nil {
		return nil, command.Fail(command.ExitUsage, err)
	}
	return d, nil
}

// replaying checks that this is the run that was recorded.
func (f *runFlags) replaying(m *machine.Machine, o *runner.StartOptions) (*cassette.Deck, error) {
	d, err := cassette.Play(f.replay)
	if err != nil {
		return nil, command.Fail(command.ExitUsage, err)
	}
	run := d.Run()
	anew := func(format string, args ...any) error {
		return command.Hinted(command.Usage(format, args...), "run it as it was recorded, or record it anew with --record")
	}
	recorded := tidy(run.MetaJSON)
	switch {
	case run.MachineDigest != m.Digest():
		return nil, anew("the cassettes in %s are of another machine than this file: of %q with digest %.12s, and this one has %.12s", f.replay, run.MachineName, run.MachineDigest, m.Digest())
	case o.Meta != nil && tidy(o.Meta) != recorded:
		return nil, anew("the cassettes in %s were recorded with other --meta: %s", f.replay, recorded)
	case o.Seed != 0 && o.Seed != run.SeedNumber():
		return nil, anew("the cassettes in %s were recorded with --seed %s", f.replay, run.Seed)
	case o.Mode != "" && string(o.Mode) != run.Mode:
		return nil, anew("the cassettes in %s were recorded with --mode %q", f.replay, run.Mode)
	}
	o.Seed, o.Mode = run.SeedNumber(), machine.Mode(run.Mode)
	if recorded != "" {
		o.Meta = []byte(recorded)
	}
	return d, nil
}

// tidy returns a JSON value without white space, so that it can be compared.
func tidy(value json.RawMessage) string {
	text, err := jsontext.Tidy(value)
	if err != nil {
		return string(value)
	}
	return string(text)
}

// deckError is what ends a run on cassettes: what they lack matters more than how
// the run came out without it.
func deckError(ran error, d *cassette.Deck) error {
	lacks := d.Err()
	if lacks == nil {
		return ran
	}
	if _, missing := errors.AsType[*cassette.MissingError](lacks); missing {
		lacks = command.Hinted(lacks, "record the run anew with --record")
	}
	return command.Fail(command.ExitFailure, lacks)
}
