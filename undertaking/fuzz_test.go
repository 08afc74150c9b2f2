package undertaking

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// FuzzCheckMove: whatever a worker submits, it is a move that it may make, with a payload that
// is accepted as it is handed in, or it is refused with what it may do.
func FuzzCheckMove(f *testing.F) {
	for _, seed := range []string{
		`{"transition":"report","message":"m"}`, `{"transition":"lost","message":"m"}`, `{"transition":"inquire","message":"m","questions":[{"text":"t","options":["a"]}]}`,
		`{"transition":"hand_off","message":"m","accomplished":["a"],"remaining":["b"],"context":"c"}`, `{"transition":"complete","message":"m","accomplished":[],"remaining":[],"number":3}`, `[]`, `{"transition":7}`, `{"transition":"report","message":" "}`,
	} {
		f.Add("working", []byte(seed))
		f.Add("wrapping", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, state string, in []byte) {
		m, err := checkMove(state, orchestrator, in)
		if err != nil {
			if _, ok := err.(*refusal); !ok || err.Error() == "" {
				t.Errorf("refused by %T: %v", err, err)
			}
			return
		}
		if !mayMove(state, orchestrator, m.Transition) || messageIn(m.Payload) == "" {
			t.Errorf("in %s accepted is %s: %s", state, m.Transition, m.Payload)
		}
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(m.Payload, &members); err != nil || members["transition"] != nil {
			t.Errorf("the payload is %s", m.Payload)
		}
		for _, name := range set {
			if members[name] != nil && (m.Transition == handOff || m.Transition == complete) {
				t.Errorf("a worker sets %s", name)
			}
		}
	})
}

// FuzzFold: no line of a log makes the fold fail, and none makes it change what it was given.
func FuzzFold(f *testing.F) {
	kinds := append(slices.Collect(maps.Keys(ofAgents)), slices.Collect(maps.Keys(ofSession))...)
	slices.Sort(kinds)
	for i := range kinds {
		f.Add(uint8(i), []byte(`{"as":"orchestrator","number":1,"specialistId":"orchestrator","toState":"checking","costUSD":0.5,"words":["a"],"id":1,"text":"t"}`))
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		s := State{}
		for _, e := range []entry{{Agent: true, Kind: "opened", Data: []byte(`{"as":"orchestrator","number":1,"session_id":"x"}`)}, {Agent: true, Kind: kindSaid, Data: []byte(`{"id":"a","text":"t"}`)}} {
			s = fold(s, e)
		}
		before, _ := json.Marshal(s)
		name := kinds[int(kind)%len(kinds)]
		_, ofAgent := ofAgents[name]
		fold(s, entry{Agent: ofAgent, Seq: 7, Kind: name, Data: data})
		if after, _ := json.Marshal(s); string(after) != string(before) {
			t.Errorf("%s %s changed\n%s\nto\n%s", name, data, before, after)
		}
	})
}
