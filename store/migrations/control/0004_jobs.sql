-- +goose Up

-- Work that takes longer than a request may.
CREATE TABLE jobs (
    id          INTEGER PRIMARY KEY,
    job_id      TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    machine     TEXT NOT NULL,           -- '' for none
    request     TEXT NOT NULL,           -- JSON
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    process     TEXT NOT NULL,           -- that works at it; a job that has not ended is lost with it
    status      TEXT NOT NULL,
    started_at  INTEGER NOT NULL DEFAULT 0,
    ended_at    INTEGER NOT NULL DEFAULT 0,
    done        INTEGER NOT NULL DEFAULT 0,
    total       INTEGER NOT NULL DEFAULT 0,
    exit_code   INTEGER NOT NULL DEFAULT 0,
    code        TEXT NOT NULL DEFAULT '',
    detail      TEXT NOT NULL DEFAULT '',
    hint        TEXT NOT NULL DEFAULT '',
    result_size INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_tenant ON jobs (tenant, id);
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at<>0;
CREATE INDEX jobs_open ON jobs (created_at) WHERE ended_at=0;

-- What came of them.
CREATE TABLE results (
    job     INTEGER PRIMARY KEY,         -- jobs.id
    result  BLOB,                        -- the lines of the command
    finding BLOB                         -- JSON: what is made more of later
) STRICT;

-- +goose Down
DROP TABLE results;
DROP TABLE jobs;
