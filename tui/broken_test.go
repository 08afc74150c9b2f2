package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/session"
)

// TestPanicOfActs: a panic in whatever a key asks for is one of Update, of which the terminal is
// given back before it is told.
func TestPanicOfActs(t *testing.T) {
	m := newModel(Config{Acts: Acts{
		Begin:  func(string) (string, error) { panic("a fault") },
		Say:    func(string, agent.Delivery) (string, error) { panic("a fault") },
		Rule:   func(Ruling) (string, error) { panic("a fault") },
		Hold:   func() { panic("a fault") },
		Resume: func() (string, error) { panic("a fault") },
	}})
	m.typed("a specification")
	begin := m.entered()
	m.now.Session = &session.Session{}
	for name, ask := range map[string]tea.Cmd{"begin": begin, "say": m.sayCommand("words"), "rule": m.rule(Ruling{}), "hold": m.hold(), "resume": m.resume()} {
		func() {
			defer func() {
				if told, _ := recover().(string); !strings.HasPrefix(told, "a fault\n") || !strings.Contains(told, "TestPanicOfActs") {
					t.Errorf("%s: the panic is %q", name, told)
				}
			}()
			m.Update(ask())
		}()
	}
}
