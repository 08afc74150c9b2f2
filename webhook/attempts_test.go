package webhook_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dialai/dialai/webhook"
)

// A service that goes wrong while many connections to it are open gets three
// requests of an ask, as always, and not one more on each of them.
func TestAttemptsOnOpenConnections(t *testing.T) {
	for name, end := range map[string]func(c *net.TCPConn){
		"closed": func(*net.TCPConn) {},
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0) },
	} {
		const open = 20
		var here sync.WaitGroup
		here.Add(open)
		var broken atomic.Bool
		var requests atomic.Int32
		s := rawServer(t, func(_ int, c *net.TCPConn) {
			for readRequest(c) {
				if broken.Load() {
					requests.Add(1)
					end(c)
					return
				}
				here.Done()
				here.Wait()
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(good), good)
			}
		})
		hooks := client(t)
		var asks sync.WaitGroup
		for range open {
			asks.Go(func() {
				if _, err := propose(t, hooks, s.url()); err != nil {
					t.Error(err)
				}
			})
		}
		asks.Wait()
		broken.Store(true)
		if _, err := propose(t, hooks, s.url()); err == nil {
			t.Errorf("%s: no error", name)
		}
		if n := requests.Load(); n != 3 {
			t.Errorf("%s: %d requests, want 3", name, n)
		}
	}
}

// Connections that are all gone, as after the restart of a machine on the way,
// cost one attempt and not one each.
func TestStaleConnections(t *testing.T) {
	const open = 20
	var here sync.WaitGroup
	here.Add(open)
	var restarted atomic.Bool
	s := rawServer(t, func(n int, c *net.TCPConn) {
		for readRequest(c) {
			if restarted.Load() && n <= open {
				_ = c.SetLinger(0)
				return
			}
			if n <= open {
				here.Done()
				here.Wait()
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(good), good)
		}
	})
	c := config(t, "127.0.0.1")
	var attempts atomic.Int32
	transport := webhook.NewTransport(c.Policy)
	c.Transport = counting{transport, &attempts}
	hooks := webhook.New(c)
	var asks sync.WaitGroup
	for range open {
		asks.Go(func() { _, _ = propose(t, hooks, s.url()) })
	}
	asks.Wait()
	attempts.Store(0)
	restarted.Store(true)
	if a, err := propose(t, hooks, s.url()); err != nil || a.TransitionName != "10" {
		t.Errorf("answer %+v, error %v", a, err)
	}
	if n := attempts.Load(); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}

// counting counts the requests that a transport is given.
type counting struct {
	*http.Transport
	n *atomic.Int32
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.Transport.RoundTrip(r)
}

// forgetful counts how often a transport is told to close its connections.
type forgetful struct {
	*http.Transport
	n *atomic.Int32
}

func (f forgetful) CloseIdleConnections() { f.n.Add(1) }

// Open connections are given up only after one was seen to be broken: not because
// an ask was cancelled, nor because another service is not there.
func TestConnectionsAreKept(t *testing.T) {
	hanging := rawServer(t, func(_ int, c *net.TCPConn) {
		if readRequest(c) {
			_, _ = c.Read(make([]byte, 1)) // until the client leaves
		}
	})
	broken := rawServer(t, func(_ int, c *net.TCPConn) { readRequest(c) })
	absent := rawServer(t, nil)
	absent.Close()
	for name, c := range map[string]struct {
		url  string
		want int32
	}{
		"cancelled":  {hanging.url(), 0},
		"not there":  {absent.url(), 0},
		"no success": {answering(t, 503, "busy").URL, 0},
		"broken":     {broken.url(), 3},
	} {
		conf := config(t, "127.0.0.1")
		var closed atomic.Int32
		conf.Transport = forgetful{webhook.NewTransport(conf.Policy), &closed}
		m := parse(t, machineText)
		p, err := webhook.New(conf).Proposer(m, hook(c.url), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if c.url == hanging.url() {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		if _, err := p.Propose(ctx, question(m)); err == nil {
			t.Errorf("%s: no error", name)
		}
		cancel()
		if n := closed.Load(); n != c.want {
			t.Errorf("%s: connections were given up %d times, want %d", name, n, c.want)
		}
	}
}
