// Package webhook asks services over HTTP: for proposals, for verdicts, for
// context. It owns the one outbound transport of the program ([NewTransport])
// and the policy that keeps it away from private addresses.
package webhook

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dialai/dialai/arbiter"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// A Config says how webhooks are called. The zero value refuses private
// addresses and knows no token.
type Config struct {
	Policy Policy
	// Lookup returns a variable of the environment; nil means that none is set.
	Lookup func(name string) (value string, ok bool)
	// TokenNames are the globs a variable's name must match before a machine
	// file may name it; nil means defaultTokenNames, and an empty list that none may
	// be named. TokenSetting is what error messages call them; "" means
	// DIALAI_WEBHOOK_TOKEN_NAMES.
	TokenNames   []string
	TokenSetting string
	// Bound returns why a variable may not go to a host, nil if it may; a *BoundError where it
	// is bound to others. The host is as [Host] returns it. It may be called concurrently; nil
	// lets all go anywhere.
	Bound func(variable, host string) error
	// Transport is where requests go; nil means NewTransport(Policy).
	Transport http.RoundTripper
	// Now is the clock of signatures and of dates in Retry-After; nil means
	// time.Now.
	Now func() time.Time
	// Retry is how failed attempts are repeated; fields that are not positive
	// are those of DefaultRetry.
	Retry Retry
	// Jitter returns a wait of at most ceiling before a repeated attempt; nil
	// means a random one from 0 on, all equally likely. It may be called
	// concurrently.
	Jitter func(ceiling time.Duration) time.Duration
	// Tape records calls or plays them; nil does neither. Where it plays, no
	// variable needs to be set.
	Tape Tape
}

// defaultTokenNames is what variables that hold tokens must be called.
const defaultTokenNames = "*WEBHOOK*"

// protected variables are never sent anywhere, whatever the globs say.
var protected = map[string]bool{
	"OPENROUTER_API_TOKEN": true, "OPENAI_API_KEY": true, "ANTHROPIC_API_KEY": true, "GEMINI_API_KEY": true, "OLLAMA_HOST": true,
	"DIALAI_API_TOKEN": true, "DIALAI_SERVER_KEY": true, "DATABASE_URL": true,
}

// A Client calls webhooks. It is a strategies.Resolver, which knows those that have the
// address of one, and may be used concurrently. No error and no answer of it holds a secret
// that was sent, not even if the service echoes it.
type Client struct {
	config Config
	last   atomic.Pointer[roundID]
}

// A roundID is a round's id, which all asks of a round share and which takes a
// hash to make.
type roundID struct {
	key specialist.RoundKey
	id  string
}

// roundID returns key.ID().
func (c *Client) roundID(key specialist.RoundKey) string {
	if last := c.last.Load(); last != nil && last.key == key {
		return last.id
	}
	id := key.ID()
	c.last.Store(&roundID{key, id})
	return id
}

