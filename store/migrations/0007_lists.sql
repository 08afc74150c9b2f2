-- +goose Up

-- Sessions by what lists filter by, each in the order of creation. A status changes when a
-- session stands still or goes on; what changes with every commit is in none of them: the
-- states are those in which sessions stand still.
DROP INDEX sessions_live;
CREATE INDEX sessions_status ON sessions (status);
CREATE INDEX sessions_machine ON sessions (machine, status);
CREATE INDEX sessions_state ON sessions (current_state, status, machine_digest) WHERE status<>'running';
CREATE INDEX sessions_code ON sessions (code) WHERE code<>'';
CREATE INDEX sessions_subject ON sessions (subject) WHERE subject<>'';

-- +goose Down
DROP INDEX sessions_subject;
DROP INDEX sessions_code;
DROP INDEX sessions_state;
DROP INDEX sessions_machine;
DROP INDEX sessions_status;
CREATE INDEX sessions_live ON sessions (id) WHERE status IN ('running', 'needs_human');
