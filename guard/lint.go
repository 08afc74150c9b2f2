package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/internal/section"
	"github.com/dialai/dialai/machine"
)

// What is legal in a guards section and probably not meant. The section is read as the
// guard reads it, and then asked what can never happen: a tool that needs one which is
// not allowed, a limit that another one always reaches first, a cap on what nobody
// counts, a pattern without a text to look for, a keyword that JSON Schema does not
// have. Of defaults nothing is said, except where something that was written makes one
// useless.
//
// A state's section is looked at as it comes out over the machine's, and only what that
// adds is reported. A section that is not valid has no findings: its problems are told
// elsewhere.

// Members returns the names of the members that a guards section may have.
func Members() []string {
	return []string{
		"limits", "forbidden_patterns", "schema", "output_schema", "tool_calls", "cost", "packs", "loop_detection", "batch_loop", "budget", "retry", "profile", "store", "classifier", "truth",
	}
}

// Lint returns what is legal in a guards section but probably not meant: tools
// that can never be called, caps that see nothing, limits that are never reached,
// patterns that are slow, schemas with misspelt keywords. The profile is that of
// sections that do not name one. Codes are stable, and the problems have JSON
// pointers relative to the section. A section that is not valid has no findings.
// Of a machine's section over is nil; else it is a state's own, and the findings
// are those that it adds to the machine's.
func Lint(section, over []byte, profile Profile) []machine.Problem {
	if over == nil {
		return lintSection(section, profile)
	}
	merged, err := Merge(section, over)
	if err != nil {
		return nil
	}
	known := lintSection(section, profile)
	return slices.DeleteFunc(lintSection(merged, profile), func(p machine.Problem) bool { return slices.Contains(known, p) })
}

func lintSection(data []byte, profile Profile) []machine.Problem {
	if data == nil {
		return nil
	}
	c, problems := ParseAs(data, profile)
	if len(problems) > 0 {
		c, problems = parse(&section.Reader{}, data, profile, aMachine) // a machine's may have more
	}
	if len(problems) > 0 {
		return nil
	}
	l := &linter{c: c}
	_ = json.Unmarshal(data, &l.given) // it was read before; what is switched off is no object
	l.tools()
	l.cost()
	l.unseen()
	l.halves()
	l.packs()
	l.truth()
	l.patterns()
	l.loops()
	l.batches()
	l.schemas()
	return l.found
}

// A linter looks at one section.
type linter struct {
	c     *Config
	given struct { // as it is written, without defaults
		Loop         members `json:"loop_detection"`
		Store        members
		Batch        members `json:"batch_loop"`
		Cost         struct{ Prices members }
		Truth        struct{ Thresholds members }
		Schema       json.RawMessage
		OutputSchema json.RawMessage `json:"output_schema"`
		Tools        struct {
			ArgSchemas members `json:"arg_schemas"`
		} `json:"tool_calls"`
	}
	found []machine.Problem
}

// members are those of an object.
type members = map[string]json.RawMessage

