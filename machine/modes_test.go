package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/dialai/dialai/machine"
)

const (
	bothStrategies  = "Provide either strategyFn (custom function) or strategyFnName (built-in strategy), not both."
	unusedModel     = "modelId is only used with contextFn or contextWebhookUrl. "
	functionNoModel = unusedModel + "A strategyFn returns proposals directly and does not need a model."
	builtInNoModel  = unusedModel + "A strategyFnName references a built-in strategy and does not need a model."
	functionOrModel = "Provide either strategyFn (you handle everything) or contextFn + modelId (orchestrator calls the LLM), not both."
	contextNeeds    = " provides context for an LLM to generate proposals. You must also specify modelId."
	noToken         = "Webhook URLs require webhookTokenName for authentication."
	noMode          = "No execution mode specified. Specialist must specify one of: strategyFn, strategyFnName, strategyWebhookUrl, contextFn + modelId, or contextWebhookUrl + modelId."
	several         = "Multiple execution modes specified for proposer. Must provide exactly one."
	noArbiterMode   = "No execution mode specified. Specialist must specify one of: strategyFn, strategyFnName, or strategyWebhookUrl."
	noArbiterModel  = "Arbiters cannot use LLM-based modes. Arbitration must be deterministic."
	severalArbiter  = "Multiple execution modes specified for arbiter. Must provide exactly one."
)

// specialist makes one from the letters of what it has: f strategyFn, n
// strategyFnName, u strategyWebhookUrl, c contextFn, w contextWebhookUrl,
// m modelId, t webhookTokenName, h isHuman, a agent.
func specialist(role machine.Role, has string) machine.Specialist {
	s := machine.Specialist{Role: role, SpecialistID: "s"}
	for _, letter := range has {
		switch letter {
		case 'f':
			s.StrategyFn = "fn"
		case 'n':
			s.StrategyFnName = map[machine.Role]string{machine.Proposer: "random", machine.Arbiter: "firstProposal"}[role]
		case 'u':
			s.StrategyWebhookURL = "https://example.com"
		case 'c':
			s.ContextFn = "fn"
		case 'w':
			s.ContextWebhookURL = "https://example.com"
		case 'm':
			s.ModelID = "model"
		case 't':
			s.WebhookTokenName = "TOKEN"
		case 'a':
			s.Agent = "claude"
		case 'h':
			s.IsHuman = true
		}
	}
	return s
}

