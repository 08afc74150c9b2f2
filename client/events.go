package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dialai/dialai/api"
)

// Events over any number of connections. A stream is followed behind the last event that was
// taken: when a connection ends, the next begins there, so nothing is missed or yielded twice.
// What the server refuses for good ends it; what may pass is tried again, with growing pauses,
// for about a minute.

// An EventQuery says which events of a session are meant, and what is shown of them.
type EventQuery struct {
	After   int64    // only events behind this number; 0 is the beginning, Now what comes from now on
	Kinds   []string // nil means all
	Human   string   // as whom they are looked at; "" for nobody in particular
	Payload string   // what is shown of texts: redacted (also if it is ""), full or none
}

// Now is the After of an [EventQuery] that asks for what comes from now on.
const Now int64 = -1

// ErrReset says that the log of a session is shorter than what was seen of it: the store was
// put back to an earlier state.
var ErrReset = errors.New("the log ends before what was seen of it")

// Log yields the events of a session that there are, page by page as they are read. An error
// is the last it yields.
func (c *Client) Log(ctx context.Context, id string, q EventQuery) iter.Seq2[api.Event, error] {
	v := values("kinds", strings.Join(q.Kinds, ","), "human", q.Human, "payload", q.Payload)
	return func(yield func(api.Event, error) bool) {
		if err := c.fromNow(ctx, id, &q); err != nil {
			yield(api.Event{}, err)
			return
		}
		v.Set("after", number(q.After))
		pages[api.Event](ctx, c, of(id, "/events"), v)(yield)
	}
}

// fromNow gives what asks for now the number of the newest event, so that nothing is missed
// between two connections.
func (c *Client) fromNow(ctx context.Context, id string, q *EventQuery) error {
	if q.After >= 0 {
		return nil
	}
	s, err := c.Session(ctx, id, "")
	q.After = s.Sequence
	return err
}

// Events yields the events of a session as they come, each once and in order, until it
// completes or ctx ends. When the connection ends, be it by the server's own wish, it
// connects again behind the last event. An error is the last it yields: that of ctx, a
// *Problem, ErrReset, or that the server was not reached for about a minute.
func (c *Client) Events(ctx context.Context, id string, q EventQuery) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if err := c.fromNow(ctx, id, &q); err != nil {
			yield(api.Event{}, err)
			return
		}
		v := values("kinds", strings.Join(q.Kinds, ","), "human", q.Human, "payload", q.Payload)
		f := &follower{client: c, path: of(id, "/events"), query: v, after: number(q.After), pause: firstPause}
		f.tell = func(m message) (bool, error) {
			var e api.Event
			if err := json.Unmarshal([]byte(m.data), &e); err != nil {
				return false, fmt.Errorf("an event of session %s: %w", id, errors.Join(errNotJSON, err))
			}
			if e.Seq <= q.After {
				return true, nil
			}
			q.After, f.after = e.Seq, number(e.Seq)
			return yield(e, nil), nil
		}
		if err := f.follow(ctx); err != nil {
			yield(api.Event{}, err)
		}
	}
}

// A StreamQuery says which events of many sessions are meant, and what is shown of them.
type StreamQuery struct {
	After   string   // only events behind the one of this id; "0" is the beginning, "" what comes from now on
	Kinds   []string // nil means all
	Payload string   // what is shown of texts: redacted (also if it is ""), full or none; not of an inbox
}

// A StreamEvent is an event of a stream over many sessions. Whoever begins again after its ID
// misses nothing and gets nothing twice. What is told only while one follows has the ID "": who is
// at a question (claim.changed), how far a job is (job.progress, with an [api.Job] as its data).
type StreamEvent[T any] struct {
	ID    string
	Event T
}

// AllEvents yields the events of all sessions and machines that the key may read, as they come,
// until ctx ends; for the rest it is as Events.
func (c *Client) AllEvents(ctx context.Context, q StreamQuery) iter.Seq2[StreamEvent[api.Event], error] {
	return followed[api.Event](ctx, c, "/v1/events", q, "payload", q.Payload)
}

// MachineEvents is AllEvents of a machine: of its sessions and its specialists.
func (c *Client) MachineEvents(ctx context.Context, machineName string, q StreamQuery) iter.Seq2[StreamEvent[api.Event], error] {
	return followed[api.Event](ctx, c, machineAt(machineName, "/events"), q, "payload", q.Payload)
}

// InboxEvents yields what comes to wait for a human, changes and is done, as it comes, with the
// question as the human sees it who looks; "" is the only one as whom the key may.
func (c *Client) InboxEvents(ctx context.Context, human string, q StreamQuery) iter.Seq2[StreamEvent[api.InboxEvent], error] {
	return followed[api.InboxEvent](ctx, c, "/v1/inbox/events", q, "human", human)
}

