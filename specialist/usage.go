package specialist

import (
	"unicode/utf8"

	"github.com/dialai/dialai/exact"
)

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
