package spend_test

import (
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
)

const priceTable = `{
	"version": "2026-03",
	"on_unknown_model": "estimate_max",
	"prices": {
		"plain": {"input_per_1m": 3, "output_per_1m": 15, "aliases": ["plain-latest", "p"]},
		"cached": {"input_per_1m": 3, "output_per_1m": 15, "cache_read_per_1m": 0.3,
			"cache_write_5m_per_1m": 3.75, "cache_write_1h_per_1m": 6, "x-note": "made up"},
		"raw": {"input_per_1m": 3, "output_per_1m": 15, "cache_read_per_1m": 0.3,
			"cache_write_5m_per_1m": 3.75, "input_includes_cached": false},
		"thinker": {"input_per_1m": 1, "output_per_1m": 4, "reasoning_per_1m": 8, "audio_in_per_1m": 10, "audio_out_per_1m": 20, "per_call": 0.01},
		"long": {"input_per_1m": 1, "output_per_1m": 2, "cache_read_per_1m": 0.5,
			"tiers": [{"above_tokens": 1000, "input_per_1m": 2}, {"above_tokens": 5000, "output_per_1m": 9, "per_call": 1}]},
		"dated": [{"effective_from": "2026-02-01", "input_per_1m": 7}, {"input_per_1m": 5}],
		"new": {"effective_from": "2026-05-01", "input_per_1m": 1},
		"free": {},
		"fine": {"input_per_1m": 0.0000001}
	}}`

func prices(t testing.TB, section string) *spend.PriceTable {
	t.Helper()
	table, problems := spend.ParsePrices([]byte(section))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return table
}

func tokens(in, out int64) specialist.Usage {
	return specialist.Usage{NumInputTokens: in, NumOutputTokens: out, Given: specialist.InputGiven | specialist.OutputGiven}
}

func detailed(in, out int64, d specialist.UsageDetail) specialist.Usage {
	u := tokens(in, out)
	u.Detail = &d
	return u
}

func TestQuote(t *testing.T) {
	table := prices(t, priceTable)
	if table.Version != "2026-03" {
		t.Errorf("version %q", table.Version)
	}
	const m = 1_000_000
	march := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, model string
		use         specialist.Usage
		at          time.Time
		want        string
	}{
		{"input and output", "plain", tokens(m, m), march, "18"},
		{"an alias costs the same", "plain-latest", tokens(m, m), march, "18"},
		{"cached tokens without a price cost what input costs", "plain", detailed(m, 0, specialist.UsageDetail{CacheReadTokens: m}), march, "3"},
		{"cached input is part of the count", "cached", detailed(m, 0, specialist.UsageDetail{CacheReadTokens: m / 2}), march, "1.65"},
		{"writes of both kinds", "cached", detailed(m, 0, specialist.UsageDetail{CacheWrite5mTokens: m / 4, CacheWrite1hTokens: m / 4}), march, "3.9375"},
		{"more cached than there was: the rest is nothing", "cached", detailed(10, 0, specialist.UsageDetail{CacheReadTokens: m}), march, "0.3"},
		{"cached input is no part of the count", "raw", detailed(m, 0, specialist.UsageDetail{CacheReadTokens: m}), march, "3.3"},
		{"one hour without a price costs what five minutes cost", "raw", detailed(0, 0, specialist.UsageDetail{CacheWrite1hTokens: m}), march, "3.75"},
		{"reasoning, audio and a call", "thinker", detailed(m, m, specialist.UsageDetail{ReasoningTokens: m / 2, AudioInputTokens: m / 2, AudioOutputTokens: m / 4}), march, "15.51"},
		{"reasoning is part of the output", "plain", detailed(0, m, specialist.UsageDetail{ReasoningTokens: m / 3}), march, "15"},
		{"at a tier's edge", "long", tokens(1000, 0), march, "0.001"},
		{"above a tier's edge all is costlier", "long", tokens(1001, 1000), march, "0.004002"},
		{"the highest tier, with what it left out", "long", tokens(10_000, 1000), march, "1.019"},
		{"cached tokens make it long", "long", detailed(6000, 0, specialist.UsageDetail{CacheReadTokens: 6000}), march, "1.003"},
		{"before a new price", "dated", tokens(m, 0), march.AddDate(0, -2, 0), "5"},
		{"on its day", "dated", tokens(m, 0), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), "7"},
		{"whenever", "dated", tokens(m, 0), time.Time{}, "7"},
		{"free", "free", tokens(m, m), march, "0"},
		{"finer than a pico-dollar", "fine", tokens(1, 0), march, "0.000000000001"},
		{"a cost that was told", "plain", tokens(m, m).WithCost(5), march, "0.000000000005"},
		{"negative counts are none", "plain", tokens(-m, -m), march, "0"},
		{"a huge count saturates", "plain", tokens(1<<62, 1<<62), march, "9223372.036854775807"},
	} {
		cost, how := table.Quote(c.use, c.model, c.at)
		if cost.String() != c.want || how != spend.Priced {
			t.Errorf("%s: $%s, %d, want $%s", c.name, cost, how, c.want)
		}
	}
	if cost, how := table.Quote(tokens(0, m), "nobody", march); cost != 15*exact.Dollar || how != spend.PricedAsCostliest {
		t.Errorf("the costliest model: $%s, %d", cost, how)
	}
	if _, how := table.Quote(tokens(0, m), "new", march); how != spend.PricedAsCostliest {
		t.Errorf("a price that is not in force yet: %d", how)
	}
	var none *spend.PriceTable
	if cost, how := none.Quote(tokens(1, 1), "plain", march); cost != 0 || how != spend.Unpriced {
		t.Errorf("no table: $%s, %d", cost, how)
	}
}

