package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dialai/dialai/specialist"
)

// One ask of a service. Each attempt carries the same id (Idempotency-Key and
// Webhook-Id) and body, so that a service can tell a repetition, and a signature over
// id, time and body. An attempt that may be worth another is marked (again); everything
// else ends the call.
//
// What is known of money depends on two facts that are kept through all attempts:
// whether a request may have gone out (sent), and whether one did that nobody answered
// in full (lost). What was never sent was no call. A broken connection closes the idle
// ones, since each of those could cost an attempt.
//
// Neither errors nor tapes show secrets: of an address no more than its origin, of
// bodies what conceal.go leaves.

// Limits of one call.
const (
	MaxAnswer   = 1 << 20 // bytes of an answer
	maxErrorLen = 2 << 10 // bytes of an error's body that are shown
)

// A call is one ask of an endpoint, sent as often as the retry rule allows.
type call struct {
	*endpoint
	ask   specialist.Ask
	round string
	body  []byte
	label Label
	ids   []string // pairs of an id and what stands for it on a tape
	sent  bool     // a request may have gone out
	lost  bool     // one did, and no answer came to it, or only a part of one

	callback *Concealer // of the callback's token; nil until it is needed
}

// call prepares an ask. The body must not be changed any more, not even after
// the call has returned.
func (e *endpoint) call(l Label, key specialist.RoundKey, ask *specialist.Ask, body []byte) *call {
	l.Specialist, l.Round, l.Attempt = e.specialist, key.Round, key.Attempt
	c := &call{endpoint: e, round: e.client.roundID(key), body: body, label: l}
	if ask != nil {
		c.ask, c.label.Ask = *ask, ask.Nth
	} else {
		c.ask.ID = key.AskID(0)
	}
	return c
}

// do sends the ask and returns its answer, or has a tape do so. The error is not
// clean yet.
func (c *call) do(ctx context.Context) (status int, answer []byte, err error) {
	tape := c.client.config.Tape
	if tape == nil {
		return c.over(ctx)
	}
	names := strings.NewReplacer(c.ids...)
	said := tape.Exchange(ctx, c.label, []byte(c.redact(string(c.body))), func() Taped {
		status, answer, err := c.over(ctx)
		return Taped{status, []byte(names.Replace(c.redact(string(answer)))), c.clean(err), !c.sent, c.lost}
	})
	c.sent, c.lost = !said.Unsent, said.Lost
	back := make([]string, len(c.ids))
	for i := range c.ids {
		back[i] = c.ids[i^1]
	}
	return said.Status, []byte(strings.NewReplacer(back...).Replace(string(said.Body))), said.Err
}

// over sends the ask over the network. If ctx has no end, the call has one.
func (c *call) over(ctx context.Context) (status int, answer []byte, err error) {
	rule := c.client.config.Retry
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rule.Within)
		defer cancel()
	}
	err = rule.do(ctx, c.client.config.Jitter, func() (err error) {
		status, answer, err = c.attempt(ctx)
		return err
	})
	return status, answer, err
}

// atOnce is do for asks that cannot be answered later, so that nobody learns
// where they could be.
func (c *call) atOnce(ctx context.Context) (answer []byte, err error) {
	c.ask.CallbackURL, c.ask.CallbackToken = "", ""
	status, answer, err := c.do(ctx)
	switch {
	case err == nil && status == http.StatusAccepted:
		err = errAcceptedHere
	case err != nil && (status/100 == 2 || c.lost):
		err = uncounted{err}
	}
	return answer, err
}

func (c *call) attempt(ctx context.Context) (status int, answer []byte, err error) {
	resp, err := c.send(c.request(ctx))
	if err != nil {
		return 0, nil, c.transportError(ctx, err)
	}
	defer resp.Body.Close()
	if answer, err = c.read(ctx, resp); err != nil && resp.StatusCode/100 == 2 {
		c.lost = true
	}
	return resp.StatusCode, answer, err
}

// Values of headers that are always alike. Nobody may change them: requests
// share them.
var (
	inJSON = []string{"application/json"}
	agent  = []string{"dialai"}
)

// idempotencyKey is Idempotency-Key, which net/http must not recognize: it would
// repeat the request by itself, on every open connection if those fail.
const idempotencyKey = "idempotency-key"

