package specialist

import (
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

// Usage is what an answer cost. The zero value says nothing about any of it.
type Usage struct {
	CostUSD         exact.Money
	LatencyMsec     int64
	NumInputTokens  int64
	NumOutputTokens int64
	Given           Given // which of the members are known
	Estimated       bool  // the cost is an estimate, the real one was never told

	// Calls is how many calls were made for it, repeated and repaired ones
	// included; if it is not given that is one. Unbilled is how many of them the
	// provider does not charge for, because it refused them.
	Calls, Unbilled int64

	Detail *UsageDetail // what the tokens were; nil for most. It must not be changed
}

// UsageDetail says what some of a Usage's tokens were. Zero means none, or that
// nothing was said of them. Cached input is part of NumInputTokens or not, as the
// provider of the model counts; everything else is part of its total.
type UsageDetail struct {
	CacheReadTokens    int64 `json:"cacheRead,omitempty"`
	CacheWrite5mTokens int64 `json:"cacheWrite5m,omitempty"` // kept for five minutes
	CacheWrite1hTokens int64 `json:"cacheWrite1h,omitempty"` // kept for an hour
	ReasoningTokens    int64 `json:"reasoning,omitempty"`
	AudioInputTokens   int64 `json:"audioInput,omitempty"`
	AudioOutputTokens  int64 `json:"audioOutput,omitempty"`
}

// Given is the set of known members of a Usage.
type Given uint8

// The members of a Usage.
const (
	CostGiven Given = 1 << iota
	LatencyGiven
	InputGiven
	OutputGiven
	CallsGiven
)

// Has reports whether all of the given members are known.
func (u Usage) Has(g Given) bool { return u.Given&g == g }

// Made returns how many calls were made: what u says, else one. It is never
// negative.
func (u Usage) Made() int64 {
	if !u.Has(CallsGiven) {
		return 1
	}
	return max(u.Calls, 0)
}

// Billed returns how many of the calls the provider charges for.
func (u Usage) Billed() int64 { return max(u.Made()-max(u.Unbilled, 0), 0) }

// WithCalls returns u with a known number of calls, and how many of them are not
// charged for.
func (u Usage) WithCalls(made, unbilled int64) Usage {
	u.Calls, u.Unbilled, u.Given = made, unbilled, u.Given|CallsGiven
	if made == 1 { // there is one way to say that
		u.Calls, u.Given = 0, u.Given&^CallsGiven
	}
	return u
}

// WithCost returns u with a known cost.
func (u Usage) WithCost(m exact.Money) Usage {
	u.CostUSD, u.Given = m, u.Given|CostGiven
	return u
}

// Plus returns what two asks cost together. A cost is known only if both are: a sum
// with a part that is not known would look like all of it. A usage that says nothing
// at all is none, and one of calls that nobody charges for has no cost to know.
func (u Usage) Plus(v Usage) Usage {
	switch {
	case v == (Usage{}):
		return u
	case u == (Usage{}):
		return v
	}
	sum := Usage{
		LatencyMsec:    exact.AddSat(u.LatencyMsec, v.LatencyMsec),
		NumInputTokens: exact.AddSat(u.NumInputTokens, v.NumInputTokens), NumOutputTokens: exact.AddSat(u.NumOutputTokens, v.NumOutputTokens),
		Given: (u.Given | v.Given) &^ CostGiven, Estimated: u.Estimated || v.Estimated, Detail: plusDetail(u.Detail, v.Detail),
	}.WithCalls(exact.AddSat(u.Made(), v.Made()), exact.AddSat(u.Unbilled, v.Unbilled))
	if u.costKnown() && v.costKnown() && (u.Given|v.Given)&CostGiven != 0 {
		return sum.WithCost(u.CostUSD.Add(v.CostUSD))
	}
	return sum
}

// costKnown reports whether there is nothing of the cost that is not known.
func (u Usage) costKnown() bool { return u.Has(CostGiven) || u.Billed() == 0 }

func plusDetail(a, b *UsageDetail) *UsageDetail {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return &UsageDetail{
		CacheReadTokens:    exact.AddSat(a.CacheReadTokens, b.CacheReadTokens),
		CacheWrite5mTokens: exact.AddSat(a.CacheWrite5mTokens, b.CacheWrite5mTokens),
		CacheWrite1hTokens: exact.AddSat(a.CacheWrite1hTokens, b.CacheWrite1hTokens),
		ReasoningTokens:    exact.AddSat(a.ReasoningTokens, b.ReasoningTokens),
		AudioInputTokens:   exact.AddSat(a.AudioInputTokens, b.AudioInputTokens),
		AudioOutputTokens:  exact.AddSat(a.AudioOutputTokens, b.AudioOutputTokens),
	}
}

// Clean returns u without what cannot be: a broken answer still costs what it says it
// cost, but it cannot give money back.
func (u Usage) Clean() Usage {
	u.CostUSD, u.LatencyMsec = max(u.CostUSD, 0), max(u.LatencyMsec, 0)
	u.NumInputTokens, u.NumOutputTokens = max(u.NumInputTokens, 0), max(u.NumOutputTokens, 0)
	u.Calls, u.Unbilled = max(u.Calls, 0), max(u.Unbilled, 0)
	return u
}

// Clip returns the first n bytes of a text, or a little less so that no character is cut
// in two, and a sign that something is missing; a text of n bytes or fewer as it is.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
