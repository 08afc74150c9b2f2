package arbiter

import (
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/specialist"
)

// AppendContext appends the round as DIAL's ArbiterContext, which is what a
// webhook arbiter is sent. Beyond [specialist.MaxContext] it shows the newest
// history that fits; proposals are never left out.
func (r *Round) AppendContext(dst []byte) []byte {
	history, start := r.Past.History(), len(dst)
	dst = r.appendContext(dst, history)
	if excess := len(dst) - start - specialist.MaxContext; excess > 0 && len(history) > 0 {
		return r.appendContext(dst[:start], specialist.NewestHistory(history, excess))
	}
	return dst
}

func (r *Round) appendContext(dst []byte, history []specialist.TransitionRecord) []byte {
	dst = append(append(dst, `{"sessionId":"`...), r.Key.Session.String()...)
	dst = append(append(dst, `","roundId":"`...), r.Key.ID()...)
	dst = jsontext.AppendString(append(dst, `","currentState":`...), r.State.Name)
	dst = jsontext.AppendString(append(dst, `,"prompt":`...), r.State.Prompt)
	dst = jsontext.AppendString(append(dst, `,"machineName":`...), r.Machine.Name())
	dst = append(dst, `,"proposals":[`...)
	for i := range r.Votes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = specialist.AppendProposal(dst, r.Key, r.Votes[i].Proposal)
	}
	dst = append(dst, `],"alignmentScores":{`...)
	for i := range r.Votes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendString(dst, r.Votes[i].SpecialistID), ':')
		dst = r.Votes[i].Weight.Append(dst)
	}
	dst = append(dst, `},"history":`...)
	dst = specialist.AppendHistory(dst, history)
	if r.Threshold != nil {
		dst = jsontext.AppendFloat(append(dst, `,"threshold":`...), r.Threshold.Given)
	}
	if r.Meta != nil {
		dst = append(append(dst, `,"metaJson":`...), r.Meta...)
	}
	return append(dst, '}')
}

// Find returns the index of the vote with that proposal id, or an
// *[UnknownWinnerError].
func (r *Round) Find(proposalID string) (int, error) {
	for i := range r.Votes {
		if r.Key.ProposalID(r.Votes[i].Arrival) == proposalID {
			return i, nil
		}
	}
	return NoWinner, &UnknownWinnerError{proposalID}
}
