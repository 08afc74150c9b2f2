package llm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/machine"
)

// The prices that the program comes with: of models that people name often, as
// their providers' pages listed them on the day under x-checked. Parts without a
// price of their own cost what the whole costs, so that an unknown discount makes
// a call look costlier, never cheaper.
//
//go:embed prices.json
var pricesFile []byte

// Prices returns the prices that the program comes with. The table must not be
// changed.
var Prices = sync.OnceValue(func() *spend.PriceTable {
	t, problems := spend.ParsePrices(pricesFile)
	if len(problems) > 0 {
		panic("llm: prices.json: " + problems[0].Message) // a broken invariant: a test reads it
	}
	return t
})

// ReadPrices reads a user's price table, a JSON object as that of prices.json. It
// is laid over the built-in one: its entries win. With "replace": true it takes
// the place of it. What happens to models that are in neither is for machines to
// say, so on_unknown_model is a problem here. The problems have JSON pointers
// relative to the section.
func ReadPrices(section []byte) (*spend.PriceTable, []machine.Problem) {
	own, replace := section, false
	var members map[string]json.RawMessage
	broken := json.Unmarshal(section, &members) != nil
	if !broken && members["on_unknown_model"] != nil {
		return nil, []machine.Problem{{Path: "/on_unknown_model", Code: "unknown-field", Message: "a file of prices does not say what happens to models without a price",
			Hint: "write on_unknown_model in the machine's guards.cost"}}
	}
	if !broken && members["replace"] != nil {
		if json.Unmarshal(members["replace"], &replace) != nil {
			return nil, []machine.Problem{{Path: "/replace", Code: "wrong-type", Message: "replace must be true or false"}}
		}
		delete(members, "replace")
		own, _ = json.Marshal(members) // it was just read
	}
	t, problems := spend.ParsePrices(own)
	if len(problems) > 0 || replace {
		return t, problems
	}
	both := *Prices()
	both.Prices = maps.Clone(both.Prices)
	maps.Copy(both.Prices, t.Prices)
	if both.Version += "+own"; t.Version != "" {
		both.Version = Prices().Version + "+" + t.Version
	}
	return &both, nil
}

// ImportPrices makes a price table, for ReadPrices, of LiteLLM's
// model_prices_and_context_window.json. It takes over models that chat and have a
// price, and only what the table has a place for. version names the result.
func ImportPrices(data []byte, version string) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("it is not a JSON object of models: %w", err)
	}
	b := jsontext.AppendString([]byte(`{"version":`), version)
	b = append(b, `,"prices":{`...)
	n := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		price, ok := imported(all[name])
		if !ok || strings.TrimSpace(name) == "" || name == "sample_spec" {
			continue
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendString(append(b, '\n'), name), ':')
		b = append(b, price...)
	}
	if n == 0 {
		return nil, fmt.Errorf("it has no model with input_cost_per_token and output_cost_per_token")
	}
	return append(b, "\n}}\n"...), nil
}

// litellmRates are names of rates there, for one token, and here, for a million.
var litellmRates = [][2]string{
	{"input_cost_per_token", "input_per_1m"}, {"output_cost_per_token", "output_per_1m"},
	{"cache_read_input_token_cost", "cache_read_per_1m"}, {"cache_creation_input_token_cost", "cache_write_5m_per_1m"},
	{"cache_creation_input_token_cost_above_1hr", "cache_write_1h_per_1m"}, {"output_cost_per_reasoning_token", "reasoning_per_1m"},
	{"input_cost_per_audio_token", "audio_in_per_1m"}, {"output_cost_per_audio_token", "audio_out_per_1m"},
}

// imported returns one model's price as JSON; ok is false if it has none: what input or
// output costs must be known, or it would cost nothing.
func imported(model json.RawMessage) (price []byte, ok bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(model, &m) != nil {
		return nil, false
	}
	for i, rate := range litellmRates {
		perToken, err := strconv.ParseFloat(written(m[rate[0]]), 64)
		if err != nil || perToken < 0 {
			if i < 2 {
				return nil, false
			}
			continue
		}
		perMillion, err := exact.ParseMoney(strconv.FormatFloat(perToken*1e6, 'f', 9, 64))
		if err != nil {
			return nil, false
		}
		price = append(append(append(price, ',', '"'), rate[1]...), '"', ':')
		price = perMillion.Append(price)
	}
	price[0] = '{'
	return append(price, '}'), true
}

// Checked returns on which day the built-in price of a model was last compared
// with its provider's page; "" if there is no such price.
func Checked(model string) string {
	var file struct {
		Prices map[string]struct {
			Aliases []string `json:"aliases"`
			Checked string   `json:"x-checked"`
		} `json:"prices"`
	}
	if json.Unmarshal(pricesFile, &file) != nil {
		return ""
	}
	for name, p := range file.Prices {
		if name == model || slices.Contains(p.Aliases, model) {
			return p.Checked
		}
	}
	return ""
}

// BaseModel returns a modelId without its flags: the name under which a price is
// looked up.
func BaseModel(id string) string {
	name, _, _ := strings.Cut(id, "[")
	return strings.TrimSpace(name)
}
