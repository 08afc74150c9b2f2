-- +goose Up

-- Sessions whose logs are in another file, and what else follows from them. It is not
-- rebuilt: the logs are not here.
CREATE TABLE archived (
    session_id TEXT PRIMARY KEY,
    row        INTEGER NOT NULL,        -- what was sessions.id
    machine    INTEGER NOT NULL,        -- machines.id
    sequence   INTEGER NOT NULL,        -- of the last event
    head       BLOB NOT NULL,           -- hash of the last record
    taught     BLOB NOT NULL,           -- a JSON array, packed
    archive    TEXT NOT NULL,           -- path of the file
    at         INTEGER NOT NULL         -- in ms since 1970
) STRICT, WITHOUT ROWID;

-- The places and hashes of their records: heads that were printed earlier cover them.
CREATE TABLE archived_records (
    agents INTEGER NOT NULL,            -- 0: of log, 1: of agent_log
    place  INTEGER NOT NULL,            -- what was the id there
    hash   BLOB NOT NULL,
    PRIMARY KEY (agents, place)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE archived_records;
DROP TABLE archived;
