-- +goose Up

-- Who has started a session, as its first event says: former versions wrote the subject
-- alone. '' where it says nothing.
ALTER TABLE sessions ADD COLUMN started_by TEXT NOT NULL DEFAULT '';
UPDATE sessions SET started_by=coalesce((SELECT CASE WHEN json_valid(events) THEN CASE json_type(events, '$[0].data.actor')
    WHEN 'object' THEN json_extract(events, '$[0].data.actor.subject')
    WHEN 'text' THEN json_extract(events, '$[0].data.actor') END END FROM log WHERE session=sessions.id AND first=1), '');
CREATE INDEX sessions_started ON sessions (started_by, status) WHERE started_by<>'';

-- +goose Down
DROP INDEX sessions_started;
ALTER TABLE sessions DROP COLUMN started_by;
