-- +goose Up

-- What a server must remember. All who write do so in turn, under an advisory lock: so ids are in the order
-- in which rows become visible, and whoever reads after an id misses none.
--
-- Texts are bytea: text refuses U+0000, which whoever calls a server may say. Moments are ms since 1970, 0
-- for never, but for those of owners and commits, which are the clock of the database.

-- One row, as that of sessions. seal is made of the key under which secrets are sealed here.
CREATE TABLE meta (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    store_id   uuid NOT NULL DEFAULT gen_random_uuid(),
    epoch      uuid NOT NULL DEFAULT gen_random_uuid(),
    seal       bytea,
    min_reader int NOT NULL DEFAULT 1,
    min_writer int NOT NULL DEFAULT 1
);

-- Processes, and what one of them at a time does, as those of sessions.
CREATE TABLE owners (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  text NOT NULL UNIQUE,
    until timestamptz NOT NULL,
    about text NOT NULL
);
CREATE TABLE locks (
    name  text PRIMARY KEY,
    owner text NOT NULL
);

-- The newest commit of each process: where the answer to one was lost, this says whether it happened.
CREATE TABLE commits (
    writer uuid PRIMARY KEY,
    number bigint NOT NULL,
    at     timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Requests that are answered once. A row without a status has been begun and not ended.
CREATE TABLE receipts (
    key      bytea PRIMARY KEY,                -- SHA-256 of whose request it is
    body     bytea NOT NULL,                   -- SHA-256
    at       bigint NOT NULL,
    process  text NOT NULL,                    -- that has begun it
    turn     bigint NOT NULL,                  -- how often it was begun
    status   int,
    location bytea NOT NULL DEFAULT '',
    etag     bytea NOT NULL DEFAULT '',
    answer   bytea,
    omitted  boolean NOT NULL DEFAULT false
);
CREATE INDEX receipts_ended ON receipts (at) WHERE status IS NOT NULL;
CREATE INDEX receipts_open ON receipts (process) WHERE status IS NULL;

-- Who did what: a chain of hashes for each process, the first record of which follows the newest one that
-- there was. Ids have no gaps.
CREATE TABLE audit (
    id       bigint PRIMARY KEY,
    process  text NOT NULL,
    sequence bigint NOT NULL,                  -- in the chain, from 1
    tenant   bytea NOT NULL,
    entry    bytea NOT NULL,                   -- JSON
    hash     bytea NOT NULL,
    UNIQUE (process, sequence)
);
CREATE INDEX audit_tenant ON audit (tenant, id);

CREATE TABLE keys (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id     bytea NOT NULL UNIQUE,
    name       bytea NOT NULL,
    hash       bytea NOT NULL,                 -- SHA-256 of the credential
    tenant     bytea NOT NULL,
    grants     bytea NOT NULL,                 -- JSON
    created_by bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    revoked_at bigint NOT NULL,
    last_used  bigint NOT NULL                 -- the hour
);
CREATE INDEX keys_tenant ON keys (tenant, id);

-- Published machines: a row for each name, and one for each version.
CREATE TABLE machines (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bytea NOT NULL,
    name   bytea NOT NULL,
    newest bigint NOT NULL,                    -- version
    UNIQUE (tenant, name)
);
CREATE INDEX machines_tenant ON machines (tenant, id);
CREATE TABLE versions (
    machine    bigint NOT NULL,                -- machines.id
    version    bigint NOT NULL,                -- from 1
    digest     bytea NOT NULL,
    definition bytea NOT NULL,
    by         bytea NOT NULL,
    at         bigint NOT NULL,
    PRIMARY KEY (machine, version)
);
CREATE INDEX versions_digest ON versions (machine, digest, version);

CREATE TABLE claims (
    tenant        bytea NOT NULL,
    question_id   bytea NOT NULL,
    subject       bytea NOT NULL,
    specialist_id bytea NOT NULL,
    at            bigint NOT NULL,
    expires_at    bigint NOT NULL,
    note          bytea NOT NULL,
    assigned      boolean NOT NULL,
    PRIMARY KEY (tenant, question_id)
);
CREATE INDEX claims_expire ON claims (expires_at);

-- For how long sessions were stepped that take long, since they were resumed for the last time.
CREATE TABLE step_times (
    tenant     bytea NOT NULL,
    session_id bytea NOT NULL,
    resumes    int NOT NULL,
    msec       bigint NOT NULL,
    PRIMARY KEY (tenant, session_id)
);

-- Where variables with tokens may be sent that nothing in the settings of a server binds.
CREATE TABLE bindings (
    variable bytea PRIMARY KEY,
    host     bytea NOT NULL,
    at       bigint NOT NULL
);

-- Who is signed in at a page, and tickets for that.
CREATE TABLE sign_ins (
    hash       bytea PRIMARY KEY,              -- of the secret of whoever has it
    sealed     bytea NOT NULL,                 -- who that is, sealed with the secret
    seen_at    bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX sign_ins_expires ON sign_ins (expires_at);

-- Who is told what happens, and what they are to be told. A delivery goes when it has arrived.
CREATE TABLE webhooks (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id    bytea NOT NULL UNIQUE,
    tenant        bytea NOT NULL,
    url           bytea NOT NULL,
    types         bytea NOT NULL,              -- JSON, as the next two
    machines      bytea NOT NULL,
    include       bytea NOT NULL,
    secret        bytea NOT NULL,              -- sealed
    old_secret    bytea NOT NULL,              -- sealed; signs until old_until
    old_until     bigint NOT NULL,
    off           bytea NOT NULL,              -- why nothing is sent
    version       bigint NOT NULL,
    created_by    bytea NOT NULL,
    created_at    bigint NOT NULL,
    epoch         bytea NOT NULL,              -- of the log that the cursor is in
    cursor        bigint NOT NULL,             -- place in the log
    roster        bigint NOT NULL,             -- place in the logs of machine names; -1 is where these stand
    failing_since bigint NOT NULL DEFAULT 0,
    last_success  bigint NOT NULL DEFAULT 0,
    last_error    bytea NOT NULL DEFAULT ''
);
CREATE INDEX webhooks_tenant ON webhooks (tenant, id);
CREATE TABLE deliveries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id bytea NOT NULL UNIQUE,
    webhook     bigint NOT NULL,               -- webhooks.id
    type        bytea NOT NULL,
    body        bytea NOT NULL,                -- JSON
    created_at  bigint NOT NULL,
    next_at     bigint NOT NULL,
    dead_at     bigint NOT NULL DEFAULT 0,     -- 0 while it is sent
    attempts    int NOT NULL DEFAULT 0,
    status      int NOT NULL DEFAULT 0,        -- of HTTP
    error       bytea NOT NULL DEFAULT ''
);
CREATE INDEX deliveries_webhook ON deliveries (webhook, id);
CREATE INDEX deliveries_due ON deliveries (webhook, next_at) WHERE dead_at = 0;
CREATE INDEX deliveries_dead ON deliveries (webhook, id) WHERE dead_at <> 0;
CREATE INDEX deliveries_died ON deliveries (dead_at) WHERE dead_at <> 0;

-- Work that takes longer than a request may, and what came of it.
CREATE TABLE jobs (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id      bytea NOT NULL UNIQUE,
    tenant      bytea NOT NULL,
    kind        bytea NOT NULL,
    machine     bytea NOT NULL,                -- '' for none
    request     bytea NOT NULL,                -- JSON
    created_by  bytea NOT NULL,
    created_at  bigint NOT NULL,
    process     text NOT NULL,                 -- that works at it; a job that has not ended is lost with it
    status      text NOT NULL,
    started_at  bigint NOT NULL DEFAULT 0,
    ended_at    bigint NOT NULL DEFAULT 0,
    done        bigint NOT NULL DEFAULT 0,
    total       bigint NOT NULL DEFAULT 0,
    exit_code   int NOT NULL DEFAULT 0,
    code        bytea NOT NULL DEFAULT '',
    detail      bytea NOT NULL DEFAULT '',
    hint        bytea NOT NULL DEFAULT '',
    result_size bigint NOT NULL DEFAULT 0
);
CREATE INDEX jobs_tenant ON jobs (tenant, id);
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at <> 0;
CREATE INDEX jobs_open ON jobs (created_at) WHERE ended_at = 0;
CREATE TABLE results (
    job     bigint PRIMARY KEY,                -- jobs.id
    result  bytea,                             -- the lines of the command
    finding bytea                              -- JSON: what is made more of later
);
