package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dialai/dialai/webhook"
)

// padded returns an answer of exactly n bytes.
func padded(n int) string {
	const head, tail = `{"transitionName":"10","consensusReached":false,"context":"c","padding":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func TestAnswerSize(t *testing.T) {
	full := answering(t, 200, padded(webhook.MaxAnswer))
	if a, err := propose(t, client(t), full.URL); err != nil || a.TransitionName != "10" {
		t.Errorf("1 MiB: %v", err)
	}
	if _, err := decide(t, client(t), full.URL); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	if text, err := gather(t, client(t), full.URL); err != nil || text != "c" {
		t.Errorf("1 MiB: %v", err)
	}
	const refusal = "webhook answer: it is larger than 1048576 bytes"
	over := answering(t, 200, padded(webhook.MaxAnswer+1))
	wantError(t, third(propose(t, client(t), over.URL)), refusal)
	wantError(t, third(decide(t, client(t), over.URL)), refusal)
	wantError(t, third(gather(t, client(t), over.URL)), refusal)
}

// An answer without end, and one that only announces to be huge, are given up
// after 1 MiB. So is the body of an error.
func TestEndlessAnswer(t *testing.T) {
	var sent atomic.Int64
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/announced":
			w.Header().Set("Content-Length", "1099511627776")
		case "/error":
			w.WriteHeader(http.StatusTeapot)
		}
		chunk := []byte(strings.Repeat("x", 64<<10))
		for {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, path := range []string{"/", "/announced"} {
		wantError(t, third(propose(t, client(t), s.URL+path)), "webhook answer: it is larger than 1048576 bytes")
	}
	wantError(t, third(propose(t, client(t), s.URL+"/error")), "Webhook error (418): "+strings.Repeat("x", 2<<10))
	runtime.ReadMemStats(&after)
	s.Close() // waits for the handlers, so that sent is final
	if n := sent.Load(); n > 3*32<<20 {
		t.Errorf("%d bytes were taken of three answers", n)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// A server that hangs at any point is left when the ask's time is over.
func TestHangingServer(t *testing.T) {
	for name, before := range map[string]string{
		"before it answers":    "",
		"in the status line":   "HTTP/1.1 2",
		"in the headers":       "HTTP/1.1 200 OK\r\nX: y",
		"after the headers":    "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
		"in the body":          "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + good,
		"in a chunk":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + good,
		"after promising more": "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			err := askHanging(t, ctx, config(t, "127.0.0.1"), before)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What was said before the server hung is told.
func TestHangingError(t *testing.T) {
	for before, want := range map[string]string{
		"HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nno such": "Webhook error (404): no such",
		"HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\nbusy":         "Webhook error (503): busy",
	} {
		ctx, cancel := context.WithCancel(bounded(t))
		c := config(t, "127.0.0.1")
		transport := webhook.NewTransport(c.Policy)
		c.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			if err == nil {
				resp.Body = &impatient{resp.Body, cancel}
			}
			return resp, err
		})
		wantError(t, askHanging(t, ctx, c, before), want+" (context canceled)")
	}
}

// An impatient body ends a context as soon as something was read.
type impatient struct {
	io.ReadCloser
	end func()
}

func (b *impatient) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.end()
	}
	return n, err
}

// After 101 a connection is no longer HTTP, and no context ends reading it.
func TestSwitchingProtocols(t *testing.T) {
	for _, before := range []string{"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"} {
		wantError(t, askHanging(t, bounded(t), config(t, "127.0.0.1"), before), "Webhook error (101): ")
	}
}

// askHanging asks a server that sends something and then hangs.
func askHanging(t *testing.T, ctx context.Context, c webhook.Config, before string) error {
	t.Helper()
	hung := make(chan struct{})
	defer close(hung)
	s := rawServer(t, func(_ int, conn *net.TCPConn) {
		if readRequest(conn) {
			_, _ = io.WriteString(conn, before)
			<-hung
		}
	})
	m := parse(t, machineText)
	p, err := webhook.New(c).Proposer(m, hook(s.url()), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := p.Propose(ctx, question(m)); done <- err }()
	select {
	case err = <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the call outlives its time")
		return nil
	}
}

// A server that sends a little now and then gets no more time for it.
func TestSlowDrip(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Propose(ctx, question(m)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// A server that does not take the request is left too.
func TestServerThatDoesNotRead(t *testing.T) {
	hung := make(chan struct{})
	s := rawServer(t, func(_ int, conn *net.TCPConn) { <-hung })
	defer close(hung)
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.url()), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := question(m)
	q.Encoded = make([]byte, 32<<20) // more than any buffer on the way
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Propose(ctx, q); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestErrorBody(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"empty":           {"", ""},
		"2 KiB":           {strings.Repeat("x", 2048), strings.Repeat("x", 2048)},
		"2 KiB and 1":     {strings.Repeat("x", 2049), strings.Repeat("x", 2048)},
		"rune at the cut": {strings.Repeat("x", 2047) + "ä", strings.Repeat("x", 2047)},
		"rune before it":  {strings.Repeat("x", 2046) + "äx", strings.Repeat("x", 2046) + "ä"},
		"runes":           {strings.Repeat("😀", 1000), strings.Repeat("😀", 512)},
		"3-byte runes":    {strings.Repeat("€", 1000), strings.Repeat("€", 682)},
		"invalid":         {"a\xff\xfeb\xc3", "a\uFFFDb\uFFFD"},
		"invalid at it":   {strings.Repeat("x", 2046) + "\xff\xff", strings.Repeat("x", 2046)},
		"all invalid":     {strings.Repeat("\xffa", 4096), strings.Repeat("\uFFFDa", 512)},
		"JSON":            {`{"error":"no"}`, `{"error":"no"}`},
	} {
		s := answering(t, 422, c.body)
		for _, err := range []error{third(propose(t, client(t), s.URL)), third(decide(t, client(t), s.URL)), third(gather(t, client(t), s.URL))} {
			wantError(t, err, "Webhook error (422): "+c.want)
			if err != nil && (!utf8.ValidString(err.Error()) || len(err.Error()) > 2048+len("Webhook error (422): ")) {
				t.Errorf("%s: %d bytes", name, len(err.Error()))
			}
		}
	}
}

// What a service can write into any other error is bounded too.
func TestErrorTextIsBounded(t *testing.T) {
	long := strings.Repeat("ö", 200_000)
	for _, body := range []string{
		`{"transitionName":"10","` + long + `":1,"` + long + `":2}`,
		`{"consensusReached":true,"winningProposalId":"` + long + `"}`,
	} {
		s := answering(t, 200, body)
		for _, err := range []error{third(propose(t, client(t), s.URL)), third(decide(t, client(t), s.URL))} {
			if err == nil || len(err.Error()) > 4096 || !utf8.ValidString(err.Error()) {
				t.Errorf("error of %d bytes: %.60v", len(fmt.Sprint(err)), err)
			}
		}
	}
}

// connections counts those that a server accepts.
func connections(t *testing.T, handle http.HandlerFunc) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var accepted atomic.Int32
	s := httptest.NewUnstartedServer(handle)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, &accepted
}

// few is how many connections may be lost on a busy machine: the transport gives
// one up if it has not seen the end of its own writing for 50 ms.
const few = 5

func TestConnectionsAreReused(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"answers":           {200, good},
		"no answers":        {204, ""},
		"promises":          {202, "later"},
		"bad answers":       {200, "[]"},
		"largest answers":   {200, padded(webhook.MaxAnswer)},
		"errors":            {404, "no such thing"},
		"large errors":      {400, strings.Repeat("x", 500_000)},
		"errors, repeated":  {503, "busy"},
		"redirects refused": {302, "over there"},
	} {
		s, accepted := connections(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Location", "/other")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		hooks := client(t)
		for range 50 {
			_, _ = propose(t, hooks, s.URL)
		}
		if n := accepted.Load(); n > few {
			t.Errorf("%s: %d connections for calls one after the other", name, n)
		}
	}
}

// What a round opened stays open for the next one.
func TestParallelConnectionsAreReused(t *testing.T) {
	const n = 50
	var here sync.WaitGroup // until all are asked at once
	s, accepted := connections(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		here.Done()
		here.Wait()
		_, _ = io.WriteString(w, good)
	})
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	for try := range 3 {
		here.Add(n)
		var asks sync.WaitGroup
		for range n {
			asks.Go(func() {
				if _, err := p.Propose(bounded(t), question(m)); err != nil {
					t.Error(err)
				}
			})
		}
		asks.Wait()
		if got := accepted.Load(); got < n || got > n+few {
			t.Fatalf("%d connections after %d times %d calls at once", got, try+1, n)
		}
	}
}
