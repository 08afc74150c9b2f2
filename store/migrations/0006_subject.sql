-- +goose Up

-- What a session is about, in a few words; '' where its machine does not say.
ALTER TABLE sessions ADD COLUMN subject TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE sessions DROP COLUMN subject;
