package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/scripted"
)

// A host opens one session and reads its events. It answers as reply says, which gets every
// event and may be nil: then everything is allowed.
type host struct {
	t       *testing.T
	session agent.Session
	reply   func(agent.Event) (agent.Reply, bool)
	done    chan struct{}

	mu   sync.Mutex
	told []agent.Event
}

func script(t *testing.T, lines ...string) *scripted.Agent {
	t.Helper()
	a, err := scripted.New("s.jsonl", []byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func open(t *testing.T, a agent.Agent, spec agent.Spec, reply func(agent.Event) (agent.Reply, bool)) *host {
	t.Helper()
	if reply == nil {
		reply = allow
	}
	events := make(chan agent.Event)
	s, err := a.Open(t.Context(), spec, events)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, session: s, reply: reply, done: make(chan struct{})}
	go h.read(events)
	return h
}

func allow(e agent.Event) (agent.Reply, bool) {
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

func (h *host) read(events <-chan agent.Event) {
	defer close(h.done)
	for e := range events {
		h.mu.Lock()
		h.told = append(h.told, e)
		h.mu.Unlock()
		if r, ok := h.reply(e); ok {
			if err := h.session.Answer(context.Background(), r); err != nil && !errors.Is(err, agent.ErrClosed) && !errors.Is(err, agent.ErrStale) {
				h.t.Errorf("answer %+v: %v", r, err)
			}
		}
		if _, ok := e.Body.(agent.Exited); ok {
			return
		}
	}
}

func (h *host) say(m agent.Message) {
	h.t.Helper()
	if m.Content == "" {
		m.Content = "go on"
	}
	if err := h.session.Send(context.Background(), m); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) close() {
	h.t.Helper()
	if err := h.session.Close(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	<-h.done
}

// events returns what was told until now, without when, in words.
func (h *host) events(kinds ...agent.Kind) (words []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.told {
		if len(kinds) > 0 && !slices.Contains(kinds, e.Body.Kind()) {
			continue
		}
		text, err := json.Marshal(e.Body)
		if err != nil {
			h.t.Fatal(err)
		}
		words = append(words, fmt.Sprintf("%s %s", e.Body.Kind(), text))
	}
	return words
}

// all returns the events of one type.
func all[B agent.Body](h *host) (found []B) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.told {
		if b, ok := e.Body.(B); ok {
			found = append(found, b)
		}
	}
	return found
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
