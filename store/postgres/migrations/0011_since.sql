-- +goose Up

-- When a session began to wait for a human, in ms since 1970; 0 if it does not. The questions that wait are listed
-- by it. What the logs say of sessions that there are is written by the program that migrates.
ALTER TABLE sessions ADD COLUMN since bigint NOT NULL DEFAULT 0;
CREATE INDEX sessions_since ON sessions (since, id) WHERE status = 1;
