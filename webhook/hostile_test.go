package webhook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// A compressed answer was not asked for and is not unpacked: a bomb stays as
// small as it came.
func TestCompressedAnswers(t *testing.T) {
	var bomb, small bytes.Buffer
	for out, text := range map[*bytes.Buffer]string{&bomb: strings.Repeat(" ", 8<<20), &small: good} {
		z := gzip.NewWriter(out)
		_, _ = io.WriteString(z, text)
		z.Close()
	}
	for name, body := range map[string][]byte{"bomb": bomb.Bytes(), "small": small.Bytes()} {
		s := server(t, func(w http.ResponseWriter, r *http.Request) {
			if accept := r.Header.Get("Accept-Encoding"); accept != "" {
				t.Errorf("%s: Accept-Encoding %q", name, accept)
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := propose(t, client(t), s.URL)
		runtime.ReadMemStats(&after)
		if _, ok := errors.AsType[*webhook.AnswerError](err); !ok {
			t.Errorf("%s: error %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes were allocated for %d", name, n, len(body))
		}
	}
}

// What an answer calls itself does not count, only what it is.
func TestContentTypes(t *testing.T) {
	for _, kind := range []string{"", "text/html", "text/plain; charset=utf-16", "application/problem+json", "multipart/form-data", "nonsense"} {
		for body, fine := range map[string]bool{good: true, "<html>" + good + "</html>": false} {
			s := server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{kind}
				_, _ = io.WriteString(w, body)
			})
			_, err := propose(t, client(t), s.URL)
			if _, refused := errors.AsType[*webhook.AnswerError](err); refused == fine || fine && err != nil {
				t.Errorf("%q: %s: error %v", kind, body, err)
			}
		}
	}
}

// An answer that does not say what it cost has cost something all the same. One that
// says so, a refusal, and a service that cannot be reached have not.
func TestUncountedAnswers(t *testing.T) {
	for body, want := range map[string]bool{
		"nonsense": true, `{"transitionName":"go","toState":"b","reasoning":"r","costUSD":-5}`: true, `{"costUSD":NaN}`: true,
		`"` + strings.Repeat("x", webhook.MaxAnswer) + `"`: true, `{"costUSD":0.5}`: false, good: false, "500": false,
	} {
		s := server(t, func(w http.ResponseWriter, _ *http.Request) {
			if body == "500" {
				w.WriteHeader(http.StatusNotImplemented)
			}
			_, _ = io.WriteString(w, body)
		})
		if _, err := propose(t, client(t), s.URL); errors.Is(err, specialist.ErrUncounted) != want {
			t.Errorf("%.60s: %v", body, err)
		}
		if _, err := decide(t, client(t), s.URL); errors.Is(err, specialist.ErrUncounted) != (want || body == good) {
			t.Errorf("an arbiter: %.60s: %v", body, err)
		}
		s.Close()
		if _, err := propose(t, client(t), s.URL); errors.Is(err, specialist.ErrUncounted) {
			t.Errorf("a service that is not there: %v", err)
		}
	}
}

// A name and a password in the address would be a second way to say who calls.
func TestUserInURL(t *testing.T) {
	calls := 0
	s := server(t, func(http.ResponseWriter, *http.Request) { calls++ })
	for _, user := range []string{"ann:key=planted", "key=planted", ":key=planted", ""} {
		address := strings.Replace(s.URL, "://", "://"+user+"@", 1)
		_, err := propose(t, client(t), address)
		wantKind(t, err, "user information in the URL; the token is named by webhookTokenName")
		wantNoSecret(t, err, planted())
	}
	if calls != 0 {
		t.Errorf("%d calls", calls)
	}
	// Nor may a redirect bring one in.
	asked := 0
	var to string
	s = server(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	to = strings.Replace(s.URL, "://", "://ann:secret@", 1)
	_, err := propose(t, client(t), s.URL)
	wantKind(t, err, "user information in the URL; the token is named by webhookTokenName")
	if asked != 1 {
		t.Errorf("%d requests", asked)
	}
}

// IPv4 addresses in IPv6 clothes are refused when a name turns out to be one.
func TestNamesThatResolveToForms(t *testing.T) {
	s, accepted, c := secure(t, "", answer)
	for kind, list := range addresses {
		for i, address := range list {
			for j, form := range ipv6Forms(address) {
				if ip := net.ParseIP(form); ip.To4() != nil && ip.IsMulticast() {
					continue // cannot be dialled
				}
				name := fmt.Sprintf("form-%d-%d-%d.test", len(kind), i, j)
				names.set(name, netip.MustParseAddr(form).String())
				_, err := propose(t, c, "https://"+name+":"+portOf(t, s.URL)+"/")
				wantKind(t, err, kind)
			}
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// HTTP/2 changes nothing: a stream that is reset is a lost connection.
func TestHTTP2Resets(t *testing.T) {
	names.set("two.test", "127.0.0.1")
	for name, handle := range map[string]http.HandlerFunc{
		"before the headers": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"in the body": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"transitionName"`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		requests := 0
		s, _, c := secure(t, "two.test", func(w http.ResponseWriter, r *http.Request) {
			if _, _ = io.Copy(io.Discard, r.Body); r.ProtoMajor != 2 {
				t.Errorf("%s: %s", name, r.Proto)
			}
			if requests++; requests < 3 {
				handle(w, r)
			}
			answer(w, r)
		})
		if a, err := propose(t, c, "https://two.test:"+portOf(t, s.URL)); err != nil || a.TransitionName != "10" || requests != 3 {
			t.Errorf("%s: answer %+v, error %v after %d requests", name, a, err, requests)
		}
	}
}

// Over HTTP/2 too an answer may only be so long, and may only take so long.
func TestHTTP2Limits(t *testing.T) {
	names.set("two.test", "127.0.0.1")
	s, _, c := secure(t, "two.test", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		chunk := []byte(strings.Repeat("x", 64<<10))
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	address := "https://two.test:" + portOf(t, s.URL)
	wantError(t, third(propose(t, c, address)), "webhook answer: it is larger than 1048576 bytes")
	m := parse(t, machineText)
	p, err := c.Proposer(m, hook(address+"/slow"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Propose(ctx, question(m)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// A redirect whose own body never ends is left when the time is over, and one
// with a long body is followed all the same.
func TestRedirectBodies(t *testing.T) {
	s := rawServer(t, func(_ int, c *net.TCPConn) {
		if readRequest(c) {
			_, _ = io.WriteString(c, "HTTP/1.1 307 Over There\r\nLocation: /there\r\nContent-Length: 100\r\n\r\nmoved")
			_, _ = c.Read(make([]byte, 1)) // until the client leaves
		}
	})
	m := parse(t, machineText)
	p, err := client(t).Proposer(m, hook(s.url()), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Propose(ctx, question(m)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	long := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			if from := r.Header.Get("Referer"); from != "" {
				t.Errorf("Referer %q: the address may hold a secret", from)
			}
			answer(w, r)
			return
		}
		w.Header().Set("Location", "/there")
		w.WriteHeader(http.StatusPermanentRedirect)
		_, _ = io.WriteString(w, strings.Repeat("moved ", 100_000))
	})
	if a, err := propose(t, client(t), long.URL+"/?key=planted"); err != nil || a.TransitionName != "10" {
		t.Errorf("answer %+v, error %v", a, err)
	}
}

// A client's own jitter decides every wait that the service does not, and is
// told how long it may be.
func TestJitterIsInjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ceilings []time.Duration
		s := &replies{status: []int{503, 503, 503, 503, 503, 503, 503}}
		c := config(t, "")
		c.Transport, c.Retry = s, webhook.Retry{Attempts: 7, Within: time.Hour}
		c.Jitter = func(ceiling time.Duration) time.Duration {
			ceilings = append(ceilings, ceiling)
			return ceiling / 2
		}
		wantError(t, third(propose(t, webhook.New(c), "https://service.test")), "Webhook error (503): busy")
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second}
		if !slices.Equal(ceilings, want) {
			t.Errorf("ceilings %v, want %v", ceilings, want)
		}
		for i, d := range s.waits() {
			if d != want[i]/2 {
				t.Errorf("wait %d is %s, want %s", i, d, want[i]/2)
			}
		}
		if len(s.at) != 7 {
			t.Errorf("%d attempts", len(s.at))
		}
	})
}

// The time that attempts take counts too: none is begun after 55 s, even if the
// caller has more time.
func TestSlowAttemptsCount(t *testing.T) {
	for took, want := range map[time.Duration]int{20 * time.Second: 2, 50 * time.Second: 1, 55 * time.Second: 1, 70 * time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s := &replies{status: []int{503, 503, 503}, after: "10", during: func(*http.Request, int) { time.Sleep(took) }}
			wantError(t, ask(t, ctx, s, webhook.Retry{}), "Webhook error (503): busy")
			if len(s.at) != want {
				t.Errorf("%d attempts of %s, want %d", len(s.at), took, want)
			}
		})
	}
}
