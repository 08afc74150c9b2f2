package arbiter

import (
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
)

// judged returns a judgement in words, as it is recorded.
func judged(j *trust.Judgement) string {
	switch j.Code {
	case trust.NoProposals:
		if j.Pick == "" {
			return "No proposals" + tooExpensive(j)
		}
		return fmt.Sprintf("Nobody proposed %s, the most probable transition (%s), human input required", j.Pick, probability(j))
	case trust.ColdStart:
		return fmt.Sprintf("Cold start: %d of %d human decisions known, human input required", j.N, trust.CalibratedFrom)
	case trust.RiskNotEstablished:
		return fmt.Sprintf("Probability %s of %s, but errors below %s are not established (%s), human input required", probability(j), j.Pick, j.Risk.Promise.MaxError, j.Risk.State)
	case trust.Irreversible:
		return fmt.Sprintf("Probability %s of %s, which cannot be undone, human input required", probability(j), j.Pick)
	case trust.CannotReach:
		if j.Pick == "" {
			return fmt.Sprintf("No answer could reach %s, human input required", floor(bar(j)))
		}
		return fmt.Sprintf("Probability %s of %s, and no answer still out can reach %s, human input required", probability(j), j.Pick, floor(bar(j)))
	case trust.Decided:
		return decided(j)
	}
	return fmt.Sprintf("Probability %s of %s below %s %s", probability(j), j.Pick, barName(j), floor(bar(j))) + tooExpensive(j)
}

// tooExpensive says that nobody else was asked because of what that would cost.
func tooExpensive(j *trust.Judgement) string {
	if j.Stop != trust.StopTooExpensive {
		return ""
	}
	return ", and asking on would cost more than a human"
}

func decided(j *trust.Judgement) string {
	switch {
	case len(j.Options) == 1:
		return fmt.Sprintf("Only transition: %s", j.Pick)
	case j.Risk == nil:
		return fmt.Sprintf("Probability %s of %s >= threshold %s", probability(j), j.Pick, floor(bar(j)))
	}
	return fmt.Sprintf("Probability %s of %s >= tau %s (errors at most %s with confidence %s)",
		probability(j), j.Pick, floor(bar(j)), j.Risk.Promise.MaxError, j.Risk.Promise.Confidence)
}

// judgedShort returns a judgement in the few words the command line prints.
func judgedShort(j *trust.Judgement) string {
	switch j.Code {
	case trust.NoProposals:
		if j.Pick == "" {
			return "no proposals"
		}
		return "nobody proposed the most probable transition"
	case trust.ColdStart:
		return "cold start, human input required"
	case trust.RiskNotEstablished:
		return "risk not established, human input required"
	case trust.Irreversible:
		return "irreversible, human input required"
	case trust.CannotReach:
		if j.Pick == "" {
			return "cannot reach " + floor(bar(j))
		}
		return fmt.Sprintf("probability %s, cannot reach %s", probability(j), floor(bar(j)))
	case trust.Decided:
		if len(j.Options) == 1 {
			return "only transition"
		}
		return fmt.Sprintf("probability %s >= %s %s", probability(j), barName(j), floor(bar(j)))
	}
	return fmt.Sprintf("probability %s below %s %s", probability(j), barName(j), floor(bar(j)))
}

// bar returns what the probability was compared with.
func bar(j *trust.Judgement) exact.Billionths {
	if j.Risk != nil {
		return j.Risk.Tau
	}
	return *j.Threshold
}

func barName(j *trust.Judgement) string {
	if j.Risk != nil {
		return "tau"
	}
	return "threshold"
}

// probability and floor cut to four digits, so that what is below a bar never
// looks as if it had reached it, save in the digits not shown.
func probability(j *trust.Judgement) string { return floor(j.P[j.Best]) }

func floor(b exact.Billionths) string { return (b - b%100_000).String() }
