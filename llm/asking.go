package llm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// One request to one provider, until it is answered, refused for good, or may not be
// sent again. attempt encodes it for the provider, post sends it through the lane that
// limits how many are out, and read takes the answer apart. A provider that does not
// know a parameter is asked again without it, which the client remembers (quirks);
// whether a failure is worth another attempt is said by webhook.Again.
//
// Each request that was sent is charged: as the answer counts, else as estimated; one
// that the provider refused is a call that costs nothing; one whose answer was lost is
// charged as if it had come in full. No request is sent beyond the limit of calls, and
// the key stands in no error and no audit.

// An asking is one request under way.
type asking struct {
	client   *Client
	to       route
	target   *webhook.Target
	r        *Request
	lane     *lane
	quirks   *atomic.Uint32
	secret   *webhook.Concealer // finds the key
	resp     Response           // of the last attempt
	attempts int32
	spent    specialist.Usage // on all attempts so far
	limit    callLimit        // that they have left
}

// charge adds what a call has cost.
func (a *asking) charge(u specialist.Usage) {
	a.spent, a.limit = a.spent.Plus(u), a.limit.after(u)
}

// A StatusError is an answer of a provider with a status that is no success.
type StatusError struct {
	Status int
	Body   string // at most 2 KiB, without the key
}

func (e *StatusError) Error() string { return fmt.Sprintf("LLM API error (%d): %s", e.Status, e.Body) }

// attempt is one attempt; those that only find out what a model takes are part of
// it.
func (a *asking) attempt(ctx context.Context) error {
	for {
		q := quirks(a.quirks.Load())
		reply, err := a.post(ctx, a.to.wire.encode(nil, a.to.model, a.r, q))
		if err != nil {
			return err
		}
		if reply.Status >= 200 && reply.Status <= 299 {
			return a.read(reply.Body)
		}
		a.charge(refusedCall)
		if learnt, anew := q.learn(string(reply.Body), a.r.Schema != nil); anew && (reply.Status == 400 || reply.Status == 404 || reply.Status == 422) {
			a.quirks.Or(uint32(learnt))
			if a.limit.left() {
				continue
			}
		}
		return a.refused(reply)
	}
}

// post sends one request and audits it.
func (a *asking) post(ctx context.Context, body []byte) (webhook.Reply, error) {
	if err := a.lane.enter(ctx); err != nil {
		return webhook.Reply{}, err
	}
	defer a.lane.leave()
	ctx, cancel := context.WithTimeout(ctx, a.client.config.Timeout)
	defer cancel()
	a.attempts++
	start := a.client.config.Now()
	headers := a.to.wire.headers(a.to.key)
	reply, err := a.target.Post(ctx, headers, body)
	switch ok := reply.Status >= 200 && reply.Status <= 299; {
	case err == nil || !reply.Sent:
	case !ok && errors.Is(err, webhook.ErrTooLarge):
		a.charge(refusedCall)
	default:
		a.charge(a.lost(body)) // it was answered, or may have been
	}
	if a.client.config.Audit != nil {
		a.audit(ctx, &exchange{start, headers, body, reply, err})
	}
	if err != nil {
		return reply, a.unreached(err)
	}
	return reply, nil
}

// unreached says what went wrong on the way, without the key.
func (a *asking) unreached(err error) error {
	if _, refused := errors.AsType[*webhook.PolicyError](err); refused {
		return fmt.Errorf("the address of provider %q is neither public nor the operator's own: %w", a.to.provider, err)
	}
	return err
}

// refused says what a status means that is no success.
func (a *asking) refused(reply webhook.Reply) error {
	text := strings.ToValidUTF8(a.secret.Hide(string(reply.Body)), "\uFFFD")
	err := &StatusError{reply.Status, webhook.Clip(text, maxErrorText)}
	switch reply.Status {
	case 429:
		if strings.Contains(text, "insufficient_quota") {
			return err // waiting does not fill an account
		}
		fallthrough
	case 503, 529:
		a.lane.rest(min(reply.RetryAfter, maxRest))
		fallthrough
	case 408, 425, 500, 502, 504:
		return webhook.Again(err, reply.RetryAfter)
	}
	return err
}

const (
	maxErrorText = 2 << 10
	maxRest      = 30 * time.Second // that one answer can ask for
)

// echo returns what finds the key in answers: nothing if it is too short to be one.
func (a *asking) echo() *webhook.Concealer {
	if len(a.to.key) < minKey {
		return &webhook.Concealer{}
	}
	return a.secret
}

// read reads the body of a success. An error that stands in it and comes with no
// count is that of a call which is not charged for.
func (a *asking) read(body []byte) error {
	a.resp = Response{}
	err := a.to.wire.decode(body, &a.resp)
	a.resp.scrub(a.echo())
	failed, ok := errors.AsType[*apiError](err)
	if ok && a.resp.Usage == (specialist.Usage{}) {
		a.charge(refusedCall)
	} else {
		a.count(body)
		a.charge(a.resp.Usage)
	}
	switch {
	case errors.Is(err, errNotJSON):
		//lint:ignore ST1005 the text is prescribed
		return fmt.Errorf("Failed to parse LLM response as JSON: %s", a.shown(body))
	case ok && (failed.Code == 429 || failed.Code >= 500 && failed.Code <= 599):
		return webhook.Again(a.clean(failed), 0)
	case ok:
		return a.clean(failed)
	}
	return err
}

func (a *asking) shown(body []byte) string {
	return webhook.Clip(strings.ToValidUTF8(a.secret.Hide(string(body)), "\uFFFD"), maxErrorText)
}

func (a *asking) clean(e *apiError) error {
	return &apiError{e.Code, a.shown([]byte(e.Message))}
}

// lost returns what an answer costs that was made, as far as anybody knows, and did
// not arrive.
func (a *asking) lost(body []byte) specialist.Usage {
	return specialist.Usage{
		NumInputTokens: spend.EstimateTokens(string(body)), NumOutputTokens: int64(a.r.maxTokens()),
		Estimated: true, Given: specialist.InputGiven | specialist.OutputGiven,
	}
}

// count estimates what the provider did not count.
func (a *asking) count(body []byte) {
	u := &a.resp.Usage
	if !u.Has(specialist.InputGiven) {
		u.NumInputTokens, u.Estimated = spend.EstimateTokens(a.r.texts()...), true
	}
	if !u.Has(specialist.OutputGiven) {
		u.NumOutputTokens, u.Estimated = a.resp.tokens(body), true
		if u.Detail != nil {
			u.NumOutputTokens = exact.AddSat(u.NumOutputTokens, u.Detail.ReasoningTokens) // which nobody sees
		}
	}
	u.Given |= specialist.InputGiven | specialist.OutputGiven
}

// texts returns everything that a model is sent.
func (r *Request) texts() []string {
	list := []string{r.System, r.User, string(r.Schema)}
	for i := range r.Tools {
		t := &r.Tools[i]
		list = append(list, t.Name+t.Description+string(t.Parameters))
	}
	return list
}

// tokens estimates the length of an answer: of what was read of it, else of all of
// it.
func (r *Response) tokens(body []byte) int64 {
	if r.Text == "" && len(r.ToolCalls) == 0 && r.Refusal == "" {
		return spend.EstimateTokens(string(body))
	}
	list := []string{r.Text, r.Refusal}
	for _, c := range r.ToolCalls {
		list = append(list, c.Name+c.Arguments)
	}
	return spend.EstimateTokens(list...)
}

// origin returns the scheme and host of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
