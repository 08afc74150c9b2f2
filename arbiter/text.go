package arbiter

import (
	"fmt"
	"strings"
)

// A Rule is what decided a round. The texts of all rules are in this file.
type Rule uint8

// The rules. Custom decisions bring a text of their own.
const (
	Custom Rule = iota
	NoProposals
	NothingReceived // firstProposal's word for it
	SingleProposal
	Untrusted
	ColdStart
	MarginReached
	MarginBelow
	FirstReceived
	Irreversible // the winner's transition cannot be undone
	ByJudgement  // the Judgement says why
	ByChampion   // one specialist decides the state alone, by certificate
	Held         // a human sent the state back to humans
	NoQuorum     // too few have answered, or somebody who is required has not
	NoPayload    // nobody who proposed the winner gave what its parameters ask for
	Approvals    // the winner's transition takes the approvals of humans
	NoDecider    // a human proposed the winner who may not rule in the state
	needsRuling  // a human proposed the winner where a second one may have to agree before
)

// codes are the stable codes of the rules that have one of their own.
var codes = [...]string{
	NoProposals: "no_proposals", NothingReceived: "no_proposals", Untrusted: "untrusted", ColdStart: "cold_start", MarginBelow: "below_threshold",
	Irreversible: "irreversible", Held: "calibrating", NoQuorum: "no_quorum", NoPayload: "no_payload",
	Approvals: "approvals", NoDecider: "deciders", needsRuling: "ruling_needed",
}

// Code returns the stable name of the rule's outcome.
func (d Decision) Code() string {
	if d.Rule == ByJudgement {
		return string(d.Judgement.Code)
	}
	if int(d.Rule) < len(codes) && codes[d.Rule] != "" {
		return codes[d.Rule]
	}
	if d.Consensus() {
		return "decided"
	}
	return "no_consensus"
}

// Reasoning returns the verdict in words, as it is recorded.
func (d Decision) Reasoning() string {
	switch d.Rule {
	case NoProposals:
		return "No proposals"
	case NothingReceived:
		return "No proposals received"
	case SingleProposal:
		return "Single proposal with no competing proposals"
	case Untrusted:
		return fmt.Sprintf("Single proposal from %s is not trusted (alignment %s), human input required", d.Subject, d.Weight.Text2())
	case ColdStart:
		return "Cold start: no alignment data available, human input required"
	case MarginReached:
		return fmt.Sprintf("Alignment-weighted margin %s >= threshold %s (leader: %s)", d.Margin.Text2(), d.Threshold, d.Subject)
	case MarginBelow:
		return fmt.Sprintf("Alignment-weighted margin %s below threshold %s", d.Margin.Text2(), d.Threshold)
	case FirstReceived:
		return fmt.Sprintf("First proposal received wins (from %s)", d.Subject)
	case Irreversible:
		return fmt.Sprintf("Transition %q cannot be undone, human input required", d.Subject)
	case ByJudgement:
		return judged(d.Judgement)
	case ByChampion:
		return fmt.Sprintf("Champion %s decides alone", d.Subject)
	case NoPayload:
		return fmt.Sprintf("Nobody who proposed %q gave the payload that it needs, human input required", d.Subject)
	case Approvals:
		return fmt.Sprintf("Transition %q needs the approval of humans", d.Subject)
	case NoDecider:
		return fmt.Sprintf("%s is none of the humans who decide here, human input required", d.Subject)
	case needsRuling:
		return fmt.Sprintf("A human proposed %q, where another may have to agree (secondHuman): it takes a ruling", d.Subject)
	case Held:
		return fmt.Sprintf("State %q was sent back to humans, human input required", d.Subject)
	}
	return d.Text
}

// maxShort is the length to which a custom reasoning is cut, in characters.
const maxShort = 200

// Short returns the verdict in the few words the command line prints.
func (d Decision) Short() string {
	switch d.Rule {
	case NoProposals, NothingReceived:
		return "no proposals"
	case SingleProposal:
		return "single proposal, no competing proposals"
	case Untrusted:
		return "single proposal, not trusted"
	case ColdStart:
		return "cold start, human input required"
	case MarginReached:
		return fmt.Sprintf("alignment margin %s >= threshold %s", d.Margin.Text2(), d.Threshold)
	case MarginBelow:
		return fmt.Sprintf("alignment margin %s below threshold %s", d.Margin.Text2(), d.Threshold)
	case FirstReceived:
		return "first proposal received, from " + d.Subject
	case Irreversible:
		return fmt.Sprintf("%q cannot be undone, human input required", d.Subject)
	case ByJudgement:
		return judgedShort(d.Judgement)
	case ByChampion:
		return "champion " + d.Subject + " decides alone"
	case Held:
		return "sent back to humans"
	case NoPayload:
		return fmt.Sprintf("no payload for %q", d.Subject)
	case Approvals:
		return fmt.Sprintf("%q needs the approval of humans", d.Subject)
	case NoDecider:
		return d.Subject + " does not decide here"
	case needsRuling:
		return fmt.Sprintf("%q was proposed by a human and takes a ruling", d.Subject)
	case NoQuorum:
		if d.Quorum != nil {
			return d.Quorum.numbers()
		}
	}
	line, _, _ := strings.Cut(d.Text, "\n")
	if runes := []rune(line); len(runes) > maxShort {
		line = string(runes[:maxShort])
	}
	return line
}
