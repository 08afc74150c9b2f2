package client

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
)

// About returns what the server is, and what the caller may do.
func (c *Client) About(ctx context.Context) (api.About, error) {
	return do[api.About](ctx, c, get("/v1", nil))
}

// Start starts a session. Made again with the same w.Key it is the same session.
func (c *Client) Start(ctx context.Context, in api.Start, w Write) (api.Settled, error) {
	return do[api.Settled](ctx, c, post("/v1/sessions", in, w))
}

// of returns the path of a session, or below it.
func of(id, below string) string { return "/v1/sessions/" + url.PathEscape(id) + below }

// Session returns a session with its question, if one is open, as a human sees it; as is ""
// for the only one as whom the key may, or nobody in particular.
func (c *Client) Session(ctx context.Context, id, as string) (api.Session, error) {
	return do[api.Session](ctx, c, get(of(id, ""), values("human", as)))
}

// Await returns a session as it is once nothing of it goes on by itself, or after a time: the
// answer says which.
func (c *Client) Await(ctx context.Context, id, as string, wait time.Duration) (api.Settled, error) {
	return do[api.Settled](ctx, c, get(of(id, "/settled"), values("human", as, "wait", wait.String())))
}

// A SessionQuery says which sessions are listed; the zero value lists all, the newest first.
type SessionQuery struct {
	ID           string // only those whose id begins like this
	Machine      string
	Statuses     []string // running, needs_human, completed, stopped, failed
	State        string
	Code         string
	Subject      string // only those whose subject begins like this
	Decider      string // only those in whose state this human may rule
	Overdue      bool
	Awake        bool      // without those that wait for a timer which has not come
	Reviews      bool      // only those with closed rounds that a human is to look at
	StartedBy    string    // only those that this subject has started
	CreatedAfter time.Time // the zero time asks for nothing
	UpdatedAfter time.Time // likewise
	OldestFirst  bool
}

func (q SessionQuery) values() url.Values {
	v := values("id", q.ID, "machine", q.Machine, "status", strings.Join(q.Statuses, ","), "state", q.State, "code", q.Code, "subject", q.Subject, "decider", q.Decider, "overdue", yes(q.Overdue), "awake", yes(q.Awake), "reviews", yes(q.Reviews), "startedBy", q.StartedBy, "createdAfter", moment(q.CreatedAfter), "updatedAfter", moment(q.UpdatedAfter))
	if q.OldestFirst {
		v.Set("order", "asc")
	}
	return v
}

// moment is a time in a query; "" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Sessions yields sessions, page by page as they are read. An error is the last it yields.
func (c *Client) Sessions(ctx context.Context, q SessionQuery) iter.Seq2[api.Summary, error] {
	return pages[api.Summary](ctx, c, "/v1/sessions", q.values())
}

// Explain says why a round was decided as it was, as a human sees it who is "" for nobody in
// particular. round is its number, a number and an attempt such as 3.1, or its id; "" is the
// last that was judged.
func (c *Client) Explain(ctx context.Context, id, round, human string) (api.Explanation, error) {
	return do[api.Explanation](ctx, c, get(of(id, "/explain"), values("round", round, "human", human)))
}

// SessionDecisions yields what was executed in a session, on what, the oldest first. An error
// is the last it yields.
func (c *Client) SessionDecisions(ctx context.Context, id string) iter.Seq2[api.Decision, error] {
	return pages[api.Decision](ctx, c, of(id, "/decisions"), url.Values{})
}

// ModelCalls yields how models were asked in a session, the oldest first, as a human sees it who
// is "" for nobody in particular. An error is the last it yields.
func (c *Client) ModelCalls(ctx context.Context, id, human string) iter.Seq2[api.ModelCall, error] {
	return pages[api.ModelCall](ctx, c, of(id, "/audit"), values("human", human))
}

// AgentLog yields what agents did about a session, from a number on; 0 is the first. payload is
// what is shown of texts: redacted (also if it is "") or full; human as whom it is looked at, "" for
// nobody in particular. An error is the last it yields.
func (c *Client) AgentLog(ctx context.Context, id string, from int64, payload, human string) iter.Seq2[api.Event, error] {
	v := values("payload", payload, "human", human)
	if from > 0 {
		v.Set("from", number(from))
	}
	return pages[api.Event](ctx, c, of(id, "/agent-log"), v)
}

