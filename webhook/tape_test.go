package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/webhook"
)

// A tape keeps everything in memory.
type tape struct {
	mu       sync.Mutex
	playing  bool
	kept     map[webhook.Label]webhook.Taped
	requests []string
}

func (m *tape) Playing() bool { return m.playing }

func (m *tape) Exchange(_ context.Context, l webhook.Label, request []byte, send func() webhook.Taped) webhook.Taped {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.playing {
		return m.kept[l]
	}
	m.requests = append(m.requests, string(request))
	m.kept[l] = send()
	return m.kept[l]
}

// TestTape: what a service says is recorded without secrets and without ids, and
// played without a service, a token, or an address that could be called.
func TestTape(t *testing.T) {
	kept := &tape{kept: map[webhook.Label]webhook.Taped{}}
	c := config(t, "127.0.0.1")
	c.Tape = kept
	var token string
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		_, token, _ = r.BasicAuth()
		switch r.URL.Path {
		case "/propose":
			fmt.Fprintf(w, `{"transitionName":"finish","reasoning":"your token is %s"}`, token)
		case "/context":
			fmt.Fprint(w, `{"context":"three receipts"}`)
		default:
			fmt.Fprintf(w, `{"consensusReached":true,"winningProposalId":"%s","reasoning":"so be it"}`, key.ProposalID(1))
		}
	})
	recording := webhook.New(c)
	answer, err := propose(t, recording, s.URL+"/propose")
	if err != nil {
		t.Fatal(err)
	}
	text, err := gather(t, recording, s.URL+"/context")
	if err != nil {
		t.Fatal(err)
	}
	decision, err := decide(t, recording, s.URL+"/arbitrate")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	all := fmt.Sprint(kept.requests)
	for l, said := range kept.kept {
		all += fmt.Sprint(l) + string(said.Body)
	}
	if token == "" || strings.Contains(all, token) {
		t.Errorf("the token is on the tape: %s", all)
	}
	if said := string(kept.kept[webhook.Label{Kind: "arbiter", Specialist: hook("").SpecialistID, State: "pending", Round: key.Round, Attempt: key.Attempt}].Body); !strings.Contains(said, "proposal 1 of the round") {
		t.Errorf("the verdict stands as %s in %v", said, kept.kept)
	}
	kept.playing = true
	playing := webhook.New(webhook.Config{Tape: kept})
	if again, err := propose(t, playing, s.URL+"/propose"); err != nil || again.TransitionName != answer.TransitionName || again.Reasoning != answer.Reasoning {
		t.Errorf("%+v, %v, want %+v", again, err, answer)
	}
	if again, err := gather(t, playing, s.URL+"/context"); err != nil || again != text {
		t.Errorf("%q, %v, want %q", again, err, text)
	}
	if again, err := decide(t, playing, s.URL+"/arbitrate"); err != nil || again.Winner != decision.Winner || again.Reasoning() != decision.Reasoning() {
		t.Errorf("%+v, %v, want %+v", again, err, decision)
	}
}

// TestOutbound: other packages post over the same transport, under the policy, and
// an address of the operator's is an exception for that host and port alone.
func TestOutbound(t *testing.T) {
	s := answering(t, 418, "short and stout")
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	out := webhook.NewOutbound(webhook.Policy{}.Allowing(u), nil)
	target, err := out.Target(s.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	reply, err := target.Post(bounded(t), []webhook.Header{{Name: "X-Api-Key", Value: "k"}}, []byte(`{}`))
	if err != nil || reply.Status != 418 || string(reply.Body) != "short and stout" {
		t.Errorf("%+v, %v", reply, err)
	}
	for _, address := range []string{"http://127.0.0.1:1/", "http://localhost:1/", "ftp://" + u.Host, "http://user:pw@" + u.Host + "/", "http://10.0.0.1/", "\x7f"} {
		if _, err := out.Target(address); err == nil {
			t.Errorf("%q may be called", address)
		}
	}
	if _, err := webhook.NewOutbound(webhook.Policy{}, nil).Target(s.URL); err == nil {
		t.Error("the exception holds for everybody")
	}
	private := webhook.OperatorOutbound(nil, s.URL, "", "::")
	if target, err := private.Target(s.URL); err != nil {
		t.Errorf("the operator's address cannot be called: %v", err)
	} else if reply, err := target.Post(bounded(t), []webhook.Header{{Name: "Content-Type", Value: "text/plain"}}, nil); err != nil || reply.Status != 418 {
		t.Errorf("%+v, %v", reply, err)
	}
	if _, err := private.Target("http://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), "127.0.0.1 is not allowed (loopback)") {
		t.Errorf("another port of it can: %v", err)
	}
}
