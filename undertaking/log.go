package undertaking

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// The loop appends before it acts, and folds what it appended. What must not be lost (what a
// turn has cost, the move of a turn, what a human said) is committed at once; the rest is folded
// at once, and waits for the next commit, at most for one look at the store. Others append too, a
// human's words from another process: the append is refused then, and what they wrote is read first.

// note folds an entry and keeps it for the next commit. about says whom it is about.
func (l *Loop) note(about who, kind string, body any) {
	data, err := entryData(about, body)
	if err != nil {
		l.fail(err)
		return
	}
	e := session.AgentEvent{At: l.now(), Kind: kind, Data: data}
	l.pending = append(l.pending, e)
	l.state = fold(l.state, entryOf(e))
}

// entryData joins whom an entry is about with what it says.
func entryData(about who, body any) (json.RawMessage, error) {
	head, err := jsontext.Marshal(about)
	if err != nil || body == nil {
		return head, err
	}
	rest, err := jsontext.Marshal(body)
	switch {
	case err != nil:
		return nil, err
	case len(rest) <= 2: // {}
		return head, nil
	case len(head) <= 2:
		return rest, nil
	}
	return append(append(head[:len(head)-1:len(head)-1], ','), rest[1:]...), nil
}

// maxRaces is how often an append is tried again because another process was faster.
const maxRaces = 50

// flush commits what is pending.
func (l *Loop) flush(ctx context.Context) error {
	for range maxRaces {
		if len(l.pending) == 0 {
			return nil
		}
		err := l.c.Runner.Store().AppendAgentLog(ctx, l.c.Session, l.state.AgentSeq, l.pending...)
		if err == nil {
			l.state.AgentSeq += int64(len(l.pending))
			l.pending = l.pending[:0]
			return nil
		}
		if !errors.Is(err, session.ErrStale) {
			return err
		}
		if err := l.readAgentLog(ctx); err != nil {
			return err
		}
	}
	return session.ErrStale
}

// commit notes an entry and commits it at once.
func (l *Loop) commit(ctx context.Context, about who, kind string, body any) error {
	l.note(about, kind, body)
	return l.flush(ctx)
}

// readAgentLog folds what others have appended.
func (l *Loop) readAgentLog(ctx context.Context) error {
	for e, err := range l.c.Runner.Store().AgentLog(ctx, l.c.Session, l.state.AgentSeq) {
		if err != nil {
			return err
		}
		l.state = fold(l.state, entryOf(e))
	}
	return nil
}

// readLog folds what the session's log has that is not folded yet.
func (l *Loop) readLog(ctx context.Context) (err error) {
	l.state, err = foldLog(ctx, l.c.Runner.Store(), l.c.Session, l.state)
	return err
}

func foldLog(ctx context.Context, store session.Store, id specialist.SessionID, s State) (State, error) {
	for rec, err := range store.Records(ctx, id, s.Seq+1) {
		if err != nil {
			return s, err
		}
		events, err := session.DecodeRaw(rec.Events)
		if err != nil {
			return s, err
		}
		for _, e := range events {
			if e.Seq > s.Seq {
				s = fold(s, entry{Seq: e.Seq, At: e.At, Kind: e.Kind, Data: e.Data})
			}
		}
	}
	return s, nil
}

// Load returns what an undertaking has come to by its two logs since from, which Load returned of
// it before; the zero State is its beginning.
func Load(ctx context.Context, store session.Store, id specialist.SessionID, from State) (State, error) {
	s, err := foldLog(ctx, store, id, from)
	if err != nil {
		return s, err
	}
	for e, err := range store.AgentLog(ctx, id, s.AgentSeq) {
		if err != nil {
			return s, err
		}
		s = fold(s, entryOf(e))
	}
	return s, nil
}
