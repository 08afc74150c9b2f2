-- +goose Up

-- Who is told what happens.
CREATE TABLE webhooks (
    id            INTEGER PRIMARY KEY,
    webhook_id    TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    url           TEXT NOT NULL,
    types         TEXT NOT NULL,         -- JSON, as the next two
    machines      TEXT NOT NULL,
    include       TEXT NOT NULL,
    secret        BLOB NOT NULL,         -- sealed
    old_secret    BLOB NOT NULL,         -- sealed; signs until old_until
    old_until     INTEGER NOT NULL,
    off           TEXT NOT NULL,         -- why nothing is sent
    version       INTEGER NOT NULL,
    created_by    TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    epoch         TEXT NOT NULL,         -- of the log that the cursor is in
    cursor        INTEGER NOT NULL,      -- place in the log
    failing_since INTEGER NOT NULL DEFAULT 0,
    last_success  INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX webhooks_tenant ON webhooks (tenant, id);

-- What they are to be told. A row goes when that has arrived.
CREATE TABLE deliveries (
    id          INTEGER PRIMARY KEY,
    delivery_id TEXT NOT NULL UNIQUE,
    webhook     INTEGER NOT NULL,        -- webhooks.id
    type        TEXT NOT NULL,
    body        TEXT NOT NULL,           -- JSON
    created_at  INTEGER NOT NULL,
    next_at     INTEGER NOT NULL,
    dead_at     INTEGER NOT NULL DEFAULT 0, -- 0 while it is sent
    attempts    INTEGER NOT NULL DEFAULT 0,
    status      INTEGER NOT NULL DEFAULT 0, -- of HTTP
    error       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX deliveries_webhook ON deliveries (webhook, id);
CREATE INDEX deliveries_due ON deliveries (webhook, next_at) WHERE dead_at=0;
CREATE INDEX deliveries_dead ON deliveries (webhook, id) WHERE dead_at<>0;
CREATE INDEX deliveries_died ON deliveries (dead_at) WHERE dead_at<>0;

-- +goose Down
DROP TABLE deliveries;
DROP TABLE webhooks;
