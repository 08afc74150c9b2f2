package guard

import (
	"fmt"
	"slices"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/verdict"
)

// The rules for tool calls, one after the other: the list of allowed tools, schemas of
// arguments, tools that exclude each other, how often a tool may be called in a task,
// and which must have been called before. Totals of the task are read, not the history
// of calls, so a short history weakens no rule. A tool that must come first has to have
// been called in an earlier step: what is called in the same step has not run yet. Each
// rule is reported once for each tool, and no message quotes an argument.

// tools judges the tool calls of a step, one rule after the other.
func (k *checking) tools() {
	if len(k.step.ToolCalls) == 0 {
		return
	}
	t := &k.c.Tools
	if t.Allowed != nil {
		k.allowed()
	}
	if t.ArgSchemas != nil {
		k.arguments()
	}
	if t.Mutex != nil {
		k.mutex()
	}
	if t.BlastRadius != nil {
		k.blastRadius()
	}
	if t.Sequence != nil {
		k.sequence()
	}
}

func (k *checking) aboutTool(code string, class verdict.Status, tool, message string) {
	k.report(verdict.Reason{Code: code, Guard: "tool-calls", Class: class, Message: message, Subject: tool})
}

// first reports whether the i-th call is the first of its tool in this step, so
// that a rule is reported once for each tool.
func (k *checking) first(i int) bool {
	if len(k.step.ToolCalls) > fewTools {
		if k.firsts == nil {
			k.firsts = firstCalls(k.step.ToolCalls)
		}
		return k.firsts[i]
	}
	for j := range i {
		if k.step.ToolCalls[j].Name == k.step.ToolCalls[i].Name {
			return false
		}
	}
	return true
}

// firstCalls returns, for each call, whether it is the first of its tool.
func firstCalls(calls []verdict.ToolCall) []bool {
	firsts, seen := make([]bool, len(calls)), make(map[string]bool, len(calls))
	for i := range calls {
		firsts[i] = !seen[calls[i].Name]
		seen[calls[i].Name] = true
	}
	return firsts
}

func (k *checking) allowed() {
	for i := range k.step.ToolCalls {
		if tool := k.step.ToolCalls[i].Name; !slices.Contains(k.c.Tools.Allowed, tool) && k.first(i) {
			k.aboutTool("tool_not_allowed", verdict.Abort, tool, fmt.Sprintf("tool %q is not on the list of allowed tools", tool))
		}
	}
}

func (k *checking) arguments() {
	for i := range k.step.ToolCalls {
		call := &k.step.ToolCalls[i]
		schema := k.c.Tools.ArgSchemas[k.look.tools[i]]
		if schema == nil {
			continue
		}
		args := []byte(call.Args)
		if len(args) == 0 {
			args = []byte("null")
		}
		if err := anonymous(schema.Validate(args)); err != nil {
			k.aboutTool("tool_args_invalid", verdict.Retry, call.Name, fmt.Sprintf("the arguments of call %d, of tool %q, do not fit its schema: %v", i+1, call.Name, err))
		}
	}
}

// mutex finds two tools of one group, in this step or, with the scope task,
// between this step and earlier ones. The totals are read and not the history,
// so that a short history does not weaken the rule.
func (k *checking) mutex() {
	for i := range k.step.ToolCalls {
		tool := k.look.tools[i]
		groups := k.c.Tools.groupsByTool[tool]
		if len(groups) == 0 || !k.first(i) || k.inStep(tool, i) > 0 {
			continue
		}
		for _, g := range groups {
			if other := k.rival(i, g); other != "" {
				k.aboutTool("tool_mutex", verdict.Abort, tool, fmt.Sprintf("tools %q and %q exclude each other", tool, other))
			}
		}
	}
}

// rival returns another tool of the group that was called before, "" if there is
// none.
func (k *checking) rival(i, group int) string {
	for _, other := range k.c.Tools.Mutex[group] {
		if k.c.sameTool(other, k.step.ToolCalls[i].Name) {
			continue
		}
		if k.c.Tools.MutexScope == "task" && k.m.called(other) > 0 || k.inStep(other, i) > 0 {
			return other
		}
	}
	return ""
}

// inStep counts the calls of a tool among the first n of this step.
func (k *checking) inStep(tool string, n int) (calls int64) {
	for i := range n {
		if k.c.sameTool(k.step.ToolCalls[i].Name, tool) {
			calls++
		}
	}
	return calls
}

func (k *checking) blastRadius() {
	for i := range k.step.ToolCalls {
		tool := k.look.tools[i]
		limit, bounded := k.c.Tools.BlastRadius[tool]
		if !bounded || !k.first(i) || k.inStep(tool, i) > 0 {
			continue
		}
		if n := exact.AddSat(k.m.called(tool), k.inStep(tool, len(k.step.ToolCalls))); n > limit {
			k.over("tool_blast_radius", "tool-calls", fmt.Sprintf("the number of calls of tool %q", tool), limit, n).Subject = tool
		}
	}
}

// sequence wants the tool that must come first in an earlier step: what is
// called in the same step has not run yet.
func (k *checking) sequence() {
	for _, rule := range k.c.Tools.Sequence {
		if k.inStep(rule.Tool, len(k.step.ToolCalls)) > 0 && k.m.called(rule.RequiresPrev) == 0 {
			k.aboutTool("tool_sequence", verdict.Abort, rule.Tool, fmt.Sprintf("tool %q needs %q to have been called in an earlier step", rule.Tool, rule.RequiresPrev))
		}
	}
}
