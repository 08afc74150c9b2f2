package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A ruling is evidence of what its author thinks only if it was made without sight
// of what others had said. So in some rounds proposals, verdicts and failures are
// withheld until the round is closed: in states that declare a collapse, and while an
// audit may hold a decision of the engine back, or does, or while a human is to rule
// without sight of what another ruled, who had proposed as well. What is withheld is a
// function of the open round and of who looks, here, and every view asks it: the
// question, the session, its log, its explanation, what a run prints. While a closed round
// waits for a review it is the same, but for what was executed
// (runner.WithheldRounds adds who may look at those). Who is not
// named sees the least. Who wants to see all the same says so (Reveal), which is
// recorded. It is a help to be honest, no access control: whoever reads the file of
// the database reads everything.

// Withheld returns why what was proposed in the open round, the verdicts on it and
// failed asks are kept from a viewer; "" if they are not. The viewer "" is nobody in
// particular, from whom all is withheld that is withheld from anybody.
func (s *Session) Withheld(viewer machine.SpecialistID) string {
	switch {
	case s.Status == Completed, s.round().Rulings.Shown(), viewer != "" && slices.Contains(s.round().revealed, string(viewer)):
		return ""
	case s.State.Withheld():
		return "the state declares a collapse, to which only rulings count that were made without sight of the proposals"
	case s.auditsBefore():
		return "a decision may be under audit, which only tells something if it is made without sight of the proposals"
	case s.rulerProposed(viewer):
		return "somebody who has ruled has proposed as well, and another is to rule without sight of that"
	}
	return ""
}

// rulerProposed reports whether a human whose ruling is kept from a viewer has said in a
// proposal what it may be.
func (s *Session) rulerProposed(viewer machine.SpecialistID) bool {
	return s.ConcealsRulings() && slices.ContainsFunc(s.Proposals(), func(p *specialist.Proposal) bool {
		return p.IsHuman && p.SpecialistID != string(viewer) && s.Open.Rulings.By(p.SpecialistID) != nil
	})
}

// auditsBefore reports whether the open round is held back for an audit, or may still
// be. Once a human was asked for another reason, everything has been shown.
func (s *Session) auditsBefore() bool {
	if s.State.Audit.Mode != machine.Before || s.round().shown {
		return false
	}
	code := s.Outcome().Code
	return s.Status != NeedsHuman || code == CodeAudit || code == CodeSecondHuman
}

// RevealedTo reports whether rulings of somebody on the open round are not blind,
// because they looked, or somebody did who was not named.
func (s *Session) RevealedTo(id machine.SpecialistID) bool {
	return slices.Contains(s.round().revealed, string(id)) || slices.Contains(s.round().revealed, "")
}

// MayBeBlind reports whether a ruling of somebody on the open round can be one made without
// sight of what was proposed.
func (s *Session) MayBeBlind(id machine.SpecialistID) bool {
	shown := s.round().shown && s.State.Audit.Mode == machine.Before && !s.State.Withheld()
	return !shown && !s.RevealedTo(id)
}

// toldAnyhow are the codes whose reason says nothing of what was proposed.
var toldAnyhow = []string{CodeAudit, CodeNoQuorum, CodeSecondHuman, CodeContested, CodeTooFew, CodeStepLimit, CodeTimeLimit, CodeDeadEnd, CodeTimer, CodeDueFailed, "cold_start", "no_proposals", "calibrating", "untrusted", "below_threshold"}

// CodeWithheld stands for a code that would tell what is withheld.
const CodeWithheld = "withheld"

// OutcomeFor returns why the session is not running, as far as a viewer may know: in
// a round of which something is withheld from them, codes and reasons that would tell
// what was proposed are replaced.
func (s *Session) OutcomeFor(viewer machine.SpecialistID) Outcome {
	if s.Withheld(viewer) == "" {
		return s.Outcome()
	}
	return s.Conceal(s.Outcome())
}

// MayTell reports whether a code, or the reason with it, may tell what was proposed.
func MayTell(code string) bool { return code != "" && !slices.Contains(toldAnyhow, code) }

// Conceal returns an outcome without the words that may tell what was proposed.
func (s *Session) Conceal(o Outcome) Outcome {
	if !MayTell(o.Code) || len(s.Program.Guards(s.State).LimitsOf(o.Code)) > 0 {
		return o
	}
	if s.round().Pending() && o.Code == CodeApprovals {
		return o // it tells what humans have chosen
	}
	if o.Code == "irreversible" || o.Code == CodeNoPayload || o.Code == CodeApprovals { // which few transitions are, or need
		o.Code = CodeWithheld
	}
	o.Reason = "Human input required; why is withheld, for it may tell what was proposed, and the word is to be the human's own"
	return o
}

// Hides reports whether anything of the open round is withheld from a viewer: what
// was proposed, or what other humans have ruled.
func (s *Session) Hides(viewer machine.SpecialistID) bool {
	return s.ConcealsRulings() || s.Withheld(viewer) != ""
}

// Opens reports whether a round is the open one, by its number.
func (s *Session) Opens(round int32) bool { return round == s.Round && s.Status != Completed }

// kindAnswered stands for the kinds of events whose order would tell who failed: asks inside
// this process are answered in a known order.
const kindAnswered = "answered"

// Concealed returns what may be shown of an event in the open round, and whether that is
// less than all. proposals says that what was proposed is withheld; rulings that are to be
// given without sight of each other are withheld in any case.
func (s *Session) Concealed(e Raw, proposals bool) (shown Raw, less bool) {
	if e.Data, less = s.concealedData(&e, proposals); less && (e.Kind == KindProposed || e.Kind == KindAskFailed) {
		e.Kind = kindAnswered
	}
	return e, less
}

