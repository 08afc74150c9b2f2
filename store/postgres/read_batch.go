package postgres

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/specialist"
	"github.com/dialai/dialai/store/internal/fold"
)

// Many sessions are read by three queries: where they stand, the snapshots of those that are not cached as they
// stand there, and the records behind these. What a session has of them is folded like that of one which is read alone.

// mostBehind is how many events a session has at most behind its snapshot that is read with others.
const mostBehind = 256

// LoadBatch implements [session.BatchLoader].
func (s *Store) LoadBatch(ctx context.Context, programs *session.Programs, ids []specialist.SessionID) (map[specialist.SessionID]*session.Session, error) {
	sessions := make(map[specialist.SessionID]*session.Session, len(ids))
	wanted := make([][16]byte, len(ids))
	for i, id := range ids {
		wanted[i] = id
	}
	all, err := query(ctx, s, scanStanding, standingQuery+`s.session_id=ANY($1)`, wanted)
	if err != nil {
		return nil, err
	}
	unknown := map[int64]*fold.Log{}
	var rows []int64
	for i := range all {
		at := &all[i]
		if sessions[at.id] = s.current(at); sessions[at.id] == nil {
			delete(sessions, at.id)
			rows = append(rows, at.row)
			unknown[at.row] = &fold.Log{ID: at.id, Sequence: at.sequence, Head: at.head,
				Definition: func(digest string) ([]byte, error) { return s.definition(ctx, digest) }}
		}
	}
	if len(rows) == 0 {
		return sessions, nil
	}
	if err := s.fill(ctx, unknown, rows); err != nil {
		return nil, err
	}
	for i := range all {
		log := unknown[all[i].row]
		if log == nil || log.Records == nil {
			continue
		}
		if folded, err := log.Session(programs); err == nil {
			s.loaded(&all[i], folded, log)
			sessions[all[i].id] = folded
		}
	}
	return sessions, ctx.Err()
}

// A behind is a record of one of many sessions.
type behind struct {
	row int64
	session.StoredRecord
	problem error
}

// fill reads the snapshots of sessions, and the records behind them, unless there are too many.
func (s *Store) fill(ctx context.Context, logs map[int64]*fold.Log, rows []int64) error {
	kept, err := query(ctx, s, scanKept, `SELECT session, sequence, format, head, body, hash FROM snapshots WHERE session=ANY($1)`, rows)
	if err != nil {
		return err
	}
	for i := range kept {
		log := logs[kept[i].row]
		log.Kept = kept[i].read(log.ID)
	}
	var from, to []int64
	rows = rows[:0]
	for row, log := range logs {
		start := int64(0)
		if log.Kept != nil && log.Kept.Sequence <= log.Sequence {
			start = log.Kept.Sequence
		}
		if log.Sequence-start <= mostBehind {
			rows, from, to = append(rows, row), append(from, start), append(to, log.Sequence)
		}
	}
	records, err := query(ctx, s, func(row pgx.CollectableRow) (r behind, err error) {
		var hash []byte
		err = row.Scan(&r.row, &r.First, &r.Events, &hash)
		if copy(r.Hash[:], hash); err == nil {
			r.Events, r.problem = fold.Unpack(nil, r.Events, r.First)
		}
		return r, err
	}, `SELECT x.session, l.first, l.events, l.hash FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS x(session, start, until)
		JOIN LATERAL (SELECT first, events, hash FROM log WHERE session=x.session AND first<=x.until AND first>=
			coalesce((SELECT max(first) FROM log WHERE session=x.session AND first<=x.start), 0)) l ON true ORDER BY x.session, l.first`, rows, from, to)
	if err != nil {
		return err
	}
	for len(records) > 0 {
		n := 1
		for n < len(records) && records[n].row == records[0].row {
			records[n].Prev = records[n-1].Hash
			n++
		}
		logs[records[0].row].Records = read(records[:n:n])
		records = records[n:]
	}
	return nil
}

// read yields records from the one that holds an event on.
func read(list []behind) func(from int64) iter.Seq2[session.StoredRecord, error] {
	return func(from int64) iter.Seq2[session.StoredRecord, error] {
		return func(yield func(session.StoredRecord, error) bool) {
			for i := range list {
				if i+1 < len(list) && list[i+1].First <= from {
					continue
				}
				if !yield(list[i].StoredRecord, list[i].problem) || list[i].problem != nil {
					return
				}
			}
		}
	}
}

var _ session.BatchLoader = (*Store)(nil)
