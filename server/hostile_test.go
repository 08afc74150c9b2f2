package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// Callers who do harm, or leave. Where time matters it is that of a test, over connections in
// memory; the others come over real ones.

// serveAt has the server of a desk serve at a port of this computer until the test ends.
func (d *desk) serveAt() string {
	d.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- d.server.Serve(ctx, server.Listening{Listeners: []net.Listener{at}, Grace: 10 * time.Second})
	}()
	d.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			d.Error(err)
		}
	})
	return at.Addr().String()
}

// stream opens a stream over a connection in memory.
func (p pipes) stream(t *testing.T, key, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := p.dial()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, key)
	in := bufio.NewReader(c)
	r, err := http.ReadResponse(in, nil)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s begins with %+v %v", path, r, err)
	}
	return c, bufio.NewReader(r.Body)
}

// TestReaderThatNeverReads: whoever opens a stream and does not read it loses the connection
// after 15 seconds of a write. Nobody else waits for them, and nobody loses an event.
func TestReaderThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		at := d.serve()
		never, _ := at.stream(t, localKey, "/v1/events")
		reads, in := at.stream(t, localKey, "/v1/events")
		got := make(chan int, 1)
		go func() {
			n := 0
			for {
				text, err := in.ReadString('\n')
				if n += strings.Count(text, "event: session_created"); err != nil {
					got <- n
					return
				}
			}
		}()
		closed := func() bool {
			_ = never.SetWriteDeadline(time.Now().Add(time.Millisecond))
			_, err := never.Write([]byte("x"))
			return errors.Is(err, io.ErrClosedPipe)
		}
		for range 20 {
			d.begin(reviewed)
		}
		time.Sleep(14 * time.Second)
		if closed() {
			t.Error("whoever does not read for 14 s is taken for gone")
		}
		time.Sleep(2 * time.Second)
		if !closed() {
			t.Error("whoever does not read for 16 s is still written to")
		}
		d.begin(reviewed)
		synctest.Wait()
		reads.Close()
		never.Close()
		if n := <-got; n != 21 {
			t.Errorf("whoever reads got %d of 21 sessions", n)
		}
	})
}

// TestRevokedKeyEndsStreams: whoever's key is revoked is told nothing more after 5 seconds, on
// any stream; the streams of others go on.
func TestRevokedKeyEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		at := d.serve()
		s := d.begin(reviewed)
		var made api.MadeKey
		d.want(201, "POST", "/v1/keys", `{"name":"ann","grants":[{"role":"operator","machines":["*"]}]}`).into(t, &made)
		paths := []string{"/v1/events", "/v1/machines/claims/events", "/v1/inbox/events", "/v1/sessions/" + s.SessionID + "/events"}
		ends := make(chan time.Time, 2*len(paths))
		var others []net.Conn
		for _, path := range paths {
			for _, key := range []string{made.Credential, localKey} {
				c, in := at.stream(t, key, path)
				if key == localKey {
					others = append(others, c)
				}
				go func() {
					_, _ = io.Copy(io.Discard, in)
					ends <- time.Now()
				}()
			}
		}
		time.Sleep(7 * time.Second)
		d.want(200, "DELETE", "/v1/keys/"+made.KeyID, "")
		revoked := time.Now()
		time.Sleep(6 * time.Second)
		for range paths {
			select {
			case at := <-ends:
				if took := at.Sub(revoked); took > 5*time.Second {
					t.Errorf("a stream has ended after %v", took)
				}
			default:
				t.Fatal("a stream goes on whose key is revoked")
			}
		}
		if len(ends) > 0 {
			t.Error("a stream of another key has ended")
		}
		for _, c := range others {
			c.Close()
		}
		synctest.Wait()
	})
}

