package llm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/guard"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A Config says how models are asked. The zero value knows no key, so that every
// ask fails with an error that says which variable to set.
type Config struct {
	// Lookup returns a variable of the environment; nil means that none is set.
	// Keys are looked up at every call, addresses once.
	Lookup func(name string) (value string, ok bool)
	// Policy says which addresses may be called, beside those that the operator
	// named in DIALAI_LLM_BASE_URL, OLLAMA_HOST or Endpoints.
	Policy webhook.Policy
	// Endpoints are addresses of APIs, by the name of the provider, that replace
	// the known ones. They are the operator's choice as the variables are.
	Endpoints map[string]string
	// Limits are how hard a provider is called, by its name; "" is for all others.
	Limits map[string]Limits
	// Retry is how failed attempts are repeated; fields that are not positive are
	// those of webhook.DefaultRetry.
	Retry webhook.Retry
	// Jitter returns a wait of at most ceiling before a repeated attempt; nil
	// means a random one.
	Jitter func(ceiling time.Duration) time.Duration
	// Timeout is for one attempt; 0 means DefaultTimeout.
	Timeout time.Duration
	// Now is the clock of audit entries and latencies; nil means time.Now.
	Now func() time.Time
	// Random is where the delimiters of data come from; nil means crypto/rand.
	Random io.Reader
	// Audit is told of every attempt; nil means that nobody is. What it returns or
	// how it fails never breaks a call: see [Client.AuditFailures].
	Audit func(context.Context, specialist.AuditEntry) error
	// AuditAs says how much of an attempt the audit is told.
	AuditAs AuditMode
	// Observe is told of the begin of every call; what it returns is told of its
	// end. nil means that nobody is.
	Observe func(context.Context, *Call) func(*Response, error)
	// Tape records calls or plays them; nil does neither.
	Tape webhook.Tape
}

// A Call is one call of a model as observers see it.
type Call struct {
	Provider string
	Model    string // as the provider calls it
	Address  string // scheme and host of the API
	Request  *Request
}

// DefaultTimeout is the longest that one attempt may take.
const DefaultTimeout = 60 * time.Second

// A Client asks models. It may be used concurrently. No error of it and no audit
// entry holds a key.
type Client struct {
	config    Config
	base      string            // DIALAI_LLM_BASE_URL
	endpoints map[string]string // of the operator, by provider
	out       *webhook.Outbound

	lanes   sync.Map // *lane by name of the provider
	targets sync.Map // *webhook.Target by address
	quirks  sync.Map // *atomic.Uint32 by provider and model

	auditFailures atomic.Int64
}

// New returns a Client. It copies c. An address of the operator's that is no URL
// is an error of every call to it.
func New(c Config) *Client {
	if c.Lookup == nil {
		c.Lookup = func(string) (string, bool) { return "", false }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	n := &Client{config: c, endpoints: map[string]string{}}
	n.base = strings.TrimRight(strings.TrimSpace(n.variable(baseVariable)), "/")
	if host := n.variable(ollamaVariable); host != "" {
		n.endpoints["ollama"] = ollamaBase(host)
	}
	for name, address := range c.Endpoints {
		n.endpoints[name] = strings.TrimRight(address, "/")
	}
	policy := c.Policy
	for _, address := range append([]string{n.base}, values(n.endpoints)...) {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			policy = policy.Allowing(u)
		}
	}
	n.out = webhook.NewOutbound(policy, c.Now)
	return n
}

// variable returns a variable of the environment, "" if it is not set.
func (c *Client) variable(name string) string {
	v, ok := c.config.Lookup(name)
	if !ok {
		return ""
	}
	return strings.TrimSpace(v) // files of variables leave blanks and line ends behind
}

func values(m map[string]string) (list []string) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// Model returns the model of a modelId, flags and all, at a provider; "" lets the
// environment and the id decide, at each call. It returns an error if the id or
// the provider cannot be.
func (c *Client) Model(id, provider string) (Model, error) {
	m, err := parseModelID(id, provider)
	if err != nil {
		return nil, err
	}
	return &model{c, m}, nil
}

// A model is one model of a Client.
type model struct {
	client *Client
	id     modelID
}

// Ask implements Model.
func (m *model) Ask(ctx context.Context, r *Request) (Response, error) {
	return m.ask(ctx, r, roomOf(ctx))
}

// ask is Ask with the room that is left. Whoever wants to know what questions of
// guards cost is told.
func (m *model) ask(ctx context.Context, r *Request, left room) (resp Response, err error) {
	if m.client.config.Tape != nil {
		resp, err = m.client.taped(ctx, m, r, left)
	} else {
		resp, err = m.client.ask(ctx, m.id, r, left)
	}
	if spent := specialist.CallerOf(ctx).Spent; spent != nil {
		spent(resp.Usage, resp.Model)
	}
	return resp, err
}

