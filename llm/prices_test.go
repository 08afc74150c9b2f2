package llm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/llm"
	"github.com/dialai/dialai/specialist"
)

// TestBuiltinPrices: about twenty models, each under its id with and without the
// prefix, each with the day on which it was checked; none is free by accident.
func TestBuiltinPrices(t *testing.T) {
	p := llm.Prices()
	if !strings.HasPrefix(p.Version, "builtin-20") {
		t.Errorf("the version is %q", p.Version)
	}
	models := 0
	for name, price := range p.Prices {
		checked, err := time.Parse(time.DateOnly, llm.Checked(name))
		if err != nil || checked.After(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s was checked on %q", name, llm.Checked(name))
		}
		if price.InputPer1M <= 0 || price.OutputPer1M <= price.InputPer1M {
			t.Errorf("%s costs %v and %v", name, price.InputPer1M, price.OutputPer1M)
		}
		if c := price.CacheReadPer1M; c != nil && (*c <= 0 || *c >= price.InputPer1M) {
			t.Errorf("cached input of %s costs %v", name, *c)
		}
		if _, id, prefixed := strings.Cut(name, "/"); prefixed {
			models++
			if _, ok := p.Prices[id]; !ok && !strings.Contains(id, ".") {
				t.Errorf("%s has no price without its prefix", name)
			}
		}
	}
	if models < 20 {
		t.Errorf("there are %d models", models)
	}
	u := specialist.Usage{NumInputTokens: 1_000_000, NumOutputTokens: 100_000, Detail: &specialist.UsageDetail{CacheReadTokens: 400_000}}
	cost, how := p.Quote(u, "gpt-4o", time.Time{})
	if want, _ := exact.ParseMoney("3"); how != spend.Priced || cost != want { // 0.6 × 2.5 + 0.4 × 1.25 + 0.1 × 10
		t.Errorf("gpt-4o: %v, %v, want %v", cost, how, want)
	}
	if _, how := p.Quote(u, "gpt-99", time.Time{}); how != spend.Unpriced {
		t.Error("an unknown model has a price")
	}
}

// TestOwnPrices: they are laid over the built-in ones, or take their place.
func TestOwnPrices(t *testing.T) {
	own, problems := llm.ReadPrices([]byte(`{"version":"mine","prices":{"gpt-4o":{"input_per_1m":1},"ollama/llama3.2":{}}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if p, ok := own.Price("gpt-4o", time.Time{}); !ok || p.InputPer1M != 1_000_000_000_000 {
		t.Errorf("gpt-4o: %+v, %v", p, ok)
	}
	if p, ok := own.Price("ollama/llama3.2", time.Time{}); !ok || p.InputPer1M != 0 {
		t.Error("a free model has no price")
	}
	if _, ok := own.Price("gpt-4o-mini", time.Time{}); !ok || own.Version != llm.Prices().Version+"+mine" {
		t.Errorf("the others are gone: %s", own.Version)
	}
	if p, _ := llm.Prices().Price("gpt-4o", time.Time{}); p.InputPer1M != 2_500_000_000_000 {
		t.Error("the built-in prices were changed")
	}
	alone, problems := llm.ReadPrices([]byte(`{"version":"mine","replace":true,"prices":{"x":{"input_per_1m":1}}}`))
	if _, ok := alone.Price("gpt-4o", time.Time{}); ok || len(problems) > 0 || alone.Version != "mine" || len(alone.Prices) != 1 {
		t.Errorf("%+v, %v", alone, problems)
	}
	for _, bad := range []string{`[]`, `{"prices":{"x":{"input_per_1m":-1}}}`, `{"price":{}}`, `{"replace":1,"prices":{}}`, `{"prices":{"x":{"input":1}}}`} {
		if _, problems := llm.ReadPrices([]byte(bad)); len(problems) == 0 {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestImportPrices reads a table as LiteLLM writes it.
func TestImportPrices(t *testing.T) {
	table, err := llm.ImportPrices([]byte(`{
		"sample_spec": {"input_cost_per_token": 0, "output_cost_per_token": 0},
		"b-model": {"input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07, "cache_read_input_token_cost": 7.5e-08, "mode": "chat", "max_tokens": 1},
		"a-free": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
		"an-image": {"input_cost_per_image": 1}, "odd": 3, "": {"input_cost_per_token": 1, "output_cost_per_token": 1},
		"no-input": {"input_cost_per_token": null, "output_cost_per_token": 1e-6}, "no-output": {"input_cost_per_token": 1e-6, "output_cost_per_token": -1},
		"unread": {"input_cost_per_token": "free", "output_cost_per_token": 1e-6}, "quoted": {"input_cost_per_token": "1e-6", "output_cost_per_token": 2e-06}}`), "litellm")
	if want := "{\"version\":\"litellm\",\"prices\":{\n\"a-free\":{\"input_per_1m\":0,\"output_per_1m\":0},\n\"b-model\":{\"input_per_1m\":0.15,\"output_per_1m\":0.6,\"cache_read_per_1m\":0.075},\n\"quoted\":{\"input_per_1m\":1,\"output_per_1m\":2}\n}}\n"; err != nil || string(table) != want {
		t.Fatalf("%s, %v, want %s", table, err, want)
	}
	if p, problems := llm.ReadPrices(table); len(problems) > 0 || len(p.Prices) != len(llm.Prices().Prices)+3 {
		t.Error(problems)
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"x":{"mode":"chat"}}`} {
		if _, err := llm.ImportPrices([]byte(bad), "x"); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
