package api

import (
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/specialist"
)

// An InboxEvent says that something has come to wait for a human, has changed, or is done. What
// is asked is there as it is when the event is told; it is missing where that is done by then,
// and where the event says so.
type InboxEvent struct {
	V           int                `json:"v"`
	Kind        string             `json:"kind" enum:"question.opened,question.changed,question.closed,review.opened,review.closed,claim.changed"`
	At          specialist.Time    `json:"at"`
	QuestionID  string             `json:"questionId"`
	SessionID   string             `json:"sessionId"`
	RoundID     string             `json:"roundId"`
	MachineName string             `json:"machineName"`
	Question    *Item              `json:"question,omitempty"`
	Review      *runner.ReviewItem `json:"review,omitempty"`
	Claim       *Claim             `json:"claim,omitempty" doc:"of claim.changed: who is at the question now; missing if nobody is"`
}
