package bridge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dialai/dialai/agent"
)

// A slow agent opens when it is let, or its host no longer wants it.
type slow struct {
	agent.Agent
	let chan struct{}
}

func (s slow) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	select {
	case <-s.let:
		return s.Agent.Open(ctx, spec, events)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestOpening: what is asked of a session before it has opened waits; a kill does not.
func TestOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(t, `{"text": "x"}`)
		a["slow"], a["never"] = slow{a[""], make(chan struct{})}, slow{a[""], nil}
		h := serve(t, a)
		h.send(`{"cmd":"spawn","id":"a","req":1,"config":{"agent":"slow"}}`, `{"cmd":"message","id":"a","req":2,"content":"Go on."}`, `{"cmd":"usage","id":"a","req":3}`,
			`{"cmd":"spawn","id":"a","req":4}`, `{"cmd":"list","req":5}`)
		h.until("error", "code=duplicate_id", "req=4")
		h.until("ok", "req=5", "sessions=[map[agent:slow context_pct:0 id:a session_id: state:opening]]")
		h.send(`{"cmd":"kill","id":"a","req":6}`)
		h.until("ok", "req=6")
		h.until("error", "req=1", "code=spawn_failed")
		h.until("error", "req=2", "code=unknown_id")
		h.until("error", "req=3", "code=unknown_id")

		h.send(`{"cmd":"spawn","id":"a","req":1,"config":{"agent":"slow"}}`)
		long := strings.Repeat("x", 12<<20)
		for n := range 6 {
			h.send(line(m{"cmd": "message", "id": "a", "req": 10 + n, "content": long}))
		}
		h.until("error", "req=15", "code=limit")
		close(a["slow"].(slow).let)
		h.until("session")
		h.until("ok", "req=1")
		for n := range 5 {
			h.until("ok", fmt.Sprintf("req=%d", 10+n))
		}
		h.until("done")
		h.send(`{"cmd":"spawn","id":"b","req":20,"config":{"agent":"never"}}`)
		if err := h.end(); err != nil || len(h.all("exit")) != 1 {
			t.Errorf("%v\n%.2000s", err, h)
		}
	})
}

// TestStuck: an agent that does not end is given up after a minute.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		a := script(t)
		a["stuck"] = stuck{a[""], let}
		h := serve(t, a)
		h.send(`{"cmd":"spawn","id":"a","config":{"agent":"stuck"}}`)
		h.until("session")
		began := time.Now()
		h.send(`{"cmd":"kill","id":"a","req":1}`, `{"cmd":"kill","id":"a","req":2}`, `{"cmd":"message","id":"a","content":"x","req":3}`, `{"cmd":"list","req":4}`)
		h.until("ok", "req=1")
		h.until("ok", "req=2")
		h.until("error", "req=3", "code=unknown_id")
		h.until("ok", "req=4")
		if err := h.end(); err != nil || len(h.all("exit", "code=-1")) != 1 || !strings.Contains(h.String(), `"state":"closing"`) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v\n%s", err, time.Since(began), h)
		}
		close(let)
	})
}

type stuck struct {
	agent.Agent
	let chan struct{}
}

func (s stuck) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	live, err := s.Agent.Open(ctx, spec, events)
	return stuckSession{live, s.let}, err
}

type stuckSession struct {
	agent.Session
	let chan struct{}
}

func (s stuckSession) Close(ctx context.Context) error {
	<-ctx.Done()
	go func() { <-s.let; _ = s.Session.Close(context.Background()) }()
	return ctx.Err()
}

// A deaf agent opens when it is let, whatever its host wants by then.
type deaf slow

func (d deaf) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	<-d.let
	return d.Agent.Open(ctx, spec, events)
}

// TestKilledTooEarly: a session that opens after it was killed ends at once, and so at the end.
func TestKilledTooEarly(t *testing.T) {
	for _, how := range []string{`{"cmd":"kill","id":"a"}`, `{"cmd":"shutdown"}`} {
		synctest.Test(t, func(t *testing.T) {
			a := script(t)
			let := make(chan struct{})
			a["deaf"] = deaf{a[""], let}
			h := serve(t, a)
			h.send(`{"cmd":"spawn","id":"a","config":{"agent":"deaf"}}`, how)
			go func() {
				synctest.Wait() // the bridge stands still
				close(let)
			}()
			h.until("exit", "code=0")
			if err := h.end(); err != nil {
				t.Error(err)
			}
		})
	}
}