// New returns a Client. It copies c.
func New(c Config) *Client {
	if c.Lookup == nil {
		c.Lookup = func(string) (string, bool) { return "", false }
	}
	if c.TokenNames = slices.Clone(c.TokenNames); c.TokenNames == nil {
		c.TokenNames = []string{defaultTokenNames}
	}
	c.TokenSetting = cmp.Or(c.TokenSetting, "DIALAI_WEBHOOK_TOKEN_NAMES")
	if c.Bound == nil {
		c.Bound = func(string, string) error { return nil }
	}
	if c.Transport == nil {
		c.Transport = NewTransport(c.Policy)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Retry = c.Retry.withDefaults()
	if c.Jitter == nil {
		c.Jitter = anyWait
	}
	return &Client{config: c}
}

// An endpoint is one webhook, checked.
type endpoint struct {
	client *Client

	specialist string // whose it is; "" if it is nobody's

	prepared *http.Request // of every call; without headers and a body
	basic    []string      // the Authorization header
	key      []byte        // of the signature
	secrets  []string      // kept to keep them out of messages
	echoes   *Concealer    // that finds them in answers
}

// endpoint checks everything about a webhook that can be checked before it is
// called.
func (c *Client) endpoint(m *machine.Machine, s *machine.Specialist, address string) (*endpoint, error) {
	e, err := c.prepare(m.Name(), s.WebhookTokenName, s.WebhookSecretName, address)
	if err == nil {
		e.specialist = s.SpecialistID
	}
	return e, err
}

// prepare returns the endpoint at an address. user is who calls, a machine or the
// program; secretName may be "".
func (c *Client) prepare(user, tokenName, secretName, address string) (*endpoint, error) {
	req, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		return nil, errors.New("the address of the webhook is not a URL") // which may hold a secret
	}
	u := req.URL
	u.Host, req.Host = strings.ToLower(u.Host), strings.ToLower(req.Host)
	if t := c.config.Tape; t != nil && t.Playing() {
		return &endpoint{client: c, prepared: req, echoes: &Concealer{}}, nil // nothing is sent, so nothing is needed
	}
	if err := c.config.Policy.CheckURL(u); err != nil {
		return nil, err
	}
	if strings.Contains(user, ":") {
		return nil, fmt.Errorf("machineName %q contains a colon, which Basic authentication of webhooks cannot carry", user)
	}
	token, err := c.variable(tokenName, "Webhook token", u)
	if err != nil {
		return nil, err
	}
	pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + token))
	e := &endpoint{client: c, prepared: req, basic: []string{"Basic " + pair}, key: []byte(token), secrets: []string{token, pair, u.RawQuery}}
	if secretName != "" {
		secret, err := c.variable(secretName, "Webhook secret", u)
		if err != nil {
			return nil, err
		}
		if e.key, err = Key(secret); err != nil {
			return nil, fmt.Errorf("variable %s: %w", secretName, err)
		}
		e.secrets = append(e.secrets, secret, strings.TrimPrefix(secret, secretPrefix))
	}
	e.echoes = echoes(e.secrets)
	return e, nil
}

// variable returns the value of a variable that a machine file names for an address.
func (c *Client) variable(name, what string, at *url.URL) (string, error) {
	if err := c.MayName(name); err != nil {
		return "", err
	}
	value, ok := c.config.Lookup(name)
	if !ok || value == "" {
		return "", &unsetError{what, name}
	}
	return value, c.config.Bound(name, hostOf(at))
}

// MayName returns why a machine may not have a variable sent anywhere, nil if it may name it.
func (c *Client) MayName(name string) error {
	if protected[strings.ToUpper(name)] { // where case does not count, it must not here
		return fmt.Errorf("variable %s is never sent to a webhook, whatever %s says: use another one", name, c.config.TokenSetting)
	}
	allows := func(glob string) bool { ok, err := path.Match(glob, name); return err == nil && ok }
	switch {
	case len(c.config.TokenNames) == 0:
		return fmt.Errorf("variable %s may not be sent to a webhook: no variable may (see %s)", name, c.config.TokenSetting)
	case !slices.ContainsFunc(c.config.TokenNames, allows):
		return fmt.Errorf("variable %s may not be sent to a webhook: only names that match %s may (see %s)", name, strings.Join(c.config.TokenNames, ", "), c.config.TokenSetting)
	}
	return nil
}

// An unsetError says that the environment lacks what a machine file names.
type unsetError struct{ what, name string }

func (e *unsetError) Error() string { return fmt.Sprintf("%s variable %s is not set", e.what, e.name) }

// Variable returns the name of the variable, for hints.
func (e *unsetError) Variable() string { return e.name }

// The errors of an answer that is promised for later where that cannot be.
var (
	//lint:ignore ST1005 the text is prescribed
	errNoCallback = errors.New("Webhook returned 202 Accepted but DIALAI_PUBLIC_URL is not set")
	//lint:ignore ST1005 the text is prescribed
	errAcceptedHere = errors.New("Webhook returned 202 Accepted: an answer is needed at once")
)

