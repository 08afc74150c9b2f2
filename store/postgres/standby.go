package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dialai/dialai/store"
)

// A server that can only be read: a standby that follows another one, or one whose transactions only read, since
// somebody has set it so. Who writes refuses it while connecting, so that of several hosts in an address the one is
// taken that can be written to, also after another one has taken over. Who only reads (Options.Standby) looks for such
// a one, too, and takes any where there is none.

var (
	errStandby   = errors.New("the server is a standby, which can only be read")
	errOnlyReads = errors.New("the server can only be read: default_transaction_read_only is on")
	errBehind    = errors.New("it is of an older version, and the server is a standby, which can only be read")
)

// onlyReads reports whether an error says that no server could be written to.
func onlyReads(err error) bool {
	return errors.Is(err, errStandby) || errors.Is(err, errOnlyReads) || demanded(err)
}

// demanded reports whether an error says that a server is not one as the address asks for by target_session_attrs.
func demanded(err error) bool {
	return errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrStandbyConnection)
}

// readingErrorOf returns the error of opening a store whose server can only be read; ok is false if an error says something else.
func readingErrorOf(err error) (_ *readingError, ok bool) {
	for _, why := range []error{errStandby, errOnlyReads, errBehind} {
		if errors.Is(err, why) {
			return &readingError{why}, true
		}
	}
	if demanded(err) {
		return &readingError{fmt.Errorf("the server can only be read, and the address asks for another one by target_session_attrs (%w)", reason(err))}, true
	}
	return nil, false
}

// writable refuses a connection to a server that can only be read.
func writable(ctx context.Context, conn *pgconn.PgConn) error {
	results, err := conn.Exec(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE current_setting('transaction_read_only') END`).ReadAll()
	if err != nil {
		return err
	}
	switch string(results[0].Rows[0][0]) {
	case "standby":
		return errStandby
	case "on":
		return errOnlyReads
	}
	return nil
}

// A readingError says that a store was to be written whose server can only be read.
type readingError struct{ error }

func (e *readingError) Unwrap() error { return e.error }

func (e *readingError) Is(target error) bool { return target == store.ErrReadOnly }

// Advice says what to do about it.
func (e *readingError) Advice() string {
	const write = "; to write, name the primary, or all hosts, of which the one is taken that can be written to: postgres://USER@HOST1,HOST2/DATABASE"
	switch {
	case demanded(e.error):
		return "to read, leave target_session_attrs out of the address" + write
	case errors.Is(e.error, errBehind):
		return "run dialai migrate at the primary: the standby follows"
	case errors.Is(e.error, errOnlyReads):
		return "commands that only read work here; to write, ALTER DATABASE or ALTER ROLE has to RESET default_transaction_read_only"
	}
	return "commands that only read work here" + write
}
