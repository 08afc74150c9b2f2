package machine_test

import (
	"fmt"

	"github.com/dialai/dialai/machine"
)

func ExampleParse() {
	m, err := machine.Parse("door.json", []byte(`{
  "machineName": "door", "initialState": "closed", "goalState": "open",
  "states": { "closed": { "transitions": { "push": "open" } }, "open": {} } }`), machine.Checks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range m.Initial().Transitions {
		fmt.Println(t.Name, "leads to", t.Target)
	}
	// Output: push leads to open
}

func ExampleParse_refused() {
	_, err := machine.Parse("door.json", []byte(`{
  "machineName": "door", "initialState": "closed", "goalState": "open",
  "states": { "closed": { "transitions": { "push": "opne" } }, "open": {} } }`), machine.Checks{})
	fmt.Println(err)
	// Output:
	// Invalid machine definition: transition "push" in state "closed" points to non-existent state "opne"
	// door.json:3:52: error[unknown-target]: transition "push" in state "closed" points to non-existent state "opne"
	//     hint: did you mean "open"?
}

func ExampleMachine_Lint() {
	m, err := machine.Parse("door.json", []byte(`{
  "machineName": "door", "initialState": "closed", "goalState": "open",
  "states": { "closed": { "transitions": { "push": "open", "kick": "broken" } }, "open": {}, "broken": {} },
  "specialists": [ { "role": "proposer", "specialistId": "visitor", "isHuman": true } ] }`), machine.Checks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range m.Lint(machine.LintOptions{}) {
		fmt.Println(p.Warning())
	}
	// Output:
	// door.json:3:94: warning[dead-end]: state "broken" has no transitions and is neither the goal nor final: a session that enters it fails
	//     hint: write "final": true if the session may end here
}
