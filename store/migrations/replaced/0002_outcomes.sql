-- +goose Up

-- What human decisions taught the ledger, under the row of the log that says so.
-- It follows from the logs and can be rebuilt from them.
CREATE TABLE outcomes (
    id      INTEGER PRIMARY KEY,        -- log.id
    outcome TEXT NOT NULL               -- a JSON object
) STRICT;

-- +goose Down
DROP TABLE outcomes;
