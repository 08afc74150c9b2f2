package temporal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// What people say to a session through its workflow: a ruling, a proposal, that it is to be resumed, a review. Each
// is an update. Its validator refuses what cannot be right by what the workflow knows (size, status, round), so that
// nothing of it is in the history. What is left an activity puts to the engine, which decides (update_activities.go), and
// the workflow runs on at once. An update holds names and no words: what goes with them, and payloads, belongs into
// the store, where dialai decide and the API write it.
//
// The id of an update is the idempotency key of whoever makes it, so that one that is sent again is done once; without
// a key it is made of what is said.

// An Actor is the person or program that says something, for the record.
type Actor struct {
	Subject string `json:"subject"`
	Method  string `json:"method"` // how they are known, such as key, oidc or local
}

// A Ruling is what a human says of the open round. All members are required: it counts for the question that was
// seen, and for no other.
type Ruling struct {
	RoundID        string `json:"roundId"`
	QuestionDigest string `json:"questionDigest"` // or its first session.DigestPrefix hex digits or more
	Sequence       int64  `json:"sequence"`       // of the session as it was seen
	SpecialistID   string `json:"specialistId"`   // a human of the machine
	TransitionName string `json:"transitionName"`
	Actor          Actor  `json:"actor"`
}

// A Proposal is what somebody proposes in the open round, without words and payload.
type Proposal Ruling

// A Resuming takes a session up that has stopped or failed, or waits because those failed who were asked.
type Resuming struct {
	RoundID      string `json:"roundId"`
	Sequence     int64  `json:"sequence"`               // of the session as it was seen
	SpecialistID string `json:"specialistId,omitempty"` // the human as whom that is done; may be ""
	RetryFailed  bool   `json:"retryFailed,omitempty"`  // ask those again whose asks failed
	Clear        bool   `json:"clear,omitempty"`        // the guards forget what has repeated
	Actor        Actor  `json:"actor"`
}

// A Reviewing is what a human makes of a closed round.
type Reviewing struct {
	RoundID        string `json:"roundId"` // of the closed round
	SpecialistID   string `json:"specialistId"`
	TransitionName string `json:"transitionName"` // what should have been decided
	Actor          Actor  `json:"actor"`
}

// A Ruled is what came of a ruling.
type Ruled struct {
	Executed bool   `json:"executed"`
	Status   string `json:"status"`
	Code     string `json:"code"` // why it was not executed; the words are in the store
}

// A Done is what came of another update.
type Done struct {
	Done   bool   `json:"done"`
	Status string `json:"status"` // of the session then
	Code   string `json:"code"`   // why it was not done; the words are in the store
}

// maxName is how long a name in an update may be, in bytes.
const maxName = 200

// named refuses an update that lacks a name, or has one that is too long.
func named(what string, by Actor, names ...string) error {
	for _, name := range append(names, by.Subject, by.Method) {
		if name == "" || len(name) > maxName {
			return fmt.Errorf("%s, each in at most %d bytes", what, maxName)
		}
	}
	return nil
}

