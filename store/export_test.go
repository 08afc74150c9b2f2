package store

import "context"

// WriterExec runs a statement on the connection that writes, to make it fail as
// a full disk would.
func (s *SQLite) WriterExec(query string) error {
	return s.out.do(&job{ctx: context.Background(), write: func(ctx context.Context, _ *statements) error {
		_, err := s.out.conn.ExecContext(ctx, query)
		return err
	}})
}

// Recent is the condition of [SQLite.List] for recent sessions.
const Recent = recent