// TestShutdown: a server that ends says goodbye on its streams, answers who waits for a session
// with where that stands, waits for nobody else longer than it said, and leaves nothing behind:
// no goroutine is there any more when it has returned.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, deskOptions{})
		at := make(pipes)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- d.server.Serve(ctx, server.Listening{Listeners: []net.Listener{at}, Grace: 3 * time.Second})
		}()
		var s api.Settled
		d.want(201, "POST", "/v1/sessions", `{"machine":`+reviewed+`}`).into(t, &s)
		said := make(chan string, 4)
		var conns []net.Conn
		for _, path := range []string{"/v1/events", "/v1/machines/claims/events", "/v1/inbox/events", "/v1/sessions/" + s.Session.SessionID + "/events"} {
			c, in := at.stream(t, localKey, path)
			conns = append(conns, c)
			go func() {
				text, _ := io.ReadAll(in)
				said <- string(text)
			}()
		}
		waits, idle, half := at.dial(), at.dial(), at.dial()
		conns = append(conns, waits, idle, half)
		fmt.Fprintf(waits, "GET /v1/sessions/%s/settled?wait=50s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", s.Session.SessionID, localKey)
		fmt.Fprintf(idle, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if r, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%+v %v", r, err)
		}
		fmt.Fprintf(half, "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", localKey)
		synctest.Wait()
		began := time.Now()
		cancel()
		r, err := http.ReadResponse(bufio.NewReader(waits), nil)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("whoever waits is answered %+v %v", r, err)
		}
		if text, err := io.ReadAll(r.Body); err != nil || !bytes.Contains(text, []byte(`"settled":false`)) {
			t.Errorf("whoever waits is told %s %v", text, err)
		}
		for range 4 {
			if text := <-said; !strings.HasSuffix(text, "event: bye\ndata: {}\n\n") {
				t.Errorf("a stream ends with %q", text)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("streams were let wait %v", took)
		}
		if err := <-done; err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("the server has ended after %v: %v", time.Since(began), err)
		}
		for _, c := range conns {
			c.Close()
		}
		synctest.Wait() // what is left of the server keeps this test from its end
	})
}

// TestLargeBodies: what is too large is refused, by every route, before it is read, whether it
// says how large it is or not; so is what is compressed.
func TestLargeBodies(t *testing.T) {
	d, path, token, _ := lateDesk(t, "", nil)
	at := d.serveAt()
	const size = 64 << 20
	piece := bytes.Repeat([]byte(" "), 64<<10)
	for _, to := range []struct{ method, path, key string }{
		{"POST", "/v1/sessions", localKey}, {"PUT", "/v1/machines/late", localKey}, {"POST", "/v1/check", localKey},
		{"POST", path, token}, {"POST", "/mcp", localKey}, {"POST", "/", localKey},
	} {
		for _, length := range []string{fmt.Sprintf("Content-Length: %d", size), "Transfer-Encoding: chunked"} {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nIf-None-Match: *\r\n%s\r\n\r\n", to.method, to.path, to.key, length)
			chunked := strings.HasPrefix(length, "Transfer")
			sent := make(chan int, 1)
			go func() {
				n := 0
				for ; n < size; n += len(piece) {
					if chunked {
						fmt.Fprintf(c, "%x\r\n", len(piece))
					}
					if _, err := c.Write(piece); err != nil {
						break
					}
					if chunked {
						fmt.Fprint(c, "\r\n")
					}
				}
				sent <- n
			}()
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || r.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s %s of 64 MiB, %s: %+v %v", to.method, to.path, length, r, err)
			}
			c.Close()
			if n := <-sent; n >= size/2 { // what buffers between hold
				t.Errorf("%s %s, %s: %d bytes were taken", to.method, to.path, length, n)
			}
		}
		if r := d.do(to.key, to.method, to.path, "\x1f\x8b\x08", "Content-Encoding", "gzip", "If-None-Match", "*"); r.status != http.StatusUnsupportedMediaType || r.code() != "bad_encoding" {
			t.Errorf("%s %s compressed: %d %s", to.method, to.path, r.status, r.body)
		}
	}
}

