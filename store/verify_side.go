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
	values := map[string]string{}
	var name, value string
	for err := range scan(a.q.QueryContext(ctx, `SELECT name, value FROM secrets`)).into(&name, &value) {
		if err != nil {
			return err
		}
		values[name] = value
	}
	if sum := sha256.Sum256([]byte(values["store"])); len(values) != 2 || values[secretSum] != string(sum[:]) {
		return differs(inSecret, "secrets", "the secret that audits are drawn by is not the one that the store was made with")
	}
	return nil
}

// checkAudit follows the chain of the audit of models.
func (a *audit) checkAudit(ctx context.Context) error {
	var prev session.Hash
	var id, n int64
	var sessionID string
	var entry, hash []byte
	return each(a.all(ctx, "llm_audit", []string{"session_id", "entry", "hash"}, []any{&id, &sessionID, &entry, &hash}), func() error {
		n++
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
		return nil
	})
}
