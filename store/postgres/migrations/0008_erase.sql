-- +goose Up

-- What one process at a time does: archiving, and erasing. It is held as long as its owner lives.
CREATE TABLE locks (
    name  text PRIMARY KEY,
    owner text NOT NULL                        -- owners.name
);

-- A row while what was erased may still stand in dead rows of tables.
CREATE TABLE erasing (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at  bigint NOT NULL                        -- in ms since 1970
);

-- Of an entry that was erased: with what is left it gives the sum that an event erased has of it. The audit of models is no chain,
-- so it is NULL else.
ALTER TABLE llm_audit ADD COLUMN hash bytea;
