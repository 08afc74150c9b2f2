package guard

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
)

// cost looks for caps of dollars that see nothing.
func (l *linter) cost() {
	if len(l.c.Cost.Prices) > 0 {
		return
	}
	cap := func(path string, limit *exact.Money) {
		if limit != nil {
			l.report(path, "cap-without-prices", "add cost.prices, or limit tokens",
				"the cap of $%s has no prices: it sees only calls whose cost is told", limit)
		}
	}
	cap("/cost/max_dollars_per_task", l.c.Cost.MaxDollars)
	if b := l.c.Budget; b != nil {
		cap("/budget/soft_limit_usd", b.SoftUSD)
		cap("/budget/hard_limit_usd", b.HardUSD)
	}
}

// unseen looks for a limit of dollars that does not see every ask, which the profile
// compat lets pass, and for a service of the guards that is never asked because of it.
func (l *linter) unseen() {
	b := l.c.Budget
	switch {
	case !b.CapsDollars() || b.DefaultUSD != nil:
	case l.c.Profile == Compat:
		l.report("/budget/hard_limit_usd", UnpricedAsk, spend.UnpricedHint,
			"the limit of $%s does not see asks that do not say what they may cost: under the profile compat they are made all the same", b.HardUSD)
	case l.c.Classifier != nil && l.c.Classifier.URL != "" && b.DebitProbes:
		l.report("/classifier", UnpricedAsk, "write budget.default_estimate_usd beside the limit, or debit_probes: false if the session does not pay for it",
			"the classifier is never asked: nothing says what that may cost, and the limit of $%s would not see it", b.HardUSD)
	}
}

// halves looks for prices that say what input costs or what output costs, and not both:
// the other one is free.
func (l *linter) halves() {
	prices := l.given.Cost.Prices
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		path := "/cost/prices/" + machine.EscapePointer(name)
		var dated []members
		if json.Unmarshal(prices[name], &dated) != nil {
			dated = make([]members, 1)
			_ = json.Unmarshal(prices[name], &dated[0]) // it was read before
		}
		for _, p := range dated {
			in, out := p["input_per_1m"] != nil, p["output_per_1m"] != nil
			if in != out {
				l.report(path, "half-price", "say both; 0 if one is free",
					"the price of %q has only one of input_per_1m and output_per_1m, so the other costs nothing", name)
				break
			}
		}
	}
}

// packs looks for packs that have nothing to read.
func (l *linter) packs() {
	if allowed := l.c.Tools.Allowed; allowed == nil || len(allowed) > 0 {
		return
	}
	for _, p := range []struct {
		name string
		pack *packs.Pack
	}{{"secrets", l.c.Packs.Secrets}, {"pii", l.c.Packs.PII}, {"prompt_injection", l.c.Packs.Injection}} {
		if p.pack != nil && !p.pack.Output {
			l.report("/packs/"+p.name+"/on", "never-fires", "let it read the output", "the pack reads tool calls alone, and no tool is allowed")
		}
	}
}

// truth looks for gates that cost more than anybody would think, or nothing gets
// past.
func (l *linter) truth() {
	t := l.c.Truth
	if t == nil {
		return
	}
	b := l.c.Budget
	if b == nil || b.HardCalls == nil && b.HardTokens == nil && b.HardUSD == nil {
		l.report("/truth", "probes-without-limit", "set budget.hard_limit_calls",
			"a gate that passes takes up to %d calls, and nothing limits how many there are", t.Calls())
	}
	l.share(t)
	if _, own := l.given.Truth.Thresholds["tau_u"]; t.Estimator == truth.EstimateSteps && !own {
		l.report("/truth/estimator", "default-threshold", "set truth.thresholds.tau_u, from 0.3 to 0.5",
			"the threshold of %v is that of samples; critiques of steps need a lower one", t.Thresholds.TauU)
	}
	l.unpriced(t)
}

// share looks for a share of the guards' own questions that stops the gate even where
// each of them costs no more than the answer it is about. What never does is 1: an
// answer may cost nothing, and then all that is spent is spent on the questions.
func (l *linter) share(t *truth.Section) {
	b := l.c.Budget
	if b == nil || !b.DebitProbes || b.Mode == spend.ModeObserve || b.ProbeShareMax == nil {
		return
	}
	questions := t.Calls()
	answer, asked := spend.Book{Calls: 1, TokensIn: 1}, spend.Book{Calls: questions, TokensIn: questions}
	if (&spend.Budget{ProbeShareMax: b.ProbeShareMax}).AdmitProbe(answer, spend.Book{}, spend.Book{}, asked) == nil {
		return
	}
	l.report("/truth", "small-probe-share", "set budget.probe_share_max to 1; a smaller one stops the gate where answers cost less than questions, or nothing",
		"the gate asks up to %d questions about one answer, %d of %d calls, and they may be only %s of what is spent", questions, questions, questions+1, *b.ProbeShareMax)
}

// unpriced reports models whose calls a cap of dollars may not see.
func (l *linter) unpriced(t *truth.Section) {
	capped := l.c.Cost.MaxDollars != nil || l.c.Budget != nil && l.c.Budget.HardUSD != nil
	if !capped || l.c.Knows(t.Prober()) {
		return
	}
	path := "/truth/model"
	if t.ProbeModel != "" {
		path = "/truth/probe_model"
	}
	l.report(path, "unpriced-probes", "add the model to cost.prices", "the model %q has no price: the cap sees its calls only if their cost is told", t.Prober())
}
