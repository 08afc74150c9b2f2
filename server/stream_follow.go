package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/server/internal/params"
	"github.com/dialai/dialai/session"
)

// Streams over many sessions: of all, of those of a machine with its specialists, and of what
// comes into the inbox and leaves it. The id of an event is a cursor (stream_cursor.go), so whoever
// begins again behind the last one they saw gets each event once, from whichever process.
// What they read comes from the hub (stream_hub.go), or, where they have fallen behind, from the store.

type followAllIn struct {
	params.Follow
	params.Texts
}

type followMachineIn struct {
	params.Machine
	params.Follow
	params.Texts
}

type followInboxIn struct {
	params.Follow
	Machine string `query:"machine" doc:"only questions of this machine" maxLength:"300"`
	Human   string `query:"human" doc:"the human who looks" maxLength:"300"`
}

func (s *Server) registerStreams() {
	addStream(s, operation{id: "follow-events", path: "/v1/events", summary: "The events of all sessions and machines, as they come"}, func(ctx context.Context, p *Principal, in *followAllIn) (*tail, error) {
		return s.tailOf(ctx, p, "events", "", in.Follow, in.Payload)
	})
	addStream(s, operation{id: "follow-machine", path: "/v1/machines/{machine}/events", summary: "The events of the sessions and the specialists of a machine, as they come"}, func(ctx context.Context, p *Principal, in *followMachineIn) (*tail, error) {
		if err := mayOf(p, mayRead, in.Name); err != nil {
			return nil, err
		}
		if _, err := s.roster(ctx, p, in.Name); err != nil {
			return nil, err
		}
		return s.tailOf(ctx, p, "machine "+in.Name, in.Name, in.Follow, in.Payload)
	})
	addStream(s, operation{id: "follow-inbox", path: "/v1/inbox/events", summary: "What comes to wait for a human, changes and is done, as it comes"}, func(ctx context.Context, p *Principal, in *followInboxIn) (*tail, error) {
		if _, err := p.viewer(in.Machine, in.Human); err != nil {
			return nil, err
		}
		if !p.may(mayPayload, in.Machine) {
			return nil, mayNot(p, mayPayload, in.Machine)
		}
		t, err := s.tailOf(ctx, p, "inbox", in.Machine, in.Follow, "")
		if err == nil {
			t.inbox, t.human = true, in.Human
		}
		return t, err
	})
}

// addStream registers an operation that answers with a stream.
func addStream[I any](s *Server, o operation, begin func(ctx context.Context, p *Principal, in *I) (*tail, error)) {
	op := huma.Operation{
		OperationID: o.id, Method: http.MethodGet, Path: o.path, Summary: o.summary, Errors: anyError, Security: []map[string][]string{{"key": {}}}, Parameters: inTenant(),
		Responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString, Description: "id is where to begin again, event the kind of the event, data the event"}},
		}}},
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		p := callerOf(ctx)
		t, err := begin(ctx, p, in)
		if err == nil {
			err = p.note()
		}
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		done, err := s.streams(p)
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			streaming(c, func() {
				defer done()
				ended := s.config.Metrics.Stream(ctx, t.kind())
				ended(s.tail(c, p, t) != nil)
			})
		}}, nil
	})
}

// streams counts a stream that begins; done is called when it has ended.
func (s *Server) streams(p *Principal) (done func(), err error) {
	done, ok := s.limits.stream(p)
	if !ok {
		return nil, &api.Error{Status: http.StatusTooManyRequests, Code: "too_many_streams", Detail: fmt.Sprintf("%s has %d streams open", p.Subject, maxStreams), Hint: "end one of them", Retryable: true, ExitCode: 1}
	}
	return done, nil
}

// A tail is where a subscriber is in the logs, and what they are shown of them.
type tail struct {
	cursor
	of      origin
	reset   bool // what was seen is not of this store, or not in it any more
	machine string
	kinds   []string
	payload string
	inbox   bool
	human   string // who looks at the inbox
	passed  int64  // how many passings there were when they looked last

	caller *Principal // who has begun the stream
	read   *folds     // while the store is read
	kept   bool       // the hub has what comes next
	from   int64      // in the hub
	noted  bool       // that payload is read
}