// Proposer returns a proposer that asks the specialist's strategyWebhookUrl. If
// its answer cannot be read, or did not come though a request went out, what is known
// of its usage is returned along with the error; if that is nothing, the error wraps
// [specialist.ErrUncounted]. Where
// nothing could be sent, as to an address that the policy refuses, the usage says
// that there was no call.
func (c *Client) Proposer(m *machine.Machine, s *machine.Specialist, _ specialist.Context) (specialist.Proposer, error) {
	if s.StrategyWebhookURL == "" {
		return nil, nil
	}
	e, err := c.endpoint(m, s, s.StrategyWebhookURL)
	if err != nil {
		return nil, err
	}
	return proposer{e}, nil
}

// A proposer is an endpoint that proposes.
type proposer struct{ *endpoint }

// Propose implements specialist.Proposer.
func (p proposer) Propose(ctx context.Context, q specialist.Question) (a specialist.Answer, err error) {
	one := p.call(Label{Kind: "proposer", State: q.State.Name}, q.Key, q.Ask, encoded(&q))
	status, body, err := one.do(ctx)
	switch {
	case err != nil:
	case status != http.StatusAccepted:
		a, err = ReadAnswer(body)
		one.scrubAnswer(&a, q.State)
	case one.ask.CallbackURL == "":
		err = errNoCallback
	default:
		err = specialist.ErrAccepted
	}
	answered := status/100 == 2 && status != http.StatusAccepted
	if err != nil && !errors.Is(err, specialist.ErrAccepted) && (answered || one.lost) && a.Usage == (specialist.Usage{}) {
		err = uncounted{err}
	}
	a.Usage = one.spent(a.Usage)
	return a, one.clean(err)
}

// An uncounted is the error of an answer that does not say what it cost.
type uncounted struct{ error }

// Is makes it a [specialist.ErrUncounted].
func (uncounted) Is(target error) bool { return target == specialist.ErrUncounted }

// Unwrap returns what was wrong with the answer.
func (u uncounted) Unwrap() error { return u.error }

// Arbiter returns an arbiter that asks the specialist's strategyWebhookUrl. The error
// of an answer that cannot be read is as that of [Client.Proposer].
func (c *Client) Arbiter(m *machine.Machine, s *machine.Specialist) (arbiter.Arbiter, error) {
	if s.StrategyWebhookURL == "" {
		return nil, nil
	}
	e, err := c.endpoint(m, s, s.StrategyWebhookURL)
	if err != nil {
		return nil, err
	}
	return arbiter.Func(func(ctx context.Context, r *arbiter.Round) (d arbiter.Decision, err error) {
		one := e.call(Label{Kind: "arbiter", State: r.State.Name}, r.Key, r.Ask, r.AppendContext(nil))
		one.ids = e.client.tapedIDs(r)
		body, err := one.atOnce(ctx)
		if err == nil {
			if d, err = readConsensus(body, r); err != nil && d.Expense == nil {
				err = uncounted{err}
			}
			d.Text = one.scrub(d.Text)
		}
		if !one.sent {
			d.Expense = &arbiter.Expense{Usage: one.spent(specialist.Usage{})}
		}
		return d, one.clean(err)
	}), nil
}

// Context returns a context that asks the specialist's contextWebhookUrl.
func (c *Client) Context(m *machine.Machine, s *machine.Specialist) (specialist.Context, error) {
	if s.ContextWebhookURL == "" {
		return nil, nil
	}
	e, err := c.endpoint(m, s, s.ContextWebhookURL)
	if err != nil {
		return nil, err
	}
	return specialist.ContextFunc(func(ctx context.Context, q specialist.Question) (text string, err error) {
		one := e.call(Label{Kind: "context", State: q.State.Name}, q.Key, q.Ask, encoded(&q))
		body, err := one.atOnce(ctx)
		if err == nil {
			text, err = readContext(body)
			text = one.scrub(text)
		}
		return text, one.clean(err)
	}), nil
}

func encoded(q *specialist.Question) []byte {
	if q.Encoded != nil {
		return q.Encoded
	}
	return q.AppendContext(nil, true)
}
