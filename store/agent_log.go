package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// agentColumns are those of agent_log, but for the number of the row.
var agentColumns = []string{"session", "seq", "event", "hash"}

// AppendAgentLog implements [session.AgentStore].
func (s *SQLite) AppendAgentLog(ctx context.Context, id specialist.SessionID, after int64, events ...session.AgentEvent) error {
	return s.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		return appendAgentLog(ctx, &s.stmts, id, after, events)
	}})
}

// appendAgentLog appends to the chain of a session.
func appendAgentLog(ctx context.Context, st *statements, id specialist.SessionID, after int64, events []session.AgentEvent) error {
	var row, seq int64
	var head []byte
	switch err := st.agentHead.QueryRowContext(ctx, id.String()).Scan(&row, &seq, &head); {
	case errors.Is(err, sql.ErrNoRows):
		return &session.NotFoundError{What: "Session", ID: id.String()}
	case err != nil:
		return err
	case seq != after:
		return session.ErrStale
	}
	var hash session.Hash
	copy(hash[:], head)
	for _, e := range events {
		seq++
		e.Seq = seq
		event, err := session.AppendAgentEvent(nil, e)
		if err != nil {
			return err
		}
		hash = session.Chain(hash, session.AgentStream(id.String()), event)
		if _, err := st.insertAgentEvent.ExecContext(ctx, row, seq, text(event), hash[:]); err != nil {
			return err
		}
	}
	return nil
}

// AgentLog implements [session.AgentStore].
func (s *SQLite) AgentLog(ctx context.Context, id specialist.SessionID, after int64) iter.Seq2[session.AgentEvent, error] {
	return func(yield func(session.AgentEvent, error) bool) {
		var seq int64
		var event, hash []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT a.seq, a.event, a.hash FROM agent_log a JOIN sessions s ON s.id=a.session
			WHERE s.session_id=? AND a.seq>? ORDER BY a.seq`, id.String(), after)).into(&seq, &event, &hash) {
			var e session.AgentEvent
			if err == nil {
				if e, err = session.DecodeAgentEvent(event); err != nil {
					err = &session.CorruptError{What: fmt.Sprintf("entry %d of the agent_log of session %s", seq, id), Problem: err.Error()}
				}
				copy(e.Hash[:], hash)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// AppendAgentLog implements [session.AgentStore].
func (m *Memory) AppendAgentLog(_ context.Context, id specialist.SessionID, after int64, events ...session.AgentEvent) error {
	if m.Recent(id) == nil {
		return &session.NotFoundError{What: "Session", ID: id.String()}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	log := m.agents[id]
	if int64(len(log)) != after {
		return session.ErrStale
	}
	var hash session.Hash
	if after > 0 {
		hash = log[after-1].Hash
	}
	for _, e := range events {
		e.Seq = int64(len(log)) + 1
		stored, err := session.AppendAgentEvent(nil, e)
		if err != nil {
			return err
		}
		if e, err = session.DecodeAgentEvent(stored); err != nil { // nothing of the caller's is kept
			return err
		}
		hash = session.Chain(hash, session.AgentStream(id.String()), stored)
		e.Hash = hash
		log = append(log, e)
	}
	if m.agents == nil {
		m.agents = map[specialist.SessionID][]session.AgentEvent{}
	}
	m.agents[id] = log
	return nil
}

// AgentLog implements [session.AgentStore].
func (m *Memory) AgentLog(_ context.Context, id specialist.SessionID, after int64) iter.Seq2[session.AgentEvent, error] {
	return func(yield func(session.AgentEvent, error) bool) {
		m.mu.RLock()
		log := m.agents[id]
		m.mu.RUnlock()
		for _, e := range log[min(max(after, 0), int64(len(log))):] {
			if !yield(e, nil) {
				return
			}
		}
	}
}