// tailOf returns a tail of a stream for a caller.
func (s *Server) tailOf(ctx context.Context, p *Principal, stream, machineName string, in params.Follow, payload string) (*tail, error) {
	if !p.may(mayRead, machineName) {
		return nil, mayNot(p, mayRead, machineName)
	}
	if payload != "" && payload != "none" && !p.may(mayPayload, machineName) {
		return nil, mayNot(p, mayPayload, machineName)
	}
	if !strings.Contains(in.Accept, "text/event-stream") && !strings.Contains(in.Accept, "*/*") {
		return nil, &api.Error{Status: http.StatusNotAcceptable, Code: "not_acceptable", Detail: "this is a stream", Hint: "Accept: text/event-stream", ExitCode: 2}
	}
	from := tenantOf(ctx).Runner.Store()
	epoch, err := from.Epoch(ctx)
	if err != nil {
		return nil, err
	}
	newest, err := newestPlace(ctx, from)
	if err != nil {
		return nil, err
	}
	t := &tail{of: originOf(epoch, stream), machine: machineName, payload: payload, caller: p, from: -1}
	_, t.passed = tenantOf(ctx).passed.since(0)
	if in.Kinds != "" {
		t.kinds = strings.Split(in.Kinds, ",")
	}
	after := in.After
	if in.LastEventID != "" {
		after = in.LastEventID
	}
	switch after {
	case "":
		t.place = newest
	case "0":
	default:
		at, fits, ok := readCursor(after, t.of)
		if !ok {
			return nil, &api.Error{Status: http.StatusBadRequest, Code: "bad_cursor", Detail: "that is no id of an event of this stream", Hint: "after is the id of an event as the stream has it, 0, or nothing", ExitCode: 2}
		}
		if t.cursor = at; !fits || !newest.covers(at.place) {
			t.reset, t.cursor = true, cursor{place: newest}
		}
	}
	return t, nil
}

// kind names the stream for who counts streams.
func (t *tail) kind() string {
	switch {
	case t.inbox:
		return "inbox"
	case t.machine != "":
		return "machine"
	}
	return "all"
}

// tail writes what comes behind a place, until the reader goes or it is time to connect again.
// The error is that of a write.
func (s *Server) tail(c huma.Context, p *Principal, t *tail) error {
	ctx := c.Context()
	leave := tenantOf(ctx).hub.follow()
	defer leave()
	out := newStream(c)
	if t.reset {
		out.say("", "reset", json.RawMessage("{}"))
	}
	out.write("id: " + t.text(t.of) + "\n\n") // who reads nothing begins again here
	turns := newTurns(p)
	defer turns.stop()
	for out.flush() == nil {
		entries, news, err := s.next(ctx, t)
		if err == nil {
			err = s.write(ctx, out, turns.caller, t, entries)
		}
		if err != nil {
			return out.err // whoever comes again is told why
		}
		t.sayPassing(&tenantOf(ctx).passed, out, turns.caller)
		if len(entries) > 0 {
			news = already // but for what is due meanwhile
		}
		if !s.idle(ctx, out, turns, news, t.open) {
			break
		}
	}
	return out.err
}

