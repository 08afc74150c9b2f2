package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A Question is an open round as a human who may decide it sees it: the one form
// behind every view.
type Question struct {
	QuestionID  string                    `json:"questionId"` // <sessionId>.<roundId>
	Digest      string                    `json:"digest"`     // of what the ruling is about
	SessionID   string                    `json:"sessionId"`
	MachineName string                    `json:"machineName"`
	RoundID     string                    `json:"roundId"`
	State       string                    `json:"state"`
	Prompt      string                    `json:"prompt"`
	Facts       session.Facts             `json:"facts"`
	Transitions []session.InboxTransition `json:"transitions"`
	// Proposals are in the round's order, with their payloads, reasons and costs; empty
	// while they are withheld.
	Proposals []json.RawMessage        `json:"proposals"`
	Withheld  *WithheldProposals       `json:"withheld,omitempty"` // nil unless something is
	Rulings   []session.QuestionRuling `json:"rulings"`            // that wait for others, as far as they are shown
	// WithheldRulings is how many rulings of others are to stay unseen until the viewer
	// has ruled.
	WithheldRulings int                        `json:"withheldRulings,omitempty"`
	History         []session.TransitionRecord `json:"history"` // the newest maxShown, the oldest first
	Notices         []string                   `json:"notices"` // of guards
	Code            string                     `json:"code"`
	Reason          string                     `json:"reason"` // why a human is asked, and whose asks failed
	Since           specialist.Time            `json:"since"`  // when it began to wait; while it runs, when the round began
	Humans          []string                   `json:"humans"` // who may decide; empty if none is declared
	Viewer          string                     `json:"-"`      // whom it is shown to; "" for nobody in particular
}

// Choose returns the ruling by which a human chooses a transition of exactly this
// question: it is refused if the question has changed.
func (q *Question) Choose(by machine.SpecialistID, transitionName string) Ruling {
	id, _ := session.ParseID(q.SessionID) // it was made of one
	return Ruling{SessionID: id, SpecialistID: by, RoundID: q.RoundID, QuestionDigest: q.Digest, TransitionName: transitionName}
}

// WithheldProposals says why proposals are withheld, and how many there are.
type WithheldProposals struct {
	Reason    string `json:"reason"`
	Proposals int    `json:"proposals"`
}

// maxShown is how many executed transitions a question shows.
const maxShown = 20

// Question returns the open round of a session as a viewer sees it, who is "" for
// nobody in particular: such a one sees the least.
func (r *Runner) Question(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (Question, error) {
	return r.questionFor(ctx, s, viewer, false)
}

// questionFor is Question; all says that nothing is withheld.
func (r *Runner) questionFor(ctx context.Context, s *session.Session, viewer machine.SpecialistID, all bool) (Question, error) {
	humans, _, err := r.Humans(ctx, s)
	if err != nil {
		return Question{}, err
	}
	votes, err := r.votesInOrder(ctx, s)
	if err != nil {
		return Question{}, err
	}
	order := proposalsOf(votes)
	why := s.Withheld(viewer)
	if all {
		why = ""
	}
	key := s.Key()
	q := Question{
		QuestionID: s.ID.String() + "." + key.ID(), SessionID: s.ID.String(), MachineName: s.Machine().Name(), RoundID: key.ID(),
		State: s.State.Name, Prompt: s.State.Prompt, Facts: s.Facts(), Transitions: session.ChoicesOf(s.State), Proposals: []json.RawMessage{},
		Rulings: []session.QuestionRuling{}, History: s.Records(maxShown), Notices: append([]string{}, s.Notices()...), Humans: s.YetToRule(humans), Viewer: string(viewer),
	}
	q.Rulings, q.WithheldRulings = s.RulingsFor(viewer)
	o := s.Outcome()
	if why != "" {
		o = s.Conceal(o)
		q.Withheld = &WithheldProposals{why, len(order)}
		if s.Attempt > 0 { // they are about what was sent back
			q.Notices = []string{}
		}
	} else {
		for _, p := range order {
			q.Proposals = append(q.Proposals, specialist.AppendProposal(nil, key, p))
		}
		q.suggest(s.State, votes)
	}
	q.Code, q.Since, q.Reason = o.Code, cmp.Or(o.Since, s.OpenedAt, s.CreatedAt), s.ReasonWithFailures(o, why != "")
	q.Digest, err = s.Digest(order, why != "")
	return q, err
}

// suggest gives each choice the payload that goes with it so far: the viewer's own, or that
// of the pending rulings that are shown, or else of the votes. Where rulings differ about it,
// none goes with the choice: nobody is to rule for what somebody else wrote unawares.
func (q *Question) suggest(s *machine.State, votes []arbiter.Vote) {
	round := arbiter.Round{Votes: votes}
	for i := range q.Transitions {
		choice := &q.Transitions[i]
		if best := round.Payload(s.Transitions[i]); best != arbiter.NoWinner && choice.Parameters != nil {
			choice.MetaJSON = votes[best].MetaJSON
		}
		var said *session.QuestionRuling
		for j := range q.Rulings {
			r := &q.Rulings[j]
			switch {
			case r.TransitionName != choice.Name:
				continue
			case said == nil || r.SpecialistID == q.Viewer:
				said, choice.MetaJSON = r, r.MetaJSON
			case said.SpecialistID != q.Viewer && !session.SamePayload(said.MetaJSON, r.MetaJSON):
				choice.MetaJSON = nil
			}
		}
	}
}

// proposalsInOrder returns the live proposals in the round's order, and then those
// that nobody counts.
func (r *Runner) proposalsInOrder(ctx context.Context, s *session.Session) ([]*specialist.Proposal, error) {
	votes, err := r.votesInOrder(ctx, s)
	return proposalsOf(votes), err
}

func proposalsOf(votes []arbiter.Vote) []*specialist.Proposal {
	list := make([]*specialist.Proposal, len(votes))
	for i, v := range votes {
		list[i] = v.Proposal
	}
	return list
}

// votesInOrder is proposalsInOrder with what each counts for.
func (r *Runner) votesInOrder(ctx context.Context, s *session.Session) ([]arbiter.Vote, error) {
	if len(s.Proposals()) < 2 {
		return uncounted(nil, s.Proposals()), nil
	}
	votes, err := r.votesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return uncounted(slices.Clone(votes), s.Proposals()), nil
}

// uncounted appends those of the proposals that are not among the votes.
func uncounted(votes []arbiter.Vote, proposals []*specialist.Proposal) []arbiter.Vote {
	for _, p := range proposals {
		if !slices.ContainsFunc(votes, func(v arbiter.Vote) bool { return v.Proposal == p }) {
			votes = append(votes, arbiter.Vote{Proposal: p})
		}
	}
	return votes
}
