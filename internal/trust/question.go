package trust

import "github.com/dialai/dialai/exact"

// A Question is a round that is to be judged: everything besides the ledger that
// a [Judgement] depends on.
type Question struct {
	Machine, State string
	// Options are the legal transitions, in definition order. They belong to the
	// caller and are not kept.
	Options []string
	// Removed marks the options that a guard forbids; nil if it forbids none. They
	// keep no probability: that of the others is renormalised.
	Removed []bool
	// Irreversible marks the options that only a human may decide; nil if none.
	Irreversible []bool
	Votes        []Vote // in the round's order; see [Vote]
	// Partial says that not everyone was asked, so the temperature is that of as
	// many votes as there are. Else it is only where outcomes say so (fit.go).
	Partial bool
	// Stop is why nobody else was asked, "" if everyone was or nobody knows.
	Stop         Stop
	PolicyDigest string // of arbiter, experts, roster and prompts, as in [Outcome]
	Policy       Policy
}

// A Vote is one live proposal of a [Question]. There may be one per specialist.
type Vote struct {
	SpecialistID string
	Version      string // "" is a version too
	Model        string // "" if unknown
	OptionOrder  string // equal for those who saw the options in the same order
	Option       int    // index into Question.Options of what it proposed
	Human        bool
}

// A Policy says under which rules a question is decided. The zero Policy decides
// under [DefaultPromise], with all experts.
type Policy struct {
	// Threshold decides by probability alone, if Promise is nil; no promise goes
	// with it.
	Threshold *exact.Billionths
	// Promise decides where its test has established that it holds. nil together
	// with a nil Threshold stands for [DefaultPromise].
	Promise *Promise
	// Experts that take part; 0 means all.
	Experts Experts
	// NoStacking keeps the expert S out, which else joins once the machine has
	// [StackingFrom] outcomes.
	NoStacking bool
	// Rounds lets the experts O and D take part, which learn from rounds without a human's
	// word, too ([Ledger.AddUnruled]), as soon as there are any.
	Rounds bool
}

// A Code is the stable name of what a judgement came to.
type Code string

// The codes. A human is needed in all cases but Decided.
const (
	Decided            Code = "decided"
	NoProposals        Code = "no_proposals"
	ColdStart          Code = "cold_start"           // too few outcomes to say anything
	BelowThreshold     Code = "below_threshold"      // the threshold is not reached
	RiskNotEstablished Code = "risk_not_established" // the promise is still being tested, or cannot be kept
	BelowTau           Code = "below_tau"            // the promise holds above tau only
	Irreversible       Code = "irreversible"         // the pick needs a human whatever its probability
	CannotReach        Code = "cannot_reach"         // no answer that is still out could lift the pick to tau
)

// A Judgement is the verdict of the bayes strategy on a [Question], and why. Its
// JSON form is stable.
type Judgement struct {
	Strategy   string             `json:"strategy"` // "bayes"
	P          []exact.Billionths `json:"P"`        // by option, 0 for those removed; they add up to 1 within rounding
	Options    []string           `json:"options"`
	Pick       string             `json:"pick,omitempty"` // the most probable option, ties by the round's order; "" without votes
	Best       int                `json:"-"`              // index of Pick among the options, -1 without votes
	Winner     int                `json:"-"`              // index of the winning vote, the most trusted for Pick; -1 if nobody proposed it
	Calibrated bool               `json:"calibrated"`     // N >= 20 and an established tau
	N          int64              `json:"n"`              // outcomes of the machine
	Experts    []ExpertShare      `json:"experts"`
	Votes      []VoteShare        `json:"votes"`
	Prior      []exact.Billionths `json:"prior"` // of the options, from the state's outcomes
	NEff       exact.Billionths   `json:"nEff"`  // how many independent voters these are worth, in this round; see Ledger.Effective
	Risk       *RiskView          `json:"risk,omitempty"`
	Threshold  *exact.Billionths  `json:"threshold,omitempty"` // compared with, if no promise is
	Code       Code               `json:"code"`
	Stop       Stop               `json:"stop,omitempty"` // why not everyone was asked
}

// An ExpertShare is what one expert of the mixture said.
type ExpertShare struct {
	Name   string             `json:"name"`   // V, L4, L16, C, W, S, O or D
	Weight exact.Billionths   `json:"weight"` // its share of the mixture
	G      exact.Billionths   `json:"g"`      // its temperature, by which scores are multiplied
	P      []exact.Billionths `json:"P"`
}

// A VoteShare is what one vote counted for, and why.
type VoteShare struct {
	SpecialistID string           `json:"specialist"`
	Transition   string           `json:"transition"`
	Human        bool             `json:"human,omitempty"`
	Trust        exact.Billionths `json:"trust"`  // probability of agreeing with a human here
	K            int64            `json:"k"`      // agreements in Level
	N            int64            `json:"n"`      // comparisons in Level
	Weight       exact.Billionths `json:"weight"` // log-odds, before the discount; negative counts against
	Discount     exact.Billionths `json:"discount"`
	Level        string           `json:"level"`            // the nearest level with any comparison: state, machine, global or prior
	Pooled       []LevelCount     `json:"pooled,omitempty"` // all levels with comparisons, nearest first; each excludes the one before
}

// A LevelCount is the record of one specialist at one level of the hierarchy.
type LevelCount struct {
	Level string           `json:"level"` // LevelState, LevelMachine (other states) or LevelGlobal (other machines)
	K     exact.Billionths `json:"k"`     // whole, unless part of it is inherited from an earlier version
	N     exact.Billionths `json:"n"`
}

// A RiskView is where the test of a promise stood when a question was judged.
type RiskView struct {
	Promise Promise          `json:"promise"`
	Tau     exact.Billionths `json:"tau,omitempty"` // 0 until established
	State   RiskState        `json:"state"`
}

// A RiskState says how far the test of a promise has come.
type RiskState string

// The states of a promise.
const (
	Collecting   RiskState = "collecting"   // every round goes to a human
	Met          RiskState = "met"          // established above tau
	Lost         RiskState = "lost"         // the detector raised the alarm; a new epoch collects
	Unattainable RiskState = "unattainable" // cannot be kept in this epoch
)

// Experts is a set of the experts of the mixture.
type Experts uint8

// The experts: unweighted votes, log-odds with little and much pooling,
// confusion matrices, alignments, stacking, and one coin or matrices that are learned from
// rounds without a human's word, too.
const (
	ExpertV Experts = 1 << iota
	ExpertL4
	ExpertL16
	ExpertC
	ExpertW
	ExpertS
	ExpertO
	ExpertD
)

// unruledExperts are those that learn from rounds without a human's word.
const unruledExperts = ExpertO | ExpertD
