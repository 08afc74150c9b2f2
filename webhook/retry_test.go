package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/webhook"
)

func TestStatuses(t *testing.T) {
	repeated := map[int]bool{408: true, 425: true, 429: true, 500: true, 502: true, 503: true, 504: true}
	for status := 300; status < 600; status++ {
		switch {
		case status > 319 && status < 400, status > 455 && status < 500, status > 515:
			continue // nothing special
		}
		rec := &recorder{statuses: []int{status, status, status, status}, answer: "what for"}
		s := server(t, rec.ServeHTTP)
		_, err := propose(t, client(t), s.URL)
		body := "what for"
		if status == 304 {
			body = "" // has none
		}
		wantError(t, err, fmt.Sprintf("Webhook error (%d): %s", status, body))
		if failed, ok := errors.AsType[*webhook.StatusError](err); !ok || failed.Status != status || failed.Body != body {
			t.Errorf("%d: error %#v", status, err)
		}
		want := 1
		if repeated[status] {
			want = 3
		}
		if len(rec.requests) != want {
			t.Errorf("%d: %d attempts, want %d", status, len(rec.requests), want)
		}
		s.Close()
	}
}

func TestRetryRecovers(t *testing.T) {
	for _, status := range []int{408, 425, 429, 500, 502, 503, 504} {
		for failures := 1; failures <= 2; failures++ {
			rec := &recorder{statuses: []int{status, status}[:failures], answer: good}
			s := server(t, rec.ServeHTTP)
			if a, err := propose(t, client(t), s.URL); err != nil || a.TransitionName != "10" {
				t.Errorf("%d: answer %+v, error %v", status, a, err)
			}
			if len(rec.requests) != failures+1 {
				t.Errorf("%d: %d attempts after %d failures", status, len(rec.requests), failures)
			}
		}
	}
}

func TestBadBodyIsFinal(t *testing.T) {
	for _, body := range []string{"", "null", "{", `{"transitionName":1}`, strings.Repeat(" ", webhook.MaxAnswer+1)} {
		rec := &recorder{answer: body}
		s := server(t, rec.ServeHTTP)
		for _, err := range []error{third(propose(t, client(t), s.URL)), third(decide(t, client(t), s.URL)), third(gather(t, client(t), s.URL))} {
			if _, ok := errors.AsType[*webhook.AnswerError](err); !ok {
				t.Errorf("%.20q: error %v", body, err)
			}
		}
		if len(rec.requests) != 3 {
			t.Errorf("%.20q: %d attempts, want one each", body, len(rec.requests))
		}
	}
}

func third[T any](_ T, err error) error { return err }

// A raw server is what answers with bytes instead of HTTP.
type raw struct {
	net.Listener
	accepted atomic.Int32
}

func rawServer(t *testing.T, handle func(n int, c *net.TCPConn)) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &raw{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(s.accepted.Add(1))
			go func() {
				defer c.Close()
				handle(n, c.(*net.TCPConn))
			}()
		}
	}()
	return s
}

func (s *raw) url() string { return "http://" + s.Addr().String() }

