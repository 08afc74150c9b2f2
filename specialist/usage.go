package specialist

import "github.com/dialai/dialai/exact"

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
