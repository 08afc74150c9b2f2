package session

import (
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// Rounds that were closed and that a human still looks at. An execution for which an
// audit was drawn puts an Audit on the list; a lesson that is held puts a SecondLook
// there; and a second look that disagrees with the first human puts an Adjudication in
// its own place. Reviewed takes a review off again, and its Lesson says what that
// teaches.
//
// A review moves no session and reopens no round. It is never changed, and neither is
// the list: sessions share both. A human looks at a round once: whoever has decided it
// before has seen it ([Review.Seen]), and whoever had the proposals shown gives no blind
// answer. Only where two disagree and no third is left, one of them takes the other's
// choice ([Review.Joins]).

// A ReviewKind says why a closed round is looked at.
type ReviewKind string

// The kinds of reviews.
const (
	Audit        ReviewKind = "audit"        // the engine decided it, and a human checks that
	SecondLook   ReviewKind = "second"       // a human decided it, and another decides it too
	Adjudication ReviewKind = "adjudication" // two humans disagreed about it, and a third settles it
)

// Draws says what was drawn for a round when it closed: it is logged whatever came
// of it, so that nobody can wonder later.
type Draws struct {
	AuditRate  exact.Billionths `json:"auditRate,omitempty"` // probability of an audit; 0 if none was possible
	Audit      bool             `json:"audit,omitempty"`
	SecondRate exact.Billionths `json:"secondRate,omitempty"` // of a second human
	Second     bool             `json:"second,omitempty"`
}

// A Review is a closed round that waits for a human. It never changes.
type Review struct {
	Kind    ReviewKind
	Key     specialist.RoundKey
	State   *machine.State
	Since   specialist.Time
	Outcome *trust.Outcome    // without its truth; of a second look, with that of the first human
	second  *trust.SecondLook // of an adjudication

	revealed []string // who has looked at what was proposed and decided; "" is anybody
}

// Seen reports whether somebody has decided the round before.
func (v *Review) Seen(id machine.SpecialistID) bool {
	who := string(id)
	return v.Outcome.HumanID == who || v.second != nil && (v.second.FirstHuman == who || v.second.SecondHuman == who)
}

// LookedAt reports whether somebody has looked at what was proposed and decided; "" is
// anybody who was not named.
func (v *Review) LookedAt(id machine.SpecialistID) bool {
	return slices.Contains(v.revealed, string(id))
}

// RevealedTo reports whether what somebody makes of the round is not blind, because
// they looked, or somebody did who was not named.
func (v *Review) RevealedTo(id machine.SpecialistID) bool {
	return v.LookedAt(id) || v.LookedAt("")
}

// Joins reports whether somebody who has decided the round before would now choose what
// the other human has, with whom they disagreed.
func (v *Review) Joins(by, transition string) bool {
	l := v.second
	return l != nil && (by == l.FirstHuman && transition == l.Second || by == l.SecondHuman && transition == l.First)
}

// Reviewed records what a human made of a closed round. It executes nothing.
type Reviewed struct {
	Review         ReviewKind
	Round, Attempt int32
	SpecialistID   string
	TransitionName string
	Reasoning      string
	Lesson         *trust.Lesson // what it teaches; nil if that has to wait
	Actor          *Actor        // who answered; nil if that is not said
	Manner
}

// Agrees reports whether the answer is what was decided before: by the engine, or by the human
// before.
func (d *Reviewed) Agrees() bool {
	if d.Lesson == nil {
		return false
	}
	if s := d.Lesson.Second; s != nil && d.Review == SecondLook {
		return s.First == s.Second
	}
	o := d.Lesson.Outcome
	return o != nil && o.Truth == o.Pick && o.Source == trust.Audited
}

// Reviews returns the closed rounds of the session that wait for a human, the
// oldest first. The caller must not change it.
func (s *Session) Reviews() []*Review { return s.reviews }

// applyReview enters the review that an executed transition was drawn for.
func applyReview(s *Session, o *OpenRound, d *Executed) {
	if d.Draws == nil || !d.Draws.Audit || d.How != ByConsensus {
		return
	}
	s.await(&Review{Kind: Audit, State: s.Offered(), Since: d.At, Outcome: Automatic(s, o, d),
		Key: specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}})
}

// await adds a review to those that wait.
func (s *Session) await(v *Review) { s.reviews = append(slices.Clip(s.reviews), v) }

