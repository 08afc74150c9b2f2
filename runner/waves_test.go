package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/explain"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/report"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store"
)

// A jury is a machine in mode sequential under bayes whose state open decides yes
// or no again and again, with simulated voters: what is right is drawn for each
// round, and each voter is right with a probability of its own.
type jury struct {
	*bench
	rng   *rand.Rand
	s     *session.Session
	truth string
	said  map[string]string // the last reason by code, why a human was asked

	asked, alone, wrong int // rounds that a human decided, and that none did
}

const juryStates = `"open":{"transitions":{"yes":"open","no":"open"}},"done":{}`

// A juror is right with probability p, and costs so much.
type juror struct {
	id   string
	p    float64
	cost string // dollars; "" for nothing
}

// jury starts a session. solicit is further members of solicit.
func (b *bench) jury(solicit, arbiter string, top string, jurors ...juror) *jury {
	b.Helper()
	return b.juryOf(fn, solicit, arbiter, top, jurors...)
}

// juryOf is jury with voters of another kind.
func (b *bench) juryOf(kind func(id string, rest ...string) string, solicit, arbiter string, top string, jurors ...juror) *jury {
	b.Helper()
	j := &jury{bench: b, rng: rand.New(rand.NewPCG(seed, 11)), said: map[string]string{}}
	b.Logf("seed %d", seed)
	var who []string
	for _, v := range jurors {
		rest := ""
		if v.cost != "" {
			rest = estimated(v.cost)
		}
		who = append(who, kind(v.id, rest))
		b.cast.play(v.id, j.voter(v.p, uint64(len(who))))
	}
	if top != "" {
		top = "," + top
	}
	m := b.machine(def{states: juryStates, who: append(who, human("human"), arbiter), top: `"solicit":{"mode":"sequential"` + solicit + `}` + top})
	j.s = b.start(m)
	return j
}

// voter is right with probability p; its draws are its own, since services answer
// at the same time.
func (j *jury) voter(p float64, stream uint64) part {
	rng := rand.New(rand.NewPCG(seed, stream))
	return func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
		return saying(j.draw(rng, p))(ctx, q)
	}
}

func (j *jury) answer(p float64) string { return j.draw(j.rng, p) }

func (j *jury) draw(rng *rand.Rand, p float64) string {
	if rng.Float64() < p {
		return j.truth
	}
	return map[string]string{"yes": "no", "no": "yes"}[j.truth]
}

// rounds goes through so many rounds; a human decides where the engine does not.
func (j *jury) rounds(n int) {
	j.Helper()
	for range n {
		j.truth = []string{"yes", "no"}[j.rng.IntN(2)]
		switch tick := j.step(j.s); tick.Status {
		case runner.TickAdvanced:
			if j.alone++; tick.Transition.Name != j.truth {
				j.wrong++
			}
		case runner.TickHuman:
			j.asked++
			j.said[tick.Code] = tick.Reasoning()
			j.force(j.s, j.truth)
		default:
			j.Fatalf("a step came to %s: %s", tick.Status, tick.Reasoning())
		}
	}
	j.forget()
}

// A heardRound is what the log says of how a round was asked.
type heardRound struct {
	Waves []session.Wave
	Asked []string
	Judge session.JudgedBy
	Code  string
	J     trust.Judgement
	human bool
}

// story returns the rounds of the log, the oldest first.
func (j *jury) story() (rounds []heardRound) {
	j.Helper()
	rounds = j.storyOf(j.s)
	return rounds[:len(rounds)-1] // the last is only opened
}

func (b *bench) storyOf(s *session.Session) (rounds []heardRound) {
	b.Helper()
	for _, r := range b.raw(s) {
		var v struct {
			Asks        []struct{ SpecialistID string }
			Wave        *session.Wave
			Evidence    session.JudgedBy
			Explanation trust.Judgement
			Code        string
			IsHuman     bool
		}
		b.ok(json.Unmarshal(r.Data, &v))
		if r.Kind == session.KindRoundOpened {
			rounds = append(rounds, heardRound{})
			continue
		}
		if len(rounds) == 0 {
			continue
		}
		last := &rounds[len(rounds)-1]
		switch r.Kind {
		case session.KindAsked:
			for _, a := range v.Asks {
				last.Asked = append(last.Asked, a.SpecialistID)
			}
			if v.Wave != nil {
				last.Waves = append(last.Waves, *v.Wave)
			}
		case session.KindJudged:
			last.Judge, last.J, last.Code = v.Evidence, v.Explanation, v.Code
		case session.KindExecuted:
			last.human = v.IsHuman
		}
	}
	return rounds
}