func (s *Session) concealedData(e *Raw, proposals bool) (data []byte, less bool) {
	rulings := s.ConcealsRulings()
	switch e.Kind {
	case KindRoundOpened, KindNeedsHuman, KindEnded:
		if proposals {
			return s.concealed(e)
		}
		return e.Data, false
	case KindAsked:
		if !proposals || !s.asksAgain(e) {
			return e.Data, false
		}
		return []byte("{}"), true
	case KindProposed, KindAskFailed, KindDiscarded, KindProbed, KindJudged, KindGated, KindLearned:
		if !proposals && !(rulings && isHumanGate(e)) { // two humans had agreed about that
			return e.Data, false
		}
	case KindRuled:
		if !rulings && !s.ruledBefore(e) {
			return e.Data, false
		}
	default:
		return e.Data, false
	}
	return e.namesOnly(), true
}

// ConcealedReview returns what may be shown of an event of a closed round that waits for a
// review, and whether that is less than all: what was executed, but neither what was
// proposed and made of it, nor what another has answered.
func (s *Session) ConcealedReview(e Raw) (shown Raw, less bool) {
	switch e.Kind {
	case KindRoundOpened, KindNeedsHuman:
		e.Data, less = s.concealed(&e)
		return e, less
	case KindAsked, KindProposed, KindAskFailed, KindDiscarded, KindProbed, KindJudged, KindGated, KindLearned, KindReviewed:
		e.Data = e.namesOnly()
		if e.Kind == KindProposed || e.Kind == KindAskFailed {
			e.Kind = kindAnswered
		}
		return e, true
	}
	return e, false
}

// namesOnly returns of what an event says who arbitrated, ruled or reviewed. Who proposed
// or failed is withheld too: how many did is seen.
func (e *Raw) namesOnly() []byte {
	var v struct {
		SpecialistID string `json:"specialistId"`
		ArbiterID    string `json:"arbiterId"`
	}
	_ = json.Unmarshal(e.Data, &v) // what cannot be read is not shown
	w := object(nil)
	if e.Kind == KindRuled || e.Kind == KindReviewed {
		w.opt("specialistId", v.SpecialistID)
	}
	w.opt("arbiterId", v.ArbiterID)
	return w.end()
}

// asksAgain reports whether an event asks somebody who was asked before in the open round,
// which tells that they have failed.
func (s *Session) asksAgain(e *Raw) bool {
	var v struct {
		Asks []struct {
			SpecialistID string       `json:"specialistId"`
			Index        int32        `json:"ask"`
			Role         machine.Role `json:"role"`
		} `json:"asks"`
	}
	if json.Unmarshal(e.Data, &v) != nil || s.Open == nil {
		return true
	}
	for _, a := range v.Asks {
		if s.Open.Before(a.SpecialistID, cmp.Or(a.Role, machine.Proposer), a.Index) > 0 {
			return true
		}
	}
	return false
}

// OpenAsksFor returns the asks whose answers are out, as far as a viewer may know: where
// failures are withheld from them, an ask of somebody who was asked before in the round
// does not say whom.
func (s *Session) OpenAsksFor(viewer machine.SpecialistID) []Ask {
	asks := s.OpenAsks()
	if s.Withheld(viewer) == "" {
		return asks
	}
	for i := range asks {
		if a := &asks[i]; s.Open.Before(a.SpecialistID, a.Role, a.Index) > 0 {
			a.SpecialistID = ""
		}
	}
	return asks
}

// isHumanGate reports whether an event says what guards made of a human's choice.
func isHumanGate(e *Raw) bool {
	var v struct{ IsHuman bool }
	return e.Kind == KindGated && (json.Unmarshal(e.Data, &v) != nil || v.IsHuman)
}

// concealed returns an event without the words in it that may tell what was proposed.
func (s *Session) concealed(e *Raw) (data []byte, less bool) {
	var v map[string]json.RawMessage
	var o struct{ Code, Reason string }
	if json.Unmarshal(e.Data, &v) != nil || json.Unmarshal(e.Data, &o) != nil {
		return []byte("{}"), true
	}
	if e.Kind == KindRoundOpened {
		_, less = v["notices"]
		delete(v, "notices")
	} else if told := s.Conceal(Outcome{Code: o.Code, Reason: o.Reason}); told.Reason != o.Reason {
		v["code"], v["reason"], less = jsontext.AppendString(nil, told.Code), jsontext.AppendString(nil, told.Reason), true
	}
	if !less {
		return e.Data, false
	}
	data, err := json.Marshal(v)
	if err != nil {
		return []byte("{}"), true
	}
	return data, true
}

// failures returns what is to be said of asks that came to nothing: who failed and
// why, or, withheld, how many did. It is "" if none failed, or all who did have proposed since.
func (s *Session) failures(withheld bool) string {
	var texts []string
	asked := 0
	for _, a := range s.round().Asks {
		if a.Role != machine.Proposer || a.OfGuards() || a.Status.Failed() && s.round().Proposal(a.SpecialistID) != nil {
			continue
		}
		if asked++; a.Status.Failed() && a.failed != nil {
			texts = append(texts, a.Failure())
		}
	}
	switch {
	case len(texts) == 0:
		return ""
	case withheld:
		return fmt.Sprintf("%d of %d asks failed", len(texts), asked)
	}
	return strings.Join(texts, "; ")
}