// followed follows a stream over many sessions.
func followed[T any](ctx context.Context, c *Client, path string, q StreamQuery, more ...string) iter.Seq2[StreamEvent[T], error] {
	return func(yield func(StreamEvent[T], error) bool) {
		v := values(append([]string{"kinds", strings.Join(q.Kinds, ",")}, more...)...)
		f := &follower{client: c, path: path, query: v, after: q.After, pause: firstPause}
		f.tell = func(m message) (bool, error) {
			e := StreamEvent[T]{ID: m.id}
			if err := json.Unmarshal([]byte(m.data), &e.Event); err != nil {
				return false, fmt.Errorf("an event of %s: %w", path, errors.Join(errNotJSON, err))
			}
			return yield(e, nil), nil
		}
		if err := f.follow(ctx); err != nil {
			yield(StreamEvent[T]{}, err)
		}
	}
}

// follow reads connection after connection until the stream is over, whoever is told has left
// it, or an error ends it.
func (f *follower) follow(ctx context.Context) error {
	for {
		err := f.connect(ctx)
		if f.done {
			return nil
		}
		if err == nil || f.received {
			f.failures = 0
		}
		var refused *Problem
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && !refused.passes(), errors.Is(err, ErrReset), errors.Is(err, errElsewhere), errors.Is(err, errNotJSON):
			return err
		case err != nil && f.failures == patience:
			return err
		}
		f.failures++
		d := cmp.Or(f.asked, pause(f.failures))
		if err == nil { // as the server has said
			d = f.pause
		}
		if f.client.config.Sleep(ctx, d) != nil {
			return ctx.Err()
		}
	}
}

// patience is how often a stream fails in a row before that is told: with the pauses between
// after more than a minute.
const patience = 10

// A follower follows a stream over any number of connections.
type follower struct {
	client   *Client
	path     string
	query    url.Values
	after    string                      // the id of the last event that was told
	tell     func(message) (bool, error) // is told of each; not ok ends the stream
	pause    time.Duration               // between connections, as the server says
	asked    time.Duration               // how long the server that refused wants to be left alone
	failures int                         // in a row
	received bool                        // something came over the last connection
	done     bool
}

// connect reads one connection to its end. The error is nil if the server has ended it in
// good order.
func (f *follower) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(f.client.silent, cancel)
	defer watch.Stop()
	f.received, f.asked = false, 0
	header := http.Header{}
	if f.after != "" {
		f.query.Set("after", f.after)
		header.Set("Last-Event-Id", f.after)
	}
	res, err := f.client.send(ctx, call{method: http.MethodGet, path: f.path, query: f.query, accept: "text/event-stream", header: header}, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNoContent:
		f.done = true
		return nil
	case res.StatusCode >= http.StatusBadRequest:
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // what is there of it
		f.asked = retryAfter(res)
		return problemOf(res, text)
	case !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"):
		return fmt.Errorf("GET %s: %w", f.path, errNotJSON)
	}
	in := bufio.NewReader(&wakefulReader{res.Body, watch, f.client.silent})
	for {
		m, err := readMessage(in)
		if err != nil {
			return err
		}
		if m.retry > 0 { // what every connection begins with
			f.pause = min(m.retry, maxPause)
		} else {
			f.received = true
		}
		switch m.event {
		case "":
		case "bye":
			return nil
		case "reset":
			return ErrReset
		case "end":
			f.done = true
			return nil
		default:
			ok, err := f.tell(m)
			if f.done = !ok && err == nil; err != nil || f.done {
				return err
			}
		}
		if m.id != "" {
			f.after = m.id
		}
	}
}

// A wakefulReader ends a connection over which nothing has come for too long.
type wakefulReader struct {
	io.Reader
	watch *time.Timer
	after time.Duration
}

func (r *wakefulReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.watch.Reset(r.after)
	}
	return n, err
}

// A message is one of a stream of Server-Sent Events.
type message struct {
	id, event, data string
	retry           time.Duration
}

// readMessage reads up to the empty line behind a message.
func readMessage(in *bufio.Reader) (m message, err error) {
	var data []string
	size := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return m, err // what is not ended is not whole
		}
		if size += len(line); size > maxAnswer {
			return m, fmt.Errorf("an event has more than %d bytes", maxAnswer)
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			m.data = strings.Join(data, "\n")
			return m, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			data = append(data, value)
		case "retry":
			n, _ := strconv.Atoi(value) // what is no number says nothing
			m.retry = time.Duration(n) * time.Millisecond
		}
	}
}
