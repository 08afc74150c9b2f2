package store_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestForksAreVerified: a file with forks, and sessions that were moved, is what its logs say, also of one that
// goes on, and rebuilt it is the same.
func TestForksAreVerified(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "dialai.db")
	s := openSQLite(t, path)
	r, err := runner.New(runner.Config{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"open","goalState":"done","states":{"open":{"transitions":{"finish":"done","again":"open"}},"done":{}},
	  "specialists":[{"role":"proposer","specialistId":"h","isHuman":true},{"role":"proposer","specialistId":"p","strategyFnName":"firstAvailable"},{"role":"proposer","specialistId":"q","strategyFnName":"lastAvailable"},
	  {"role":"arbiter","specialistId":"arbiter","strategyFnName":"alignmentMargin"}],"consensusThreshold":0.9}`), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	one, err := r.Start(ctx, m, runner.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Step(ctx, one.ID); err != nil {
		t.Fatal(err)
	}
	fork, err := r.Fork(ctx, one.ID, runner.Forking{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decide(ctx, runner.Ruling{SessionID: fork.ID, RoundID: fork.Key().ID(), SpecialistID: "h", TransitionName: "again"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Step(ctx, fork.ID); err != nil {
		t.Fatal(err)
	}
	next, err := machine.Parse("m.json", []byte(strings.Replace(string(m.JSON()), `"finish":`, `"stay":"open","finish":`, 1)), runner.Checks())
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := r.Move(ctx, fork.ID, next, runner.Moving{Actor: session.LocalActor("op"), Note: "more choice"}); err != nil || moved.Machine().Digest() != next.Digest() {
		t.Fatal(err)
	}
	if _, err := r.Decide(ctx, runner.Ruling{SessionID: fork.ID, RoundID: runner.CurrentRound, SpecialistID: "h", TransitionName: "stay"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		report, err := s.Verify(ctx, session.NewPrograms())
		if err != nil || report.Difference != nil {
			t.Fatalf("Verify = %v (%v)", report.Difference, err)
		}
		if report, err = s.Rebuild(ctx, session.NewPrograms(), store.RebuildOptions{}); err != nil || report.Difference != nil {
			t.Fatalf("Rebuild = %v (%v)", report.Difference, err)
		}
	}
	other := openSQLite(t, path) // which has folded nothing
	now, err := other.Load(ctx, session.NewPrograms(), fork.ID)
	if err != nil || now.Executed != 2 || now.Machine().Digest() != next.Digest() || now.Options().ForkedFrom == nil {
		t.Fatalf("read back, the fork is %+v (%v)", now.View(), err)
	}
}