// GuardLog yields the events of a session as guards saw them, from a number on; 0 is the first.
// payload is what is told of texts: redacted (also if it is ""), full or digest; human as whom it
// is looked at, "" for nobody in particular. An error is the last it yields.
func (c *Client) GuardLog(ctx context.Context, id string, from int64, payload, human string) iter.Seq2[api.LogRecord, error] {
	v := values("payload", payload, "human", human)
	if from > 0 {
		v.Set("from", number(from))
	}
	return pages[api.LogRecord](ctx, c, of(id, "/log"), v)
}

// AnswerCallback hands in the answer of a service that comes later. callback is the end of the
// Dialai-Callback-Url that came with the question, behind its last slash, and token the
// Dialai-Callback-Token, which is sent in place of the key. The same answer counts once. What
// must be signed is for the service to send itself: see docs/webhooks.md.
func (c *Client) AnswerCallback(ctx context.Context, callback, token string, in api.LateAnswer) (api.Answered, error) {
	return do[api.Answered](ctx, c, call{method: http.MethodPost, path: "/v1/callbacks/" + url.PathEscape(callback), body: in, token: token})
}

// Driver says how it goes with carrying a session on.
func (c *Client) Driver(ctx context.Context, id string) (api.Driven, error) {
	return do[api.Driven](ctx, c, get(of(id, "/driver"), nil))
}

// Step carries a session one step further.
func (c *Client) Step(ctx context.Context, id string, w Write) (api.Stepped, error) {
	return do[api.Stepped](ctx, c, post(of(id, "/step"), nil, w))
}

// Run runs a session until it ends, needs a human, waits, or has made so many transitions; 0
// is as many as the server takes for a run.
func (c *Client) Run(ctx context.Context, id string, maxSteps int, w Write) (api.Ran, error) {
	return do[api.Ran](ctx, c, post(of(id, "/run"), map[string]int{"maxSteps": maxSteps}, w))
}

// Propose hands in a proposal for a specialist.
func (c *Client) Propose(ctx context.Context, id string, in api.Proposal, w Write) (api.Proposed, error) {
	return do[api.Proposed](ctx, c, post(of(id, "/proposals"), in, w))
}

// Evaluate says what the arbiter would decide now. Nothing changes.
func (c *Client) Evaluate(ctx context.Context, id string) (api.Consensus, error) {
	return do[api.Consensus](ctx, c, post(of(id, "/evaluation"), nil, Write{}))
}

// Arbitrate has the arbiter decide the present round.
func (c *Client) Arbitrate(ctx context.Context, id string, in api.Arbitrating, w Write) (api.Ruled, error) {
	return do[api.Ruled](ctx, c, post(of(id, "/arbitration"), in, w))
}

// Resume takes a session up again.
func (c *Client) Resume(ctx context.Context, id string, in api.Resuming, w Write) (api.Settled, error) {
	return do[api.Settled](ctx, c, post(of(id, "/resume"), in, w))
}

// Raise lifts limits of the guards for a session, and takes it up again.
func (c *Client) Raise(ctx context.Context, id string, in api.Raising, w Write) (api.Settled, error) {
	return do[api.Settled](ctx, c, post(of(id, "/raise"), in, w))
}

// Cancel stops a session that is not to go on.
func (c *Client) Cancel(ctx context.Context, id string, in api.Note, w Write) (api.Settled, error) {
	return do[api.Settled](ctx, c, post(of(id, "/cancel"), in, Write{Key: w.Key}))
}

// Fork makes a session that goes on from where another one stood.
func (c *Client) Fork(ctx context.Context, id string, in api.Forking, w Write) (api.Settled, error) {
	return do[api.Settled](ctx, c, post(of(id, "/fork"), in, Write{Key: w.Key}))
}

// Move moves a session to another definition.
func (c *Client) Move(ctx context.Context, id string, in api.Moving, w Write) (api.Settled, error) {
	return do[api.Settled](ctx, c, post(of(id, "/move"), in, Write{Key: w.Key}))
}

// Retract says that an executed ruling of one's own was a mistake.
func (c *Client) Retract(ctx context.Context, id string, in api.Retracting, w Write) (api.Settled, error) {
	return do[api.Settled](ctx, c, post(of(id, "/retractions"), in, Write{Key: w.Key}))
}

// values returns what of a query is not empty, of names and values in turn.
func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// pages yields a list, page by page.
func pages[T any](ctx context.Context, c *Client, path string, q url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := maps.Clone(q) // who goes through it again begins at its first page
		for {
			page, err := do[api.List[T]](ctx, c, call{method: http.MethodGet, path: path, query: q})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			q.Set(cursorName(path), page.NextCursor)
		}
	}
}

// cursorName returns how a list is told where to go on. That of events is a number of theirs.
func cursorName(path string) string {
	if strings.HasSuffix(path, "/events") {
		return "after"
	}
	return "cursor"
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
