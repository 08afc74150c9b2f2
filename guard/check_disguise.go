package guard

import (
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// A loop is in disguise if each of its rounds differs from the one before only in
// what says nothing: characters that nobody sees, or a nonce, which is made anew for
// every call. Where loop_detection.normalize is set (in the profile strict), outputs,
// arguments and the metaJson of transitions are compared without them, names of tools and
// results without what nobody sees (a nonce may be the news in a result); what is judged
// otherwise, recorded and executed stays as it was said.
//
// A nonce is known by its name. A value that only looks like one, such as a UUID, may
// as well be what the call is about, one order after another: calls that differ in
// nothing else are counted as almost the same (near), which warns and stops nobody.

// toolOf returns the name under which calls of a tool are counted and its rules looked
// up: where loops in disguise are looked for, the one that is seen, so that no limit is
// had twice.
func (c *Config) toolOf(name string) string {
	if !c.Loop.Normalize || text.FirstUnseen(text.BytesOf(name)) < 0 {
		return name
	}
	return string(text.AppendSeen(nil, text.BytesOf(name)))
}

// sameTool reports whether two names are those of one tool as far as a loop goes.
func (c *Config) sameTool(a, b string) bool {
	return a == b || c.Loop.Normalize && text.SameSeen(text.BytesOf(a), text.BytesOf(b))
}

// normalizes reports whether the arguments of a tool are compared without what
// disguises a loop. A tool of which the configuration says what counts, or what does
// not, is taken at its word.
func (c *Config) normalizes(tool string) bool {
	if !c.Loop.Normalize {
		return false
	}
	rule := c.Tools.PerTool[tool]
	return rule.LoopKey == nil && rule.Volatile == nil
}

// readSeen reads an output that has characters that nobody sees once more, without
// them, for what it is compared by. Patterns and packs read all of it.
func (l *look) readSeen(c *Config, s *verdict.Step) {
	plain := looks.Get().(*look)
	defer plain.release()
	plain.seen = text.AppendSeen(plain.seen[:0], text.BytesOf(s.Output))
	plain.output = outputMark{grams: plain.output.grams[:0], print: plain.output.print, context: l.output.context}
	plain.truncated, plain.text.Lower = false, plain.text.Lower[:0]
	said := verdict.Step{HasOutput: true, Output: text.StringOf(plain.seen), Canned: s.Canned, Human: s.Human}
	plain.readPlain(c, &said)
	l.output, plain.output, l.truncated = plain.output, l.output, plain.truncated
}

// alike returns how many calls in a row, the only one of a step included, are the same
// but for values that look made up for the occasion, without news in between.
func (m *memory) alike(c *Config, s *verdict.Step, l *look) int64 {
	n := m.calls.len()
	if c.Loop.Near == nil || len(s.ToolCalls) != 1 || n == 0 || !c.normalizes(s.ToolCalls[0].Name) {
		return 1
	}
	call, then, now := &s.ToolCalls[0], m.calls.at(n-1), &l.calls[0]
	rule := c.Tools.PerTool[call.Name]
	switch {
	case !c.sameTool(m.tools[then.Tool].Name, call.Name), rule.Exempt, rule.Poll,
		c.Loop.ProgressAware && then.Context != now.Context,
		then.Result != 0 && now.Result != 0 && then.Result != now.Result,
		l.lastingArgs(c, call.Name, call.Args) != l.lastingArgs(c, call.Name, m.last):
		return 1
	}
	return max(m.run, 1) + 1
}

// lastingArgs hashes what counts of arguments that were checked, without what looks
// made up for the occasion.
func (l *look) lastingArgs(c *Config, tool string, args []byte) uint64 {
	args, err := counted(c, tool, args)
	if err != nil || len(args) == 0 {
		return text.HashNull()
	}
	h, _ := l.hasher.HashLasting(args)
	return h
}
