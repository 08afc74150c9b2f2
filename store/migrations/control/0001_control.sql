-- +goose Up

-- Which migrations made this file.
CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    sha256  TEXT NOT NULL
) STRICT;

-- Requests that are answered once. A row without a status has been begun and not ended.
CREATE TABLE receipts (
    id       INTEGER PRIMARY KEY,
    key      BLOB NOT NULL UNIQUE,       -- SHA-256 of whose request it is
    body     BLOB NOT NULL,              -- SHA-256
    at       INTEGER NOT NULL,           -- in ms since 1970, as all times
    process  TEXT NOT NULL,              -- that has begun it
    turn     INTEGER NOT NULL,           -- how often it was begun
    status   INTEGER,
    location TEXT NOT NULL DEFAULT '',
    etag     TEXT NOT NULL DEFAULT '',
    answer   BLOB,
    omitted  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX receipts_ended ON receipts (at) WHERE status IS NOT NULL;

-- Who did what: a chain of hashes for each process, the first record of which follows the
-- newest one that there was.
CREATE TABLE audit (
    id       INTEGER PRIMARY KEY,
    process  TEXT NOT NULL,
    sequence INTEGER NOT NULL,           -- in the chain, from 1
    tenant   TEXT NOT NULL,
    entry    TEXT NOT NULL,              -- JSON
    hash     BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX audit_process ON audit (process, sequence);
CREATE INDEX audit_tenant ON audit (tenant, id);

CREATE TABLE keys (
    id         INTEGER PRIMARY KEY,
    key_id     TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL,            -- SHA-256 of the credential
    tenant     TEXT NOT NULL,
    grants     TEXT NOT NULL,            -- JSON
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,         -- 0 for never
    revoked_at INTEGER NOT NULL,         -- 0 for not revoked
    last_used  INTEGER NOT NULL          -- the hour, 0 for never
) STRICT;
CREATE INDEX keys_tenant ON keys (tenant, id);

-- Published machines: a row for each name, and one for each version.
CREATE TABLE machines (
    id     INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    newest INTEGER NOT NULL,             -- version
    UNIQUE (tenant, name)
) STRICT;
CREATE INDEX machines_tenant ON machines (tenant, id);

CREATE TABLE versions (
    id         INTEGER PRIMARY KEY,
    machine    INTEGER NOT NULL,         -- machines.id
    version    INTEGER NOT NULL,         -- from 1
    digest     TEXT NOT NULL,
    definition TEXT NOT NULL,
    by         TEXT NOT NULL,
    at         INTEGER NOT NULL,
    UNIQUE (machine, version)
) STRICT;
CREATE INDEX versions_digest ON versions (machine, digest, version);

CREATE TABLE claims (
    id            INTEGER PRIMARY KEY,
    tenant        TEXT NOT NULL,
    question_id   TEXT NOT NULL,
    subject       TEXT NOT NULL,
    specialist_id TEXT NOT NULL,
    at            INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    UNIQUE (tenant, question_id)
) STRICT;
CREATE INDEX claims_expire ON claims (expires_at);

-- +goose Down
DROP TABLE claims;
DROP TABLE versions;
DROP TABLE machines;
DROP TABLE keys;
DROP TABLE audit;
DROP TABLE receipts;
DROP TABLE migrations;
