package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/dialai/dialai/session"
)

// side returns the checks of what follows from nothing.
func (a *audit) side() []check {
	return []check{
		{inSecret, "secrets", a.checkSecret},
		{inAudit, "llm_audit", a.checkAudit},
	}
}

// checkSecret holds the secret against the hash it was given with.
func (a *audit) checkSecret(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT name, value FROM secrets`)
	if err != nil {
		return err
	}
	defer rows.Close()
	values := map[string]string{}
	for rows.Next() {
		var name string
		var value []byte
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		values[name] = string(value)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if sum := sha256.Sum256([]byte(values["store"])); len(values) != 2 || values[secretSum] != string(sum[:]) {
		return differs(inSecret, "secrets", "the secret that audits are drawn by is not the one that the store was made with")
	}
	return nil
}

// checkAudit follows the chain of the audit of models.
func (a *audit) checkAudit(ctx context.Context) error {
	rows, err := a.q.QueryContext(ctx, `SELECT id, session_id, entry, hash FROM llm_audit NOT INDEXED ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var prev session.Hash
	for n := int64(1); rows.Next(); n++ {
		var id int64
		var sessionID string
		var entry, hash []byte
		if err := rows.Scan(&id, &sessionID, &entry, &hash); err != nil {
			return err
		}
		var said struct {
			SessionID string `json:"sessionId"`
		}
		prev = session.Chain(prev, sessionID, entry)
		switch err := json.Unmarshal(entry, &said); {
		case id != n:
			return differs(inAudit, "llm_audit", "entry %d follows entry %d: one was removed", id, n-1)
		case string(hash) != string(prev[:]):
			return differs(inAudit, "llm_audit", "the hash of entry %d is wrong: it was altered, or one before it removed", id)
		case err != nil:
			return differs(inAudit, "llm_audit", "entry %d: %v", id, err)
		case said.SessionID != sessionID:
			return differs(inAudit, "llm_audit", "entry %d is of session %s and stands under %s", id, said.SessionID, sessionID)
		}
	}
	return rows.Err()
}
