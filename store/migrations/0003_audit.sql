-- +goose Up

-- How models were asked, attempt by attempt. It is appended to and never changed,
-- and nothing follows from it.
CREATE TABLE llm_audit (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,           -- '' for a call of no session
    entry      TEXT NOT NULL            -- a JSON object
) STRICT;
CREATE INDEX llm_audit_session ON llm_audit (session_id, id);

-- +goose Down
DROP TABLE llm_audit;
