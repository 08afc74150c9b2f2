package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/undertaking"
)

// BenchmarkView draws a long talk, a long log, and a line into which much was pasted.
func BenchmarkView(b *testing.B) {
	w := begin(b, "undertaking", "Invoice export")
	for i := range 60 {
		w.move("manager", "ask", fmt.Sprintf(`{"message":"Question %d: %s","questions":[{"text":"Which?"}]}`, i, strings.Repeat("a word or two ", 200)))
		w.move("owner", "reply", fmt.Sprintf(`{"message":"Answer %d: %s"}`, i, strings.Repeat("this and that ", 100)))
	}
	n := w.now()
	for name, do := range map[string]func(m *model){
		"talk": func(*model) {},
		"log": func(m *model) {
			m.asked = logged
			for i := range maxLines {
				m.lines = append(m.lines, undertaking.Line{At: n.At, State: "weaving", Worker: "orch-1", Pct: 50, Text: fmt.Sprintf("event %d %s", i, strings.Repeat("word ", 20))})
			}
		},
		"pasted": func(m *model) { m.typed(strings.Repeat("paste ", 20_000)) },
	} {
		b.Run(name, func(b *testing.B) {
			m := newModel(Config{Acts: acts})
			m.now, m.width, m.height = n, 120, 40
			do(m)
			b.ReportAllocs()
			for b.Loop() {
				m.draw()
			}
		})
	}
}
