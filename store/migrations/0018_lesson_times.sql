-- +goose Up

-- When the record of a lesson was written, in ms since 1970: the record itself may be in an archive. 0 where it was
-- archived before this was kept.
ALTER TABLE lessons ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
UPDATE lessons SET at=coalesce((SELECT at FROM log WHERE log.id=lessons.id), 0);

-- +goose Down
ALTER TABLE lessons DROP COLUMN at;