// TestPartsCostTheSame: how the tokens are split up does not matter if all parts
// cost the same.
func TestPartsCostTheSame(t *testing.T) {
	p := prices(t, `{"prices":{"m":{"input_per_1m":1.0000007,"output_per_1m":2.0000003}}}`).Prices["m"]
	for in := range int64(50) {
		d := specialist.UsageDetail{CacheReadTokens: in / 2, CacheWrite5mTokens: in / 3, ReasoningTokens: in, AudioInputTokens: in / 4}
		if a, b := p.Cost(tokens(in, in)), p.Cost(detailed(in, in, d)); a != b {
			t.Fatalf("%d tokens: $%s whole, $%s in parts", in, a, b)
		}
	}
}

func TestParsePricesProblems(t *testing.T) {
	model := func(members string) string { return `{"prices":{"a/b":{` + members + `}}}` }
	for _, c := range []struct{ section, want string }{
		{`[]`, ` wrong-type prices must be an object`},
		{`{`, ` bad-json prices is not one JSON value: unexpected EOF`},
		{`{"price":{}}`, `/price unknown-field prices has no field "price" (did you mean "prices"?)`},
		{`{"hunter2":"x","sesame":1}`, ` foreign-file none of its fields is a field of prices (is it the right file? Nothing else of it is shown)`},
		{`{"prices":[]}`, `/prices wrong-type prices must be an object of models`},
		{`{"prices":null}`, `/prices wrong-type prices must be an object of models`},
		{`{"version":7}`, `/version wrong-type version must be a string that is not empty`},
		{`{"on_unknown_model":"guess"}`, `/on_unknown_model bad-value on_unknown_model is "guess" (it may be ["skip" "warn" "estimate_max" "abort"])`},
		{model(`"input_per_1m":-1`), `/prices/a~1b/input_per_1m out-of-range input_per_1m is -1, not an amount of US dollars from 0`},
		{model(`"cache_read_per_1m":null`), `/prices/a~1b/cache_read_per_1m out-of-range cache_read_per_1m is null, not an amount of US dollars from 0`},
		{model(`"cache_reed_per_1m":1`), `/prices/a~1b/cache_reed_per_1m unknown-field a~1b has no field "cache_reed_per_1m" (did you mean "cache_read_per_1m"?)`},
		{model(`"input_includes_cached":1`), `/prices/a~1b/input_includes_cached wrong-type input_includes_cached must be true or false`},
		{model(`"effective_from":"2026-02-30"`), `/prices/a~1b/effective_from bad-value effective_from is "2026-02-30" (write a day, such as "2026-01-31")`},
		{model(`"aliases":["a/b"]`), `/prices/a~1b/aliases/0 contradiction the alias "a/b" already has a price (remove one of the two)`},
		{model(`"aliases":["x","x"]`), `/prices/a~1b/aliases/1 contradiction the alias "x" already has a price (remove one of the two)`},
		{model(`"aliases":[" "]`), `/prices/a~1b/aliases/0 wrong-type 0 must be a string that is not empty`},
		{`{"prices":{"":{"input_per_1m":1}}}`, `/prices/ bad-name a price is of a model without a name (name the model as modelId or its provider does)`},
		{`{"prices":{"a":{}," ":[{}]}}`, `/prices/  bad-name a price is of a model without a name (name the model as modelId or its provider does)`},
		{model(`"aliases":[""]`), `/prices/a~1b/aliases/0 wrong-type 0 must be a string that is not empty`},
		{model(`"tiers":{}`), `/prices/a~1b/tiers wrong-type tiers must be a list`},
		{model(`"tiers":[{"input_per_1m":1}]`), `/prices/a~1b/tiers/0 missing-field a tier needs above_tokens`},
		{model(`"tiers":[{"above_tokens":5},{"above_tokens":5}]`), `/prices/a~1b/tiers/1/above_tokens contradiction above_tokens is 5, not more than that of the tier before (list the tiers from short to long)`},
		{model(`"tiers":[{"above_tokens":5,"tiers":[]}]`), `/prices/a~1b/tiers/0/tiers unknown-field 0 has no field "tiers"`},
		{`{"prices":{"m":[]}}`, `/prices/m out-of-range m has no price`},
		{`{"prices":{"m":[{},{}]}}`, `/prices/m contradiction two prices of m are effective from the same day (give each an effective_from of its own)`},
		{`{"prices":{"m":{},"m":{}}}`, ` bad-json prices is not one JSON value: duplicate member "m"`},
	} {
		_, problems := spend.ParsePrices([]byte(c.section))
		if got := listed(problems); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.section, got, c.want)
		}
	}
}
