-- +goose Up

-- The timeline of the server that has written last: a standby that takes over, and a server that was restored,
-- has another one. The places that the one before may have given out, and this one does not know of, are left
-- out then. NULL before anybody has connected.
ALTER TABLE meta ADD COLUMN timeline text;

-- How far the clock of a process is ahead of the server's.
ALTER TABLE owners ADD COLUMN skew_msec bigint NOT NULL DEFAULT 0;