// already is closed.
var already = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// next returns what comes next, none if there is nothing yet, and what is closed when there is.
func (s *Server) next(ctx context.Context, t *tail) (entries []*entry, news <-chan struct{}, err error) {
	entries, t.from, news, t.kept = tenantOf(ctx).hub.after(t.place, t.from)
	if t.kept {
		t.read = nil
		return entries, news, nil
	}
	select {
	case tenantOf(ctx).hub.slots <- struct{}{}:
		defer func() { <-tenantOf(ctx).hub.slots }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	begins := t.read == nil
	if begins {
		t.read = newFolds(tenantOf(ctx).Runner)
	}
	entries, err = readPage(ctx, tenantOf(ctx).Runner.Store(), t.read, t.place)
	if begins && len(entries) > 0 {
		s.config.Metrics.CaughtUp(ctx, t.kind())
	}
	return entries, news, err
}

// open reports whether somebody may still read the stream.
func (t *tail) open(p *Principal) bool {
	return p.may(mayRead, t.machine) && (!t.inbox && (t.payload == "" || t.payload == "none") || p.may(mayPayload, t.machine))
}

// write writes what somebody is shown of some entries.
func (s *Server) write(ctx context.Context, out *stream, p *Principal, t *tail, entries []*entry) error {
	for _, e := range entries {
		if t.lacks(e) {
			lines, err := s.linesFor(ctx, p, t, e)
			if err != nil {
				return err
			}
			for i, l := range lines {
				at := cursor{place: t.past(e)}
				if i < len(lines)-1 {
					at = ahead(t.past(e), e, l.seq)
				}
				if !t.has(e, l.seq) && (t.kinds == nil || slices.Contains(t.kinds, l.kind)) {
					out.put(at.text(t.of), l.text)
				}
			}
			if e.isRoster() == (t.part < 0) {
				t.part = 0
			}
		}
		if t.place = t.past(e); out.err != nil {
			return out.err
		}
	}
	return out.send()
}

// linesFor returns what somebody is shown of an entry.
func (s *Server) linesFor(ctx context.Context, p *Principal, t *tail, e *entry) ([]line, error) {
	if t.machine != "" && e.machine != t.machine || !p.may(mayRead, e.machine) {
		return nil, nil
	}
	v := redacted
	switch payload := p.may(mayPayload, e.machine); {
	case t.inbox && !payload:
		return nil, nil
	case t.payload == "none" || !payload:
		v = bare
	case t.payload == "full":
		v = whole
	}
	if v != bare && !t.noted {
		t.noted, t.caller.payload = true, true
		if err := t.caller.note(); err != nil {
			return nil, err
		}
	}
	if t.inbox {
		return s.inboxLines(ctx, p, t, e)
	}
	return s.lines(ctx, e, v)
}

// inboxLines returns what a record is to the inbox of somebody.
func (s *Server) inboxLines(ctx context.Context, p *Principal, t *tail, e *entry) (list []line, err error) {
	if e.isRoster() || e.damaged {
		return nil, nil
	}
	seq := e.record.First
	add := func(kind, round string, review bool) {
		if err != nil {
			return
		}
		ev := api.InboxEvent{V: 1, Kind: kind, At: e.raw[len(e.raw)-1].At, QuestionID: e.session.String() + "." + round, SessionID: e.session.String(), RoundID: round, MachineName: e.machine}
		if !strings.HasSuffix(kind, ".closed") {
			err = s.fill(ctx, p, t, e, &ev, review)
		}
		var text []byte
		if err == nil {
			text, err = lineOf(kind, ev)
		}
		list = append(list, line{kind, seq, text})
		seq++ // tells those of one record apart
	}
	was, is := e.before.question, e.after.question
	switch {
	case was != "" && was == is && e.asks():
		add("question.changed", is, false)
	case was != is:
		if was != "" {
			add("question.closed", was, false)
		}
		if is != "" {
			add("question.opened", is, false)
		}
	}
	for _, round := range e.before.reviews {
		if !slices.Contains(e.after.reviews, round) {
			add("review.closed", round, true)
		}
	}
	for _, round := range e.after.reviews {
		if !slices.Contains(e.before.reviews, round) {
			add("review.opened", round, true)
		}
	}
	return list, err
}

// fill puts what is asked into an event of the inbox, as it is now: of a question that is not
// open any more there is no more than its name.
func (s *Server) fill(ctx context.Context, p *Principal, t *tail, e *entry, ev *api.InboxEvent, review bool) error {
	viewer, err := p.viewer(e.machine, t.human)
	if err != nil {
		viewer = "" // in the sessions of this machine they are nobody
	}
	if review {
		items, _, err := tenantOf(ctx).Runner.Reviews(ctx, session.ListQuery{ID: e.session.String()}, viewer)
		for i := range items {
			if items[i].RoundID == ev.RoundID {
				ev.Review = &items[i]
			}
		}
		return passable(err)
	}
	at, err := tenantOf(ctx).Runner.Session(ctx, e.session)
	if err != nil || standingOf(at).question != ev.RoundID {
		return passable(err)
	}
	q, err := tenantOf(ctx).Runner.Question(ctx, at, viewer)
	if err != nil {
		return passable(err)
	}
	shown, err := s.withClaims(ctx, p, []runner.Question{q}, "", false)
	if err == nil {
		ev.Question = &shown[0]
	}
	return err
}

// passable returns the errors that end a stream: that a session cannot be read does not.
func passable(err error) error {
	if errors.As(err, new(*session.CorruptError)) || errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}
