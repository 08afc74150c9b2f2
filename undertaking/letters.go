package undertaking

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/dialai/dialai/internal/packs"
)

// Agents talk by moves: the message of one that was executed is a letter to the agent whom it is
// for. It is in the session's log, so it is never lost; that a session has it is known when a turn
// that began with it has finished, so that what a killed turn may not have kept is said again.

const kindLettered = "lettered" // a running turn was given letters

// letters returns what was said to an agent session after a round, the oldest first.
func (l *Loop) letters(w *Worker, after int32) (list []Letter) {
	if w.As == orchestrator && w.Number != l.state.Bound {
		return nil
	}
	for _, m := range l.state.Mail {
		if m.To == w.As && m.Round > after {
			list = append(list, m)
		}
	}
	return list
}

func newestOf(list []Letter, round int32) int32 {
	for _, m := range list {
		round = max(round, m.Round)
	}
	return round
}

// lettersFor writes letters for whom they are for.
func lettersFor(list []Letter) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(block(m.By+", "+m.Transition, letterText(m.Move)))
	}
	return b.String()
}

// letterText is what a move says: its message, what the turn said at more length, and the other
// members of its payload.
func letterText(m Move) string {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(m.Payload, &members) // a human's move may have none
	text := read[struct{ Message, Text, Reason string }](m.Payload)
	parts := []string{text.Message}
	if text.Text != "" {
		parts = append(parts, text.Text)
	}
	for _, name := range []string{"message", "text", "continuity"} {
		delete(members, name)
	}
	if text.Reason == text.Message {
		delete(members, "reason")
	}
	if len(members) > 0 {
		parts = append(parts, indented(mustJSON(members)))
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// deliverLetters gives a worker whose turn runs what the manager has said since it began.
func (l *Loop) deliverLetters(ctx context.Context, w *Worker) {
	v := l.running(w)
	list := l.letters(w, max(w.Began, w.Told))
	if v == nil || v.interrupted || len(list) == 0 {
		return
	}
	l.tell(w.who(), "hears of the %s: %s", list[0].By, firstLine(messageIn(list[0].Payload)))
	l.steer(ctx, v, kindLettered, turnBegan{newestOf(list, 0)}, lettersFor(list))
}

// maxText is how many bytes of what a turn said last go with its move.
const maxText = 8 << 10

// withText returns a move with what its turn said at more length than its message.
func withText(m Move, said string) Move {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(m.Payload, &members) == nil {
		members["text"] = mustJSON(clip(packs.Redact(said), maxText))
		m.Payload = mustJSON(members)
	}
	return m
}
