package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dialai/dialai/api"
)

// Where a human has to speak, a tool only asks them, for its arguments are the words of a model:
//
//   - a client that opens pages for its user is given that of the question, where humans sign in;
//   - a client that shows forms shows one, if the server was told that whoever fills it in is the
//     human (form.go);
//   - for any other the result says where humans answer, and that nothing was done;
//   - only a server that was told so takes the arguments as the word of the human whom the caller
//     is bound to, and never for what cannot be undone or needs several humans.
//
// What they say goes through the operations of rulings, on the digest of the question that they
// were shown.

// A wish is what a tool would have a human say.
type wish struct {
	path           string // of the operation that takes their word, below the session
	transitionName string // "" leaves the choice to them
	toState        string
	reasoning      string
	human          string
	metaJSON       json.RawMessage
	wait           time.Duration // for their word
}

// Why nothing was done.
const (
	needsConfirmation = "needs_confirmation"
	notConfirmed      = "not_confirmed"
	noQuestion        = "no_question"
)

// askedSchema is that of asking.
var askedSchema = map[string]any{
	"type": "object", "required": []string{"executed"}, "additionalProperties": true,
	"properties": map[string]any{
		"executed":    map[string]any{"type": "boolean", "description": "the human has spoken, and a transition was executed"},
		"code":        map[string]any{"type": "string", "description": "why nothing was: needs_confirmation, not_confirmed, declined, cancelled, no_question, approvals, second_human"},
		"hint":        map[string]any{"type": "string"},
		"url":         map[string]any{"type": "string", "description": "where the human answers"},
		"question":    map[string]any{"$ref": refTo + "Question"},
		"session":     map[string]any{"$ref": refTo + "Session"},
		"arbitration": map[string]any{"$ref": refTo + "Arbitration"},
	},
}

// asking is the answer of a tool that puts something to a human.
type asking struct {
	Executed    bool            `json:"executed"`
	Code        string          `json:"code,omitempty"`
	Hint        string          `json:"hint,omitempty"`
	URL         string          `json:"url,omitempty"`
	Question    *api.Question   `json:"question,omitempty"`
	Session     json.RawMessage `json:"session,omitempty"`
	Arbitration json.RawMessage `json:"arbitration,omitempty"`
	Proposal    json.RawMessage `json:"proposal,omitempty"`
}

func askHuman(ctx context.Context, c *conversation) outcome {
	return c.put(ctx, wish{path: "/decisions", human: c.text("specialistId"), wait: time.Duration(c.number("waitSeconds", 0, 60)) * time.Second})
}

func executeTransition(ctx context.Context, c *conversation) outcome {
	return c.put(ctx, c.wished("/executions"))
}

// submitArbitration has the arbiter decide, or a human if a transition is named.
func submitArbitration(ctx context.Context, c *conversation) outcome {
	if c.text("transitionName") == "" {
		return c.ask(ctx, nil)
	}
	return c.put(ctx, c.wished("/decisions"))
}

// submitProposal hands a proposal in. That of a human is refused, as it does not say which
// question they saw; then they are asked.
func submitProposal(ctx context.Context, c *conversation) outcome {
	if c.state == "" {
		if o := c.ask(ctx, nil); o.problem == nil || o.problem.Code != "precondition_required" {
			return o
		}
	}
	return c.put(ctx, c.wished("/proposals"))
}

// wished reads what the arguments would have a human say.
func (c *conversation) wished(path string) wish {
	return wish{path: path, transitionName: c.text("transitionName"), toState: c.text("toState"), reasoning: c.text("reasoning"), human: c.text("specialistId"), metaJSON: c.arguments["metaJson"]}
}

