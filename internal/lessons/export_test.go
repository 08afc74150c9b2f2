package lessons

import "github.com/dialai/dialai/internal/trust"

// NoteMarks has a follower note n automatic decisions that a human has looked at.
func NoteMarks(n int) int {
	f := New()
	for i := range n {
		f.note(trust.Lesson{Seq: int64(i) + 1, Outcome: &trust.Outcome{Machine: "m", State: "s", Automatic: true}})
	}
	return len(f.Marks("m", "s", 0))
}