// readRequest reads one request and leaves nothing of it unread, so that closing
// the connection resets nothing.
func readRequest(c net.Conn) bool {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

func TestConnectionErrors(t *testing.T) {
	const truncated = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"transitionName\""
	for name, c := range map[string]struct {
		break_ func(c *net.TCPConn)
		is     error
	}{
		"reset":              {func(c *net.TCPConn) { _ = c.SetLinger(0) }, syscall.ECONNRESET},
		"closed":             {func(*net.TCPConn) {}, io.EOF},
		"closed in headers":  {func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 200 O") }, io.ErrUnexpectedEOF},
		"closed in the body": {func(c *net.TCPConn) { _, _ = io.WriteString(c, truncated) }, io.ErrUnexpectedEOF},
		"closed in a chunk": {func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{")
		}, io.ErrUnexpectedEOF},
		"no HTTP":          {func(c *net.TCPConn) { _, _ = io.WriteString(c, "220 mail.example ESMTP\r\n") }, nil},
		"enormous headers": {func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 128<<10)) }, nil},
		"endless information": {func(c *net.TCPConn) {
			_, _ = io.WriteString(c, strings.Repeat("HTTP/1.1 103 Early\r\nX: yyyyyyyyyyyyyyyy\r\n\r\n", 4000))
		}, nil},
	} {
		s := rawServer(t, func(_ int, conn *net.TCPConn) {
			if readRequest(conn) {
				c.break_(conn)
			}
		})
		_, err := propose(t, client(t), s.url())
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), "webhook "+s.url()+": ") {
			t.Errorf("%s: error %v, want %v", name, err, c.is)
		}
		if n := s.accepted.Load(); n != 3 {
			t.Errorf("%s: %d attempts, want 3", name, n)
		}
	}
}

func TestConnectionErrorsAreRetried(t *testing.T) {
	s := rawServer(t, func(n int, c *net.TCPConn) {
		switch {
		case !readRequest(c):
		case n == 1:
			_ = c.SetLinger(0)
		case n == 2:
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
		default:
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(good), good)
		}
	})
	if a, err := propose(t, client(t), s.url()); err != nil || a.TransitionName != "10" {
		t.Errorf("answer %+v, error %v", a, err)
	}
}

func TestConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := config(t, "127.0.0.1")
	dials := countDials(&c)
	_, err = propose(t, webhook.New(c), "http://"+address)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v", err)
	}
	if *dials != 3 {
		t.Errorf("%d attempts, want 3", *dials)
	}
}

// countDials gives c the usual transport and counts its attempts.
func countDials(c *webhook.Config) *int {
	dials := new(int)
	transport := webhook.NewTransport(c.Policy)
	c.Transport = roundTrip(func(r *http.Request) (*http.Response, error) { *dials++; return transport.RoundTrip(r) })
	return dials
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A service of replies answers in memory, in time that does not pass.
type replies struct {
	status []int
	after  string // Retry-After
	at     []time.Time
	during func(r *http.Request, n int) // of attempt n, from 1
}

func (s *replies) RoundTrip(r *http.Request) (*http.Response, error) {
	s.at = append(s.at, time.Now())
	n := len(s.at)
	if s.during != nil {
		s.during(r, n)
		if err := context.Cause(r.Context()); err != nil {
			return nil, err
		}
	}
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(good)), Request: r}
	if n <= len(s.status) {
		resp.StatusCode, resp.Body = s.status[n-1], io.NopCloser(strings.NewReader("busy"))
		resp.Header.Set("Retry-After", s.after)
	}
	return resp, nil
}