var court = []juror{{"rule", .6, ""}, {"dear", .97, "3"}, {"weak", .7, "0.1"}, {"good", .92, "0.1"}, {"fair", .85, "0.1"}}

// TestWavesByInformation has humans decide until a threshold means something, all
// being asked at once, and then asks in waves: who is free first, then who tells
// most for its money, nobody twice, and nobody who costs more than a human.
func TestWavesByInformation(t *testing.T) {
	j := newBench(t, seeded(store.NewMemory())).jury(`,"wave":"auto"`, arb("bayes", threshold("0.9")), "", court...)
	j.rounds(400)
	if j.asked < 20 || j.asked > 200 || j.wrong > 40 {
		t.Errorf("a human was asked %d times, %d of %d decisions without were wrong", j.asked, j.wrong, j.alone)
	}
	stops, saved := map[trust.Stop]int{}, 0
	for i, r := range j.story() {
		if slices.Sort(r.Asked); len(slices.Compact(slices.Clone(r.Asked))) != len(r.Asked) {
			t.Fatalf("round %d asked %v", i+1, r.Asked)
		}
		if len(r.Waves) == 0 {
			t.Fatalf("round %d does not say how it was asked", i+1)
		}
		if first := r.Waves[0]; first.Everyone != "" {
			if first.Everyone != runner.WhileCalibrating || len(first.Specialists) != len(court) || first.Tau != 0 || r.Judge.Partial || r.Judge.Stop != "" || i > 60 {
				t.Fatalf("round %d: %+v", i+1, r)
			}
			continue
		}
		stops[r.Judge.Stop]++
		saved += len(court) - len(r.Asked)
		if r.Judge.Partial != (len(r.Asked) < len(court)) || r.Judge.Partial != (r.Judge.Stop != "") || r.J.Stop != r.Judge.Stop {
			t.Fatalf("round %d asked %v, but says %+v", i+1, r.Asked, r.Judge)
		}
		checkOrder(t, i, r)
	}
	if why := j.said["below_threshold"]; !strings.HasSuffix(why, "and asking on would cost more than a human") {
		t.Errorf("the last reason is %s", why)
	}
	if stops[trust.StopDecided] < 200 || stops[trust.StopTooExpensive] < 5 || saved < 400 {
		t.Errorf("rounds stopped %v, %d asks were saved", stops, saved)
	}
	for i, o := range j.outcomes() {
		if o.Partial != (i >= 20) {
			t.Errorf("outcome %d: partial is %t", i+1, o.Partial)
		}
	}
	j.reproduce(j.s)
	for _, round := range []string{"1", "30", "200", "390"} { // some before, most after anything was established
		e, err := explain.Round(j.ctx, j.r, j.s.ID, round)
		j.ok(err)
		if e.Changes == nil || !e.Changes.Reproduced {
			t.Errorf("round %s is not decided again as it was: %+v", round, e.Changes)
		}
	}
}

// checkOrder fails the test unless the waves of a round ask the free first, and
// then by information for cost.
func checkOrder(t *testing.T, i int, r heardRound) {
	t.Helper()
	cost := map[string]float64{"dear": 3, "weak": .1, "good": .1, "fair": .1}
	for n, w := range r.Waves {
		if n == 0 && w.Specialists[0] != "rule" || w.Tau != 900_000_000 {
			t.Fatalf("round %d begins with %+v", i+1, w)
		}
		first := -1 // who costs anything; those after others also count with whom they erred
		for k, id := range w.Specialists {
			switch {
			case cost[id] == 0 && first >= 0:
				t.Fatalf("round %d asks %s too late: %v", i+1, id, w.Specialists)
			case cost[id] > 0 && first < 0:
				first = k
			case first == 0 && w.Information[k].Float()/cost[id] > w.Information[first].Float()/cost[w.Specialists[first]]:
				t.Fatalf("round %d asks %s before %s: %v", i+1, w.Specialists[first], id, w.Information)
			}
		}
	}
}

// TestWaveOfSize has a number cap the waves that the ledger asks.
func TestWaveOfSize(t *testing.T) {
	largest := map[string]int{}
	for _, wave := range []string{`1`, `2`, `"auto"`} {
		j := newBench(t, seeded(store.NewMemory())).jury(`,"wave":`+wave, arb("bayes", threshold("0.95")), "", juror{"a", .8, "0.1"}, juror{"b", .8, "0.1"}, juror{"c", .8, "0.1"}, juror{"d", .8, "0.1"})
		j.rounds(150)
		for _, r := range j.story() {
			for _, w := range r.Waves {
				if w.Everyone == "" {
					largest[wave] = max(largest[wave], len(w.Specialists))
				}
			}
		}
	}
	if largest[`1`] != 1 || largest[`2`] != 2 || largest[`"auto"`] < 3 {
		t.Errorf("the largest waves were %v", largest)
	}
}

