package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dialai/dialai/api"
	"github.com/dialai/dialai/internal/lru"
	"github.com/dialai/dialai/runner"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// Records of the logs as those who follow them need them. What is shown of a record depends on
// the round in which it begins, and what it is to the inbox on how the session stood before
// and stands after it. Both follow from the log alone: a session is folded along with it.
// What is shown depends, too, on what is withheld now; so it is made when it is asked for,
// once for all who see the same, and again when the session has gone on.

// An entry is a record of the log of a session, or of that of a machine name.
type entry struct {
	at      place // behind it
	machine string
	session specialist.SessionID // the zero one of the log of a machine name
	record  session.StoredRecord
	raw     []session.Raw
	round   int32    // in which it begins
	before  standing // how the session stood
	after   standing
	damaged bool // it cannot be read, and is shown to nobody

	newest *atomic.Int64 // of the session, as far as it is known; nil where nothing is remembered

	mu    sync.Mutex
	shown [views]rendering
}

// A rendering is what is shown of an entry, as of a place: when the session has gone on, what is
// withheld of it may be something else.
type rendering struct {
	asOf  int64
	lines []line // nil if there is none
}

func (e *entry) isRoster() bool { return e.session == specialist.SessionID{} }

// size is about what an entry takes, with what is shown of it.
func (e *entry) size() int { return 512 + 3*len(e.record.Events) }

// A standing is what of a session matters to an inbox.
type standing struct {
	question string   // the round that waits for a human; "" if none does
	reviews  []string // the closed rounds that do
}

func standingOf(s *session.Session) (at standing) {
	if s.Status == session.NeedsHuman {
		at.question = s.Key().ID()
	}
	for _, v := range s.Reviews() {
		at.reviews = append(at.reviews, v.Key.ID())
	}
	return at
}

// folds follow sessions along their logs. They are used by one goroutine.
type folds struct {
	runner   *runner.Runner
	sessions *lru.Cache[specialist.SessionID, *fold]
}

// maxFolds is how many sessions are remembered at least. Those that are not are read again.
const maxFolds = 256

func newFolds(r *runner.Runner) *folds {
	return &folds{r, lru.New[specialist.SessionID, *fold](maxFolds)}
}

type fold struct {
	session.Folder
	hash session.Hash // of the newest record
}

// add finds out about a record of a session, which may be any that comes behind those that it
// was given before.
func (f *folds) add(ctx context.Context, e *entry) error {
	at, known := f.sessions.Get(e.session)
	if !known || at.Current.Sequence != e.record.First-1 {
		at = &fold{}
		f.runner.Fold(ctx, e.session, &at.Folder) // sets where it finds definitions
		for rec, err := range f.runner.Store().Records(ctx, e.session, 0) {
			if err != nil {
				return err
			}
			if rec.First >= e.record.First {
				break
			}
			if _, err := at.Add(rec.Events); err != nil {
				return session.Corrupt("the log of session "+e.session.String(), err)
			}
			at.hash = rec.Hash
		}
		f.sessions.Put(e.session, at)
	}
	if e.record.Prev = at.hash; e.record.Hash == (session.Hash{}) {
		e.record.Hash = session.Chain(at.hash, e.session.String(), e.record.Events)
	}
	at.hash = e.record.Hash
	if e.record.First > 1 {
		e.round, e.before = at.Current.Round, standingOf(at.Session())
	}
	if _, err := at.Add(e.record.Events); err != nil {
		f.sessions.Delete(e.session)
		return session.Corrupt("the log of session "+e.session.String(), err)
	}
	e.after = standingOf(at.Session())
	return nil
}

