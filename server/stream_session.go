package server

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// The events of a session, as a list or as a stream (Server-Sent Events). The number of an
// event in its log is its id in the stream, so whoever begins again behind the last one they
// saw gets every event once, from whichever process. A subscriber is a cursor into the log and
// no queue: a commit only wakes it, and it reads what is new from the store. Who reads slowly
// therefore holds nobody up and loses nothing; a write that takes too long ends the stream.

const (
	maxEvents    = 1000
	streamWrite  = 15 * time.Second // a write may take so long
	streamBeat   = 15 * time.Second // a comment so often, so that nobody on the way gives up
	streamLife   = 30 * time.Minute
	streamRecall = 5 * time.Second // how often permissions are asked again
)

type eventsIn struct {
	params.Session
	After       string `query:"after" doc:"only events behind this number; a stream without it begins now, 0 is the beginning" maxLength:"20"`
	Kinds       string `query:"kinds" doc:"only events of these kinds, with commas between"`
	Human       string `query:"human" doc:"the human as whom it is looked at"`
	Payload     string `query:"payload" enum:"redacted,full,none" doc:"what is shown of texts: redacted without it"`
	Limit       int    `query:"limit" minimum:"1" maximum:"1000" doc:"1000 without it; not of a stream"`
	Accept      string `header:"Accept" doc:"text/event-stream for a stream"`
	LastEventID string `header:"Last-Event-ID" doc:"as after, of a stream"`
}

type eventsBody = api.List[api.Event]

func (s *Server) registerEvents(path string) {
	schema := s.api.OpenAPI().Components.Schemas
	op := huma.Operation{
		OperationID: "list-events", Method: http.MethodGet, Path: path, Summary: "The events of a session: a page, or a stream that goes on",
		Errors: anyError, Security: []map[string][]string{{"key": {}}},
		Responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
			"application/json":  {Schema: huma.SchemaFromType(schema, typeOf[eventsBody]())},
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString, Description: "id is the number of the event, event its kind, data the event"}},
		}}},
	}
	s.needs[op.OperationID] = mayRead
	huma.Register(s.api, op, func(ctx context.Context, in *eventsIn) (*huma.StreamResponse, error) {
		p := callerOf(ctx)
		at, err := s.session(ctx, p, in.ID, mayRead)
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		v, err := s.eventView(ctx, p, at, in)
		if err == nil && !v.bare {
			err = p.note()
		}
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		if strings.Contains(in.Accept, "text/event-stream") {
			if at.Status == session.Completed && v.after >= at.Sequence {
				return &huma.StreamResponse{Body: func(c huma.Context) { c.SetStatus(http.StatusNoContent) }}, nil
			}
			done, ok := s.limits.stream(p)
			if !ok {
				return nil, s.fail(ctx, tooManyStreams(p))
			}
			return &huma.StreamResponse{Body: func(c huma.Context) {
				streaming(c, func() {
					defer done()
					ended := s.config.Metrics.Stream(ctx, "session")
					ended(s.stream(c, p, at, v) != nil)
				})
			}}, nil
		}
		page, err := s.eventPage(ctx, at, v, in.Limit)
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			c.SetHeader("Content-Type", "application/json")
			_ = marshal(c.BodyWriter(), page) // whoever has gone does not read it
		}}, nil
	})
}

// An eventView says which events somebody is shown, and what of them.
type eventView struct {
	after int64
	kinds []string
	bare  bool // no data
	who   *Principal
	human string // as whom they look, as they say
	log   api.LogView
}

func (s *Server) eventView(ctx context.Context, p *Principal, at *session.Session, in *eventsIn) (*eventView, error) {
	v := &eventView{who: p, human: in.Human, bare: in.Payload == "none" || !p.may(mayPayload, at.Machine().Name())}
	if v.bare && in.Payload != "" && in.Payload != "none" {
		return nil, mayNot(p, mayPayload, at.Machine().Name())
	}
	v.log.Redacted = in.Payload != "full"
	after, streams := in.After, strings.Contains(in.Accept, "text/event-stream")
	if streams && in.LastEventID != "" {
		after = in.LastEventID
	}
	switch n, err := strconv.ParseInt(after, 10, 64); {
	case after == "" && streams:
		v.after = at.Sequence
	case after == "":
	case err != nil || n < 0:
		return nil, bad("bad_cursor", "%q is not the number of an event of this session", after)
	default:
		v.after = n
	}
	if in.Kinds != "" {
		v.kinds = strings.Split(in.Kinds, ",")
	}
	return v, s.withhold(ctx, at, v)
}

// withhold says what of the log of a session is kept from whoever looks.
func (s *Server) withhold(ctx context.Context, at *session.Session, v *eventView) (err error) {
	v.log.Hidden, err = s.withheldFrom(ctx, v.who, at, v.human)
	return err
}

