package notify

import (
	"context"

	"github.com/dialai/dialai/internal/trust"
	"github.com/dialai/dialai/session"
)

// What somebody is told of trust. The stage of a state is an event of the log of its machine's name.
// That a promise is met or lost is an event of no log: it follows from the lessons that are events of
// sessions (what a human has decided, has thought of a decision, has adopted), in their order. So
// the tests of promises are folded along the lessons, and what a lesson changes is told of the record
// that has it: the same whenever it is read, and by whomever. A lesson is never taken out of a
// test, and what it has changed is remembered; there are few such changes.
//
// Both name the machine and the state, and no session: which decision of a human was the last straw
// is for those to see who may read it.

// staged returns what there is to tell of a record of the log of a machine name; nothing of one that
// cannot be read.
func staged(e *session.RosterEntry) (list []happening) {
	events, err := session.DecodeRosterEvents(e.Events)
	if err != nil {
		return nil
	}
	for i, ev := range events {
		if ev.Kind == session.KindStage {
			list = append(list, happening{kind: stageChanged, at: ev.At, roster: e.Place, index: i * perEvent, machine: e.MachineName, state: ev.State, stage: string(ev.Stage.StageOf())})
		}
	}
	return list
}

// promises are the tests of the promises of a store, as far as they were read.
type promises struct {
	tests   trust.Tests
	place   int64                      // of the newest lesson
	changed map[int64]trust.TestChange // by the place of the lesson
}

// at returns what the lesson of a record has changed.
func (p *promises) at(ctx context.Context, from session.TrustStore, place int64) (c trust.TestChange, err error) {
	if p.changed == nil {
		p.changed = map[int64]trust.TestChange{}
	}
	for x, err := range from.Lessons(ctx, p.place) {
		if err != nil {
			return c, err
		}
		if x.Seq > place {
			break
		}
		p.place = x.Seq
		if c, err := p.tests.Learn(x); err == nil && c.From != c.To { // what no ledger takes is in none
			p.changed[x.Seq] = c
		}
	}
	return p.changed[place], nil
}

// withPromise returns what there is to tell of a record, with what has become of a promise by it.
// The caller holds reading.
func (t *tenant) withPromise(ctx context.Context, r *reader, e *session.LogEntry) ([]happening, error) {
	c, err := t.promises.at(ctx, t.runner.Store(), e.Place)
	if err != nil {
		return nil, err
	}
	s := &r.folder.Current
	h := happening{at: s.UpdatedAt, place: e.Place, index: int(s.Sequence-e.First)*perEvent + ofPromise, machine: c.Machine, state: c.Scope}
	switch {
	case c.From == c.To:
		return r.list, nil
	case c.To == trust.Met:
		h.kind = promiseMet
	case c.To == trust.Lost:
		h.kind, h.code = promiseLost, "alarm"
	case c.From == trust.Met:
		h.kind, h.code = promiseLost, "policy_changed"
	default:
		return r.list, nil
	}
	return append(r.list, h), nil
}
