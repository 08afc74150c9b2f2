package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
)

// AppendAudit implements [session.AuditStore]. The number of the entry is drawn before, so that it is
// stored once however often it is sent.
func (s *Store) AppendAudit(ctx context.Context, e specialist.AuditEntry) error {
	entry, err := json.Marshal(e)
	if err != nil {
		return err
	}
	id, err := one[int64](ctx, s, `SELECT nextval(pg_get_serial_sequence('llm_audit', 'id'))`)
	if err == nil {
		_, err = query(ctx, s, pgx.RowTo[int64], `INSERT INTO llm_audit (id, session_id, entry) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, id, e.SessionID, entry)
	}
	return err
}

// Audit implements [session.AuditStore].
func (s *Store) Audit(ctx context.Context, id specialist.SessionID) iter.Seq2[specialist.AuditEntry, error] {
	type stored struct {
		id int64
		specialist.AuditEntry
	}
	after := int64(0)
	entries := pages(ctx, s, func(row pgx.CollectableRow) (e stored, err error) {
		var entry []byte
		if err = row.Scan(&e.id, &entry); err == nil {
			if err = json.Unmarshal(entry, &e.AuditEntry); err != nil {
				err = &session.CorruptError{What: fmt.Sprintf("audit entry %d", e.id), Problem: err.Error()}
			}
		}
		return e, err
	}, func(last *stored) (string, []any) {
		if last != nil {
			after = last.id
		}
		return `SELECT id, entry FROM llm_audit WHERE session_id=$1 AND id>$2 ORDER BY id LIMIT $3`, []any{id.String(), after, page}
	})
	return func(yield func(specialist.AuditEntry, error) bool) {
		for e, err := range entries {
			if !yield(e.AuditEntry, err) {
				return
			}
		}
	}
}

// AppendAgentLog implements [session.AgentStore].
func (s *Store) AppendAgentLog(ctx context.Context, id specialist.SessionID, after int64, events ...session.AgentEvent) error {
	return s.hot.do(ctx, &job{alone: func(ctx context.Context, tx pgx.Tx, again bool) error {
		var row, last int64
		err := tx.QueryRow(ctx, `SELECT id FROM sessions WHERE session_id=$1 FOR NO KEY UPDATE`, [16]byte(id)).Scan(&row)
		if errors.Is(err, pgx.ErrNoRows) {
			return &session.NotFoundError{What: "Session", ID: id.String()}
		}
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT coalesce(max(seq), 0) FROM agent_log WHERE session=$1`, row).Scan(&last)
		}
		if err != nil {
			return err
		}
		var head []byte
		if err := tx.QueryRow(ctx, `SELECT coalesce((SELECT hash FROM agent_log WHERE session=$1 AND seq=$2), '')`, row, after).Scan(&head); err != nil {
			return err
		}
		var hash session.Hash
		copy(hash[:], head)
		for i, e := range events {
			e.Seq = after + 1 + int64(i)
			event, err := session.AppendAgentEvent(nil, e)
			if err != nil {
				return err
			}
			hash = session.Chain(hash, session.AgentStream(id.String()), event)
			if last != after {
				return alreadyThere(ctx, tx, again, row, e.Seq, hash)
			}
			if _, err := tx.Exec(ctx, `INSERT INTO agent_log (session, seq, event, hash) VALUES ($1, $2, $3, $4)`, row, e.Seq, event, hash[:]); err != nil {
				return err
			}
		}
		return nil
	}})
}

// alreadyThere returns nil if the first entry that is sent again is stored, and with it the others: else
// somebody else has appended one.
func alreadyThere(ctx context.Context, tx pgx.Tx, again bool, row, seq int64, hash session.Hash) error {
	var stored bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM agent_log WHERE session=$1 AND seq=$2 AND hash=$3)`, row, seq, hash[:]).Scan(&stored)
	if err == nil && !(again && stored) {
		err = session.ErrStale
	}
	return err
}

// AgentLog implements [session.AgentStore].
func (s *Store) AgentLog(ctx context.Context, id specialist.SessionID, after int64) iter.Seq2[session.AgentEvent, error] {
	return pages(ctx, s, func(row pgx.CollectableRow) (e session.AgentEvent, err error) {
		var seq int64
		var event, hash []byte
		if err = row.Scan(&seq, &event, &hash); err == nil {
			if e, err = session.DecodeAgentEvent(event); err != nil {
				err = &session.CorruptError{What: fmt.Sprintf("entry %d of the agent_log of session %s", seq, id), Problem: err.Error()}
			}
			copy(e.Hash[:], hash)
		}
		return e, err
	}, func(last *session.AgentEvent) (string, []any) {
		if last != nil {
			after = last.Seq
		}
		return `SELECT a.seq, a.event, a.hash FROM agent_log a JOIN sessions s ON s.id=a.session WHERE s.session_id=$1 AND a.seq>$2 ORDER BY a.seq LIMIT $3`, []any{[16]byte(id), after, page}
	})
}
