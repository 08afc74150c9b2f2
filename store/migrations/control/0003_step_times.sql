-- +goose Up

-- For how long sessions were stepped that take long, since they were resumed for the last time.
CREATE TABLE step_times (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    session_id TEXT NOT NULL,
    resumes    INTEGER NOT NULL,
    msec       INTEGER NOT NULL,
    UNIQUE (tenant, session_id)
) STRICT;

-- +goose Down
DROP TABLE step_times;
