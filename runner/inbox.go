package runner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A Question is an open round as a human who may decide it sees it.
type Question struct {
	SessionID   string            `json:"sessionId"`
	MachineName string            `json:"machineName"`
	RoundID     string            `json:"roundId"`
	State       string            `json:"state"`
	Prompt      string            `json:"prompt"`
	Transitions []InboxTransition `json:"transitions"`
	Proposals   []json.RawMessage `json:"proposals"`
	Code        string            `json:"code"`
	Reason      string            `json:"reason"`
	Since       specialist.Time   `json:"since"`
	Humans      []string          `json:"humans"` // who may decide; empty if none is declared
}

// An InboxTransition is one of the choices.
type InboxTransition struct {
	Name        string          `json:"name"`
	Target      string          `json:"target"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Inbox lists the sessions that wait for a human, in the order in which they
// were created. Those that cannot be read spoil nothing but themselves: the error
// is about them, and the others are listed all the same.
func (r *Runner) Inbox(ctx context.Context) ([]Question, error) {
	waiting, err := r.store.List(ctx, ListQuery{Waiting: true})
	if err != nil {
		return nil, err
	}
	items := make([]Question, 0, len(waiting))
	var unread []error
	for _, w := range waiting {
		item, waits, err := r.waiting(ctx, w.SessionID)
		switch {
		case ctx.Err() != nil:
			return items, ctx.Err()
		case err != nil:
			unread = append(unread, err)
		case waits:
			items = append(items, item)
		}
	}
	return items, errors.Join(unread...)
}

// waiting returns the question of a session; waits is false if somebody was faster.
func (r *Runner) waiting(ctx context.Context, sessionID string) (item Question, waits bool, err error) {
	id, err := ParseID(sessionID)
	if err != nil {
		return item, false, err
	}
	s, err := r.load(ctx, id)
	if err != nil || s.Status != NeedsHuman {
		return item, false, err
	}
	item, err = r.Question(ctx, s, "")
	return item, true, err
}

// Question returns what a human is asked about the session's present round. viewer
// is the id of the human who looks; "" is nobody in particular.
func (r *Runner) Question(ctx context.Context, s *Session, viewer string) (Question, error) {
	humans, _, err := r.Humans(ctx, s)
	if err != nil {
		return Question{}, err
	}
	o := s.Outcome()
	item := Question{
		SessionID: s.ID.String(), MachineName: s.Machine().Name(), RoundID: s.Key().ID(), State: s.State.Name, Prompt: s.State.Prompt,
		Code: o.Code, Reason: o.Reason, Since: o.Since, Humans: humans, Proposals: []json.RawMessage{},
	}
	item.Transitions = choicesOf(s.State)
	for _, p := range s.Proposals() {
		item.Proposals = append(item.Proposals, specialist.AppendProposal(nil, s.Key(), p, true))
	}
	return item, nil
}

func choicesOf(s *machine.State) []InboxTransition {
	choices := make([]InboxTransition, len(s.Transitions))
	for i, t := range s.Transitions {
		choices[i] = InboxTransition{Name: t.Name, Target: t.Target, Description: t.Description}
		if t.Parameters != nil {
			choices[i].Parameters = json.RawMessage(t.Parameters.String())
		}
	}
	return choices
}

// Weights returns what each live proposal of the current round counts for, by
// specialist.
func (r *Runner) Weights(ctx context.Context, s *Session) (map[string]exact.Billionths, error) {
	t, err := r.beginAnyhow(ctx, s)
	if err != nil {
		return nil, err
	}
	by, err := t.arbiter()
	if err != nil {
		by = nobody()
	}
	votes, err := t.standings(ctx, by)
	if err != nil {
		return nil, err
	}
	weights := make(map[string]exact.Billionths, len(votes))
	for _, v := range votes {
		weights[v.SpecialistID] = v.Weight
	}
	return weights, nil
}
