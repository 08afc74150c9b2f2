// Package graph draws a machine: in characters, as Mermaid, DOT or SVG, or as the places of
// everything for whoever draws it themselves.
//
// [Terminal] draws for a terminal, [Mermaid] writes a stateDiagram-v2, [DOT] a digraph, [SVG] a
// picture that needs nothing but itself. All show the same facts: where a session
// begins, the goal and the other intended ends, dead ends, states that nobody
// can reach, states that only humans decide, who may rule in a state, the
// condition of a transition, the approvals it takes, what it sets, whether it can
// be undone and, with a [View], where one session stands and the way it came. round that is in progress appears in the SVG only, who is in a group everywhere but in
// Mermaid. [Layout] has the machine alone: what a view adds is laid over it.
//
// The functions take values and return text. The same machine and view give the
// same bytes on every computer: all geometry is computed with whole numbers.
package graph

import (
	"bytes"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/text"
	"github.com/dialai/dialai/machine"
)

// Formats returns the names of the formats that [Draw] knows.
func Formats() []string { return []string{"mermaid", "dot", "svg", "text", "layout"} }

// Draw returns a picture of m in one of the [Formats], a [Drawing] as JSON for layout, which
// shows nothing of v; of another name it is Mermaid.
func Draw(m *machine.Machine, v View, format string) []byte {
	switch format {
	case "dot":
		return []byte(DOT(m, v))
	case "svg":
		return SVG(m, v)
	case "text":
		return []byte(Terminal(m, v, 0))
	case "layout":
		var b bytes.Buffer
		_ = text.WriteJSON(&b, Layout(m)) // of plain data, into memory
		return b.Bytes()
	}
	return []byte(Mermaid(m, v))
}

// A View says what to point out in the drawing of a machine. The zero View
// points out nothing: the machine alone is drawn. Names that the machine does
// not have are ignored.
type View struct {
	// State is the state in which the session is; "" draws no session.
	State string
	// Status is the session's status: running, needs_human, completed, stopped
	// or failed. It picks the colour of the current state; any other text is
	// shown as it is, "" is not shown.
	Status string
	// Path lists the executed transitions, oldest first.
	Path []Step
	// Round is the round in progress in State; nil if there is none.
	Round *Round
}

// A Step is one executed transition.
type Step struct {
	From       string // a state
	Transition string // one of its transitions
}

// A Round is what has been asked and proposed in the current state so far.
type Round struct {
	Number    int    // from 1; 0 is not shown
	Prompt    string // the question; "" is not shown
	Proposals []Proposal
	// Verdict says in one line how the round was decided; "" is not shown.
	Verdict string
	// Winner is the transition that won; "" if none did, or not yet.
	Winner string
}

// A Proposal is one specialist's answer in a [Round].
type Proposal struct {
	Specialist string
	Human      bool
	Transition string           // "" if the answer is still awaited
	Weight     exact.Billionths // what the specialist's word counts for
}
