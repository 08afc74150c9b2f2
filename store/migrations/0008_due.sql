-- +goose Up

-- By when a session is to leave its state, and when it is next to be stepped because of
-- that, for a reminder or its timer; both in ms since 1970, 0 for never. Sessions in a wait,
-- whose code is 'timer', are not among those that are stepped whenever somebody steps all.
ALTER TABLE sessions ADD COLUMN due_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN timer_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_due ON sessions (due_at, status) WHERE due_at>0;
CREATE INDEX sessions_timer ON sessions (timer_at) WHERE timer_at>0;
CREATE INDEX sessions_awake ON sessions (status) WHERE status='running' AND code<>'timer';

-- +goose Down
DROP INDEX sessions_awake;
DROP INDEX sessions_timer;
DROP INDEX sessions_due;
ALTER TABLE sessions DROP COLUMN timer_at;
ALTER TABLE sessions DROP COLUMN due_at;