func (l *linter) report(path, code, hint, format string, args ...any) {
	l.found = append(l.found, machine.Problem{Path: path, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// tools looks for rules that contradict each other.
func (l *linter) tools() {
	t := &l.c.Tools
	reported := map[string]bool{}
	for i, s := range t.Sequence {
		path := fmt.Sprintf("/tool_calls/sequence/%d", i)
		if why := t.unreachable(s.Tool); why != "" && !reported[s.Tool] {
			reported[s.Tool] = true
			l.report(path, "unreachable-tool", "drop one of the rules", "tool %q can never be called: %s", s.Tool, why)
		}
		l.allowed(path+"/tool", s.Tool)
		if !reported[s.Tool] { // else it was said why
			l.allowed(path+"/requires_prev", s.RequiresPrev)
		}
	}
	for i, group := range t.Mutex {
		for j, tool := range group {
			l.allowed(fmt.Sprintf("/tool_calls/mutex/%d/%d", i, j), tool)
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(t.BlastRadius)) {
		l.allowed("/tool_calls/blast_radius/"+machine.EscapePointer(tool), tool)
	}
	for _, tool := range slices.Sorted(maps.Keys(t.ArgSchemas)) {
		l.allowed("/tool_calls/arg_schemas/"+machine.EscapePointer(tool), tool)
	}
	for _, tool := range slices.Sorted(maps.Keys(t.PerTool)) {
		l.allowed("/tool_calls/tools/"+machine.EscapePointer(tool), tool)
	}
}

// allowed reports a rule about a tool that is not on the list.
func (l *linter) allowed(path, tool string) {
	if list := l.c.Tools.Allowed; list != nil && !slices.Contains(list, tool) {
		l.report(path, "tool-not-allowed", machine.DidYouMean(tool, list), "tool %q is not on the list of allowed tools, so it is never called", tool)
	}
}

// unreachable says why a tool that needs others first can never be called; "" if
// it can. It needs all of them, and what they need, in one task.
func (t *Tools) unreachable(tool string) string {
	needs := t.needs(tool)
	if slices.Contains(needs, tool) {
		return "it needs itself to have been called"
	}
	for _, need := range needs {
		if limit, bounded := t.BlastRadius[need]; bounded && limit == 0 {
			return fmt.Sprintf("it needs %q, which may be called 0 times", need)
		}
		if t.Allowed != nil && !slices.Contains(t.Allowed, need) {
			return fmt.Sprintf("it needs %q, which is not allowed", need)
		}
	}
	if t.MutexScope != "task" {
		return ""
	}
	all := append([]string{tool}, needs...)
	for i, a := range all {
		for _, b := range all[i+1:] {
			for _, group := range t.groupsByTool[a] {
				switch {
				case !slices.Contains(t.groupsByTool[b], group):
				case a == tool:
					return fmt.Sprintf("it needs %q and excludes it", b)
				default:
					return fmt.Sprintf("it needs %q and %q, which exclude each other", a, b)
				}
			}
		}
	}
	return ""
}

// needs returns the tools that must have been called before a tool can be.
func (t *Tools) needs(tool string) (needs []string) {
	for queue := []string{tool}; len(queue) > 0; queue = queue[1:] {
		for _, s := range t.Sequence {
			if s.Tool == queue[0] && !slices.Contains(needs, s.RequiresPrev) {
				needs = append(needs, s.RequiresPrev)
				queue = append(queue, s.RequiresPrev)
			}
		}
	}
	return needs
}

func (l *linter) patterns() {
	for i, f := range l.c.Forbidden {
		path := fmt.Sprintf("/forbidden_patterns/%d", i)
		switch {
		case f.pattern.Expr.MatchString(""):
			l.report(path, "pattern-matches-all", "say what must be there", "the pattern matches the empty text, so it forbids every output")
		case len(f.pattern.Literal) == 0:
			l.report(path, "slow-pattern", "let every match contain a fixed text", "there is no text that every match contains, so the pattern runs over every output")
		}
	}
}

// loops looks for limits that are never reached. Of defaults it says something
// only where history_limit is what makes them so.
func (l *linter) loops() {
	d, history := &l.c.Loop, l.c.Store.HistoryLimit
	never := func(member string, value int64, remedy, format string, args ...any) {
		name, _, _ := strings.Cut(member, "/")
		path := "/loop_detection/" + member
		if _, own := l.given.Loop[name]; !own {
			if path = "/store/history_limit"; l.given.Store["history_limit"] == nil || remedy != raiseHistory {
				return
			}
		}
		l.report(path, "never-fires", remedy, "%s is %d, which is never reached: %s", strings.ReplaceAll(member, "/", "."), value, fmt.Sprintf(format, args...))
	}
	// What is remembered and the step that is judged together make history + 1.
	steps := l.c.Limits.MaxSteps
	switch {
	case d.MaxStateVisits > history:
		never("max_state_visits", d.MaxStateVisits, raiseHistory, "only %d states are remembered", history)
	case steps != nil && d.MaxStateVisits >= *steps:
		never("max_state_visits", d.MaxStateVisits, raiseSteps, "limits.max_steps stops after %d", *steps)
	}
	if most := d.MaxOutputRepeats; most != nil && steps != nil && *most >= *steps {
		never("max_output_repeats", *most, raiseSteps, "limits.max_steps stops after %d", *steps)
	}
	if d.Mode == "overlap" && d.MaxRepeats > history {
		never("max_repeats", d.MaxRepeats, raiseHistory, "only %d outputs are remembered", history)
	}
	if d.Cycle != nil && 2*d.Cycle.Repeats > history+1 {
		never("cycle/repeats", d.Cycle.Repeats, raiseHistory, "only %d states are remembered", history)
	}
	if d.Near != nil && d.Near.Repeats > history+1 {
		never("near/repeats", d.Near.Repeats, raiseHistory, "only %d calls are remembered", history)
	}
}

// batches looks for limits of the batch loop guard that were given and do nothing.
func (l *linter) batches() {
	b := l.c.Batch
	if b == nil || b.Climbs() {
		return
	}
	warn, hard, mode := b.Limits()
	if l.given.Batch["warnThreshold"] != nil && warn == hard && mode != batch.OnLoopContinue {
		l.report("/batch_loop/warnThreshold", "never-fires", "lower it, or raise hardLimit", "nobody is warned: the hard limit stops at %d too", hard)
	}
	if steps := l.c.Limits.MaxSteps; l.given.Batch["hardLimit"] != nil && steps != nil && int64(hard) > *steps {
		l.report("/batch_loop/hardLimit", "never-fires", raiseSteps, "hardLimit is %d, which is never reached: limits.max_steps stops after %d", hard, *steps)
	}
}

const (
	raiseHistory = "raise store.history_limit, or lower it"
	raiseSteps   = "lower it"
)

// schemas looks for keywords that mean nothing.
func (l *linter) schemas() {
	l.schema("/schema", l.given.Schema)
	l.schema("/output_schema", l.given.OutputSchema)
	for _, tool := range slices.Sorted(maps.Keys(l.given.Tools.ArgSchemas)) {
		l.schema("/tool_calls/arg_schemas/"+machine.EscapePointer(tool), l.given.Tools.ArgSchemas[tool])
	}
}

// schema looks at one schema and at those below it.
func (l *linter) schema(path string, raw json.RawMessage) {
	l.found = append(l.found, machine.UnknownKeywords(path, raw)...)
}
