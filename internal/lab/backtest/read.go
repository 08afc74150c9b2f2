package backtest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dialai/dialai/exact"
	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// reader reads the events of one record into a track. It takes from them what a
// round was decided on and leaves the rest unread.
type reader struct {
	*fold
	t     *track
	place int64
	at    specialist.Time
	seq   int64
}

// record reads one record.
func (f *fold) record(ctx context.Context, e *session.LogEntry) error {
	t := f.tracks[e.Session]
	if t == nil {
		t = &track{id: e.Session, machine: e.MachineName}
		f.tracks[e.Session] = t
	}
	r := reader{fold: f, t: t, place: e.Place}
	c := &jsontext.Cursor{B: e.Events}
	var err error
	c.Elements(func() {
		if err != nil {
			c.Raw()
			return
		}
		err = r.event(ctx, c)
	})
	if err == nil {
		err = c.Err
	}
	if f.broken != nil {
		return f.broken
	}
	if err != nil {
		return &session.CorruptError{What: fmt.Sprintf("the record of session %s at event %d", e.Session, e.First), Problem: err.Error()}
	}
	return nil
}

// event reads one event.
func (r *reader) event(ctx context.Context, c *jsontext.Cursor) (err error) {
	var kind []byte
	var data jsontext.Cursor
	c.Members(func(name []byte) {
		switch string(name) {
		case "seq":
			r.seq = c.Int()
		case "at":
			r.at = momentOf(c)
		case "kind":
			kind = c.Text()
		case "data":
			data.B = c.Raw()
		default:
			c.Raw()
		}
	})
	if c.Err != nil {
		return c.Err
	}
	if r.since == 0 && r.at >= r.Since {
		r.since = r.place
	}
	switch {
	case r.t.scene == nil && string(kind) != session.KindCreated:
		return fmt.Errorf("the log does not begin with %s", session.KindCreated)
	case r.t.round != nil:
		r.t.round.at = r.at
	case aboutRound(string(kind)):
		return fmt.Errorf("%s where there is no round", kind)
	}
	if err := r.kind(ctx, string(kind), &data); err != nil {
		return fmt.Errorf("event %d (%s): %w", r.seq, kind, err)
	}
	if data.Err != nil {
		return fmt.Errorf("event %d (%s): %w", r.seq, kind, data.Err)
	}
	return nil
}

// aboutRound reports whether an event can only happen in a round.
func aboutRound(kind string) bool {
	switch kind {
	case session.KindProposed, session.KindJudged, session.KindGated, session.KindRuled, session.KindExecuted:
		return true
	}
	return false
}

func (r *reader) kind(ctx context.Context, kind string, c *jsontext.Cursor) error {
	switch kind {
	case session.KindCreated:
		return r.created(ctx, c)
	case session.KindRoundOpened:
		return r.opened(c)
	case session.KindProposed:
		return r.proposed(c)
	case session.KindAskFailed, session.KindDiscarded:
		return r.failed(c, kind == session.KindAskFailed)
	case session.KindJudged:
		return r.judged(ctx, c)
	case session.KindGated:
		return r.gated(c)
	case session.KindExecuted:
		return r.executed(ctx, c)
	case session.KindLearned:
		return r.learned(c)
	case session.KindRuled:
		r.ruled(c)
	case session.KindNeedsHuman, session.KindResumed:
		if r.t.round != nil {
			r.t.round.wait(kind == session.KindNeedsHuman)
		}
	} // a round is closed by what is executed; a session that ended may be resumed or reviewed
	return nil
}

func (r *reader) created(ctx context.Context, c *jsontext.Cursor) error {
	digest, t := "", r.t
	c.Members(func(name []byte) {
		switch string(name) {
		case "machineDigest":
			digest = string(c.Text())
		case "mode":
			t.mode = machine.Mode(c.Text())
		case "defaultArbiter":
			t.standIn = c.Bool()
		default:
			c.Raw()
		}
	})
	if c.Err != nil {
		return c.Err
	}
	r.report.Sessions++
	if t.scene, r.broken = r.scenes.of(ctx, t.machine, digest); r.broken != nil {
		return r.broken
	}
	initial := t.scene.m.Initial()
	t.begin(specialist.RoundKey{Session: t.id}, &t.scene.parts[initial.Index], r.at, r.place)
	return nil
}

func (r *reader) opened(c *jsontext.Cursor) error {
	key := specialist.RoundKey{Session: r.t.id}
	var state []byte
	c.Members(func(name []byte) {
		switch string(name) {
		case "round":
			key.Round = int32(c.Int())
		case "attempt":
			key.Attempt = int32(c.Int())
		case "state":
			state = c.Text()
		default:
			c.Raw()
		}
	})
	st := r.t.scene.m.State(string(state))
	if st == nil {
		return fmt.Errorf("there is no state %q", state)
	}
	if key.Attempt > 0 && r.t.round != nil {
		r.t.round.by = sentBack
	}
	r.close(r.t)
	r.t.begin(key, &r.t.scene.parts[st.Index], r.at, r.place)
	return nil
}

