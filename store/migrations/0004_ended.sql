-- +goose Up

-- Sessions that have ended, by when they last changed: a quota that meets a tenant
-- looks for the recent ones. A session enters it when it ends, so that commits of
-- sessions that run cost no more.
CREATE INDEX sessions_ended ON sessions (updated_at) WHERE status NOT IN ('running', 'needs_human');

-- +goose Down
DROP INDEX sessions_ended;
