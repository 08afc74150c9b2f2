// Package scripted is an agent that follows a script: it says and does what a file tells it to,
// at no cost and the same each time. It stands in for a real agent in tests, in
// demonstrations and while one writes a machine.
//
// A script is JSON Lines; each line is the next turn of one specialist:
//
//	{"as": "orchestrator", "text": "Tests first.", "used": 52000, "window": 200000,
//	 "tools": [{"tool": "Write", "input": {"file_path": "a.txt", "content": "a"}}],
//	 "submit": {"transition": "report", "message": "a.txt is there"}}
//
// A turn waits wait_ms, says its text, tells the tokens used and what it cost, uses its tools
// in their order, submits its move and ends: done, or by end crash, hang or full. Read, Write,
// Edit and Bash are performed in the working folder once the host has permitted them. A tool
// that the host serves is a [agent.ToolCall], and submit is one of the tool "submit". Task and
// Agent start a subagent, which uses the tools in its input. Past the last line turns end
// without a move.
//
// # Where it stands in the script
//
// A turn takes the first line of its specialist ([agent.Spec.As]) or of nobody that no other
// turn has taken, over all sessions of one [Agent], so successors go on where their
// predecessors stopped. A line is taken once its turn has ended, however it did: its
// [agent.Done] has the line's number as Turn. A turn that Close cuts off takes nothing.
//
// The Agent keeps no file. It is the host that remembers: it records each Done (with the move
// that the turn led to), and after a restart it gives the lines of all of them back in
// [agent.Spec.Taken] of every session that it opens. If it stopped before it had recorded the
// Done, or leaves it out because the move was not handed in, the line is played again, as a
// real agent that is asked again would answer again.
package scripted

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/dialai/dialai/agent"
)

// An Agent follows one script. All sessions of one host that follow the same script must be
// opened by the same Agent, since it knows which lines are taken. It may be used concurrently.
type Agent struct {
	name  string
	lines []line

	mu    sync.Mutex
	taken map[int]bool // lines by number; also those of turns that run
}

// New reads a script; name is the file's, for errors, which say where in it what is wrong.
func New(name string, script []byte) (*Agent, error) {
	lines, err := parse(name, script)
	if err != nil {
		return nil, err
	}
	return &Agent{name: name, lines: lines, taken: map[int]bool{}}, nil
}

// Check returns what a scripted agent can do.
func (a *Agent) Check(context.Context) (agent.Info, error) { return a.info(), nil }

func (a *Agent) info() agent.Info {
	return agent.Info{Agent: "scripted:" + a.name, Version: "1", Model: "script", Capabilities: agent.Capabilities{
		Resume: true, HookNotice: true, Probe: true, LiveUsage: true, Cost: true, BlockCompaction: true, // it compacts nothing
		SubagentIDs: true, SpawnLimits: true, Permission: true,
	}}
}

// resumable begins the id of every session of a scripted agent; the host's id of it follows.
const resumable = "scripted-"

// Open starts a session in this process. It goes on with any session that a scripted agent
// has had, in whatever process: all that a session remembers is the script's place.
func (a *Agent) Open(_ context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	id := resumable + spec.ID
	if spec.Resume != "" {
		if id = spec.Resume; !strings.HasPrefix(id, resumable) {
			return nil, fmt.Errorf("scripted:%s: go on with %q: %w", a.name, id, agent.ErrUnknown)
		}
	}
	a.take(spec.Taken)
	s := newSession(a, spec, id, events)
	go s.run()
	return s, nil
}

func (a *Agent) take(lines []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range lines {
		a.taken[n] = true
	}
}

// next takes the next line of a specialist. Past the last there is an empty one without a
// number.
func (a *Agent) next(as string) line {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lines {
		if !a.taken[l.number] && (l.As == "" || l.As == as) {
			a.taken[l.number] = true
			return l
		}
	}
	return line{Text: "The script is at its end."}
}

// putBack gives back a line that next returned.
func (a *Agent) putBack(l line) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, l.number)
}
