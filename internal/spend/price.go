package spend

import (
	"math/bits"
	"slices"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// From token counts to money. A price is dollars for a million tokens of input and of
// output, and has a rate of its own for parts of them: read from a cache, written to
// one for five minutes or an hour, reasoning, audio. costOf prices each part at its own
// rate and the rest of the whole at the general one; a part without a rate costs what
// the whole costs.
//
// Before that, two choices: which price was in force at the moment of the call (at),
// and which tier its whole input, cached tokens included, falls into (tier). The price
// of a tier holds for the whole call, not for what is above.
//
// All amounts are whole pico-dollars; each product is rounded up, and sums saturate. A
// provider's own word about a cost wins over the table. For a model without a price the
// table says what to do; estimate_max takes the most that any model of the table would
// cost.

// A Price is what a model costs: US dollars for a million tokens, but for
// PerCall. The zero Price is that of a free model, which is not the same as none.
type Price struct {
	InputPer1M  exact.Money
	OutputPer1M exact.Money

	// Prices of parts of the input and the output. A part without a price of its
	// own costs what the whole costs; one-hour writes without a price cost what
	// five-minute writes cost.
	CacheReadPer1M    *exact.Money
	CacheWrite5mPer1M *exact.Money
	CacheWrite1hPer1M *exact.Money
	ReasoningPer1M    *exact.Money
	AudioInPer1M      *exact.Money
	AudioOutPer1M     *exact.Money

	PerCall exact.Money // for the call itself, whatever its length

	// InputExcludesCached says that the model's input count leaves out what was
	// read from and written to a cache. By default it is part of the count.
	InputExcludesCached bool

	Tiers         []Tier    // costlier or cheaper from some length on, rising
	EffectiveFrom time.Time // no price before; zero: always
	Later         []Price   // that replace this one from their EffectiveFrom on, rising
}

// A Tier is the price of a whole call whose input, cached tokens included, is
// longer than AboveTokens.
type Tier struct {
	AboveTokens int64
	Price       Price // complete: what the file left out was taken from the model's price
}

// A PriceTable says what models cost. A nil *PriceTable knows no model. It must
// not be changed once it is in use, and may then be used concurrently.
type PriceTable struct {
	Version        string           // stamped into every record; may be ""
	Prices         map[string]Price // by the exact name of the model; aliases have entries too
	OnUnknownModel string           // skip, warn, estimate_max or abort; "" is skip
}

// Pricing says how the cost of a call came about.
type Pricing uint8

// The ways to a cost: it was told or is in the table, it is that of the costliest
// model because this one is not in the table, it is not known and counts as 0.
const (
	Priced Pricing = iota
	PricedAsCostliest
	Unpriced
)

// Names of what happens to calls of models without a price.
const (
	unknownSkip  = "skip"
	unknownWarn  = "warn"
	unknownMax   = "estimate_max"
	unknownAbort = "abort"
)

// Quote returns what a call costs that was made at the given moment; the zero
// time takes the newest prices. A cost that the usage already has wins. Amounts
// finer than a pico-dollar round up, negative counts are 0, sums saturate.
func (t *PriceTable) Quote(u specialist.Usage, model string, at time.Time) (exact.Money, Pricing) {
	if u.Has(specialist.CostGiven) {
		return max(u.CostUSD, 0), Priced
	}
	if p, known := t.Price(model, at); known {
		return p.cost(&u), Priced
	}
	return t.guess(at, func(p *Price) exact.Money { return p.cost(&u) })
}

// Price returns the price of a model at a moment; the zero time takes the
// newest. known is false if there is none.
func (t *PriceTable) Price(model string, at time.Time) (p Price, known bool) {
	if t != nil {
		p, known = t.Prices[model]
	}
	if now := p.at(at); known && now != nil {
		return *now, true
	}
	return Price{}, false
}

// at returns the one of p and its successors that is in force, or nil.
func (p *Price) at(at time.Time) *Price {
	for i := range slices.Backward(p.Later) {
		if next := &p.Later[i]; at.IsZero() || !at.Before(next.EffectiveFrom) {
			return next
		}
	}
	if p.EffectiveFrom.IsZero() || at.IsZero() || !at.Before(p.EffectiveFrom) {
		return p
	}
	return nil
}

// guess prices the call of an unknown model, if that is what the table says: as
// what the costliest model would cost. A price that is not in force yet counts too,
// since this is an upper bound.
func (t *PriceTable) guess(at time.Time, cost func(*Price) exact.Money) (most exact.Money, how Pricing) {
	if t == nil || t.OnUnknownModel != unknownMax || len(t.Prices) == 0 {
		return 0, Unpriced
	}
	for _, p := range t.Prices {
		now := p.at(at)
		if now == nil {
			now = &p
		}
		most = max(most, cost(now))
	}
	return most, PricedAsCostliest
}

// A part is some of the tokens of a whole, with a price of its own or none.
type part struct {
	tokens int64
	price  *exact.Money
	apart  bool // not in the count of the whole
}

// Cost returns what an ask with these token counts costs. It ignores a cost the
// usage may have. What is to be paid for each call is paid for those that the
// provider charges for.
func (p Price) Cost(u specialist.Usage) exact.Money { return p.cost(&u) }

func (p *Price) cost(u *specialist.Usage) exact.Money {
	p = p.tier(p.input(u))
	d := u.Detail
	if d == nil {
		return p.calls(u).Add(p.InputPer1M.PerMillion(max(u.NumInputTokens, 0))).Add(p.OutputPer1M.PerMillion(max(u.NumOutputTokens, 0)))
	}
	write1h := p.CacheWrite1hPer1M
	if write1h == nil {
		write1h = p.CacheWrite5mPer1M
	}
	in := [...]part{
		{d.CacheReadTokens, p.CacheReadPer1M, p.InputExcludesCached},
		{d.CacheWrite5mTokens, p.CacheWrite5mPer1M, p.InputExcludesCached},
		{d.CacheWrite1hTokens, write1h, p.InputExcludesCached},
		{d.AudioInputTokens, p.AudioInPer1M, false},
	}
	out := [...]part{
		{d.ReasoningTokens, p.ReasoningPer1M, false},
		{d.AudioOutputTokens, p.AudioOutPer1M, false},
	}
	return p.calls(u).Add(costOf(u.NumInputTokens, p.InputPer1M, in[:])).Add(costOf(u.NumOutputTokens, p.OutputPer1M, out[:]))
}

// calls returns what the calls themselves cost.
func (p *Price) calls(u *specialist.Usage) exact.Money {
	n := u.Billed()
	if hi, lo := bits.Mul64(uint64(max(p.PerCall, 0)), uint64(n)); hi == 0 && lo <= maxInt64 {
		return exact.Money(lo)
	}
	return maxInt64
}

// costOf prices a whole: its parts at their own prices, what remains at rate.
// Parts may sum to more than the whole; then nothing remains.
func costOf(whole int64, rate exact.Money, parts []part) (sum exact.Money) {
	rest := max(whole, 0)
	for _, p := range parts {
		n := max(p.tokens, 0)
		switch {
		case n == 0:
		case p.price == nil && p.apart:
			rest = exact.AddSat(rest, n)
		case p.price != nil && !p.apart:
			rest = exact.AddSat(rest, -n)
			fallthrough
		case p.price != nil:
			sum = sum.Add(p.price.PerMillion(n))
		}
	}
	return sum.Add(rate.PerMillion(max(rest, 0)))
}

// tier returns the price that holds for an input of so many tokens.
func (p *Price) tier(input int64) *Price {
	for i := range slices.Backward(p.Tiers) {
		if t := &p.Tiers[i]; input > t.AboveTokens {
			return &t.Price
		}
	}
	return p
}

// input returns the length of the whole input, cached tokens included.
func (p *Price) input(u *specialist.Usage) int64 {
	in := max(u.NumInputTokens, 0)
	if d := u.Detail; d != nil && p.InputExcludesCached {
		for _, n := range [...]int64{d.CacheReadTokens, d.CacheWrite5mTokens, d.CacheWrite1hTokens} {
			in = exact.AddSat(in, max(n, 0))
		}
	}
	return in
}

// estimate returns an upper bound of the cost of a call with so many tokens, if
// nothing of its input is written to a cache.
func (p *Price) estimate(in, out int64) exact.Money {
	p = p.tier(in)
	rate := p.OutputPer1M
	if p.ReasoningPer1M != nil {
		rate = max(rate, *p.ReasoningPer1M)
	}
	return p.PerCall.Add(p.InputPer1M.PerMillion(in)).Add(rate.PerMillion(out))
}
