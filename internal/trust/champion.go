package trust

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/specialist"
)

// A Champion is a specialist that decides a state alone, and what was seen of it
// since. It is a value.
type Champion struct {
	Certificate Certificate `json:"certificate"`
	Detector    Detector    `json:"detector"`
	Decisions   int64       `json:"decisions"`           // made alone
	Overrules   []int64     `json:"overrules,omitempty"` // after how many decisions a human overruled one unasked: the last two
	Failures    int64       `json:"failures,omitempty"`  // in a row
}

// Limits of what a champion may do before it is demoted at once.
const (
	overrulesMost   = 2
	overrulesWithin = 20 // automatic decisions
	failuresMost    = 3
)

// Audited returns c after a human looked at one of its decisions.
func (c Champion) Audited(right bool) Champion {
	c.Detector = c.Detector.Add(right, c.Certificate.Target.Float())
	return c
}

// A Demotion is the reason why a champion may not go on.
type Demotion string

// The reasons to demote at once.
const (
	NotDemoted        Demotion = ""
	DemotedAlarm      Demotion = "alarm"     // the detector
	DemotedOverruled  Demotion = "overruled" // twice within twenty decisions
	DemotedFailures   Demotion = "failures"  // three in a row
	DemotedExpired    Demotion = "expired"   // the certificate
	DemotedVersion    Demotion = "version_changed"
	DemotedDefinition Demotion = "definition_changed" // of the machine, its options with it
)

// Demotion returns why c has to be demoted, given the present time, its version
// and the digest of the machine's definition; NotDemoted if it may go on.
func (c Champion) Demotion(now specialist.Time, version, definitionDigest string) Demotion {
	switch {
	case c.Detector.Alarm():
		return DemotedAlarm
	case len(c.Overrules) >= overrulesMost && c.Decisions-c.Overrules[overrulesMost-1] < overrulesWithin:
		return DemotedOverruled
	case c.Failures >= failuresMost:
		return DemotedFailures
	case now >= c.Certificate.ExpiresAt:
		return DemotedExpired
	case version != c.Certificate.Version:
		return DemotedVersion
	case definitionDigest != c.Certificate.DefinitionDigest:
		return DemotedDefinition
	}
	return NotDemoted
}

// AuditPlan says how often automatic decisions are looked at.
type AuditPlan struct {
	Rate         exact.Billionths // in the long run
	NewcomerRate exact.Billionths // of the first decisions
	Newcomer     int64            // how many those are
}

// When a detector is this far, audits are as many times as frequent.
const (
	suspicious = 10
	suspicion  = 5
)

// Probability returns that of auditing the next automatic decision, after so many
// since the promotion or since tau was established.
func (a AuditPlan) Probability(decisions int64, d Detector) exact.Billionths {
	p := a.Rate
	if decisions < a.Newcomer {
		p = max(p, a.NewcomerRate)
	}
	if d.Value() > suspicious {
		p = min(exact.One, suspicion*p)
	}
	return p
}

// NewSecretDraw returns a stream that nobody can foresee who does not know the
// secret: for draws that a proposer could exploit, such as audits. See [NewDraw].
func NewSecretDraw(secret []byte, parts ...string) *Draw {
	return drawFrom(hmac.New(sha256.New, secret), parts)
}

// Happens reports whether an event of that probability happens in this draw.
func (d *Draw) Happens(p exact.Billionths) bool {
	return exact.Billionths(d.below(uint64(exact.One))) < p
}
