package server

import (
	"slices"
	"sync"
)

// What streams tell that is no event of a log: who is at a question, how far a job is. It has no
// id, and whoever begins again behind an event is not told of it again; who was not there asks for
// the question or the job. It is told at the server where it happens.

// A passing is something that is told while one listens.
type passing struct {
	kind    string
	inbox   bool   // it is told to inboxes, and else to streams of events
	machine string // that it is about; "" for none
	event   any
	may     func(*Principal) bool // who may hear of it
}

// maxPassing is how many are kept for streams that have not yet looked.
const maxPassing = 256

// passings are the newest.
type passings struct {
	mu     sync.Mutex
	before int64 // how many there were before those that are kept
	kept   []passing
}

// tell tells those who listen now.
func (t *tenant) tell(of passing) {
	t.passed.add(of)
	t.hub.wakeAll()
}

func (n *passings) add(of passing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kept = append(n.kept, of); len(n.kept) > maxPassing {
		n.kept = slices.Clone(n.kept[1:])
		n.before++
	}
}

// since returns those behind the first seen, as far as they are kept, and how many there are.
func (n *passings) since(seen int64) ([]passing, int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kept[min(max(seen-n.before, 0), int64(len(n.kept))):], n.before + int64(len(n.kept))
}

// sayPassing writes what was told since a stream has looked last.
func (t *tail) sayPassing(from *passings, out *stream, p *Principal) {
	told, now := from.since(t.passed)
	for _, of := range told {
		if of.inbox == t.inbox && (t.machine == "" || t.machine == of.machine) && (t.kinds == nil || slices.Contains(t.kinds, of.kind)) && of.may(p) {
			out.say("", of.kind, of.event)
		}
	}
	t.passed = now
}
