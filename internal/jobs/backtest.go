// Package jobs does the long work of commands, at the terminal and at a server, and says what
// came of it in the lines that --json prints.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/internal/guardlog"
	"github.com/dialai/dialai/internal/lab/backtest"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// A Backtest says what is decided again, and by what. The zero Backtest decides the rounds of
// all machines as they were.
type Backtest struct {
	MachineName  string // "" for all machines of the store
	Policy       backtest.Policy
	Guards       *Guards // judge the steps of the sessions again; nil if none do
	Since        string  // as [ParseSince] takes it; "" for all rounds
	Cold         bool
	HumanMinutes float64 // of one human decision; 0 means [backtest.DefaultHumanMinutes]

	Flip     func(backtest.Flip) error // is called with every round that is decided otherwise; nil for nobody
	Progress func(done, of int64)      // is told how many records of how many were read; nil for nobody
}

// Guards are those of a machine, and those of its states that have some of their own.
type Guards struct {
	Machine *guard.Config // nil for none
	States  map[string]*guard.Config
}

// Changed reports whether anything is tried but a repetition.
func (b *Backtest) Changed() bool { return b.Policy.Changed() || b.Cold }

// Run decides again. Nothing is written and nobody is asked. The gates are nil without guards.
// Errors are those of [backtest.Run].
func (b *Backtest) Run(ctx context.Context, r *runner.Runner) (*backtest.Report, *guardlog.GatesAgain, error) {
	since, err := b.since(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	gates, err := b.gates(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	c := backtest.Config{Source: r.Store(), MachineName: b.MachineName, Policy: b.Policy, Since: since, Cold: b.Cold, HumanMinutes: b.HumanMinutes, Flip: b.Flip}
	if b.Progress != nil {
		newest, _ := r.Store().Place(ctx) // without it there is no estimate
		c.Progress = func(place int64) { b.Progress(place, newest) }
	}
	report, err := backtest.Run(ctx, c)
	return report, gates, err
}

// gates judges every step of the sessions again. The course stays as it was: a step that was
// executed counts as executed.
func (b *Backtest) gates(ctx context.Context, r *runner.Runner) (*guardlog.GatesAgain, error) {
	if b.Guards == nil {
		return nil, nil
	}
	g := &guardlog.GatesAgain{}
	for sum, err := range session.Each(ctx, r.Sessions, session.ListQuery{MachineName: b.MachineName}) {
		if err != nil {
			return nil, err
		}
		s, err := r.Session(ctx, sum.SessionID)
		if err != nil {
			return nil, err
		}
		if err := g.Judge(s, r.Store().Records(ctx, s.ID, 1), guard.NewReplayer(b.Guards.Machine, b.Guards.States)); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// since returns the moment since which rounds count. How long ago is how long before the newest
// record of the machine, so that the same log always gives the same report.
func (b *Backtest) since(ctx context.Context, r *runner.Runner) (specialist.Time, error) {
	if b.Since == "" {
		return 0, nil
	}
	at, before, err := ParseSince(b.Since)
	if err != nil || before == 0 {
		return at, err
	}
	var newest specialist.Time
	for sum, err := range session.Each(ctx, r.Sessions, session.ListQuery{MachineName: b.MachineName}) {
		if err != nil {
			return 0, err
		}
		newest = max(newest, sum.UpdatedAt)
	}
	return max(newest-specialist.Time(before.Milliseconds()), 1), nil
}

// ErrSince is wrapped where a text says no time.
var ErrSince = errors.New("it is a date such as 2026-01-31, or how long ago, such as 30d or 12h")

// ParseSince reads a date, with or without a time of the day, or how long ago something was, in
// days (30d) or as Go writes it. One of the two is 0. Errors wrap ErrSince.
func ParseSince(since string) (at specialist.Time, before time.Duration, err error) {
	t, err := time.Parse(time.RFC3339, since)
	if err != nil {
		t, err = time.Parse(time.DateOnly, since)
	}
	if err == nil {
		return specialist.TimeOf(t), 0, nil
	}
	if before, err = text.ParseDays(since); err != nil || before <= 0 {
		return 0, 0, fmt.Errorf("%q: %w", since, ErrSince)
	}
	return 0, before, nil
}

// RecordTrials records what was tried, so that picking the best of many is not free. by is who
// has tried it. A store that cannot be written is only looked at: nothing can be adopted there.
func RecordTrials(ctx context.Context, r *runner.Runner, report *backtest.Report, by *session.Actor) error {
	if len(report.Adoptions) == 0 || report.Trial.From == 0 {
		return nil
	}
	for i := range report.Machines {
		if _, err := r.RecordTrial(ctx, report.Machines[i].Machine, report.Trial, by); err != nil && !errors.Is(err, store.ErrReadOnly) {
			return err
		}
	}
	return nil
}

// Adopt has the tests of promises begin with what was found of them, each by the word of the human
// that who returns. in says why, for the record as whom, and the ID; the rest of it is not looked
// at. A line is returned for each that was adopted, also with an error; errors are those of
// [runner.Runner.Adopt].
func Adopt(ctx context.Context, r *runner.Runner, found *backtest.Report, in runner.Adopting, who func(*trust.Adoption) (machine.SpecialistID, error)) (lines []api.AdoptedPromise, err error) {
	in.Trial = found.Trial
	for _, in.Adoption = range found.Adoptions {
		if in.SpecialistID, err = who(&in.Adoption); err != nil {
			return lines, err
		}
		done, err := r.Adopt(ctx, in)
		if err != nil {
			return lines, err
		}
		lines = append(lines, api.AdoptedPromise{Kind: "adopted", Machine: done.Machine, State: done.State, Promise: done.Promise, PolicyDigest: done.PolicyDigest, Pairs: len(done.Pairs), Tried: done.Tried, SpecialistID: string(in.SpecialistID)})
	}
	return lines, nil
}

// Limits are the most that somebody takes of a back-test. nil takes anything.
type Limits struct {
	Flips *int     // rounds that are decided otherwise
	Error *float64 // share of automatic decisions that a human contradicts
}

// Exceeded returns which limits a result exceeds, by the worst case; nil if none. No share is
// exceeded where no human looked.
func (l Limits) Exceeded(total *backtest.Result) error {
	var broken []error
	if n := total.Flips[1]; l.Flips != nil && n > *l.Flips {
		flips := "flips"
		if n == 1 {
			flips = "flip"
		}
		broken = append(broken, fmt.Errorf("%d %s, more than --max-flips %d", n, flips, *l.Flips))
	}
	if e := total.New.ErrorShare; l.Error != nil && e != nil && e[1] > *l.Error {
		broken = append(broken, fmt.Errorf("an error share of %v, more than --max-error %v", e[1], *l.Error))
	}
	return errors.Join(broken...)
}

// NamedArbiter returns the arbiter that a text means: that of a built-in strategy, by its name, or
// an expression; nil if it is neither.
func NamedArbiter(name string) *machine.Specialist {
	switch {
	case slices.Contains(strategies.Names(machine.Arbiter), name):
		return &machine.Specialist{Role: machine.Arbiter, StrategyFnName: name}
	case strings.HasPrefix(name, "="):
		return &machine.Specialist{Role: machine.Arbiter, StrategyFn: name}
	}
	return nil
}
