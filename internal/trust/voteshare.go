package trust

import (
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/exact"
)

// UnmarshalJSON reads a vote. Logs of before schema 4 of the SQLite store may hold its
// weight in whole billionths, 847297860 for 0.84729786: log-odds of billionths are
// below 21, so a whole number of a thousand or more is one of those.
func (v *VoteShare) UnmarshalJSON(data []byte) error {
	type plain VoteShare
	read := struct {
		*plain
		Weight json.Number `json:"weight"`
	}{plain: (*plain)(v)}
	if err := json.Unmarshal(data, &read); err != nil || read.Weight == "" {
		return err
	}
	if whole, err := read.Weight.Int64(); err == nil && (whole >= 1000 || whole <= -1000) && !strings.ContainsAny(read.Weight.String(), ".eE") {
		v.Weight = exact.Billionths(whole)
		return nil
	}
	return v.Weight.UnmarshalJSON([]byte(read.Weight))
}
