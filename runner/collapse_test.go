package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A respondents of clerks: a state in which every round has a right answer, a panel whose
// members find it with probabilities of their own, and a human who knows it.
type respondents struct {
	*bench
	rng    *rand.Rand
	truth  string
	truths map[string]string // by round id
	p      []float64         // of the panel
	s      *session.Session

	asked, alone, wrong int
	panel               int // asks
}

const collapsing = `"risk":{"maxError":0.1,"confidence":0.8},"collapse":{"target":0.8,"coolDown":10},"audit":{"rate":0.1}`

func newDesk(b *bench, p ...float64) *respondents { return newDeskUnder(b, collapsing, p...) }

// newDeskUnder is newDesk with other members of the machine.
func newDeskUnder(b *bench, top string, p ...float64) *respondents {
	d := &respondents{bench: b, rng: rand.New(rand.NewPCG(seed, 7)), truths: map[string]string{}, p: p}
	who := []string{human("human"), arb("bayes")}
	for i := range p {
		id := fmt.Sprint("p", i)
		who = append(who, fn(id, fmt.Sprintf(`"estimatedCostUSD":%g`, []float64{0.01, 0.02, 0}[min(i, 2)])))
		b.cast.play(id, d.voter(i))
	}
	m := b.machine(def{who: who, top: top, states: `"open":{"prompt":"Which?","transitions":{"left":"open","right":"open","finish":"done"}},"done":{}`})
	d.s = b.start(m)
	return d
}

func (d *respondents) voter(i int) part {
	return func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		d.panel++
		say := d.truth
		if d.rng.Float64() >= d.p[i] {
			say = map[string]string{"left": "right", "right": "left"}[say]
		}
		return saying(say)(ctx, q)
	}
}

// known is a store whose secret is known, so that draws are those of the seed.
type known struct{ session.Store }

func (known) Secret(context.Context) ([]byte, error) { return make([]byte, 32), nil }

// seeded configures a runner whose draws are the same each time.
func seeded(s session.Store) func(*runner.Config) {
	return func(c *runner.Config) {
		c.Store = known{s}
		c.NewID = func() specialist.SessionID { return specialist.SessionID{15: 1} }
	}
}

// run plays rounds; the human rules blind, and does all audits.
func (d *respondents) run(rounds int) {
	d.Helper()
	d.asked, d.alone, d.wrong, d.panel = 0, 0, 0, 0
	for range rounds {
		d.truth = []string{"left", "right"}[d.rng.IntN(2)]
		d.truths[d.now(d.s).Key().ID()] = d.truth
		switch tick := d.step(d.s); tick.Status {
		case runner.TickHuman:
			d.asked++
			a := d.rule(runner.Ruling{SessionID: d.s.ID, RoundID: runner.CurrentRound, SpecialistID: "human", TransitionName: d.truth, Blind: true})
			if !a.Executed {
				d.Fatal(a.GuardReason)
			}
		case runner.TickAdvanced:
			if d.alone++; tick.Transition.Name != d.truth {
				d.wrong++
			}
		default:
			d.Fatalf("the step came to %s: %s", tick.Status, tick.Reasoning())
		}
		for _, v := range d.now(d.s).Reviews() {
			_, err := d.r.Review(d.ctx, runner.Reviewing{SessionID: d.s.ID, RoundID: v.Key.ID(), SpecialistID: "human", TransitionName: d.truths[v.Key.ID()], Blind: true})
			d.ok(err)
		}
	}
}

func (d *respondents) collapse() session.Collapse {
	d.Helper()
	roster, err := d.store.Roster(d.ctx, "desk")
	d.ok(err)
	return roster.Collapse["open"]
}

// stages returns the course of the state, in short.
func (d *respondents) stages() string {
	d.Helper()
	var list []string
	for rec, err := range d.store.RosterRecords(d.ctx, "desk", 0) {
		d.ok(err)
		events, err := session.DecodeRosterEvents(rec.Events)
		d.ok(err)
		for _, e := range events {
			if e.Kind == session.KindStage {
				list = append(list, fmt.Sprintf("%s(%s)", e.Stage.Stage, strings.TrimSpace(e.ID+" "+e.Reason)))
			}
		}
	}
	return strings.Join(list, " ")
}

