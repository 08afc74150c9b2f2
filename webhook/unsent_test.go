package webhook_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/webhook"
)

// What was never sent is no call: an address that the policy refuses once its name is
// looked up, a service that is not there, one with a certificate of somebody else's. A
// request that went out is one, whatever came of it, also on the way of a redirect and
// where only the first attempt went out. A tape says the same.
func TestUnsentIsNoCall(t *testing.T) {
	handle := func(status int) *httptest.Server {
		return server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://192.168.0.1/")
			w.WriteHeader(status)
		})
	}
	alien := httptest.NewUnstartedServer(http.NotFoundHandler())
	alien.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes, which are to fail
	alien.StartTLS()
	t.Cleanup(alien.Close)
	private := config(t, "127.0.0.1")
	private.Transport = refusing{&webhook.PolicyError{}}
	later := config(t, "127.0.0.1")
	later.Transport = &wavering{refused: &webhook.PolicyError{}}
	for name, c := range map[string]struct {
		config webhook.Config
		url    string
		unsent bool
	}{
		"refused by the policy":      {private, handle(200).URL, true},
		"nobody there":               {config(t, "127.0.0.1"), "http://127.0.0.1:1", true},
		"a stranger's certificate":   {config(t, "127.0.0.1"), alien.URL, true},
		"refused by the service":     {config(t, "127.0.0.1"), handle(501).URL, false},
		"sent on to another address": {config(t, "127.0.0.1"), handle(307).URL, false},
		"the second attempt refused": {later, handle(200).URL, false},
	} {
		kept := &tape{kept: map[webhook.Label]webhook.Taped{}}
		for _, playing := range []bool{false, true} {
			kept.playing, c.config.Tape = playing, kept
			a, err := propose(t, webhook.New(c.config), c.url)
			if none := a.Usage == (specialist.Usage{}.WithCalls(0, 0)); err == nil || none != c.unsent || !none && a.Usage != (specialist.Usage{}) {
				t.Errorf("%s: played %t: usage %+v, %v", name, playing, a.Usage, err)
			}
			d, err := decide(t, webhook.New(c.config), c.url)
			if none := d.Expense != nil && d.Expense.Usage == (specialist.Usage{}.WithCalls(0, 0)); err == nil || none != c.unsent {
				t.Errorf("an arbiter, %s: played %t: %+v, %v", name, playing, d.Expense, err)
			}
		}
	}
}

// refusing refuses every request.
type refusing struct{ err error }

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.err }

// wavering breaks the first attempt of each call off, and refuses the others.
type wavering struct {
	refused error
	calls   int
}

func (r *wavering) RoundTrip(*http.Request) (*http.Response, error) {
	if r.calls++; r.calls%2 == 1 {
		return nil, io.ErrUnexpectedEOF
	}
	return nil, r.refused
}
