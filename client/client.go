// Package client calls a dialai server: a method for each of its operations, iterators over
// its lists, and the events of a session as they come.
//
// A call is made again where that can do no harm, because it changes nothing or has an
// Idempotency-Key, and may help: the server was not reached, was busy, or was going away.
// What a server refuses is a [*Problem], of which errors.Is tells the kind.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Config says which server is called, and as whom.
type Config struct {
	// BaseURL is where the server is: http://HOST:PORT, https://HOST, or unix:PATH for a
	// socket. What stands behind the host comes before /v1.
	BaseURL string
	// Key is sent to that server and to nobody else; "" sends none.
	Key string
	// Tenant is whose sessions are meant; "" means those of the key's.
	Tenant string
	// HTTP makes the calls; nil means one of the client's own. It is copied, and redirects
	// to other places are refused whatever it says. Its Timeout would end streams, too. Of a
	// socket it may have no Transport.
	HTTP *http.Client
	// Sleep waits between attempts, for less time if ctx ends; nil means to wait. The error
	// is that of ctx.
	Sleep func(ctx context.Context, d time.Duration) error
}

// A Client calls a server. It may be used concurrently.
type Client struct {
	base   string // without a slash at the end
	config Config
	http   *http.Client
	silent time.Duration // after so long without a byte a stream is taken for dead
}

const (
	attempts   = 4 // of a call, in all
	firstPause = 200 * time.Millisecond
	longPause  = 10 * time.Second // no pause is longer, unless the server asks for it
	maxPause   = time.Minute
	maxAnswer  = 64 << 20 // bytes
)

// New returns a Client. The error says what is wrong with c; nobody is called.
func New(c Config) (*Client, error) {
	own := http.Client{}
	if c.HTTP != nil {
		own = *c.HTTP
	}
	own.CheckRedirect = sameOrigin
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	client := &Client{config: c, http: &own, silent: time.Minute}
	if path, ok := strings.CutPrefix(c.BaseURL, "unix:"); ok {
		if path == "" || own.Transport != nil {
			return nil, fmt.Errorf("base URL %q: a socket needs a path, and no Transport", c.BaseURL)
		}
		own.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}}
		client.base = "http://localhost"
		return client, nil
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("base URL %q is not http://HOST:PORT, https://HOST or unix:PATH", hidden(c.BaseURL))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("base URL %q has more than a host and a path: the key does not belong there", hidden(c.BaseURL))
	}
	client.base = strings.TrimRight(c.BaseURL, "/")
	return client, nil
}

// hidden leaves out of an address what may be a password.
func hidden(address string) string {
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return "…" + address[i:]
	}
	address, _, _ = strings.Cut(address, "?")
	return address
}

// errElsewhere is why a redirect is not followed.
var errElsewhere = errors.New("the server points to another place, where the key does not belong")

