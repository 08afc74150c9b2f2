-- +goose Up

-- What goes with a claim, and whether it is somebody else's whom its subject has named.
ALTER TABLE claims ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE claims ADD COLUMN assigned INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE claims DROP COLUMN assigned;
ALTER TABLE claims DROP COLUMN note;
