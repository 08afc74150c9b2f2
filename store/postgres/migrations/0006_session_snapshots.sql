-- +goose Up

-- What the log of a long session was folded into up to a record, so that nobody need fold it from its
-- beginning. Nothing follows from it: whoever knows another format ignores it.
CREATE TABLE snapshots (
    session  bigint PRIMARY KEY,               -- sessions.id
    sequence bigint NOT NULL,                  -- of the last event that is in it
    format   int NOT NULL,                     -- of body
    head     bytea NOT NULL,                   -- the hash of the record of that event
    body     bytea NOT NULL,                   -- packed
    hash     bytea NOT NULL                    -- SHA-256 of head, session, sequence, format and what body is when it is not packed
);
