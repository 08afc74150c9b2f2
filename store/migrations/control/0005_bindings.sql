-- +goose Up

-- Where variables with tokens may be sent that nothing in the settings of a server binds: the
-- first host to which a machine had each sent.
CREATE TABLE bindings (
    id       INTEGER PRIMARY KEY,
    variable TEXT NOT NULL UNIQUE,
    host     TEXT NOT NULL,
    at       INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE bindings;
