package guard

import (
	"slices"
	"unsafe"
)

// memory is what loop detection and the rules for tools remember of a task. A
// State shares it with older ones, so it is changed only in a copy; a Guard owns
// that of its tasks and changes it in place.
type memory struct {
	visits  []visit      // the newest last, at most history_limit
	outputs []outputMark // likewise
	calls   []callMark   // likewise
	facts   []fact       // one for each transition that brought metaJson
	tools   []toolCount  // of all committed steps
	last    []byte       // arguments of the newest call
	streak  int64        // how many outputs in a row were the newest one
	context uint64       // what the task knew at the newest output
	batch   BatchState   // a value
}

// A visit is a stay in a state, with a digest of all that was known then.
type visit struct {
	state   string
	context uint64
}

// A fact is the hash of the metaJson a transition was last executed with.
type fact struct {
	transition string
	hash       uint64
}

// A toolCount is how often a tool was called.
type toolCount struct {
	name  string
	calls int64
}

// tool returns the index of a tool, -1 if it was never called.
func (m *memory) tool(name string) int32 {
	for i := range m.tools {
		if m.tools[i].name == name {
			return int32(i)
		}
	}
	return -1
}

// called returns how often a tool was called.
func (m *memory) called(name string) int64 {
	if i := m.tool(name); i >= 0 {
		return m.tools[i].calls
	}
	return 0
}

// clone returns a copy that can be changed without m noticing.
func (m *memory) clone() *memory {
	n := *m
	n.visits, n.outputs, n.calls = slices.Clone(m.visits), slices.Clone(m.outputs), slices.Clone(m.calls)
	n.facts, n.tools, n.last = slices.Clone(m.facts), slices.Clone(m.tools), slices.Clone(m.last)
	return &n
}

// push adds an item to a list of at most limit. It returns the list and the item
// that had to go, whose memory may be used again.
func push[T any](list []T, item T, limit int64) (_ []T, out T) {
	if list == nil {
		list = make([]T, 0, min(limit, DefaultHistoryLimit)) // no more than it will need
	}
	if extra := int64(len(list)) + 1 - limit; extra > 0 && len(list) > 0 {
		out = list[0]
		n := copy(list, list[min(extra, int64(len(list))):])
		list = list[:n]
	}
	return append(list, item), out
}

// add remembers a committed step. owned says that what is dropped may be used
// again.
func (m *memory) add(c *Config, s *Step, l *look, owned bool) {
	limit := c.Store.HistoryLimit
	m.context = l.output.context
	if s.State != "" && c.countsVisit(m, s) {
		m.visits, _ = push(m.visits, visit{s.State, l.output.context}, limit)
	}
	if s.says() {
		m.addOutput(c, l, limit, owned)
	}
	for i, mark := range l.calls {
		mark.tool = m.count(s.ToolCalls[i].Name)
		m.calls, _ = push(m.calls, mark, limit)
	}
	m.addBatch(c, s)
	if n := len(s.ToolCalls); n > 0 {
		m.last = append(m.last[:0], s.ToolCalls[n-1].Args...)
	}
}

func (m *memory) addOutput(c *Config, l *look, limit int64, owned bool) {
	if n := len(m.outputs); n > 0 && m.outputs[n-1].hash == l.output.hash && m.outputs[n-1].context == l.output.context {
		m.streak++
	} else {
		m.streak = 1
	}
	mark := l.output
	var old outputMark
	if owned && int64(len(m.outputs)) >= limit {
		old = m.outputs[0]
	}
	mark.grams = append(old.grams[:0], l.output.grams...)
	mark.print.marks = append(old.print.marks[:0], l.output.print.marks...)
	m.outputs, _ = push(m.outputs, mark, limit)
}

// count counts one call of a tool and returns its index.
func (m *memory) count(tool string) int32 {
	i := m.tool(tool)
	if i < 0 {
		i = int32(len(m.tools))
		m.tools = append(m.tools, toolCount{tool, 0})
	}
	m.tools[i].calls++
	return i
}

// countsVisit reports whether a step is a visit of its own.
func (c *Config) countsVisit(m *memory, s *Step) bool {
	n := len(m.visits)
	return c.Loop.VisitCounting != "entries" || n == 0 || m.visits[n-1].state != s.State
}

// stringOf shares bytes that nobody changes.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf shares the bytes of a string, for reading only.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
