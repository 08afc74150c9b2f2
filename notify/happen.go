package notify

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/dialai/dialai/internal/spend"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/verdict"
)

// What of a record of the log somebody is told. A record is read on top of the session as it
// was before, so that it is known which state it is in, whether a human was asked in the round
// before, and what is withheld. It follows from the log alone, and so is the same whenever
// it is read.
//
// What is withheld from who may rule is in no message: no proposals, no code that would tell
// them, and of a verdict of the guards not even that there was one.

// A Kind of message, and when it is sent.
type Kind struct{ Name, When string }

// Kinds are all of them.
func Kinds() []Kind { return slices.Clone(kinds) }

const (
	started      = "session.started"
	needsHuman   = "session.needs_human"
	waiting      = "session.waiting"
	completed    = "session.completed"
	stopped      = "session.stopped"
	failed       = "session.failed"
	resumed      = "session.resumed"
	moved        = "session.moved"
	timer        = "session.timer"
	changed      = "question.changed"
	reminder     = "question.reminder"
	executed     = "decision.executed"
	reviewOpened = "review.opened"
	guardWarned  = "guard.warned"
	stageChanged = "trust.stage_changed"
	promiseMet   = "promise.met"
	promiseLost  = "promise.lost"
	testKind     = "webhook.test"
)

var kinds = []Kind{
	{started, "a session was started"},
	{needsHuman, "a human must decide"},
	{waiting, "nothing goes on before an answer comes that a service has promised, or before a timer"},
	{completed, "a session has reached a final state"},
	{stopped, "a session was stopped by a guard, a limit or somebody"},
	{failed, "a session cannot go on"},
	{resumed, "a session goes on that had stood still"},
	{moved, "a session goes on under another definition"},
	{timer, "a state was due, and its timer has executed its transition"},
	{changed, "what a human is asked has changed since they were asked"},
	{reminder, "a question will be due: somebody is to be reminded"},
	{executed, "a transition was executed"},
	{reviewOpened, "a closed round is to be looked at by a human"},
	{guardWarned, "a guard has let something pass with a warning"},
	{stageChanged, "a state has come to another stage of doing without humans"},
	{promiseMet, "what humans decide has shown that a promise holds: the engine decides alone"},
	{promiseLost, "a promise that held is tested anew, since audits raised the alarm or its policy is another: humans decide"},
	{testKind, "somebody wants to see whether it arrives"},
}

// A happening is something that somebody is told of.
type happening struct {
	kind       string
	at         specialist.Time
	place      int64                // in the log of sessions
	roster     int64                // or in those of machine names
	index      int                  // among those that may come of the record
	session    specialist.SessionID // the zero one of what is about a machine name
	machine    string
	seq        int64
	round      string
	state      string
	status     string
	code       string
	stage      string
	transition string
	isHuman    *bool
	meta       json.RawMessage
	proposals  []json.RawMessage
}

// Places of what comes of one event, and of a record as a whole: part of the id of a message.
const (
	perEvent  = 16
	aside     = 1 // what comes of an event beside the first
	ofWaiting = 2
	ofReview  = 3
	ofPromise = 4
)

// readerOf names a reader: one of the webhooks together, and of each one that is told again.
type readerOf struct {
	webhook string
	session specialist.SessionID
}

// A reader reads the log of one session.
type reader struct {
	folder session.Folder
	before *session.Session  // nil at the beginning
	asked  string            // the round in which a human was asked
	entry  *session.LogEntry // that is read; nil where what happened is of no matter
	list   []happening
	taught bool // the record has something for the ledger
}

// happened returns what there is to tell of a record. A record that cannot be read tells
// nothing: its session is damaged, and others go on.
func (t *tenant) happened(ctx context.Context, webhook string, e *session.LogEntry) ([]happening, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if list, ok := t.happens.Get(e.Place); ok {
		return list, nil
	}
	if e.Place > t.newest {
		t.newest, webhook = e.Place, ""
	}
	list, err := t.read(ctx, readerOf{webhook, e.Session}, e)
	if _, damaged := errors.AsType[*session.CorruptError](err); damaged {
		list, err = nil, nil
	}
	if err == nil {
		t.happens.Put(e.Place, list)
	}
	return list, err
}

func (t *tenant) read(ctx context.Context, of readerOf, e *session.LogEntry) ([]happening, error) {
	r, known := t.sessions.Get(of)
	if !known || r.folder.Current.Sequence != e.First-1 {
		r = &reader{}
		r.folder.Applied = r.applied
		for _, err := range t.runner.Fold(ctx, e.Session, &r.folder) {
			if err != nil {
				return nil, err
			}
			if r.folder.Current.Sequence >= e.First-1 {
				break
			}
		}
		if e.First == 1 {
			r = r.again()
		} else {
			r.before = r.folder.Session()
		}
		t.sessions.Put(of, r)
	}
	r.entry, r.list, r.taught = e, nil, false
	was := r.before
	if _, err := r.folder.Add(e.Events); err != nil {
		t.sessions.Delete(of)
		return nil, session.Corrupt("the log of session "+e.Session.String(), err)
	}
	r.concluded(was)
	r.entry = nil
	if r.taught {
		return t.withPromise(ctx, r, e)
	}
	return r.list, nil
}