// readPage returns what comes next behind a place, not much of it at a time; nothing if there
// is nothing.
func readPage(ctx context.Context, from session.Store, read *folds, at place) ([]*entry, error) {
	rosters, err := collect(from.RosterLog(ctx, "", at.roster), func(r session.RosterEntry) *entry {
		return &entry{at: place{roster: r.Place}, machine: r.MachineName, record: r.StoredRecord}
	})
	if err != nil {
		return nil, err
	}
	logs, err := collect(from.Log(ctx, "", at.log), func(l session.LogEntry) *entry {
		return &entry{at: place{log: l.Place}, machine: l.MachineName, session: l.Session, record: session.StoredRecord{First: l.First, Events: bytes.Clone(l.Events), Hash: l.Hash}}
	})
	if err != nil {
		return nil, err
	}
	page := together(logs, rosters)
	for _, e := range page {
		if !e.isRoster() && !e.damaged {
			switch err := read.add(ctx, e); {
			case errors.As(err, new(*session.CorruptError)):
				e.damaged = true // the others go on
			case err != nil:
				return nil, err
			}
		}
		at = at.past(e)
		e.at = at
	}
	return page, nil
}

// pageBytes is how large a page may become.
const pageBytes = 1 << 20

// collect returns the first entries of a log.
func collect[T any](log iter.Seq2[T, error], entryOf func(T) *entry) (list []*entry, err error) {
	size := 0
	for r, err := range log {
		if err != nil {
			return nil, err
		}
		e := entryOf(r)
		if e.raw, err = session.DecodeRaw(e.record.Events); err != nil {
			e.damaged = true
		}
		list, size = append(list, e), size+len(e.record.Events)
		if len(list) == pageKept || size >= pageBytes {
			break
		}
	}
	return list, nil
}

// together returns the entries of two logs in the order of their times, each log in its own
// order, up to where one has ended that may have more.
func together(a, b []*entry) (page []*entry) {
	for len(a) > 0 && len(b) > 0 {
		if a[0].damaged || !b[0].damaged && a[0].raw[0].At <= b[0].raw[0].At {
			a, page = a[1:], append(page, a[0])
		} else {
			b, page = b[1:], append(page, b[0])
		}
	}
	if len(page) == 0 {
		return append(a, b...)
	}
	return page
}

// A view says what of events is shown to somebody.
type view int

const (
	redacted view = iota
	whole
	bare // no data
	views
)

// A line is an event as it is written to a stream.
type line struct {
	kind string
	seq  int64
	text []byte // behind its id
}

// lines returns the events of an entry as they are shown now.
func (s *Server) lines(ctx context.Context, e *entry, v view) ([]line, error) {
	if e.damaged {
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	asOf := int64(0)
	if e.newest != nil {
		asOf = e.newest.Load()
	}
	if known := &e.shown[v]; known.lines != nil && known.asOf == asOf {
		return known.lines, nil
	}
	show := api.LogView{Redacted: v != whole, Round: e.round}
	events := show.RosterEvents(e.machine, e.one())
	if !e.isRoster() {
		at, err := tenantOf(ctx).Runner.Session(ctx, e.session)
		if err == nil {
			show.Hidden, err = tenantOf(ctx).Runner.WithheldRounds(ctx, at, "")
		}
		if errors.As(err, new(*session.CorruptError)) {
			return nil, nil // nobody is shown what cannot be judged
		}
		if err != nil {
			return nil, err
		}
		events = show.Events(at, e.one())
	}
	list := []line{}
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		if v == bare {
			ev.Data = json.RawMessage("{}")
		}
		text, err := lineOf(ev.Kind, ev)
		if err != nil {
			return nil, err
		}
		list = append(list, line{ev.Kind, ev.Seq, text})
	}
	if e.newest != nil || e.isRoster() {
		e.shown[v] = rendering{asOf, list}
	}
	return list, nil
}

func (e *entry) one() iter.Seq2[session.StoredRecord, error] {
	return func(yield func(session.StoredRecord, error) bool) { yield(e.record, nil) }
}

// lineOf writes an event without its id.
func lineOf(kind string, data any) ([]byte, error) {
	b := bytes.NewBufferString("event: " + kind + "\ndata: ")
	err := marshal(b, data)
	b.WriteString("\n")
	return b.Bytes(), err
}

// asks reports whether a record may change what a human is asked who was asked before it.
func (e *entry) asks() bool {
	return slices.ContainsFunc(e.raw, func(r session.Raw) bool {
		switch r.Kind {
		case session.KindProposed, session.KindAskFailed, session.KindDiscarded, session.KindJudged, session.KindRuled, session.KindRetracted, session.KindMoved, session.KindNeedsHuman:
			return true
		}
		return false
	})
}