// ask asks a model, as often as the retry rule allows.
func (c *Client) ask(ctx context.Context, id modelID, r *Request, left room) (resp Response, err error) {
	resp.Usage = noCall
	to, err := c.route(id)
	if err != nil {
		return resp, err
	}
	target, err := c.target(to)
	if err != nil {
		return resp, err
	}
	if observe := c.config.Observe; observe != nil {
		if done := observe(ctx, &Call{to.provider, to.model, origin(to.base), r}); done != nil {
			defer func() { done(&resp, err) }()
		}
	}
	one := &asking{client: c, to: to, target: target, r: r, lane: c.lane(to.provider), quirks: c.quirksOf(to), room: left}
	err = c.config.Retry.Do(ctx, c.config.Jitter, func() error {
		err := one.attempt(ctx)
		if !one.room.left() {
			return webhook.Final(err)
		}
		return err
	})
	resp = one.resp
	if resp.Usage = one.spent; one.spent == (specialist.Usage{}) {
		resp.Usage = noCall
	}
	return resp, err
}

// target returns where the route leads.
func (c *Client) target(to route) (*webhook.Target, error) {
	address := to.base + to.wire.path(to.model)
	if known, ok := c.targets.Load(address); ok {
		return known.(*webhook.Target), nil
	}
	target, err := c.out.Target(address)
	if variable := addressVariable[to.provider]; err != nil && variable != "" {
		return nil, fmt.Errorf("%s is not an address that can be asked; write for example http://localhost:1234/v1, without user or password", variable)
	} else if err != nil {
		return nil, fmt.Errorf("the address of provider %q: %w", to.provider, err)
	}
	c.targets.Store(address, target)
	return target, nil
}

func (c *Client) lane(provider string) *lane {
	if known, ok := c.lanes.Load(provider); ok {
		return known.(*lane)
	}
	limits, ok := c.config.Limits[provider]
	if !ok {
		limits = c.config.Limits[""]
	}
	made, _ := c.lanes.LoadOrStore(provider, newLane(limits))
	return made.(*lane)
}

// quirksOf returns what has been learnt of a model.
func (c *Client) quirksOf(to route) *atomic.Uint32 {
	key := to.provider + " " + to.model
	if known, ok := c.quirks.Load(key); ok {
		return known.(*atomic.Uint32)
	}
	made, _ := c.quirks.LoadOrStore(key, new(atomic.Uint32))
	return made.(*atomic.Uint32)
}

// An asking is one request under way.
type asking struct {
	client   *Client
	to       route
	target   *webhook.Target
	r        *Request
	lane     *lane
	quirks   *atomic.Uint32
	resp     Response // of the last attempt
	attempts int32
	spent    specialist.Usage // on all attempts so far
	room     room             // that they have left
}

// charge adds what a call has cost.
func (a *asking) charge(u specialist.Usage) {
	a.spent, a.room = a.spent.Plus(u), a.room.after(u)
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
		if learnt, anew := q.learn(string(reply.Body)); anew && (reply.Status == 400 || reply.Status == 404 || reply.Status == 422) {
			a.quirks.Or(uint32(learnt))
			if a.room.left() {
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
	case ok || reply.Status == 0:
		a.charge(a.lost(body)) // it was answered, or may have been
	default:
		a.charge(refusedCall)
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
	text := strings.ToValidUTF8(webhook.Redact(string(reply.Body), a.to.key), "\uFFFD")
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

// read reads the body of a success. An error that stands in it and comes with no
// count is that of a call which is not charged for.
func (a *asking) read(body []byte) error {
	a.resp = Response{}
	err := a.to.wire.decode(body, &a.resp)
	a.resp.scrub(a.to.key)
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
	return webhook.Clip(strings.ToValidUTF8(webhook.Redact(string(body), a.to.key), "\uFFFD"), maxErrorText)
}

func (a *asking) clean(e *apiError) error {
	return &apiError{e.Code, a.shown([]byte(e.Message))}
}

// lost returns what an answer costs that was made, as far as anybody knows, and did
// not arrive.
func (a *asking) lost(body []byte) specialist.Usage {
	return specialist.Usage{
		NumInputTokens: guard.EstimateTokens(string(body)), NumOutputTokens: int64(a.r.maxTokens()),
		Estimated: true, Given: specialist.InputGiven | specialist.OutputGiven,
	}
}

// count estimates what the provider did not count.
func (a *asking) count(body []byte) {
	u := &a.resp.Usage
	if !u.Has(specialist.InputGiven) {
		u.NumInputTokens, u.Estimated = guard.EstimateTokens(a.r.texts()...), true
	}
	if !u.Has(specialist.OutputGiven) {
		u.NumOutputTokens, u.Estimated = a.resp.tokens(body), true
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
		return guard.EstimateTokens(string(body))
	}
	list := []string{r.Text, r.Refusal}
	for _, c := range r.ToolCalls {
		list = append(list, c.Name+c.Arguments)
	}
	return guard.EstimateTokens(list...)
}

// origin returns the scheme and host of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