// TestCallersWhoLeave: whoever leaves before their request is whole has asked for nothing, and
// whoever leaves then, however soon, stops nothing: sent again, the request is answered, and
// its effect is there once.
func TestCallersWhoLeave(t *testing.T) {
	body := `{"machine":` + reviewed + `}`
	head := func(wait string) string {
		return fmt.Sprintf("POST /v1/sessions%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nIdempotency-Key: once\r\nContent-Length: %d\r\n\r\n", wait, localKey, len(body))
	}
	for name, c := range map[string]struct {
		wait, sent string
		acts       bool
	}{
		"in the head":         {"", head("")[:100], false},
		"before the body":     {"", head(""), false},
		"in the body":         {"", head("") + body[:len(body)/2], false},
		"behind the body":     {"", head("") + body, true},
		"waiting for the end": {"?wait=50s", head("?wait=50s") + body, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, deskOptions{config: server.Config{WaitMax: 3 * time.Second}})
			at := d.serveAt()
			caller, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(caller, c.sent)
			sessions := func() (list api.List[api.Summary]) {
				d.want(200, "GET", "/v1/sessions", "").into(t, &list)
				return list
			}
			for end := time.Now().Add(20 * time.Second); c.acts && len(sessions().Items) == 0; {
				if time.Now().After(end) {
					t.Fatal("the request does nothing")
				}
			}
			_ = caller.(*net.TCPConn).SetLinger(0) // at once, whatever has not been read
			caller.Close()
			var again *reply
			for end := time.Now().Add(20 * time.Second); again == nil || again.code() == "in_progress"; {
				if time.Now().After(end) {
					t.Fatalf("the request is under way for ever: %s", again.body)
				}
				again = d.do(localKey, "POST", "/v1/sessions"+c.wait, body, "Idempotency-Key", "once")
			}
			if list := sessions(); again.status != 201 || len(list.Items) != 1 {
				t.Errorf("sent again it is answered %d %s, and there are %d sessions", again.status, again.body, len(list.Items))
			}
			if replayed := again.header.Get("Idempotency-Replayed") != ""; replayed != c.acts {
				t.Errorf("it was answered before: %v", replayed)
			}
			records, err := d.control.Audit(t.Context(), control.Query{})
			if err != nil {
				t.Fatal(err)
			}
			open := map[string]bool{}
			for _, r := range records {
				if e, err := r.Entry(); err == nil && strings.HasPrefix(e.Operation, "POST") {
					open[e.RequestID] = e.Result == ""
				}
			}
			for id, without := range open {
				if without {
					t.Errorf("the audit log has no result of request %s", id)
				}
			}
		})
	}
}

// TestSmuggledRequests: a request whose end is not plain is refused or is the last of its
// connection, and headers that ask for another method, path or caller change nothing.
func TestSmuggledRequests(t *testing.T) {
	d := newDesk(t, deskOptions{config: server.Config{Hosts: []string{"localhost"}}})
	at := d.serveAt()
	s := d.begin(reviewed)
	secret := "GET /v1/sessions/" + s.SessionID + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + localKey + "\r\n\r\n"
	post := "POST /v1/machines/validate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + localKey + "\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct {
		sent string
		want []int // the answers, in turn, before the connection ends
	}{
		"two lengths":              {post + "Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}" + secret, []int{400}},
		"a length and chunks":      {post + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + secret, []int{200}},
		"chunks twice":             {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + secret, []int{501}},
		"another encoding":         {post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + secret, []int{501}},
		"a length with a sign":     {post + "Content-Length: +2\r\n\r\n{}" + secret, []int{400}},
		"a length of lists":        {post + "Content-Length: 2, 2\r\n\r\n{}" + secret, []int{400}},
		"a chunk of no size":       {post + "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n" + secret, []int{400}},
		"a space before the colon": {post + "Content-Length : 2\r\n\r\n{}" + secret, []int{400}},
		"a line that goes on":      {post + "X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}" + secret, []int{200}},
		"a NUL":                    {post + "X-A: \x00\r\nContent-Length: 2\r\n\r\n{}" + secret, []int{400}},
		"another host in the line": {"GET http://evil.example/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + localKey + "\r\nConnection: close\r\n\r\n", []int{421}},
		"two hosts":                {"GET /v1 HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n" + secret, []int{400}},
		"a tunnel":                 {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\nConnection: close\r\n\r\n", []int{421}},
		"another method": {"POST /v1/sessions/" + s.SessionID + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + localKey +
			"\r\nX-HTTP-Method-Override: GET\r\nX-HTTP-Method: GET\r\nX-Original-URL: /v1\r\nX-Rewrite-URL: /v1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", []int{405}},
		"another caller": {"GET /v1 HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-User: admin\r\nForwarded: for=127.0.0.1\r\nConnection: close\r\n\r\n", []int{401}},
	} {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprint(conn, c.sent)
		in := bufio.NewReader(conn)
		var got []int
		for {
			r, err := http.ReadResponse(in, nil)
			if err != nil {
				break
			}
			text, _ := io.ReadAll(r.Body)
			if got = append(got, r.StatusCode); bytes.Contains(text, []byte(s.SessionID)) && r.StatusCode == 200 {
				t.Errorf("%s: what was smuggled is answered: %s", name, text)
			}
		}
		conn.Close()
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: answered %v, want %v", name, got, c.want)
		}
	}
	records, err := d.control.Audit(t.Context(), control.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if e, err := r.Entry(); err == nil && e.Address != "127.0.0.1" && e.Address != "192.0.2.1" && e.Address != "" {
			text, _ := json.Marshal(e)
			t.Errorf("the audit log believes what was said: %s", text)
		}
	}
}
