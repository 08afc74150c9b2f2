package trust

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/dialai/dialai/exact"
)

// The record from which everything is learned: one round whose right answer a human
// fixed. It is stored, so its JSON must stay readable for as long as stores exist;
// unknown members are refused, since a ledger that skipped one would not be the ledger
// that was.
//
// Nothing is added to a ledger before Check: the truth and the picks are among the
// options, nobody has two live proposals, probabilities are shares. What was said
// before the truth was known (P, Pick, N, Stops) is part of the record, because a
// promise can only be tested on what was said before. SamplingProb says how likely it
// was that a human saw the round at all: its inverse is how many rounds it stands for.

// ErrOutcome is wrapped by every error about an outcome that cannot be counted.
var ErrOutcome = errors.New("bad outcome")

// A Source says how a human came to decide a round.
type Source string

// The sources of outcomes. There is no source for decisions of the engine: those
// never make an outcome.
const (
	Forced      Source = "forced"      // a human decided the round
	Audited     Source = "audit"       // a human checked a closed round that was drawn at random
	Adjudicated Source = "adjudicated" // a third human settled what two humans disagreed about
)

// An Outcome is one round whose right answer a human fixed, as it is recorded:
// everything that the ledger learns from. It is plain data; nothing in it may
// change once it was added to a [Ledger].
type Outcome struct {
	Seq              int64    `json:"seq,omitempty"` // place in the store's log, for people
	Session          string   `json:"session,omitempty"`
	Round            string   `json:"round,omitempty"`
	Machine          string   `json:"machine"`
	State            string   `json:"state"`
	DefinitionDigest string   `json:"definitionDigest,omitempty"`
	Options          []string `json:"options"` // the legal transitions, in definition order
	Truth            string   `json:"truth"`   // the transition that the human chose, one of Options
	Source           Source   `json:"source"`
	HumanID          string   `json:"humanId,omitempty"`
	Blind            bool     `json:"blind,omitempty"`   // the human had seen no proposals
	Unasked          bool     `json:"unasked,omitempty"` // the human overruled the engine without having been asked: no random sample
	// Automatic says that the engine had decided this round by itself: Pick was
	// executed, and an audit or an overruling followed.
	Automatic bool `json:"automatic,omitempty"`
	// Partial says that not everyone was asked at once, so the round is no fair
	// sample of what asking fewer would have saved.
	Partial bool `json:"partial,omitempty"`
	// NoQuorum says that fewer had answered than must, or somebody who is required had
	// not: the engine would have left the round to a human at any probability, so it is
	// no pair of a promise.
	NoQuorum bool `json:"noQuorum,omitempty"`
	// SamplingProb is the probability with which a human came to see this round,
	// in (0, 1]; 0 stands for 1.
	SamplingProb exact.Billionths `json:"samplingProb,omitempty"`
	PolicyDigest string           `json:"policyDigest,omitempty"` // of arbiter, experts, roster and prompts; a change opens a risk epoch
	Promise      *Promise         `json:"promise,omitempty"`      // in force; nil if none was declared
	// P and Pick are the probability and the transition of the judgement that was
	// made before Truth was known. N is Judgement.N of that judgement. Pick is ""
	// if there was none.
	P    exact.Billionths `json:"p,omitempty"`
	Pick string           `json:"pick,omitempty"`
	N    int64            `json:"n,omitempty"`
	// Stops are what stands in place of P and Pick at thresholds of the promise at
	// which asking one after the other would have stopped earlier, and come to
	// something else: by falling Tau. See [Ledger.Stops].
	Stops     []StoppedAt       `json:"stops,omitempty"`
	Proposals []OutcomeProposal `json:"proposals,omitempty"`
}

// An OutcomeProposal is what one specialist proposed in the round of an
// [Outcome].
type OutcomeProposal struct {
	SpecialistID string      `json:"specialist"`
	Version      string      `json:"version,omitempty"` // digest of model, prompt and code; "" is a version too
	Model        string      `json:"model,omitempty"`   // "" if unknown
	Transition   string      `json:"transition,omitempty"`
	Cost         exact.Money `json:"cost,omitempty"`
	LatencyMS    int64       `json:"latencyMs,omitempty"`
	OptionOrder  string      `json:"optionOrder,omitempty"` // equal for those who saw the options in the same order
	Human        bool        `json:"human,omitempty"`
	Shadow       bool        `json:"shadow,omitempty"`   // asked to learn only: scored, never tallied
	Replaced     bool        `json:"replaced,omitempty"` // a later proposal of the same specialist took its place
	Failed       bool        `json:"failed,omitempty"`   // no answer, an abstention, or an illegal one: has its own counter
}

// Live reports whether p is a proposal that counts as a vote of the round.
func (p OutcomeProposal) Live() bool { return !p.Replaced && !p.Failed && !p.Shadow }