func sameOrigin(to *http.Request, via []*http.Request) error {
	if from := via[0].URL; to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
		return errElsewhere
	}
	if len(via) >= 10 {
		return errors.New("the server points from one place to the next without end")
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// A Write is what may be said of a call that changes something, beside what it changes. The
// zero Write says nothing.
type Write struct {
	// Wait is how long the server may take until the session has settled, at most a minute
	// or what the server allows; 0 answers at once.
	Wait time.Duration
	// IfSequence is the sequence of the session as it was seen: if it has another one by
	// now, nothing is changed, and the error is ErrStale. 0 asks for nothing.
	IfSequence int64
	// Key is the Idempotency-Key: of two calls with the same key and content the second
	// gets the answer of the first. "" makes one for this call and its attempts.
	Key string
}

// A call is a request that can be made again.
type call struct {
	method, path string
	query        url.Values
	body         any // nil for none
	write        Write
	accept       string
	token        string // in place of the key, of what may be sent twice
	header       http.Header
}

// post is a call that changes something.
func post(path string, body any, w Write) call {
	c := call{method: http.MethodPost, path: path, body: body, write: w, query: url.Values{}}
	if c.write.Key == "" {
		c.write.Key = newKey()
	}
	if w.Wait > 0 {
		c.query.Set("wait", w.Wait.String())
	}
	return c
}

// get is a call that changes nothing.
func get(path string, query url.Values) call {
	return call{method: http.MethodGet, path: path, query: query}
}

// newKey returns an Idempotency-Key that no other call has.
func newKey() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// do makes a call, as often as it takes and may, and returns what was answered.
func do[T any](ctx context.Context, c *Client, what call) (answer T, err error) {
	body, err := what.encode()
	if err != nil {
		return answer, err
	}
	for attempt := 1; ; attempt++ {
		again, err := c.once(ctx, what, body, &answer)
		if err == nil || again < 0 || attempt == attempts || ctx.Err() != nil {
			return answer, err
		}
		if again == 0 {
			again = pause(attempt)
		}
		if c.config.Sleep(ctx, again) != nil {
			return answer, err
		}
	}
}

// pause returns how long to wait after so many attempts: twice as long after each, and
// never the same for two clients.
func pause(attempt int) time.Duration {
	d := min(firstPause<<min(attempt-1, 10), longPause)
	jitter, err := rand.Int(rand.Reader, big.NewInt(int64(d)/2))
	if err != nil {
		return d
	}
	return d*3/4 + time.Duration(jitter.Int64())
}

func (w *call) encode() ([]byte, error) {
	if w.body == nil {
		return nil, nil
	}
	return json.Marshal(w.body)
}

// never says that a call is not to be made again.
const never time.Duration = -1

// once makes a call once, and reads what is answered into to. again says after how long the
// call may be made once more: never, or 0 for as long as the client thinks fit.
func (c *Client) once(ctx context.Context, what call, body []byte, to any) (again time.Duration, err error) {
	res, err := c.send(ctx, what, body)
	if err != nil {
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted || errors.Is(err, errElsewhere) || !what.repeatable() {
			return never, err
		}
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil && what.repeatable():
		return 0, fmt.Errorf("%s %s: the answer was cut off: %w", what.method, what.path, err)
	case err != nil:
		return never, fmt.Errorf("%s %s: the answer was cut off: %w", what.method, what.path, err)
	case len(text) > maxAnswer:
		return never, fmt.Errorf("%s %s: the answer has more than %d bytes", what.method, what.path, maxAnswer)
	case res.StatusCode >= http.StatusBadRequest, strings.HasPrefix(res.Header.Get("Content-Type"), problemType): // 202 says what is still to come
		p := problemOf(res, text)
		if what.repeatable() && p.passes() {
			return retryAfter(res), p
		}
		return never, p
	}
	if raw, ok := to.(*[]byte); ok { // what is no JSON
		*raw = text
		return never, nil
	}
	if err := json.Unmarshal(text, to); err != nil {
		return never, fmt.Errorf("%s %s: %w", what.method, what.path, errors.Join(errNotJSON, err))
	}
	return never, nil
}

var errNotJSON = errors.New("the answer is not one of a dialai server")

// repeatable reports whether a call that was made may be made again.
func (w *call) repeatable() bool {
	return w.method == http.MethodGet || w.write.Key != "" || w.token != ""
}

// send makes the request of a call, and returns what came back.
func (c *Client) send(ctx context.Context, what call, body []byte) (*http.Response, error) {
	address := c.base + what.path
	if len(what.query) > 0 {
		address += "?" + what.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, what.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	h := r.Header
	for name, values := range what.header {
		h[name] = values
	}
	h.Set("Accept", cmp.Or(what.accept, "application/json"))
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	if key := cmp.Or(what.token, c.config.Key); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	if c.config.Tenant != "" {
		h.Set("Dialai-Tenant", c.config.Tenant)
	}
	if what.write.Key != "" {
		h.Set("Idempotency-Key", what.write.Key)
	}
	if what.write.IfSequence > 0 {
		h.Set("If-Match", strconv.Quote(strconv.FormatInt(what.write.IfSequence, 10)))
	}
	return c.http.Do(r)
}

// retryAfter returns how long a server asks to be left alone; 0 if it does not say.
func retryAfter(res *http.Response) time.Duration {
	n, err := strconv.ParseInt(res.Header.Get("Retry-After"), 10, 32)
	if err != nil || n < 1 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxPause)
}