// handle takes queries and updates.
func (s *sessionRun) handle(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, StatusQuery, func() (Status, error) { return s.at, nil }),
		workflow.SetUpdateHandlerWithOptions(ctx, DecideUpdate, func(ctx workflow.Context, r Ruling) (done Ruled, err error) {
			err = s.update(ctx, DecideActivity, r, &done)
			return done, err
		}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, r Ruling) error {
			if err := named("a ruling names its round, the digest of its question, who rules, the transition and the actor", r.Actor, r.RoundID, r.QuestionDigest, r.SpecialistID, r.TransitionName); err != nil {
				return err
			}
			if r.SpecialistID == runner.Operator {
				return errors.New("through Temporal only humans rule whom the machine declares")
			}
			return s.open(r.RoundID, r.Sequence)
		}}),
		workflow.SetUpdateHandlerWithOptions(ctx, ProposeUpdate, func(ctx workflow.Context, p Proposal) (done Done, err error) {
			err = s.update(ctx, ProposeActivity, p, &done)
			return done, err
		}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, p Proposal) error {
			if err := named("a proposal names its round, the digest of its question, who proposes, the transition and the actor", p.Actor, p.RoundID, p.QuestionDigest, p.SpecialistID, p.TransitionName); err != nil {
				return err
			}
			if s.at.Status == "stopped" || s.at.Status == "failed" {
				return fmt.Errorf("the session is %s: resume it first", s.at.Status)
			}
			return s.open(p.RoundID, p.Sequence)
		}}),
		workflow.SetUpdateHandlerWithOptions(ctx, ResumeUpdate, func(ctx workflow.Context, r Resuming) (done Done, err error) {
			err = s.update(ctx, ResumeActivity, r, &done)
			return done, err
		}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, r Resuming) error {
			if err := named("who has a session resumed names its round and the actor", r.Actor, r.RoundID); err != nil || len(r.SpecialistID) > maxName {
				return cmp.Or(err, fmt.Errorf("specialistId is longer than %d bytes", maxName))
			}
			return s.open(r.RoundID, r.Sequence)
		}}),
		workflow.SetUpdateHandlerWithOptions(ctx, ReviewUpdate, func(ctx workflow.Context, r Reviewing) (done Done, err error) {
			err = s.update(ctx, ReviewActivity, r, &done)
			return done, err
		}, workflow.UpdateHandlerOptions{Validator: func(_ workflow.Context, r Reviewing) error {
			if err := named("a review names its round, who reviews, the transition and the actor", r.Actor, r.RoundID, r.SpecialistID, r.TransitionName); err != nil {
				return err
			}
			if r.RoundID == s.at.RoundID {
				return errors.New("the round is open: a ruling decides it, and there is nothing to review yet")
			}
			return nil
		}}),
	)
}

// open refuses an update unless its round is the open one, as far as the workflow knows.
func (s *sessionRun) open(roundID string, sequence int64) error {
	switch {
	case s.at.Status == "completed":
		return errors.New("the session is completed")
	case s.at.RoundID != "" && sequence <= s.at.Sequence && roundID != s.at.RoundID:
		return fmt.Errorf("the open round is %s: read the question again", s.at.RoundID)
	}
	return nil
}

// update has the engine decide about an update, which says what became of it.
func (s *sessionRun) update(ctx workflow.Context, activity string, in, done any) error {
	s.updates++
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: mostAdvance, HeartbeatTimeout: heartbeat, RetryPolicy: &retries})
	err := workflow.ExecuteActivity(ctx, activity, s.of(), in).Get(ctx, done)
	s.ruled.SendAsync(s.updates)
	return err
}

// Decide has a human rule through the workflow, which runs on at once. An update of the same key is done
// once, and says the same again; with "" the key is made of the ruling.
func (c *Client) Decide(ctx context.Context, id specialist.SessionID, key string, r Ruling) (done Ruled, err error) {
	err = c.update(ctx, id, DecideUpdate, key, r, &done)
	return done, err
}

// Propose hands a proposal in through the workflow. The key is as in Decide.
func (c *Client) Propose(ctx context.Context, id specialist.SessionID, key string, p Proposal) (done Done, err error) {
	err = c.update(ctx, id, ProposeUpdate, key, p, &done)
	return done, err
}

// Resume takes a session up through its workflow. The key is as in Decide.
func (c *Client) Resume(ctx context.Context, id specialist.SessionID, key string, r Resuming) (done Done, err error) {
	err = c.update(ctx, id, ResumeUpdate, key, r, &done)
	return done, err
}

// Review says through the workflow what should have been decided in a closed round. The key is as in Decide.
func (c *Client) Review(ctx context.Context, id specialist.SessionID, key string, r Reviewing) (done Done, err error) {
	err = c.update(ctx, id, ReviewUpdate, key, r, &done)
	return done, err
}

func (c *Client) update(ctx context.Context, id specialist.SessionID, name, key string, in, done any) error {
	workflowID, err := c.WorkflowID(ctx, id)
	if err != nil {
		return err
	}
	if key == "" {
		text, err := json.Marshal(in) // round, sequence, actor and choice, in their order
		if err != nil {
			return err
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", id, name, text))
		key = hex.EncodeToString(sum[:])
	}
	update, err := c.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateID: key, UpdateName: name, Args: []any{in}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return update.Get(ctx, done)
}
