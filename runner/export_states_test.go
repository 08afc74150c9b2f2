package runner

import (
	"fmt"
	"strings"
)

// RoundDrawing returns the states of a round as a Mermaid diagram, as their table has
// them.
func RoundDrawing() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> opening : Step\n")
	for at := range roundStates {
		for seen := range roundInputs {
			switch step := roundTable[at][seen]; {
			case step.ends != "":
				fmt.Fprintf(&b, "    %s --> [*] : %s (%s)\n", roundStateNames[at], roundInputNames[seen], step.ends)
			case step.to != opening:
				fmt.Fprintf(&b, "    %s --> %s : %s\n", roundStateNames[at], roundStateNames[step.to], roundInputNames[seen])
			}
		}
	}
	return b.String()
}
