package machine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestApprovalsAreResolved proves what lists of humans and groups come to, and that
// approvals have one canonical form (cases.md 4.1, 4.2).
func TestApprovalsAreResolved(t *testing.T) {
	const people = `"groups":{"finance":["alice","bob"],"legal":["carol","bob"]},"specialists":[
	  {"role":"proposer","specialistId":"alice","isHuman":true},{"role":"proposer","specialistId":"bob","isHuman":true},
	  {"role":"proposer","specialistId":"carol","isHuman":true},{"role":"proposer","specialistId":"dave","isHuman":true}]`
	for _, c := range []struct {
		deciders, approvals string
		canonical           string
		needed              int
		from                []string // nil: everybody who takes part
		each                int
	}{
		{``, `2`, `2`, 2, nil, 0},
		{``, `{"count":2}`, `2`, 2, nil, 0},
		{`"deciders":["group:finance","dave","alice"],`, `2`, `2`, 2, []string{"alice", "bob", "dave"}, 0},
		{``, `{"from":["group:legal","alice"]}`, `{"from":["group:legal","alice"]}`, 1, []string{"carol", "bob", "alice"}, 0},
		{`"deciders":["group:finance","carol"],`, `{"from":["group:legal","dave"]}`, `{"from":["group:legal","dave"]}`, 1, []string{"carol", "bob"}, 0},
		{``, `{"each":["group:legal","group:finance"],"exclude":["previous"]}`, `{"each":["group:legal","group:finance"],"exclude":["previous"]}`, 2, nil, 2},
		{``, `{"count":1,"each":["group:legal","group:finance"]}`, `{"count":1,"each":["group:legal","group:finance"]}`, 2, nil, 2},
		{``, `{"count":3,"each":["group:legal"]}`, `{"count":3,"each":["group:legal"]}`, 3, nil, 1},
	} {
		text := `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{` + c.deciders + `"transitions":{"t":{"target":"b","approvals":` + c.approvals + `}}},"b":{}},` + people + `}`
		checks := machine.Checks{Stored: strings.Contains(c.approvals, `"count":1`)} // fewer than groups: no file may have that any more
		m, err := machine.Parse("m.json", []byte(text), checks)
		if err != nil {
			t.Errorf("%s%s: %v", c.deciders, c.approvals, err)
			continue
		}
		rule := m.Initial().Transition("t").Approvals
		if rule.Needed != c.needed || !slices.Equal(rule.From, c.from) || (rule.From == nil) != (c.from == nil) || len(rule.Each) != c.each {
			t.Errorf("%s%s comes to %+v", c.deciders, c.approvals, *rule)
		}
		written, _ := m.Definition().States[0].Transitions[0].Approvals.MarshalJSON()
		if got := string(written); strings.TrimSpace(got) != c.canonical {
			t.Errorf("%s is written %s", c.approvals, got)
		}
		if again, err := machine.Compile(m.Definition(), checks); err != nil || again.Digest() != m.Digest() {
			t.Errorf("%s: compiled again: %v", c.approvals, err)
		}
	}
}