// request returns the request of one attempt.
func (c *call) request(ctx context.Context) *http.Request {
	req := c.prepared.WithContext(ctx)
	c.fill(req)
	at := c.client.config.Now()
	v := []string{c.ask.ID, c.round, strconv.FormatInt(at.Unix(), 10), Sign(c.key, c.ask.ID, at, c.body), c.ask.CallbackURL, c.ask.CallbackToken}
	req.Header = http.Header{
		"Content-Type":      inJSON,
		"Accept":            inJSON,
		"User-Agent":        agent,
		"Authorization":     c.basic,
		idempotencyKey:      v[0:1:1],
		"Webhook-Id":        v[0:1:1],
		"Dialai-Round-Id":   v[1:2:2],
		"Webhook-Timestamp": v[2:3:3],
		"Webhook-Signature": v[3:4:4],
	}
	if c.ask.CallbackURL != "" {
		req.Header["Dialai-Callback-Url"], req.Header["Dialai-Callback-Token"] = v[4:5:5], v[5:6:6]
	}
	carry(req)
	return req
}

// fill gives a request its body.
func (c *call) fill(req *http.Request) {
	req.Body, _ = c.reader()
	req.GetBody = c.reader // for connections that are closed before it is written
	req.ContentLength = int64(len(c.body))
}

func (c *call) reader() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }

// read takes the answer to one attempt.
func (c *call) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	if resp.StatusCode < 200 {
		// After 101 the body is the bare connection, which no context ends.
		return nil, c.statusError(resp, nil)
	}
	answer, err := readAll(resp)
	switch {
	case resp.StatusCode > 299:
		c.lost = c.lost || err != nil // a refusal that is whole costs nothing, but is this one?
		return nil, c.statusError(resp, answer)
	case err != nil:
		return nil, c.transportError(ctx, err)
	case len(answer) > MaxAnswer:
		return nil, badAnswer("it is larger than %d bytes", MaxAnswer)
	}
	return answer, nil
}

// readAll reads a body up to one byte more than is allowed. It believes the
// length that is announced only as far as that costs little.
func readAll(resp *http.Response) ([]byte, error) {
	size := int64(bytes.MinRead)
	if n := resp.ContentLength; n >= 0 {
		size = min(n+1, 64<<10)
	}
	body := io.LimitReader(resp.Body, MaxAnswer+1)
	answer := make([]byte, 0, size)
	for {
		n, err := body.Read(answer[len(answer):cap(answer)])
		answer = answer[:len(answer)+n]
		switch {
		case err == io.EOF:
			return answer, nil
		case err != nil:
			return answer, err
		case len(answer) == cap(answer):
			answer = slices.Grow(answer, len(answer))
		}
	}
}

// transportError says what went wrong on the way. It shows no more of the URL
// than its origin: the rest may be a secret.
func (c *call) transportError(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*PolicyError](err); ok {
		return refused
	}
	op, ok := errors.AsType[*net.OpError](err)
	if dialled := !ok || op.Op != "dial"; dialled && ctx.Err() == nil {
		// Where one connection is broken others may be, and each would cost an attempt.
		if t, ok := c.client.config.Transport.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
	err = fmt.Errorf("webhook %s://%s: %w", c.prepared.URL.Scheme, c.prepared.URL.Host, err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if untrusted || errors.Is(err, errRedirect) {
		return err
	}
	return again(err, 0)
}

// note notes what became of one request: whether it went out, and whether that was
// answered at all. A transport of our own tells when it writes; of another its error
// must say.
func (c *call) note(told, wrote bool, err error) {
	if went := err == nil || told && wrote || !told && !unsent(err); went {
		c.sent, c.lost = true, c.lost || err != nil
	}
}

// unsent reports whether an error says that nothing of a request has gone out: its
// address may not be called, nobody was there, or not whom it is for.
func unsent(err error) bool {
	if _, refused := errors.AsType[*PolicyError](err); refused {
		return true
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// spent returns what an answer has cost, of which u is known. What was never sent
// was no call.
func (c *call) spent(u specialist.Usage) specialist.Usage {
	if !c.sent && u == (specialist.Usage{}) {
		return u.WithCalls(0, 0)
	}
	return u
}

// A StatusError is an answer with a status that is no success.
type StatusError struct {
	Status int
	Body   string // at most 2 KiB, without the secrets that were sent
}

func (e *StatusError) Error() string { return fmt.Sprintf("Webhook error (%d): %s", e.Status, e.Body) }

func (c *call) statusError(resp *http.Response, body []byte) error {
	text := strings.ToValidUTF8(c.redact(string(body)), "\uFFFD")
	err := &StatusError{resp.StatusCode, cut(text, maxErrorLen)}
	switch resp.StatusCode {
	case 408, 425, 429, 500, 502, 503, 504:
		return again(err, waitAsked(resp.Header.Get("Retry-After"), c.client.config.Now()))
	}
	return err
}

// cut returns at most n bytes of s, and whole characters only.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
