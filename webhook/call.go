package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dialai/dialai/specialist"
)

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
}

// call prepares an ask. The body must not be changed any more, not even after
// the call has returned.
func (e *endpoint) call(key specialist.RoundKey, ask *specialist.Ask, body []byte) *call {
	c := &call{endpoint: e, round: key.ID(), body: body}
	if ask != nil {
		c.ask = *ask
	} else {
		c.ask.ID = key.AskID(0)
	}
	return c
}

// do sends the ask and has its answer read. If ctx has no end, the call has one.
func (c *call) do(ctx context.Context, read func(status int, body []byte) error) error {
	rule := c.client.config.Retry
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rule.Within)
		defer cancel()
	}
	var status int
	var answer []byte
	err := rule.do(ctx, func() (err error) {
		status, answer, err = c.attempt(ctx)
		return err
	})
	if err == nil {
		err = read(status, answer)
	}
	return c.clean(err)
}

// atOnce is do for asks that cannot be answered later, so that nobody learns
// where they could be.
func (c *call) atOnce(ctx context.Context, read func(body []byte) error) error {
	c.ask.CallbackURL, c.ask.CallbackToken = "", ""
	return c.do(ctx, func(status int, body []byte) error {
		if status == http.StatusAccepted {
			return errAcceptedHere
		}
		return read(body)
	})
}

func (c *call) attempt(ctx context.Context) (status int, answer []byte, err error) {
	req, err := c.request(ctx)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.client.http.Do(req)
	if err != nil {
		return 0, nil, c.transportError(err)
	}
	defer resp.Body.Close()
	answer, err = c.read(resp)
	return resp.StatusCode, answer, err
}

func (c *call) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	at := c.client.config.Now()
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	h.Set("User-Agent", "dialai")
	h.Set("Authorization", "Basic "+c.pair)
	h.Set("Idempotency-Key", c.ask.ID)
	h.Set("Dialai-Round-Id", c.round)
	h.Set("Webhook-Id", c.ask.ID)
	h.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("Webhook-Signature", Sign(c.key, c.ask.ID, at, c.body))
	if c.ask.CallbackURL != "" {
		h.Set("Dialai-Callback-Url", c.ask.CallbackURL)
		h.Set("Dialai-Callback-Token", c.ask.CallbackToken)
	}
	return req, nil
}

// read takes the answer to one attempt.
func (c *call) read(resp *http.Response) ([]byte, error) {
	if resp.StatusCode < 200 {
		// After 101 the body is the bare connection, which no context ends.
		return nil, c.statusError(resp, nil)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	switch {
	case resp.StatusCode > 299:
		return nil, c.statusError(resp, answer)
	case err != nil:
		return nil, c.transportError(err)
	case len(answer) > MaxAnswer:
		return nil, badAnswer("it is larger than %d bytes", MaxAnswer)
	}
	return answer, nil
}

// transportError says what went wrong on the way. It shows no more of the URL
// than its origin: the rest may be a secret.
func (c *call) transportError(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if refused, ok := errors.AsType[*PolicyError](err); ok {
		return refused
	}
	err = fmt.Errorf("webhook %s://%s: %w", c.url.Scheme, c.url.Host, err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if untrusted || errors.Is(err, errRedirect) {
		return err
	}
	return again(err, 0)
}

// A StatusError is an answer with a status that is no success.
type StatusError struct {
	Status int
	Body   string // at most 2 KiB, without the secrets that were sent
}

func (e *StatusError) Error() string { return fmt.Sprintf("Webhook error (%d): %s", e.Status, e.Body) }

func (c *call) statusError(resp *http.Response, body []byte) error {
	text := strings.ToValidUTF8(c.redactor().Replace(string(body)), "\uFFFD")
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
