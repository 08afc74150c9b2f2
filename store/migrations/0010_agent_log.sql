-- +goose Up

-- What agents did about sessions, beside the log of each. It is appended to and never
-- changed, and nothing that the engine decides follows from it.
CREATE TABLE agent_log (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,           -- of sessions
    seq     INTEGER NOT NULL,           -- in the session's agent_log, from 1
    event   TEXT NOT NULL,              -- a JSON object
    hash    BLOB NOT NULL               -- SHA-256 of it and of those before it, of the same session
) STRICT;
CREATE UNIQUE INDEX agent_log_session ON agent_log (session, seq);

-- +goose Down
DROP TABLE agent_log;