// again returns a reader at the beginning of the log, that finds definitions as r does.
func (r *reader) again() *reader {
	first := &reader{}
	first.folder.Programs, first.folder.Definition, first.folder.Applied = r.folder.Programs, r.folder.Definition, first.applied
	return first
}

// applied is told of each event, when the session has it.
func (r *reader) applied(seq int64, ev session.Event, _, _ spend.Book) {
	if r.entry == nil {
		r.follow(ev.Data, func() string { return r.folder.Current.Key().ID() })
		return
	}
	switch ev.Data.(type) {
	case *session.Learned, *session.Reviewed, *session.Adopted:
		r.taught = true
	}
	now := r.folder.Session()
	h := r.happening(now, seq, ev.At, now.Key().ID())
	h.index = int(seq-r.entry.First) * perEvent
	if h.kind = r.kindOf(ev.Data, h.round); h.kind != "" {
		r.list = append(r.list, r.with(h, now, ev.Data)...)
	}
	r.follow(ev.Data, func() string { return h.round })
	r.before = now
}

// follow notes whether a human was asked in the present round.
func (r *reader) follow(d session.Data, round func() string) {
	switch d.(type) {
	case *session.AwaitsHuman:
		r.asked = round()
	case *session.Executed, *session.Resumed, *session.Moved:
		r.asked = ""
	}
}

// happening returns one of a session as it is now.
func (r *reader) happening(now *session.Session, seq int64, at specialist.Time, round string) happening {
	return happening{at: at, place: r.entry.Place, session: r.entry.Session, machine: r.entry.MachineName, seq: seq, round: round,
		state: now.State.Name, status: now.Status.String(), code: now.OutcomeFor("").Code, meta: now.Options().Meta}
}

// kindOf returns what an event is to those who are told; "" if it is nothing to them.
func (r *reader) kindOf(d session.Data, round string) string {
	switch d := d.(type) {
	case *session.Created:
		return started
	case *session.AwaitsHuman:
		if r.asked == round {
			return changed
		}
		return needsHuman
	case *session.Ruled:
		if r.asked == round {
			return changed
		}
	case *session.Ended:
		return map[session.Status]string{session.Completed: completed, session.Stopped: stopped, session.Failed: failed}[d.Status]
	case *session.Resumed:
		return resumed
	case *session.Moved:
		return moved
	case *session.Executed:
		return executed
	case *session.Reminded:
		return reminder
	case *session.Gated:
		if d.Verdict.Status == verdict.Warn {
			return guardWarned
		}
	}
	return ""
}

// with adds to a happening what its event says, and what else comes of that.
func (r *reader) with(h happening, now *session.Session, d session.Data) []happening {
	switch d := d.(type) {
	case *session.Executed:
		h.round, h.state = d.Key(now.ID).ID(), d.Transition.Target
		h.transition, h.isHuman = d.Transition.Name, &d.IsHuman
		if d.How == session.ByTimer {
			h.isHuman = nil
			due := h
			due.kind, due.index = timer, h.index+aside
			return []happening{h, due}
		}
	case *session.Gated:
		h.transition = d.Transition.Name
		if len(d.Verdict.Reasons) > 0 {
			h.code = d.Verdict.Reasons[0].Code
		}
	case *session.AwaitsHuman, *session.Ruled, *session.Reminded:
		h.proposals = now.ViewFor("").Proposals
	}
	return []happening{h}
}

// concluded adds what comes of a record as a whole, and leaves out what is said twice or is
// withheld after all.
func (r *reader) concluded(was *session.Session) {
	now := r.before
	if stands(now) && !(was != nil && stands(was) && was.Key() == now.Key()) {
		h := r.happening(now, now.Sequence, r.folder.Current.UpdatedAt, now.Key().ID())
		h.kind, h.index = waiting, int(now.Sequence-r.entry.First)*perEvent+ofWaiting
		r.list = append(r.list, h)
	}
	reviews := map[specialist.RoundKey]bool{}
	for _, v := range now.Reviews() {
		reviews[v.Key] = true
		known := was != nil && slices.ContainsFunc(was.Reviews(), func(o *session.Review) bool { return o.Key == v.Key && o.Kind == v.Kind })
		if !known {
			h := r.happening(now, now.Sequence, v.Since, v.Key.ID())
			h.kind, h.state, h.code, h.index = reviewOpened, v.State.Name, string(v.Kind), int(now.Sequence-r.entry.First)*perEvent+ofReview
			r.list = append(r.list, h)
		}
	}
	asks := slices.ContainsFunc(r.list, func(h happening) bool { return h.kind == needsHuman })
	hidden := now.Withheld("") != ""
	last := slices.IndexFunc(r.list, func(h happening) bool { return h.kind == changed })
	for i, h := range r.list {
		if h.kind == changed {
			last = i
		}
	}
	place := -1
	r.list = slices.DeleteFunc(r.list, func(h happening) bool {
		place++
		switch h.kind {
		case changed:
			return asks || place != last
		case guardWarned:
			return hidden && h.round == now.Key().ID() || slices.ContainsFunc(now.Reviews(), func(v *session.Review) bool { return v.Key.ID() == h.round })
		}
		return false
	})
}

// stands reports whether a session runs, and nothing goes on in it before somebody answers who
// has promised to, or before its timer.
func stands(s *session.Session) bool {
	return s.Status == session.Running && (s.Waits() || len(s.OpenAsks()) > 0 && s.OnlyLate())
}
