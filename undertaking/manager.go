package undertaking

import (
	"context"
	"encoding/json"

	"github.com/dialai/dialai/agent"
)

// The manager is one agent session for the whole undertaking, as long as its context lasts or its
// process can be brought back. Then another takes its place: the state and the ask stay as they
// are, and it is told what was wanted, decided and done.

// maxManagers is how many managers in a row may leave without a move.
const maxManagers = 3

// serveManager has the manager decide. While a worker works it is asked nothing until the human
// has spoken.
func (l *Loop) serveManager(ctx context.Context) (bool, error) {
	w := l.state.manager()
	if w == nil {
		next := who{manager, len(l.state.Others[manager]) + 1}
		if l.s.State.Name == "weaving" && len(l.state.unheard(next, true)) == 0 {
			return false, nil
		}
		return l.openManager(ctx, next)
	}
	v := l.live[w.who()]
	if v != nil && (v.turn || v.closing) {
		return false, nil
	}
	if why := l.leaves(w); why != "" && l.candidate(w) == nil {
		l.tell(w.who(), "another manager takes its place: %s", why)
		if err := l.commit(ctx, w.who(), kindReleased, released{Reason: why}); err != nil || v == nil {
			return err == nil, err
		}
		v.dismissed = true
		l.end(ctx, v)
		return true, nil
	}
	if l.s.State.Name == "weaving" && l.candidate(w) == nil {
		switch {
		case v != nil && v.prompts > l.set.Prompts:
			v.prompts = 0
			l.tell(w.who(), "makes no move; the work goes on, and you can say it again")
			return false, nil
		case len(l.unheard(w, v == nil || !v.prompted)) == 0 && (v == nil || v.prompts == 0):
			return false, nil
		}
	}
	return l.attend(ctx, w)
}

// leaves returns why a manager cannot go on; "" if it can.
func (l *Loop) leaves(w *Worker) string {
	switch {
	case w.Lost != "" || w.Failures > l.set.Wakes:
		return lost
	case w.Compaction:
		return "compaction"
	case w.Crossed.Hard:
		return string(agent.Hard)
	}
	return ""
}

// openManager opens the next manager.
func (l *Loop) openManager(ctx context.Context, of who) (bool, error) {
	list := l.state.Others[manager]
	opened := opening{}
	if len(list) > 0 {
		opened.Told = list[len(list)-1].Told
	}
	if n := len(list); n-l.state.Halted >= maxManagers && l.state.Moved[manager] < list[n-maxManagers].Since {
		return l.halt(ctx, "managers leave one after the other, and none makes a move")
	}
	if stopped, err := l.openNew(ctx, of, opened); stopped || err != nil {
		return stopped, err
	}
	return false, l.promptOpened(ctx, of)
}

// continuity returns what the manager before has left to its successor; nil if nothing.
func (l *Loop) continuity(w *Worker) json.RawMessage {
	for i := w.Number - 2; i >= 0; i-- {
		if c := l.state.Others[manager][i].Continuity; c != nil {
			return c
		}
	}
	return nil
}
