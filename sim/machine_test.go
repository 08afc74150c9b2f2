package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/runner"
)

// build makes processes, a machine, its services and humans from the seed, and
// starts the first session.
func (w *world) build() {
	rng := rand.New(rand.NewPCG(w.seed, 1))
	w.drawInquiries()
	g := &generator{w: w, rng: rng}
	w.text = g.machine()
	m, err := machine.Parse("machine.json", []byte(w.text), runner.Checks())
	if err != nil {
		w.t.Fatalf("seed %d makes a machine that does not load: %v\n%s", w.seed, err, w.text)
	}
	w.machine, w.other = m, w.another(m, runner.Checks())
	w.reader, err = runner.New(runner.Config{Store: w.base})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range 1 + rng.IntN(3) {
		p := &process{w: w, name: fmt.Sprintf("p%d", i+1)}
		w.procs = append(w.procs, p)
		p.start()
	}
	for range 1 + rng.IntN(2) {
		w.procs[0].run("starts", nil, func(ctx context.Context, _ *observed) error {
			_, err := w.procs[0].r.Start(ctx, w.machine, w.startOptions())
			return err
		})
		w.finish()
	}
}

// startOptions say how a session is started.
func (w *world) startOptions() runner.StartOptions {
	if w.cases == nil {
		return runner.StartOptions{Seed: 1, Actor: operator}
	}
	return runner.StartOptions{Seed: 1, Meta: []byte(startMeta), Actor: starts}
}

// quota is what the sessions of a run may use together.
func (w *world) quota(string) *spend.Quota {
	if w.draw(6, "quota") > 0 {
		return nil
	}
	calls := int64(w.quotaCalls())
	return &spend.Quota{Windows: []spend.Window{{Msec: 1 << 50, Calls: &calls}}}
}

func (w *world) quotaCalls() int { return 6 + w.draw(10, "quota calls") }

// A generator makes a machine.
type generator struct {
	w     *world
	rng   *rand.Rand
	first bool // the first proposal wins
}

