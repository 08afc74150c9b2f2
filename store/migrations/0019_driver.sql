-- +goose Up

-- Who carries a session on by itself: 'temporal', 'none', or '' for any process that does so for its store. What the
-- logs say of sessions that there are is written by the program that migrates.
ALTER TABLE sessions ADD COLUMN driver TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN driver;
