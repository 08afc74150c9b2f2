package strategies

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/specialist"
)

// SessionContext tells a model what the session itself knows: its metaJson, or its data
// where the machine keeps any, and its history, as text, of which the newest is kept if there is no room for all that
// a model is shown. It may be used concurrently.
var SessionContext specialist.Context = specialist.ContextFunc(sessionContext)

// maxContext is the longest context that a model is shown, in bytes, and the longest
// metaJson of a session.
const maxContext = 256 << 10

func sessionContext(_ context.Context, q specialist.Question) (string, error) {
	var b []byte
	about := []byte(q.Meta)
	if q.Machine.KeepsData() {
		about = q.Data.JSON()
		b = append(append(append(b, "data: "...), about...), '\n')
	} else if q.Meta != nil {
		b = append(append(append(b, "metaJson: "...), about...), '\n')
	}
	if len(b) > maxContext {
		return string(about), nil // which just fits
	}
	history := q.Past.History()
	room := maxContext - len(b) - maxTitle
	if len(history) == 0 || room < 0 {
		return string(b), nil
	}
	lines, first := make([]string, len(history)), len(history)
	for ; first > 0; first-- {
		line := historyLine(first, &history[first-1])
		if room -= len(line); room < 0 {
			break
		}
		lines[first-1] = line
	}
	b = append(b, "History, the oldest first"...)
	if first > 0 {
		b = fmt.Appendf(b, ", without the first %d", first)
	}
	b = append(b, ":\n"...)
	for _, line := range lines[first:] {
		b = append(b, line...)
	}
	return string(b), nil
}

// maxTitle is the longest line above a history, in bytes.
const maxTitle = 64

func historyLine(number int, r *specialist.TransitionRecord) string {
	b := fmt.Appendf(nil, "%d. %s", number, r.TransitionName)
	if r.Reasoning != "" {
		b = append(append(b, ": "...), r.Reasoning...)
	}
	if r.MetaJSON != nil {
		b = append(append(b, " metaJson: "...), r.MetaJSON...)
	}
	return string(append(b, '\n'))
}
