package session_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
)

// TestProgramsAreBounded: however many definitions there are, no more than 512 are held;
// one that was forgotten is compiled to the same again, and one in use is not forgotten.
func TestProgramsAreBounded(t *testing.T) {
	definition := func(i int) *machine.Machine {
		m, err := machine.Parse("m.json", fmt.Appendf(nil, `{"machineName":"m%d","initialState":"a","goalState":"b","states":{"a":{"transitions":{"go":"b"}},"b":{}},
			"guards":{"limits":{"max_steps":%d}}}`, i, i+1), machine.Checks{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	programs := session.NewPrograms()
	of := func(m *machine.Machine) *session.Program {
		p, err := programs.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	m, used := definition(0), definition(1)
	first, inUse := of(m), of(used)
	for i := range 700 {
		of(definition(i + 2))
		if of(used) != inUse {
			t.Fatalf("a definition in use was forgotten after %d others", i)
		}
		if held := programs.Held(); held > 512 {
			t.Fatalf("%d are held after %d definitions", held, i+3)
		}
	}
	again := of(m)
	if again == first {
		t.Error("nothing was forgotten")
	}
	if want, got := first.Guards(m.Initial()), again.Guards(m.Initial()); !reflect.DeepEqual(want, got) || again.Machine != m {
		t.Errorf("compiled again, the guards are %+v, want %+v", got, want)
	}
}
