-- +goose Up

-- What tenants use of their quotas, by all processes. Whoever reads or writes any of it for a tenant holds
-- the lock of that tenant, so all that is said of one tenant is said one after the other.

-- Windows that are counted for a tenant, since the past of its sessions was read; with len 0 its sessions.
CREATE TABLE quota_windows (
    tenant bytea NOT NULL,
    len    bigint NOT NULL,                    -- in ms
    step   bigint NOT NULL,                    -- length of a slot, in ms; len itself for a window that does not slide
    parts  bigint NOT NULL,                    -- how many slots belong to the window
    PRIMARY KEY (tenant, len, step)
);

-- What was charged, by slots that are numbered from 1970 on, by the clock of the database.
CREATE TABLE quota (
    tenant bytea NOT NULL,
    len    bigint NOT NULL,
    step   bigint NOT NULL,
    slot   bigint NOT NULL,
    calls  bigint NOT NULL,
    tokens bigint NOT NULL,
    pico   bigint NOT NULL,                    -- dollars
    PRIMARY KEY (tenant, len, step, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- What calls hold that have not ended, and what those were charged as expected of which nobody has said what
-- they cost.
CREATE TABLE quota_holds (
    id         uuid PRIMARY KEY,
    tenant     bytea NOT NULL,
    session    uuid NOT NULL,
    call       bytea NOT NULL,                 -- its name; empty for one that is never asked for
    owner      text NOT NULL,                  -- owners.name of who holds it: if that is dead, it is charged
    charged    boolean NOT NULL,
    calls      bigint NOT NULL,
    tokens_in  bigint NOT NULL,
    tokens_out bigint NOT NULL,
    pico       bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX quota_holds_open ON quota_holds (tenant) WHERE NOT charged;
CREATE INDEX quota_holds_session ON quota_holds (session);

-- Whose sessions are that were started or carried on under a quota, and which have room.
CREATE TABLE quota_sessions (
    session_id uuid PRIMARY KEY,
    tenant     bytea NOT NULL,
    open       boolean NOT NULL,
    owner      text NOT NULL,                  -- owners.name of who has opened it
    at         timestamptz NOT NULL            -- when it was
);
CREATE INDEX quota_sessions_tenant ON quota_sessions (tenant, open);
