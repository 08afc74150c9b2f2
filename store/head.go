package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/dialai/dialai/session"
)

// A Head says how far a store has come, and what it holds up to there: whoever keeps
// one elsewhere can prove later that nothing of it was set back, removed or written
// anew. The hash of a record covers its content and all records of its log before it;
// the head's covers every record's hash at its place:
//
//	SHA-256 of Log, Roster and Audit, and Agents unless it is 0, then of place and hash of
//	each record of the logs of all sessions, archived ones too, in the order of their commits, then the same of
//	the logs of all machine names, then of the audit of models, then of the agent_logs of
//	all sessions; numbers as 8 bytes, the highest first.
//
// The zero Head is that of an empty store, but for its hash.
type Head struct {
	Log    int64 // place of the newest record of any session; 0 if there is none
	Roster int64 // place of the newest record of any machine name
	Audit  int64 // place of the newest entry of the audit of models
	Agents int64 // place of the newest entry of any agent_log; left out of what is printed while it is 0
	Hash   session.Hash
}

// String returns the head as PLACE:HASH, such as 57.2.14:9f86d081…; the place is Log,
// Roster and Audit, and Agents unless it is 0.
func (h Head) String() string { return h.Place() + ":" + h.Hash.String() }

// Place returns the part of the head before its hash.
func (h Head) Place() string {
	place := fmt.Sprintf("%d.%d.%d", h.Log, h.Roster, h.Audit)
	if h.Agents != 0 {
		place += fmt.Sprintf(".%d", h.Agents)
	}
	return place
}

// ParseHead reads what [Head.String] returned.
func ParseHead(text string) (h Head, err error) {
	place, hash, _ := strings.Cut(text, ":")
	parts := strings.Split(place, ".")
	sum, err := hex.DecodeString(hash)
	if len(parts) < 3 || len(parts) > 4 || len(sum) != len(h.Hash) || err != nil {
		return Head{}, fmt.Errorf("%q is no head: write it as dialai store head prints it, PLACE:HASH", text)
	}
	for i, into := range []*int64{&h.Log, &h.Roster, &h.Audit, &h.Agents}[:len(parts)] {
		if *into, err = strconv.ParseInt(parts[i], 10, 64); err != nil || *into < 0 {
			return Head{}, fmt.Errorf("%q is no place in a head: write three or four numbers, such as 57.2.14", place)
		}
	}
	copy(h.Hash[:], sum)
	return h, nil
}

// Head returns the head of the store as it is now. It reads the hash of every record,
// one at a time, and checks none: [SQLite.Verify] does.
func (s *SQLite) Head(ctx context.Context) (Head, error) {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return Head{}, translate(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil { // one snapshot for all three
		return Head{}, translate(err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	r := reader{conn}
	h, err := r.places(ctx)
	if err == nil {
		h.Hash, err = r.headAt(ctx, h)
	}
	return h, translate(err)
}

// places returns the newest places, without the hash.
func (r reader) places(ctx context.Context) (h Head, err error) {
	err = r.q.QueryRowContext(ctx, `SELECT coalesce((SELECT max(id) FROM log), 0), coalesce((SELECT max(id) FROM roster_log), 0),
		coalesce((SELECT max(id) FROM llm_audit), 0), coalesce((SELECT max(id) FROM agent_log), 0)`).Scan(&h.Log, &h.Roster, &h.Audit, &h.Agents)
	return h, err
}

// headAt returns the hash that a head with those places has here.
func (r reader) headAt(ctx context.Context, at Head) (h session.Hash, err error) {
	sum := sha256.New()
	var number [8]byte
	write := func(n int64, hash []byte) {
		binary.BigEndian.PutUint64(number[:], uint64(n))
		sum.Write(number[:])
		sum.Write(hash)
	}
	for _, n := range []int64{at.Log, at.Roster, at.Audit} {
		write(n, nil)
	}
	if at.Agents != 0 {
		write(at.Agents, nil)
	}
	for _, chain := range []struct {
		table string
		to    int64
	}{{"log", at.Log}, {"roster_log", at.Roster}, {"llm_audit", at.Audit}, {"agent_log", at.Agents}} {
		var place int64
		var hash sql.RawBytes
		rows := `SELECT id, hash FROM ` + chain.table + ` NOT INDEXED WHERE id<=?1 `
		if archived, ok := map[string]string{"log": "0", "agent_log": "1"}[chain.table]; ok {
			rows += `UNION ALL SELECT place, hash FROM archived_records WHERE agents=` + archived + ` AND place<=?1 `
		}
		for err := range scan(r.q.QueryContext(ctx, rows+`ORDER BY 1`, chain.to)).into(&place, &hash) {
			if err != nil {
				return h, err
			}
			write(place, hash)
		}
	}
	sum.Sum(h[:0])
	return h, nil
}

// compareHead proves that the store holds what it held when a head was printed.
func (a *audit) compareHead(ctx context.Context, want Head) error {
	now, err := a.places(ctx)
	if err != nil {
		return err
	}
	if now.Log < want.Log || now.Roster < want.Roster || now.Audit < want.Audit || now.Agents < want.Agents {
		return differs(inHead, "head", "the store ends at %s, before %s: it was set back", now.Place(), want.Place())
	}
	hash, err := a.headAt(ctx, want)
	if err == nil && hash != want.Hash {
		return differs(inHead, "head", "up to %s the hash is %s instead of %s: records were altered, removed or replaced since", want.Place(), hash, want.Hash)
	}
	return err
}
