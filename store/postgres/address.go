package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Addresses hold passwords. So no address is ever shown, but only which host and which database it
// names; and what the library says of one that it cannot read is not passed on, for it quotes it.

// An address is where a store is.
type address struct {
	host, database, schema string
	chosen                 bool              // it says itself which server will do (target_session_attrs)
	plain                  bool              // events are stored as JSON
	settings               map[string]string // that a connection begins with (settings.go)
}

// String returns HOST/DATABASE, and the schema if it is not the usual one.
func (a address) String() string {
	text := "postgres://" + a.host + "/" + a.database
	if schema := strings.TrimSuffix(a.schema, controlSuffix); schema != defaultSchema {
		text += "?schema=" + schema
	}
	return text
}

const (
	defaultSchema = "dialai"
	controlSuffix = "_control" // of the schema beside it in which a server remembers
)

// schemaName is what a schema may be called: what needs no quotes anywhere.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// An AddressError says that an address names no database of Postgres. It shows nothing of it.
type AddressError struct{ Problem string }

func (e *AddressError) Error() string { return "the address of a Postgres store " + e.Problem }

// parse reads an address, and returns how connections to some tables are opened.
func parse(name string, t *tables) (a address, config *pgx.ConnConfig, err error) {
	const how = "cannot be read: write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with what is special in a password percent-encoded, and behind it settings that Postgres has"
	if !strings.HasPrefix(name, "postgres://") && !strings.HasPrefix(name, "postgresql://") {
		return a, nil, &AddressError{how}
	}
	base, settings, _ := strings.Cut(name, "?") // of several hosts, it is no URL
	q, err := url.ParseQuery(settings)
	a.schema = defaultSchema
	if err != nil || q.Has("schema") {
		if a.schema = q.Get("schema"); !schemaName.MatchString(a.schema) || strings.HasPrefix(a.schema, "pg_") || strings.HasSuffix(a.schema, controlSuffix) {
			return a, nil, &AddressError{"names no schema that can be used: small letters, digits and _, 40 of them at most, and not " + controlSuffix + " at its end"}
		}
		q.Del("schema")
	}
	if t == &controlTables {
		a.schema += controlSuffix
	}
	if q.Has("pack") {
		if a.plain = q.Get("pack") == "off"; !a.plain {
			return a, nil, &AddressError{"has pack=, which may be off, or left out"}
		}
		q.Del("pack")
	}
	if config, err = pgx.ParseConfig(base + "?" + q.Encode()); err != nil {
		return a, nil, &AddressError{how}
	}
	a.host, a.database = config.Host, config.Database
	if !strings.HasPrefix(a.host, "/") {
		a.host = net.JoinHostPort(a.host, fmt.Sprint(config.Port))
	}
	if a.database == "" {
		a.database = config.User // as the server does
	}
	for name, value := range map[string]string{
		"application_name": "dialai", "search_path": a.schema, "client_encoding": "UTF8", "timezone": "UTC",
		"synchronous_commit": "on", "statement_timeout": "30s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "30s",
	} {
		if config.RuntimeParams[name] == "" || name == "search_path" {
			config.RuntimeParams[name] = value
		}
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectWithin
	}
	a.settings = takeSettings(config)
	begin(config, a.settings)
	if a.chosen = config.ValidateConnect != nil; !a.chosen {
		config.ValidateConnect = writable
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			giveUp(tcp, silence)
		}
		return conn, err
	}
	return a, config, nil
}

// Place returns where the store at an address is, as HOST/DATABASE and the schema if it is not the usual one:
// without any password. It connects to nothing.
func Place(name string) (string, error) {
	a, _, err := parse(name, &sessionTables)
	return a.String(), err
}

const (
	connectWithin = 10 * time.Second
	silence       = 10 * time.Second // after which who does not answer at all is gone
)

// readers returns how many connections read at most.
func readers() int32 { return int32(max(4, 2*runtime.GOMAXPROCS(0))) }

// An OpenError says why a database cannot be used as a store.
type OpenError struct {
	Address string // host and database, without any password
	Err     error
}

func (e *OpenError) Error() string {
	if unreachable, ok := errors.AsType[*unreachableError](e.Err); ok {
		return "store " + unreachable.Error() // which names it
	}
	if schema, ok := errors.AsType[*schemaError](e.Err); ok {
		return "store " + schema.Error() // which does, too
	}
	return fmt.Sprintf("store %s: %v", e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// Advice says what to do about it, "" if nobody knows.
func (e *OpenError) Advice() string {
	var p *pgconn.PgError
	var advised interface{ Advice() string }
	switch {
	case errors.As(e.Err, &advised):
		return advised.Advice()
	case errors.As(e.Err, &p) && p.Code[:2] == "28":
		return "check the user and the password in the address, or PGUSER and PGPASSWORD"
	case errors.Is(e.Err, errPooler):
		return "connect to the server itself, or through a pool in session mode (pool_mode = session)"
	case errors.Is(e.Err, ErrNone):
		return "running a machine file makes one, and so does dialai migrate"
	case errors.As(e.Err, &p) && p.Code == "42501":
		return "grant the role what docs/postgres.md lists, or have dialai migrate run once by who owns the database"
	}
	return ""
}
