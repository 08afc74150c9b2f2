package undertaking

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/permit"
)

// What the engine's own seat decides, all of it from figures: when a worker's context is too
// full for new work, when it is lost, and what no agent may do. Soft is told once, hard acts.

// serveEngine answers the engine's ask, if it has something to say.
func (l *Loop) serveEngine(ctx context.Context) (bool, error) {
	if l.s.State.Name == "summoning" {
		return l.summon(ctx)
	}
	transition, reason := l.engineMove()
	if transition == "" || !mayMove(l.s.State.Name, engine, transition) {
		return false, nil
	}
	payload := map[string]any{"reason": reason, "message": reason}
	if w := l.state.bound(); transition == lost && w != nil {
		payload["record"] = l.lostRecord(ctx, w, reason)
	}
	return l.propose(ctx, engine, Move{Transition: transition, Payload: mustJSON(payload)})
}

// engineMove returns what the engine has to say of the bound worker; "" if that is nothing.
func (l *Loop) engineMove() (transition, reason string) {
	w := l.state.bound()
	if w == nil {
		if l.full() {
			return lost, "no worker is there"
		}
		return "", ""
	}
	v := l.live[w.who()]
	pct := percent(w.Usage)
	wrapping := l.s.State.Name == "wrapping"
	switch {
	case w.Lost != "":
		return lost, w.Lost
	case w.Failures > l.set.Wakes:
		return lost, fmt.Sprintf("its process has gone %d times without a completed turn", w.Failures)
	case v == nil && w.Crossed.Hard && room(w.Usage) < minRoom, w.Compaction && v == nil && w.Usage.Used > 0 && room(w.Usage) < minRoom:
		return lost, "its context is full"
	case wrapping && v != nil && v.record && !v.turn && v.interrupted:
		return lost, fmt.Sprintf("it wrote no record within %s", l.set.RecordTime)
	case wrapping && v != nil && !v.turn && v.prompts > l.set.Prompts:
		return lost, "it was asked for its record and gave none"
	case wrapping:
	case w.Compaction:
		return cutShort, "its context was to be compacted, at " + pct
	case w.Crossed.Hard:
		return cutShort, "its context is " + pct + " full"
	}
	return "", ""
}

// minRoom is how many tokens a worker needs to write its record.
const minRoom = 8000

// room returns how many tokens are left; a context of unknown size has room.
func room(u agent.Usage) int64 {
	if u.Ceiling <= 0 {
		return minRoom
	}
	return u.Ceiling - u.Used
}

// inGrace interrupts a worker that was cut short and has had its time, and reports whether it
// did.
func (l *Loop) inGrace(ctx context.Context, v *live) bool {
	w := l.state.agent(v.who)
	if l.s.State.Name != "wrapping" || !v.turn || v.interrupted || v.who != (who{orchestrator, l.state.Bound}) {
		return false
	}
	if v.record && l.c.Now().Sub(v.began) < l.set.RecordTime {
		return false
	}
	if !v.record && w.Uses <= l.set.GraceUses && l.c.Now().Sub(l.s.EnteredAt().Time()) < l.set.GraceTime && room(w.Usage) >= minRoom {
		return false
	}
	l.interrupt(ctx, v)
	return true
}

// refused returns why a worker may not use a tool; "" if it may.
func (l *Loop) refused(w *Worker, h agent.Hook) string {
	switch {
	case spawns(h.Tool):
		switch {
		case h.Parent != "":
			return "a subagent starts no subagents: do the work, and tell the one that started you"
		case w.Crossed.Hard || w.Compaction:
			return "your context is nearly full: start nothing new, and hand over"
		case w.SpawnedNow >= l.set.SpawnsTurn:
			return fmt.Sprintf("this turn has started %d subagents, and may not start more: end the turn with a report, and go on in the next", w.SpawnedNow)
		case w.Spawned >= l.set.SpawnsAll:
			return fmt.Sprintf("this session has started %d subagents, and may not start more: hand over", w.Spawned)
		}
	case h.Tool == "Bash":
		if permit.Stashes(h.Input) {
			return "git stash is one stack for all worktrees: commit on a branch instead"
		}
	}
	return ""
}

// spawns reports whether a tool starts a subagent.
func spawns(tool string) bool { return tool == "Task" || tool == "Agent" }
