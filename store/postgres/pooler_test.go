package postgres_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dialai/dialai/internal/pgtest"
	"github.com/dialai/dialai/session"
	"github.com/dialai/dialai/store/postgres"
)

// TestPooler: through a pool in session mode a store is the one that it is without, in its own schema and with its own
// timeouts. One in transaction mode is refused, whichever connection of the server it takes next, and nothing is made or set there.
func TestPooler(t *testing.T) {
	address := pgtest.Database(t)
	for _, turns := range []string{"", "server_round_robin = 1\nmin_pool_size = 4"} {
		for _, mode := range []string{"transaction", "statement"} {
			_, err := postgres.Open(t.Context(), pgtest.Pooled(t, address, mode, turns), postgres.Options{})
			if err == nil || !strings.Contains(err.Error(), "a pooler in transaction mode is between") {
				t.Errorf("behind a pooler in %s mode (%s) Open = %v", mode, turns, err)
			}
		}
	}
	number := func(query string) (n int) {
		t.Helper()
		if err := connected(t, address).QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := number(`SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'dialai%'`); n != 0 {
		t.Errorf("%d schemas were made through a pooler that was refused", n)
	}

	s := open(t, pgtest.Pooled(t, address, "session"), postgres.Options{})
	begin(t, parse(t), s)
	direct := open(t, address, postgres.Options{})
	if list, err := direct.List(t.Context(), session.ListQuery{}); err != nil || len(list) != 1 {
		t.Errorf("directly there are %d sessions (%v)", len(list), err)
	}
	if n := number(`SELECT count(*) FROM pg_tables WHERE schemaname='public'`); n != 0 {
		t.Errorf("%d tables were made in the schema public", n)
	}
	if r, err := s.Verify(t.Context(), session.NewPrograms(), nil); err != nil || r.Difference != nil {
		t.Errorf("Verify = %v, %v", r.Difference, err)
	}
}

// TestBeginsInTime: where a server is silent before a connection is ours alone or has its settings, connecting ends as where
// there is no answer at all.
func TestBeginsInTime(t *testing.T) {
	t.Parallel()
	for _, silent := range []string{"pg_backend_pid", "set_config"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go answers(conn, silent)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // of which one is taken
		_, err = postgres.Open(ctx, "postgres://dialai@"+l.Addr().String()+"/d?sslmode=disable&connect_timeout=1", postgres.Options{})
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("silent on %s: Open = %v (%v)", silent, err, ctx.Err())
		}
		cancel()
	}
}

// answers is a server that lets everybody in, and answers nothing in which a word occurs.
func answers(conn net.Conn, silent string) {
	defer conn.Close()
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 7, SecretKey: []byte{0, 0, 0, 1}})
	for {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() != nil {
			return
		}
		m, err := b.Receive()
		q, ok := m.(*pgproto3.Query)
		if err != nil || !ok {
			return
		}
		value := "off" // of transaction_read_only
		switch {
		case strings.Contains(q.String, silent):
			io.Copy(io.Discard, conn) // until the other side ends it
			return
		case strings.Contains(q.String, "pg_backend_pid"):
			value = "7"
		}
		b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("value"), DataTypeOID: 25, DataTypeSize: -1, TypeModifier: -1}}})
		b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(value)}})
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
	}
}
