package planning

import "github.com/dialai/dialai/machine"

// DefaultQuorum returns the quorum of a state that declares none: any where one
// answer is meant to be enough, which is under firstProposal, in mode eager and for a
// champion that was asked alone and has answered; else majority. strategy is the name of the arbiter's.
func DefaultQuorum(strategy string, mode machine.Mode, champion bool) machine.Quorum {
	if strategy == machine.FirstProposal || mode == machine.Eager || champion {
		return machine.Quorum{Rule: machine.AnyQuorum}
	}
	return machine.Quorum{Rule: machine.MajorityQuorum}
}