func (g *generator) one(list ...string) string { return list[g.rng.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

func (g *generator) machine() string {
	irreversible := ""
	if g.chance(40) {
		irreversible = `,"irreversible":true`
	}
	states := `"open":{"prompt":"Which way?","transitions":{"again":"open","on":"next","finish":{"target":"done"` + irreversible + `}}},` +
		`"next":{"transitions":{"back":"open","on":"last","drop":"dropped"}},` +
		`"last":{"transitions":{"again":"last","back":"open","finish":{"target":"done"` + irreversible + `}}},` +
		`"dropped":{"final":true},"done":{}`
	who := []string{g.arbiter()}
	for i := range 1 + g.rng.IntN(4) {
		who = append(who, g.proposer(i+1))
	}
	g.service("r2", false) // who may be registered later
	humans := 1 + g.rng.IntN(3)
	cased := g.w.draw(2, "cases") == 0
	if cased {
		humans = 3 + g.w.draw(2, "humans of cases")
	}
	var ids []string
	for i := range humans {
		id := fmt.Sprintf("h%d", i+1)
		ids = append(ids, id)
		g.w.humans = append(g.w.humans, &human{w: g.w, id: id, saw: map[*observed]*sight{}})
		who = append(who, fmt.Sprintf(`{"role":"proposer","specialistId":%q,"isHuman":true}`, id))
	}
	rest := g.rest(humans)
	written := func(states, rest string) string {
		return fmt.Sprintf(`{"machineName":"sim","initialState":"open","goalState":"done","states":{%s},"specialists":[%s]%s}`, states, strings.Join(who, ","), rest)
	}
	if cased {
		c := g.drawCases(irreversible != "", ids)
		g.w.cases, states = c, c.written(g.w.mutation, false)
		g.w.mangled = written(c.written(g.w.mutation, true), rest+c.head(true))
		rest += c.head(false)
	}
	return written(states, rest)
}

// rest returns the other members of the machine.
func (g *generator) rest(humans int) string {
	mode := g.one("all", "all", "eager", "sequential")
	s := fmt.Sprintf(`,"solicit":{"mode":%q,"maxParallel":%d,"wave":%d}`, mode, 1+g.rng.IntN(3), 1+g.rng.IntN(2)) + g.quorum(mode)
	guards, budget := g.inquiries()
	if g.chance(50) {
		limit := exact.Money(1+g.rng.IntN(12)) * exact.Dollar / 5
		budget = append(budget, fmt.Sprintf(`"hard_limit_usd":%s`, limit))
		if g.w.mutation.is("hard limit is not asked") {
			budget = append(budget, `"mode":"observe"`)
		}
		g.w.limit = limit
	}
	if len(budget) > 0 {
		guards += `"budget":{` + strings.Join(budget, ",") + `},`
	}
	s += `,"guards":{` + guards + `"loop_detection":{"max_state_visits":100,"cycle":false,"mode":"off","max_output_repeats":false}}`
	if g.chance(20) {
		s += fmt.Sprintf(`,"audit":{"mode":%q,"rate":%s}`, g.one("before", "after"), g.one("0.3", "1"))
	}
	if humans > 1 && g.chance(35) {
		g.w.secondRate, g.w.second = g.one("0.5", "1"), g.one("before", "before", "after")
		when := g.w.second
		if g.w.mutation.is("second human is not waited for") {
			when = "after"
		}
		s += fmt.Sprintf(`,"secondHuman":{"rate":%s,"when":%q}`, g.w.secondRate, when)
	}
	return s
}

// quorum returns the quorum that the machine sets, if it sets one.
func (g *generator) quorum(mode string) string {
	q := &g.w.quorum
	q.waves = mode == "sequential"
	rule, written := machine.Quorum{Rule: machine.MajorityQuorum}, ""
	if g.first || mode == "eager" {
		rule.Rule = machine.AnyQuorum
	}
	if g.chance(40) {
		rule = []machine.Quorum{{Rule: machine.AnyQuorum}, {Rule: machine.MajorityQuorum}, {Rule: machine.AllQuorum}, {Count: 1}, {Count: 2}}[g.rng.IntN(5)]
		text, _ := rule.MarshalJSON()
		written = fmt.Sprintf(`,"quorum":%s`, text)
	}
	q.rule = rule
	if g.w.mutation.is("quorum is not asked") {
		written = `,"quorum":"any"`
	}
	return written
}

// service makes a service, whose price is mostly what the machine thinks.
func (g *generator) service(id string, model bool) *service {
	price := exact.Money(1+g.rng.IntN(6)) * exact.Dollar / 10
	s := &service{w: g.w, id: id, model: model, price: price, estimate: price, accounts: map[string]*account{}}
	if g.chance(20) {
		s.estimate = price * 2
	}
	s.silent = !model && s.estimate == price && g.w.draw(4, "silent", id) == 0
	g.w.services[id] = s
	return s
}

func (g *generator) proposer(n int) string {
	id := fmt.Sprintf("w%d", n)
	way := ""
	switch k := g.rng.IntN(10); {
	case k < 6:
		way = fmt.Sprintf(`"strategyWebhookUrl":"https://hooks.example/%s","webhookTokenName":"A_WEBHOOK_TOKEN","estimatedCostUSD":%s`, id, g.service(id, false).estimate)
	case k < 8:
		way = fmt.Sprintf(`"contextFn":"sessionContext","modelId":"sim/%s","estimatedCostUSD":%s`, id, g.service(id, true).estimate)
	case k < 9:
		way = `"strategyFn":"fn"`
	default:
		way = `"strategyFnName":"firstAvailable"`
	}
	g.w.quorum.everyone = append(g.w.quorum.everyone, id)
	if g.chance(15) {
		g.w.quorum.required = append(g.w.quorum.required, id)
		if !g.w.mutation.is("required is forgotten") {
			way += `,"required":true`
		}
	}
	return fmt.Sprintf(`{"role":"proposer","specialistId":%q,%s}`, id, way)
}

func (g *generator) arbiter() string {
	way, k := "", g.rng.IntN(10)
	if g.w.inquiries.truth && k%2 == 0 {
		k = 4 // so that more is decided, and the gate asked
	}
	switch {
	case k < 3:
		way = `"strategyFnName":"alignmentMargin","threshold":0.3`
	case k < 5:
		way, g.first = `"strategyFnName":"firstProposal"`, true
	case k < 6:
		way = `"strategyFnName":"bayes"`
	case k < 8:
		way = fmt.Sprintf(`"strategyWebhookUrl":"https://hooks.example/arb","webhookTokenName":"A_WEBHOOK_TOKEN","estimatedCostUSD":%s`, g.service("arb", false).estimate)
	default:
		way = `"strategyFn":"= aheadBy >= 1 ? leader : none"`
	}
	return `{"role":"arbiter","specialistId":"arb",` + way + `}`
}
