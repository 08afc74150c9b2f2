-- +goose Up

-- What the lessons up to a place were folded into, so that nobody need fold them from the
-- beginning: of the newest three places at which a snapshot was due. Whoever knows another
-- format ignores it.
CREATE TABLE ledger_snapshots (
    id     INTEGER PRIMARY KEY,         -- of lessons: the newest that is in it
    format INTEGER NOT NULL,            -- of body
    body   BLOB NOT NULL,               -- packed
    hash   BLOB NOT NULL                -- SHA-256 of id, format and what body is when it is not packed
) STRICT;

-- +goose Down
DROP TABLE ledger_snapshots;
