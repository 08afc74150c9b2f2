// Package backtest decides recorded rounds again, under another policy, without
// asking anybody: what would have been decided, and what of it would have been
// wrong by the word of the humans who decided then.
//
// Rounds are decided in log order, each from its stored proposals, and a human's
// word on a round is learned only after the round was decided. The same log and
// policy give the same report, byte for byte.
package backtest

import (
	"context"
	"iter"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Source is the past of a store. Every [session.Store] is one.
type Source interface {
	Log(ctx context.Context, machineName string, after int64) iter.Seq2[session.LogEntry, error]
	Lessons(ctx context.Context, after int64) iter.Seq2[trust.Lesson, error]
	Definitions(ctx context.Context, machineName string) ([][]byte, error)
	Roster(ctx context.Context, machineName string) (*session.Roster, error)
}

// A Config says what is tried, on what.
type Config struct {
	Source      Source
	MachineName string // "" for all machines of the store
	Policy      Policy
	Since       specialist.Time // only rounds that ended at this time or later; 0 for all
	// Cold begins with an empty ledger and no alignment; else with what had been
	// learned before Since.
	Cold         bool
	HumanMinutes float64 // of one human decision; 0 means [DefaultHumanMinutes]
	// Exact compares the explanation of every verdict too, not only what was
	// decided and how surely; it counts only while nothing is changed.
	Exact bool
	// Flip, if set, is called with every round that is decided otherwise.
	Flip func(Flip) error
	// Progress, if set, is called after each record of the log with its place.
	Progress func(place int64)
}

// DefaultHumanMinutes is how long a human decision is thought to take.
const DefaultHumanMinutes = report.DefaultHumanMinutes

// Run back-tests. Errors wrap [ErrPolicy] if the policy cannot be tried, and
// [session.ErrNotFound] if there is no session of the machine. Nothing is written
// and nobody is asked.
func Run(ctx context.Context, c Config) (*Report, error) {
	if c.HumanMinutes == 0 {
		c.HumanMinutes = DefaultHumanMinutes
	}
	f := &fold{
		Config: &c, changed: c.Policy.Changed() || c.Cold, report: &Report{},
		learned: map[string]learned{}, kept: map[string]bool{}, seeds: map[seedKey]*trust.Seed{}, books: map[string]map[trust.Key]trust.Tally{},
		tracks: map[specialist.SessionID]*track{},
	}
	f.scenes = newScenes(f)
	if c.Since == 0 {
		f.since = 1 // all of the log counts
	}
	var err error
	if f.audits, err = auditsOf(ctx, c.Source, c.MachineName); err != nil {
		return nil, err
	}
	var adapt func(*trust.Lesson) bool
	if f.changed {
		adapt = f.adapt
	}
	f.ledger = newLedger(ctx, c.Source, adapt)
	defer func() { f.ledger.stop() }()
	if err := f.read(ctx); err != nil {
		return nil, err
	}
	return f.result()
}
