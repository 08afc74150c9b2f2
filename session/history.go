package session

import (
	"github.com/dialai/dialai/specialist"
)

// TransitionRecords returns executed transitions as proposers see them.
func TransitionRecords(history []*Executed) []specialist.TransitionRecord {
	records := make([]specialist.TransitionRecord, len(history))
	for i, e := range history {
		records[i] = specialist.TransitionRecord{TransitionName: e.Transition.Name, Reasoning: e.Reasoning, ExecutionTimestamp: e.At, MetaJSON: e.MetaJSON}
	}
	return records
}

// Author names whose choice the transition was.
func (e *Executed) Author() string {
	if e.IsHuman {
		return e.SpecialistID + " (human)"
	}
	return e.SpecialistID
}

// HumanOverride is what DIAL says of a ruling without a reason.
const HumanOverride = "Human override accepted"

// GivenReason returns why a human ruled as they did; "" for DIAL's words for a ruling
// without a reason, which nobody shall read as one.
func GivenReason(reasoning string) string {
	if reasoning == HumanOverride {
		return ""
	}
	return reasoning
}
