package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dialai/dialai/agent"
)

// A Host is one session of an agent and who reads its events.
type Host struct {
	agent.Session
	t     testing.TB
	reply func(agent.Event) (agent.Reply, bool)
	done  chan struct{}

	mu   sync.Mutex
	more *sync.Cond
	told []agent.Event
}

// ID returns an id for a session of a test, which no other test on the machine has.
func ID(t testing.TB) string { return fmt.Sprintf("%s-%d", t.Name(), os.Getpid()) }

// Open opens a session. Its events are answered as reply says, which gets every one before
// others see it; nil is [Allow].
func Open(t testing.TB, a agent.Agent, spec agent.Spec, reply func(agent.Event) (agent.Reply, bool)) *Host {
	t.Helper()
	if reply == nil {
		reply = Allow
	}
	events := make(chan agent.Event)
	s, err := a.Open(context.Background(), spec, events)
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{t: t, Session: s, reply: reply, done: make(chan struct{})}
	h.more = sync.NewCond(&h.mu)
	go h.read(events)
	return h
}

// Allow permits everything, and answers tools of the host with "ok".
func Allow(e agent.Event) (agent.Reply, bool) {
	switch b := e.Body.(type) {
	case agent.Permission:
		return agent.Reply{To: b.ID, Allow: true}, true
	case agent.Hook:
		return agent.Reply{To: b.ID, Allow: true}, true
	case agent.ToolCall:
		return agent.Reply{To: b.ID, Content: "ok"}, true
	}
	return agent.Reply{}, false
}

func (h *Host) read(events <-chan agent.Event) {
	defer close(h.done)
	for e := range events {
		h.mu.Lock()
		h.told = append(h.told, e)
		h.mu.Unlock()
		h.more.Broadcast()
		if r, ok := h.reply(e); ok {
			if err := h.Session.Answer(context.Background(), r); err != nil && !errors.Is(err, agent.ErrClosed) && !errors.Is(err, agent.ErrStale) {
				h.t.Errorf("answer %+v: %v", r, err)
			}
		}
		if _, ok := e.Body.(agent.Exited); ok {
			return
		}
	}
}

// Say sends a message; one without content says "go on".
func (h *Host) Say(m agent.Message) {
	h.t.Helper()
	if m.Content == "" {
		m.Content = "go on"
	}
	if err := h.Session.Send(context.Background(), m); err != nil {
		h.t.Fatal(err)
	}
}

// End closes the session, and returns when its last event was read.
func (h *Host) End() {
	h.t.Helper()
	if err := h.Session.Close(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	<-h.done
}

// Ended is closed once the last event was read.
func (h *Host) Ended() <-chan struct{} { return h.done }

// patience is how long a test waits for what is to happen.
const patience = 30 * time.Second

// Until waits until n events of a kind were told, and returns the last of them.
func (h *Host) Until(kind agent.Kind, n int) agent.Event {
	h.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		late = true
		h.more.Broadcast()
	})
	defer timer.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		left := n
		for _, e := range h.told {
			if e.Body.Kind() == kind {
				if left--; left == 0 {
					return e
				}
			}
		}
		if late {
			h.t.Fatalf("no %d events of %s came; there were %s", n, kind, strings.Join(words(h.t, h.told), "\n"))
		}
		h.more.Wait()
	}
}

// Told returns the events until now.
func (h *Host) Told() []agent.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.told)
}

// Words returns the events of some kinds until now, all if none is named, each as its kind and
// its JSON.
func (h *Host) Words(kinds ...agent.Kind) []string {
	return words(h.t, slices.DeleteFunc(h.Told(), func(e agent.Event) bool {
		return len(kinds) > 0 && !slices.Contains(kinds, e.Body.Kind())
	}))
}

func words(t testing.TB, events []agent.Event) (list []string) {
	for _, e := range events {
		text, err := json.Marshal(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %s", e.Body.Kind(), text))
	}
	return list
}

// All returns the events of one type until now.
func All[B agent.Body](h *Host) (found []B) {
	for _, e := range h.Told() {
		if b, ok := e.Body.(B); ok {
			found = append(found, b)
		}
	}
	return found
}
