package lessons

import "github.com/dialai/dialai/internal/trust"

// NoteMarks notes n automatic decisions that a human has looked at.
func NoteMarks(n int) int {
	var p proven
	for i := range n {
		p.note(int64(i)+1, &trust.Outcome{Automatic: true})
	}
	return len(p.marks)
}
