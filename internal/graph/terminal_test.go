package graph_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/dialai/dialai/internal/graph"
	"github.com/dialai/dialai/machine"
)

// TestTerminal: whatever a machine is like, its drawing in characters has every state whole, in a box of
// its own at which an arrow points if a transition leads there, and every name of a transition as
// often as there are such; it is no wider than asked for, and what would be is a list of the same.
func TestTerminal(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			m := random(t, rng, 1+rng.IntN(12), 1+rng.IntN(4))
			v := randomView(rng, m)
			text := graph.Terminal(m, v, 100_000)
			if text != graph.Terminal(m, v, 100_000) {
				t.Error("drawn differently the second time")
			}
			steps := 0
			for _, s := range m.States() {
				steps += len(s.Transitions)
				checkBox(t, m, v, text, s.Name)
			}
			if n := strings.Count(text, " t "); n != steps {
				t.Errorf("%d names of transitions are there, want %d:\n%s", n, steps, text)
			}
			narrow := graph.Terminal(m, v, 40)
			for line := range strings.Lines(narrow) {
				if strings.ContainsAny(narrow, "▶▼◀▲") && ansi.StringWidth(strings.TrimRight(line, "\n")) > 40 {
					t.Errorf("wider than 40 columns: %s", line)
				}
			}
			if !strings.ContainsAny(narrow, "▶▼◀▲") && strings.Count(narrow, "→") != steps {
				t.Errorf("%d transitions are listed, want %d:\n%s", strings.Count(narrow, "→"), steps, narrow)
			}
		})
	}
}

// checkBox finds the box of a state, and what is around it.
func checkBox(t *testing.T, m *machine.Machine, v graph.View, text, name string) {
	t.Helper()
	drawing, _, _ := strings.Cut(text, "\n● start")
	var rows [][]rune
	for line := range strings.Lines(drawing) {
		rows = append(rows, []rune(strings.TrimRight(line, "\n")))
	}
	at := func(x, y int) rune {
		if y < 0 || y >= len(rows) || x < 0 || x >= len(rows[y]) {
			return ' '
		}
		return rows[y][x]
	}
	sides := "│"
	if m.State(name).Terminal() {
		sides = "║"
	}
	if v.State == name {
		sides = "┃"
	}
	for y := range rows {
		found := regexp.MustCompile(name + `\b`).FindStringIndex(string(rows[y]))
		if found == nil {
			continue
		}
		x := len([]rune(string(rows[y])[:found[0]]))
		left, right, top, bottom := x-1, x, y, y
		for at(left, y) == ' ' && left > 0 {
			left--
		}
		for !strings.ContainsRune("│║┃", at(right, y)) && right < len(rows[y]) {
			right++
		}
		for strings.ContainsRune(sides, at(left, top-1)) {
			top--
		}
		for strings.ContainsRune(sides, at(left, bottom+1)) {
			bottom++
		}
		corners := string([]rune{at(left, top-1), at(right, top-1), at(left, bottom+1), at(right, bottom+1)})
		if !strings.ContainsRune(sides, at(left, y)) || corners != map[string]string{"│": "┌┐└┘", "║": "╔╗╚╝", "┃": "┏┓┗┛"}[sides] {
			t.Fatalf("%s has no box (%s %s):\n%s", name, string(at(left, y)), corners, text)
		}
		heads := 0
		for i := left; i <= right; i++ {
			heads += strings.Count("▼", string(at(i, top-2))) + strings.Count("▲", string(at(i, bottom+2)))
		}
		for i := top - 1; i <= bottom+1; i++ {
			heads += strings.Count("▶", string(at(left-1, i))) + strings.Count("◀", string(at(right+1, i)))
		}
		if (heads > 0) != led(m, name) {
			t.Errorf("%d arrows point at %s:\n%s", heads, name, text)
		}
		return
	}
	t.Errorf("%s is not there:\n%s", name, text)
}

// led reports whether anything leads to a state.
func led(m *machine.Machine, name string) bool {
	for _, s := range m.States() {
		for _, tr := range s.Transitions {
			if tr.Target == name {
				return true
			}
		}
	}
	return m.Initial().Name == name
}
