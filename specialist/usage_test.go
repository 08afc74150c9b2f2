package specialist_test

import (
	"encoding/json"
	"testing"

	"github.com/dialai/dialai/specialist"
)

// TestAppendUsage: only what is known is written, and what the tokens were comes
// back as it was.
func TestAppendUsage(t *testing.T) {
	detail := specialist.UsageDetail{CacheReadTokens: 1, CacheWrite5mTokens: 2, CacheWrite1hTokens: 3, ReasoningTokens: 4, AudioInputTokens: 5, AudioOutputTokens: 6}
	for _, c := range []struct {
		use  specialist.Usage
		want string
	}{
		{specialist.Usage{}, ``},
		{specialist.Usage{Given: specialist.InputGiven}.WithCost(500_000_000_000), `,"costUSD":0.5,"numInputTokens":0`},
		{specialist.Usage{Estimated: true, Detail: &specialist.UsageDetail{}}, `,"estimated":true,"tokenDetail":{}`},
		{specialist.Usage{NumOutputTokens: 9, Given: specialist.OutputGiven, Detail: &specialist.UsageDetail{ReasoningTokens: 7}}, `,"numOutputTokens":9,"tokenDetail":{"reasoning":7}`},
		{specialist.Usage{Detail: &detail}, `,"tokenDetail":{"cacheRead":1,"cacheWrite5m":2,"cacheWrite1h":3,"reasoning":4,"audioInput":5,"audioOutput":6}`},
	} {
		if got := string(specialist.AppendUsage(nil, c.use)); got != c.want {
			t.Errorf("%+v is written as %s, want %s", c.use, got, c.want)
		}
	}
	var read specialist.UsageDetail
	if err := json.Unmarshal(detail.Append(nil), &read); err != nil || read != detail {
		t.Errorf("read as %+v: %v", read, err)
	}
}
