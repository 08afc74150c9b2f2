-- +goose Up

-- Every record was copied.
DROP TABLE log_unpacked;
