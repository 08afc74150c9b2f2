package guard

import (
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
)

// Parse reads one guards section of a machine, a JSON object; state says that it
// is a state's own. The profile is strict unless the section says otherwise. The
// problems have JSON pointers relative to the section.
func Parse(data []byte, state bool) (*Config, []machine.Problem) {
	return parse(&reader{}, data, Strict, state, true)
}

// ParseStored reads the section of a state of a machine that a store holds, the
// machine's own merged into it. Rules that came after it was stored do not count
// (see [machine.Checks].Stored): the problems are about what cannot be read at all.
func ParseStored(data []byte) (*Config, []machine.Problem) {
	return parse(&reader{stored: true}, data, Strict, false, true)
}

// ParseAs reads a section for a [Guard], outside of machines, with the default
// profile given. It has no truth gate: use [NewGate].
func ParseAs(data []byte, profile Profile) (*Config, []machine.Problem) {
	return parse(&reader{}, data, profile, false, false)
}

func parse(r *reader, data []byte, profile Profile, state, inMachine bool) (*Config, []machine.Problem) {
	tidy, err := exact.Tidy(data)
	if err != nil {
		return nil, []machine.Problem{{Code: "bad-json", Message: "guards is not one JSON value: " + err.Error()}}
	}
	var named struct{ Profile json.RawMessage }
	if json.Unmarshal(tidy, &named) == nil && named.Profile != nil {
		(&reader{}).oneOf((*string)(&profile), string(Strict), string(Compat))("", named.Profile)
	}
	switch {
	case profile == Compat:
		r.earlier = machine.CheckEarlier
	case r.stored:
		r.earlier = machine.IgnoreEarlier
	}
	c := Defaults(profile)
	var alias *machine.Schema
	members := []member{
		{"limits", readLimits(r, &c.Limits)},
		{"forbidden_patterns", readPatterns(r, &c.Forbidden)},
		{"packs", readPacks(r, &c.Packs)},
		{"schema", r.schema(&c.Schema)},
		{"output_schema", r.schema(&alias)},
		{"tool_calls", readTools(r, &c.Tools)},
		{"cost", readCost(r, &c.Cost)},
		{"loop_detection", readLoops(r, &c.Loop)},
		{"batch_loop", readBatchLoop(r, &c.Batch)},
		{"retry", r.object([]member{{"max_attempts", r.optionalCount(&c.Retry.MaxAttempts)}})},
	}
	if !state { // these are the machine's alone
		members = append(members,
			member{"budget", readBudget(r, &c.Budget)},
			member{"profile", r.oneOf((*string)(&c.Profile), string(Strict), string(Compat))},
			member{"store", readStore(r, &c.Store)})
	}
	members = append(members, member{"classifier", readClassifier(r, &c.Classifier, inMachine, state)})
	if inMachine { // elsewhere nobody knows the question that was answered
		members = append(members, member{"truth", readTruth(r, &c.Truth, profile, state)})
	}
	r.object(members)("", tidy)
	if c.Schema != nil && alias != nil {
		r.report("/output_schema", "contradiction", "both schema and output_schema are given, and they are one thing", "keep one of them")
	}
	if c.Schema == nil {
		c.Schema = alias
	}
	checkConfig(r, c)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	c.Tools.compile()
	if c.Batch != nil && c.Profile == Strict {
		c.Batch = c.Batch.Strict(c.Tools.volatile())
	}
	return c, nil
}

// checkConfig finds what no member shows by itself.
func checkConfig(r *reader, c *Config) {
	if low, high := c.Limits.OutputMin, c.Limits.OutputMax; low != nil && high != nil && *low > *high {
		r.report("/limits/output_min", "contradiction", fmt.Sprintf("output_min is %d, above output_max, which is %d", *low, *high), "")
	}
	group := map[string]int{}
	for i, tools := range c.Tools.Mutex {
		if len(tools) < 2 {
			r.refuse(fmt.Sprintf("/tool_calls/mutex/%d", i), "too-few", fmt.Sprintf("group %d has %s: a tool excludes others, not itself", i, membersText(len(tools))), "name two tools or more, or remove the group; tool_calls.blast_radius limits the calls of one tool")
		}
		for _, tool := range tools {
			if other, seen := group[tool]; seen {
				r.report(fmt.Sprintf("/tool_calls/mutex/%d", i), "duplicate-member", fmt.Sprintf("%q is in group %d already", tool, other), "a tool belongs to one group; join the groups")
			}
			group[tool] = i
		}
	}
}

func membersText(n int) string {
	if n == 1 {
		return "one member"
	}
	return fmt.Sprintf("%d members", n)
}

// volatile returns the members that do not count, of the tools that say so.
func (t *Tools) volatile() map[string][]string {
	names := map[string][]string{}
	for tool, rule := range t.PerTool {
		if rule.Volatile != nil {
			names[tool] = rule.Volatile
		}
	}
	return names
}

// compile prepares what the checks look up.
func (t *Tools) compile() {
	for i, group := range t.Mutex {
		for _, tool := range group {
			if t.groupsByTool == nil {
				t.groupsByTool = map[string][]int{}
			}
			t.groupsByTool[tool] = append(t.groupsByTool[tool], i)
		}
	}
}

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
		for k, v := range own {
			members[k] = v
		}
		merged, err := json.Marshal(members)
		if err != nil {
			return nil, err
		}
		base[name] = merged
	}
	return json.Marshal(base)
}