// TestCollapse goes the whole way: humans, consensus, a champion with audits,
// drift, demotion, the panel and humans again.
func TestCollapse(t *testing.T) {
	d := newDesk(newBench(t, seeded(store.NewMemory())), .98, .9, .85)
	t.Logf("seed %d", seed)
	d.run(30)
	if d.asked != 30 || d.collapse().StageOf() != trust.Calibrating {
		t.Fatalf("at first %d of 30 rounds went to the human, in stage %s", d.asked, d.collapse().StageOf())
	}
	d.run(400)
	t.Logf("asked %d, alone %d, wrong %d, stages %s", d.asked, d.alone, d.wrong, d.stages())
	if got := d.stages(); !strings.HasPrefix(got, "consensus(tau_established)") || !strings.Contains(got, "champion(p0 certified)") || d.collapse().StageOf() != trust.Championed {
		t.Fatalf("the stages were %s", got)
	}
	d.run(200)
	if d.asked > 40 || float64(d.wrong) > .06*float64(d.alone) {
		t.Errorf("under the champion the human was asked %d times of 200, %d of %d decisions were wrong", d.asked, d.wrong, d.alone)
	}
	if d.panel > 3*200 {
		t.Errorf("the panel was asked %d times", d.panel)
	}
	d.p[0] = .2 // drift
	asked, alone, wrong := 0, 0, 0
	for i := 0; i < 20 && !strings.Contains(d.stages(), "demoted("); i++ {
		d.run(25)
		asked, alone, wrong = asked+d.asked, alone+d.alone, wrong+d.wrong
	}
	t.Logf("after the drift: asked %d, alone %d, wrong %d, stages %s", asked, alone, wrong, d.stages())
	if !strings.Contains(d.stages(), "demoted(") || wrong > 60 {
		t.Errorf("the drift was noticed after %d wrong decisions: %s", wrong, d.stages())
	}
	d.run(10)
	if d.panel < 3*10 || d.asked < 3 {
		t.Errorf("after the demotion %d of the panel and %d times the human were asked in 10 rounds", d.panel, d.asked)
	}
}

