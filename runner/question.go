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

// An open round as a human sees it before ruling. The session holds the facts; what
// this file decides is how much of them the viewer may see:
//
//  1. Proposals come in the round's order, by what they count for, and after them those
//     that nobody counts.
//  2. If something is to be decided blind by this viewer (Session.Withheld), proposals
//     are left out, with what would give them away: the reason for asking a human where
//     it tells of them, and notices about an earlier attempt.
//  3. Each choice carries a payload to begin with: the viewer's own, or that of the
//     pending rulings, or of the votes. Rulings that differ about it leave none.
//  4. The digest is of exactly what a ruling is about. A ruling that names it (Choose)
//     is refused if the question has changed since.

// A Question is an open round as a human who may decide it sees it: the one form
// behind every view.
type Question struct {
	QuestionID  string `json:"questionId"` // <sessionId>.<roundId>
	Digest      string `json:"digest"`     // of what the ruling is about
	SessionID   string `json:"sessionId"`
	MachineName string `json:"machineName"`
	// MachineDigest is of the definition of its session: questions of one digest and state have the same choices.
	MachineDigest string                    `json:"machineDigest"`
	RoundID       string                    `json:"roundId"`
	State         string                    `json:"state"`
	Prompt        string                    `json:"prompt"`
	Subject       string                    `json:"subject,omitempty"` // what the session is about; "" if the machine does not say
	Facts         session.Facts             `json:"facts"`
	Transitions   []session.InboxTransition `json:"transitions"`
	// Proposals are in the round's order, with their payloads, reasons and costs; empty
	// while they are withheld.
	Proposals []json.RawMessage        `json:"proposals"`
	Withheld  *WithheldProposals       `json:"withheld,omitempty"` // nil unless something is
	Rulings   []session.QuestionRuling `json:"rulings"`            // that wait for others, as far as they are shown
	// WithheldRulings is how many rulings of others are to stay unseen until the viewer
	// has ruled.
	WithheldRulings int                        `json:"withheldRulings,omitempty"`
	History         []session.TransitionRecord `json:"history"` // the newest maxShown, the oldest first
	Notices         []string                   `json:"notices"` // of guards, and that the session was moved in this round
	Code            string                     `json:"code"`
	Reason          string                     `json:"reason"`             // why a human is asked, and whose asks failed
	Since           specialist.Time            `json:"since"`              // when it began to wait; while it runs, when the round began
	Humans          []string                   `json:"humans"`             // who may decide; empty if none is declared
	Due             specialist.Time            `json:"due,omitempty"`      // by when the state is to be left; 0 if it may take as long as it likes
	Overdue         bool                       `json:"overdue,omitempty"`  // that was before now
	Then            string                     `json:"then,omitempty"`     // the transition that is executed when it is due; "" if none is
	DueError        string                     `json:"dueError,omitempty"` // why nobody knows by when; "" if that is known
	Viewer          string                     `json:"-"`                  // whom it is shown to; "" for nobody in particular
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
	return r.questionFor(ctx, s, viewer, s.Withheld(viewer))
}

// questionFor is Question; why says why what was proposed is withheld, "" if it is not.
func (r *Runner) questionFor(ctx context.Context, s *session.Session, viewer machine.SpecialistID, why string) (Question, error) {
	humans, _, err := r.Humans(ctx, s)
	if err != nil {
		return Question{}, err
	}
	votes := uncounted(nil, s.Proposals()) // nobody sees in which order they are withheld
	if why == "" {
		if votes, err = r.votesInOrder(ctx, s); err != nil {
			return Question{}, err
		}
	}
	order := proposalsOf(votes)
	key := s.Key()
	q := Question{
		QuestionID: s.ID.String() + "." + key.ID(), SessionID: s.ID.String(), MachineName: s.Machine().Name(), MachineDigest: s.Machine().Digest(), RoundID: key.ID(),
		State: s.State.Name, Prompt: s.State.Prompt, Subject: s.Subject(), Facts: s.Facts(), Transitions: s.Choices(), Proposals: []json.RawMessage{},
		Rulings: []session.QuestionRuling{}, History: s.Records(maxShown), Notices: append([]string{}, s.Notices()...), Humans: append([]string{}, s.YetToRule(humans)...), Viewer: string(viewer),
	}
	q.Rulings, q.WithheldRulings = s.RulingsFor(viewer)
	q.approvals(s, humans)
	q.due(s, r.now())
	o := s.OutcomeBy(humans)
	if why != "" {
		o = s.Conceal(o)
		q.Withheld = &WithheldProposals{why, len(order)}
		if s.Attempt > 0 { // they are about what was sent back
			q.Notices = []string{}
		}
		votes = nil
	} else {
		for _, p := range order {
			q.Proposals = append(q.Proposals, specialist.AppendProposal(nil, key, p))
		}
	}
	q.Notices = append(q.Notices, s.MoveNotices()...)
	q.suggest(s.State, votes)
	q.Code, q.Since, q.Reason = o.Code, cmp.Or(o.Since, s.OpenedAt, s.CreatedAt), s.ReasonWithFailures(o, why != "")
	q.Digest, err = s.Digest(order, why != "")
	return q, err
}

// Outcome returns why a session is not running, by who may rule in its state now and as far as
// a viewer may know, who is "" for nobody in particular: as [Session.Outcome], but that
// a reason names only rulings that still count, and that the code is too_few_deciders
// where nobody can rule on anything.
func (r *Runner) Outcome(ctx context.Context, s *session.Session, viewer machine.SpecialistID) (session.Outcome, error) {
	o, err := r.outcomeNow(ctx, s)
	if err == nil && s.Withheld(viewer) != "" {
		o = s.Conceal(o)
	}
	return o, err
}

// outcomeNow is Outcome for whom nothing is withheld from.
func (r *Runner) outcomeNow(ctx context.Context, s *session.Session) (session.Outcome, error) {
	if s.Status != session.NeedsHuman {
		return s.Outcome(), nil
	}
	humans, _, err := r.Humans(ctx, s)
	return s.OutcomeBy(humans), err
}

// due adds by when the state is to be left.
func (q *Question) due(s *session.Session, now specialist.Time) {
	d := s.Due()
	if d == nil {
		return
	}
	q.Due, q.DueError, q.Overdue = d.At, d.Error, s.Overdue(now)
	if t := s.Timer(); t != nil {
		q.Then = t.Name
	}
}

// approvals adds to the choices how far their approvals are. One that nobody can complete
// is closed, for the time being.
func (q *Question) approvals(s *session.Session, humans []string) {
	for i, t := range s.State.Transitions {
		choice := &q.Transitions[i]
		if choice.Approvals = s.ApprovalsOf(t, humans, q.Viewer); choice.Approvals != nil && choice.Closed == "" {
			choice.Closed = choice.Approvals.Unreachable(t.Name)
		}
	}
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