// Automatic returns the outcome of a round that the engine decided, but for the
// truth.
func Automatic(s *Session, o *OpenRound, d *Executed) *trust.Outcome {
	key := specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}
	a := &trust.Outcome{
		Session: s.ID.String(), Round: key.ID(), Machine: s.Machine().Name(), State: d.Transition.From.Name, DefinitionDigest: s.Machine().Digest(),
		Options: optionsOf(d.Transition.From), Source: trust.Audited, Automatic: true, Pick: d.Transition.Name,
	}
	if d.Draws != nil && d.Draws.Audit {
		a.SamplingProb = d.Draws.AuditRate
	}
	versions := map[string]string{}
	if v := o.Verdict; v != nil {
		if e := v.Evidence; e != nil {
			a.PolicyDigest, a.Partial = e.PolicyDigest, e.Partial || o.Waved()
			for i, arrival := range v.Order {
				if p := o.arrived(arrival); p != nil {
					versions[p.SpecialistID] = e.Versions[i]
				}
			}
		}
		if j := v.Decision.Judgement; j != nil && j.Best >= 0 {
			if v.Decision.Rule != arbiter.ByChampion { // whose P comes from fewer votes than the promise is tested on
				a.P, a.N = j.P[j.Best], j.N
			}
			if j.Risk != nil {
				a.Promise = &j.Risk.Promise
			}
		}
	}
	a.Proposals = o.Learned(func(id string) string { return versions[id] }, s.Machine())
	return a
}

func optionsOf(s *machine.State) []string {
	names := make([]string, len(s.Transitions))
	for i, t := range s.Transitions {
		names[i] = t.Name
	}
	return names
}

// applyReviewed takes a review off the list, and puts on that of a disagreement.
func applyReviewed(s *Session, d *Reviewed, at specialist.Time) {
	i := s.reviewByID(specialist.RoundKey{Session: s.ID, Round: d.Round, Attempt: d.Attempt}.ID())
	if i < 0 {
		return // nobody had drawn it
	}
	v := s.reviews[i]
	s.dropReview(i)
	if d.Review == SecondLook && d.TransitionName != v.Outcome.Truth {
		s.await(&Review{Kind: Adjudication, Key: v.Key, State: v.State, Since: at, Outcome: v.Outcome, second: v.look(d.SpecialistID, d.TransitionName), revealed: v.revealed})
	}
}

// dropReview takes one review off the list.
func (s *Session) dropReview(i int) {
	if s.reviews = slices.Delete(slices.Clone(s.reviews), i, i+1); len(s.reviews) == 0 {
		s.reviews = nil
	}
}

// ReviewOf returns the review that a round waits for, by its id; nil if there is none.
func (s *Session) ReviewOf(roundID string) *Review {
	if i := s.reviewByID(roundID); i >= 0 {
		return s.reviews[i]
	}
	return nil
}

func (s *Session) reviewByID(roundID string) int {
	return slices.IndexFunc(s.reviews, func(v *Review) bool { return v.Key.ID() == roundID })
}

// look returns what two humans made of the round.
func (v *Review) look(by, transition string) *trust.SecondLook {
	o := v.Outcome
	return &trust.SecondLook{Machine: o.Machine, State: o.State, Options: len(o.Options), FirstHuman: o.HumanID, First: o.Truth, SecondHuman: by, Second: transition}
}

// Lesson returns what a human's answer to the review teaches; blind says that it was
// given without sight of what was proposed and decided.
func (v *Review) Lesson(by, transition string, blind bool) *trust.Lesson {
	o := *v.Outcome
	switch {
	case v.Joins(by, transition): // the disagreement stays counted, and nobody has said who was right
		o.Truth, o.Blind = transition, false
		return &trust.Lesson{Outcome: &o}
	case v.Kind == Audit:
		o.Truth, o.HumanID, o.Blind = transition, by, blind
		return &trust.Lesson{Outcome: &o}
	case v.Kind == SecondLook:
		look := v.look(by, transition)
		if look.First != look.Second {
			return &trust.Lesson{Second: look}
		}
		return &trust.Lesson{Second: look, Outcome: &o}
	}
	look := *v.second
	look.Settled = transition
	o.Truth, o.HumanID, o.Source, o.Blind = transition, by, trust.Adjudicated, blind
	return &trust.Lesson{Second: &look, Outcome: &o, Settles: true}
}

// Key returns the key of the round that the transition closed.
func (e *Executed) Key(session specialist.SessionID) specialist.RoundKey {
	return specialist.RoundKey{Session: session, Round: e.Round, Attempt: e.Attempt}
}
