package remote

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/cli/internal/render"
	"github.com/dialai/dialai/client"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// A session is followed event by event, as the server records them. Those of a record are shown
// together once the record is whole; what the stream did not bring is read from the log at the end.

// Begin has what follows be told from an event on.
func (r *Server) Begin(s *session.Session, after int64) {
	own := *s
	r.reader, r.after, r.record = &own, after, nil
	r.a.SessionID = s.ID.String()
}

// watches is how long the server is asked at a time whether a session has settled.
const watches = 30 * time.Second

// Run tells what happens to a session until it ends, needs a human, or waits. Where nobody
// carries it on, or so many transitions are enough, it has the server do that.
func (r *Server) Run(ctx context.Context, id specialist.SessionID, o runner.RunOptions) (runner.Result, error) {
	about, err := r.About(ctx)
	if err != nil {
		return runner.Result{}, r.Told(err)
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	type end struct {
		result api.Result
		at     api.Session
		err    error
	}
	done := make(chan end, 1)
	go func() {
		defer stop()
		for about.Drives && o.MaxSteps == runner.DefaultMaxSteps {
			at, err := r.Await(ctx, id.String(), "", watches)
			if err != nil || at.Settled && at.Session.Status != session.Running {
				done <- end{at: at.Session, err: err}
				return
			}
			if at.Settled { // nobody carries on this one, or it waits
				break
			}
		}
		ran, err := r.Client.Run(ctx, id.String(), o.MaxSteps, client.Write{})
		done <- end{ran.Result, ran.Session, err}
	}()
	r.watch(following, id)
	left := <-done
	if left.err != nil {
		return runner.Result{}, r.Told(left.err)
	}
	r.catchUp(ctx, id, left.at.Sequence)
	s, err := r.take(ctx, left.at, "")
	if err != nil {
		return runner.Result{}, err
	}
	result := runner.Result{Status: left.result.Status, Session: s, Code: left.result.Code, Reason: left.result.Reason}
	if result.Status == "" {
		result.Status = s.Status.String()
	}
	if s.Status != session.Running {
		result.Reason, result.Code = s.Outcome().Reason, s.Outcome().Code
	}
	return result, nil
}

// watch tells events as they come until ctx ends, or the session has completed. What it cannot
// read it leaves to whoever looks at the session.
func (r *Server) watch(ctx context.Context, id specialist.SessionID) {
	if r.shows == nil || r.reader == nil {
		return
	}
	for e, err := range r.Events(ctx, id.String(), client.EventQuery{After: r.after, Payload: "full"}) {
		if err != nil {
			return
		}
		r.add(e)
	}
}

// catchUp tells the events up to a number that were not told yet.
func (r *Server) catchUp(ctx context.Context, id specialist.SessionID, until int64) {
	if r.shows == nil || r.reader == nil {
		return
	}
	for e, err := range r.Log(ctx, id.String(), client.EventQuery{After: r.after, Payload: "full"}) {
		if err != nil || e.Seq > until {
			break
		}
		r.add(e)
	}
	r.tell()
}

// add takes in an event, and tells the record before it once that is whole.
func (r *Server) add(e api.Event) {
	if len(r.record) > 0 && r.record[0].Hash != e.Hash {
		r.tell()
	}
	r.record, r.after = append(r.record, e), e.Seq
}

// tell has the printer show a record.
func (r *Server) tell() {
	p, record := r.shows, r.record
	if r.record = nil; len(record) == 0 {
		return
	}
	defer p.Flush()
	if r.a.Flags.JSON {
		for _, e := range record {
			p.Event(e)
		}
		return
	}
	c := session.Change{After: r.reader, First: record[0].Seq}
	for _, e := range record {
		if e.Withheld && r.less(e) {
			continue
		}
		d, err := r.reader.Read(e.Raw)
		if err != nil {
			continue // a later version may know more kinds
		}
		if o, ok := d.(*session.RoundOpened); ok {
			r.reader.State, r.reader.Round, r.reader.Attempt = o.State, o.Round, o.Attempt
		}
		c.Events = append(c.Events, session.Event{At: e.At, Data: d})
		p.Text(c)
		c.Events = nil
	}
}

// less tells an event of which the server says less than the log, if it is one that is told.
func (r *Server) less(e api.Event) bool {
	p := r.shows
	var d struct{ SpecialistID, ArbiterID string }
	_ = json.Unmarshal(e.Data, &d) // without a name there is none
	switch e.Kind {
	case "answered":
		p.Line("A proposer has answered (withheld)")
	case session.KindJudged:
		p.Line("Arbiter %s: verdict (withheld)", render.Clean(d.ArbiterID))
	case session.KindRuled:
		p.Line(render.Either(r.withdraws, "Human %s has taken the ruling back", "Human %s has ruled (withheld)"), render.Clean(d.SpecialistID))
	case session.KindRoundOpened, session.KindNeedsHuman, session.KindEnded:
		return false // their names are there
	}
	return true
}
