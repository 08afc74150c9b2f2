package bridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dialai/dialai/agent"
	"github.com/dialai/dialai/agent/bridge"
	"github.com/dialai/dialai/agent/scripted"
)

// An ev is an event as a host reads it.
type ev map[string]any

func (e ev) text(name string) string { s, _ := e[name].(string); return s }

func (e ev) number(name string) float64 { n, _ := e[name].(float64); return n }

// is reports whether an event is of a kind, and has these fields.
func (e ev) is(kind string, fields ...string) bool {
	if e.text("event") != kind {
		return false
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		if fmt.Sprint(e[name]) != value {
			return false
		}
	}
	return true
}

// A host is who uses a bridge.
type host struct {
	t      testing.TB
	in     *io.PipeWriter
	out    *bufio.Scanner
	told   []ev
	seen   int
	served chan error
}

// agents makes the agents of a test: scripts by their names.
type agents map[string]agent.Agent

func (a agents) named(name string) (agent.Agent, error) {
	if _, is := a[name]; !is {
		return nil, errors.New("no such agent: " + name)
	}
	return a[name], nil
}

func script(t testing.TB, lines ...string) agents {
	t.Helper()
	a, err := scripted.New("s.jsonl", []byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return agents{"": a}
}

func serve(t testing.TB, a agents) *host {
	t.Helper()
	in, hostIn := io.Pipe()
	hostOut, out := io.Pipe()
	h := &host{t: t, in: hostIn, out: bufio.NewScanner(hostOut), served: make(chan error, 1)}
	h.out.Buffer(nil, 128<<20)
	go func() {
		err := bridge.Serve(context.Background(), in, out, a.named)
		_ = out.Close()
		_ = in.Close()
		h.served <- err
	}()
	return h
}

// send sends lines as they are.
func (h *host) send(lines ...string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, strings.Join(lines, "\n")+"\n"); err != nil {
		h.t.Error(err)
	}
}

// next returns the next event.
func (h *host) next() ev {
	h.t.Helper()
	if !h.out.Scan() {
		h.t.Fatalf("no more events: %v; there were\n%s", h.out.Err(), h)
	}
	var e ev
	if err := json.Unmarshal(h.out.Bytes(), &e); err != nil {
		h.t.Fatalf("%s: %v", h.out.Bytes(), err)
	}
	h.told = append(h.told, e)
	if got := int(e.number("seq")); got != len(h.told) {
		h.t.Errorf("seq is %d of event %d", got, len(h.told))
	}
	return e
}

// until returns the next event of a kind, with these fields.
func (h *host) until(kind string, fields ...string) ev {
	h.t.Helper()
	for {
		for ; h.seen < len(h.told); h.seen++ {
			e := h.told[h.seen]
			if e.is(kind, fields...) {
				h.seen++
				return e
			}
			if kind == "session" && e.is("error", "code=spawn_failed") {
				h.t.Fatalf("it has not opened: %v", e)
			}
		}
		h.next()
	}
}

// all returns the events of a kind until now.
func (h *host) all(kind string, fields ...string) (list []ev) {
	for _, e := range h.told {
		if e.is(kind, fields...) {
			list = append(list, e)
		}
	}
	return list
}

// end ends the input, reads to the end, and returns what Serve does.
func (h *host) end() error {
	h.t.Helper()
	_ = h.in.Close()
	return h.rest()
}

// rest reads to the end, and returns what Serve does.
func (h *host) rest() error {
	h.t.Helper()
	for h.out.Scan() {
		var e ev
		if err := json.Unmarshal(h.out.Bytes(), &e); err != nil {
			h.t.Fatalf("%s: %v", h.out.Bytes(), err)
		}
		h.told = append(h.told, e)
	}
	return <-h.served
}

// String is what was told, without times.
func (h *host) String() string {
	var b bytes.Buffer
	for _, e := range h.told {
		short := ev{}
		for k, v := range e {
			if k != "ts" && k != "seq" {
				short[k] = v
			}
		}
		text, _ := json.Marshal(short)
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// kinds are those of the events of a session.
func (h *host) kinds(id string) string {
	var list []string
	for _, e := range h.told {
		if e.text("id") == id {
			list = append(list, e.text("event"))
		}
	}
	return strings.Join(list, " ")
}

// line is a command as JSON.
func line(fields map[string]any) string {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(text)
}

type m = map[string]any

// A spy is an agent that notes what it is told.
type spy struct {
	agent.Agent
	opened  []agent.Spec
	replies []agent.Reply
	sent    []agent.Message
}

func (s *spy) Open(ctx context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	s.opened = append(s.opened, spec)
	live, err := s.Agent.Open(ctx, spec, events)
	if err != nil {
		return nil, err
	}
	return &spied{live, s}, nil
}

type spied struct {
	agent.Session
	spy *spy
}

func (s *spied) Send(ctx context.Context, m agent.Message) error {
	s.spy.sent = append(s.spy.sent, m)
	return s.Session.Send(ctx, m)
}

func (s *spied) Answer(ctx context.Context, r agent.Reply) error {
	s.spy.replies = append(s.spy.replies, r)
	return s.Session.Answer(ctx, r)
}

// A says is an agent that says what it is to, whatever it is told. Before the last it waits for
// end, if there is one.
type says struct {
	bodies []agent.Body
	told   *[]agent.Reply
	end    chan struct{}
}

func (says) Check(context.Context) (agent.Info, error) { return agent.Info{}, nil }

func (s says) Open(_ context.Context, spec agent.Spec, events chan<- agent.Event) (agent.Session, error) {
	go func() {
		for i, body := range s.bodies {
			if i == len(s.bodies)-1 && s.end != nil {
				<-s.end
			}
			events <- agent.Event{Session: spec.ID, Body: body}
		}
	}()
	return s, nil
}

func (s says) Answer(_ context.Context, r agent.Reply) error {
	if s.told != nil {
		*s.told = append(*s.told, r)
	}
	return agent.ErrStale
}

func (says) Send(context.Context, agent.Message) error { return nil }
func (says) Interrupt(context.Context) error           { return nil }
func (says) Close(context.Context) error               { return nil }
