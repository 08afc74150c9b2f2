-- +goose Up

-- One row, while nobody may write to the store: because it was copied to another one, which is used in
-- its place, or because a copy of another one into it is not finished.
CREATE TABLE copying (
    one    INTEGER PRIMARY KEY CHECK (one=1),
    frozen TEXT NOT NULL,               -- where it was copied to; '' if it was not
    source TEXT NOT NULL                -- what is copied into it; '' if nothing is
) STRICT;

-- How far each log of another store was copied into this one, so that a copy can be continued.
CREATE TABLE copied (
    part   TEXT PRIMARY KEY,
    place  INTEGER NOT NULL,            -- of the last one, in the other store
    rows   INTEGER NOT NULL,
    newest INTEGER NOT NULL             -- number that the last one has here
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE copied;
DROP TABLE copying;