// TestCollapseDurable goes the way to a champion, and back, on a real store that
// is closed and opened by another runner again and again: the stages, the evidence
// and the reviews survive.
func TestCollapseDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "collapse.db")
	open := func() *store.SQLite {
		s, err := store.OpenSQLite(context.Background(), path, store.SQLiteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	file := open()
	t.Cleanup(func() { file.Close() })
	b := newBench(t, seeded(file))
	d := newDesk(b, .98, .9, .85)
	asked, alone, wrong := 0, 0, 0
	restart := func() {
		b.ok(b.r.Close())
		b.ok(file.Close())
		file = open()
		b.r, b.store = b.runner(seeded(file)), file
	}
	for range 16 {
		d.run(20)
		asked, alone, wrong = asked+d.asked, alone+d.alone, wrong+d.wrong
		restart()
	}
	v := b.metrics("").States[0]
	if v.HumanDecisions != asked || v.AIDecisions != alone || v.Audits < 10 || v.ErrorBound.Float() < float64(wrong)/float64(alone) || v.Error.Float() > float64(wrong)/float64(alone)+.1 {
		t.Errorf("metrics say %+v; in truth %d were asked, and %d of %d decisions alone were wrong", v, asked, wrong, alone)
	}
	t.Logf("asked %d, alone %d, wrong %d, stages %s", asked, alone, wrong, d.stages())
	if d.collapse().StageOf() != trust.Championed || asked < 25 || asked > 160 || float64(wrong) > .1*float64(alone) {
		t.Errorf("after restarts the human was asked %d times, %d of %d decisions were wrong, the stages were %s", asked, wrong, alone, d.stages())
	}
	d.p[0], d.p[1] = .2, .2
	asked = 0
	for i := 0; i < 20 && !strings.Contains(d.stages(), "demoted("); i++ {
		d.run(25)
		asked += d.asked
	}
	if !strings.Contains(d.stages(), "demoted(") || asked < 5 {
		t.Errorf("the drift was not noticed: %s; the human was asked %d times", d.stages(), asked)
	}
	restart()
	if d.run(20); d.panel < 3*20 || d.asked < 10 {
		t.Errorf("after the demotion %d of the panel and %d times the human were asked in 20 rounds", d.panel, d.asked)
	}
	report, err := file.Verify(b.ctx, session.NewPrograms())
	if err != nil || report.Difference != nil {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

// promoted brings a desk to a champion.
func promoted(t *testing.T, p ...float64) *respondents {
	t.Helper()
	d := newDesk(newBench(t, seeded(store.NewMemory())), p...)
	for range 20 {
		if d.run(25); d.collapse().StageOf() == trust.Championed {
			return d
		}
	}
	t.Fatalf("nobody became champion: %s", d.stages())
	return nil
}

// TestChampionFails: a round in which the champion gives no answer goes to the
// panel; three in a row end its championship.
func TestChampionFails(t *testing.T) {
	d := promoted(t, .99, .95, .9)
	d.run(1)
	d.cast.play("p0", failing(errors.New("down")))
	d.run(1)
	if c := d.collapse(); c.Failures != 1 || c.StageOf() != trust.Championed {
		t.Errorf("after one failure: %+v", c)
	}
	d.cast.play("p0", d.voter(0))
	d.run(1)
	if c := d.collapse(); c.Failures != 0 {
		t.Errorf("after an answer there are %d failures", c.Failures)
	}
	d.cast.play("p0", failing(errors.New("down")))
	d.run(4)
	if got := d.stages(); !strings.HasSuffix(got, "demoted(failures)") {
		t.Errorf("the stages were %s", got)
	}
}

// TestChampionContested: what a trusted sentinel sees differently goes to the
// panel.
func TestChampionContested(t *testing.T) {
	d := promoted(t, .99, .95, .97)
	before := d.count(d.s, session.KindAsked)
	d.cast.say("p0", "left")
	d.cast.say("p2", "right")
	d.cast.say("p1", "right")
	d.truth = "right"
	d.truths[d.now(d.s).Key().ID()] = d.truth
	tick := d.step(d.s)
	if asked := fmt.Sprint(tick.Asked()); !strings.Contains(asked, "p1") || d.count(d.s, session.KindAsked) == before {
		t.Errorf("asked were %s; the step came to %s: %s", asked, tick.Status, tick.Reasoning())
	}
	if strings.Contains(tick.Reasoning(), "Champion") {
		t.Errorf("the champion decided alone: %s", tick.Reasoning())
	}
}

// TestOrders: humans, and nobody else, demote, freeze and promote.
func TestOrders(t *testing.T) {
	d := promoted(t, .99, .95, .9)
	o := runner.Order{MachineName: "desk", State: "open", SpecialistID: "human"}
	for _, who := range []string{"p0", "arb", "nobody", "", runner.Operator, runner.Engine} {
		bad := o
		bad.SpecialistID = machine.SpecialistID(who)
		_, err := d.r.Promote(d.ctx, bad, "p1")
		for _, err := range []error{err, d.r.Demote(d.ctx, bad), d.r.Freeze(d.ctx, bad, true)} {
			if !errors.Is(err, runner.ErrForbidden) {
				t.Errorf("%q was not refused: %v", who, err)
			}
		}
	}
	d.ok(d.r.Demote(d.ctx, o))
	if c := d.collapse(); c.StageOf() != trust.Demoted || c.By != "human" || c.Reason != "demoted_by_human" || c.Trials != 3 || c.Archived != c.Place || c.Place == 0 {
		t.Errorf("after the demotion: %+v", c)
	}
	d.ok(d.r.Freeze(d.ctx, o, true))
	d.run(120)
	if c := d.collapse(); c.StageOf() == trust.Championed || !c.Frozen {
		t.Errorf("frozen, the state came to %+v", c)
	}
	_, err := d.r.Promote(d.ctx, o, "p1")
	d.refused(err, runner.ErrIllegal, `nobody can be promoted in state "open": it is frozen; release it first`)
	d.ok(d.r.Freeze(d.ctx, o, false))
	_, err = d.r.Promote(d.ctx, o, "nobody")
	d.refused(err, session.ErrNotFound, "Specialist that may be asked not found: nobody")
	if d.collapse().StageOf() != trust.Consensus {
		t.Fatalf("the stages were %s", d.stages())
	}
	c, err := d.r.Promote(d.ctx, o, "p1")
	d.ok(err)
	if c.IssuedBy != "human" || c.SpecialistID != "p1" || d.collapse().Certificate.SpecialistID != "p1" {
		t.Errorf("the certificate is %+v", c)
	}
	d.ok(d.r.Demote(d.ctx, o))
	d.run(15)
	d.ok(d.r.Demote(d.ctx, o)) // from consensus: back to humans
	if d.collapse().StageOf() == trust.Calibrating {
		if d.run(5); d.asked != 5 {
			t.Errorf("sent back to humans, the engine decided %d of 5 rounds", d.alone)
		}
	}
	list, err := report.CollapseOf(d.ctx, d.r, "desk", "")
	if err != nil || len(list) != 1 || list[0].State != "open" || len(list[0].Candidates) == 0 {
		t.Errorf("the standing is %+v (%v)", list, err)
	}
}

// TestShadow: in a few of a champion's rounds somebody who is no longer asked is
// asked all the same; the answer decides nothing, and is compared if the round is
// audited.
func TestShadow(t *testing.T) {
	d := promoted(t, .99, .95, .9)
	d.cast.play("p1", func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		return saying("finish")(ctx, q)
	})
	before := len(d.lessons())
	for range 40 {
		d.run(25)
	}
	shadowed, decided := 0, 0
	shadow := false // in the present round
	for _, r := range d.raw(d.s) {
		switch {
		case r.Kind == session.KindRoundOpened:
			shadow = false
		case r.Kind == session.KindAsked && strings.Contains(string(r.Data), `"shadow":true`):
			shadowed++
			shadow = true
		case r.Kind == session.KindJudged && strings.Contains(string(r.Data), "Champion p0 decides alone"):
			decided++
			var v struct {
				Order  []int32
				Quorum struct{ Counted int }
			}
			d.ok(json.Unmarshal(r.Data, &v))
			if shadow && (len(v.Order) != 2 || v.Quorum.Counted != 2) {
				t.Errorf("beside the champion and its sentinel a shadow counts: %v, quorum of %d", v.Order, v.Quorum.Counted)
			}
		}
	}
	if shadowed < 4 || shadowed > 40 || decided < 700 { // 2 % of what the champion decides, within 4 standard errors
		t.Errorf("%d of %d rounds of the champion had a shadow", shadowed, decided)
	}
	compared, bare := 0, 0
	for _, l := range d.lessons()[before:] {
		if o := l.Outcome; o.Automatic && o.P == 0 && o.N == 0 {
			bare++
		}
		for _, p := range l.Outcome.Proposals {
			if p.Shadow && l.Outcome.Automatic {
				compared++
			}
			if p.Shadow && (p.SpecialistID != "p1" || p.Transition != "finish") {
				t.Errorf("a shadow is %+v", p)
			}
		}
	}
	if now := d.now(d.s); now.Status != session.Running {
		t.Errorf("a shadow's answer moved the session to %s", now.Status)
	}
	if bare < 20 { // P of a champion's rounds comes from fewer votes than a promise is tested on
		t.Errorf("%d audits of the champion state no probability", bare)
	}
	t.Logf("%d shadows in %d rounds, %d compared", shadowed, decided, compared)
}
