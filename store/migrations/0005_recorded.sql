-- +goose Up

-- The migrations that made this file, each as it was when it ran: a program whose own
-- differ refuses the file.
CREATE TABLE migrations (
    version INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    sha256  TEXT NOT NULL               -- of the migration's file, in hex
) STRICT;

-- Places of the log that hold no record, because the end of a log was cut off and
-- somebody took it as it is. All other places up to the newest hold one.
CREATE TABLE gaps (
    place INTEGER PRIMARY KEY,          -- the first one, a log.id
    last  INTEGER NOT NULL
) STRICT;

-- The audit of models is one chain: SHA-256 over the hash of the row before, the
-- session's id and the entry, as in a log.
ALTER TABLE llm_audit ADD COLUMN hash BLOB NOT NULL DEFAULT x'';

-- +goose Down
ALTER TABLE llm_audit DROP COLUMN hash;
DROP TABLE gaps;
DROP TABLE migrations;
