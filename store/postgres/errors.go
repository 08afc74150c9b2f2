package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store"
	"github.com/dialai/dialai/store/internal/transfer"
)

// An unreachableError says that no connection could be made, or that it broke, and that what was asked for has
// not happened. It is a [session.ErrBusy]: to try again later may help.
type unreachableError struct {
	address address
	err     error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("%s cannot be reached: %v", e.address, reason(e.err))
}

// Advice says what to do about it.
func (e *unreachableError) Advice() string {
	if onlyReads(e.err) {
		return (&readingError{e.err}).Advice()
	}
	return "check that the server runs and may be reached from here: psql with the same address; what was recorded before is there, if it does not say otherwise"
}

func (e *unreachableError) Unwrap() error { return e.err }

func (e *unreachableError) Is(target error) bool { return target == session.ErrBusy }

// A fullError says that a disk, or the memory, of the server is full.
type fullError struct {
	address address
	err     *pgconn.PgError
}

func (e *fullError) Error() string {
	return fmt.Sprintf("%v (that of the server of %s: %s)", store.ErrFull, e.address, e.err.Message)
}

func (e *fullError) Unwrap() []error { return []error{store.ErrFull, e.err} }

// Public says it to whoever need not know where the store is.
func (e *fullError) Public() string { return store.ErrFull.Error() }

// code returns the SQLSTATE of an error of the server, "" for another error.
func code(err error) string {
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// translate gives the errors of Postgres the names that callers know. None shows an address: what the
// library says of a connection names the user, and its configuration has the password.
func (d *database) translate(err error) error {
	var p *pgconn.PgError
	switch {
	case err == nil || known(err):
		return err
	case errors.Is(err, context.Canceled):
		return context.Canceled // without what the library says of the connection
	case !errors.As(err, &p):
		if broken(err) {
			return &unreachableError{d.address, err}
		}
		return err
	}
	if e := connectRefused(d.address, d.config, err); e != nil {
		return e
	}
	if p.Code == "3D000" {
		e := &schemaError{problem: "there is no database " + d.address.database, advice: "make it first: createdb " + d.address.database}
		if d.readers != nil { // it was open
			e = gone("database " + d.address.database)
		}
		e.at, e.cause = d.address, p
		return e
	}
	if slices.Contains(ofSchema, p.Code) {
		if e := d.refusedFor(p); e != nil {
			return e
		}
	}
	switch {
	case p.Code == "53100" || p.Code == "53200":
		return &fullError{d.address, p}
	case p.Code == frozen:
		if p.Hint == "copy" {
			return fmt.Errorf("%w: %w", store.ErrReadOnly, &transfer.UnfinishedError{From: p.Detail})
		}
		return fmt.Errorf("%w: %w", store.ErrReadOnly, &transfer.FrozenError{To: p.Detail})
	case p.Code == readOnly:
		return &readingError{fmt.Errorf("%w (%w)", store.ErrReadOnly, p)}
	case p.Code == "42501":
		return fmt.Errorf("%w (%w)", store.ErrReadOnly, p)
	case p.Code == "55P03" || p.Code == "57014" || p.Code == "53300" || p.Code == "40P01" || p.Code == "40001":
		return fmt.Errorf("%w (%w)", session.ErrBusy, p)
	case lost(p.Code):
		return &unreachableError{d.address, p}
	case p.Code == "23505" && strings.HasPrefix(p.ConstraintName, "log_"):
		return &session.CorruptError{What: "the log of a session", Problem: "it goes on further than the session's row says; run dialai store verify"}
	case p.Code == "22021":
		return fmt.Errorf("%w: a text with U+0000, or that is no UTF-8, names nothing in this store", session.ErrNotFound)
	case p.Code == "XX001" || p.Code == "XX002":
		return &session.CorruptError{What: "the database", Problem: p.Message}
	}
	return p // without what it was wrapped in
}

// readOnly is the code of who may not be written to: a standby.
const readOnly = "25006"

// ofSchema are the codes that come of what a schema is: a right, a table or a column is missing, or one is there already that is
// to be made.
var ofSchema = []string{"42501", "42P01", "42703", "3F000", "42P07", "42701", "42710", "42883", "42804", "42809"}

// frozen is the code of what refuses to write to a store that was copied, or is copied into.
const frozen = "DI001"

// definite reports whether an error says what became of a commit, however often it was sent.
func definite(err error) bool {
	return errors.Is(err, session.ErrStale) || errors.Is(err, session.ErrExists) || errors.Is(err, session.ErrNotFound) || errors.As(err, new(*refusal))
}

// known reports whether an error has its name already.
func known(err error) bool {
	for _, name := range []error{session.ErrBusy, session.ErrStale, session.ErrExists, session.ErrNotFound, session.ErrUnknown, store.ErrFull, store.ErrReadOnly} {
		if errors.Is(err, name) {
			return true
		}
	}
	return errors.As(err, new(*schemaError))
}

// broken reports whether an error is one of a connection and not of what was asked for.
func broken(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "unexpected EOF") || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool") || errors.Is(err, context.DeadlineExceeded)
}

// reason returns the innermost cause of an error of a connection, which names no user: of several the first, but that a server
// has no TLS, where one may do without, is none.
func reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok && len(several.Unwrap()) > 0 {
			list := several.Unwrap()
			inner = list[0]
			if len(list) > 1 && strings.HasSuffix(inner.Error(), "server refused TLS connection") {
				inner = list[1]
			}
		}
		if inner == nil {
			return err
		}
		err = inner
	}
}

// lost reports whether a code says that the connection is gone, so that what was sent may have happened.
func lost(code string) bool {
	return strings.HasPrefix(code, "08") || code == "57P01" || code == "57P02" || code == "57P03"
}