// ask asks the service behind s under a rule, with no deadline but that of ctx.
func ask(t *testing.T, ctx context.Context, s *replies, rule webhook.Retry) error {
	t.Helper()
	m := parse(t, machineText)
	c := config(t, "")
	c.Transport, c.Retry = s, rule
	p, err := webhook.New(c).Proposer(m, hook("https://service.test"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Propose(ctx, question(m))
	return err
}

func (s *replies) waits() (list []time.Duration) {
	for i := 1; i < len(s.at); i++ {
		list = append(list, s.at[i].Sub(s.at[i-1]))
	}
	return list
}

// Every wait is at least 0 and at most min(cap, base x 2^n), and everything in
// between comes up.
func TestFullJitter(t *testing.T) {
	for _, rule := range []webhook.Retry{
		{}, // 500 ms, 1 s
		{Attempts: 8, Within: time.Hour},
		{Attempts: 6, Within: time.Hour, Base: 3 * time.Second, Cap: 3 * time.Second},
		{Attempts: 4, Within: time.Hour, Base: time.Minute, Cap: time.Second},
		{Attempts: 12, Within: 1000 * time.Hour, Base: 7 * time.Millisecond, Cap: 3 * time.Hour},
		{Attempts: 70, Within: math.MaxInt64, Base: 1, Cap: math.MaxInt64 >> 12},
	} {
		synctest.Test(t, func(t *testing.T) { testFullJitter(t, rule) })
	}
}

func testFullJitter(t *testing.T, rule webhook.Retry) {
	full := rule
	if d := webhook.DefaultRetry(); full.Base == 0 {
		full.Attempts, full.Base, full.Cap = max(full.Attempts, d.Attempts), d.Base, d.Cap
	}
	limit := func(n int) time.Duration {
		return time.Duration(min(float64(full.Cap), float64(full.Base)*math.Pow(2, float64(n))))
	}
	const times = 200
	sums := make([]float64, full.Attempts-1)
	for range times {
		s := &replies{status: make([]int, full.Attempts)}
		for i := range s.status {
			s.status[i] = 503
		}
		_ = ask(t, t.Context(), s, rule)
		waits := s.waits()
		if len(waits) != full.Attempts-1 {
			t.Fatalf("%+v: %d attempts", rule, len(s.at))
		}
		for n, d := range waits {
			if d < 0 || d > limit(n) {
				t.Fatalf("%+v: wait %d is %s, want 0 to %s", rule, n, d, limit(n))
			}
			sums[n] += float64(d) / float64(limit(n))
		}
	}
	for n, sum := range sums {
		// The mean of 200 uniform numbers is this far from 1/2 once in 10^12.
		if mean := sum / times; limit(n) > 1000 && math.Abs(mean-0.5) > 0.15 {
			t.Errorf("%+v: wait %d is %.2f of its limit on average, want 0.5", rule, n, mean)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble's clock
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "1": time.Second, "25": 25 * time.Second, "0007": 7 * time.Second,
		start.Add(9 * time.Second).Format(http.TimeFormat): 9 * time.Second,
		start.Add(9 * time.Second).Format(time.ANSIC):      9 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &replies{status: []int{429}, after: header}
			if err := ask(t, t.Context(), s, webhook.Retry{}); err != nil {
				t.Fatalf("Retry-After %q: %v", header, err)
			}
			if got := s.waits()[0]; got != want {
				t.Errorf("Retry-After %q: waited %s, want %s", header, got, want)
			}
		})
	}
}

func TestRetryAfterIsCapped(t *testing.T) {
	for _, header := range []string{"31", "3600", "99999999999", strconv.FormatUint(math.MaxUint64, 10), "9" + strings.Repeat("0", 40), "Fri, 31 Dec 9999 23:59:59 GMT"} {
		synctest.Test(t, func(t *testing.T) {
			s := &replies{status: []int{503}, after: header}
			if err := ask(t, t.Context(), s, webhook.Retry{}); err != nil {
				t.Fatalf("Retry-After %q: %v", header, err)
			}
			if got := s.waits()[0]; got != 30*time.Second {
				t.Errorf("Retry-After %q: waited %s, want 30s", header, got)
			}
		})
	}
}

// What cannot be read, and the past, leave the wait to the rule.
func TestRetryAfterIsIgnored(t *testing.T) {
	for _, header := range []string{"", "0", "-5", "soon", "1.5", "1e3", "Fri, 31 Dec 1999 23:59:59 GMT", "7 s", strings.Repeat("x", 1000)} {
		synctest.Test(t, func(t *testing.T) {
			s := &replies{status: []int{503, 503}, after: header}
			if err := ask(t, t.Context(), s, webhook.Retry{Base: 2, Cap: 2}); err != nil {
				t.Fatalf("Retry-After %q: %v", header, err)
			}
			for _, got := range s.waits() {
				if got > 2 {
					t.Errorf("Retry-After %q: waited %s", header, got)
				}
			}
		})
	}
}

// The clock that dates are compared with is the client's.
func TestRetryAfterUsesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
		s := &replies{status: []int{503}, after: now.Add(4 * time.Second).Format(http.TimeFormat)}
		m := parse(t, machineText)
		c := config(t, "")
		c.Transport, c.Now, c.Retry = s, func() time.Time { return now }, webhook.Retry{}
		p, err := webhook.New(c).Proposer(m, hook("https://service.test"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.Propose(t.Context(), question(m)); err != nil || s.waits()[0] != 4*time.Second {
			t.Errorf("waited %v, error %v", s.waits(), err)
		}
	})
}

