-- +goose Up

-- Events are packed (store/internal/pack says how), and the hash of the record before stands
-- in that record alone. The rows that there are are copied afterwards, some at a time: see
-- store/repack.go; the next migration is when that is done.
ALTER TABLE log RENAME TO log_unpacked;
DROP INDEX log_session;
DROP INDEX log_decides;
CREATE TABLE log (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,           -- sessions.id
    first   INTEGER NOT NULL,           -- sequence number of the first event
    decides INTEGER,                    -- machines.id if a transition was executed
    at      INTEGER NOT NULL,           -- of the last event, in ms since 1970
    events  BLOB NOT NULL,              -- a JSON array, as it is or packed
    hash    BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX log_session ON log (session, first);
CREATE INDEX log_decides ON log (decides, id) WHERE decides IS NOT NULL;
