package trust

import (
	"cmp"
	"math"

	"github.com/dialai/dialai/exact"
)

// The stages of progressive collapse, by one function: from asking everybody and a human
// (calibrating), over deciding above tau (consensus), to one specialist (champion), and back when
// it fails (demoted) or the promise is lost. What each stage asks for is worked out elsewhere;
// this says only what follows from it.

// A Stage says how far a state has come in doing without humans.
type Stage string

// The stages of collapse.
const (
	Calibrating Stage = "calibrating" // everyone is asked, a human decides
	Consensus   Stage = "consensus"   // the engine decides above tau, else a human
	Championed  Stage = "champion"    // one specialist decides, with audits
	Demoted     Stage = "demoted"     // everyone is asked again; decided as in consensus if tau still stands, else by a human
)

// CoolDown is the number of outcomes after a demotion before a state returns to
// consensus.
const CoolDown = 20

// A Situation is what the next stage of a state depends on.
type Situation struct {
	Tau         bool  // a tau is established
	Certified   bool  // there is a valid certificate
	Demoted     bool  // the champion may not go on; see [Champion.Demotion]
	Outcomes    int64 // since the demotion
	CoolDown    int64 // outcomes to wait; 0 stands for [CoolDown]
	Frozen      bool  // a human froze the state: nobody is promoted
	ForcedBack  bool  // a human demoted the state
	LostPromise bool  // the detector of the promise raised the alarm
}

// Next returns the stage that follows s, which may be s.
func (s Stage) Next(now Situation) Stage {
	switch {
	case now.ForcedBack && s == Championed:
		return Demoted
	case now.ForcedBack:
		return Calibrating
	}
	switch s {
	case Championed:
		if now.Demoted || !now.Certified {
			return Demoted
		}
	case Demoted:
		if now.Outcomes >= cmp.Or(now.CoolDown, CoolDown) {
			return settled(now)
		}
	case Consensus:
		switch {
		case now.LostPromise || !now.Tau:
			return Calibrating
		case now.Certified && !now.Frozen:
			return Championed
		}
	default:
		return settled(now)
	}
	return s
}

func settled(now Situation) Stage {
	if now.Tau {
		return Consensus
	}
	return Calibrating
}

// A Contender is one who may become champion of a state.
type Contender struct {
	SpecialistID string
	Certificate  Certificate // valid
	Cost         exact.Money // of asking it once
	LowerBound   exact.Billionths
}

// Elect returns the index of the contender that costs least in the long run:
// asking it, auditing it, and the errors it may make; ties go to the smaller id.
// It returns -1 if there is none.
func Elect(list []Contender, humanCost, errorCost exact.Money) int {
	best, least := -1, math.Inf(1)
	for i := range list {
		c := &list[i]
		price := float64(c.Cost) + float64(c.Certificate.AuditRate.Float()*float64(humanCost)) +
			float64((1-c.LowerBound.Float())*float64(errorCost))
		if price < least || price == least && c.SpecialistID < list[best].SpecialistID {
			best, least = i, price
		}
	}
	return best
}

// ErrorCost returns what an error is taken to cost where nobody says: so much that
// errors at the promised rate cost as much as asking a human each time.
func ErrorCost(humanCost exact.Money, maxError exact.Billionths) exact.Money {
	if maxError <= 0 {
		return math.MaxInt64
	}
	cost := float64(humanCost) / maxError.Float()
	if cost >= math.MaxInt64 {
		return math.MaxInt64
	}
	return exact.Money(math.Round(cost))
}
