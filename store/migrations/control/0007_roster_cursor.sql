-- +goose Up

-- Up to where a webhook is seen to in the logs of machine names; -1 is where these stand when
-- that is looked at first.
ALTER TABLE webhooks ADD COLUMN roster INTEGER NOT NULL DEFAULT -1;

-- +goose Down
ALTER TABLE webhooks DROP COLUMN roster;
