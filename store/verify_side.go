package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dialai/dialai/session"
)

// side returns the checks of what follows from nothing.
func (a *audit) side() []check {
	return []check{
		{inSecret, "secrets", a.checkSecret},
		{inAudit, "llm_audit", a.checkAudit},
		{inAgentLog, "agent_log", a.checkAgentLogs},
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
	delete(values, secretEpoch) // any will do
	delete(values, secretLive)
	delete(values, secretBegun)
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
	erased := maps.Clone(a.erasedAudit)
	err := each(a.all(ctx, "llm_audit", []string{"session_id", "entry", "hash"}, []any{&id, &sessionID, &entry, &hash}), func() error {
		n++
		var said struct {
			SessionID string `json:"sessionId"`
		}
		prev = session.Chain(prev, sessionID, entry)
		if sums := erased[sessionID]; len(sums) > 0 && string(hash) != string(prev[:]) && sums[0] == erasedSum(hash, sessionID, entry) {
			erased[sessionID] = sums[1:]
			copy(prev[:], hash)
		}
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
	if err != nil || a.damaged() { // else a log that could not be read says what was erased
		return err
	}
	is, err := a.identity(ctx)
	if err != nil || is.ArchiveOf != nil { // the audit of its sessions stays where they were archived
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(erased)) {
		if len(erased[id]) > 0 {
			return differs(inAudit, "llm_audit", "an entry of session %s was erased, and is as it was before, or gone", id)
		}
	}
	return nil
}

// erasedSum is [session.ErasedSum] for a hash as it is stored.
func erasedSum(hash []byte, stream string, now []byte) string {
	var kept session.Hash
	copy(kept[:], hash)
	return session.ErasedSum(kept, stream, now)
}

// checkAgentLogs follows the chain of each session's agent_log. It comes after the logs
// were read, from which it has the ids of sessions.
func (a *audit) checkAgentLogs(ctx context.Context) error {
	heads := map[int64]session.Hash{}
	next := map[int64]int64{}
	var id, row, seq int64
	var event, hash []byte
	err := each(a.all(ctx, "agent_log", agentColumns, []any{&id, &row, &seq, &event, &hash}), func() error {
		next[row]++
		of, begun := a.read.Session(row)
		known, stream := of.Folded, of.ID
		if !known { // what is wrong with its log is found there
			stream = fmt.Sprintf("session row %d", row)
		}
		bad := func(format string, args ...any) error {
			d := differs(inAgentLog, stream, format, args...)
			d.Seq = next[row]
			return d
		}
		want := heads[row]
		if known {
			want = session.Chain(want, session.AgentStream(of.ID), event)
			if sum, listed := a.erasedAgents[row][seq]; listed {
				if sum != erasedSum(hash, session.AgentStream(of.ID), event) {
					return bad("it was erased, and is not what was left")
				}
				copy(want[:], hash)
			}
		} else {
			copy(want[:], hash)
		}
		heads[row] = want
		switch e, err := session.DecodeAgentEvent(event); {
		case !begun:
			return bad("it is of no session that has a log")
		case string(hash) != string(want[:]):
			return bad("the hash of its entry is wrong: it was altered, or one before it removed")
		case err != nil:
			return bad("%v", err)
		case e.Seq != next[row] || seq != next[row]:
			return bad("it has the number %d, its row %d", e.Seq, seq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var removed int64
	if err := a.q.QueryRowContext(ctx, `SELECT coalesce((SELECT place FROM (`+emptyPlaces(agentPlaces)+`)
		WHERE NOT EXISTS (SELECT 1 FROM secrets WHERE name=?) LIMIT 1), 0)`, secretLive).Scan(&removed); err != nil || removed == 0 { // an archive has some
		return err
	}
	return differs(inAgentLog, "agent_log", "row %d is gone: it was removed", removed)
}
