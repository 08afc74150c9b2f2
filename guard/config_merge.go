package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/machine"
)

// Check is [machine.Checks].Guards.
func Check(data []byte, state bool) []machine.Problem {
	_, problems := Parse(data, state)
	return problems
}

// Merge returns the section of a state laid over the machine's, member by
// member: limits.max_steps of the state wins over that of the machine, the rest
// of limits stays. Lists and maps are replaced whole. Both may be nil.
func Merge(machineSection, stateSection []byte) ([]byte, error) {
	if stateSection == nil {
		return machineSection, nil
	}
	if machineSection == nil {
		return stateSection, nil
	}
	base, over := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(machineSection, &base); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(stateSection, &over); err != nil {
		return nil, err
	}
	for name, section := range over {
		members := map[string]json.RawMessage{}
		if json.Unmarshal(base[name], &members) != nil || members == nil {
			base[name] = section
			continue
		}
		var own map[string]json.RawMessage
		if json.Unmarshal(section, &own) != nil || own == nil { // null switches off
			base[name] = section
			continue
		}
		maps.Copy(members, own)
		merged, err := json.Marshal(members)
		if err != nil {
			return nil, err
		}
		base[name] = merged
	}
	return json.Marshal(base)
}

// CheckIn is [machine.Checks].GuardsIn: it reports transitions that a section says
// need the truth gate and that there are not, since a gate that never closes is
// worse than none; and what a state's section lacks or contradicts only together
// with the machine's.
func CheckIn(machineSection, state []byte, transitions []string) (problems []machine.Problem) {
	section := machineSection
	if state != nil {
		section = state
		problems = checkTogether(machineSection, state)
	}
	var named struct {
		Truth struct{ When json.RawMessage }
	}
	var when []string
	if json.Unmarshal(section, &named) != nil || json.Unmarshal(named.Truth.When, &when) != nil {
		return problems // "all", or reported already
	}
	for i, name := range when {
		if !slices.Contains(transitions, name) {
			problems = append(problems, machine.Problem{Path: fmt.Sprintf("/truth/when/%d", i), Code: "unknown-transition",
				Message: fmt.Sprintf("there is no transition %q, so the truth gate would never judge it", name), Hint: machine.DidYouMean(name, transitions)})
		}
	}
	return problems
}

// checkTogether returns the problems that neither of two sections has alone.
func checkTogether(machineSection, state []byte) (problems []machine.Problem) {
	if len(Check(state, true)) > 0 || machineSection != nil && len(Check(machineSection, false)) > 0 {
		return nil // those come first
	}
	merged, err := Merge(machineSection, state)
	if err != nil {
		return nil // they are objects, as was checked
	}
	for _, p := range Check(merged, false) {
		p.Message += ", once the machine's guards are added"
		problems = append(problems, p)
	}
	return problems
}
