package guard

import (
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/packs"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/internal/truth"
	"github.com/dialai/dialai/machine"
)

// An owner says whose a section is.
type owner int

const (
	aGuards  owner = iota // a file of its own, for a Guard outside of machines
	aMachine              // a machine's, for all its states
	aState                // a state's own, which takes the rest from the machine's
)

// Parse reads one guards section of a machine, a JSON object; state says that it
// is a state's own. The profile is strict unless the section says otherwise. The
// problems have JSON pointers relative to the section.
func Parse(data []byte, state bool) (*Config, []machine.Problem) {
	of := aMachine
	if state {
		of = aState
	}
	return parse(&section.Reader{}, data, Strict, of)
}

// ParseStored reads the section of a state of a machine that a store holds, the
// machine's own merged into it. Rules that came after it was stored do not count
// (see [machine.Checks].Stored): the problems are about what cannot be read at all.
func ParseStored(data []byte) (*Config, []machine.Problem) {
	return parse(&section.Reader{Stored: true}, data, Strict, aMachine)
}

// ParseAs reads a section for a [Guard], outside of machines, with the default
// profile given. It has no truth gate: see [truth.Gate].
func ParseAs(data []byte, profile Profile) (*Config, []machine.Problem) {
	return parse(&section.Reader{}, data, profile, aGuards)
}

func parse(r *section.Reader, data []byte, profile Profile, of owner) (*Config, []machine.Problem) {
	tidy, err := jsontext.Tidy(data)
	if err != nil {
		return nil, []machine.Problem{{Code: "bad-json", Message: "guards is not one JSON value: " + err.Error()}}
	}
	var named struct{ Profile json.RawMessage }
	if json.Unmarshal(tidy, &named) == nil && named.Profile != nil {
		(&section.Reader{}).OneOf((*string)(&profile), string(Strict), string(Compat))("", named.Profile)
	}
	switch {
	case profile == Compat:
		r.Earlier = machine.CheckEarlier
	case r.Stored:
		r.Earlier = machine.IgnoreEarlier
	}
	c := Defaults(profile)
	var alias *machine.Schema
	members := []section.Member{
		{Name: "limits", Read: readLimits(r, &c.Limits)},
		{Name: "forbidden_patterns", Read: readPatterns(r, &c.Forbidden)},
		{Name: "packs", Read: packs.Section(r, &c.Packs)},
		{Name: "schema", Read: r.Schema(&c.Schema)},
		{Name: "output_schema", Read: r.Schema(&alias)},
		{Name: "tool_calls", Read: readTools(r, &c.Tools)},
		{Name: "cost", Read: readCost(r, &c.Cost)},
		{Name: "loop_detection", Read: readLoops(r, &c.Loop)},
		{Name: "batch_loop", Read: batch.Read(r, &c.Batch)},
		{Name: "retry", Read: r.Object([]section.Member{{Name: "max_attempts", Read: r.OptionalCount(&c.Retry.MaxAttempts)}})},
	}
	if of != aState { // these are the machine's alone
		members = append(members,
			section.Member{Name: "budget", Read: readBudget(r, &c.Budget)},
			section.Member{Name: "profile", Read: r.OneOf((*string)(&c.Profile), string(Strict), string(Compat))},
			section.Member{Name: "store", Read: readStore(r, &c.Store)})
	}
	members = append(members, section.Member{Name: "classifier", Read: readClassifier(r, &c.Classifier, of)})
	if of != aGuards { // elsewhere nobody knows the question that was answered
		defaults := truth.Defaults()
		if profile == Strict {
			defaults = truth.StrictDefaults()
		}
		members = append(members, section.Member{Name: "truth", Read: truth.Read(r, &c.Truth, defaults, of == aState)})
	}
	r.Object(members)("", tidy)
	if c.Schema != nil && alias != nil {
		r.Report("/output_schema", "contradiction", "both schema and output_schema are given, and they are one thing", "keep one of them")
	}
	if c.Schema == nil {
		c.Schema = alias
	}
	checkConfig(r, c)
	if len(r.Problems) > 0 {
		return nil, r.Problems
	}
	c.Tools.compile()
	if c.Batch != nil && c.Profile == Strict {
		c.Batch = c.Batch.Strict(c.Tools.volatile())
	}
	return c, nil
}

// checkConfig finds what no member shows by itself.
func checkConfig(r *section.Reader, c *Config) {
	if low, high := c.Limits.OutputMin, c.Limits.OutputMax; low != nil && high != nil && *low > *high {
		r.Report("/limits/output_min", "contradiction", fmt.Sprintf("output_min is %d, above output_max, which is %d", *low, *high), "")
	}
	group := map[string]int{}
	for i, tools := range c.Tools.Mutex {
		if few := [...]string{"0 members", "one member"}; len(tools) < len(few) {
			r.Refuse(fmt.Sprintf("/tool_calls/mutex/%d", i), "too-few", fmt.Sprintf("group %d has %s: a tool excludes others, not itself", i, few[len(tools)]), "name two tools or more, or remove the group; tool_calls.blast_radius limits the calls of one tool")
		}
		for _, tool := range tools {
			if other, seen := group[tool]; seen {
				r.Report(fmt.Sprintf("/tool_calls/mutex/%d", i), "duplicate-member", fmt.Sprintf("%q is in group %d already", tool, other), "a tool belongs to one group; join the groups")
			}
			group[tool] = i
		}
	}
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
