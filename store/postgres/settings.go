package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What a connection begins with. The schema and the timeouts of a connection are set once it is there, not as it starts:
// a pooler between refuses most of what comes with the start, or drops it without a word, and then tables would be made in
// whatever schema the server takes. Settings last as long as the connection of the server is ours alone. A pooler in
// transaction mode gives it to another client after each transaction, with our settings, locks, statements and channels: who
// works through one gets wrong answers now and then. So that is looked for before anything is set, and refused: two
// connections that are both open are asked in turns which process of the server answers them.

// first are the settings that poolers take over for each client, and that come with the start of a connection; options are
// the user's.
var first = []string{"application_name", "client_encoding", "timezone", "datestyle", "standard_conforming_strings", "options"}

// takeSettings takes what is to be set once a connection is there out of what comes with its start.
func takeSettings(config *pgx.ConnConfig) map[string]string {
	settings := map[string]string{}
	for name, value := range config.RuntimeParams {
		if !slices.Contains(first, strings.ToLower(name)) {
			settings[name] = value
		}
	}
	maps.DeleteFunc(config.RuntimeParams, func(name, _ string) bool { return settings[name] != "" })
	return settings
}

// begin has connections of a config begin with settings. They are part of connecting, and take no longer than that may.
func begin(config *pgx.ConnConfig, settings map[string]string) {
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		calls = append(calls, "set_config("+quoted(name)+", "+quoted(settings[name])+", false)")
	}
	text, within := "SELECT "+strings.Join(calls, ", "), config.ConnectTimeout
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := conn.Exec(ctx, text).ReadAll()
		return err
	}
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// patient returns the config of connections for what takes as long as it takes, and of which other timeouts that names are off, too.
func (a address) patient(config *pgx.ConnConfig, names ...string) *pgx.ConnConfig {
	config = config.Copy()
	settings := maps.Clone(a.settings)
	for _, name := range append(names, "statement_timeout", "idle_in_transaction_session_timeout") {
		settings[name] = "0"
	}
	begin(config, settings)
	return config
}

// errPooler: connections of the server are not ours alone.
var errPooler = errors.New("a pooler in transaction mode is between: what is set on a connection of the server would be gone, or somebody else's, after a transaction")

// alone returns an error if a pooler may give a connection of the server to others between two transactions.
func alone(ctx context.Context, config *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, config.ConnectTimeout)
	defer cancel()
	config = config.Copy()
	config.AfterConnect = nil
	var conns [2]*pgconn.PgConn
	var pids [2]uint32
	for range 3 { // a pooler may take turns
		for i, conn := range conns {
			if conn == nil {
				var err error
				if conn, err = pgconn.ConnectConfig(ctx, &config.Config); err != nil {
					return err
				}
				defer conn.Close(context.WithoutCancel(ctx))
				conns[i] = conn
			}
			pid, err := answering(ctx, conn)
			switch {
			case err != nil:
				return err
			case pid == conn.PID():
				return nil // nobody is between
			case pids[i] != 0 && pids[i] != pid || pids[1-i] == pid:
				return errPooler
			}
			pids[i] = pid
		}
	}
	return nil
}

// answering returns the process of the server that answers a connection.
func answering(ctx context.Context, conn *pgconn.PgConn) (pid uint32, err error) {
	results, err := conn.Exec(ctx, `SELECT pg_backend_pid()`).ReadAll()
	if err != nil {
		return 0, err
	}
	for _, digit := range results[0].Rows[0][0] {
		pid = 10*pid + uint32(digit-'0')
	}
	return pid, nil
}
