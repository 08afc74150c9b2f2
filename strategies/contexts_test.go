package strategies_test

import (
	"strings"
	"testing"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/strategies"
)

// A told is a past with a history.
type told struct {
	specialist.Past
	history []specialist.TransitionRecord
}

func (p told) History() []specialist.TransitionRecord { return p.history }

// TestSessionContextFits: what a session tells a model keeps to what models are shown,
// however long its history is, and says what is left out.
func TestSessionContextFits(t *testing.T) {
	const most = 256 << 10
	long := strings.Repeat("x", 64<<10)
	past := func(n int, reasoning string) (list []specialist.TransitionRecord) {
		for range n {
			list = append(list, specialist.TransitionRecord{TransitionName: "go", Reasoning: reasoning})
		}
		return list
	}
	largest := `"` + strings.Repeat("m", most-2) + `"`
	for _, c := range []struct {
		name, meta   string
		history      []specialist.TransitionRecord
		begins, ends string
	}{
		{"nothing", "", nil, "", ""},
		{"all of it", "{}", past(2, "because"), "metaJson: {}\nHistory, the oldest first:\n1. go: because\n", "\n2. go: because\n"},
		{"a long history", "{}", past(5, long), "metaJson: {}\nHistory, the oldest first, without the first 2:\n3. go: xxx", "xxx\n"},
		{"a long and a short one", "", append(past(5, long), past(1, "last")...), "History, the oldest first, without the first 2:\n3. go: xxx", "xxx\n6. go: last\n"},
		{"no room for any", largest[:most-200] + `"`, past(1, long), "metaJson: \"mmm", "m\"\nHistory, the oldest first, without the first 1:\n"},
		{"the largest metaJson", largest, past(1, "because"), `"mmm`, `m"`},
	} {
		q := specialist.Question{Past: told{history: c.history}}
		if c.meta != "" {
			q.Meta = []byte(c.meta)
		}
		got, err := strategies.SessionContext.Gather(t.Context(), q)
		if err != nil || len(got) > most || !strings.HasPrefix(got, c.begins) || !strings.HasSuffix(got, c.ends) {
			t.Errorf("%s: %d bytes, %.100q … %q, %v", c.name, len(got), got, got[max(0, len(got)-60):], err)
		}
	}
}
