-- +goose Up

-- One row, while nobody may write: because it was copied with its store to another place, which is used
-- in its place.
CREATE TABLE copying (
    one    INTEGER PRIMARY KEY CHECK (one=1),
    frozen TEXT NOT NULL,               -- where the store was copied to
    source TEXT NOT NULL                -- '', as in a store that nothing is copied into
) STRICT;

-- +goose Down
DROP TABLE copying;
