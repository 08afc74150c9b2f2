package webhook_test

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// breaking returns a service that takes the whole request and then does something to
// the connection.
func breaking(t *testing.T, then func(net.Conn)) string {
	return server(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		then(conn)
		_ = conn.Close()
	}).URL
}

// A service that was sent a request and then broke off may have done the work: nobody
// will ever say what that cost, so the ask is charged as estimated. A whole refusal says all
// there is to say, and what was never sent costs nothing: not even a handshake that
// fails.
func TestLostAnswerIsUncounted(t *testing.T) {
	reset := func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }
	write := func(text string) func(net.Conn) { return func(c net.Conn) { _, _ = c.Write([]byte(text)) } }
	plain := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_ = c.Close()
			}
		}()
		return "https://" + l.Addr().String()
	}
	var attempts atomic.Int64
	for name, c := range map[string]struct {
		url  string
		lost bool
		sent bool
	}{
		"reset":                 {breaking(t, reset), true, true},
		"closed":                {breaking(t, func(net.Conn) {}), true, true},
		"cut in its head":       {breaking(t, write("HTTP/1.1 200 OK\r\nContent-Le")), true, true},
		"cut in its body":       {breaking(t, write("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"transi")), true, true},
		"cut in a chunk":        {breaking(t, write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{\"tr")), true, true},
		"a refusal that is cut": {breaking(t, write("HTTP/1.1 503 No\r\nContent-Length: 900\r\n\r\nno")), true, true},
		"reset and then refused": {server(t, func(w http.ResponseWriter, _ *http.Request) {
			if attempts.Add(1)%3 != 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			panic(http.ErrAbortHandler)
		}).URL, true, true},
		"no handshake": {plain(), false, false},
	} {
		kept := &tape{kept: map[webhook.Label]webhook.Taped{}}
		for _, playing := range []bool{false, true} {
			config := config(t, "127.0.0.1")
			kept.playing, config.Tape = playing, kept
			a, err := propose(t, webhook.New(config), c.url)
			if lost, sent := errors.Is(err, specialist.ErrUncounted), a.Usage.Made() > 0; err == nil || lost != c.lost || sent != c.sent {
				t.Errorf("%s, played %t: uncounted %t, sent %t: %v", name, playing, lost, sent, err)
			}
			d, err := decide(t, webhook.New(config), c.url)
			if lost, none := errors.Is(err, specialist.ErrUncounted), d.Expense != nil; err == nil || lost != c.lost || none == c.sent {
				t.Errorf("an arbiter, %s, played %t: uncounted %t, expense %+v: %v", name, playing, lost, d.Expense, err)
			}
		}
	}
}
