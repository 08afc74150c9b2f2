package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/dialai/dialai/api"
)

// A QuestionQuery says which questions are listed; the zero value lists all that may be seen.
type QuestionQuery struct {
	Machine string
	State   string
	Code    string
	Human   string // only those on which this human may rule
	As      string // as this human sees them; "" means as Human does
	// Unclaimed leaves out those at which somebody else is.
	Unclaimed bool
	Mine      bool      // only those that the caller is at or is to be: 200 at most
	Subject   string    // only those whose subject begins like this
	Since     time.Time // only those that began to wait after it; the zero time asks for nothing
}

// Inbox yields the questions that wait for a human, page by page as they are read. An error
// is the last it yields.
func (c *Client) Inbox(ctx context.Context, q QuestionQuery) iter.Seq2[api.Item, error] {
	return pages[api.Item](ctx, c, "/v1/inbox", values("machine", q.Machine, "state", q.State, "code", q.Code, "human", q.Human, "as", q.As, "unclaimed", yes(q.Unclaimed), "mine", yes(q.Mine), "subject", q.Subject, "since", moment(q.Since)))
}

// Quarantined returns the sessions that no process carries on any more, of a machine or, with "", of all that the
// key may read: those that the inbox begins with, 20 at most.
func (c *Client) Quarantined(ctx context.Context, machineName string) ([]api.Quarantined, error) {
	page, err := do[api.Inbox](ctx, c, get("/v1/inbox", values("machine", machineName, "limit", "1")))
	return page.Quarantined, err
}

// Question returns a question that waits, by its QuestionID, as a human sees it; as is "" for
// the only one as whom the key may, or nobody in particular.
func (c *Client) Question(ctx context.Context, questionID, as string) (api.Item, error) {
	return do[api.Item](ctx, c, get("/v1/inbox/"+url.PathEscape(questionID), values("human", as)))
}

// Reveal shows a human a question with what is withheld from them. It is recorded, and their
// ruling is not blind.
func (c *Client) Reveal(ctx context.Context, questionID string, as api.Viewer) (api.Question, error) {
	return do[api.Question](ctx, c, post("/v1/inbox/"+url.PathEscape(questionID)+"/reveal", as, Write{}))
}

// Claim says for half an hour that one is at a question. It is advice to others: whoever may
// rule may rule all the same.
func (c *Client) Claim(ctx context.Context, questionID string, as api.Viewer) (api.Claim, error) {
	return do[api.Claim](ctx, c, call{method: http.MethodPut, path: "/v1/inbox/" + url.PathEscape(questionID) + "/claim", body: as})
}

// Assign says that a question is another human's, in.For, for a week. It is advice to all, and who
// has assigned it takes it back with Unclaim.
func (c *Client) Assign(ctx context.Context, questionID string, in api.Claiming) (api.Claim, error) {
	return do[api.Claim](ctx, c, call{method: http.MethodPut, path: "/v1/inbox/" + url.PathEscape(questionID) + "/claim", body: in})
}

// Unclaim says that one is not at a question any more.
func (c *Client) Unclaim(ctx context.Context, questionID string) error {
	_, err := do[[]byte](ctx, c, call{method: http.MethodDelete, path: "/v1/inbox/" + url.PathEscape(questionID) + "/claim"})
	return err
}

// Decide rules on the open round, on the question that was seen.
func (c *Client) Decide(ctx context.Context, id string, in api.Ruling, w Write) (api.Ruled, error) {
	return do[api.Ruled](ctx, c, post(of(id, "/decisions"), in, w))
}

// Execute executes a transition by a human's word that teaches nothing.
func (c *Client) Execute(ctx context.Context, id string, in api.Ruling, w Write) (api.Ruled, error) {
	return do[api.Ruled](ctx, c, post(of(id, "/executions"), in, w))
}

// Withdraw takes a ruling back that waits for others: that of a human, who is "" for the only
// one as whom the key may. It is not made again where the answer was lost.
func (c *Client) Withdraw(ctx context.Context, id, roundID, human string) (api.Ruled, error) {
	return do[api.Ruled](ctx, c, call{method: http.MethodDelete, path: of(id, "/decisions/"+url.PathEscape(roundID)), query: values("human", human)})
}

// A ReviewQuery says which closed rounds are listed; the zero value lists all that may be seen.
type ReviewQuery struct {
	Machine string
	Session string // only those of the session of this id
	Human   string // as whom they are looked at; "" for nobody in particular
}

// Reviews yields the closed rounds that wait for a human's review, page by page as they are
// read. An error is the last it yields.
func (c *Client) Reviews(ctx context.Context, q ReviewQuery) iter.Seq2[api.ReviewItem, error] {
	return pages[api.ReviewItem](ctx, c, "/v1/reviews", values("machine", q.Machine, "session", q.Session, "human", q.Human))
}

// Review says what should have been decided in a closed round, by the id of its question.
func (c *Client) Review(ctx context.Context, questionID string, in api.Reviewing, w Write) (api.Reviewed, error) {
	return do[api.Reviewed](ctx, c, post("/v1/reviews/"+url.PathEscape(questionID), in, Write{Key: w.Key, IfSequence: w.IfSequence}))
}

// RevealReview shows a human what was proposed and decided in a closed round, by the id of its
// question. It is recorded, and their review is not blind.
func (c *Client) RevealReview(ctx context.Context, questionID string, as api.Viewer) (api.Settled, error) {
	return do[api.Settled](ctx, c, post("/v1/reviews/"+url.PathEscape(questionID)+"/reveal", as, Write{}))
}
