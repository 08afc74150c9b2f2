-- +goose Up

-- What logs up to a place were folded into, so that nobody need fold them from the beginning: of each scope
-- the newest three. Whoever knows another format ignores it.
CREATE TABLE ledger_snapshots (
    scope  bytea NOT NULL,                     -- what is in it: '' for all lessons
    place  bigint NOT NULL,                    -- of the newest record or lesson that is in it
    format int NOT NULL,                       -- of body
    body   bytea NOT NULL,                     -- packed
    hash   bytea NOT NULL,                     -- SHA-256 of scope, place, format and what body is when it is not packed
    PRIMARY KEY (scope, place)
);
