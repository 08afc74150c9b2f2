-- +goose Up

-- What one process at a time does, such as carrying all sessions on: it holds the lock as long as the owner
-- lives in whose name it took it.
CREATE TABLE locks (
    name  text PRIMARY KEY,
    owner text NOT NULL                        -- owners.name
);
