package machine_test

import (
	"encoding/json"
	"testing"

	"github.com/dialai/dialai/machine"
)

// TestWaits: a state is a wait if its timer alone can end it: nobody decides there, and its
// list or, where it has none, that of the machine names no proposer and no human.
func TestWaits(t *testing.T) {
	const arbiter, human, rule = `{"role":"arbiter","specialistId":"judge"}`, `{"role":"proposer","specialistId":"ann","isHuman":true}`, `{"role":"proposer","specialistId":"rule","strategyFnName":"firstAvailable"}`
	for _, c := range []struct {
		due, own, all string
		want          bool
	}{
		{`{"in":"1h","then":"t"}`, ``, arbiter, true},
		{`{"in":"1h","then":"t"}`, ``, ``, true},
		{`{"in":"1h","then":"t"}`, `"specialists":[],`, arbiter + "," + human + "," + rule, true},
		{`{"at":"= now","then":"t"}`, `"specialists":[` + arbiter + `],`, human, true},
		{`{"in":"1h","then":"t"}`, ``, arbiter + "," + human, false},
		{`{"in":"1h","then":"t"}`, ``, rule, false},
		{`{"in":"1h","then":"t"}`, `"specialists":[{"role":"proposer","specialistId":"ann"}],`, human, false},
		{`{"in":"1h","then":"t"}`, `"specialists":[],"deciders":["ann"],`, human, false},
		{`{"in":"1h"}`, `"specialists":[],`, arbiter, false},
		{`"1h"`, `"specialists":[],`, arbiter, false},
	} {
		text := `{"machineName":"m","initialState":"a","goalState":"b","states":{"a":{` + c.own + `"due":` + c.due + `,"transitions":{"t":"b"}},"b":{}},"specialists":[` + c.all + `]}`
		m := mustParse(t, "m.json", text)
		if s := m.Initial(); s.Wait != c.want || !m.Timed() || s.Timer != nil != (s.Due.Then != "") {
			t.Errorf("%s: wait %t, timer %v, timed %t", text, s.Wait, s.Timer, m.Timed())
		}
		again, err := machine.Parse("m.json", m.JSON(), machine.Checks{Stored: true})
		if err != nil || again.Digest() != m.Digest() || again.Initial().Wait != c.want {
			t.Errorf("%s: read again it is another: %v", text, err)
		}
		var def machine.Definition = *m.Definition()
		built, err := machine.Compile(&def, machine.Checks{})
		if err != nil || built.Digest() != m.Digest() {
			t.Errorf("%s: compiled it is another: %v", text, err)
		}
		if written, err := json.Marshal(m.Initial().Due); err != nil || len(c.due) < 6 && string(written) != `"1h0m0s"` {
			t.Errorf("%s is written %s, %v", c.due, written, err)
		}
	}
}
