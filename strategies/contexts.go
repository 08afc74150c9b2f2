package strategies

import (
	"context"
	"fmt"

	"github.com/dialai/dialai/specialist"
)

// SessionContext tells a model what the session itself knows: its metaJson and
// its history, as text. It may be used concurrently.
var SessionContext specialist.Context = specialist.ContextFunc(sessionContext)

func sessionContext(_ context.Context, q specialist.Question) (string, error) {
	var b []byte
	if q.Meta != nil {
		b = append(append(append(b, "metaJson: "...), q.Meta...), '\n')
	}
	for i, r := range q.Past.History() {
		if i == 0 {
			b = append(b, "History, the oldest first:\n"...)
		}
		b = fmt.Appendf(b, "%d. %s", i+1, r.TransitionName)
		if r.Reasoning != "" {
			b = append(append(b, ": "...), r.Reasoning...)
		}
		if r.MetaJSON != nil {
			b = append(append(b, " metaJson: "...), r.MetaJSON...)
		}
		b = append(b, '\n')
	}
	return string(b), nil
}

// BuiltinContext returns the built-in context of that name.
func BuiltinContext(name string) (specialist.Context, bool) {
	if name == "sessionContext" {
		return SessionContext, true
	}
	return nil, false
}
