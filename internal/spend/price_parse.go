package spend

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// Reading a price table. A model has one price, or a list of prices with dates, which
// are put in order; the first carries the others as Later. Aliases get entries of their
// own after the models of the file are known, so an alias can never take the place of a
// model.
//
// A tier is complete when it has been read: it starts as a copy of the price around it,
// so what it leaves out is the model's own. That is why tiers are read last. Everything
// wrong is reported, with the JSON pointer of where it stands, and reading goes on.

// ParsePrices reads a price table, a JSON object with the members version,
// prices and on_unknown_model (warn if it is left out). The problems have JSON
// pointers relative to the section.
func ParsePrices(data []byte) (*PriceTable, []machine.Problem) {
	t := &PriceTable{OnUnknownModel: unknownWarn}
	problems := section.Parse("prices", data, func(r *section.Reader) func(path string, value []byte) {
		return r.Object([]section.Member{
			{Name: "version", Read: r.Text(&t.Version)},
			{Name: "prices", Read: Prices(r, &t.Prices)},
			{Name: "on_unknown_model", Read: OnUnknownModel(r, &t.OnUnknownModel)},
		})
	})
	if len(problems) > 0 {
		return nil, problems
	}
	return t, nil
}

// OnUnknownModel reads the member of a section that says what to do about a model
// without a price: skip, warn, estimate_max or abort.
func OnUnknownModel(r *section.Reader, into *string) func(path string, value []byte) {
	return r.OneOf(into, unknownSkip, unknownWarn, unknownMax, unknownAbort)
}

// Prices reads the member of a section that is an object of models into *into. A
// model's value is its price or a list of prices with different dates; its aliases get entries of their own.
func Prices(r *section.Reader, into *map[string]Price) func(path string, value []byte) {
	return func(path string, value []byte) {
		models := map[string]json.RawMessage{}
		if json.Unmarshal(value, &models) != nil || models == nil {
			r.Report(path, "wrong-type", "prices must be an object of models", "")
			return
		}
		table := map[string]Price{}
		for model := range models {
			table[model] = Price{}
		}
		for _, model := range slices.Sorted(maps.Keys(models)) {
			at := path + "/" + machine.EscapePointer(model)
			if strings.TrimSpace(model) == "" {
				r.Report(at, "bad-name", "a price is of a model without a name", "name the model as modelId or its provider does")
				continue
			}
			p, aliases := readModelPrices(r, at, models[model])
			table[model] = p
			for _, a := range aliases {
				if _, taken := table[a.name]; taken {
					r.Report(a.path, "contradiction", fmt.Sprintf("the alias %q already has a price", a.name), "remove one of the two")
					continue
				}
				table[a.name] = p
			}
		}
		*into = table
	}
}

type alias struct{ name, path string }

// readModelPrices reads the price of one model, or its list of prices.
func readModelPrices(r *section.Reader, path string, value []byte) (Price, []alias) {
	var aliases []alias
	if len(value) == 0 || value[0] != '[' {
		return readPrice(r, path, value, &aliases), aliases
	}
	var list []Price
	r.Each("prices", func(path string, value []byte) { list = append(list, readPrice(r, path, value, &aliases)) })(path, value)
	if len(list) == 0 {
		r.Report(path, "out-of-range", fmt.Sprintf("%s has no price", section.NameOf(path)), "")
		return Price{}, nil
	}
	slices.SortStableFunc(list, func(a, b Price) int { return a.EffectiveFrom.Compare(b.EffectiveFrom) })
	for i := 1; i < len(list); i++ {
		if list[i].EffectiveFrom.Equal(list[i-1].EffectiveFrom) {
			r.Report(path, "contradiction", fmt.Sprintf("two prices of %s are effective from the same day", section.NameOf(path)), "give each an effective_from of its own")
			break
		}
	}
	first := list[0]
	first.Later = list[1:]
	return first, aliases
}

// readPrice reads one price object. Its tiers start from what it says itself, so
// they are read last.
func readPrice(r *section.Reader, path string, value []byte, aliases *[]alias) (p Price) {
	includes := true
	members := append(rateMembers(r, &p),
		section.Member{Name: "input_includes_cached", Read: r.Flag(&includes)},
		section.Member{Name: "effective_from", Read: r.Date(&p.EffectiveFrom)},
		section.Member{Name: "aliases", Read: r.Each("aliases", func(path string, value []byte) {
			a := alias{path: path}
			r.Text(&a.name)(path, value)
			if strings.TrimSpace(a.name) == "" && a.name != "" {
				r.Report(path, "wrong-type", section.NameOf(path)+" must be a string that is not empty", "")
			} else if a.name != "" {
				*aliases = append(*aliases, a)
			}
		})},
		section.Member{Name: "tiers", Read: func(path string, value []byte) {
			p.InputExcludesCached = !includes
			r.Each("tiers", func(path string, value []byte) { readTier(r, &p, path, value) })(path, value)
		}})
	r.Object(members)(path, value)
	p.InputExcludesCached = !includes
	return p
}

// readTier reads one tier and adds it to p's.
func readTier(r *section.Reader, p *Price, path string, value []byte) {
	t := Tier{AboveTokens: -1, Price: *p}
	t.Price.Tiers, t.Price.EffectiveFrom = nil, time.Time{}
	before := len(r.Problems)
	r.Object(append(rateMembers(r, &t.Price), section.Member{Name: "above_tokens", Read: r.Count(&t.AboveTokens, 0)}))(path, value)
	least := int64(-1)
	if n := len(p.Tiers); n > 0 {
		least = p.Tiers[n-1].AboveTokens
	}
	switch {
	case len(r.Problems) > before:
	case t.AboveTokens < 0:
		r.Report(path, "missing-field", "a tier needs above_tokens", "")
	case t.AboveTokens <= least:
		r.Report(path+"/above_tokens", "contradiction", fmt.Sprintf("above_tokens is %d, not more than that of the tier before", t.AboveTokens), "list the tiers from short to long")
	}
	p.Tiers = append(p.Tiers, t)
}

// rateMembers are the members that a price and a tier share.
func rateMembers(r *section.Reader, p *Price) []section.Member {
	return []section.Member{
		{Name: "input_per_1m", Read: r.Money(&p.InputPer1M)},
		{Name: "output_per_1m", Read: r.Money(&p.OutputPer1M)},
		{Name: "cache_read_per_1m", Read: r.OptionalMoney(&p.CacheReadPer1M)},
		{Name: "cache_write_5m_per_1m", Read: r.OptionalMoney(&p.CacheWrite5mPer1M)},
		{Name: "cache_write_1h_per_1m", Read: r.OptionalMoney(&p.CacheWrite1hPer1M)},
		{Name: "reasoning_per_1m", Read: r.OptionalMoney(&p.ReasoningPer1M)},
		{Name: "audio_in_per_1m", Read: r.OptionalMoney(&p.AudioInPer1M)},
		{Name: "audio_out_per_1m", Read: r.OptionalMoney(&p.AudioOutPer1M)},
		{Name: "per_call", Read: r.Money(&p.PerCall)},
	}
}
