-- +goose Up

-- The truth: one append-only log for each session. A row is one commit: its
-- events, the hash of the row before, and its own hash over both. Rows are
-- appended in commit order, so their ids order all commits of the store.
CREATE TABLE log (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,           -- sessions.id
    first   INTEGER NOT NULL,           -- sequence number of the first event
    decides INTEGER,                    -- machines.id if a transition was executed
    at      INTEGER NOT NULL,           -- of the last event, in ms since 1970
    events  TEXT NOT NULL,              -- a JSON array
    prev    BLOB NOT NULL,
    hash    BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX log_session ON log (session, first);
CREATE INDEX log_decides ON log (decides, id) WHERE decides IS NOT NULL;

-- The other truth: one log for each machine name, of its registered specialists
-- and its champions.
CREATE TABLE roster_log (
    id      INTEGER PRIMARY KEY,
    machine INTEGER NOT NULL,           -- machines.id
    first   INTEGER NOT NULL,
    events  TEXT NOT NULL,
    prev    BLOB NOT NULL,
    hash    BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX roster_log_machine ON roster_log (machine, first);

-- Definitions are stored once, under the hash of their content.
CREATE TABLE definitions (
    id             INTEGER PRIMARY KEY,
    machine_digest TEXT NOT NULL UNIQUE,
    machine        INTEGER NOT NULL,
    definition     TEXT NOT NULL
) STRICT;

-- Names and versions of what belongs to a machine name.
CREATE TABLE machines (
    id            INTEGER PRIMARY KEY,
    machine_name  TEXT NOT NULL UNIQUE,
    trust_version INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Everything below follows from the logs and can be rebuilt from them.

CREATE TABLE sessions (
    id             INTEGER PRIMARY KEY,
    session_id     TEXT NOT NULL UNIQUE,
    machine        INTEGER NOT NULL,
    machine_digest TEXT NOT NULL,
    status         TEXT NOT NULL,
    current_state  TEXT NOT NULL,
    round          INTEGER NOT NULL,
    attempt        INTEGER NOT NULL,
    sequence       INTEGER NOT NULL,    -- of the last event
    transitions    INTEGER NOT NULL,
    code           TEXT NOT NULL,
    reason         TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    calls          INTEGER NOT NULL,
    input_tokens   INTEGER NOT NULL,
    output_tokens  INTEGER NOT NULL,
    cost_pico_usd  INTEGER NOT NULL,
    head           BLOB NOT NULL        -- hash of the last record
) STRICT;
CREATE INDEX sessions_live ON sessions (id) WHERE status IN ('running', 'needs_human');

CREATE TABLE alignment (
    machine       INTEGER NOT NULL,
    specialist_id TEXT NOT NULL,
    state         TEXT NOT NULL,        -- '' for the machine
    matching      INTEGER NOT NULL,
    total         INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    PRIMARY KEY (machine, specialist_id, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE exemplars (
    id       INTEGER PRIMARY KEY,
    machine  INTEGER NOT NULL,
    state    TEXT NOT NULL,
    exemplar TEXT NOT NULL
) STRICT;
CREATE INDEX exemplars_state ON exemplars (machine, state, id);

CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE secrets;
DROP TABLE exemplars;
DROP TABLE alignment;
DROP TABLE sessions;
DROP TABLE machines;
DROP TABLE definitions;
DROP TABLE roster_log;
DROP TABLE log;
