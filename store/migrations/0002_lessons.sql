-- +goose Up

-- What the ledger of trust is folded from, under the row of the log that says so.
-- It follows from the logs and can be rebuilt from them.
CREATE TABLE lessons (
    id     INTEGER PRIMARY KEY,         -- log.id
    lesson TEXT NOT NULL                -- a JSON object
) STRICT;

-- How many closed rounds of a session somebody is to look at again.
ALTER TABLE sessions ADD COLUMN reviews INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_reviews ON sessions (id) WHERE reviews > 0;

-- +goose Down
DROP INDEX sessions_reviews;
ALTER TABLE sessions DROP COLUMN reviews;
DROP TABLE lessons;