// TestModes is the table of forbidden combinations, row by row: the first row
// that matches is the one that is said.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		role machine.Role
		has  string
		want string
	}{
		{machine.Proposer, "f", ""}, {machine.Proposer, "n", ""}, {machine.Proposer, "ut", ""}, {machine.Proposer, "cm", ""}, {machine.Proposer, "wmt", ""},
		{machine.Proposer, "ft", ""}, {machine.Proposer, "h", ""}, {machine.Proposer, "hf", ""}, {machine.Proposer, "hut", ""}, {machine.Proposer, "hcm", ""},
		{machine.Proposer, "fn", bothStrategies}, {machine.Proposer, "fnm", bothStrategies}, {machine.Proposer, "fnucwmt", bothStrategies}, {machine.Proposer, "hfn", bothStrategies},
		{machine.Proposer, "fm", functionNoModel}, {machine.Proposer, "fcm", functionNoModel}, {machine.Proposer, "fum", functionNoModel},
		{machine.Proposer, "nm", builtInNoModel}, {machine.Proposer, "ncm", builtInNoModel}, {machine.Proposer, "hnm", builtInNoModel},
		{machine.Proposer, "fc", functionOrModel}, {machine.Proposer, "fcu", functionOrModel},
		{machine.Proposer, "c", "contextFn" + contextNeeds}, {machine.Proposer, "nc", "contextFn" + contextNeeds}, {machine.Proposer, "cw", "contextFn" + contextNeeds}, {machine.Proposer, "hc", "contextFn" + contextNeeds},
		{machine.Proposer, "w", "contextWebhookUrl" + contextNeeds}, {machine.Proposer, "wt", "contextWebhookUrl" + contextNeeds}, {machine.Proposer, "fw", "contextWebhookUrl" + contextNeeds},
		{machine.Proposer, "u", noToken}, {machine.Proposer, "wm", noToken}, {machine.Proposer, "uf", noToken}, {machine.Proposer, "hu", noToken}, {machine.Proposer, "cwm", noToken},
		{machine.Proposer, "", noMode}, {machine.Proposer, "t", noMode}, {machine.Proposer, "m", noMode}, {machine.Proposer, "hm", noMode},
		{machine.Proposer, "fut", several}, {machine.Proposer, "nut", several}, {machine.Proposer, "utcm", several}, {machine.Proposer, "utm", several}, {machine.Proposer, "cwmt", several}, {machine.Proposer, "uwmt", several}, {machine.Proposer, "hfut", several},
		{machine.Proposer, "a", ""}, {machine.Proposer, "at", ""}, {machine.Proposer, "ha", ""}, {machine.Proposer, "am", several}, {machine.Proposer, "af", several}, {machine.Proposer, "an", several}, {machine.Proposer, "aut", several}, {machine.Proposer, "acm", several}, {machine.Proposer, "ac", "contextFn" + contextNeeds},

		{machine.Arbiter, "f", ""}, {machine.Arbiter, "n", ""}, {machine.Arbiter, "ut", ""}, {machine.Arbiter, "ft", ""},
		{machine.Arbiter, "fn", bothStrategies}, {machine.Arbiter, "fnm", bothStrategies}, {machine.Arbiter, "fnu", bothStrategies},
		{machine.Arbiter, "u", noToken}, {machine.Arbiter, "uc", noToken}, {machine.Arbiter, "fu", noToken},
		{machine.Arbiter, "c", noArbiterModel}, {machine.Arbiter, "w", noArbiterModel}, {machine.Arbiter, "m", noArbiterModel}, {machine.Arbiter, "cm", noArbiterModel}, {machine.Arbiter, "fm", noArbiterModel}, {machine.Arbiter, "utm", noArbiterModel}, {machine.Arbiter, "wm", noArbiterModel}, {machine.Arbiter, "a", noArbiterModel}, {machine.Arbiter, "na", noArbiterModel},
		{machine.Arbiter, "", noArbiterMode}, {machine.Arbiter, "t", noArbiterMode},
		{machine.Arbiter, "fut", severalArbiter}, {machine.Arbiter, "nut", severalArbiter},
	} {
		s := specialist(c.role, c.has)
		err := s.CheckMode()
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s with %q: %q, want %q", c.role, c.has, got, c.want)
		}
		var mode *machine.ModeError
		if err != nil && !errors.As(err, &mode) {
			t.Errorf("%s with %q: %T, want a *ModeError", c.role, c.has, err)
		}
		if none := c.want == noMode || c.want == noArbiterMode; errors.Is(err, machine.ErrNoMode) != none {
			t.Errorf("%s with %q: errors.Is(err, ErrNoMode) = %t", c.role, c.has, !none)
		}
		inFile(t, s, c.has, c.want)
	}
}

// inFile checks that a file says the same, in the list of the machine and in
// that of a state, but where a list lets a mode be left out.
func inFile(t *testing.T, s machine.Specialist, has, want string) {
	t.Helper()
	entry, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		place   string
		text    string
		mayLack bool // a mode
	}{
		{"machine", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{}},"specialists":[%s]}`, s.Role == machine.Arbiter},
		{"state", `{"machineName":"m","initialState":"a","goalState":"a","states":{"a":{"specialists":[%s]}}}`, has == ""},
	} {
		_, err := machine.Parse("m.json", fmt.Appendf(nil, c.text, entry), checks())
		if want == "" || c.mayLack && (want == noMode || want == noArbiterMode) {
			if err != nil {
				t.Errorf("%s: %s: %v", c.place, entry, err)
			}
			continue
		}
		var invalid *machine.Error
		if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || invalid.Problems[0].Code != "bad-mode" || invalid.Problems[0].Message != want {
			t.Errorf("%s: %s: %v, want %q", c.place, entry, err, want)
		}
	}
}
