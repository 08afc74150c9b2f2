package llm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// How a model is asked, from the outside in: a tape, if there is one, plays the call or
// records it; the route says at which provider and address; the observer is told; then
// the retry rule makes attempts (asking.go), as many as the limit of calls leaves, each
// through the lane of its provider.
//
// Keys are looked up at every call and stand in no error and no audit. Addresses that
// the operator has named are allowed by the policy, whatever they resolve to; nothing
// else adds to it. What has been learned of a model (quirks) and where it is are kept
// for the life of the client, by provider and model.

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
	// Timeout is for one attempt; 0 means defaultTimeout.
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

// defaultTimeout is the longest that one attempt may take.
const defaultTimeout = 60 * time.Second

// A Client asks models. It may be used concurrently. No error of it and no audit
// entry holds a key.
type Client struct {
	config    Config
	base      string            // DIALAI_LLM_BASE_URL
	endpoints map[string]string // of the operator, by provider
	out       *webhook.Outbound
	*known

	auditFailures atomic.Int64
}

// What is known of providers.
type known struct {
	lanes   sync.Map // *lane by name of the provider
	targets sync.Map // *webhook.Target by address
	quirks  sync.Map // *atomic.Uint32 by provider and model
}

// Auditing returns a Client with an audit of its own, as Config.Audit is one. Both together call
// providers no harder than one.
func (c *Client) Auditing(audit func(context.Context, specialist.AuditEntry) error) *Client {
	n := &Client{config: c.config, base: c.base, endpoints: c.endpoints, out: c.out, known: c.known}
	n.config.Audit = audit
	return n
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
		c.Timeout = defaultTimeout
	}
	n := &Client{config: c, endpoints: map[string]string{}, known: &known{}}
	n.base = strings.TrimRight(strings.TrimSpace(n.variable(baseVariable)), "/")
	if host := n.variable(ollamaVariable); host != "" {
		n.endpoints["ollama"] = ollamaBase(host)
	}
	for name, address := range c.Endpoints {
		n.endpoints[name] = strings.TrimRight(address, "/")
	}
	policy := c.Policy
	for _, address := range slices.AppendSeq([]string{n.base}, maps.Values(n.endpoints)) {
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
	return m.ask(ctx, r, callLimitOf(ctx))
}

// ask is Ask with the calls that are left. Whoever wants to know what questions of
// guards cost is told.
func (m *model) ask(ctx context.Context, r *Request, left callLimit) (resp Response, err error) {
	if m.client.config.Tape != nil {
		resp, err = m.client.taped(ctx, m, r, left)
	} else {
		resp, err = m.client.ask(ctx, m.id, r, left)
	}
	if spent := specialist.CallerOf(ctx).Spent; spent != nil {
		spent(resp.Usage, m.id.model, resp.Model)
	}
	return resp, err
}

// ask asks a model, as often as the retry rule allows.
func (c *Client) ask(ctx context.Context, id modelID, r *Request, left callLimit) (resp Response, err error) {
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
	one := &asking{client: c, to: to, target: target, r: r, lane: c.lane(to.provider), quirks: c.quirksOf(to), limit: left, secret: webhook.Conceal(to.key)}
	err = c.config.Retry.Do(ctx, c.config.Jitter, func() error {
		err := one.attempt(ctx)
		if !one.limit.left() {
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
	if err == nil && strings.ContainsAny(to.base, "?#") { // the path would become part of that, and it may hold a key
		err = errors.New("it has more than a path")
	}
	if variable := addressVariable[to.provider]; err != nil && variable != "" {
		return nil, fmt.Errorf("%s is not an address that can be asked; write for example http://localhost:1234/v1, without user, password or query", variable)
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
