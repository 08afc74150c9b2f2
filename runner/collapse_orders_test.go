package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
)

// TestForgedCertificate: a championship that somebody wrote into the store, with a
// certificate that the engine never signed, ends before it decides anything.
func TestForgedCertificate(t *testing.T) {
	d := promoted(t, .99, .95, .9)
	forged := d.collapse()
	certificate := *forged.Certificate
	certificate.SpecialistID = "p1"
	forged.Certificate = &certificate
	roster, err := d.store.Roster(d.ctx, "desk")
	d.ok(err)
	d.ok(d.store.Register(d.ctx, "desk", roster.Sequence, session.RosterEvent{Kind: session.KindStage, State: "open", ID: "p1", Stage: &forged, By: runner.Engine}))
	d.run(1)
	if got := d.stages(); !strings.HasSuffix(got, "demoted(bad_signature)") {
		t.Errorf("the stages were %s", got)
	}
}

// TestPrune: where the file says so, who costs money and tells next to nothing is
// asked no more once that is known; without that, it is.
func TestPrune(t *testing.T) {
	for _, prune := range []bool{true, false} {
		top := strings.Replace(collapsing, `"target":0.8`, fmt.Sprintf(`"target":0.99,"prune":%t`, prune), 1)
		top = strings.Replace(top, `"rate":0.1`, `"rate":1`, 1)
		d := newDeskUnder(newBench(t, seeded(store.NewMemory())), top, .93, .5, .9)
		d.cast.say("p1", "left") // whatever is right
		var told []string
		for i := 0; i < 20 && len(told) == 0; i++ {
			d.run(50)
			list, err := report.CollapseOf(d.ctx, d.r, "desk", "open")
			d.ok(err)
			told = list[0].Pruned
		}
		if stage := d.collapse().StageOf(); stage != trust.Consensus || fmt.Sprint(told) != "[p1]" {
			t.Fatalf("the state is %s, and %v tell nothing", stage, told)
		}
		d.truth = "left"
		d.truths[d.now(d.s).Key().ID()] = d.truth
		if asked := fmt.Sprint(d.step(d.s).Asked()); strings.Contains(asked, "p1") == prune || !strings.Contains(asked, "p0") {
			t.Errorf("prune %t: asked were %s", prune, asked)
		}
	}
}

// TestHeldAsksEveryone: a state that was sent back to humans asks everyone at once,
// as while calibrating, though its tau stands.
func TestHeldAsksEveryone(t *testing.T) {
	d := newDeskUnder(newBench(t, seeded(store.NewMemory())), collapsing+`,"solicit":{"mode":"sequential","wave":"auto"}`, .9, .9, .9)
	for i := 0; i < 200 && d.collapse().StageOf() == trust.Calibrating; i++ {
		d.run(1)
	}
	if d.collapse().StageOf() != trust.Consensus {
		t.Fatalf("the stages were %s", d.stages())
	}
	d.ok(d.r.Demote(d.ctx, runner.Order{MachineName: "desk", State: "open", SpecialistID: "human"}))
	d.run(1)
	wave := ""
	for _, r := range d.raw(d.s) {
		if r.Kind == session.KindAsked {
			wave = string(r.Data)
		}
	}
	if !strings.Contains(wave, `"everyone":"calibrating"`) || d.panel != 3 {
		t.Errorf("of 3 were asked %d: %s", d.panel, wave)
	}
}

// A faster rival writes every change of a stage just before this process does.
type fasterRival struct {
	session.Store
	times int
}

// Register implements session.RosterStore.
func (f *fasterRival) Register(ctx context.Context, machine string, before int64, e session.RosterEvent) error {
	if e.Kind == session.KindStage {
		f.times++
		if err := f.Store.Register(ctx, machine, before, e); err != nil {
			return err
		}
	}
	return f.Store.Register(ctx, machine, before, e)
}

// TestStageIsChangedOnce changes stages although another process always does so first: a
// step goes on with what that one wrote, and the way is that of a process by itself.
func TestStageIsChangedOnce(t *testing.T) {
	const rounds = 120
	alone := newDesk(newBench(t, seeded(store.NewMemory())), .98, .9, .85)
	alone.run(rounds)
	rival := &fasterRival{Store: store.NewMemory()}
	d := newDesk(newBench(t, seeded(rival)), .98, .9, .85)
	d.run(rounds)
	if got, want := d.stages(), alone.stages(); got != want || rival.times == 0 || !strings.Contains(want, "consensus(") {
		t.Errorf("after %d lost races the stages were %s, want %s", rival.times, got, want)
	}
}
