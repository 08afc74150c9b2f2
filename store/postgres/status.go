package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/dialai/dialai/session"
)

// statusQuery says what the tables are, how large, and how sessions are handed out. Relations of the schema are
// those of the log, for it is in the same one. The place is the newest that anybody has committed, whether or not
// followers may read it yet: who asks for a status because somebody writes for long is not to wait for that.
const statusQuery = `SELECT (SELECT max(version_id) FROM goose_db_version WHERE is_applied),
	(SELECT coalesce(max(place), 0) FROM log),
	(SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relkind='r' AND relnamespace=(SELECT relnamespace FROM pg_class WHERE oid=to_regclass('log'))),
	(SELECT count(*)-1 FROM pg_inherits WHERE inhparent=to_regclass('log')),
	(SELECT count(*) FROM owners WHERE works AND until>now()),
	(SELECT count(*) FROM work WHERE owner IS NOT NULL),
	(SELECT count(*) FROM work WHERE quarantined IS NOT NULL),
	ready.n, ready.lanes, ready.waited,
	(SELECT coalesce(extract(epoch FROM max(clock_timestamp()-xact_start)), 0)::float8 FROM pg_stat_activity WHERE datname=current_database() AND backend_xid IS NOT NULL AND pid<>pg_backend_pid())
	FROM (SELECT count(*) AS n, count(DISTINCT lane) AS lanes, coalesce(extract(epoch FROM now()-min(ready_at)), 0)::float8 AS waited
		FROM work WHERE owner IS NULL AND ready_at<=now() AND quarantined IS NULL AND lane IS NOT NULL) ready`

// Status says what the store is, and how much there is in it. What it costs grows with the sessions that live.
func (s *Store) Status(ctx context.Context) (is session.StoreStatus, err error) {
	w := &session.WorkStatus{}
	list, err := query(ctx, s, func(row pgx.CollectableRow) (is session.StoreStatus, err error) {
		err = row.Scan(&is.Schema, &is.Place, &is.SizeBytes, &w.Partitions, &w.Workers, &w.Leased, &w.Quarantined, &w.Ready, &w.Lanes, &w.OldestReadySeconds, &w.WritingSeconds)
		return is, err
	}, statusQuery)
	if err != nil {
		return is, err
	}
	is = list[0]
	is.Kind, is.Work = "postgres", w
	if is.Epoch, err = s.Epoch(ctx); err != nil {
		return is, err
	}
	live, err := s.Live(ctx)
	is.CountLive(live)
	return is, err
}
