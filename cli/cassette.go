package cli

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/dialai/dialai/cassette"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

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
		return nil, &exitError{exitUsage, err}
	}
	return d, nil
}

// replaying checks that this is the run that was recorded.
func (f *runFlags) replaying(m *machine.Machine, o *runner.StartOptions) (*cassette.Deck, error) {
	d, err := cassette.Play(f.replay)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	run := d.Run()
	anew := func(format string, args ...any) error {
		return hinted(usage(format, args...), "run it as it was recorded, or record it anew with --record")
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
	text, err := exact.Tidy(value)
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
		lacks = hinted(lacks, "record the run anew with --record")
	}
	return &exitError{exitFailure, lacks}
}