// TestCannotReach asks a human as soon as no answer could reach the threshold.
func TestCannotReach(t *testing.T) {
	j := newBench(t, seeded(store.NewMemory())).jury(`,"wave":1`, arb("bayes", threshold("0.98")), "",
		juror{"free", .6, ""}, juror{"a", .85, "0.1"}, juror{"b", .85, "0.1"}, juror{"c", .85, "0.1"})
	j.rounds(150)
	found := 0
	for _, r := range j.story() {
		if r.Code != "cannot_reach" {
			continue
		}
		if found++; !r.human || len(r.Asked) == 4 || len(r.Asked) == 0 || r.Judge.Stop != trust.StopCannotReach || !r.Judge.Partial {
			t.Errorf("a round that cannot reach is %+v", r)
		}
	}
	if found < 5 {
		t.Errorf("only %d rounds were given up", found)
	}
	j.reproduce(j.s)
	if why := j.said["cannot_reach"]; !strings.HasSuffix(why, "and no answer still out can reach 0.98, human input required") {
		t.Errorf("the reason is %s", why)
	}
}

// TestMoneyGone asks who is free when the budget is spent, then a human; and a
// human at once if nobody is free.
func TestMoneyGone(t *testing.T) {
	for _, free := range []bool{true, false} {
		jurors := []juror{{"a", .9, "1"}, {"b", .9, "1"}}
		if free {
			jurors = append(jurors, juror{"rule", .6, ""})
		}
		j := newBench(t, seeded(store.NewMemory())).jury(`,"wave":"auto","humanCost":10`, arb("bayes", threshold("0.9")), budget(`"hard_limit_usd":40`), jurors...)
		for _, v := range jurors[:2] {
			j.cast.play(v.id, j.paid(v.p))
		}
		j.rounds(60)
		rounds := j.story()
		last := rounds[len(rounds)-1]
		if spent := j.now(j.s).Spent().Money; spent != 40*dollar || !last.human {
			t.Fatalf("free %t: $%s were spent, the last round is %+v", free, spent, last)
		}
		j.cast.who()
		tick := j.stepTo(j.s, runner.TickHuman)
		if who := fmt.Sprint(j.cast.who()); free && (who != "[rule]" || tick.Code == "budget_usd") || !free && (who != "[]" || tick.Code != "budget_usd") {
			t.Errorf("free %t: asked were %s, a human is asked because of %s: %s", free, who, tick.Code, tick.Reasoning())
		}
	}
}

// paid is a voter that says it cost a dollar.
func (j *jury) paid(p float64) part {
	return func(context.Context, specialist.Question) (specialist.Answer, error) {
		return specialist.Answer{TransitionName: j.answer(p), Usage: cost(dollar)}, nil
	}
}

// saving returns what asking in waves saves in the state of the jury.
func (j *jury) saving() runner.Saving {
	j.Helper()
	d, err := j.r.Deciding(j.ctx, j.s.Program)
	j.ok(err)
	return d.States[j.s.State.Index].Saving()
}

// TestNoSaving recognises a panel that asking in waves saves nothing on: four
// copies of one weak voter, and puts its rounds to everyone at once. A panel that
// it does save on is left alone.
func TestNoSaving(t *testing.T) {
	for _, weak := range []bool{true, false} {
		p := .9
		if weak {
			p = .62
		}
		jurors := []juror{{"a", p, "0.1"}, {"b", p, "0.1"}, {"c", p, "0.1"}, {"d", p, "0.1"}}
		j := newBench(t, seeded(store.NewMemory())).jury(`,"wave":"auto","humanCost":5`, arb("bayes", threshold("0.9")), "", jurors...)
		if weak {
			drawn, said := "", ""
			for _, v := range jurors {
				j.cast.play(v.id, func(ctx context.Context, q specialist.Question) (specialist.Answer, error) {
					if id := q.Key.ID(); id != drawn {
						drawn, said = id, j.answer(p)
					}
					return saying(said)(ctx, q)
				})
			}
		}
		j.rounds(49) // and no look yet
		before := j.saving()
		j.rounds(200)
		after := j.saving()
		if before.Outcomes != 0 || before.Note != "" || after.Outcomes%trust.SavingsEvery != 0 || after.Outcomes == 0 && weak {
			t.Errorf("weak %t: first %+v, then %+v", weak, before, after)
		}
		rounds := j.story()
		last := rounds[len(rounds)-1]
		everyone := len(last.Waves) == 1 && last.Waves[0].Everyone == runner.NoSaving && len(last.Asked) == 4
		if everyone != weak || after.Everyone != weak || weak != (after.Note == runner.NoSavingNote) || after.Outcomes > 0 && after.Worth() == weak {
			t.Errorf("weak %t: %+v; the last round is %+v", weak, after, last.Waves)
		}
		m, err := report.MetricsOf(j.ctx, j.r, j.s.Machine().Name(), "")
		j.ok(err)
		said := slices.ContainsFunc(m.Signals, func(s report.Signal) bool {
			return s.Code == "savings.none" && strings.HasPrefix(s.Message, "state open: no saving: panel weak or correlated: everyone is asked at once (replayed on ")
		})
		if v := m.States[0].Savings; said != weak || (v != nil) != (after.Rounds > 0) || v != nil && *v != after {
			t.Errorf("weak %t: metrics show %+v and %+v", weak, v, m.Signals)
		}
		j.reproduce(j.s)
	}
}

