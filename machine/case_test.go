package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestCaseOfAMachine: what the tables say of input, subject, conditions and assignments.
func TestCaseOfAMachine(t *testing.T) {
	const text = `{"machineName":"m","initialState":"a","goalState":"b","input":{"type":"object","properties":{"amount":{"type":"number"},"currency":{"default":"EUR"}}},
		"subject":"= data.currency","states":{"a":{"transitions":{"t":{"target":"b","when":"= data.amount > 1.0","set":{"n":1,"who":"= by","sign":"==x","list":["= by"]}},"u":"b"}},"b":{}}}`
	m, err := machine.Parse("m.json", []byte(text), machine.Checks{})
	if err != nil {
		t.Fatal(err)
	}
	first := m.Initial().Transitions[0]
	var set []string
	for _, a := range first.Set {
		set = append(set, fmt.Sprintf("%s %s%s", a.Member, a.Expression, a.Value))
	}
	if got, want := strings.Join(set, "; "), `n 1; who = by; sign "=x"; list ["= by"]`; got != want {
		t.Errorf("it sets %s, want %s", got, want)
	}
	if first.When != "= data.amount > 1.0" || m.Initial().Transitions[1].When != "" || !m.UsesData() || m.Subject() != "= data.currency" {
		t.Errorf("the condition is %q, the subject %q", first.When, m.Subject())
	}
	if err := m.Input().Validate([]byte(`{"amount":"1"}`)); err == nil {
		t.Error("a text is taken for an amount")
	}
	for given, want := range map[string]string{``: `{"currency":"EUR"}`, `{"amount":1}`: `{"amount":1,"currency":"EUR"}`, `{"currency":null}`: `{"currency":null}`, `[1]`: `{"currency":"EUR"}`} {
		if got := string(m.FirstData([]byte(given)).Append(nil)); got != want {
			t.Errorf("a session that starts with %s has the data %s, want %s", given, got, want)
		}
	}
	plain, err := machine.Parse("m.json", []byte(`{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{"transitions":{"u":"b"}},"b":{}}}`), machine.Checks{})
	if err != nil || plain.UsesData() || plain.Input() != nil {
		t.Errorf("a machine without any of it uses data: %v", err)
	}
	// What a store holds is read by the same words.
	stored, err := machine.Parse("m.json", m.JSON(), machine.Checks{Stored: true})
	if err != nil || stored.Digest() != m.Digest() || len(stored.Initial().Transitions[0].Set) != 4 || stored.Input() == nil {
		t.Errorf("as stored it is another machine: %v", err)
	}
}
