-- +goose Up

-- Payloads may be taken out of records of ended sessions: an event erased at the end of the log says
-- what such a record is now, where its hash does not. Programs that do not know that refuse the file.
-- One row from when that begins until nothing of what was there is left on pages that are free.
CREATE TABLE erasing (
    one INTEGER PRIMARY KEY CHECK (one=1),
    at  INTEGER NOT NULL                -- in ms since 1970
) STRICT;

-- +goose Down
DROP TABLE erasing;