// After 55 s no attempt is begun, and what was last said counts.
func TestRetryWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &replies{status: []int{503, 503}, after: "30"}
		err := ask(t, t.Context(), s, webhook.Retry{})
		wantError(t, err, "Webhook error (503): busy")
		if len(s.at) != 2 {
			t.Errorf("%d attempts, want 2: the third would begin after 60 s", len(s.at))
		}
	})
}

// A call without a deadline gets one, however long the service takes.
func TestCallEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &replies{during: func(r *http.Request, _ int) { <-r.Context().Done() }}
		start := time.Now()
		err := ask(t, context.Background(), s, webhook.Retry{})
		if took := time.Since(start); took != 55*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// A deadline of the caller's is kept, also one beyond the retries' time.
func TestCallKeepsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		s := &replies{during: func(r *http.Request, _ int) { <-r.Context().Done() }}
		start := time.Now()
		err := ask(t, ctx, s, webhook.Retry{})
		if took := time.Since(start); took != 10*time.Minute || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// Nobody waits for what there is no time for: the last failure is known already.
func TestNoWaitPastTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s := &replies{status: []int{503}, after: "20"}
		start := time.Now()
		err := ask(t, ctx, s, webhook.Retry{})
		wantError(t, err, "Webhook error (503): busy")
		if took := time.Since(start); took != 0 || len(s.at) != 1 {
			t.Errorf("%d attempts in %s", len(s.at), took)
		}
	})
}

// If ctx ends while the client waits, the failure before it is told, and both
// can be asked for.
func TestCancelledBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the round is decided")
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		s := &replies{status: []int{503}, after: "20"}
		start := time.Now()
		err := ask(t, ctx, s, webhook.Retry{})
		wantError(t, err, "Webhook error (503): busy (context canceled)")
		if _, ok := errors.AsType[*webhook.StatusError](err); !ok || !errors.Is(err, context.Canceled) {
			t.Errorf("error %#v", err)
		}
		if took := time.Since(start); took != 5*time.Second || len(s.at) != 1 {
			t.Errorf("%d attempts in %s", len(s.at), took)
		}
	})
}

// An attempt that ctx cuts short does not hide the failure before it.
func TestDeadlineDuringLaterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s := &replies{status: []int{502}, during: func(r *http.Request, n int) {
			if n == 2 {
				<-r.Context().Done()
			}
		}}
		err := ask(t, ctx, s, webhook.Retry{})
		wantError(t, err, "Webhook error (502): busy (context deadline exceeded)")
		if !errors.Is(err, context.DeadlineExceeded) || len(s.at) != 2 {
			t.Errorf("%d attempts, error %#v", len(s.at), err)
		}
	})
}

// Whatever cause ctx was cancelled with, its end is recognized, and nothing is
// asked once more.
func TestCancelledDuringAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &replies{status: []int{503}, during: func(*http.Request, int) { cancel(errors.New("enough")) }}
		err := ask(t, ctx, s, webhook.Retry{})
		wantError(t, err, "webhook https://service.test: enough (context canceled)")
		if !errors.Is(err, context.Canceled) || len(s.at) != 1 {
			t.Errorf("%d attempts, error %#v", len(s.at), err)
		}
	})
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	calls := 0
	s := server(t, func(http.ResponseWriter, *http.Request) { calls++ })
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Propose(ctx, question(m)); !errors.Is(err, context.Canceled) || calls != 0 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}
