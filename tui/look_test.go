package tui

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/x/ansi"
)

func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, w := range []*works{nil, planned(t), working(t), judged(t)} {
			m := newModel(Config{Acts: Acts{Rule: func(Ruling) (string, error) { return "", nil }}})
			m.width, m.height = 80, 24
			if w != nil {
				m.now = w.now()
			}
			content, _, _ := m.draw()
			fmt.Println(ansi.Strip(content))
			if w != nil && w.s.State.Name == "verifying" {
				m.height = 40
				m.choose()
				content, _, _ := m.draw()
				fmt.Println(ansi.Strip(content))
			}
		}
	})
}