// put puts a question to a human, or, when the client calls again, reads what they have answered.
func (c *conversation) put(ctx context.Context, w wish) outcome {
	id := c.text("sessionId")
	if c.state != "" {
		return c.readAnswer(ctx, id, w)
	}
	q, o := c.question(ctx, id, &w)
	if q == nil {
		return o
	}
	if named := c.text("roundId"); named != "" && named != q.RoundID {
		return refused(http.StatusConflict, "stale_round", "get_session has the round that is open now", "round %s is not open", named)
	}
	caller := c.config.API.Caller(ctx)
	choice := choiceIn(q, w.transitionName)
	if w.transitionName != "" && choice == nil {
		return refused(http.StatusUnprocessableEntity, "illegal_transition", "question.transitions of the session has those that there are", "there is no transition %q in state %s", w.transitionName, q.State)
	}
	if c.config.ArgumentsRule && choice != nil && !choice.Irreversible && choice.Approvals == nil && (!caller.Anybody || slices.Contains(q.Humans, w.human)) {
		o := c.say(ctx, id, w, word{roundID: q.RoundID, digest: q.Digest, transitionName: w.transitionName, reasoning: w.reasoning, metaJSON: w.metaJSON, spoken: SpokenTool})
		if o.problem == nil || o.problem.Status != http.StatusForbidden {
			return o // otherwise the caller is not bound to whoever may
		}
	}
	return c.show(ctx, id, w, q, c.config.Form || caller.Form != nil && caller.Form(q.MachineName))
}

// show puts a question to a human in the way that the client has.
func (c *conversation) show(ctx context.Context, id string, w wish, q *api.Question, forms bool) outcome {
	state := asked{RoundID: q.RoundID, Digest: q.Digest}
	if can := c.elicits; can != nil {
		if can.URL != nil && c.config.Desk != "" {
			return outcome{state: c.seal(ctx, state), ask: mcp.InputRequestMap{answerKey: &mcp.ElicitParams{
				Mode: "url", Message: "dialai asks a human to decide: " + printable(q.Prompt), URL: c.page(q), ElicitationID: q.QuestionID + "." + q.Digest[:min(16, len(q.Digest))],
			}}}
		}
		if schema := formOf(q); schema != nil && forms && (can.Form != nil || can.URL == nil) {
			state.Form = true
			return outcome{state: c.seal(ctx, state), ask: mcp.InputRequestMap{answerKey: &mcp.ElicitParams{Mode: "form", Message: messageOf(q, &w), RequestedSchema: schema}}}
		}
	}
	return c.elsewhere(ctx, id, w, q)
}

// elsewhere says where a human can answer, and, if that is asked for, waits until they have.
func (c *conversation) elsewhere(ctx context.Context, id string, w wish, q *api.Question) outcome {
	if session := c.closed(ctx, id, q.RoundID, w.wait); session != nil {
		return answered(asking{Executed: true, Session: session})
	}
	return answered(asking{Code: needsConfirmation, Question: q, URL: c.page(q), Hint: "a human decides, and no tool: dialai decide " + q.SessionID + " TRANSITION --round " + q.RoundID})
}

// answerKey names the request to the human.
const answerKey = "answer"

// page returns the address at which humans answer a question; "" if there is none.
func (c *conversation) page(q *api.Question) string {
	if c.config.Desk == "" {
		return ""
	}
	return c.config.Desk + "/desk/q/" + url.PathEscape(q.QuestionID)
}

// question returns the question of the open round of a session as whoever calls may see it. If
// there is none it is nil, and the outcome says why.
func (c *conversation) question(ctx context.Context, id string, w *wish) (*api.Question, outcome) {
	look := func() (outcome, url.Values) {
		query := url.Values{}
		if w.human != "" {
			query.Set("human", w.human)
		}
		return c.operate(ctx, Call{Method: http.MethodGet, Path: sessionAt(id, ""), Query: query}), query
	}
	o, query := look()
	if o.problem != nil && o.problem.Code == "not_bound" { // they sign in elsewhere
		w.human = ""
		o, query = look()
	}
	var at struct {
		CurrentRoundID string
		Question       *api.Question
	}
	if !o.into(&at) {
		return nil, o
	}
	if at.Question != nil {
		return at.Question, o
	}
	asked := c.operate(ctx, Call{Method: http.MethodGet, Path: "/v1/inbox/" + url.PathEscape(id+"."+at.CurrentRoundID), Query: query})
	q := &api.Question{}
	if asked.problem != nil && asked.problem.Code == "not_found" {
		return nil, answered(asking{Code: noQuestion, Hint: "the session has ended", Session: o.body})
	}
	if !asked.into(q) {
		return nil, asked
	}
	return q, o
}

