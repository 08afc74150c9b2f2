package llm

import (
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// plus returns what two calls cost together. A cost is known only if both are: a
// sum with a part that is not known would look like all of it. A call that says
// nothing at all is none.
func plus(a, b specialist.Usage) specialist.Usage {
	switch {
	case b == (specialist.Usage{}):
		return a
	case a == (specialist.Usage{}):
		return b
	}
	sum := specialist.Usage{
		CostUSD: a.CostUSD.Add(b.CostUSD), LatencyMsec: exact.AddSat(a.LatencyMsec, b.LatencyMsec),
		NumInputTokens: exact.AddSat(a.NumInputTokens, b.NumInputTokens), NumOutputTokens: exact.AddSat(a.NumOutputTokens, b.NumOutputTokens),
		Given: (a.Given | b.Given) &^ specialist.CostGiven, Estimated: a.Estimated || b.Estimated, Detail: plusDetail(a.Detail, b.Detail),
	}
	if a.Has(specialist.CostGiven) && b.Has(specialist.CostGiven) {
		return sum.WithCost(sum.CostUSD)
	}
	sum.CostUSD = 0
	return sum
}

func plusDetail(a, b *specialist.UsageDetail) *specialist.UsageDetail {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	return &specialist.UsageDetail{
		CacheReadTokens:    exact.AddSat(a.CacheReadTokens, b.CacheReadTokens),
		CacheWrite5mTokens: exact.AddSat(a.CacheWrite5mTokens, b.CacheWrite5mTokens),
		CacheWrite1hTokens: exact.AddSat(a.CacheWrite1hTokens, b.CacheWrite1hTokens),
		ReasoningTokens:    exact.AddSat(a.ReasoningTokens, b.ReasoningTokens),
		AudioInputTokens:   exact.AddSat(a.AudioInputTokens, b.AudioInputTokens),
		AudioOutputTokens:  exact.AddSat(a.AudioOutputTokens, b.AudioOutputTokens),
	}
}
