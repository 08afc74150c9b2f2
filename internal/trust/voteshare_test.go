package trust_test

import (
	"encoding/json"
	"testing"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// TestWeightsInBillionths: stores of schema 2 and 3 hold weights of votes in whole
// billionths; logs with one above 1,000,000,000 could not be read.
func TestWeightsInBillionths(t *testing.T) {
	for text, want := range map[string]exact.Billionths{
		"1074514737": 1_074_514_737, "847297860": 847_297_860, "-182321557": -182_321_557, "1.074514737": 1_074_514_737,
		"0": 0, "3": 3_000_000_000, "-20.5": -20_500_000_000,
	} {
		v := trust.VoteShare{}
		if err := json.Unmarshal([]byte(`{"specialist":"q","weight":`+text+`,"n":1}`), &v); err != nil || v.Weight != want || v.SpecialistID != "q" || v.N != 1 {
			t.Errorf("a weight of %s is read as %+v, %v", text, v, err)
		}
	}
	for _, text := range []string{`{"weight":"many"}`, `{"weight":2e9}`, `{"n":"x"}`, `[]`} {
		if err := json.Unmarshal([]byte(text), &trust.VoteShare{}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	var v trust.VoteShare
	if err := json.Unmarshal([]byte(`{"specialist":"q"}`), &v); err != nil || v.Weight != 0 {
		t.Errorf("without a weight: %+v, %v", v, err)
	}
}