// Check returns an error wrapping [ErrOutcome] unless o can be added to a
// ledger: it names the member and says what is wrong.
func (o *Outcome) Check() error {
	switch {
	case o.Machine == "":
		return badOutcome("machine is empty: name the machine of the round")
	case o.State == "":
		return badOutcome("state is empty: name the state of the round")
	case len(o.Options) == 0:
		return badOutcome("options is empty: list the legal transitions")
	case !slices.Contains(o.Options, o.Truth):
		return badOutcome("truth %q is none of the options %q", o.Truth, o.Options)
	case o.Pick != "" && !slices.Contains(o.Options, o.Pick):
		return badOutcome("pick %q is none of the options %q", o.Pick, o.Options)
	case o.Source != Forced && o.Source != Audited && o.Source != Adjudicated:
		return badOutcome("source %q is none of %q, %q, %q", o.Source, Forced, Audited, Adjudicated)
	case o.SamplingProb < 0 || o.SamplingProb > exact.One:
		return badOutcome("samplingProb %s is not in 0..1", o.SamplingProb)
	case o.P < 0 || o.P > exact.One:
		return badOutcome("p %s is not in 0..1", o.P)
	case o.N < 0:
		return badOutcome("n %d is negative", o.N)
	}
	return errors.Join(o.checkOptions(), o.checkPromise(), o.checkStops(), o.checkProposals())
}

func badOutcome(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrOutcome}, args...)...)
}

func (o *Outcome) checkOptions() error {
	for i, name := range o.Options {
		if name == "" {
			return badOutcome("options[%d] is empty", i)
		}
		if slices.Contains(o.Options[:i], name) {
			return badOutcome("options[%d]: %q is listed twice", i, name)
		}
	}
	return nil
}

func (o *Outcome) checkPromise() error {
	if o.Promise != nil {
		if err := o.Promise.Check(); err != nil {
			return badOutcome("promise: %v", err)
		}
	}
	return nil
}

func (o *Outcome) checkStops() error {
	for i, s := range o.Stops {
		switch {
		case o.Promise == nil:
			return badOutcome("stops without a promise: there is no threshold to stop at")
		case s.P < 0 || s.P > exact.One || s.Tau <= 0 || s.Tau > exact.One:
			return badOutcome("stops[%d]: p %s and tau %s must be in 0..1", i, s.P, s.Tau)
		case i > 0 && s.Tau >= o.Stops[i-1].Tau:
			return badOutcome("stops[%d]: tau %s does not fall", i, s.Tau)
		case s.Pick != "" && !slices.Contains(o.Options, s.Pick):
			return badOutcome("stops[%d]: pick %q is none of the options %q", i, s.Pick, o.Options)
		}
	}
	return nil
}

// at returns what the round comes to where tau decides.
func (o *Outcome) at(tau exact.Billionths) (p exact.Billionths, pick string) {
	for _, s := range o.Stops {
		if s.Tau == max(1, tau) {
			return s.P, s.Pick
		}
	}
	return o.P, o.Pick
}

// samplingProb returns the probability with which a human came to see the round.
func (o *Outcome) samplingProb() exact.Billionths { return cmp.Or(o.SamplingProb, exact.One) }

// pairs reports whether o counts toward the test of a promise.
func (o *Outcome) pairs() bool { return !o.Unasked && !o.NoQuorum && o.N >= EligibleFrom }

// reaches reports whether o would have been decided alone from tau on.
func (o *Outcome) reaches(tau exact.Billionths) bool {
	p, _ := o.at(tau)
	return p >= tau
}

func (o *Outcome) checkProposals() error {
	for i, p := range o.Proposals {
		switch {
		case p.SpecialistID == "":
			return badOutcome("proposals[%d].specialist is empty", i)
		case p.Cost < 0 || p.LatencyMS < 0:
			return badOutcome("proposals[%d] of %q: cost and latency cannot be negative", i, p.SpecialistID)
		case !p.Failed && !p.Replaced && !slices.Contains(o.Options, p.Transition):
			return badOutcome("proposals[%d] of %q: transition %q is none of the options %q", i, p.SpecialistID, p.Transition, o.Options)
		}
		if !p.Failed && !p.Replaced && slices.ContainsFunc(o.Proposals[:i], p.repeats) {
			return badOutcome("proposals[%d]: %q has two live proposals; mark the earlier one replaced", i, p.SpecialistID)
		}
	}
	return nil
}

func (p OutcomeProposal) repeats(q OutcomeProposal) bool {
	return q.SpecialistID == p.SpecialistID && !q.Replaced && !q.Failed
}

// Encode returns o as one line of JSON without blanks, in a form that does not
// change between versions: [DecodeOutcome] reads it back.
func (o *Outcome) Encode() ([]byte, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// DecodeOutcome reads what [Outcome.Encode] wrote. Its errors wrap [ErrOutcome]:
// members that are unknown, of another type or out of range, and text after the
// end, are refused.
func DecodeOutcome(data []byte) (Outcome, error) {
	var o Outcome
	if err := decode(data, &o, "outcome"); err != nil {
		return Outcome{}, err
	}
	if err := o.Check(); err != nil {
		return Outcome{}, err
	}
	return o, nil
}

// decode reads one JSON value that has no members but those that are known.
func decode(data []byte, into any, what string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badOutcome("%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return badOutcome("there is text after the %s", what)
	}
	return nil
}
