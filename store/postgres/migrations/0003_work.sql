-- +goose Up

-- Which live sessions are to be carried on, and by whom. Nothing follows from it, and no log has any of
-- it: where it is wrong, a step is taken in vain, or late. A row for each live session.
CREATE TABLE work (
    session     bigint PRIMARY KEY,            -- sessions.id
    lane        int,                           -- its machine; null: nobody is to carry it on
    ready_at    timestamptz,                   -- when a step does something; null: not before a commit, or it is leased
    owner       bigint,                        -- owners.id of who has leased it
    fence       bigint NOT NULL DEFAULT 0,     -- grows with each lease
    failures    int NOT NULL DEFAULT 0,        -- of steps in a row, without a commit
    crashes     int NOT NULL DEFAULT 0,        -- of processes that had leased it in a row, without a commit
    quarantined bytea                          -- why it is handed out to nobody any more
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- Ready sessions, those apart that may have ended the process that had leased them.
CREATE INDEX work_ready ON work (lane, ready_at) WHERE owner IS NULL AND ready_at IS NOT NULL AND quarantined IS NULL AND crashes < 2;
CREATE INDEX work_suspect ON work (ready_at) WHERE owner IS NULL AND ready_at IS NOT NULL AND quarantined IS NULL AND crashes >= 2;
CREATE INDEX work_owner ON work (owner) WHERE owner IS NOT NULL;
CREATE INDEX work_quarantined ON work (session) WHERE quarantined IS NOT NULL;

ALTER TABLE owners ADD COLUMN works boolean NOT NULL DEFAULT false; -- sessions are handed out to it
