package webhook_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dialai/dialai/webhook"
)

const refusedRedirect = "redirects are followed within the same origin only, with 307 or 308, at most 3 times"

// Each redirect within the origin carries the same request, body and all.
func TestRedirectsFollowed(t *testing.T) {
	for _, status := range []int{307, 308} {
		for hops := 0; hops <= 4; hops++ {
			rec := &recorder{answer: good}
			s := server(t, func(w http.ResponseWriter, r *http.Request) {
				n := len(rec.requests)
				if n < hops {
					w.Header().Set("Location", fmt.Sprintf("/hop/%d?x=y", n+1))
					rec.statuses = append(rec.statuses, status)
				} else {
					rec.statuses = append(rec.statuses, 200)
				}
				rec.ServeHTTP(w, r)
			})
			a, err := propose(t, client(t), s.URL+"/hop/0")
			if hops > 3 {
				wantError(t, err, "webhook "+s.URL+": "+refusedRedirect)
			} else if err != nil || a.TransitionName != "10" {
				t.Errorf("%d, %d hops: answer %+v, error %v", status, hops, a, err)
			}
			if want := min(hops, 3) + 1; len(rec.requests) != want {
				t.Errorf("%d, %d hops: %d requests, want %d", status, hops, len(rec.requests), want)
			}
			for i, r := range rec.requests {
				if !strings.HasPrefix(r.RequestURI, fmt.Sprintf("/hop/%d", i)) || r.Method != "POST" || rec.bodies[i] != rec.bodies[0] || rec.bodies[i] == "" {
					t.Errorf("%d: request %d is %s %s with %q", status, i, r.Method, r.RequestURI, rec.bodies[i])
				}
				for _, name := range []string{"Authorization", "Idempotency-Key", "Webhook-Signature", "Content-Type"} {
					if got := r.Header.Get(name); got == "" || got != rec.requests[0].Header.Get(name) {
						t.Errorf("%d: request %d has %s %q", status, i, name, got)
					}
				}
			}
		}
	}
}

// Other redirects are answers like any other that is no success.
func TestRedirectsNotFollowed(t *testing.T) {
	for _, status := range []int{300, 301, 302, 303, 304, 305, 306} {
		rec := &recorder{statuses: []int{status}, answer: "moved"}
		s := server(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/other")
			rec.ServeHTTP(w, r)
		})
		_, err := propose(t, client(t), s.URL)
		if failed, ok := errors.AsType[*webhook.StatusError](err); !ok || failed.Status != status {
			t.Errorf("%d: error %v", status, err)
		}
		if len(rec.requests) != 1 {
			t.Errorf("%d: %d requests", status, len(rec.requests))
		}
	}
	s := answering(t, 307, "nowhere")
	wantError(t, third(propose(t, client(t), s.URL)), "Webhook error (307): nowhere")
}

// Another origin is never asked: not another host, port or scheme, however the
// address is written.
func TestRedirectsToOtherOrigins(t *testing.T) {
	calls := 0
	other := server(t, func(http.ResponseWriter, *http.Request) { calls++ })
	names.set("same.test", "127.0.0.1")
	names.set("other.test", "127.0.0.1")
	port := portOf(t, other.URL)
	for _, to := range []string{
		other.URL, "//127.0.0.1:" + port, "//localhost:" + port, "http://other.test:" + port + "/", "https://same.test:" + port, "http://same.test:" + port,
		"http://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "https://10.0.0.1/", "http://0/", "http://2130706433:" + port,
		"http://same.test@other.test:" + port, "file:///etc/passwd", "ftp://same.test/", "javascript:1", "http:///", "https://example.com/",
	} {
		for _, status := range []int{307, 308} {
			asked := 0
			s := server(t, func(w http.ResponseWriter, r *http.Request) {
				asked++
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			})
			c := config(t, "same.test other.test 127.0.0.1 localhost")
			dials := countDials(&c)
			address := "http://same.test:" + portOf(t, s.URL)
			_, err := propose(t, webhook.New(c), address+"/?key=planted")
			if err == nil || !strings.HasPrefix(err.Error(), "webhook "+address+": ") || strings.Contains(err.Error(), "planted") {
				t.Errorf("%s: error %v", to, err)
			}
			if asked != 1 || *dials != 1 || calls != 0 {
				t.Errorf("%s: %d requests, %d attempts, %d calls elsewhere", to, asked, *dials, calls)
			}
		}
	}
}

// From https nothing leads to http, and a default port is no other origin.
func TestRedirectOrigins(t *testing.T) {
	for _, c := range []struct {
		from, to string
		followed bool
	}{
		{"https://a.test/x", "https://a.test/y", true},
		{"https://a.test/x", "https://a.test:443/y", true},
		{"https://a.test:443/x", "https://a.test/y", true},
		{"https://A.test/x", "https://a.test/y", true},
		{"https://a.test/x", "/y", true},
		{"https://a.test/x", "y?z=1", true},
		{"https://a.test/x", "https://a.test:8443/y", false},
		{"https://a.test/x", "https://a.test:80/y", false},
		{"https://a.test/x", "http://a.test/y", false},
		{"https://a.test/x", "http://a.test:443/y", false},
		{"https://a.test/x", "https://b.a.test/y", false},
		{"https://a.test/x", "https://a.test./y", false},
		{"http://a.test/x", "http://a.test:80/y", true},
		{"http://a.test/x", "https://a.test/y", false},
	} {
		var asked []string
		conf := config(t, "a.test")
		conf.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.String())
			resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(good)), Request: r}
			if len(asked) == 1 {
				resp.StatusCode = 308
				resp.Header.Set("Location", c.to)
			} else if r.Header.Get("Authorization") == "" {
				t.Errorf("%s to %s: the credentials were lost", c.from, c.to)
			}
			return resp, nil
		})
		_, err := propose(t, webhook.New(conf), c.from)
		if (err == nil) != c.followed || (len(asked) == 2) != c.followed {
			t.Errorf("%s to %s: asked %v, error %v", c.from, c.to, asked, err)
		}
		if err != nil {
			wantError(t, err, "webhook "+strings.ToLower(strings.TrimSuffix(c.from, "/x"))+": "+refusedRedirect)
		}
	}
}

// A redirect is dialled like a first request: the name may resolve inward by
// now.
func TestRedirectIsCheckedAnew(t *testing.T) {
	names.set("turn.test", "127.0.0.1")
	s, accepted, _ := secure(t, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		names.set("turn.test", "169.254.169.254")
		w.Header().Set("Connection", "close") // or else it would be used again
		w.Header().Set("Location", "/secrets")
		w.WriteHeader(307)
	})
	c := config(t, "127.0.0.0/8")
	transport := trusting(s, c.Policy)
	transport.ForceAttemptHTTP2 = false
	c.Transport = transport
	_, err := propose(t, webhook.New(c), "https://turn.test:"+portOf(t, s.URL)+"/")
	wantError(t, err, "webhook address 169.254.169.254 is not allowed (link-local); see DIALAI_WEBHOOK_ALLOW")
	if accepted.Load() != 1 {
		t.Errorf("%d connections", accepted.Load())
	}
}
