package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// What callers in other packages share with webhooks: the transport with its policy, the
// retry rule, and how secrets are kept out of texts. A caller makes an Outbound under a
// policy, a Target for each address, which is checked then, and posts; whether a failure is
// worth another attempt is marked on the error, and Retry.Do goes by that. No request
// follows a redirect, and no error names more of an address than its origin.

// Allowing returns a copy of p that also allows the host and port of u, whatever
// it resolves to and whether or not it uses http. It is for an address that the
// operator has chosen, never for one out of a machine file.
func (p Policy) Allowing(u *url.URL) Policy {
	hosts := map[string]bool{joinHost(u.Hostname(), portOf(u)): true}
	maps.Copy(hosts, p.hosts)
	return Policy{hosts: hosts, prefixes: p.prefixes}
}

// An Outbound posts requests for other packages, over a transport under one
// policy. It follows no redirect. It may be used concurrently.
type Outbound struct {
	policy    Policy
	transport *http.Transport
	now       func() time.Time
}

// NewOutbound returns an Outbound. now is the clock of dates in Retry-After; nil
// means time.Now.
func NewOutbound(p Policy, now func() time.Time) *Outbound {
	if now == nil {
		now = time.Now
	}
	return &Outbound{policy: p, transport: NewTransport(p), now: now}
}

// OperatorOutbound returns an Outbound for addresses that the operator has chosen:
// they may be private, and nothing else may. An address that is no URL is left out.
// certificates says how a service is known and who we are; nil means as anybody
// does. It must not be changed any more.
func OperatorOutbound(certificates *tls.Config, addresses ...string) *Outbound {
	var p Policy
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.Host != "" {
			p = p.Allowing(u)
		}
	}
	o := NewOutbound(p, nil)
	o.transport.TLSClientConfig = certificates
	return o
}

// A Target is one address that an Outbound posts to. It may be used
// concurrently.
type Target struct {
	out      *Outbound
	prepared *http.Request // without headers and a body
}

// Target returns the target at an address, or a *PolicyError if the policy
// refuses that.
func (o *Outbound) Target(address string) (*Target, error) {
	req, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		return nil, errors.New("the address is not a URL") // which may hold a secret
	}
	if err := o.policy.CheckURL(req.URL); err != nil {
		return nil, err
	}
	return &Target{o, req}, nil
}

type traceparentKey struct{}

// WithTraceparent returns a context whose requests carry the header traceparent of W3C Trace
// Context, which says to which trace they belong.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return context.WithValue(ctx, traceparentKey{}, []string{traceparent})
}

// carry adds the headers that a context brings along.
func carry(req *http.Request) {
	if value, ok := req.Context().Value(traceparentKey{}).([]string); ok {
		req.Header["Traceparent"] = value
	}
}

// A Header is one header of a request. Name is in its canonical form, such as
// X-Api-Key.
type Header struct{ Name, Value string }

// A Reply is what came back, whatever its status.
type Reply struct {
	Status     int
	Body       []byte
	RetryAfter time.Duration // for which the service wants to be left alone; 0 if it did not say
	Sent       bool          // the request went out, whatever became of it
}

// ErrTooLarge is returned for an answer of more than [MaxAnswer] bytes.
var ErrTooLarge = fmt.Errorf("the answer is larger than %d bytes", MaxAnswer)

// Post sends body once, with the headers given, as JSON unless they say otherwise. A
// status is never an error. Failures that another attempt may put right are marked as [Again] does; with
// the error of an answer that broke off, the Reply has its status. Errors name no
// more of the address than its origin. The body must not be changed any more, not
// even after Post has returned.
func (t *Target) Post(ctx context.Context, headers []Header, body []byte) (Reply, error) {
	var sent atomic.Bool
	req := t.prepared.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}))
	req.Header = make(http.Header, len(headers)+3)
	req.Header["Content-Type"], req.Header["Accept"], req.Header["User-Agent"] = inJSON, inJSON, agent
	values := make([]string, len(headers))
	for i, h := range headers {
		values[i] = h.Value
		req.Header[h.Name] = values[i : i+1 : i+1]
	}
	carry(req)
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(body))
	resp, err := t.out.transport.RoundTrip(req)
	if err != nil {
		return Reply{Sent: sent.Load()}, t.failure(ctx, err)
	}
	defer resp.Body.Close()
	reply := Reply{Sent: true, Status: resp.StatusCode, RetryAfter: waitAsked(resp.Header.Get("Retry-After"), t.out.now())}
	if resp.StatusCode < 200 {
		return reply, nil // after 101 the body is the bare connection, which no context ends
	}
	if reply.Body, err = readAll(resp); err != nil {
		return reply, t.failure(ctx, err)
	}
	if len(reply.Body) > MaxAnswer {
		reply.Body = reply.Body[:MaxAnswer]
		return reply, ErrTooLarge
	}
	return reply, nil
}

// failure says what went wrong on the way.
func (t *Target) failure(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*PolicyError](err); ok {
		return refused
	}
	if ctx.Err() == nil {
		t.out.transport.CloseIdleConnections() // where one is broken others may be
	}
	err = fmt.Errorf("%s://%s: %w", t.prepared.URL.Scheme, t.prepared.URL.Host, err)
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return err
	}
	return again(err, 0)
}

// ClientOf returns a client for a library that wants to make requests itself: the body of
// each is given to post, which is to send it through a [Target], whatever address and
// headers the library has put on it. What post does not fail is answered 200 and nothing.
func ClientOf(post func(ctx context.Context, body []byte) error) *http.Client {
	return over(roundTripper(post))
}

// over returns a client that follows no redirect.
func over(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type roundTripper func(ctx context.Context, body []byte) error

// RoundTrip implements http.RoundTripper.
func (post roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	defer req.Body.Close()
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = post(req.Context(), body)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// Again marks the failure of an attempt as one that another attempt may put right.
// after is for how long the service wants to be left alone; 0 says nothing.
func Again(err error, after time.Duration) error { return again(err, after) }

// Final returns err without the mark that [Again] made: no other attempt is to be
// made.
func Final(err error) error {
	if mark, marked := errors.AsType[*againError](err); marked {
		return mark.error
	}
	return err
}

// Do calls f until it succeeds, fails with an error that is not marked by
// [Again], or the rule or ctx says no more. Fields of r that are not positive are
// those of [DefaultRetry]; a nil jitter waits at random. The error is that of the
// last attempt that ctx did not cut short.
func (r Retry) Do(ctx context.Context, jitter func(ceiling time.Duration) time.Duration, f func() error) error {
	if jitter == nil {
		jitter = anyWait
	}
	return r.withDefaults().do(ctx, jitter, f)
}

// Clip returns at most n bytes of s, and whole characters only.
func Clip(s string, n int) string { return cut(s, n) }

// Client returns a client for libraries that make their own requests, under the policy: it
// follows no redirect, takes ten seconds, and reads at most MaxAnswer bytes of an answer.
func (o *Outbound) Client() *http.Client {
	c := over(bounded{o})
	c.Timeout = 10 * time.Second
	return c
}

// bounded sends requests under a policy, and bounds what is read of answers.
type bounded struct{ out *Outbound }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.out.policy.CheckURL(r.URL); err != nil {
		return nil, err
	}
	answer, err := b.out.transport.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, MaxAnswer)
	}
	return answer, err
}
