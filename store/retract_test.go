package store_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestRetractedIsVerified: the tables after a ruling was taken back are what the log says,
// and rebuilt they are the same.
func TestRetractedIsVerified(t *testing.T) {
	ctx := context.Background()
	s := openSQLite(t, filepath.Join(t.TempDir(), "dialai.db"))
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
	var rounds []string
	for range 3 {
		if _, err := r.Step(ctx, one.ID); err != nil {
			t.Fatal(err)
		}
		now, err := r.Session(ctx, one.ID)
		if err != nil {
			t.Fatal(err)
		}
		rounds = append(rounds, now.Key().ID())
		if _, err := r.Decide(ctx, runner.Ruling{SessionID: one.ID, RoundID: now.Key().ID(), SpecialistID: "h", TransitionName: "again"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, round := range []string{rounds[1], rounds[2]} {
		if _, err := r.Retract(ctx, runner.Retracting{SessionID: one.ID, RoundID: round, SpecialistID: "h", Note: "no"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		report, err := s.Verify(ctx, session.NewPrograms())
		if err != nil || report.Difference != nil {
			t.Fatalf("Verify = %v (%v)", report.Difference, err)
		}
		book, err := s.Book(ctx, "m")
		if err != nil || book.Records("m")[0].TotalComparisons != 1 {
			t.Fatalf("the book is %+v (%v)", book.Records("m"), err)
		}
		if list, err := s.Exemplars(ctx, "m", "open", 0); err != nil || len(list) != 1 {
			t.Fatalf("there are %d exemplars (%v)", len(list), err)
		}
		if report, err = s.Rebuild(ctx, session.NewPrograms(), store.RebuildOptions{}); err != nil || report.Difference != nil {
			t.Fatalf("Rebuild = %v (%v)", report.Difference, err)
		}
	}
}