// TestOneOption asks one of many where there is nothing to choose.
func TestOneOption(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"a", "b", "c"} {
		b.cast.say(id, "on")
	}
	m := b.machine(def{states: `"open":{"transitions":{"on":"done"}},"done":{}`, top: `"solicit":{"mode":"sequential","wave":"auto"}`,
		who: []string{fn("a", estimated("2")), fn("b", estimated("1")), fn("c", estimated("1")), arb("bayes")}})
	b.stepTo(b.start(m), runner.TickAdvanced)
	if who := fmt.Sprint(b.cast.who()); who != "[b]" {
		t.Errorf("asked were %s", who)
	}
	b.cast.play("b", failing(context.DeadlineExceeded))
	b.stepTo(b.start(m), runner.TickAdvanced)
	if who := fmt.Sprint(b.cast.who()); who != "[b c a]" { // one of two is no majority
		t.Errorf("when b fails, asked are %s", who)
	}
}

// TestExploration draws the order in about a twentieth of the rounds, the same
// after a restart.
func TestExploration(t *testing.T) {
	j := newBench(t, seeded(store.NewMemory())).jury(`,"wave":1`, arb("bayes", threshold("0.9")), "", court...)
	j.rounds(700)
	drawn, total := 0, 0
	for _, r := range j.story() {
		if len(r.Waves) > 0 && r.Waves[0].Everyone == "" {
			if total++; r.Waves[0].Explore {
				drawn++
			}
		}
	}
	share, near := float64(drawn)/float64(total), 4*math.Sqrt(.05*.95/float64(total)) // standard errors
	if total < 400 || math.Abs(share-.05) > near {
		t.Errorf("the order of %d of %d rounds was drawn", drawn, total)
	}
	j.reproduce(j.s)
}

// TestAutoWaveByMargin asks as few at once as could decide by weight.
func TestAutoWaveByMargin(t *testing.T) {
	b := newBench(t)
	m := b.machine(def{who: []string{fn("fair", estimated("3")), fn("twin", estimated("2")), fn("good", estimated("1")), fn("zero"), human("human"), half},
		top: `"solicit":{"mode":"sequential","wave":"auto"}`})
	b.train(m, "good", 9, 9)
	b.train(m, "twin", 9, 9)
	b.train(m, "fair", 4, 5)
	b.said(map[string]string{"zero": "park", "good": "again", "twin": "again", "fair": "finish"})
	s := b.start(m)
	b.cast.who()
	b.stepTo(s, runner.TickAdvanced)
	if who := fmt.Sprint(b.cast.who()); who != "[zero good twin]" { // without fair, who cannot turn that
		t.Errorf("asked were %s", who)
	}
}

// TestHonestScores says of rounds that were put to everyone what asking in waves
// would have come to, at each threshold that the promise is tested at.
func TestHonestScores(t *testing.T) {
	j := newBench(t, seeded(store.NewMemory())).jury(`,"wave":1`, arb("bayes"), `"risk":{"maxError":0.2,"confidence":0.9}`,
		juror{"a", .85, "0.1"}, juror{"b", .85, "0.1"}, juror{"c", .85, "0.1"}, juror{"d", .85, "0.1"}, juror{"e", .85, "0.1"})
	j.rounds(200)
	stops, other := 0, 0
	for _, o := range j.outcomes() {
		for _, s := range o.Stops {
			if stops++; s.Pick != o.Pick {
				other++
			}
			if o.Promise == nil || (s.P >= s.Tau) == (o.P >= s.Tau) && s.Pick == o.Pick {
				t.Errorf("an outcome of %s (%s) stops at %+v: that is the same", o.Pick, o.P, s)
			}
		}
	}
	if stops == 0 || other == 0 || j.alone < 50 || float64(j.wrong) > .2*float64(j.alone) {
		t.Errorf("%d stops, %d with another pick, %d of %d decisions were wrong", stops, other, j.wrong, j.alone)
	}
}
