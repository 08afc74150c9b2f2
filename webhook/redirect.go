package webhook

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// maxRedirects is how often a webhook may send a call on.
const maxRedirects = 3

// errRedirect refuses a redirect.
var errRedirect = errors.New("redirects are followed within the same origin only, with 307 or 308, at most 3 times")

// send sends a request and follows redirects, each of which gets the whole
// request again. What is no redirect to follow is returned as it is.
func (c *call) send(req *http.Request) (*http.Response, error) {
	for hops := 0; ; hops++ {
		var told, wrote atomic.Bool
		traced := req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GetConn: func(string) { told.Store(true) }, WroteHeaders: func() { wrote.Store(true) },
		}))
		resp, err := c.client.config.Transport.RoundTrip(traced)
		c.note(told.Load(), wrote.Load(), err)
		if err != nil || resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return resp, err
		}
		location := resp.Header.Get("Location")
		if location == "" {
			return resp, nil
		}
		// Reading to the end lets the connection be used again.
		_, _ = io.CopyN(io.Discard, resp.Body, maxErrorLen)
		resp.Body.Close()
		to, err := req.URL.Parse(location)
		if err != nil || hops == maxRedirects || !sameOrigin(to, c.prepared.URL) {
			return nil, errRedirect
		}
		if err := c.client.config.Policy.CheckURL(to); err != nil {
			return nil, err
		}
		headers := req.Header
		req = c.prepared.WithContext(req.Context())
		req.URL, req.Host, req.Header = to, to.Host, headers
		c.fill(req)
	}
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && portOf(a) == portOf(b)
}