// events yields what is new of a session for somebody.
func (s *Server) events(ctx context.Context, at *session.Session, v *eventView, from int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for e, err := range v.log.Events(at, tenantOf(ctx).Runner.Store().Records(ctx, at.ID, from)) {
			if err != nil {
				yield(e, err)
				return
			}
			if e.Seq > at.Sequence {
				return // what has been committed since the session was read comes next time
			}
			if e.Seq <= v.after || len(v.kinds) > 0 && !slices.Contains(v.kinds, e.Kind) {
				continue
			}
			if v.bare {
				e.Data = json.RawMessage("{}")
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s *Server) eventPage(ctx context.Context, at *session.Session, v *eventView, limit int) (*eventsBody, error) {
	if limit <= 0 {
		limit = maxEvents
	}
	page := &eventsBody{Items: []api.Event{}}
	for e, err := range s.events(ctx, at, v, 1) {
		if err != nil {
			return nil, err
		}
		if len(page.Items) == limit {
			page.NextCursor = strconv.FormatInt(page.Items[limit-1].Seq, 10)
			break
		}
		page.Items = append(page.Items, e)
	}
	return page, nil
}

// stream writes events as they come, until the session completes, the reader goes, or it is
// time to connect again. The error is that of a write.
func (s *Server) stream(c huma.Context, p *Principal, at *session.Session, v *eventView) error {
	ctx := c.Context()
	changed, end := tenantOf(ctx).changes.watch(at.ID)
	defer end()
	out := newStream(c)
	if v.after > at.Sequence {
		out.say("", "reset", json.RawMessage("{}")) // of a store that was put back
		v.after = at.Sequence
	}
	t := newTurns(p)
	defer t.stop()
	for from := int64(1); out.err == nil; {
		if out.err = s.send(ctx, out, at, v, from); out.err != nil {
			break
		}
		if from = at.Sequence + 1; at.Status == session.Completed {
			out.say("", "end", json.RawMessage("{}"))
			return out.err
		}
		if !s.idle(ctx, out, t, changed, func(again *Principal) bool {
			return again.may(mayRead, at.Machine().Name()) && (v.bare || again.may(mayPayload, at.Machine().Name()))
		}) {
			return out.err
		}
		fresh, err := tenantOf(ctx).Runner.Session(ctx, at.ID)
		if err != nil {
			return nil // whoever comes again is told why
		}
		at = fresh
	}
	return out.err
}

// Turns are what comes back while a stream waits.
type turns struct {
	caller       *Principal // as they were known last
	beat, recall *time.Ticker
	life         *time.Timer
}

func newTurns(p *Principal) *turns {
	return &turns{p, time.NewTicker(streamBeat), time.NewTicker(streamRecall), time.NewTimer(streamLife)}
}

func (t *turns) stop() {
	t.beat.Stop()
	t.recall.Stop()
	t.life.Stop()
}

// idle waits until there is something new. It reports whether the stream goes on: not if its
// reader has gone, nor if it is time to say goodbye, nor once the caller may not read any more.
func (s *Server) idle(ctx context.Context, out *stream, t *turns, changed <-chan struct{}, still func(*Principal) bool) bool {
	for out.err == nil {
		select {
		case <-ctx.Done():
			return false
		case <-s.closing:
			out.say("", "bye", json.RawMessage("{}"))
			return false
		case <-t.life.C:
			out.say("", "bye", json.RawMessage("{}"))
			return false
		case <-t.beat.C:
			out.comment()
		case <-t.recall.C:
			again, err := s.still(ctx, t.caller)
			if err != nil || !still(again) {
				return false
			}
			t.caller = again
		case <-changed:
			return true
		}
	}
	return false
}

// send writes what is new.
func (s *Server) send(ctx context.Context, out *stream, at *session.Session, v *eventView, from int64) error {
	if err := s.withhold(ctx, at, v); err != nil {
		return err
	}
	for e, err := range s.events(ctx, at, v, from) {
		if err != nil {
			return err
		}
		out.say(strconv.FormatInt(e.Seq, 10), e.Kind, e)
		if v.after = e.Seq; out.err != nil {
			return out.err
		}
	}
	return out.flush()
}

// A stream writes Server-Sent Events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	pending []byte // what is put and not sent
	err     error  // the first
}

func newStream(c huma.Context) *stream {
	_, w := unwrap(c)
	out := &stream{w: w, control: http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out.write("retry: 2000\n\n")
	return out
}

func (out *stream) write(text string) {
	if out.err != nil {
		return
	}
	_ = out.control.SetWriteDeadline(time.Now().Add(streamWrite)) // not every writer has one
	_, out.err = fmt.Fprint(out.w, text)
}

func (out *stream) flush() error {
	if out.err == nil {
		out.err = out.control.Flush()
	}
	return out.err
}

// say writes an event; id is "" for one that nobody resumes behind.
func (out *stream) say(id, event string, data any) {
	var b strings.Builder
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: ", event)
	if err := marshal(&b, data); err != nil {
		out.err = err
		return
	}
	b.WriteString("\n")
	out.write(b.String())
	if id == "" {
		_ = out.flush()
	}
}

// maxPending is how much is put before it is sent, about.
const maxPending = 64 << 10

// put writes an event that is written already but for its id; it may be sent later.
func (out *stream) put(id string, event []byte) {
	out.pending = append(append(append(append(out.pending, "id: "...), id...), '\n'), event...)
	if len(out.pending) > maxPending {
		_ = out.send()
	}
}

// send sends what was put.
func (out *stream) send() error {
	if len(out.pending) == 0 {
		return out.err
	}
	out.write(string(out.pending))
	out.pending = out.pending[:0]
	if cap(out.pending) > 2*maxPending {
		out.pending = nil
	}
	return out.flush()
}

// comment writes what keeps the connection open.
func (out *stream) comment() {
	out.write(":\n\n")
	_ = out.flush()
}