// choiceIn returns a transition that a question offers, nil if it does not.
func choiceIn(q *api.Question, name string) *api.Choice {
	for i := range q.Transitions {
		if q.Transitions[i].Name == name {
			return &q.Transitions[i]
		}
	}
	return nil
}

// readAnswer is what comes of what a human has answered.
func (c *conversation) readAnswer(ctx context.Context, id string, w wish) outcome {
	was, ok := c.unseal(ctx)
	if !ok {
		return refused(http.StatusForbidden, "bad_request_state", "call the tool again without it", "requestState is none that was given to this caller for this call within the last ten minutes")
	}
	said, ok := c.responses[answerKey].(*mcp.ElicitResult)
	if !ok {
		return refused(http.StatusBadRequest, "bad_request", "call the tool again without requestState", "the answer of the human is missing")
	}
	switch {
	case said.Action == "decline":
		return answered(asking{Code: "declined", Hint: "the human has not decided; nothing was changed"})
	case said.Action != "accept":
		return answered(asking{Code: "cancelled", Hint: "the human has not decided; nothing was changed"})
	case was.Form:
		return c.filled(ctx, id, w, was, said.Content)
	}
	if session := c.closed(ctx, id, was.RoundID, cmp.Or(w.wait, stateWait)); session != nil {
		return answered(asking{Executed: true, Session: session})
	}
	q, o := c.question(ctx, id, &w)
	if q == nil {
		return o
	}
	return c.elsewhere(ctx, id, wish{}, q)
}

// stateWait is how long the word of a human is waited for who was led to a page.
const stateWait = 20 * time.Second

// A word is what a human has said.
type word struct {
	roundID, digest string
	transitionName  string
	reasoning       string
	metaJSON        json.RawMessage
	spoken          string
}

// say hands in what a human has said.
func (c *conversation) say(ctx context.Context, id string, w wish, said word) outcome {
	body := map[string]any{"transitionName": said.transitionName, "roundId": said.roundID, "questionDigest": said.digest}
	for name, text := range map[string]string{"specialistId": w.human, "reasoning": said.reasoning} {
		if text != "" {
			body[name] = text
		}
	}
	if said.transitionName == w.transitionName && w.toState != "" {
		body["toState"] = w.toState
	}
	if said.metaJSON != nil {
		body["metaJson"] = said.metaJSON
	}
	text, err := json.Marshal(body)
	if err != nil {
		return outcome{problem: wrong("/metaJson", "metaJson is no JSON")}
	}
	o := c.operate(ctx, Call{Method: http.MethodPost, Path: sessionAt(id, w.path), Body: text, Spoken: said.spoken})
	var done asking
	if !o.into(&done) {
		return o
	}
	var ruled struct{ Executed bool }
	_ = json.Unmarshal(done.Arbitration, &ruled) // a proposal has none
	done.Executed = ruled.Executed
	return answered(done)
}

// closed waits until a round is over, and returns the session then; nil if it is not in time.
func (c *conversation) closed(ctx context.Context, id, round string, wait time.Duration) json.RawMessage {
	if wait == 0 {
		return nil
	}
	changed, end := c.config.API.Watch(ctx, id)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		o := c.operate(context.WithoutCancel(ctx), Call{Method: http.MethodGet, Path: sessionAt(id, "")})
		var at struct {
			CurrentRoundID string
			Status         string
		}
		if !o.into(&at) {
			return nil
		}
		if at.CurrentRoundID != round || at.Status == "completed" {
			return o.body
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}
