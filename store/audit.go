package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// AppendAudit implements [session.AuditStore].
func (s *SQLite) AppendAudit(ctx context.Context, e specialist.AuditEntry) error {
	entry, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.out.do(&job{ctx: ctx, write: func(ctx context.Context) error {
		return appendAudit(ctx, &s.stmts, e.SessionID, entry)
	}})
}

// appendAudit appends an entry to the chain of the audit.
func appendAudit(ctx context.Context, st *statements, sessionID string, entry []byte) error {
	var head []byte
	if err := st.auditHead.QueryRowContext(ctx).Scan(&head); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var prev session.Hash
	copy(prev[:], head)
	hash := session.Chain(prev, sessionID, entry)
	_, err := st.insertAudit.ExecContext(ctx, sessionID, text(entry), hash[:])
	return err
}

// Audit implements [session.AuditStore].
func (s *SQLite) Audit(ctx context.Context, id specialist.SessionID) iter.Seq2[specialist.AuditEntry, error] {
	return func(yield func(specialist.AuditEntry, error) bool) {
		var row int64
		var entry []byte
		for err := range scan(s.read.QueryContext(ctx, `SELECT id, entry FROM llm_audit WHERE session_id=? ORDER BY id`, id.String())).into(&row, &entry) {
			var e specialist.AuditEntry
			if err == nil {
				if err = json.Unmarshal(entry, &e); err != nil {
					err = &session.CorruptError{What: fmt.Sprintf("audit entry %d", row), Problem: err.Error()}
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// AppendAudit implements [session.AuditStore].
func (m *Memory) AppendAudit(_ context.Context, e specialist.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.audit == nil {
		m.audit = map[string][]specialist.AuditEntry{}
	}
	m.audit[e.SessionID] = append(m.audit[e.SessionID], e)
	return nil
}

// Audit implements [session.AuditStore].
func (m *Memory) Audit(_ context.Context, id specialist.SessionID) iter.Seq2[specialist.AuditEntry, error] {
	return func(yield func(specialist.AuditEntry, error) bool) {
		m.mu.RLock()
		list := slices.Clip(m.audit[id.String()])
		m.mu.RUnlock()
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}
