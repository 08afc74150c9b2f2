package undertaking

import (
	"context"
	"encoding/json"
	"fmt"
)

// A worker is the orchestrator's agent session. It is let go when it has handed over, or is lost:
// its process cannot be brought back, or its context is full. In the solo machine it is opened
// when it is asked; else the engine opens it in summoning, and it is prompted when it is briefed.

// serveWorker has the bound worker work.
func (l *Loop) serveWorker(ctx context.Context) (bool, error) {
	w := l.state.bound()
	if w == nil {
		return l.openNext(ctx)
	}
	v := l.live[w.who()]
	if l.s.State.Name == "wrapping" && v != nil && !v.turn && l.candidate(w) == nil && (v.prompts > l.set.Prompts || v.record && v.interrupted) {
		return false, nil // the engine says that it is lost
	}
	return l.attend(ctx, w)
}

const (
	softChurn = 2 // workers in a row that have left nothing: the next one is told
	maxChurn  = 3 // the undertaking stops
)

// openNext opens the next worker, and prompts it, or says that it is there.
func (l *Loop) openNext(ctx context.Context) (bool, error) {
	if l.full() && l.s.State.Name != "summoning" {
		return false, nil // the engine says that nobody is there
	}
	for _, v := range l.live {
		if v.who.As != manager {
			return false, nil // the one before still works in the tree
		}
	}
	of := who{orchestrator, len(l.state.Workers) + 1}
	if of.Number > 1 && l.state.Churn >= maxChurn {
		return l.halt(ctx, fmt.Sprintf("%d workers in a row have handed over without a commit, a changed file or a finished task", l.state.Churn))
	}
	if l.state.Churn >= softChurn {
		l.tell(who{}, "%d workers in a row have left nothing; one more, and the undertaking stops", l.state.Churn)
	}
	now := l.tree(ctx)
	if stopped, err := l.openNew(ctx, of, opening{Told: l.state.Left.Round - 1, HeadBefore: now.Head, TreeBefore: now.Digest}); stopped || err != nil {
		return stopped, err
	}
	if l.full() {
		return true, nil
	}
	return false, l.promptOpened(ctx, of)
}

// summon has a worker be there, and says so.
func (l *Loop) summon(ctx context.Context) (bool, error) {
	w := l.state.bound()
	switch {
	case w == nil:
		return l.openNext(ctx)
	case l.live[w.who()] != nil:
		return l.propose(ctx, engine, Move{Transition: awakened, Payload: mustJSON(map[string]any{"id": w.id(), "number": w.Number, "sessionId": w.AgentSession, "agent": w.Agent, "message": w.id() + " is there"})})
	case w.Lost != "" || w.Failures > l.set.Wakes: // it has done nothing yet: another session in its place
		_, err := l.openNew(ctx, w.who(), opening{})
		return true, err
	}
	return l.wake(ctx, w)
}

// release lets the bound worker go if a move did, also one that was executed while this process
// was not there. A human's move may have no record; one is made from the logs then.
func (l *Loop) release(ctx context.Context) error {
	w, left := l.state.bound(), l.state.left()
	if left == nil {
		return nil
	}
	reason := reasonOf(w, left.Transition)
	var record json.RawMessage
	if l.state.RecordRound < max(l.state.Worked, w.Since) {
		record = l.lostRecord(ctx, w, "it was let go without one")
	}
	now := l.tree(ctx)
	idle := !left.Human && now.Digest == w.TreeBefore && now.Head == w.HeadBefore && !l.finishedBy(w.Number)
	of := w.who()
	if err := l.commit(ctx, of, kindReleased, released{reason, idle, record, left.Round}); err != nil {
		return err
	}
	if v := l.live[of]; v != nil {
		v.dismissed = true
		l.end(ctx, v)
	}
	return nil
}

type released struct {
	Reason string `json:"reason"`
	Idle   bool   `json:"idle"`
	// Record is made where the move had none.
	Record json.RawMessage `json:"record,omitempty"`
	Round  int32           `json:"round"` // of the move
}

// finishedBy reports whether a worker has finished a task.
func (l *Loop) finishedBy(number int) bool {
	for _, t := range l.state.Tasks {
		if t.Number == number && (t.Status == "done" || t.Status == "verified") {
			return true
		}
	}
	return false
}
