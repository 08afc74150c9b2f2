-- +goose Up

-- What lessons up to a place were folded into, so that nobody need fold them from the
-- beginning: of each scope the newest three. Whoever knows another format ignores it.
CREATE TABLE ledger_snapshots (
    id     INTEGER PRIMARY KEY,
    scope  TEXT NOT NULL,               -- which lessons are in it: '' for all
    place  INTEGER NOT NULL,            -- of lessons: the newest that is in it
    format INTEGER NOT NULL,            -- of body
    body   BLOB NOT NULL,               -- packed
    hash   BLOB NOT NULL                -- SHA-256 of scope, place, format and what body is when it is not packed
) STRICT;
CREATE UNIQUE INDEX ledger_snapshots_place ON ledger_snapshots (scope, place);

-- +goose Down
DROP TABLE ledger_snapshots;
