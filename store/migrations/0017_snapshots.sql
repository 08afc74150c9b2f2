-- +goose Up

-- What the log of a long session was folded into up to a record, so that nobody need fold it from its
-- beginning. Nothing follows from it: whoever knows another format ignores it.
CREATE TABLE snapshots (
    session  INTEGER PRIMARY KEY,       -- sessions.id
    sequence INTEGER NOT NULL,          -- of the last event that is in it
    format   INTEGER NOT NULL,          -- of body
    head     BLOB NOT NULL,             -- the hash of the record of that event
    body     BLOB NOT NULL,             -- packed
    hash     BLOB NOT NULL              -- SHA-256 of head, session, sequence, format and what body is when it is not packed
) STRICT;

-- +goose Down
DROP TABLE snapshots;
