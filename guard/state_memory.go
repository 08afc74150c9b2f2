package guard

import (
	"maps"
	"slices"

	"github.com/dialai/dialai/internal/batch"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/verdict"
)

// What loop detection remembers of a task. It holds hashes and marks, not texts: visits
// of states, fingerprints or n-grams of outputs, calls of tools, each in a ring of at
// most history_limit, each with a digest of what the task knew at that time. So a
// repetition with news can be told from one without.
//
// A State copies its memory before a change, and a Guard changes its own in place:
// owned says which, and whether the room of what is dropped may be used again.

// memory is what loop detection and the rules for tools remember of a task. A
// State shares it with older ones, so it is changed only in a copy; a Guard owns
// that of its tasks and changes it in place.
type memory struct {
	visits  ring[visit]      // the newest last, at most history_limit
	prints  ring[printMark]  // of outputs, in mode overlap; likewise
	grams   ring[[]uint64]   // of outputs, in mode any_ngram; likewise
	calls   ring[callMark]   // likewise
	facts   []fact           // one for each transition that brought metaJson
	tools   []toolCount      // of all committed steps
	index   map[string]int32 // of tools; nil as long as looking through them is faster
	last    []byte           // arguments of the newest call
	output  hash             // of the newest output
	context hash             // what the task knew at the newest output
	run     int64            // how many calls in a row were alike ([memory.alike]); 0 as 1
	streak  int64            // how many outputs in a row were the newest one; 0 if there is none
	batch   *batch.State     // never changed; nil until the batch loop guard has seen a step
}

// A visit is a stay in a state, with a digest of all that was known then.
type visit struct {
	State   hash `json:"state"` // of its name
	Context hash `json:"context,omitempty"`
}

// A fact is the hash of the metaJson a transition was last executed with.
type fact struct {
	Transition string `json:"transition"`
	Hash       hash   `json:"hash"`
}

// A toolCount is how often a tool was called.
type toolCount struct {
	Name  string `json:"name"`
	Calls int64  `json:"calls"`
}

// fewTools is up to how many tools it is faster to look through them than to hash.
const fewTools = 64

// tool returns the index of a tool, -1 if it was never called.
func (m *memory) tool(name string) int32 {
	if m.index != nil {
		if i, ok := m.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range m.tools {
		if m.tools[i].Name == name {
			return int32(i)
		}
	}
	return -1
}

// called returns how often a tool was called.
func (m *memory) called(name string) int64 {
	if i := m.tool(name); i >= 0 {
		return m.tools[i].Calls
	}
	return 0
}

// clone returns a copy that can be changed without m noticing.
func (m *memory) clone() *memory {
	n := *m
	n.visits, n.prints, n.grams, n.calls = m.visits.clone(), m.prints.clone(), m.grams.clone(), m.calls.clone()
	n.facts, n.tools, n.last = slices.Clone(m.facts), slices.Clone(m.tools), slices.Clone(m.last)
	n.index = maps.Clone(m.index)
	return &n
}

// add remembers a committed step. owned says that nobody else sees what has to
// go, so that its room may be used again.
func (m *memory) add(c *Config, s *verdict.Step, l *look, owned bool) {
	limit := int(max(c.Store.HistoryLimit, 1))
	if s.State != "" && c.countsVisit(m, l.state) {
		*m.visits.next(limit) = visit{l.state, l.output.context}
	}
	if says(s) {
		m.addOutput(c, &l.output, limit, owned)
	}
	if len(l.calls) > 0 {
		m.run = m.alike(c, s, l)
	}
	for i, mark := range l.calls {
		mark.Tool = m.count(l.tools[i])
		*m.calls.next(limit) = mark
	}
	m.addBatch(c, s)
	if n := len(s.ToolCalls); n > 0 {
		m.keep(s.ToolCalls[n-1].Args)
	}
}

func (m *memory) addOutput(c *Config, o *outputMark, limit int, owned bool) {
	if m.streak > 0 && m.output == o.hash && m.context == o.context {
		m.streak++
	} else {
		m.streak = 1
	}
	m.output, m.context = o.hash, o.context
	switch c.Loop.Mode {
	case "any_ngram":
		g := m.grams.next(limit)
		*g = append(reuse(*g, owned), o.grams...)
	case "overlap":
		p := m.prints.next(limit)
		marks := append(reuse(p.Marks, owned), o.print.Marks...)
		*p = printMark{o.context, text.Print{Marks: marks, Seen: o.print.Seen}}
	}
}

// keep remembers the arguments of the newest call, in no more room than they need.
func (m *memory) keep(args []byte) {
	if len(args) > cap(m.last) {
		m.last = make([]byte, 0, len(args))
	}
	m.last = append(m.last[:0], args...)
}

// reuse returns the room of a list, unless somebody else sees it.
func reuse[T any](list []T, owned bool) []T {
	if owned {
		return list[:0]
	}
	return nil
}

// count counts one call of a tool and returns its index.
func (m *memory) count(tool string) int32 {
	i := m.tool(tool)
	if i < 0 {
		i = int32(len(m.tools))
		m.tools = append(m.tools, toolCount{tool, 0})
		m.indexTools()
	}
	m.tools[i].Calls++
	return i
}

// indexTools brings the index up to date after tools were added.
func (m *memory) indexTools() {
	if len(m.tools) <= fewTools {
		return
	}
	if m.index == nil {
		m.index = make(map[string]int32, 2*len(m.tools))
	}
	for i := len(m.index); i < len(m.tools); i++ {
		if _, known := m.index[m.tools[i].Name]; !known {
			m.index[m.tools[i].Name] = int32(i)
		}
	}
}

// countsVisit reports whether a step into a state is a visit of its own.
func (c *Config) countsVisit(m *memory, state hash) bool {
	n := m.visits.len()
	return c.Loop.VisitCounting != "entries" || n == 0 || m.visits.at(n-1).State != state
}
