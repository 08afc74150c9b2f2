-- +goose Up

-- Why nobody may write to the store, and under which name of its places readers know it.
ALTER TABLE meta
    ADD COLUMN frozen text,                    -- where it was copied to; NULL if it was not
    ADD COLUMN source text,                    -- what is copied into it; NULL if nothing is
    ADD COLUMN places bytea;                   -- from which its epoch follows, if it is a copy; NULL if it is not

-- Refuses whoever writes to a table. Tables have it as a trigger while they are not to be written; who
-- copies into them has set dialai.copies.
-- +goose StatementBegin
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    is_frozen text;
    is_source text;
BEGIN
    IF current_setting('dialai.copies', true) = 'on' THEN
        RETURN NULL;
    END IF;
    SELECT frozen, source INTO is_frozen, is_source FROM meta;
    IF is_source IS NOT NULL THEN
        RAISE EXCEPTION 'a copy of % into it is not finished', is_source USING ERRCODE = 'DI001', DETAIL = is_source, HINT = 'copy';
    ELSIF is_frozen IS NOT NULL THEN
        RAISE EXCEPTION 'it was copied to %, which is used in its place', is_frozen USING ERRCODE = 'DI001', DETAIL = is_frozen;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- How far each log of another store was copied into this one, so that a copy can be continued.
CREATE TABLE copied (
    part   text PRIMARY KEY,
    place  bigint NOT NULL,                    -- of the last one, in the other store
    rows   bigint NOT NULL,
    newest bigint NOT NULL                     -- place or number that the last one has here
);

-- Entries of agents in the order in which they came, as a file has them.
CREATE SEQUENCE agent_place;
ALTER TABLE agent_log ADD COLUMN place bigint NOT NULL DEFAULT nextval('agent_place');
CREATE INDEX agent_log_place ON agent_log (place);

-- Sessions whose logs are in another file, and what else follows from them. It is not
-- rebuilt: the logs are not here.
CREATE TABLE archived (
    session_id uuid PRIMARY KEY,
    row        bigint NOT NULL,                -- what was sessions.id
    machine    int NOT NULL,
    sequence   bigint NOT NULL,                -- of the last event
    head       bytea NOT NULL,                 -- hash of the last record
    taught     bytea NOT NULL,                 -- a JSON array, packed
    archive    text NOT NULL,                  -- path of the file
    at         bigint NOT NULL                 -- in ms since 1970
);

-- The places and hashes of their records.
CREATE TABLE archived_records (
    agents int NOT NULL,                       -- 0: of log, 1: of agent_log
    place  bigint NOT NULL,
    hash   bytea NOT NULL,
    PRIMARY KEY (agents, place)
);
