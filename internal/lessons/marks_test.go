package lessons_test

import (
	"fmt"
	"testing"

	"github.com/dialai/dialai/internal/lessons"
)

// BenchmarkMarks notes automatic decisions that humans have looked at: what a lesson
// takes is the same however many came before.
func BenchmarkMarks(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if lessons.NoteMarks(n) != n {
					b.Fatal("some are missing")
				}
			}
		})
	}
}

// TestMarksAreLinear counts allocations: ten times the lessons must not take more than a
// few more, as growing by doubling does.
func TestMarksAreLinear(t *testing.T) {
	few := testing.AllocsPerRun(3, func() { lessons.NoteMarks(1_000) })
	many := testing.AllocsPerRun(3, func() { lessons.NoteMarks(10_000) })
	if many > few+30 {
		t.Errorf("1,000 lessons take %g allocations, 10,000 take %g", few, many)
	}
}
