package store_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/strategies"
)

// A paused service answers its first caller only when it is let go on, whatever the
// caller's deadline, and every other at once, for 12 cents.
type paused struct {
	strategies.Registry
	asked, on chan struct{}
	calls     int
}

func (p *paused) Proposer(*machine.Machine, *machine.Specialist, specialist.Context) (specialist.Proposer, error) {
	return specialist.ProposerFunc(func(context.Context, specialist.Question) (specialist.Answer, error) {
		if p.calls++; p.calls == 1 {
			close(p.asked)
			<-p.on
		}
		return specialist.Answer{TransitionName: "again", Usage: specialist.Usage{}.WithCost(120_000_000_000)}, nil
	}), nil
}

// An older store writes what earlier versions wrote: that the late answer takes an
// estimate back.
type older struct{ *store.SQLite }

func (o older) Commit(ctx context.Context, c *session.Change) error {
	for _, e := range c.Events {
		if d, ok := e.Data.(*session.Discarded); ok {
			d.Charged = 600_000_000_000
		}
	}
	return o.SQLite.Commit(ctx, c)
}

// TestVerifyNamesWhatWasNeverPaid: a store of an earlier version holds a session that
// spent less than nothing, by a correction of what was never charged. It opens, shows
// what was spent, verify names the event, and rebuilding writes the row.
func TestVerifyNamesWhatWasNeverPaid(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "dialai.db"), context.Background()
	s, err := store.OpenSQLite(ctx, path, store.SQLiteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := &paused{asked: make(chan struct{}), on: make(chan struct{})}
	runnerAt := func(skew time.Duration) *runner.Runner {
		r, err := runner.New(runner.Config{Store: older{s}, Resolver: p, Now: func() time.Time { return time.Now().Add(skew) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"open","goalState":"done","states":{"open":{"prompt":"?","transitions":{"again":"open","finish":"done"}},"done":{}},
		"specialists":[{"role":"proposer","specialistId":"slow","strategyWebhookUrl":"https://hooks.example/","webhookTokenName":"A_WEBHOOK_TOKEN","estimatedCostUSD":0.60},
		{"role":"arbiter","specialistId":"arb","strategyFnName":"firstProposal"}],"guards":{"budget":{"hard_limit_usd":5}}}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	first, second := runnerAt(0), runnerAt(72*time.Hour)
	sess, err := first.Start(ctx, m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = first.Step(ctx, sess.ID) }()
	<-p.asked
	if _, err := second.Step(ctx, sess.ID); err != nil {
		t.Fatal(err)
	}
	close(p.on)
	<-done
	paid := spend.Book{Calls: 1, Money: exact.Money(120_000_000_000)}
	if now, err := first.Session(ctx, sess.ID); err != nil || now.Spent() != paid {
		t.Fatalf("spent %+v, %v", now.Spent(), err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `UPDATE sessions SET cost_pico_usd=-360000000000`); err != nil {
		t.Fatal(err)
	}
	report, err := s.Verify(ctx, session.NewPrograms())
	if err != nil || report.Difference == nil {
		t.Fatalf("verify found %+v, %v", report, err)
	}
	for _, want := range []string{"spent $-0.36 in 1 calls", "its log says $0.12 in 1 calls", "takes $0.6 back from ask 1 of slow in round 1, which had been charged $0.12", "dialai store rebuild repairs it"} {
		if !strings.Contains(report.Difference.Error(), want) {
			t.Errorf("verify says %q, without %q", report.Difference.Error(), want)
		}
	}
	if report, err = s.Rebuild(ctx, session.NewPrograms(), store.RebuildOptions{}); err != nil || report.Difference != nil {
		t.Fatalf("rebuilding: %+v, %v", report, err)
	}
	if report, err = s.Verify(ctx, session.NewPrograms()); err != nil || report.Difference != nil {
		t.Errorf("rebuilt, verify found %+v, %v", report.Difference, err)
	}
}
