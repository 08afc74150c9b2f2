package undertaking

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/specialist"
)

// A hand-off record is what the next worker knows of the one before: its own words, checked
// when it submits them, and figures that it cannot set. A worker that is lost has left no words;
// its record is made from the logs, and says so.

// A Record is what is added to a worker's record.
type recordFacts struct {
	Number     int             `json:"number"`
	Specialist string          `json:"specialist"`
	SessionID  string          `json:"session_id"`
	Reason     string          `json:"reason"`
	Pct        int             `json:"pct"` // of its context; -1 if that is not known
	HeadBefore string          `json:"head_before,omitempty"`
	HeadAfter  string          `json:"head_after,omitempty"`
	DiffStat   string          `json:"diff_stat,omitempty"`
	Tasks      []Task          `json:"tasks,omitempty"`
	At         specialist.Time `json:"at"`
}

// recorded returns the payload of a move with the figures of its worker.
func (l *Loop) recorded(ctx context.Context, w *Worker, m Move) (Move, error) {
	if m.Transition != handOff && m.Transition != complete {
		return m, nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(m.Payload, &members); err != nil {
		return m, err
	}
	facts := l.factsOf(ctx, w, reasonOf(w, m.Transition))
	added := map[string]json.RawMessage{}
	if err := json.Unmarshal(mustJSON(facts), &added); err != nil {
		return m, err
	}
	for name, value := range added {
		members[name] = value
	}
	m.Payload = mustJSON(members)
	return m, nil
}

func (l *Loop) factsOf(ctx context.Context, w *Worker, reason string) recordFacts {
	now := l.tree(ctx)
	facts := recordFacts{
		Number: w.Number, Specialist: orchestrator, SessionID: w.AgentSession, Reason: reason, Pct: w.Usage.Percent(agent.Ceiling),
		HeadBefore: w.HeadBefore, HeadAfter: now.Head, Tasks: l.state.Tasks, At: l.now(),
	}
	if w.HeadBefore != "" {
		if _, stat, err := now.Since(ctx, w.HeadBefore); err == nil {
			facts.DiffStat = stat
		}
	}
	return facts
}

// reasonOf says why a worker is let go.
func reasonOf(w *Worker, transition string) string {
	switch {
	case transition == "lost":
		return "lost"
	case w.Compaction:
		return "compaction"
	case transition == complete, transition == acceptReport:
		return "complete"
	case w.Level != "":
		return string(w.Level)
	}
	return "released"
}

// lostRecord is the record of a worker that left none.
func (l *Loop) lostRecord(ctx context.Context, w *Worker, why string) json.RawMessage {
	done, left := []string{}, []string{}
	for _, t := range l.state.Tasks {
		if t.Status == "done" || t.Status == "verified" {
			done = append(done, t.Text)
		} else {
			left = append(left, t.Text)
		}
	}
	return mustJSON(struct {
		Accomplished []string `json:"accomplished"`
		Remaining    []string `json:"remaining"`
		Context      string   `json:"context"`
		recordFacts
	}{done, left, fmt.Sprintf("Worker %d left no record: %s. This one was made from the logs; look at the working tree.", w.Number, why), l.factsOf(ctx, w, "lost")})
}

// tree looks at the working tree; what cannot be looked at is told, and not known.
func (l *Loop) tree(ctx context.Context) Tree {
	t, err := TreeOf(ctx, l.c.Cwd)
	if err != nil && ctx.Err() == nil {
		l.tell(who{}, "the working tree cannot be looked at: %v", err)
	}
	return t
}

// recordText writes a record for agents: without what its worker said beside it; "" if there is
// none.
func recordText(record json.RawMessage) string {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(record, &members) != nil || members == nil {
		return ""
	}
	delete(members, "text")
	return indented(mustJSON(members))
}
