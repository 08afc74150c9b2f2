package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/control"
	"github.com/dialai/dialai/server"
)

// TestRates: who calls too often is told when there is room again, apart from all others and
// for reads apart from writes.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{config: server.Config{Rates: server.Rates{Read: 2, Write: 1}}})
		ann, bob := d.key(control.Grant{Role: control.Operator}), d.key(control.Grant{Role: control.Operator})
		reads := func(key string) (answered int) {
			for range 20 {
				r := d.do(key, "GET", "/v1", "")
				switch {
				case r.status == http.StatusOK:
					answered++
				case r.status != http.StatusTooManyRequests || r.code() != "rate_limited" || r.header.Get("Retry-After") != "1":
					t.Fatalf("%d %v %s", r.status, r.header, r.body)
				}
			}
			return answered
		}
		if n := reads(ann); n != 4 {
			t.Errorf("of 20 at once, at 2 in a second, %d were answered", n)
		}
		if n := reads(bob); n != 4 {
			t.Errorf("of another key, which has not called, %d were answered", n)
		}
		for want := range 2 {
			if r := d.do(ann, "POST", "/v1/sessions", "{}"); r.status == http.StatusTooManyRequests {
				t.Errorf("write %d of one who has only read: %s", want, r.body)
			}
		}
		if r := d.do(ann, "POST", "/v1/sessions", "{}"); r.status != http.StatusTooManyRequests {
			t.Errorf("a third write at once, at 1 in a second: %d", r.status)
		}
		time.Sleep(time.Second)
		if n := reads(ann); n != 2 {
			t.Errorf("a second later %d were answered", n)
		}
	})
}

// TestStrangers: whoever has no key is bounded by their address, and takes nothing from those
// at the same address who have one.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{config: server.Config{Rates: server.Rates{Read: 100, Write: 100}}})
		got := map[int]int{}
		for range 30 {
			got[d.do("guess", "GET", "/v1", "").status]++
		}
		if got[http.StatusUnauthorized] != 10 || got[http.StatusTooManyRequests] != 20 {
			t.Errorf("30 guesses at once were answered %v", got)
		}
		d.want(200, "GET", "/v1", "")
		for range 30 {
			d.do("", "GET", "/healthz", "")
		}
		if r := d.do("", "GET", "/healthz", ""); r.status != http.StatusOK {
			t.Errorf("health is bounded: %d", r.status)
		}
	})
}

// pipes is a listener whose connections are in memory, so that time can be that of a test.
type pipes chan net.Conn

// Accept returns the next connection.
func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close ends it.
func (p pipes) Close() error { close(p); return nil }

// Addr is the address of nothing.
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial connects.
func (p pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours
}

// serve has the server of a desk serve in memory until the test ends.
func (d *desk) serve() pipes {
	at := make(pipes)
	ctx, cancel := context.WithCancel(d.Context())
	done := make(chan error, 1)
	go func() {
		done <- d.server.Serve(ctx, server.Listening{Listeners: []net.Listener{at}, Grace: time.Second})
	}()
	d.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			d.Error(err)
		}
	})
	return at
}

// TestSlow: whoever sends or reads too slowly loses the connection, and only that.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		at := d.serve()
		began := time.Now()
		head := at.dial()
		fmt.Fprint(head, "GET /v1 HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		if _, err := io.ReadAll(head); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("half a head was given %v: %v", time.Since(began), err)
		}

		began = time.Now()
		body := at.dial()
		fmt.Fprintf(body, "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", localKey)
		r, err := http.ReadResponse(bufio.NewReader(body), nil)
		if err != nil || r.StatusCode != http.StatusRequestTimeout || time.Since(began) != 30*time.Second {
			t.Errorf("half a body was given %v: %+v %v", time.Since(began), r, err)
		}
		body.Close()

		reader := at.dial()
		fmt.Fprintf(reader, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait() // until the server waits for the reader
		time.Sleep(time.Minute)
		if text, err := io.ReadAll(reader); err != nil || strings.HasSuffix(strings.TrimSpace(string(text)), "}") {
			t.Errorf("whoever did not read for a minute got %d bytes to the end: %v", len(text), err)
		}

		waits := at.dial()
		defer waits.Close()
		fmt.Fprintf(waits, "POST /v1/sessions?wait=50s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", localKey, len(reviewed)+12, `{"machine":`+reviewed+`}`)
		if r, err := http.ReadResponse(bufio.NewReader(waits), nil); err != nil || r.StatusCode != http.StatusCreated {
			t.Errorf("whoever waits for a session is taken for slow: %+v %v", r, err)
		}
	})
}

// TestStreamsOfOne: a key has so many streams at a time, and one that ends makes room.
func TestStreamsOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		at := d.serve()
		ann, bob := d.key(control.Grant{Role: control.Operator}), d.key(control.Grant{Role: control.Operator})
		var s api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`).into(t, &s)
		open := func(key string) (net.Conn, int) {
			c := at.dial()
			fmt.Fprintf(c, "GET /v1/sessions/%s/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", s.Session.SessionID, key)
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") != "1" {
				t.Errorf("too many, and the answer does not say when to try again: %v", r.Header)
			}
			go io.Copy(io.Discard, c)
			return c, r.StatusCode
		}
		var all []net.Conn
		for range 64 {
			c, status := open(ann)
			if all = append(all, c); status != http.StatusOK {
				t.Fatalf("stream %d: %d", len(all), status)
			}
		}
		c, status := open(ann)
		if all = append(all, c); status != http.StatusTooManyRequests {
			t.Errorf("one more: %d", status)
		}
		if c, status = open(bob); status != http.StatusOK {
			t.Errorf("one of another key: %d", status)
		}
		all[0].Close()
		synctest.Wait()
		c2, status := open(ann)
		if status != http.StatusOK {
			t.Errorf("one after another has ended: %d", status)
		}
		for _, c := range append(all, c, c2) {
			c.Close()
		}
		synctest.Wait()
	})
}