// given stands for a payload: what it says decides nothing.
var given = json.RawMessage("{}")

func (r *reader) proposed(c *jsontext.Cursor) error {
	p := &specialist.Proposal{CreatedAt: r.at}
	var transition []byte
	var detail specialist.Detail
	var cost exact.Money
	c.Members(func(name []byte) {
		switch string(name) {
		case "specialistId":
			p.SpecialistID = r.name(c.Text())
		case "isHuman":
			p.IsHuman = c.Bool()
		case "transitionName":
			transition = c.Text()
		case "arrival":
			p.Arrival = int32(c.Int())
		case "costUSD":
			cost = c.Money()
		case "metaJson":
			c.Raw()
			p.MetaJSON = given
		case "mode":
			p.Mode = specialist.SourceNamed(string(c.Text()))
		case "model":
			detail.Model = r.name(c.Text())
		case "optionOrder":
			c.Elements(func() { detail.OptionOrder = append(detail.OptionOrder, r.name(c.Text())) })
		default:
			c.Raw()
		}
	})
	if detail.Model != "" || detail.OptionOrder != nil {
		p.Detail = &specialist.Detail{Model: detail.Model, OptionOrder: detail.OptionOrder}
	}
	if p.Transition = r.t.part.transition(transition); p.Transition == nil {
		return fmt.Errorf("there is no transition %q", transition)
	}
	r.t.round.propose(p)
	r.t.round.spend(p.SpecialistID, cost)
	return nil
}

// failed reads an ask that came to nothing, or an answer that came too late.
func (r *reader) failed(c *jsontext.Cursor, counts bool) error {
	var id, role, code []byte
	var cost exact.Money
	c.Members(func(name []byte) {
		switch string(name) {
		case "specialistId":
			id = c.Text()
		case "role":
			role = c.Text()
		case "code":
			code = c.Text()
		case "costUSD":
			cost = c.Money()
		default:
			c.Raw()
		}
	})
	who := r.name(id)
	if r.t.round == nil {
		return nil // its round is over and was counted
	}
	if counts && string(role) != string(machine.Arbiter) && string(code) != session.CodeCancelled {
		r.t.round.failed = append(r.t.round.failed, who)
	}
	r.t.round.spend(who, cost)
	return nil
}

func (r *reader) gated(c *jsontext.Cursor) error {
	var transition, status []byte
	human := false
	c.Members(func(name []byte) {
		switch string(name) {
		case "transitionName":
			transition = c.Text()
		case "status":
			status = c.Text()
		case "isHuman":
			human = c.Bool()
		default:
			c.Raw()
		}
	})
	if passed := string(status) == "ok" || string(status) == "warn"; !passed && !human {
		r.t.round.refused = r.t.part.transition(transition)
	}
	return nil
}

func (r *reader) executed(ctx context.Context, c *jsontext.Cursor) error {
	var transition, how []byte
	var s standing
	c.Members(func(name []byte) {
		switch string(name) {
		case "transitionName":
			transition = c.Text()
		case "decision":
			how = c.Text()
		default:
			s.member(string(name), c)
		}
	})
	now := r.t.round
	if now.took = r.t.part.transition(transition); now.took == nil {
		return fmt.Errorf("there is no transition %q", transition)
	}
	switch string(how) {
	case session.ByConsensus.String():
		now.by = byConsensus
	case session.Forced.String():
		now.by = byHuman
	default:
		now.by = byProgram
	}
	if now.by == byHuman && len(now.points) == 0 {
		pt, err := now.point(s.order, s.weights, r.place) // nobody had judged it
		if err != nil {
			return err
		}
		if err := r.decide(ctx, now, pt); err != nil {
			return err
		}
	}
	now.at = r.at
	r.close(r.t)
	return nil
}

func (r *reader) ruled(c *jsontext.Cursor) {
	by, back := "", true
	c.Members(func(name []byte) {
		switch string(name) {
		case "specialistId":
			by = r.name(c.Text())
		case "transitionName":
			back = false
			c.Raw()
		default:
			c.Raw()
		}
	})
	r.t.round.rule(by, back)
}

func (r *reader) learned(c *jsontext.Cursor) error {
	c.Members(func(name []byte) {
		if string(name) != "comparisons" {
			c.Raw()
			return
		}
		c.Elements(func() {
			var k trust.Key
			match := false
			c.Members(func(name []byte) {
				switch string(name) {
				case "specialistId":
					k.SpecialistID = r.name(c.Text())
				case "state":
					k.State = r.name(c.Text())
				case "match":
					match = c.Bool()
				default:
					c.Raw()
				}
			})
			r.compared(r.t.machine, k, match)
		})
	})
	return nil
}

// momentOf consumes a moment.
func momentOf(c *jsontext.Cursor) (t specialist.Time) {
	if err := t.UnmarshalJSON(c.Raw()); err != nil {
		c.Fail("a time")
	}
	return t
}
