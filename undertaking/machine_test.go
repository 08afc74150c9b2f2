package undertaking_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/machines"
	"github.com/dialai/dialai/strategies"
	"github.com/dialai/dialai/undertaking"
)

// TestSameMoves: a copy may have other prompts, risks, guards, timers and approvals; each other
// edit is named.
func TestSameMoves(t *testing.T) {
	file, text, _ := machines.Read("undertaking")
	base := parse(t, "undertaking")
	for _, of := range []struct{ from, to, want string }{
		{`"hard_limit_usd": 20`, `"hard_limit_usd": 7`, ""},
		{`"maxError": 0.05`, `"maxError": 0.2`, ""},
		{`"quorum": "all"`, `"quorum": "any"`, "state verifying has another quorum"},
		{`"strategyFn": "seats"`, `"strategyFn": "firstProposal"`, "the machine lists"},
		{`"specialistId": "owner", "isHuman": true`, `"specialistId": "owner", "agent": "dialai"`, "has to list arbiter seats (seats), human owner"},
		{`"when": "= has(data.worker) && data.worker > 0"`, `"when": "= has(data.worker)"`, `has to when "= has(data.worker) && data.worker > 0"`},
		{`"passed": true`, `"passed": false`, "sets other members of the case by passed"},
		{`"target": "awaiting_human"`, `"target": "summoning"`, "state briefing has the transitions"},
	} {
		m, err := machine.Parse(file, []byte(strings.ReplaceAll(string(text), of.from, of.to)), strategies.Checks())
		if err != nil {
			t.Errorf("%s: %v", of.to, err)
			continue
		}
		switch err := undertaking.SameMoves(m, base); {
		case of.want == "" && err != nil, of.want != "" && (err == nil || !strings.Contains(err.Error(), of.want)):
			t.Errorf("%s instead of %s: %v, want %q", of.to, of.from, err, of.want)
		}
	}
}
