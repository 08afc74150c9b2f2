-- +goose Up

-- The rules of this schema that are expensive to change:
--
-- * The columns sequence, head, current_state, round, updated_at and those of costs of sessions are in no
--   index, nor in the condition of one: then an update that changes nothing else stays on its page and
--   touches no index (HOT), as nearly all do.
-- * What outsiders wrote is bytea: text refuses U+0000, which a model may say.
-- * The log is in partitions by the number of the session, each of 2^20. Numbers grow with the start
--   of sessions, so a partition ages as a whole. The next one is made before it is needed.

-- One row: what the store is. A program that knows an older format than min_reader must not read it, nor
-- one with an older format than min_writer write.
CREATE TABLE meta (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    store_id   uuid NOT NULL DEFAULT gen_random_uuid(),
    epoch      uuid NOT NULL DEFAULT gen_random_uuid(), -- of its places: another one once it was restored
    secret     bytea NOT NULL,
    min_reader int NOT NULL DEFAULT 1,
    min_writer int NOT NULL DEFAULT 1
);

-- Places of records, in all logs. One is drawn after the row of the session is locked: what was
-- acknowledged before another began has the lower place. Places may be left out.
CREATE SEQUENCE place;

CREATE TABLE machines (
    id             int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine_name   text NOT NULL UNIQUE,
    trust_version  bigint NOT NULL DEFAULT 0,  -- grows with each record that teaches
    roster_version bigint NOT NULL DEFAULT 0   -- sequence number of the last event of its roster
);

CREATE TABLE definitions (
    id             int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine_digest text NOT NULL UNIQUE,
    machine        int NOT NULL,
    definition     bytea NOT NULL
);

CREATE TABLE sessions (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id    uuid NOT NULL UNIQUE,
    machine       int NOT NULL,
    definition    int NOT NULL,
    created_at    bigint NOT NULL,             -- moments are ms since 1970, 0 for never
    started_by    bytea NOT NULL,
    status        smallint NOT NULL,           -- below 2 it is live
    code          text NOT NULL,
    reason        bytea NOT NULL,
    reviews       int NOT NULL,
    subject       bytea NOT NULL,
    due_at        bigint NOT NULL,
    timer_at      bigint NOT NULL,
    ended_at      bigint,                      -- updated_at of one that has ended
    current_state text NOT NULL,
    round         int NOT NULL,
    attempt       int NOT NULL,
    sequence      bigint NOT NULL,             -- of the last event
    transitions   int NOT NULL,
    updated_at    bigint NOT NULL,
    calls         bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_pico_usd bigint NOT NULL,
    head          bytea NOT NULL               -- hash of the last record
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX sessions_live ON sessions (id) WHERE status < 2;
CREATE INDEX sessions_machine ON sessions (machine, id);
CREATE INDEX sessions_ended ON sessions (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_reviews ON sessions (id) WHERE reviews > 0;
CREATE INDEX sessions_due ON sessions (due_at, id) WHERE due_at > 0;
CREATE INDEX sessions_timer ON sessions (timer_at, id) WHERE timer_at > 0;

-- The truth: one append-only log for each session. A row is one commit: its events, packed, and the hash
-- over the hash of the record before and them.
CREATE TABLE log (
    place   bigint NOT NULL DEFAULT nextval('place'),
    session bigint NOT NULL,                   -- sessions.id
    first   bigint NOT NULL,                   -- sequence number of the first event
    decides int,                               -- machines.id if a transition was executed
    at      bigint NOT NULL,                   -- of the last event
    events  bytea NOT NULL,
    hash    bytea NOT NULL
) PARTITION BY RANGE (session);
ALTER TABLE log ALTER COLUMN events SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX log_session ON log (session, first);
CREATE INDEX log_place ON log (place);
CREATE INDEX log_decides ON log (decides, place) WHERE decides IS NOT NULL;
CREATE TABLE log_0 PARTITION OF log FOR VALUES FROM (MINVALUE) TO (1048576);
CREATE TABLE log_default PARTITION OF log DEFAULT;

-- The other truth: one log for each machine name, of its registered specialists and its champions.
CREATE TABLE roster_log (
    place   bigint PRIMARY KEY DEFAULT nextval('place'),
    machine int NOT NULL,
    first   bigint NOT NULL,
    events  bytea NOT NULL,
    hash    bytea NOT NULL,
    UNIQUE (machine, first)
);

-- What follows from the logs: lessons under the place of their record, how often specialists agreed
-- with humans, and decisions of humans that models are shown.
CREATE TABLE lessons (
    place   bigint PRIMARY KEY,
    machine int NOT NULL,
    session bigint NOT NULL,
    at      bigint NOT NULL,
    lesson  bytea NOT NULL
);
CREATE TABLE alignment (
    machine       int NOT NULL,
    specialist_id text NOT NULL,
    state         text NOT NULL,               -- '' for the machine
    matching      bigint NOT NULL,
    total         bigint NOT NULL,
    updated_at    bigint NOT NULL,
    PRIMARY KEY (machine, specialist_id, state)
);
CREATE TABLE exemplars (
    place    bigint PRIMARY KEY,
    machine  int NOT NULL,
    state    text NOT NULL,
    exemplar bytea NOT NULL                    -- empty once the ruling was taken back
);
CREATE INDEX exemplars_state ON exemplars (machine, state, place);

-- Processes, as others see them: one lives until the moment by the clock of the database.
CREATE TABLE owners (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  text NOT NULL UNIQUE,
    until timestamptz NOT NULL,
    about text NOT NULL
);

-- How models were asked, and what agents did about sessions. Nothing follows from either.
CREATE TABLE llm_audit (
    id         bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    session_id text NOT NULL,                  -- '' for a call of no session
    entry      bytea NOT NULL
);
CREATE INDEX llm_audit_session ON llm_audit (session_id, id);
CREATE TABLE agent_log (
    session bigint NOT NULL,                   -- sessions.id
    seq     bigint NOT NULL,                   -- in the session's agent_log, from 1
    event   bytea NOT NULL,
    hash    bytea NOT NULL,                    -- over it and those before it, of the same session
    PRIMARY KEY (session, seq)
);
