-- +goose Up

-- Who is signed in at a page, and tickets for that.
CREATE TABLE sign_ins (
    id         INTEGER PRIMARY KEY,
    hash       BLOB NOT NULL UNIQUE, -- of the secret of whoever has it
    sealed     TEXT NOT NULL,        -- who that is, sealed with the secret
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sign_ins_expires ON sign_ins (expires_at);

-- +goose Down
DROP TABLE sign_ins;
